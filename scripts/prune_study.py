"""Train networks with and without windows for a memory and compare them: python scripts/prune_study.py [options]

For each density and seed one network is pruned freely while it trains, and one inside the windows of each memory, with
as many connections and at most as many neurons. 'tiles' read inputs again, for about the I/Os of the free network; they
are left out where all inputs stay. A row of the JSON written: accuracy on
held-out data (where labels are vectors, the share of their variance that outputs explain), I/Os and their lower bound,
and energy and time of one pass of 128 vectors on the 64 KiB scratchpad's machine with on-chip memory for M values. The
free network has the best order that `auto` finds for each memory; with --energy also the one that it finds for the
machine.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from train_digits import PIXEL_MAX, Recipe, split_digits, train

import edgewatt as ew
from edgewatt.evaluation.costs import costs_of
from edgewatt.orders.order_comparison import machine_of
from edgewatt.prune.mask import fitting, order_in
from hwmodel.machine import Machine
from traces.layout.settings import Layout
from traces.networks.forward import forward
from traces.networks.network import Network
from traces.pruning.windows import mixed, pairs_of
from traces.readers.parts.layers import dense_layer, from_layers

LANES = 128
DOCS = Path(__file__).parents[1] / "docs"


def load(data: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (training inputs, labels, test inputs, labels) of the data named, or of an npz with these four."""
    rng = np.random.default_rng(seed)
    if data == "spectra":  # five frames of 128 bands: a few sources, each with a smooth spectrum, and noise
        bands = np.linspace(0, 1, 128)[:, None]
        spectra = np.exp(-0.5 * ((bands - rng.random(12)) / rng.uniform(0.02, 0.15, 12)) ** 2)
        loudness = rng.gamma(0.5, size=(5000, 1, 12)) * rng.uniform(0.5, 1.5, size=(5000, 5, 12))
        frames = np.log(0.1 + loudness @ spectra.T) + 0.1 * rng.normal(size=(5000, 5, 128))
        vectors = ((frames - frames.mean()) / frames.std()).reshape(5000, 640).astype(np.float32)
        return vectors[1000:], vectors[1000:], vectors[:1000], vectors[:1000]
    if data == "bytes":  # the next byte of our documentation, from the eight before it
        text = b" ".join(path.read_bytes() for path in sorted(DOCS.rglob("*.md")))
        symbols, counts = np.unique(np.frombuffer(text, np.uint8), return_counts=True)
        rank = np.full(256, 63)  # the 63 most frequent bytes; the others are one symbol
        rank[symbols[np.argsort(-counts, kind="stable")[:63]]] = np.arange(63)
        symbol, at = rank[np.frombuffer(text, np.uint8)], rng.permutation(len(text) - 8)[:50_000]
        codes = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
        inputs, labels = codes[symbol[at[:, None] + np.arange(8)]].reshape(-1, 64), symbol[at + 8]
        return inputs[5000:], labels[5000:], inputs[:5000], labels[:5000]
    if data != "digits":
        arrays = np.load(data)
        return tuple(arrays[name] for name in ("inputs", "labels", "test_inputs", "test_labels"))
    images, labels, test, answers = split_digits(seed)
    return images / PIXEL_MAX, labels, test / PIXEL_MAX, answers


def machine_for(memory: int) -> Machine:
    """Return scratchpad-64k with room for so many values."""
    machine = machine_of("scratchpad-64k")
    assert machine.scratchpad is not None
    size = machine.scratchpad.stream_bytes + (memory - 1) * Layout(lanes=LANES).row_pitch
    return replace(machine, scratchpad=replace(machine.scratchpad, size_bytes=size), technology=None)


def measured(network: Network, edges: np.ndarray, memory: int, energy: bool) -> dict[str, float]:
    """Return I/Os, their bound and, if asked for, energy (uJ) and time (us) on the machine."""
    found = {"ios": ew.count_io(network, edges, memory=memory).total, "bound": ew.io_bounds(network).lower_total}
    if energy:
        cost = costs_of(network, edges, machine_for(memory), Layout(lanes=LANES), memory=memory, timing="system")
        found |= {"energy_uj": cost["energy"] * 1e-6, "time_us": cost["time"] * 1e-3}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", default="digits", help="digits, bytes, spectra, or an npz of inputs, labels, test_inputs, test_labels"
    )
    parser.add_argument("--widths", default="64-256-128-256-10")
    parser.add_argument("--density", type=float, nargs="+", default=[0.1])
    parser.add_argument("--memory", type=int, nargs="+", default=[119, 71, 36])
    parser.add_argument("--pattern", nargs="+", choices=["windows", "tiles"], default=["windows", "tiles"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--time-limit", type=float, default=3.0)
    parser.add_argument("--energy", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("prune_study.json"))
    given = parser.parse_args()
    widths = tuple(int(n) for n in given.widths.split("-"))
    dense, rows = sum(a * b for a, b in pairs_of(widths)), []

    def note(row: dict[str, object]) -> None:
        rows.append(row)
        given.out.write_text(json.dumps(rows, indent=0))
        print(json.dumps(row), flush=True)

    for density in given.density:
        for seed in given.seeds:
            x, y, test, answers = load(given.data, seed)
            recipe = Recipe(widths, n_connections=round(density * dense), steps=given.steps, seed=seed)

            def network(windows=None, neurons=None) -> tuple[Network, float]:  # type: ignore[no-untyped-def]
                weights, biases = train(recipe, x, y, windows, neurons, 1.0)  # noqa: B023 - called in this round
                layers = [
                    dense_layer(w, f"layer {k}", bias=b) for k, (w, b) in enumerate(zip(weights, biases, strict=True))
                ]
                made = from_layers(layers, name="study")
                found = forward(made, np.asarray(test, np.float32))[:, made.outputs]  # noqa: B023
                if answers.ndim == 2:  # noqa: B023
                    return made, 100 * float(1 - ((found - answers) ** 2).mean() / answers.var(axis=0).mean())  # noqa: B023
                return made, 100 * float((found.argmax(axis=1) == answers).mean())  # noqa: B023

            free, accuracy = network()
            neurons = int(free.touched.sum()) + int((free.in_degree[free.outputs] > 0).sum()) - widths[-1]
            for memory in given.memory:
                about = {"density": density, "seed": seed, "memory": memory}
                edges = ew.order(free, "auto", memory=memory, time_limit_s=given.time_limit).edges
                cost = measured(free, edges, memory, given.energy)
                note({**about, "pattern": "free", "accuracy": accuracy, **cost})
                most = cost["ios"]
                if given.energy:
                    asked = {"memory": None, "objective": "energy", "machine": machine_for(memory), "lanes": LANES}
                    edges = ew.order(free, "auto", time_limit_s=given.time_limit, **asked).edges
                    cost = measured(free, edges, memory, True)
                    note({**about, "pattern": "free, least energy", "accuracy": accuracy, **cost})
                for pattern in given.pattern:
                    tiles = pattern == "tiles"
                    extra = int(most - cost["bound"]) if tiles else 0
                    shapes, near = fitting(widths, memory, recipe.n_connections, extra=extra)
                    if near or (tiles and shapes[0].tile == 1):
                        print(near or f"M {memory}: no tiles for {extra} I/Os")
                        continue
                    windows = mixed(shapes[0], seed)
                    made, right = network(windows, neurons)
                    cost = measured(made, order_in(windows, made), memory, given.energy)
                    note({**about, "pattern": pattern, "accuracy": right, **cost})
    for density in given.density:
        for memory in given.memory:
            chosen = [row for row in rows if (row["density"], row["memory"]) == (density, memory)]
            for pattern in dict.fromkeys(row["pattern"] for row in chosen):
                mine = [row for row in chosen if row["pattern"] == pattern]
                accuracies = [float(row["accuracy"]) for row in mine]  # type: ignore[arg-type]
                spread = f"standard deviation {stdev(accuracies):.2f}" if len(mine) > 1 else "one seed"
                ios, bounds = ([int(row[key]) for row in mine] for key in ("ios", "bound"))  # type: ignore[call-overload]
                at = " = the bounds" if ios == bounds else f", bounds {bounds}"
                print(f"density {density:g} M {memory} {pattern}: {mean(accuracies):.2f} % ({spread}), I/Os {ios}{at}")


if __name__ == "__main__":
    main()
