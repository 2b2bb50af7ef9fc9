"""From a point's configuration to its work: the network, the order of its connections, and the memory trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.point.memo import Stages
from edgewatt.results.record import content_hash
from traces.access.trace import Trace
from traces.base.errors import InputError
from traces.work.network import Int64Array, Network

Progress = Callable[[int, int | None, str], None]

_CURVE_POINTS = 200  # of a search's best-so-far curve kept in a record
_BOUND_WORK = 1 << 30  # operations that a bound beyond Theorem 1 may take: about a second


@dataclass(frozen=True, eq=False)
class Work:
    """The order of work of one point.

    edges: int64[W] after tuple ordering. curve: (work units, objective). curve_seconds: seconds of the same points, on
    whatever machine made the ordering. truncated: a wall-clock limit ended the search.
    """

    network: Network
    edges: Int64Array
    curve: list[list[float]]
    curve_seconds: list[float]
    truncated: bool
    tuple_order: dict[str, Any]

    @property
    def edges_hash(self) -> str:
        """Hash of the order, for stages that depend on the order alone."""
        return hashlib.sha256(np.ascontiguousarray(self.edges).tobytes()).hexdigest()[:24]


def ordering_identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an edge ordering depends on."""
    memory = {key: config["fast_memory"][key] for key in ("size", "policy", "pinning")}
    keys = ("network", "ordering", "search", "seed")
    return {**{key: config[key] for key in keys}, "memory": memory}


def tuple_order_identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the order of tuples inside runs depends on."""
    keys = ("stride", "format", "layout", "encoder", "bus")
    return {**ordering_identity(config), **{key: config[key] for key in keys}}


def load_network(config: Mapping[str, Any], paths: Mapping[str, list[str]]) -> Network:
    """Read or generate the network of a configuration and prune it. Raises InputError naming file or parameter."""
    section = config["network"]
    generated = section["generate"]
    network = _generate(generated) if generated is not None else _read(section, paths["network"])
    if section["activation"] is not None:
        network = network.with_(activation=section["activation"])
    if section["prune"] is not None:
        from traces.work.prune import prune_magnitude

        given = {key: value for key, value in section["prune"].items() if value is not None}
        network = prune_magnitude(network, **given)
    return network


def _generate(section: Mapping[str, Any]) -> Network:
    from edgewatt.config.generators import GENERATORS

    entry = GENERATORS[section["kind"]]
    network: Network = entry.item(**{key: value for key, value in section.items() if key != "kind"})
    return network


def _read(section: Mapping[str, Any], paths: list[str]) -> Network:
    from traces.readers import load

    _check_unchanged(section["files"], paths)
    orientation = {} if section["orientation"] is None else {"orientation": section["orientation"]}
    network = load(paths if section["one_per_layer"] else paths[0], kind="network", **orientation)
    assert isinstance(network, Network)
    return network


def _check_unchanged(files: list[dict[str, str]], paths: list[str]) -> None:
    from edgewatt.config.points import file_identity

    for path, wanted in zip(paths, files, strict=True):
        if not Path(path).exists():
            raise InputError(f"{path}: no such file")
        if file_identity(path)["sha256"] != wanted["sha256"]:
            raise InputError(f"{path}: the file has changed since this configuration was read")


def make_work(
    config: Mapping[str, Any], paths: Mapping[str, list[str]], stages: Stages, progress: Progress | None = None
) -> Work:
    """Return network and order of a point; ordering and tuple order are stages."""
    network = stages.value("network", config["network"], lambda: load_network(config, paths))
    found = stages.arrays("ordering", ordering_identity(config), lambda: _order(network, config, progress))
    meta = json.loads(found["meta"].tobytes())
    edges, tuple_order = found["edges"], {}
    if config["stride"]["kind"] != "none":
        tuples = stages.arrays(
            "tuple_order", tuple_order_identity(config), lambda: _order_tuples(network, edges, config)
        )
        edges, tuple_order = tuples["edges"], json.loads(tuples["meta"].tobytes())
    return Work(
        network,
        edges,
        meta["curve"],
        meta["curve_seconds"],
        meta["truncated"],
        tuple_order,
    )


def _order(network: Network, config: Mapping[str, Any], progress: Progress | None) -> dict[str, np.ndarray]:
    from reorder.order import order

    parameters = dict(config["ordering"])
    found = order(
        network,
        parameters.pop("kind"),
        memory=config["fast_memory"]["size"],
        policy=config["fast_memory"]["policy"],
        pinning=config["fast_memory"]["pinning"],
        objective=config["search"]["objective"],
        time_limit_s=config["search"]["time_limit_s"],
        seed=config["seed"],
        progress=progress,
        **parameters,
    )
    step = max(1, -(-len(found.curve) // _CURVE_POINTS))
    curve = [*found.curve[:-1:step], *found.curve[-1:]]
    return {
        "edges": found.edges,
        "meta": _pack(
            {
                "curve": [[int(work), float(objective)] for work, _, objective in curve],
                "curve_seconds": [float(seconds) for _, seconds, _ in curve],
                "truncated": found.truncated,
            }
        ),
    }


def _order_tuples(network: Network, edges: Int64Array, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    from reorder.cdr import order_run_tuples

    parameters = dict(config["stride"])
    method, stride = parameters.pop("kind"), parameters.pop("stride")
    reordered = order_run_tuples(
        network,
        edges,
        stride=stride,
        method=method,
        value_format=config["format"],
        encoder=config["encoder"],
        block_bytes=config["bus"]["block_bytes"],
        seed=config["seed"],
        **parameters,
    )
    return {"edges": reordered, "meta": _pack({})}


def _pack(values: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(values).encode(), np.uint8)


def make_trace(config: Mapping[str, Any], work: Work) -> Trace:
    """Return the memory trace of a point: an actual forward pass of one sample in the point's format and layout."""
    from traces.access.build import build_trace
    from traces.layouts.layout import Layout

    layout = Layout(value_format=config["format"], **config["layout"])
    return build_trace(work.network, work.edges, layout=layout, sample=config["sample"], seed=config["seed"])


def open_recorded(config: Mapping[str, Any], paths: Mapping[str, list[str]]) -> Trace:
    """Open the recorded trace of a point."""
    from traces.trace_readers.external import open_trace

    section = config["trace"]
    _check_unchanged(section["files"], paths["trace"])
    return open_trace(paths["trace"][0], section["format"], access_bytes=section["access_bytes"])


def count_work(config: Mapping[str, Any], work: Work, stages: Stages) -> dict[str, Any]:
    """Return the I/O model's results: counts, bounds, gaps to them, and the I/Os at other memory sizes."""
    from hwmodel.fastmemory.iomodel import gap

    identity = {"network": config["network"], "memory": config["fast_memory"]}
    stage = {**identity, "edges": work.edges_hash}
    found = stages.arrays("io", stage, lambda: {"meta": _pack(_count(config, work.network, work.edges))})
    results: dict[str, Any] = json.loads(found["meta"].tobytes())
    base = stages.arrays("io_two_optimal", identity, lambda: {"total": np.array(_two_optimal(config, work.network))})
    size = {"network": config["network"], "memory": config["fast_memory"]["size"]}
    bound = stages.arrays("best_bound", size, lambda: {"meta": _pack(_best_bound(config, work.network))})
    total, two_optimal = results["io"]["total"], int(base["total"])
    results["best_bound"] = json.loads(bound["meta"].tobytes())
    results["gap"] = gap(total, two_optimal, results["bounds"]["lower_total"])
    results["gap_to_best_bound"] = gap(total, two_optimal, results["best_bound"]["total"])
    return results


def _best_bound(config: Mapping[str, Any], network: Network) -> dict[str, Any]:
    from reorder.limits.bounds import lower_bound

    found = lower_bound(network, config["fast_memory"]["size"], _BOUND_WORK)
    return {"total": found.total, "argument": found.argument}


def _two_optimal(config: Mapping[str, Any], network: Network) -> int:
    from hwmodel.fastmemory.iomodel import count_io
    from reorder.order import order

    memory = {"memory": config["fast_memory"]["size"], "policy": config["fast_memory"]["policy"]}
    memory["pinning"] = config["fast_memory"]["pinning"]
    return count_io(network, order(network, "two-optimal", **memory), **memory).total


def _count(config: Mapping[str, Any], network: Network, edges: Int64Array) -> dict[str, Any]:
    from hwmodel.fastmemory.iomodel import io_bounds, io_curve

    memory = config["fast_memory"]
    sizes = sorted({memory["size"], *memory["curve"]})
    counted = {counts.memory: counts for counts in io_curve(network, edges, sizes, memory["policy"], memory["pinning"])}
    io = counted[memory["size"]]
    return {
        "io": {**asdict(io), "reads": io.reads, "writes": io.writes, "total": io.total},
        "bounds": asdict(io_bounds(network)),
        "io_curve": [[size, counted[size].reads, counted[size].writes] for size in sizes] if memory["curve"] else [],
    }


def describe(network: Network) -> dict[str, int]:
    """Return the sizes of a network."""
    return {
        "neurons": network.n_neurons,
        "connections": network.n_connections,
        "inputs": len(network.inputs),
        "outputs": len(network.outputs),
        "isolated": int((~network.touched).sum()),
        "depth": int(network.depth.max()),
    }


def work_hash(config: Mapping[str, Any], work: Work) -> str:
    """Return the identity of a point's trace: network, order, format, layout and input sample."""
    keys = ("network", "seed", "format", "layout", "sample")
    return content_hash([{key: config[key] for key in keys}, work.edges_hash])
