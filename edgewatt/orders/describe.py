"""One order of a network: what it costs under every policy, beside two-optimal and the bounds, and its file."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewatt.results.record import Record
from hwmodel.fastmemory.iomodel import compact_growth_memory, count_io, gap, io_bounds
from reorder.base import Ordering, Task
from reorder.edges.bounds.bounds import LARGEST_WORK, NetworkBound, expansion_work, lower_bound, theorem_1
from reorder.edges.methods.tiles import Tile
from reorder.edges.search.objectives import report
from reorder.edges.search.small import least_total
from reorder.order import order
from traces.networks.network import Network

WORK_PER_S = 1 << 29  # of slow bounds, roughly: 2^33 take 14 s of one core
LEAST_BOUND_S = 2.0


def blockings_of(records: Sequence[Record]) -> list[str]:
    tiles = (record.results.get("ordering", {}).get("tile") for record in records)
    return list(dict.fromkeys(Tile(**tile).words for tile in tiles if tile))


def bound_within(network: Network, memory: int, time_limit_s: float | None) -> tuple[NetworkBound, str]:
    if time_limit_s is None:
        return lower_bound(network, memory), ""
    work = min(LARGEST_WORK, int(max(time_limit_s, LEAST_BOUND_S) * WORK_PER_S))
    left_out = work < expansion_work(network) <= LARGEST_WORK
    note = "the time limit left out slow lower bounds: a longer one may prove more" if left_out else ""
    return lower_bound(network, memory, work), note


def bound_of_policy(network: Network, ordering: Ordering, task: Task, bound: NetworkBound) -> NetworkBound:
    """Return the better of a bound and of what a search proves for all orders of a small network under one policy."""
    counts = count_io(network, ordering, memory=task.memory, policy=task.policy, pinning=task.pinning)
    least = least_total(network, task, counts.total)
    return NetworkBound(least, least - theorem_1(network), "search") if least > bound.total else bound


def describe_order(
    network: Network,
    ordering: Ordering,
    memory: int,
    policy: str,
    pinning: str,
    objective: Any,
    bound: NetworkBound | None = None,
) -> dict[str, Any]:
    """Return counts of an order and of two-optimal under every policy, bounds and gaps, as plain values."""
    task = Task(memory, policy, pinning, objective)
    plain = order(network, "two-optimal", memory=memory, policy=policy, pinning=pinning)
    theorem, best = io_bounds(network), bound or lower_bound(network, memory)
    columns = {}
    for name, one in (("two-optimal", plain), (ordering.method, ordering)):
        counts = count_io(network, one, memory=memory, policy=policy, pinning=pinning)
        columns[name] = {
            "reads": counts.reads,
            "writes": counts.writes,
            "total": counts.total,
            **report(network, one, task),
            "least_memory_without_extra": compact_growth_memory(network, one),
        }
    start, total = columns["two-optimal"]["total"], columns[ordering.method]["total"]
    return {
        "network": network.name,
        "connections": network.n_connections,
        "neurons": int(network.touched.sum()),
        "isolated_neurons": int((~network.touched).sum()),
        "memory": memory,
        "policy": policy,
        "pinning": pinning,
        "method": ordering.method,
        "parameters": {
            key: value if isinstance(value, bool | int | float | str | None) else str(value)
            for key, value in ordering.parameters.items()
        },
        "seed": ordering.seed,
        "truncated": ordering.truncated,
        "lower_bound": theorem.lower_total,
        "upper_bound": theorem.upper_total,
        "best_lower_bound": best.total,
        "best_lower_bound_argument": best.argument,
        "gap": gap(total, start, theorem.lower_total),
        "gap_to_best_bound": gap(total, start, best.total),
        "proved_optimal": total == best.total,
        "orders": columns,
        "curve": [[int(work), float(seconds), float(value)] for work, seconds, value in ordering.curve],
    }


def order_file(ordering: Ordering, result: dict[str, Any]) -> bytes:
    """Return an npz with `edges` (int64[W]) and, as text, what it was made with."""
    kept = ("network", "memory", "policy", "pinning", "method", "parameters", "seed", "truncated")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, edges=ordering.edges, made_with=json.dumps({key: result[key] for key in kept}))
    return buffer.getvalue()


def sizes_of(network: Network) -> str:
    count = 0 if network.layer is None else len(np.unique(network.layer))
    layers = f", {count} layer{'s' if count > 1 else ''}" if count else ""
    stored = "" if network.weight_ids is None else f" of {int(network.weight_ids.max()) + 1:,} stored weights"
    plural = "s" * (network.n_connections != 1)
    return f"{network.n_connections:,} connection{plural}{stored}, {network.n_neurons:,} neurons{layers}"
