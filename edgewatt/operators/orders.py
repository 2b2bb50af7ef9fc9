"""Operator graphs in the application: where they come from, and how orders compare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reorder.operators.arena.base import PlacementTask
from reorder.operators.schedule import constructive
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import Schedule
from reorder.operators.schedule.traffic import offchip_traffic
from traces.base.errors import InputError, did_you_mean
from traces.operators.opgraph import OpGraph

_RANDWIRE = re.compile(r"randwire-(?P<kind>[a-z]+)(?P<n>\d{1,6})(?:x(?P<stages>\d{1,3}))?(?:-seed(?P<seed>\d{1,18}))?")


def load_graph(model: str, batch: int | None = None) -> OpGraph:
    """Return the operator graph of a file, or a generated one: a genotype's name, or randwire-ws64[x3][-seed1].

    batch: value of an ONNX model's open first dimension. Raises InputError where it is neither.
    """
    from traces.generators.operators import GENOTYPES, cell, randwire
    from traces.readers import load

    if not Path(model).exists():
        if batch is not None and not Path(model).suffix:
            raise InputError(f"{model}: a generated graph has its shapes: batch is for .onnx models")
        if model in GENOTYPES:
            return cell(model)
        if match := _RANDWIRE.fullmatch(model):
            stages = int(match["stages"] or 1)
            return randwire(match["kind"], int(match["n"]), stages=stages, seed=int(match["seed"] or 0))
        if not Path(model).suffix and (hint := did_you_mean(model, GENOTYPES)):
            raise InputError(f"{model}: no such file, and no generated graph of that name{hint}")
    graph = load(model, kind="opgraph", batch=batch)
    if not isinstance(graph, OpGraph):
        raise InputError(f"{model}: holds a network, not an operator graph")
    return graph


def compare_orders(
    graph: OpGraph,
    result: Schedule,
    onchip_bytes: tuple[int, ...],
    *,
    block_bytes: int = 256,
    allocator: str = "exact",
    deadline: float | None = None,
) -> list[dict[str, Any]]:
    """Return peak, arena and traffic (per on-chip size) of the file's order, Kahn's and the schedule.

    graph: as it was before rewriting. deadline: value of time.monotonic(). Traffic that cannot be counted, for its time
    or memory, is left out of `traffic_bytes`, and `traffic_left_out` says why.
    """
    before, after = OperatorProblem(graph), OperatorProblem(result.graph)
    orders = (
        ("file", before, constructive.file_order(before)),
        ("kahn-fifo", before, constructive.kahn(before)),
        ("scheduled", after, after.check_order(result.order)),
    )
    sizes = [size for size in onchip_bytes if size >= block_bytes]
    rows: list[dict[str, Any]] = []
    for name, problem, order in orders:
        if problem is after:
            height = result.arena_bytes
        else:
            height = arena(
                problem, order, allocator, alignment=result.alignment, task=PlacementTask(None, deadline)
            ).n_bytes
        row: dict[str, Any] = {
            "order": name,
            "operators": problem.graph.n_nodes,
            "peak_bytes": int(problem.costs.peak(order)),
            "arena_bytes": height,
            "traffic_bytes": {},
        }
        try:
            for size in sizes:
                counted = offchip_traffic(problem, order, onchip_bytes=size, block_bytes=block_bytes, deadline=deadline)
                row["traffic_bytes"][str(size)] = counted.total_bytes
        except InputError as error:
            row["traffic_left_out"] = str(error)
        rows.append(row)
    return rows


def add_energy(
    rows: list[dict[str, Any]],
    graph: OpGraph,
    result: Schedule,
    onchip_bytes: int,
    block_bytes: int,
    part: str,
    encoder: str,
    seed: int,
    deadline: float | None = None,
) -> None:
    """Add to each row of `compare_orders` the energy of its off-chip transfers, weights included, as `energy`.

    deadline: value of time.monotonic(). Raises InputError where they cannot be counted, for their time or memory.
    """
    from edgewatt.operators.traffic import operator_energy

    orders: tuple[tuple[OpGraph, Any], ...] = (
        (graph, constructive.file_order(OperatorProblem(graph))),
        (graph, constructive.kahn(OperatorProblem(graph))),
        (result.graph, result.order),
    )
    spent = [
        operator_energy(
            which, order, onchip_bytes=onchip_bytes, block_bytes=block_bytes, part=part, encoder=encoder, seed=seed,
            deadline=deadline,
        )
        for which, order in orders
    ]  # fmt: skip
    for row, energy in zip(rows, spent, strict=True):
        row |= {"energy": energy, "energy_onchip_bytes": onchip_bytes}
