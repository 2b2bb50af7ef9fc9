"""The steps of a point: how each is made, and one table of the fields it reads, the steps before it and what is kept.

Everything else that has to know how points hang together is derived from STEPS: which results two points share
(`identities`, `shared`), what a sweep would compute (`own_steps`), what the memo keeps, and what a record holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgewatt.config.kinds import AS_GIVEN, IO_NEUTRAL, registry
from edgewatt.config.source import read_network
from edgewatt.results.record import canonical_json, hash_of_text
from edgewatt.runs import machine
from edgewatt.runs.model import (
    FileIdentity,
    NetworkWork,
    Order,
    Point,
    PointFastMemory,
    StepResults,
    TraceWork,
    build_machine,
    check_unchanged,
)
from hwmodel.machine import EngineSpec
from hwmodel.replay.cache_pass import ENGINE_WAITS
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.networks.network import Network
from traces.trace.chunks import Trace

if TYPE_CHECKING:
    from reorder.base import Ordering


Arrays = dict[str, np.ndarray]

_CURVE_POINTS = 200  # of a search's best-so-far curve kept in a record


def load_network(point: Point, before: StepResults, progress: Progress | None) -> Network:
    assert isinstance(point.work, NetworkWork)
    source = point.work.network
    if source.generate is not None:
        network: Network = registry("generators")[source.generate.kind].item(**source.generate.parameters)
        network = network if source.activation is None else network.with_(activation=source.activation)
    else:
        paths = point.paths["network"]
        check_unchanged(source.files or (), paths)
        network = read_network(paths if source.one_per_layer else paths[0], source)
    return network if source.prune is None else _pruned(point, network, source.prune)


def _pruned(point: Point, network: Network, options: Mapping[str, Any]) -> Network:
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    method, calibration = given.pop("method", "magnitude"), given.pop("calibration", None)
    if calibration is not None:
        from edgewatt.prune.trained import prune_one

        check_unchanged((FileIdentity(**calibration),), point.paths["calibration"])
        return prune_one(
            network, method, calibration=point.paths["calibration"][0], density=given["density"],
            memory=given.get("memory"), seed=point.measure.seed,
        )  # fmt: skip
    if method == "memory":
        from edgewatt.prune.mask import memory_mask

        mask = memory_mask(
            network, memory=given["memory"], density=given.get("density"), connections=given.get("n_connections"),
            seed=point.measure.seed,
        )  # fmt: skip
        return mask.network.in_order(mask.order.edges)
    from traces.networks.prune import prune_magnitude

    return prune_magnitude(network, **given)


def describe(network: Network) -> dict[str, Any]:
    return {
        "network": {
            "neurons": network.n_neurons,
            "connections": network.n_connections,
            "inputs": len(network.inputs),
            "outputs": len(network.outputs),
            "isolated": int((~network.touched).sum()),
            "depth": int(network.depth.max()),
        }
    }


def order_edges(point: Point, before: StepResults, progress: Progress | None) -> Arrays:
    """Return edges int64[W] in the order of work; meta: the curve of (search steps, objective), its seconds."""
    from reorder.edges.search.objectives import MACHINE_OBJECTIVES
    from reorder.order import order

    if wants_machine(point):
        return _as_arrays(_order_on_machine(point, before["network"], progress))
    chosen = _order(point)
    ordering = order(
        before["network"],
        chosen.ordering.kind,
        memory=chosen.fast_memory.size,
        policy=chosen.fast_memory.policy,
        pinning=chosen.fast_memory.pinning,
        objective="io" if chosen.search.objective in MACHINE_OBJECTIVES else chosen.search.objective,
        time_limit_s=chosen.search.time_limit_s,
        seed=point.measure.seed,
        progress=progress,
        **_with_files(point, chosen.ordering.parameters),
    )
    return _as_arrays(ordering)


def wants_machine(point: Point) -> bool:
    from reorder.base import ORDERINGS
    from reorder.edges.search.objectives import MACHINE_OBJECTIVES

    if point.order is None or point.order.search.objective not in MACHINE_OBJECTIVES:
        return False
    method = ORDERINGS[point.order.ordering.kind].item
    return method.searches or method.blocking


def _order_on_machine(point: Point, network: Network, progress: Progress | None) -> Ordering:
    from edgewatt.evaluation.machine_cost import MachineCost, order_on_machine, settled

    chosen = _order(point)
    assert point.layout is not None
    timing = "system" if chosen.search.objective == "time" else point.measure.timing
    model = MachineCost(
        network, build_machine(point), point.layout.in_memory, chosen.search.objective, timing, point.measure.seed
    )
    ordering = order_on_machine(
        model, chosen.ordering.kind, memory=chosen.fast_memory.size, time_limit_s=chosen.search.time_limit_s,
        seed=point.measure.seed, progress=progress, **_with_files(point, chosen.ordering.parameters),
    )  # fmt: skip
    return settled(model, ordering, progress)


def _as_arrays(ordering: Ordering) -> Arrays:
    step = max(1, -(-len(ordering.curve) // _CURVE_POINTS))
    curve = [*ordering.curve[:-1:step], *ordering.curve[-1:]]
    blocked = "outer" in ordering.parameters  # a simple blocking: what a configuration needs to have it again
    meta = {
        "curve": [[int(work), float(objective)] for work, _, objective in curve],
        "curve_seconds": [float(seconds) for _, seconds, _ in curve],
        "truncated": ordering.truncated,
        "tile": {name: ordering.parameters[name] for name in ("targets", "sources", "outer") if blocked},
    }
    return {"edges": ordering.edges, "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}


def _with_files(point: Point, parameters: Mapping[str, Any]) -> dict[str, Any]:
    with_paths = dict(parameters)
    named = [
        key for key, value in parameters.items() if isinstance(value, Mapping) and set(value) == {"name", "sha256"}
    ]
    for key, path in zip(named, point.paths.get("ordering", ()), strict=True):
        check_unchanged((FileIdentity(**parameters[key]),), [path])
        with_paths[key] = path
    return with_paths


def describe_order(arrays: Arrays) -> dict[str, Any]:
    meta = json.loads(arrays["meta"].tobytes())
    return {
        "ordering": {key: meta[key] for key in ("curve", "truncated", *(["tile"] if meta.get("tile") else []))},
        "tuple_order": {},  # says nothing, but records have it
    }


def check_order(arrays: Arrays, before: StepResults) -> None:
    from traces.networks.checks import check_order as check

    edges = arrays.get("edges", np.zeros(0))
    if edges.dtype != np.int64 or edges.ndim != 1:
        raise InputError(f"edges are {edges.dtype} of {edges.ndim} dimensions, an order is int64 of one")
    check(before["network"], edges)


def check_found_order(arrays: Arrays, before: StepResults) -> None:
    check_order(arrays, before)
    try:
        meta = json.loads(arrays["meta"].tobytes())
        seconds, curve, truncated = meta["curve_seconds"], meta["curve"], meta["truncated"]
        valid = type(truncated) is bool and [len(row) for row in curve] == [2] * len(seconds)
    except (KeyError, ValueError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise InputError("meta is not a description of a search")


def curve_seconds(arrays: Arrays) -> list[float]:
    seconds: list[float] = json.loads(arrays["meta"].tobytes())["curve_seconds"]
    return seconds


def order_hash(arrays: Arrays) -> str:
    """Return the hash of an order of work: what later steps see of the steps that made it."""
    return hashlib.sha256(np.ascontiguousarray(arrays["edges"]).tobytes()).hexdigest()[:24]


def has_tuple_order(point: Point) -> bool:
    return point.order is not None and point.order.stride.kind != AS_GIVEN


def order_tuples(point: Point, before: StepResults, progress: Progress | None) -> Arrays:
    from hwmodel.coding.chain import chain_facts
    from reorder.joint import order_jointly, order_run_tuples

    assert point.layout is not None
    parameters: dict[str, Any] = dict(_order(point).stride.parameters)
    block: Any = point.machine.bus.block_bytes
    inverts = chain_facts(point.machine.encoder).inverts
    network, edges, stride = before["network"], before["ordering"]["edges"], parameters.pop("stride")
    settings: dict[str, Any] = dict(
        method=_order(point).stride.kind, value_format=point.layout.format, block_bytes=block, seed=point.measure.seed,
        **parameters,
    )  # fmt: skip
    if stride != IO_NEUTRAL:
        return {"edges": order_run_tuples(network, edges, stride=stride, inverts=inverts, **settings)}
    memory = _order(point).fast_memory
    settings.pop("stride_restart")  # windows are where they are
    joint = order_jointly(
        network, edges, memory=memory.size, policy=memory.policy, pinning=memory.pinning,
        encoder="base-xor+dbi-dc" if inverts else "base-xor", **settings,
    )  # fmt: skip
    return {"edges": joint.edges}


def memory_if_io_neutral(point: Point) -> tuple[str, ...]:
    given = has_tuple_order(point) and _order(point).stride.parameters.get("stride") == IO_NEUTRAL
    return _MEMORY if given else ()


def make_trace(point: Point, before: StepResults, progress: Progress | None) -> Trace:
    if isinstance(point.work, TraceWork):
        from traces.trace_files import open_trace

        trace = point.work.trace
        check_unchanged(trace.files, point.paths["trace"])
        return open_trace(point.paths["trace"][0], trace.format, access_bytes=trace.access_bytes)
    from traces.layout.settings import choices
    from traces.trace.build import build_trace

    assert point.layout is not None
    edges, layout = before["tuple_order"]["edges"], point.layout.in_memory
    try:
        choices(before["network"], edges, layout)
    except InputError as error:
        raise InputError(f"ordering {_order(point).ordering.kind}: {error}") from None
    return build_trace(
        before["network"],
        edges,
        layout=layout,
        sample=point.work.sample,
        batch=point.work.batch,
        seed=point.measure.seed,
    )


def measure_accuracy(point: Point, before: StepResults, progress: Progress | None) -> dict[str, Any]:
    from traces.trace.accuracy import accuracy_of

    assert point.layout is not None
    network = before["network"]
    vectors, labels, origin = _labelled(point, network)
    accuracy = accuracy_of(network, before["tuple_order"]["edges"], point.layout.in_memory, vectors, labels)
    return {"accuracy": {**asdict(accuracy), "inputs": origin}}


def _labelled(point: Point, network: Network) -> tuple[np.ndarray, np.ndarray | None, str]:
    from traces.readers.native import read_extras

    assert isinstance(point.work, NetworkWork)
    if point.work.network.labelled is not None:
        from edgewatt.prune.trained import calibration_of

        check_unchanged(point.work.network.labelled, point.paths["labelled"])
        vectors, labels = calibration_of(point.paths["labelled"][0], len(network.inputs), len(network.outputs))
        return vectors.astype(np.float32), labels, f"{point.work.network.labelled[0].name}: {len(vectors)} vectors"
    files = point.paths.get("network", [])
    if len(files) == 1 and files[0].endswith(".npz"):
        extras = read_extras(files[0])
        if {"test_images", "test_labels"} <= extras.keys():
            images = extras["test_images"] / np.float64(extras.get("pixel_max", 1))
            return images.astype(np.float32), extras["test_labels"].astype(np.int64), "test images of the file"
        if network.batch is not None and len(extras.get("labels", ())) == len(network.batch):
            return network.batch, extras["labels"].astype(np.int64), "batch of the file"
    if network.batch is not None:
        return network.batch, None, "batch of the file"
    drawn = np.random.default_rng(point.measure.seed).random((64, len(network.inputs)), np.float32)
    return drawn, None, f"64 vectors, uniform [0, 1), seed {point.measure.seed}"


def _order(point: Point) -> Order:
    assert point.order is not None
    return point.order


_BOUND_WORK = 1 << 30  # operations that a bound beyond Theorem 1 may take: about a second


def count_io(point: Point, before: StepResults, progress: Progress | None) -> dict[str, Any]:
    from hwmodel.fastmemory.iomodel import io_bounds, io_curve, movement_distance

    network, memory = before["network"], _memory(point)
    sizes = sorted({memory.size, *memory.curve})
    curve = io_curve(network, before["tuple_order"]["edges"], sizes, memory.policy, memory.pinning)
    counted = {counts.memory: counts for counts in curve}
    io = counted[memory.size]
    return {
        "io": {**vars(io), "reads": io.reads, "writes": io.writes, "total": io.total},
        "bounds": dict(vars(io_bounds(network))),
        "movement_distance": movement_distance(network, before["tuple_order"]["edges"]),
        "io_curve": [[size, counted[size].reads, counted[size].writes] for size in sizes] if memory.curve else [],
    }


def best_bound(point: Point, before: StepResults, progress: Progress | None) -> dict[str, Any]:
    from reorder.edges.bounds.bounds import lower_bound

    bound = lower_bound(before["network"], _memory(point).size, _BOUND_WORK)
    return {"best_bound": {"total": bound.total, "argument": bound.argument}}


def two_optimal_io(point: Point, before: StepResults, progress: Progress | None) -> dict[str, Any]:
    from hwmodel.fastmemory import iomodel
    from reorder.order import order

    memory = _memory(point)
    given: dict[str, Any] = {"memory": memory.size, "policy": memory.policy, "pinning": memory.pinning}
    network = before["network"]
    return {"total": iomodel.count_io(network, order(network, "two-optimal", **given), **given).total}


def gaps(point: Point, before: StepResults, progress: Progress | None) -> dict[str, Any]:
    from hwmodel.fastmemory.iomodel import gap

    counted, bound, base = before["io"], before["best_bound"]["best_bound"], before["two_optimal"]["total"]
    total = counted["io"]["total"]
    return {
        "gap": gap(total, base, counted["bounds"]["lower_total"]),
        "gap_to_best_bound": gap(total, base, bound["total"]),
    }


def _memory(point: Point) -> PointFastMemory:
    assert point.order is not None
    return point.order.fast_memory


def _network(point: Point) -> bool:
    return point.order is not None


def _machine(point: Point) -> bool:
    return point.order is None or point.measure.measure == "all"


@dataclass(frozen=True)
class Step:
    """One step of a point.

    reads: fields of the point, dotted; a field that a point does not have is nothing to depend on. derived: further
    values that count, computed from the point. after: the steps whose results it may ask for. when: the points that
    have this step; where a point has not, the result and identity of the first step before it stand in for it.
    make: (point, results before, progress) -> result. keep: 'arrays' and 'json' in the store, 'memory' in this process,
    'nothing'. reports: what the record holds of the result. content: names the result by its content, so that later
    steps are shared by points that came to it in different ways. shared_as: what estimates call it. check: raises
    InputError for arrays of a file that the step cannot have made: (arrays, results before).
    reads_also: further fields that some points read.
    """

    name: str
    reads: tuple[str, ...]
    after: tuple[str, ...]
    make: Callable[[Point, StepResults, Progress | None], Any]
    keep: Literal["arrays", "json", "memory", "nothing"] = "json"
    when: Callable[[Point], bool] = lambda point: True
    reports: Callable[[Any], Mapping[str, Any]] | None = None
    content: Callable[[Any], str] | None = None
    derived: Mapping[str, Callable[[Point], Any]] = field(default_factory=dict)
    shared_as: str = ""
    check: Callable[[Any, StepResults], None] | None = None
    reads_also: Callable[[Point], tuple[str, ...]] = lambda point: ()


def _all(result: Any) -> Mapping[str, Any]:
    parts: Mapping[str, Any] = result
    return parts


_ON_MACHINE = ("caches", "scratchpad", "technology", "idle", "bus", "encoder", "engine", "dram", "timing")
_PACE = tuple(f"engine.{f.name}" for f in fields(EngineSpec) if f.name not in ENGINE_WAITS)
_MEMORY = ("fast_memory.size", "fast_memory.policy", "fast_memory.pinning")

STEPS: Mapping[str, Step] = {
    step.name: step
    for step in (
        Step(
            "network",
            reads=("network",),
            after=(),
            make=load_network,
            keep="memory",
            when=_network,
            reports=describe,
            shared_as="networks",
        ),
        Step(
            "ordering",
            reads=("ordering", "search", "seed", *_MEMORY),
            after=("network",),
            make=order_edges,
            keep="arrays",
            when=_network,
            reports=describe_order,
            check=check_found_order,
            content=order_hash,
            shared_as="orderings",
            reads_also=lambda point: (*_ON_MACHINE, "format", "layout") if wants_machine(point) else (),
        ),
        Step(
            "tuple_order",
            reads=("stride", "format", "layout", "encoder", "bus", "seed"),
            after=("ordering", "network"),
            make=order_tuples,
            keep="arrays",
            when=has_tuple_order,
            check=check_order,
            content=order_hash,
            shared_as="tuple orders",
            reads_also=memory_if_io_neutral,
        ),
        Step(
            "io",
            reads=("fast_memory",),
            after=("tuple_order", "network"),
            make=count_io,
            when=_network,
            reports=_all,
        ),
        Step("two_optimal", reads=_MEMORY, after=("network",), make=two_optimal_io, when=_network),
        Step(
            "best_bound",
            reads=("fast_memory.size",),
            after=("network",),
            make=best_bound,
            when=_network,
            reports=_all,
        ),
        Step(
            "gaps",
            reads=(),
            after=("io", "two_optimal", "best_bound"),
            make=gaps,
            keep="nothing",
            when=_network,
            reports=_all,
        ),
        Step(
            "trace",
            reads=("trace", "sample", "batch", "format", "layout"),
            derived={"seed": lambda point: None if point.order is None else point.measure.seed},
            after=("tuple_order", "network"),
            make=make_trace,
            keep="memory",
            when=_machine,
        ),
        Step(
            "accuracy",
            reads=("accuracy", "format", "layout"),
            derived={"seed": lambda point: point.measure.seed},
            after=("tuple_order", "network"),
            make=measure_accuracy,
            when=lambda point: point.order is not None and point.measure.accuracy,
            reports=_all,
            shared_as="accuracies",
        ),
        Step(
            "cache_pass",
            reads=("caches", "scratchpad", *_PACE),
            derived={"block_bytes": lambda point: build_machine(point).bus.block_bytes},
            after=("trace",),
            make=machine.keep_pass,
            keep="arrays",
            when=lambda point: _machine(point) and point.measure.timing == "replay",
            check=machine.check_pass,
            shared_as="cache passes",
        ),
        Step(
            "replay",
            reads=(*_ON_MACHINE, "engines", "format"),
            after=("trace", "cache_pass", "network"),
            make=machine.simulate_point,
            when=_machine,
            reports=_all,
            shared_as="replays",
        ),
    )
}
"""Name -> step; every step comes after those it names."""

OPTIONAL = frozenset({"cache_pass"})
"""Steps that are made only for points that share them."""

_ARRAYS = frozenset(name for name, step in STEPS.items() if step.keep == "arrays")


StepsOf = Mapping[str, Step | None]


def steps_of(point: Point) -> StepsOf:
    """Return name -> the step of that name, or what stands in for it in this point; None if nothing does."""
    steps: dict[str, Step | None] = {}
    for name, step in STEPS.items():
        steps[name] = step if step.when(point) else steps[step.after[0]] if step.after else None
    return steps


def own_steps(steps: StepsOf) -> list[Step]:
    return [step for name, step in steps.items() if step is STEPS[name]]


def inputs(steps: StepsOf, step: Step) -> dict[str, Step]:
    given = {}
    for name in step.after:
        before = steps[name]
        if before is not None and name not in OPTIONAL:
            given[name] = before
    return given


def name_of(point: Point, step: Step, before: Mapping[str, str]) -> str:
    """Return what names a step's result: the hash of all that it depends on, as JSON."""
    paths = (*step.reads, *step.reads_also(point))
    own = f'"fields":{point.text(paths)}'
    if point.plugins:
        roots = {path.split(".")[0] for path in paths}
        outside = {key: value for key, value in point.plugins.items() if key in roots}
        own += f',"plugins":{canonical_json(outside)}' if outside else ""
    if step.derived:
        derived = {name: derive(point) for name, derive in step.derived.items()}
        own = f'"derived":{canonical_json(derived)},{own}'
    names = ",".join([f'"{key}":{before[key]}' for key in sorted(before)])
    return hash_of_text(f'["{step.name}",{{{own}}},{{{names}}}]')


def identities(point: Point, needed: frozenset[str] = frozenset(STEPS)) -> dict[str, str]:
    """Return step -> what names its result before anything is computed, for the steps that the point has."""
    names: dict[str, str] = {}
    steps, named = steps_of(point), _with_those_before(needed)
    for step in own_steps(steps):
        if step.name not in named:
            continue
        before = {key: names.get(given.name) for key, given in inputs(steps, step).items()}
        try:
            names[step.name] = name_of(
                point, step, {key: f'"{name}"' if name else "null" for key, name in before.items()}
            )
        except InputError:
            continue
    return names


@cache
def _with_those_before(names: frozenset[str]) -> frozenset[str]:
    needed = set(names)
    for name, step in reversed(list(STEPS.items())):
        if name in needed:
            needed.update(step.after)
    return frozenset(needed)


def shared(named: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    users: dict[tuple[str, str], list[str]] = {}
    for point_hash, names in named.items():
        for step in _ARRAYS & names.keys():
            users.setdefault((step, names[step]), []).append(point_hash)
    by_point: dict[str, list[str]] = {}
    for (step, _), sharers in users.items():
        for point_hash in sharers if len(sharers) > 1 else ():
            by_point.setdefault(point_hash, []).append(step)
    return by_point
