"""A trained network pruned for a memory, beside magnitude pruning at the same density: error, I/Os, energy, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from edgewatt.evaluation.costs import costs_of, rows_of
from edgewatt.prune.mask import fitting, order_in, room_in, target_of
from edgewatt.results.comparison import pareto_front
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from hwmodel.machine import Machine
from reorder.base import Ordering
from reorder.order import order as make_order
from traces.base.archive import read_npz
from traces.base.checks import check_seed
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.layout.settings import Layout
from traces.networks.checks import checked_memory
from traces.networks.forward import activated, forward
from traces.networks.network import ACTIVATIONS, Network, weights_of
from traces.pruning.assignment import arranged, strongest
from traces.pruning.layers import Layers, layers_of
from traces.pruning.reconstruction import (
    Activation,
    Floats,
    Reconstructed,
    alike,
    importances,
    losses,
    reconstruct,
    refined,
)
from traces.pruning.selection import Mask
from traces.pruning.windows import Windows, fit, pairs_of

SPREADS = (1.0, 0.8, 0.5)  # of the room for windows, tried in turn (see traces.pruning.windows.fit)
ROUNDS = 3
LARGEST_INPUT = 1e30  # sums of squares over layers stay numbers
TEST_SHARE = 5  # one calibration vector in so many measures, the others fit


@dataclass(frozen=True)
class PrunedResult:
    """One way to prune. dead: connections kept and not among `connections`: from neurons that nothing feeds, or to
    neurons that feed nothing. error: of the outputs on vectors that no weight was fitted to: the root of the mean over
    outputs of squared error / variance. accuracy: share of labels met, None without labels. layer_errors: the same as
    `error` for each layer's sums, on the fitted vectors. ios: in the order made for it. energy_pj, time_ns: of one pass
    on the machine, None without one."""

    method: str
    memory: int
    density: float
    connections: int
    dead: int
    neurons: int
    error: float
    accuracy: float | None
    layer_errors: tuple[float, ...]
    windows: tuple[int, ...]
    ios: int
    bound: int
    energy_pj: float | None = None
    time_ns: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class PrunedNetwork:
    """network: the one chosen, its neurons numbered by their places in the windows. order: of its connections.
    results: every one tried, the chosen one first, then magnitude pruning at its density. front: those that no other
    beats in both error and energy (I/Os without a machine). verdict: a sentence."""

    network: Network
    order: Ordering
    results: tuple[PrunedResult, ...]
    front: tuple[PrunedResult, ...]
    verdict: str


@dataclass(frozen=True, eq=False)
class _Task:
    layers: Layers
    weights: list[Floats]
    biases: list[Floats]
    fit: Floats
    test: Floats
    labels: npt.NDArray[np.integer] | None
    memory: int
    seed: int
    machine: Machine | None = None
    layout: Layout = field(default_factory=Layout)
    rounds: int = ROUNDS
    steps: int = 0
    extra: int = 0
    time_limit_s: float = 0.0  # for the orders

    @cached_property
    def activations(self) -> list[Activation]:
        return [_finishing(self.layers.network, ids) for ids in self.layers.neurons[1:]]

    def counts(self, density: float) -> list[int]:
        target_of(None, density, len(self.layers.layer))
        return [max(1, round(density * np.count_nonzero(w))) for w in self.weights]

    def outputs(self, weights: Sequence[Floats], biases: Sequence[Floats], inputs: Floats) -> Floats:
        for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
            inputs = self.activations[k](inputs @ w.T + b)
        return inputs

    def error(self, made: Reconstructed) -> float:
        truth = self.outputs(self.weights, self.biases, self.test)
        return alike(self.outputs(made.weights, made.biases, self.test) - truth, truth)

    def fitted(self, allowed: Sequence[Mask], counts: Sequence[int], rounds: int) -> Reconstructed:
        made = reconstruct(
            self.weights, self.biases, self.fit, allowed, counts, activations=self.activations, rounds=rounds
        )
        if self.steps:
            truth = self.outputs(self.weights, self.biases, self.fit)
            fine = refined(made, self.fit, truth, activations=self.activations, steps=self.steps, seed=self.seed)
            before, after = (alike(self.outputs(m.weights, m.biases, self.fit) - truth, truth) for m in (made, fine))
            made = fine if after < before else made
        return made

    def network(self, made: Reconstructed) -> tuple[Network, npt.NDArray[np.bool_]]:
        """Return the network of what stays, and which connections do: none that leads nowhere."""
        masks, biases = _live(made, self.activations)
        weights = [w * mask for w, mask in zip(made.weights, masks, strict=True)]
        kept = self.layers.at(masks).astype(bool)
        all_biases = np.zeros(self.layers.network.n_neurons, np.float32)
        for ids, bias in zip(self.layers.neurons[1:], biases, strict=True):
            all_biases[ids] = bias
        network = self.layers.only(kept, self.layers.at(weights).astype(np.float32))
        return network.with_(biases=all_biases), kept

    def result(
        self, method: str, density: float, network: Network, edges: Any, made: Reconstructed, sizes: Sequence[int]
    ) -> PrunedResult:
        outputs = forward(network, self.test.astype(np.float32))[:, network.outputs].astype(np.float64)
        truth = self.outputs(self.weights, self.biases, self.test)
        cost: Mapping[str, Any] = {}
        if self.machine is not None:
            cost = costs_of(
                network, edges, self.machine, self.layout, memory=self.memory, timing="system", seed=self.seed
            )
        accuracy = None if self.labels is None else float((outputs.argmax(axis=1) == self.labels).mean())
        return PrunedResult(
            method, self.memory, density, network.n_connections,
            sum(int(mask.sum()) for mask in made.masks) - network.n_connections, int(network.touched.sum()),
            alike(outputs - truth, truth), accuracy, tuple(made.errors), tuple(sizes),
            count_io(network, edges, memory=self.memory).total, io_bounds(network).lower_total,
            cost.get("energy"), cost.get("time"),
        )  # fmt: skip


def prune(
    network: Network,
    *,
    calibration: str | Path | npt.ArrayLike | Mapping[str, Any],
    density: float | Sequence[float],
    memory: int | None = None,
    machine: Machine | None = None,
    lanes: int = 16,
    rounds: int = ROUNDS,
    steps: int = 0,
    extra: int = 0,
    time_limit_s: float = 5.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> PrunedNetwork:
    """Prune a trained layered network into windows that a memory has room for, and compare with magnitude pruning.

    calibration: input vectors [B, inputs], or an npz (or mapping) with the array `inputs` and, for an accuracy,
    `labels` (positions among the outputs). One in five measures, the others fit the weights; they need no labels.
    memory: M; or machine: M is that of its on-chip memory for rows of `lanes` vectors, and it is simulated.
    density: the share of the connections to keep, of each layer; several give a Pareto front, the first one is chosen.
    rounds: in how many steps each layer is pruned, with least squares after each. steps: of gradient descent on all
    layers together afterwards (0: none). extra: I/Os above the bound that important connections outside the windows
    may cost, about (the report counts them). time_limit_s: for an order of the freely pruned network, and with `extra`
    of the other one.
    Raises InputError for calibration of another width, a network that is no chain of layers or has clipped-relu, or a
    memory without room, naming the nearest M and density.
    """
    if memory is None and machine is None:
        raise InputError("give memory (M of the I/O model) or a machine")
    layout = Layout(lanes=lanes)
    rows = checked_memory(memory) if memory is not None else rows_of(machine, layout)  # type: ignore[arg-type]
    limits = {"rounds": rounds, "steps": steps, "extra": extra, "time_limit_s": time_limit_s}
    task = _task(network, calibration, rows, seed, machine=machine, layout=layout, **limits)
    densities = [density] if isinstance(density, int | float) else list(density)
    done, total = 0, 2 * len(densities)
    chosen: tuple[Network, Ordering] | None = None
    results: list[PrunedResult] = []
    for share in densities:
        for make in (_in_windows, _by_magnitude):
            pruned, order, result = make(task, share)
            results.append(result)
            chosen = chosen or (pruned, order)
            done += 1
            if progress is not None:
                progress(done, total, "pruned")
    assert chosen is not None
    cost = [[r.error, float(r.ios if r.energy_pj is None else r.energy_pj)] for r in results]
    front = tuple(results[i] for i in pareto_front(cost))
    return PrunedNetwork(*chosen, tuple(results), front, _verdict(results[0], results[1]))


def prune_one(
    network: Network, method: str, *, calibration: Any, density: float, memory: int | None = None, seed: int = 0
) -> Network:
    """Return the network pruned in one way, 'memory' or 'magnitude', and fitted to calibration vectors as by `prune`.

    For a memory its own order of connections is the one that belongs to the windows.
    """
    task = _task(network, calibration, memory or 3, seed)
    if method == "memory":
        pruned, order, _ = _in_windows(task, density)
        return pruned.in_order(order.edges)
    made = task.fitted([w != 0 for w in task.weights], task.counts(density), ROUNDS)
    return task.network(made)[0]


def _task(network: Network, calibration: Any, memory: int, seed: int, **settings: Any) -> _Task:
    check_seed(seed)
    weights = weights_of(network, "pruning").astype(np.float64)
    if network.activation == "clipped-relu":
        raise InputError(f"{network.name}: clipped-relu adds a bias to some sums alone: pruning fits no such network")
    layers = layers_of(network)
    matrices = [np.asarray(w, np.float64) for w in layers.matrices(weights)]
    for k, w in enumerate(matrices, 1):
        if not w.any():
            raise InputError(f"{network.name}: the weights of layer {k} of {len(matrices)} are all 0: nothing to prune")
    inputs, labels = calibration_of(calibration, len(network.inputs), len(network.outputs))
    test = np.arange(len(inputs)) % TEST_SHARE == 0
    biases = np.zeros(network.n_neurons) if network.biases is None else network.biases
    return _Task(
        layers, matrices, [biases[ids].astype(np.float64) for ids in layers.neurons[1:]],
        inputs[~test], inputs[test], None if labels is None else labels[test], memory, seed, **settings,
    )  # fmt: skip


def _in_windows(task: _Task, density: float) -> tuple[Network, Ordering, PrunedResult]:
    """Prune into the windows that lose the least: several shapes are tried with one round of least squares."""
    widths, counts = task.layers.widths, task.counts(density)
    room = sum(counts)
    found, near = fitting(widths, task.memory, room, 1, (), task.extra)
    if near:
        nearest = room_in(widths, task.memory) / sum(a * b for a, b in pairs_of(widths))
        raise InputError(f"{near}; nearest density: {nearest:.3g}" if nearest else near)
    known = task.weights, task.biases, task.fit, task.activations
    large = strongest(losses(*known), [2 * count for count in counts])
    trial = replace(task, test=task.fit, steps=0)
    spread = [fit(widths, task.memory, connections=room, spread=to) for to in SPREADS if found[-1].tile == 1]
    shapes = {(w.sizes, w.live): w for w in found + spread}
    tried: list[tuple[float, int, Windows, list[Mask], list[int]]] = []

    def note(placed: Windows, allowed: list[Mask], fits: list[int]) -> None:
        alone = len(shapes) == 1 and not task.extra
        error = 0.0 if alone else trial.error(trial.fitted(allowed, fits, 1))
        tried.append((error, len(tried), placed, allowed, fits))

    for shape in shapes.values():
        placed = arranged(shape, large, seed=task.seed)[0]
        allowed = [m & (w != 0) for m, w in zip(placed.allowed(), task.weights, strict=True)]
        note(placed, allowed, _counts(counts, allowed))
    _, _, placed, allowed, fits = min(tried, key=lambda each: each[:2])
    if task.extra:
        note(placed, *_with_outside(task, placed, importances(*known), allowed, counts))
        _, _, placed, allowed, fits = min(tried, key=lambda each: each[:2])
    made = task.fitted(allowed, fits, task.rounds)
    network, kept = task.network(made)
    layers = replace(
        task.layers, layer=task.layers.layer[kept], target=task.layers.target[kept], source=task.layers.source[kept]
    )
    edges = order_in(placed, network, layers)
    number = np.arange(network.n_neurons)
    for ids, position in zip(task.layers.neurons, placed.positions, strict=True):
        number[ids] = np.sort(ids)[position]
    network = _numbered(network, number)
    order = Ordering(edges, "memory-mask", {"memory": task.memory, "policy": "min"}, task.seed)
    if task.extra:  # what lies outside the windows may have a better order than theirs
        other = make_order(network, "auto", memory=task.memory, seed=task.seed, time_limit_s=task.time_limit_s)
        order = min((order, other), key=lambda each: count_io(network, each, memory=task.memory).total)
    return network, order, task.result("windows", density, network, order.edges, made, placed.sizes)


def _with_outside(
    task: _Task, windows: Windows, scores: Sequence[Floats], allowed: list[Mask], counts: Sequence[int]
) -> tuple[list[Mask], list[int]]:
    """Return allowed connections with as many of the most important others as `extra` I/Os pay for, found by bisection
    on the most important connections allowed, and how many of each layer to keep."""
    outside = np.sort(np.concatenate([s[~a & (w != 0)] for s, a, w in zip(scores, allowed, task.weights, strict=True)]))
    low, high, best = 0, len(outside), (allowed, _counts(counts, allowed))
    while high - low > max(1, low // 50):
        middle = (low + high + 1) // 2
        wider = [
            a | ((s >= outside[-middle]) & (w != 0)) for s, a, w in zip(scores, allowed, task.weights, strict=True)
        ]
        fits = _counts(counts, wider)
        masks = [
            (kept := np.where(mask, score, -1.0)) >= np.partition(kept.ravel(), -n)[-n]
            for mask, score, n in zip(wider, scores, fits, strict=True)
        ]
        on = task.layers.at(masks).astype(bool)
        network = task.layers.only(on)
        edges = windows.order(task.layers.layer[on], task.layers.target[on], task.layers.source[on])
        if count_io(network, edges, memory=task.memory).total - io_bounds(network).lower_total <= task.extra:
            low, best = middle, (wider, fits)
        else:
            high = middle
    return best


def _by_magnitude(task: _Task, density: float) -> tuple[Network, Ordering, PrunedResult]:
    """Prune by the same rounds and fits where any connection may stay, and search an order."""
    everywhere = [w != 0 for w in task.weights]
    made = task.fitted(everywhere, task.counts(density), task.rounds)
    network, _ = task.network(made)
    order = make_order(network, "auto", memory=task.memory, seed=task.seed, time_limit_s=task.time_limit_s)
    return network, order, task.result("free", density, network, order.edges, made, ())


def _counts(counts: Sequence[int], allowed: Sequence[Mask]) -> list[int]:
    """Return how many to keep of each layer: what does not fit into a layer's windows goes to the others."""
    room = [int(mask.sum()) for mask in allowed]
    fits = [min(pair) for pair in zip(counts, room, strict=True)]
    left = sum(counts) - sum(fits)
    for k in np.argsort([f - r for f, r in zip(fits, room, strict=True)]):
        more = min(left, room[k] - fits[k])
        fits[k] += more
        left -= more
    return fits


def _finishing(network: Network, neurons: npt.NDArray[np.int64]) -> Activation:
    codes = network.codes[neurons]
    if (codes == ACTIVATIONS.index("gelu")).all():
        return lambda z: 0.5 * z * (1 + erf(z * z.dtype.type(2**-0.5)))  # a fifth of the time of math.erf
    return lambda z: activated(z.copy(), codes, None if network.slopes is None else network.slopes[neurons])


def _live(made: Reconstructed, activations: Sequence[Activation]) -> tuple[list[Mask], list[Floats]]:
    """Return masks without connections that lead nowhere or come from nowhere, and biases with what those added."""
    masks, biases = [mask.copy() for mask in made.masks], [bias.copy() for bias in made.biases]
    for k in range(len(masks) - 1):  # a neuron without inputs is a constant
        constant = ~masks[k].any(axis=1)
        biases[k + 1] += (made.weights[k + 1] * masks[k + 1])[:, constant] @ activations[k](biases[k])[constant]
        masks[k + 1][:, constant] = False
    for k in range(len(masks) - 2, -1, -1):
        masks[k][~masks[k + 1].any(axis=0)] = False
    return masks, biases


def _numbered(network: Network, number: npt.NDArray[np.int64]) -> Network:
    """Return the network with neuron v of a layer called number[v], in the same layer; connections keep their places.

    Unlike `renumbered` it takes neurons of a layer that have a bias alone, whose depth is another one.
    """
    old = np.empty_like(number)
    old[number], of_neurons = np.arange(len(number)), ("biases", "positions", "activations", "slopes")
    return network.with_(
        sources=number[network.sources],
        targets=number[network.targets],
        inputs=number[network.inputs],
        outputs=number[network.outputs],
        **{name: held[old] for name in of_neurons if (held := getattr(network, name)) is not None},
    )


def calibration_of(given: Any, width: int, n_outputs: int) -> tuple[Floats, npt.NDArray[np.integer] | None]:
    """Return input vectors and their labels, if there are some. Raises InputError naming the file and the fault."""
    where, labels = "calibration", None
    if isinstance(given, str | Path):
        where, given = str(given), read_npz(given)
    if isinstance(given, Mapping):
        if "inputs" not in given:
            raise InputError(
                f"{where}: no array 'inputs' of calibration vectors (there are {', '.join(given) or 'none'})"
            )
        given, labels = given["inputs"], given.get("labels")
    inputs = np.asarray(given)
    if inputs.ndim != 2 or inputs.shape[1] != width or inputs.dtype.kind not in "iuf":
        raise InputError(f"{where}: inputs of shape {inputs.shape}, expected (B, {width}): one column per input")
    if len(inputs) < 2 * TEST_SHARE or not (np.abs(inputs) <= LARGEST_INPUT).all():
        raise InputError(
            f"{where}: at least {2 * TEST_SHARE} input vectors of numbers up to {LARGEST_INPUT:g} are needed"
        )
    if labels is not None and (labels.shape != (len(inputs),) or labels.dtype.kind not in "iu"):
        raise InputError(f"{where}: labels must be {len(inputs)} whole numbers, one per input vector")
    if labels is not None and (bad := np.flatnonzero((labels < 0) | (labels >= n_outputs))).size:
        raise InputError(f"{where}: label {bad[0]} is {labels[bad[0]]}: labels are outputs, from 0 to {n_outputs - 1}")
    return inputs.astype(np.float64), labels


def _verdict(mine: PrunedResult, free: PrunedResult) -> str:
    if mine.ios >= free.ios:
        return (
            f"Prune freely here: at M = {mine.memory} the freely pruned network needs {free.ios:,} I/Os, with windows "
            f"it is {mine.ios:,}."
        )
    saved = f"{100 * (mine.ios / free.ios - 1):+.1f} % I/Os ({mine.ios:,}"
    saved += ", the lower bound, " if mine.ios == mine.bound else f" with a lower bound of {mine.bound:,}, "
    saved += f"against {free.ios:,})"
    if mine.energy_pj is not None and free.energy_pj is not None and mine.time_ns and free.time_ns:
        saved += f", {100 * (mine.energy_pj / free.energy_pj - 1):+.1f} % energy, "
        saved += f"{100 * (mine.time_ns / free.time_ns - 1):+.1f} % time"
    lost = f"the outputs' error is {mine.error:.3g} against {free.error:.3g}"
    if mine.accuracy is not None and free.accuracy is not None:
        lost = f"accuracy is {100 * mine.accuracy:.1f} % against {100 * free.accuracy:.1f} %"
    if abs(mine.connections - free.connections) > free.connections / 100:  # too few of its own lie in windows
        lost += f", with {mine.connections:,} connections against {free.connections:,}"
    return f"Windows for M = {mine.memory} against free pruning to the same density: {saved}; {lost}."
