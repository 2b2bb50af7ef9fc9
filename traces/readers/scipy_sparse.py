"""SciPy sparse matrices: npz files of scipy.sparse.save_npz, and matrices in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traces.base.archive import npz_names, read_npz
from traces.base.errors import InputError
from traces.base.sparse import checked_sparse, row_pointers
from traces.networks.network import Network, is_real
from traces.readers.parts.layers import Matrix, claim_matrix, dense_layer, from_layers
from traces.readers.parts.torch_modules import array_of
from traces.readers.reader import NETWORK_READERS, MatrixReader

_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}


def _read(path: Path) -> Matrix:
    arrays = read_npz(path)
    for name in ("format", "shape", "data"):
        if name not in arrays:
            raise InputError(f"{path}: array {name!r} is missing: write the matrix with scipy.sparse.save_npz")
    text = arrays["format"]
    kind = str(np.char.decode(text, "ascii", "replace") if text.dtype.kind == "S" else text)
    if kind not in _PARTS:
        raise InputError(f"{path}: sparse format {kind!r} is not read: save it as csr (matrix.tocsr())")
    shape = arrays["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise InputError(f"{path}: a layer is a matrix with two dimensions, not shape {shape[:8].tolist()}")
    for name in _PARTS[kind]:
        if name not in arrays:
            raise InputError(f"{path}: array {name!r} of a {kind} matrix is missing")
        if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "iu":
            raise InputError(f"{path}: array {name!r} must be one-dimensional integers")
    size = (int(shape[0]), int(shape[1]))
    data = arrays["data"]
    claim_matrix(max(arrays[name].size for name in ("data", *_PARTS[kind])), size, str(path))
    first, second = (arrays[name].astype(np.int64) for name in _PARTS[kind])
    if data.ndim != 1 or len(data) != len(first):
        raise InputError(f"{path}: {data.size} values but {len(first)} {_PARTS[kind][0]}")
    if kind == "coo":
        if len(second) != len(first):
            raise InputError(f"{path}: {len(first)} row but {len(second)} col")
        rows, columns = first, second
    else:
        n_major = size[0] if kind == "csr" else size[1]
        pointers = row_pointers(second, n_major, len(first), f"{path}: array 'indptr'")
        major = np.repeat(np.arange(n_major), np.diff(pointers))
        rows, columns = (major, first) if kind == "csr" else (first, major)
    return Matrix(rows, columns, data, size, where=str(path))


def from_matrices(
    matrices: Sequence[Any], *, orientation: str = "rows-are-outputs", activation: str = "relu", name: str = "network"
) -> Network:
    """Build a network from matrices in memory, one per layer from input to output.

    matrices: SciPy sparse matrices (any format), dense two-dimensional arrays or PyTorch tensors of any layout and type
        (non-zeros become connections). orientation: 'rows-are-outputs' or 'rows-are-inputs'. activation: of
        ACTIVATIONS.
    Returns a Network. Raises InputError naming the layer and entry at fault.
    """
    layers = [_in_memory(matrix, f"layer {k}") for k, matrix in enumerate(matrices)]
    return from_layers(layers, orientation=orientation, activation=activation, name=name)


def _in_memory(matrix: Any, where: str) -> Matrix:
    if hasattr(matrix, "tocoo"):
        coo = checked_sparse(matrix, where).tocoo()
        return Matrix(coo.row.astype(np.int64), coo.col.astype(np.int64), coo.data, coo.shape, where)
    if type(matrix).__module__.partition(".")[0] in ("torch", "torchao"):
        matrix = array_of(matrix, where)
    try:
        dense = np.asarray(matrix)
    except ValueError as error:
        raise InputError(f"{where} is not a matrix: {error}") from None
    if dense.ndim != 2 or not (dense.dtype == bool or is_real(dense.dtype)):
        raise InputError(f"{where} must be a matrix of real numbers, not {dense.dtype} of shape {dense.shape}")
    return dense_layer(dense, where)


class ScipySparse(MatrixReader):
    suffixes = (".npz",)

    def recognises(self, path: Path) -> bool:
        return bool({"format", "shape", "data", "indices", "indptr", "row", "col"} & npz_names(path))

    def matrices(self, path: Path, names: Sequence[str] | None) -> list[Matrix]:
        return [_read(path)]


NETWORK_READERS.register("scipy-npz", summary="SciPy sparse npz: one csr, csc or coo matrix per file")(ScipySparse())
