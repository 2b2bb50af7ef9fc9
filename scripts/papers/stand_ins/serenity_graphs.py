"""The operator graphs that stand for those of Ahn et al. 2020 (scripts/papers/figures/schedules/serenity.yaml)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from edgewatt.operators.request import load_graph
from papers.claims import FIGURES
from traces.base.document import read_document
from traces.operators.opgraph import OpGraph


@cache
def settings() -> dict[str, Any]:
    """Return the file's content."""
    data: dict[str, Any] = read_document(FIGURES / "schedules" / "serenity.yaml").data
    return data


def graph_file(name: str) -> Path | None:
    """Return where a graph of the reference data lies (EDGEWATT_REFERENCE), None if it is not there."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    path = Path(folder) / "schedule" / name if folder else None
    return path if path is not None and path.is_file() else None


def available(entry: dict[str, Any]) -> bool:
    """Whether a graph can be had here: generated, or from the reference data."""
    return "generate" in entry or graph_file(entry["file"]) is not None


def graph_of(entry: dict[str, Any], held: Sequence[str] = ()) -> OpGraph:
    """Return the graph of an entry; `from` and `to`: the part of a file behind one tensor and up to another.

    held: tensors that stay in memory to the end, as outputs do.
    """
    if "generate" in entry:
        return load_graph(entry["generate"])
    from traces.readers.opgraph_json import from_dict

    path = graph_file(entry["file"])
    assert path is not None
    value = json.loads(path.read_text())
    if "from" in entry:
        value = _between(value, entry["from"], entry["to"])
    outputs = [*value["outputs"], *held]
    return from_dict({"name": value["name"], "nodes": value["nodes"], "outputs": outputs}, source=str(path))


def _between(value: dict[str, Any], first: str, last: str) -> dict[str, Any]:
    """Return the nodes that `last` needs, up to `first`, which becomes the input."""
    nodes = {node["name"]: node for node in value["nodes"]}
    needed, waiting = {first}, [last]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += nodes[name]["inputs"]
    kept = [node for node in value["nodes"] if node["name"] in needed]
    begin = {**nodes[first], "op": "INPUT", "inputs": []}
    return {**value, "nodes": [begin, *(node for node in kept if node["name"] != first)], "outputs": [last]}


def mean(values: list[float]) -> float:
    """Geometric mean of ratios."""
    from math import exp, log

    return exp(sum(map(log, values)) / len(values)) if values else float("nan")
