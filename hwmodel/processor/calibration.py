"""Fitting the cost model to the processor at hand: a probe of a few seconds on networks of its own."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from cython_ext.inference.runs import LEVELS, level_number
from hwmodel.processor.cost import (
    FORM,
    TERMS,
    Processor,
    exposed,
    features,
    fit,
    load_processor,
    measure_limits,
    surprises,
)
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.traffic import LINE_BYTES, row_bytes
from hwmodel.processor.work import ordered_work
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.generators.networks import uniform_layers
from traces.networks.network import Network

SAMPLE_S = 0.002
SAMPLES = 4
SWEEPS = 2
"""Over all passes, seconds apart, of which the least counts: a burst of other work is shorter."""
WIDTHS = ((48, 48, 48), (300, 300, 300, 300), (400, 400, 400), (800, 800, 400), (1500, 1000, 64), (1000, 3000, 1000))
DENSITIES = (0.01, 0.04, 0.15)
SHARING = (((500, 500, 500), 0.15), ((250, 400, 250), 0.4), ((300, 150, 300), 1.0))
"""Widths and densities where targets share enough sources to be taken in pairs."""
TILES = (None, 256, 96, 32)  # sources per tile; None: targets one after the other
LANES = (32, 64, 128)
REMEMBERED = (1000, 2000, 4000, 5700, 6700, 8000, 9500, 11300, 13500, 16000, 22000, 32000)
"""Numbers of run lengths that a branch predictor may keep from pass to pass: the best fit decides."""


def tiled(network: Network, tile: int | None, alike: bool = False, paired: bool = False) -> np.ndarray:
    """Return int64[W]: by depth of the target, tile of sources, target; None: one tile. alike: in a tile by run length
    first. paired: every second target and the one before it begin with the sources that they share."""
    by_depth = np.lexsort((np.arange(network.n_neurons), network.depth))
    depth = network.depth[by_depth]
    place = np.empty(network.n_neurons, np.int64)
    place[by_depth] = np.arange(network.n_neurons) - np.searchsorted(depth, depth)
    tiles = place[network.sources] // (tile or network.n_neurons)
    _, run, lengths = np.unique(tiles * network.n_neurons + network.targets, return_inverse=True, return_counts=True)
    length = lengths[run] if alike else np.zeros(len(run), np.int64)
    layer = network.depth[network.targets]
    at = (layer * network.n_neurons + place[network.targets]) * network.n_neurons + network.sources
    beside = at + np.where(place[network.targets] % 2, -1, 1) * network.n_neurons
    alone = ~np.isin(beside, at) if paired else np.zeros(len(run), bool)
    return np.lexsort((network.sources, alone, network.targets, length, tiles, layer))


def probe_cases() -> Iterator[tuple[Network, np.ndarray, int]]:
    """Yield (network, order, lanes): layers of several sizes and densities, whole, in tiles, pairs and short runs."""
    for seed, widths in enumerate(WIDTHS):
        for density in DENSITIES:
            network = uniform_layers(widths, density, seed=1000 + seed)
            orders = []
            for number, tile in enumerate(TILES):
                for alike in (False, True) if number % 2 == 0 else ((seed + number) % 2 == 0,):
                    orders.append(tiled(network, tile, alike))
            for order in orders:
                for lanes in LANES:
                    yield network, order, lanes
            by_source = np.lexsort((network.targets, network.sources, network.depth[network.targets]))
            shuffled = np.lexsort((np.random.default_rng(seed).random(len(by_source)), network.depth[network.targets]))
            for order in (by_source, shuffled):
                for lanes in LANES[1:]:
                    yield network, order, lanes
    for seed, (widths, density) in enumerate(SHARING):
        network = uniform_layers(widths, density, seed=2000 + seed)
        for tile in TILES:
            for lanes in LANES:
                yield network, tiled(network, tile, paired=True), lanes


def calibrate(progress: Progress | None = None) -> Processor:
    """Measure limits and the passes of `probe_cases` by thread CPU time, and fit the model. A few seconds.

    The batch is one pass of each case. Deterministic but for the clock.
    """
    limits, level = measure_limits(), LEVELS[level_number()]
    cases, counts, steps = list(probe_cases()), [], []
    for network, order, lanes in cases:
        made = compile_inference(network, order, lanes=lanes)
        counts.append(features(ordered_work(network, order), lanes, limits, level, 0))
        inputs = made.pack(np.random.default_rng(0).random((lanes, len(network.inputs)), np.float32))
        steps.append(partial(made.run, inputs))
    seconds = np.full(len(cases), np.inf)
    for sweep in range(SWEEPS):
        for number, step in enumerate(steps):
            seconds[number] = min(seconds[number], seconds_of(step))
            if progress:
                progress(sweep * len(cases) + number + 1, SWEEPS * len(cases), "passes")
    fits = {}
    for remembered in REMEMBERED:
        table = np.array(counts)
        hidden = np.array([exposed(row_bytes(lanes) // LINE_BYTES) for _, _, lanes in cases])
        changes = table[:, TERMS.index("surprise")] / hidden
        table[:, TERMS.index("surprise")] = surprises(changes, remembered) * hidden
        fits[remembered] = fit(table, seconds)
    remembered = min(fits, key=lambda r: fits[r][2])
    nanoseconds, error, _ = fits[remembered]
    when = time.strftime("%Y-%m-%d")
    source = f"{_measured_here()}{when}, thread CPU time"
    return Processor(limits, nanoseconds, remembered, level, len(cases), error, source)


def seconds_of(step: Callable[[], object]) -> float:
    """Return the least thread CPU seconds of a call over samples of a few milliseconds: other work only adds to it."""
    step()
    started = time.thread_time()
    step()
    calls = max(1, int(SAMPLE_S / max(time.thread_time() - started, 1e-6)))
    samples = []
    for _ in range(SAMPLES):
        started = time.thread_time()
        for _ in range(calls):
            step()
        samples.append((time.thread_time() - started) / calls)
    return min(samples)


def own_file() -> Path:
    """Where the calibration of this machine is kept: in the user's cache folder, a file per machine name and level."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return folder / "edgewatt" / f"processor-{FORM}-{platform.node() or 'this'}-{LEVELS[level_number()]}.yaml"


def this_cpu(progress: Progress | None = None) -> Processor:
    """Return this machine's calibration: from its file, else measured now and written there.

    A file that is damaged, or was measured on a processor of another name, is measured again.
    """
    path = own_file()
    with contextlib.suppress(InputError):
        kept = load_processor(path)
        if kept.source.startswith(_measured_here()) and kept.simd == LEVELS[level_number()]:
            return kept
    processor = calibrate(progress)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        processor.save(path)
    except (OSError, InputError):
        pass  # a home that cannot be written to: measure again next time
    return processor


def _measured_here() -> str:
    """What the source of a calibration of this machine begins with."""
    return f"measured by edgewatt on {platform.machine()} {cpu_name()}, "


def processor_for(target: str, progress: Progress | None = None) -> Processor:
    """Return the processor of `target`: 'this-cpu', or the path of a system file."""
    if target == "this-cpu":
        return this_cpu(progress)
    if not Path(target).exists():
        raise InputError(f"target {target!r}: 'this-cpu', or the system file of a processor (no such file)")
    return load_processor(target)


def cpu_name() -> str:
    """Return what the system calls the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "processor"
