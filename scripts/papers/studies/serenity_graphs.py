"""The operator graphs of Ahn et al. 2020: SwiftNet from its model file, cells of the other networks as generated here.

The paper prints no tensor sizes of its DARTS and RandWire cells; ours are stated in the generators.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import edgewatt as ew
from edgewatt.operators.request import load_graph
from traces.operators.opgraph import INPUT, OpGraph

MODEL = "swiftnet_vww_uint8.tflite"
FIRST, IMAGE = "maxpool_pre2/max_pooling2d/MaxPool", "input"
# Cut out of the model: from one tensor, which becomes the input, to another. Folded, A and C have the paper's 21 and 22
# operators, the whole its 62.
CUTS = {
    "SwiftNet cell A": (FIRST, "swiftnet_2_1/activation"),
    "SwiftNet cell C": ("pool_3/max_pooling2d/MaxPool", "swiftnet_4_1/activation"),
    "SwiftNet": (FIRST, "swiftnet_4_1/activation"),
}
GENERATED = {
    "DARTS normal cell": "darts_v2", "NASNet normal cell": "nasnet", "AmoebaNet normal cell": "amoebanet",
    "RandWire WS32 seed 0": "randwire-ws32", "RandWire WS32 seed 2": "randwire-ws32-seed2",
    "RandWire WS32 three stages": "randwire-ws32x3", "RandWire ER32": "randwire-er32", "RandWire BA32": "randwire-ba32",
    "RandWire WS64": "randwire-ws64",
}  # fmt: skip
OWN = (
    "SwiftNet cell A",
    "SwiftNet cell C",
    "DARTS normal cell",
    *(n for n in GENERATED if n.startswith("RandWire WS32")),
)
"""Cells of the networks that the paper evaluates."""
ONLY_FULL = ("RandWire WS64",)
REWRITE = ["channel-wise"]
"""The patterns that the paper's text describes (section 3.3); with absorbed additions cell A has its count of 33 nodes."""
ALLOCATOR = "linear"
"""TensorFlow Lite's when the paper was written."""


def model_path() -> Path | None:
    """Return where SwiftNet's model of the reference data lies (EDGEWATT_REFERENCE), None if it is not there."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    path = Path(folder) / "models" / MODEL if folder else None
    return path if path is not None and path.is_file() else None


def names(full: bool) -> list[str]:
    """Return the graphs that can be had here."""
    cells = list(CUTS) if model_path() else []
    return cells + [name for name in GENERATED if full or name not in ONLY_FULL]


@cache
def swiftnet() -> OpGraph:
    """Return SwiftNet's whole model. Raises InputError without it."""
    path = model_path()
    if path is None:
        raise ew.InputError(f"{MODEL} is not where EDGEWATT_REFERENCE said any more")
    return cast(OpGraph, ew.load(path))


def graph_of(name: str) -> OpGraph:
    """Return a graph of `names`."""
    return load_graph(GENERATED[name]) if name in GENERATED else _between(swiftnet(), *CUTS[name])


def folded(name: str) -> OpGraph:
    """Return it with its concatenations folded, as the paper's counts of nodes have them."""
    return cast(OpGraph, ew.rewrite_graph(graph_of(name), "fold-concat"))


def _between(graph: OpGraph, first: str, last: str) -> OpGraph:
    """Return the operators that `last` needs, up to `first`, which becomes the input."""
    nodes = {node.output.name: node for node in graph.nodes}
    needed, waiting = {first}, [last]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += nodes[name].inputs
    begin = replace(nodes[first], op=INPUT, inputs=(), constants=(), attributes={})
    kept = [begin, *(node for node in graph.nodes if node.output.name in needed - {first})]
    used = {name: graph.constants[name] for node in kept for name in node.constants}
    return graph.with_(nodes=tuple(kept), outputs=(last,), constants=used)
