"""`edgewatt schedule`: where operator graphs come from, how orders compare, and all that it finds and writes."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import origins_of
from edgewatt.operators.arena import buffers_of, in_banks, of_schedule, read_banks, write_page
from edgewatt.operators.energy import operator_energy, schedule
from edgewatt.operators.words import bank_summary, describe_banks, describe_written
from reorder.operators.arena.base import PlacementTask
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.traffic import offchip_traffic
from traces.base.checks import is_whole
from traces.base.errors import InputError, did_you_mean
from traces.base.progress import Progress, left_of
from traces.operators.opgraph import OpGraph
from traces.readers.reader import Shapes

_RANDWIRE = re.compile(r"randwire-(?P<kind>[a-z]+)(?P<n>\d{1,6})(?:x(?P<stages>\d{1,3}))?(?:-seed(?P<seed>\d{1,18}))?")


def load_graph(model: str, batch: int | None = None, shapes: Shapes | None = None) -> OpGraph:
    """Return the operator graph of a file, or a generated one: a genotype's name, or randwire-ws64[x3][-seed1]."""
    from traces.generators.operators import GENOTYPES, cell, randwire
    from traces.readers import load

    if not Path(model).exists():
        if (batch is not None or shapes) and not Path(model).suffix:
            raise InputError(f"{model}: a generated graph has its shapes: batch and shapes are for .onnx models")
        if model in GENOTYPES:
            return cell(model)
        if match := _RANDWIRE.fullmatch(model):
            stages = int(match["stages"] or 1)
            return randwire(match["kind"], int(match["n"]), stages=stages, seed=int(match["seed"] or 0))
        if not Path(model).suffix and (hint := did_you_mean(model, GENOTYPES)):
            raise InputError(f"{model}: no such file, and no generated graph of that name{hint}")
    graph = load(model, kind="opgraph", batch=batch, shapes=shapes)
    if not isinstance(graph, OpGraph):
        raise InputError(f"{model}: holds a network, not an operator graph")
    return graph


def _figures(
    name: str, problem: OperatorProblem, order: Any, height: int, sizes: Sequence[int], blocks: int, until: float | None
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "order": name, "operators": problem.graph.n_nodes, "peak_bytes": int(problem.costs.peak(order)),
        "arena_bytes": height, "traffic_bytes": {},
    }  # fmt: skip
    try:
        for size in (size for size in sizes if size >= blocks):
            counted = offchip_traffic(problem, order, onchip_bytes=size, block_bytes=blocks, deadline=until)
            row["traffic_bytes"][str(size)] = counted.total_bytes
    except InputError as error:
        row["traffic_left_out"] = str(error)
    return row


ONCHIP_BYTES = (32 * 1024, 64 * 1024, 128 * 1024, 256 * 1024)
"""Sizes of on-chip memory at which orders are compared."""


@dataclass(frozen=True)
class ScheduleRequest:
    """The options of `edgewatt schedule`, as its help says; None where one was not given."""

    model: str
    search: Mapping[str, Any]
    batch: int | None = None
    shapes: Shapes | None = None
    alignment: str = "64"
    rewrite: Sequence[str] = ()
    banks: str | None = None
    part: str | None = None
    encoder: str | None = None
    output: str | None = None
    page: str | None = None


@dataclass(eq=False)
class FoundSchedule:
    """rows: of the orders compared. summary: all as plain data. words: what was written back, placed, computed again.

    unpriced: why the joules that were asked for are not there, to be said once all else is out.
    """

    result: Any
    rows: list[dict[str, Any]]
    sizes: tuple[int, ...]
    read_s: float
    search_s: float
    summary: dict[str, Any]
    words: list[str] = field(default_factory=list)
    unpriced: InputError | None = None


def find_schedule(request: ScheduleRequest, progress: Progress | None = None) -> FoundSchedule:
    r, s = request, request.search
    if r.alignment != "graph" and not is_whole(r.alignment):
        raise InputError(f"--alignment {r.alignment}: a number of bytes, or 'graph'")
    if r.part is None and r.encoder is not None:
        raise InputError("--encoder belongs to --part: without a DRAM part no wires are counted")
    encoder = r.encoder or "raw"
    left = left_of(s["time_limit_s"])
    started = time.perf_counter()
    graph = load_graph(r.model, r.batch, r.shapes)
    read_s = time.perf_counter() - started
    started = time.perf_counter()
    patterns, limit = list(r.rewrite), left()
    words = list(graph.notes)
    alignment = r.alignment if r.alignment == "graph" else int(r.alignment)
    result = schedule(graph, rewrite=patterns, alignment=alignment, progress=progress, **{**s, "time_limit_s": left()})
    search_s = time.perf_counter() - started
    onchip, blocks = s["onchip_bytes"], s["block_bytes"]
    sizes = tuple(dict.fromkeys((*ONCHIP_BYTES, *([onchip] if onchip else []))))
    until = None if limit is None else time.monotonic() + limit
    before, after = OperatorProblem(graph), OperatorProblem(result.graph)
    given = {"file": before.file_order(), "kahn-fifo": before.kahn()}
    packed, task = {"allocator": s["allocator"], "alignment": result.alignment}, PlacementTask(None, until)
    orders = [(name, before, order, arena(before, order, **packed, task=task).height) for name, order in given.items()]
    orders.append(("scheduled", after, after.check_order(result.order), result.arena_bytes))
    rows = [_figures(*each, sizes, blocks, until) for each in orders]
    unpriced = None
    if r.part is not None:
        try:
            held = {"onchip_bytes": onchip or ONCHIP_BYTES[1], "block_bytes": blocks, "seed": s["seed"]}
            spent = [
                operator_energy(problem.graph, order, part=r.part, encoder=encoder, deadline=until, **held)
                for _, problem, order, _ in orders
            ]
            for row, energy in zip(rows, spent, strict=True):
                row |= {"energy": energy, "energy_onchip_bytes": held["onchip_bytes"]}
            if (data := rows[0]["energy"]["data"]) != "known":
                words.append(f"data unknown ({data}): energy is without ones and toggles of the data wires")
        except InputError as error:
            unpriced = error
    summary = {
        "model": r.model,
        "graph": result.graph.name,
        "operators": result.graph.n_nodes,
        "objective": s["objective"],
        "method": s["method"],
        "rewrite": list(r.rewrite),
        "allocator": s["allocator"],
        "block_bytes": blocks,
        "peak_bytes": result.peak_bytes,
        "lower_bound_bytes": result.lower_bound_bytes,
        "arena_bytes": result.arena_bytes,
        "arena_lower_bound_bytes": result.arena_lower_bound_bytes,
        "alignment": result.alignment,
        "traffic_bytes": result.traffic_bytes,
        "proved": result.proved,
        "truncated": result.truncated,
        "states": result.states,
        "read_seconds": read_s,
        "search_seconds": search_s,
        "orders": rows,
        "order": result.names,
        "buffers": buffers_of(result),
        "details": dict(result.details),
        **origins_of({"schedulers": [s["method"]], "allocators": [s["allocator"]], "encoders": encoder.split("+")}),
    }
    scheduled = FoundSchedule(result, rows, sizes, read_s, search_s, summary, words, unpriced)
    _write(scheduled, request, graph, patterns, until)
    return scheduled


def _write(scheduled: FoundSchedule, r: ScheduleRequest, graph: Any, patterns: list[str], until: float | None) -> None:
    result, back, placed = scheduled.result, None, None
    if r.output is not None:
        from edgewatt.operators.write_back import write_back

        back = write_back(r.model, graph, result, r.output, rewrite=patterns)
        scheduled.summary["written_back"] = asdict(back)
    if r.banks is not None:
        placed = in_banks(result, read_banks(r.banks), result.alignment, until)
        scheduled.summary["placement_in_banks"] = bank_summary(placed)
    if r.page is not None:
        write_page(of_schedule(result, placed), r.page)
    scheduled.words += [*describe_written(back, result), *([] if placed is None else describe_banks(placed))]
