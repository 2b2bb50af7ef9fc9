"""A schedule put back into the model's file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reorder.schedule.arena import arena
from reorder.schedule.schedule import Schedule
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.readers.loading import reordered
from traces.work.opgraph import INPUT, OpGraph


def write_back(model: str, graph: OpGraph, result: Schedule, output: str | Path) -> int:
    """Write a model's file in the order of a schedule, with the places of its tensors; return the bytes of that arena.

    A runtime fills the inputs before it begins, so they are placed as if they came first: with more than one input the
    arena may be larger than the schedule's. Raises InputError for a rewritten graph and for files that cannot be
    written back.
    """
    if not Path(model).is_file():
        raise InputError(f"{model}: a generated graph has no file: only .tflite and .onnx models can be written back")
    if result.graph is not graph:
        raise InputError("a rewritten graph cannot be written back: its operators are not those of the file")
    order = result.order.tolist()
    inputs = [v for v in order if graph.nodes[v].op == INPUT]
    others = [v for v in order if graph.nodes[v].op != INPUT]
    placed = arena(graph, np.array([*inputs, *others]), "exact", alignment=result.alignment)
    at = dict(zip(graph.buffers, placed.offsets.tolist(), strict=True))
    offsets = {name: at[tensor.buffer] for name, tensor in graph.tensors.items()}
    data = reordered(model, [graph.nodes[v].name for v in others], offsets)
    with whole_file(output) as stream:
        stream.write(data)
    return placed.n_bytes
