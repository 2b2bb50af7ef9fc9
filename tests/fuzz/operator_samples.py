"""Models written back, buffers placed: damaged files through all that a command does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from branching_models import onnx_cells, tflite_cells
from model_files import MLP

from edgewatt.operators.energy import schedule
from edgewatt.operators.request import load_graph
from edgewatt.operators.write_back import write_back
from fuzz.other_samples import BUFFERS, Sample
from reorder.operators.arena.allocate import allocate
from reorder.operators.arena.files import read_buffers, write_placement

LIMIT_S = 2.0


def operator_samples(folder: Path) -> dict[str, Sample]:
    """Return name -> sample; `folder` is for files on the way."""
    found: dict[str, Sample] = {}

    def add(name: str, file: str, data: bytes, read: Callable[[Path], Any]) -> None:
        found[name] = (file, data, read)

    onnx = onnx_cells(folder / "cells.onnx").read_bytes()
    for name, rewrite in (("written back", ""), ("rewritten", "all")):
        add(f"tflite cells {name}", "c.tflite", tflite_cells(), lambda path, r=rewrite: _written_back(path, r))
        add(f"onnx cells {name}", "c.onnx", onnx, lambda path, r=rewrite: _written_back(path, r))
    add("tflite written back", "m.tflite", MLP, lambda path: _written_back(path, ""))
    add("buffers placed", "b.csv", BUFFERS, _placed)
    return found


def _written_back(path: Path, rewrite: str) -> Any:
    graph = load_graph(str(path))
    found = schedule(graph, rewrite=rewrite or (), time_limit_s=LIMIT_S)
    output = path.parent / f"back{path.suffix}"
    write_back(str(path), graph, found, output, rewrite=rewrite or ())
    return load_graph(str(output))


def _placed(path: Path) -> Any:
    given = read_buffers(path, 16)
    b = given.buffers
    placed = allocate(b.lower, b.upper, b.size, alignment=16, time_limit_s=LIMIT_S)
    write_placement(given, placed.offset, path.parent / "placed.csv")
    return read_buffers(path.parent / "placed.csv")
