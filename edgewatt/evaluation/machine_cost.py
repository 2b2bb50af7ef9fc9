"""The machine as objective: its energy, time or bytes, lowered by a search whose candidates are simulated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.evaluation.costs import LEAST_CHANGE, costs_of, describe_change, differs, rows_of
from edgewatt.results.verdict import MATTERS, Gain, gain_of
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import Machine
from reorder.base import ORDERINGS, Ordering
from reorder.edges.machine.search import MachineParameters, order_for_machine
from reorder.edges.machine.surrogate import CacheShape, Int64Array, MachineShape, Surrogate
from reorder.edges.methods.tiles import BestTile, best_tile
from reorder.edges.search.objectives import MACHINE_OBJECTIVES, Objective, io
from reorder.order import check_limits
from reorder.order import order as order_edges
from traces.base.errors import InputError, shown, unknown_name
from traces.base.progress import Progress
from traces.base.units import describe_shares, engineering
from traces.layout.kind import LAYOUTS
from traces.layout.settings import AUTO, BEST, Layout
from traces.networks.checks import checked_memory
from traces.networks.forward import forward
from traces.networks.network import Network
from traces.trace.build import build_trace, input_vectors

STRETCHES = 4
VECTORS = 4  # of the forward pass
LEAST_FACTOR = 0.5  # of a lane's values; the largest is 1


def stretches(n_connections: int, sampled: int) -> Int64Array:
    """Return int64[about `sampled`], ascending places of an order: STRETCHES of equal length, evenly spread."""
    length = max(1, min(sampled, n_connections) // STRETCHES)
    middle = (2 * np.arange(STRETCHES) + 1) * n_connections // (2 * STRETCHES)
    begin = np.clip(middle - length // 2, 0, n_connections - length)
    return np.unique(begin[:, None] + np.arange(length))


def activations(network: Network, lanes: int, seed: int) -> npt.NDArray[np.float32]:
    """Return float32[lanes, N]: values that neurons may hold, for the payload of a sample. O(W VECTORS + N lanes)."""
    given, _ = input_vectors(network, 0, min(VECTORS, lanes), None, seed, min(VECTORS, lanes))
    values = np.resize(forward(network, given), (lanes, network.n_neurons))
    if lanes > VECTORS:
        factors = np.random.default_rng(seed).random(values.shape, np.float32)
        values *= LEAST_FACTOR + (1 - LEAST_FACTOR) * factors
    return np.nan_to_num(values, posinf=0, neginf=0)


def sample_of(network: Network, edges: Int64Array, values: npt.NDArray[np.float32]) -> Network:
    """Return the connections `edges` (int64, part of an order) as a network in that order, neurons as they were.

    Neurons that nothing computes are inputs, with `values` (float32[lanes, N]) as the batch; those that nothing reads
    are outputs, which are written as they would be for later.
    """
    sources, targets = network.sources[edges], network.targets[edges]
    fed, read = np.zeros(network.n_neurons, bool), np.zeros(network.n_neurons, bool)
    fed[targets], read[sources] = True, True
    inputs = np.flatnonzero(read & ~fed)
    ids = network.weight_ids
    assert network.weights is not None
    return network.with_(
        sources=sources,
        targets=targets,
        weights=network.weights[edges],
        layer=None if network.layer is None else network.layer[edges],
        weight_ids=None if ids is None else np.unique(ids[edges], return_inverse=True)[1],
        inputs=inputs,
        outputs=np.flatnonzero(fed & (network.is_output | ~read)),
        batch=values[:, inputs],
    )


NAMED = 3  # constructions of a note; the result has them all
TRIED = ("two-optimal", "output-stationary", "by-source", "tiles", "depth-first")  # what a surrogate alone learns from


@dataclass(frozen=True, eq=False)
class MachineCost:
    """Says what an order of a network costs on a machine: its energy (pJ), time (ns) or bytes over the memory bus.

    layout: 'auto' and 'best' are chosen for each order. timing: 'system' or 'replay'.
    """

    network: Network
    machine: Machine
    layout: Layout
    objective: str
    timing: str
    seed: int = 0
    _known: dict[bytes, dict[str, Any]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.objective not in MACHINE_OBJECTIVES:
            raise unknown_name("objective of a machine", self.objective, MACHINE_OBJECTIVES)
        if self.timing not in ("system", "replay"):
            raise InputError(f"timing must be 'system' or 'replay', not {shown(self.timing)}")
        if self.machine.part is None:
            raise InputError("the machine has no DRAM part: energy and time need one")
        if self.machine.scratchpad is None and not self.machine.caches:
            raise InputError("the machine has neither caches nor a scratchpad: every order moves the same bytes")

    @cached_property
    def plain(self) -> Int64Array:
        return order_edges(self.network, "two-optimal", memory=3).edges

    def costs(self, edges: Any, progress: Progress | None = None) -> dict[str, Any]:
        key = hashlib.sha256(np.ascontiguousarray(edges, np.int64).data).digest()
        if key not in self._known:
            self._known[key] = costs_of(
                self.network, edges, self.machine, self.layout, memory=rows_of(self.machine, self.layout),
                timing=self.timing, seed=self.seed, progress=progress,
            )  # fmt: skip
        return self._known[key]

    @property
    def _blocking(self) -> tuple[int, str, int]:
        """Rows of fast memory, its policy, and rows that come together: what tiles are made by."""
        pad, part = self.machine.scratchpad, self.machine.part
        together = self.machine.caches[-1].line_bytes if pad is None else part.organisation.burst_bytes
        sharing = max(1, together // self.layout.row_pitch)
        return rows_of(self.machine, self.layout), "lru" if pad is None else pad.policy, sharing

    def __call__(self, edges: Int64Array) -> float:
        return float(self.costs(edges)[self.objective])

    @cached_property
    def _activations(self) -> npt.NDArray[np.float32]:
        return activations(self.network, self.layout.lanes, self.seed)

    def sample(self, edges: Int64Array, n_connections: int) -> tuple[Network, float]:
        """Return stretches of an order, about `n_connections` in all, as a network in that order, and its cost."""
        part = sample_of(self.network, edges[stretches(len(edges), n_connections)], self._activations)
        memory, order = rows_of(self.machine, self.layout), np.arange(part.n_connections)
        cost = costs_of(part, order, self.machine, self.layout, memory=memory, timing=self.timing, seed=self.seed)
        return part, float(cost[self.objective])

    def holds(self, edges: Int64Array) -> bool:
        return self.layout.kind in (AUTO, BEST) or LAYOUTS[self.layout.kind].item.holds(self.network, edges)

    def in_layouts(self) -> dict[str, tuple[MachineCost, Callable[[Int64Array], bool]]]:
        """Return, for each other layout where any will do, what an order costs in it and whether it can hold one."""
        kinds = list(LAYOUTS) if self.layout.kind in (AUTO, BEST) else []
        models = {kind: replace(self, layout=replace(self.layout, kind=kind)) for kind in kinds}
        return {kind: (model, model.holds) for kind, model in models.items()}

    def check_plain(self) -> None:
        if not self.holds(self.plain):
            raise InputError(
                f"layout {self.layout.kind!r} cannot store two-optimal, with which orders for a machine are compared: "
                "use layout 'tuples' or 'coo'"
            )

    @property
    def evicts(self) -> dict[str, Any]:
        pad = self.machine.scratchpad or ScratchpadSpec(2**20)
        return {"policy": pad.policy, "pinning": pad.pinning}

    def blocked(self) -> BestTile | None:
        """Return the best simple blocking on this machine: two numbers, tried out by simulation, of the tiles that a
        search tries too. None where the layout can hold none."""
        cost = lambda edges: self(edges) if self.holds(edges) else math.inf  # noqa: E731
        memory, policy, sharing = self._blocking
        best = best_tile(self.network, memory, cost, policy=policy, multiple=sharing)
        return best if best.value < math.inf else None

    def shape(self) -> MachineShape:
        memory = rows_of(self.machine, self.layout)
        pad, burst = self.machine.scratchpad, self.machine.part.organisation.burst_bytes
        if pad is None:
            return MachineShape(memory, "lru", "literal", self._cache_shape())
        sharing = max(1, burst // self.layout.row_pitch)
        return MachineShape(memory, pad.policy, pad.pinning, burst_rows=sharing)

    def _cache_shape(self) -> CacheShape:
        from cython_ext.cache.level import compiled_policy

        plan = build_trace(self.network, self.plain, layout=self.layout, batch=self.layout.lanes, seed=self.seed).plan
        assert plan is not None
        last, member = self.machine.caches[-1], self.machine.caches[-1].policy_type
        memory = self.machine.part.organisation
        row_bytes = memory.columns // memory.columns_per_burst * memory.burst_bytes
        banks = memory.channels * memory.bank_groups * memory.banks_per_group
        return CacheShape(
            line_bytes=last.line_bytes,
            sets=last.sets,
            ways=last.ways,
            policy=None if member.needs_future else compiled_policy(member.kernel),
            elements=tuple((plan.base_address + int(at), int(bits)) for at, bits, _, _ in plan.element),
            rows=(plan.base_address + plan.neurons_offset, plan.row_pitch, plan.row_bytes),
            access_bytes=self.machine.engine.access_bytes,
            memory_rows=(1 << (row_bytes.bit_length() - 1), banks),
        )


@dataclass(frozen=True)
class MachineView:
    """What an order and two-optimal cost on a machine (`costs_of`) in a pass of `lanes` inputs, and a sentence about
    both. note: what a time limit left open, empty for nothing. blocking: costs of the best simple blocking and its
    `tile`; empty where the layout holds none. choices: its two numbers as a configuration has them, and the layout in
    which the order lies best."""

    name: str
    objective: str
    cost: Mapping[str, Any]
    plain: Mapping[str, Any]
    sentence: str
    note: str = ""
    blocking: Mapping[str, Any] = field(default_factory=dict)
    lanes: int = 1
    choices: str = ""

    @property
    def sure(self) -> str:
        others = {"row by row": self.plain, "the best simple blocking": self.blocking}
        gains = [f"{gain_between(self.cost, other).words} against {name}" for name, other in others.items() if other]
        return f"Energy of {self.name}, within the ranges of the constants: {', '.join(gains)}."

    def as_dict(self) -> dict[str, Any]:
        return {"objective": self.objective, "sentence": self.sentence, "note": self.note,
                "gain": vars(gain_between(self.cost, self.plain)),
                "blocking": dict(self.blocking) or None,
                self.name: dict(self.cost), "two-optimal": dict(self.plain)}  # fmt: skip


def gain_between(one: Mapping[str, Any], other: Mapping[str, Any]) -> Gain:
    return gain_of(one["sources"], other["sources"], (float(one["time"]), float(other["time"])))


def order_on_machine(
    model: MachineCost,
    method: str,
    *,
    memory: int | None = None,
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
    given: Sequence[tuple[str, Int64Array]] = (),
    **parameters: Any,
) -> Ordering:
    """Return an order of the model's network for its machine.

    A method that chooses among others ('auto') searches, and simulations decide (parameters: `MachineParameters`). What
    it returns is never worse there than two-optimal and the constructions, but for those that a time limit left
    out, which the result names (`what_is_open`); with `given`, than those (name, order) pairs and two-optimal.
    Other methods make their order for M = memory (None: the machine's own); those that search lower runs and I/Os,
    weighted as the model weighs them.
    """
    check_limits(seed, time_limit_s)
    if memory is not None:
        checked_memory(memory)
    entry = ORDERINGS[method]
    if entry.item.chooses:
        model.check_plain()
    shape = model.shape()
    if entry.item.chooses:
        return order_for_machine(
            model.network, shape, model, machine_parameters(model, method, parameters), holds=model.holds,
            sampler=model.sample, given=given, seed=seed, time_limit_s=time_limit_s, progress=progress,
            layouts=model.in_layouts(),
        )  # fmt: skip
    rows = shape.memory if memory is None else memory
    if entry.item.blocking and entry.make_parameters(parameters) == entry.make_parameters({}):
        block = model.blocked()
        if block is not None:
            return Ordering(block.edges, method, {"memory": rows, "value": block.value, **asdict(block.tile)}, seed)
    evicts = {"policy": shape.policy, "pinning": shape.pinning} if entry.item.searches else model.evicts
    objective: Any = linear_objective(model, shape) if entry.item.searches else "io"
    ordering = order_edges(
        model.network, method, memory=rows, **evicts, objective=objective, seed=seed, time_limit_s=time_limit_s,
        progress=progress, **parameters,
    )  # fmt: skip
    return replace(ordering, parameters={**ordering.parameters, "memory": rows, "value": model(ordering.edges)})


def machine_parameters(model: MachineCost, method: str, parameters: Mapping[str, Any]) -> MachineParameters:
    usual = vars(ORDERINGS[method].make_parameters({}))  # a configuration names them all
    changed = {name: value for name, value in parameters.items() if name not in usual or value != usual[name]}
    known = MachineParameters.__dataclass_fields__
    for name in changed:
        if name not in known:
            raise InputError(
                f"method {method!r} takes no {name!r} with objective {model.objective!r}, only {', '.join(known)}"
            )
    return MachineParameters(**changed)


def linear_objective(model: MachineCost, shape: MachineShape) -> Objective:
    surrogate = Surrogate(model.network, replace(shape, cache=None, burst_rows=1))
    for name in TRIED:
        edges = order_edges(model.network, name, memory=shape.memory, policy=shape.policy).edges
        if model.holds(edges):
            surrogate.learn(surrogate.counts(edges), model(edges))
    run, moved = surrogate.weights[:2].tolist()
    return Objective(model.objective, runs=run, io=io().io if not moved else (replace(io().io[0], weight=moved),))


def view_on_machine(model: MachineCost, ordering: Ordering, progress: Progress | None = None) -> MachineView:
    model.check_plain()
    cost, plain = model.costs(ordering.edges, progress), model.costs(model.plain, progress)
    words = sentence(model, ordering.method, cost, plain)
    block = model.blocked()
    blocking = {} if block is None else {**model.costs(block.edges), "tile": asdict(block.tile)}
    more = "" if block is None else f"The best simple blocking: {block.tile.words}."
    if ordering.parameters.get("layout"):
        amount = write_amount(ordering.parameters["layout_value"] / model.layout.lanes, model.objective)
        more += f" {ordering.method} lies best in layout {ordering.parameters['layout']}: {amount}."
    return MachineView(ordering.method, model.objective, cost, plain, words, what_is_open(ordering), blocking,
                       model.layout.lanes, more)  # fmt: skip


def settled(model: MachineCost, ordering: Ordering, progress: Progress | None = None) -> Ordering:
    """Return an order no worse than two-optimal by whole simulations; samples alone may miss that."""
    if ordering.parameters.get("evaluated_by") != "sample":
        return ordering
    mine, plain = (float(model.costs(edges, progress)[model.objective]) for edges in (ordering.edges, model.plain))
    if mine <= plain:
        return ordering
    known = {**ordering.parameters, "found_by": "two-optimal", "value": plain, "two_optimal": plain}
    return replace(ordering, edges=model.plain, parameters=known)


def what_is_open(ordering: Ordering) -> str:
    missed = [name for name in str(ordering.parameters.get("not_evaluated", "")).split(", ") if name]
    if not missed:
        return ""
    if ordering.parameters["evaluated_by"] == "sample":
        return "The time limit left no room to simulate whole orders; samples compared them and may miss the best."
    named = missed if len(missed) <= NAMED else [*missed[: NAMED - 1], f"{len(missed) - NAMED + 1} more"]
    return f"Not simulated for want of time, and one of them may cost less: {', '.join(named)}."


def sentence(model: MachineCost, name: str, cost: Mapping[str, Any], plain: Mapping[str, Any]) -> str:
    """Say in one sentence whether an order pays on the model's machine against two-optimal, and why, per inference."""
    what, lanes = model.objective, model.layout.lanes
    cost, plain = (cost_per_inference(each, lanes) for each in (cost, plain))
    mine, other = float(cost[what]), float(plain[what])
    change = (mine - other) / other if other else 0.0
    inputs = "per inference" if lanes == 1 else f"per inference of {lanes} at a time"
    where = f"{describe_machine(model.machine)}, layout {model.layout.kind}, {inputs}"
    amounts = f"{write_amount(other, what)} for two-optimal and {write_amount(mine, what)} for {name}"
    figures = f"{amounts}, {100 * change:+.1f} %"
    times = (
        f"{write_amount(one['time'], 'time')} for {order}, bound by {describe_shares(one['bound_by'])} %"
        for order, one in (("two-optimal", plain), (name, cost))
    )
    because = f"{describe_change(dict(cost), dict(plain), what)}; time {' and '.join(times)}"
    if mine == other:
        return f"It does not pay in {what} on {where}: both orders cost {write_amount(mine, what)}."
    if not differs(mine, other):
        apart = f"{write_amount(abs(mine - other), what)} apart, less than {100 * LEAST_CHANGE:g} %"
        return f"It makes no difference in {what} on {where}: {write_amount(other, what)} for both orders, {apart}."
    irrelevant, pays = abs(change) < MATTERS, mine < other
    verdict = "The order is irrelevant" if irrelevant else "It pays" if pays else "It does not pay"
    return f"{verdict} in {what} on {where}: {figures}, because {because}."


def cost_per_inference(cost: Mapping[str, Any], lanes: int) -> dict[str, Any]:
    if lanes == 1:
        return dict(cost)
    shares = {key: cost[key] / lanes for key in ("bytes", "energy", "time")}
    parts = {key: {name: value / lanes for name, value in cost[key].items()} for key in ("streams", "terms")}
    return {**cost, **shares, **parts}


def describe_machine(machine: Machine) -> str:
    if machine.scratchpad is not None:
        return f"{machine.scratchpad.size_bytes / 1024:.4g} KiB of scratchpad with {machine.part.name}"
    sizes = " and ".join(f"{cache.size_bytes / 1024:.4g} KiB" for cache in machine.caches)
    return f"{sizes} of cache with {machine.part.name}"


def write_amount(value: float, what: str) -> str:
    factor, unit = {"bytes": (1.0, "B"), "energy": (1e-12, "J"), "time": (1e-9, "s")}[what]
    return engineering(value * factor, unit, 4)
