"""A schedule put back into the model's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reorder.operators.rewriting.lowering import inexact, lowered
from reorder.operators.rewriting.rewrite import rewrite_graph
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.operator_problem import footprint
from reorder.operators.schedule.schedule import OBJECTIVES, Schedule, schedule
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.operators.opgraph import INPUT, OpGraph
from traces.readers.reader import written


@dataclass(frozen=True)
class WrittenBack:
    """What a file that was written needs; unchanged_peak_bytes: the least peak of the model's own operators.

    whole: operator that was to be split or absorbed -> why it stays as it is.
    """

    peak_bytes: int
    arena_bytes: int
    operators: int
    rewritten: bool
    unchanged_peak_bytes: int
    whole: dict[str, str]


def write_back(
    model: str, graph: OpGraph, result: Schedule, output: str | Path, *, rewrite: Sequence[str] | str = ()
) -> WrittenBack:
    """Write a model's file with the operators of a schedule in its order, and the places of its tensors.

    graph: the model's. rewrite: the patterns that made `result.graph` of it. Partial operators are written as operators
    that formats have (rewriting.lowering), which takes more memory than the schedule's; those whose parts would
    give other integers stay whole.

    A runtime fills the inputs before it begins, so they are placed as if they came first. Raises InputError for files
    that cannot be written back, and where nothing of a rewriting can be.
    """
    if not Path(model).is_file():
        raise InputError(f"{model}: a generated graph has no file: only .tflite and .onnx models can be written back")
    made = result
    whole: dict[str, str] = {}
    if result.graph is not graph:
        made, whole = _in_the_formats_operators(model, graph, result, rewrite)
    order = made.order.tolist()
    inputs = [v for v in order if made.graph.nodes[v].op == INPUT]
    others = [v for v in order if made.graph.nodes[v].op != INPUT]
    steps = np.array([*inputs, *others])
    placed = arena(made.graph, steps, "exact", alignment=result.alignment)
    at = dict(zip(made.graph.buffers, placed.offset.tolist(), strict=True))
    offsets = {name: at[tensor.buffer] for name, tensor in made.graph.tensors.items()}
    data = written(model, made.graph.in_order(steps), offsets)
    with whole_file(output) as stream:
        stream.write(data)
    peak = int(footprint(made.graph, steps).during_bytes.max())
    least = peak if made is result else schedule(graph, alignment=result.alignment).peak_bytes
    return WrittenBack(peak, placed.height, len(others), made is not result, least, whole)


def _in_the_formats_operators(
    model: str, graph: OpGraph, result: Schedule, rewrite: Sequence[str] | str
) -> tuple[Schedule, dict[str, str]]:
    def again(changed: OpGraph) -> Schedule:
        objective = result.objective if result.objective in OBJECTIVES[:2] else "peak"
        return schedule(changed, objective=objective, alignment=result.alignment)

    whole: dict[str, str] = {}
    rewritten = result
    while more := inexact(rewritten.graph, graph):
        whole |= more
        changed = rewrite_graph(graph, rewrite, whole=whole) if rewrite else graph
        name, reason = next(iter(whole.items()))
        if not rewrite or [n.outputs for n in changed.nodes] == [n.outputs for n in graph.nodes]:
            raise InputError(f"{model}: nothing of the rewriting can be written back: {name!r} stays whole: {reason}")
        rewritten = again(changed)
    return again(lowered(rewritten.graph, graph, rewritten.order)), whole
