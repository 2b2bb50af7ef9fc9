"""Schedules for a machine: the order whose off-chip transfers take the least energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.operators.traffic import operator_energy
from reorder.base import Progress
from reorder.operators.schedule import schedule as plain
from reorder.operators.schedule.arena import ALIGNMENT
from reorder.operators.schedule.constructive import simple_orders
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import Schedule
from traces.base.errors import InputError
from traces.work.opgraph import OpGraph

SEEDS = 3  # searches for little traffic, from different seeds


@dataclass(frozen=True)
class OperatorMachine:
    """onchip_bytes: memory that software manages. part: the DRAM behind it. encoder: of its data wires."""

    onchip_bytes: int
    part: Any = "lpddr4-3200"
    encoder: str = "raw"


def machine_of(system: str) -> OperatorMachine:
    """Return what a named system (or its YAML file) has: its scratchpad or largest cache, its DRAM and its encoder."""
    from edgewatt.config.loading import as_document, resolve

    data = resolve(as_document({"system": system})).data
    caches = data.get("caches") or []
    sizes = [int(level["size_bytes"]) for level in caches] + [int((data.get("scratchpad") or {}).get("size_bytes", 0))]
    part = (data.get("dram") or {}).get("part")
    if not max(sizes) or part is None:
        raise InputError(f"system {system!r} has no memory on the chip or no DRAM: energy needs both")
    return OperatorMachine(max(sizes), part, data.get("encoder") or "raw")


def schedule(
    graph: OpGraph,
    *,
    objective: str = "peak",
    method: str = "best-first",
    rewrite: Sequence[str] | str = (),
    onchip_bytes: int | None = None,
    block_bytes: int = 256,
    allocator: str = "exact",
    alignment: int | str = ALIGNMENT,
    budget_bytes: int | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    evaluations: int = 5_000,
    progress: Progress | None = None,
    machine: OperatorMachine | str | None = None,
    **parameters: Any,
) -> Schedule:
    """Order the operators of a graph: reorder.operators.schedule.schedule.schedule, and the objective 'energy' besides.

    objective 'energy' compares the order of least peak, the file's, Kahn's, a greedy one and the results of searches
    for little traffic. It returns the one whose off-chip transfers take the least energy on `machine` (a system's name,
    its file or an OperatorMachine): the best of these, not proved. `details["energy"]` is that order's, as
    edgewatt.operators.traffic.operator_energy returns it; `details["candidates_pj"]` has all orders that were tried.
    All other arguments, and what is raised, are those of reorder.operators.schedule.schedule.schedule.
    """
    options: dict[str, Any] = {
        "method": method, "rewrite": rewrite, "block_bytes": block_bytes, "allocator": allocator,
        "alignment": alignment, "budget_bytes": budget_bytes, "time_limit_s": time_limit_s,
        "evaluations": evaluations, "progress": progress, **parameters,
    }  # fmt: skip
    if objective != "energy":
        if machine is not None:
            raise InputError("machine belongs to objective='energy'")
        return plain.schedule(graph, objective=objective, onchip_bytes=onchip_bytes, seed=seed, **options)
    if machine is None:
        raise InputError("objective='energy' needs a machine: the name of a system, or its file")
    on = machine_of(machine) if isinstance(machine, str) else machine
    options["onchip_bytes"] = on.onchip_bytes
    least = plain.schedule(graph, objective="peak", seed=seed, **options)
    results = [least]
    if least.traffic_bytes:
        results += [plain.schedule(graph, objective="traffic", seed=seed + k, **options) for k in range(SEEDS)]
    orders: dict[bytes, npt.NDArray[np.int64]] = {r.order.tobytes(): r.order for r in results}
    problem = OperatorProblem(least.graph)
    for order in simple_orders(problem):
        if budget_bytes is None or int(problem.costs.peak(order)) <= budget_bytes:
            orders.setdefault(order.astype(np.int64).tobytes(), order.astype(np.int64))
    energy = {
        key: operator_energy(
            least.graph, order, onchip_bytes=on.onchip_bytes, part=on.part, encoder=on.encoder, block_bytes=block_bytes,
            seed=seed,
        )
        for key, order in orders.items()
    }  # fmt: skip
    best = min(energy, key=lambda key: (energy[key]["total_pj"], key != least.order.tobytes()))
    chosen = next((r for r in results if r.order.tobytes() == best), None)
    if chosen is None:
        given = least.graph.in_order(orders[best].tolist())
        left = {"method", "rewrite", "time_limit_s", *parameters}
        again = plain.schedule(given, method="file", **{k: v for k, v in options.items() if k not in left})
        at = {name: k for k, name in enumerate(given.buffers)}
        chosen = replace(
            again, graph=least.graph, order=orders[best], lower_bound_bytes=least.lower_bound_bytes,
            offsets=again.offsets[[at[name] for name in least.graph.buffers]],
        )  # fmt: skip
    details = {
        **least.details, "energy": energy[best], "candidates_pj": sorted(e["total_pj"] for e in energy.values()),
    }  # fmt: skip
    return replace(chosen, objective="energy", method=least.method, states=least.states, proved=False, details=details)
