"""The steps on the network's side of a point: network, order of its connections, order of tuples, memory trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewatt.config.kinds import AS_GIVEN, IO_NEUTRAL, registry
from edgewatt.runs.files import check_unchanged
from edgewatt.runs.model import Before, FileIdentity, NetworkWork, Order, Point, TraceWork
from traces.access.trace import Trace
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.work.network import Network

if TYPE_CHECKING:
    from reorder.base import Ordering

Arrays = dict[str, np.ndarray]

_CURVE_POINTS = 200  # of a search's best-so-far curve kept in a record


def load_network(point: Point, before: Before, progress: Progress | None) -> Network:
    """Read or generate the network of a point and prune it. Raises InputError naming file or parameter."""
    assert isinstance(point.work, NetworkWork)
    source = point.work.network
    if source.generate is not None:
        network: Network = registry("generators")[source.generate.kind].item(**source.generate.parameters)
    else:
        network = _read(point)
    if source.activation is not None:
        network = network.with_(activation=source.activation)
    if source.prune is not None:
        from traces.work.prune import prune_magnitude

        given: dict[str, Any] = {key: value for key, value in source.prune.items() if value is not None}
        network = prune_magnitude(network, **given)
    return network


def _read(point: Point) -> Network:
    from traces.readers import load

    assert isinstance(point.work, NetworkWork)
    source, paths = point.work.network, point.paths["network"]
    check_unchanged(source.files or (), paths)
    orientation: dict[str, Any] = {} if source.orientation is None else {"orientation": source.orientation}
    network = load(paths if source.one_per_layer else paths[0], kind="network", **orientation)
    assert isinstance(network, Network)
    return network


def describe(network: Network) -> dict[str, Any]:
    """Return the sizes of a network."""
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


def order_edges(point: Point, before: Before, progress: Progress | None) -> Arrays:
    """Return edges int64[W] in the order of work; meta: the curve of (search steps, objective), its seconds."""
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
        objective=chosen.search.objective,
        time_limit_s=chosen.search.time_limit_s,
        seed=point.measure.seed,
        progress=progress,
        **_with_files(point, chosen.ordering.parameters),
    )
    return _as_arrays(ordering)


def wants_machine(point: Point) -> bool:
    """Return whether the search lowers what the point's machine costs."""
    from reorder.edges.search.objectives import MACHINE_OBJECTIVES

    objective = None if point.order is None else point.order.search.objective
    return isinstance(objective, str) and objective in MACHINE_OBJECTIVES


def _order_on_machine(point: Point, network: Network, progress: Progress | None) -> Ordering:
    from edgewatt.evaluation.machine_cost import MachineCost, order_on_machine
    from edgewatt.runs.machine import build_machine

    chosen = _order(point)
    assert point.layout is not None
    timing = "system" if chosen.search.objective == "time" else point.measure.timing
    judge = MachineCost(
        network, build_machine(point), point.layout.in_memory, chosen.search.objective, timing, point.measure.seed
    )
    return order_on_machine(
        judge, chosen.ordering.kind, time_limit_s=chosen.search.time_limit_s, seed=point.measure.seed,
        progress=progress, **_with_files(point, chosen.ordering.parameters),
    )  # fmt: skip


def _as_arrays(ordering: Ordering) -> Arrays:
    step = max(1, -(-len(ordering.curve) // _CURVE_POINTS))
    curve = [*ordering.curve[:-1:step], *ordering.curve[-1:]]
    meta = {
        "curve": [[int(work), float(objective)] for work, _, objective in curve],
        "curve_seconds": [float(seconds) for _, seconds, _ in curve],
        "truncated": ordering.truncated,
    }
    return {"edges": ordering.edges, "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8)}


def _with_files(point: Point, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the paths of files in place of their identities; the files must be as they were."""
    with_paths = dict(parameters)
    named = [
        key for key, value in parameters.items() if isinstance(value, Mapping) and set(value) == {"name", "sha256"}
    ]
    for key, path in zip(named, point.paths.get("ordering", ()), strict=True):
        check_unchanged((FileIdentity(**parameters[key]),), [path])
        with_paths[key] = path
    return with_paths


def describe_order(arrays: Arrays) -> dict[str, Any]:
    """Return a search's curve of (search steps, objective), and whether a time limit ended it."""
    meta = json.loads(arrays["meta"].tobytes())
    return {
        "ordering": {"curve": meta["curve"], "truncated": meta["truncated"]},
        "tuple_order": {},  # says nothing, but records have it
    }


def check_order(arrays: Arrays, before: Before) -> None:
    """Raise InputError unless the edges of a stage file are an order of the network's connections."""
    from traces.work.checks import check_order as check

    edges = arrays.get("edges", np.zeros(0))
    if edges.dtype != np.int64 or edges.ndim != 1:
        raise InputError(f"edges are {edges.dtype} of {edges.ndim} dimensions, an order is int64 of one")
    check(before["network"], edges)


def check_found_order(arrays: Arrays, before: Before) -> None:
    """Raise InputError unless the arrays are what `order_edges` returns."""
    check_order(arrays, before)
    try:
        meta = json.loads(arrays["meta"].tobytes())
        seconds, curve, truncated = meta["curve_seconds"], meta["curve"], meta["truncated"]
        sound = type(truncated) is bool and [len(row) for row in curve] == [2] * len(seconds)
    except (KeyError, ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise InputError("meta is no description of a search")


def curve_seconds(arrays: Arrays) -> list[float]:
    """Return the seconds of a search's curve, on whatever machine made the ordering."""
    seconds: list[float] = json.loads(arrays["meta"].tobytes())["curve_seconds"]
    return seconds


def order_hash(arrays: Arrays) -> str:
    """Return the hash of an order of work: what later steps see of the steps that made it."""
    return hashlib.sha256(np.ascontiguousarray(arrays["edges"]).tobytes()).hexdigest()[:24]


def has_tuple_order(point: Point) -> bool:
    """Return whether the tuples inside runs are put in an order of their own."""
    return point.order is not None and point.order.stride.kind != AS_GIVEN


def order_tuples(point: Point, before: Before, progress: Progress | None) -> Arrays:
    """Return edges int64[W] with the tuples inside runs reordered."""
    from hwmodel.coding.chain import chain_facts
    from reorder.joint.inside_runs import order_run_tuples
    from reorder.joint.io_neutral import order_jointly

    assert point.layout is not None
    parameters: dict[str, Any] = dict(_order(point).stride.parameters)
    block: Any = point.machine.bus.block_bytes
    inverts = chain_facts(point.machine.encoder).inverts
    network, edges, stride = before["network"], before["ordering"]["edges"], parameters.pop("stride")
    asked: dict[str, Any] = dict(
        method=_order(point).stride.kind, value_format=point.layout.format, block_bytes=block, seed=point.measure.seed,
        **parameters,
    )  # fmt: skip
    if stride != IO_NEUTRAL:
        return {"edges": order_run_tuples(network, edges, stride=stride, inverts=inverts, **asked)}
    memory = _order(point).fast_memory
    asked.pop("stride_restart")  # windows are where they are
    joint = order_jointly(
        network, edges, memory=memory.size, policy=memory.policy, pinning=memory.pinning,
        encoder="base-xor+dbi-dc" if inverts else "base-xor", **asked,
    )  # fmt: skip
    return {"edges": joint.edges}


def memory_if_io_neutral(point: Point) -> tuple[str, ...]:
    """Return what a tuple order depends on besides where no I/O may be added: the fast memory."""
    given = has_tuple_order(point) and _order(point).stride.parameters.get("stride") == IO_NEUTRAL
    return ("fast_memory.size", "fast_memory.policy", "fast_memory.pinning") if given else ()


def make_trace(point: Point, before: Before, progress: Progress | None) -> Trace:
    """Return the memory trace of a point: a forward pass of its input vectors, or the recorded trace."""
    if isinstance(point.work, TraceWork):
        from traces.trace_files import open_trace

        trace = point.work.trace
        check_unchanged(trace.files, point.paths["trace"])
        return open_trace(point.paths["trace"][0], trace.format, access_bytes=trace.access_bytes)
    from traces.access.build import build_trace
    from traces.layouts.layout import BEST, choose_kind

    assert point.layout is not None
    edges, layout = before["tuple_order"]["edges"], point.layout.in_memory
    if layout.kind != BEST:
        try:
            choose_kind(before["network"], edges, layout)
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


def measure_accuracy(point: Point, before: Before, progress: Progress | None) -> dict[str, Any]:
    """Return the accuracy of the network in the point's format, as its order and layout execute it."""
    from traces.access.accuracy import accuracy_of

    assert point.layout is not None
    network = before["network"]
    vectors, labels, origin = _labelled(point, network)
    accuracy = accuracy_of(network, before["tuple_order"]["edges"], point.layout.in_memory, vectors, labels)
    return {"accuracy": {**asdict(accuracy), "inputs": origin}}


def _labelled(point: Point, network: Network) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Return input vectors, their labels if the network's file has some, and where they come from."""
    from traces.readers.native import read_extras

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
