"""Exports of reordered weights: sparse matrices, and inference in the order of work as C."""

from __future__ import annotations

import re
from typing import Any

from edgewatt.exports.request import Exported, ExportRequest
from edgewatt.runs.matrices import layer_matrices, write_matrices
from hwmodel.processor.export_c import export_c
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.networks.network import Network
from traces.readers import load


def matrices(request: ExportRequest) -> Exported:
    """Write one matrix a layer, its tuples in the order of work."""
    if not request.configured:
        raise InputError(
            f"{request.source}: matrices come from a configuration (YAML); see edgewatt order-tuples for a matrix"
        )
    network, edges = request.ordered_network("matrix")
    files = [str(path) for path in write_matrices(layer_matrices(network, edges), request.output)]
    words = f"{', '.join(files)}: {len(edges)} weights, rows are outputs, tuples in the order of work"
    return Exported({"files": files, "connections": len(edges)}, words)


def c_file(request: ExportRequest) -> Exported:
    """Write one self-contained C file that computes a network in its order of work."""
    edges: Any = None
    if request.configured:
        network, edges = request.ordered_network("network")
    else:
        network = load(request.source, kind="network")
        if not isinstance(network, Network):
            raise InputError(f"{request.source}: a C file needs a network of neurons, not an operator graph")
    text = export_c(network, edges, dtype=request.dtype)
    with whole_file(request.output) as stream:
        stream.write(text.encode())
    arena = int(re.search(r"^#define \w+_ARENA_BYTES (\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    summary = {"file": request.output, "format": request.format, "dtype": request.dtype,
               "connections": network.n_connections, "arena_bytes": arena}  # fmt: skip
    words = f"{request.output}: {network.n_connections} connections in {request.dtype}, {arena} bytes of memory"
    return Exported(summary, words)
