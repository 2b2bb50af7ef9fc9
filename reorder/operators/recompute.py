"""Recomputation: a result that waits through the peak is dropped and computed again for those that read it later.

A move makes a copy of an operator (and of what it reads, up to some depth) for the later readers of its result. Moves
are tried one after another, each judged by the least peak of the graph with it; the best one is kept as long as the
peak falls (greedy; checkpointing as in Chen et al. 2016, arXiv 1604.06174, for inference).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reorder.operators.schedule.operator_problem import footprint
from reorder.operators.schedule.schedule import Schedule, schedule
from traces.base.errors import InputError
from traces.base.shown import Shown
from traces.operators.opgraph import INPUT, Operator, OpGraph


@dataclass(frozen=True, eq=False)
class Recomputed(Shown):
    """graph: with copies. schedule: of it. copies: names of operators that run again. extra_bytes: what they write."""

    graph: OpGraph
    schedule: Schedule
    copies: tuple[str, ...]
    extra_bytes: int

    __repr__ = Shown.__repr__

    def _facts(self) -> dict[str, object]:
        return {
            "graph": self.graph.name, "peak bytes": self.schedule.peak_bytes, "extra bytes": self.extra_bytes,
            "copies": ", ".join(self.copies) or "none",
        }  # fmt: skip


def recompute(
    graph: OpGraph,
    *,
    moves: int = 4,
    depth: int = 3,
    candidates: int = 64,
    time_limit_s: float | None = None,
) -> Recomputed:
    """Lower the least peak of a graph by running operators again.

    moves: results that are dropped and computed again, at most. depth: operators in a row that a copy may need.
    candidates: graphs that are scheduled for one move. The result computes what the graph does; its peak is the lowest
    that greedy moves find, with no proof. Raises InputError for numbers below what makes sense.
    """
    if moves < 0 or depth < 1 or candidates < 1:
        raise InputError("recompute: moves is at least 0, depth and candidates are at least 1")
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    best, planned = graph, schedule(graph)
    copies: list[str] = []
    for _ in range(moves):
        chosen: tuple[int, int, OpGraph, Schedule, list[str]] | None = None
        for tensor, later in _waiting(best, planned)[:candidates]:
            for reach in range(1, depth + 1):
                if deadline is not None and time.monotonic() > deadline:
                    break
                made = _with_copy(best, tensor, later, reach)
                if made is None:
                    break
                result = schedule(made[0])
                cost = sum(t.n_bytes for node in made[0].nodes if node.name in made[1] for t in node.outputs)
                if result.peak_bytes < planned.peak_bytes and (
                    chosen is None or (result.peak_bytes, cost) < (chosen[0], chosen[1])
                ):
                    chosen = result.peak_bytes, cost, made[0], result, made[1]
        if chosen is None:
            break
        _, _, best, planned, added = chosen
        copies += added
    known = set(copies)
    extra = sum(t.n_bytes for node in best.nodes if node.name in known for t in node.outputs)
    return Recomputed(best, planned, tuple(copies), extra)


def _waiting(graph: OpGraph, planned: Schedule) -> list[tuple[str, list[str]]]:
    """Return (tensor, its readers after the peak) of what is live at the peak without being used, the largest first."""
    order = planned.order.tolist()
    when = {graph.nodes[v].name: step for step, v in enumerate(order)}
    at = int(footprint(graph, planned.order).during_bytes.argmax())
    running = graph.nodes[order[at]]
    used = {*running.inputs, *(t.name for t in running.outputs)}
    readers: dict[str, list[str]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node.name)
    waiting = []
    for name, tensor in graph.tensors.items():
        producer = graph.nodes[graph.producer[name]]
        alone = len(graph.writers[tensor.buffer]) == 1 and len(producer.outputs) == 1
        if name in used or producer.op == INPUT or not alone or tensor.buffer in graph.output_buffers:
            continue
        later = [reader for reader in readers.get(name, []) if when[reader] > at]
        if when[producer.name] < at and later and len(later) < len(readers[name]):
            waiting.append((name, later))
    return sorted(waiting, key=lambda item: -graph.tensors[item[0]].n_bytes)


def _with_copy(graph: OpGraph, tensor: str, later: Sequence[str], depth: int) -> tuple[OpGraph, list[str]] | None:
    """Return the graph whose `later` readers of a tensor read a copy of it, made from copies of `depth` operators in a
    row, and the names of the copies; None where there are no so many."""
    names = set(graph.tensors) | {node.name for node in graph.nodes}

    def fresh(name: str) -> str:
        k = 2
        while f"{name}#{k}" in names:
            k += 1
        names.add(f"{name}#{k}")
        return f"{name}#{k}"

    rows, wanted, renamed = [], tensor, {}
    for _ in range(depth):
        node = graph.nodes[graph.producer[wanted]]
        if node.op == INPUT or len(node.outputs) != 1 or len(graph.writers[node.output.buffer]) != 1:
            return None
        if any(node.output.name in other.attributes.get("after", ()) for other in graph.nodes):
            return None  # what it reads is overwritten later
        rows.append(node)
        renamed[wanted] = fresh(wanted)
        within = [name for name in node.inputs if name not in renamed]
        if not within:
            return None
        wanted = max(within, key=lambda name: graph.tensors[name].n_bytes)
    copies: list[Operator] = []
    for node in reversed(rows):
        new = renamed[node.output.name]
        made = _reading(node, renamed)
        made = replace(made, attributes={"like": node.name, **made.attributes})
        copies.append(replace(made, name=new, outputs=(replace(node.output, name=new, buffer=new),)))
    first = min(i for i, node in enumerate(graph.nodes) if node.name in set(later))
    at = max(first, 1 + max(graph.producer[name] for copy in copies for name in copy.inputs if name in graph.producer))
    changed = [_reading(node, {tensor: renamed[tensor]}) if node.name in set(later) else node for node in graph.nodes]
    if at > first:
        return None
    nodes = (*changed[:first], *copies, *changed[first:])
    return graph.with_(nodes=nodes), [copy.name for copy in copies]


def _reading(node: Operator, names: dict[str, str]) -> Operator:
    """The operator with its operands renamed."""
    attributes = dict(node.attributes)
    for key in ("operands", "gather"):
        if key in attributes:
            attributes[key] = tuple(names.get(name, name) for name in attributes[key])
    return replace(node, inputs=tuple(names.get(name, name) for name in node.inputs), attributes=attributes)
