"""Sparse matrices in files, with the order in which their entries are stored: what a reordered matrix is deployed as.

npz is SciPy's own, mtx Matrix Market coordinate, safetensors three tensors named as SciPy's arrays; the order stays.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reorder.tuples.matrix import LAYOUTS
from traces.base.archive import read_npz
from traces.base.errors import InputError, did_you_mean, unknown_name
from traces.base.files import whole_file
from traces.base.memory import claim
from traces.base.sparse import checked_sparse
from traces.formats.convert import from_bits
from traces.readers import NETWORK_READERS, MatrixReader
from traces.readers.parts.layers import as_float32, float32_values
from traces.readers.parts.weights import ModelWeights

WRITERS = (".npz", ".safetensors", ".mtx")


def read_matrix(path: str | Path, *, names: Sequence[str] | None = None, layout: str = "csr") -> Any:
    """Return a SciPy csr matrix whose rows hold the entries in the order of the file.

    names: which tensor of a file with several, a name or a pattern such as ``layer1.*.weight`` that one tensor fits; a
    convolution is the matrix of its outputs and taps, [O, I * R * S]. layout: 'csc' and 'coo' return a matrix of that
    kind in the order of the file instead, where the file does not hold rows alone.
    Reads SciPy npz, NumPy npy and npz, Matrix Market, safetensors, and npz with arrays data, indices, indptr and shape
    alone.
    """
    if layout not in LAYOUTS:
        raise unknown_name("layout", layout, LAYOUTS)
    path = Path(path)
    if path.is_dir() or path.name.endswith(".index.json"):
        return _of_weights(ModelWeights(path), names)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    suffix = path.suffix.lower()
    if suffix == ".npz":
        arrays = read_npz(path, ("format", "data", "indices", "indptr", "shape"))
        if "format" not in arrays and {"data", "indices", "indptr", "shape"} <= set(arrays):
            return _csr(arrays, str(path))
    elif suffix == ".safetensors":
        arrays = _safetensors_arrays(path)
        if arrays:
            return _csr(arrays, str(path))
        if names and any(len(weights.parts(name)) > 1 for weights in [ModelWeights(path)] for name in names):
            return _of_weights(ModelWeights(path), names)
    readers = [entry.item for entry in NETWORK_READERS.loadable().values() if isinstance(entry.item, MatrixReader)]
    able = [reader for reader in readers if suffix in reader.suffixes]
    if not able:
        known = sorted({end for reader in readers for end in reader.suffixes})
        raise InputError(f"{path}: unknown kind of file {suffix!r}{did_you_mean(suffix, known)}")
    reader = next((each for each in able if len(able) == 1 or each.recognises(path)), None)
    if reader is None:
        raise InputError(f"{path}: no {suffix} file that holds a matrix")
    m = _one_of(reader, path, names)
    values = float32_values(m)
    if m.values is not None:
        _check_whole(m.values, values, m.name_entry)
    for name, ids, size in (("row", m.rows, m.shape[0]), ("column", m.columns, m.shape[1])):
        bad = np.flatnonzero((ids < 0) | (ids >= size))
        if bad.size:
            raise InputError(f"{m.name_entry(int(bad[0]))}: {name} outside 0 to {size - 1}")
    kind = LAYOUTS[layout]
    major, minor = (m.columns, m.rows) if kind.by_columns else (m.rows, m.columns)
    by = slice(None) if kind.rows_mix else np.argsort(major, kind="stable")
    return kind.matrix(major[by], minor[by], values[by], m.shape)


def _of_weights(weights: ModelWeights, names: Sequence[str] | None) -> Any:
    import scipy.sparse

    known = weights.names()
    chosen = [name for name in known if any(name == p or fnmatch.fnmatchcase(name, p) for p in names or ("*",))]
    if len(chosen) != 1:
        listed = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
        requested = " and ".join(map(repr, names or ())) or "no name"
        raise InputError(f"{weights.folder}: {len(chosen)} matrices fit {requested}, one is wanted: {listed}")
    matrix = weights.matrix(chosen[0])
    claim(16 * int(matrix.pointers[-1]), str(weights.folder), f"matrix {matrix.name!r}")
    columns, bits = matrix.entries(0, matrix.shape[0])
    values = from_bits(bits, matrix.value_format)
    return scipy.sparse.csr_matrix((values, columns, matrix.pointers), shape=matrix.shape)


def _one_of(reader: MatrixReader, path: Path, names: Sequence[str] | None) -> Any:
    known = reader.matrix_names(path)
    if names and not known:
        raise InputError(f"{path}: holds one matrix without a name: leave `names` out")
    listed = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
    if not names and len(known) > 1:
        raise InputError(f"{path}: holds {len(known)} matrices: choose one with --names (names=): {listed}")
    matrices = reader.matrices(path, names or known or None)
    if len(matrices) != 1:
        requested = " and ".join(map(repr, names or ()))
        raise InputError(f"{path}: {len(matrices)} matrices fit {requested}, one is wanted: {listed}")
    return matrices[0]


def _check_whole(given: np.ndarray, single: np.ndarray, entry: Callable[[int], str]) -> None:
    """Raise InputError for a whole number that float32 rounds: a copy of the matrix would hold another one."""
    if given.dtype.kind in "iu" and (lost := np.flatnonzero(single != given.astype(np.longdouble))).size:
        raise InputError(f"{entry(int(lost[0]))} is {given.flat[lost[0]]}: float32 does not hold this whole number")


def _csr(arrays: dict[str, np.ndarray], where: str) -> Any:
    import scipy.sparse

    def entry(k: int) -> str:
        return f"{where}: entry {k}"

    data = as_float32(arrays["data"], where, entry)
    _check_whole(arrays["data"], data, entry)
    try:
        matrix = scipy.sparse.csr_matrix(
            (data, arrays["indices"], arrays["indptr"]), shape=tuple(int(size) for size in arrays["shape"])
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{where}: no csr matrix ({error})") from None
    return checked_sparse(matrix, where)


def _safetensors_arrays(path: Path) -> dict[str, np.ndarray]:
    """The four arrays of a csr matrix written by write_matrix, or nothing if the file is another kind."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as stored:
            if (stored.metadata() or {}).get("sparse_format") != "csr":
                return {}
            return {name: stored.get_tensor(name) for name in ("data", "indices", "indptr", "shape")}
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file ({error})") from error


def write_matrix(matrix: Any, path: str | Path) -> None:
    """Write a SciPy csr, csc or coo matrix in its stored order; the suffix of `path` chooses the kind of file."""
    path, matrix = Path(path), checked_sparse(matrix)
    kind = matrix.format
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise InputError(f"{path}: a matrix is written as {', '.join(WRITERS)}{did_you_mean(suffix, WRITERS)}")
    with whole_file(path) as stream:
        if suffix == ".npz":
            import scipy.sparse

            scipy.sparse.save_npz(stream, matrix)
        elif suffix == ".safetensors":
            from safetensors.numpy import save

            names = ("row", "col", "data") if kind == "coo" else ("data", "indices", "indptr")
            arrays = {name: np.ascontiguousarray(getattr(matrix, name)) for name in names}
            arrays["shape"] = np.array(matrix.shape, np.int64)
            stream.write(save(arrays, {"sparse_format": kind, "note": json.dumps("stored order matters")}))
        else:
            entries = matrix.tocoo()
            rows, columns = matrix.shape
            head = f"%%MatrixMarket matrix coordinate real general\n{rows} {columns} {entries.nnz}\n"
            stream.write(head.encode())
            lines = (
                f"{row} {column} {value!r}\n"
                for row, column, value in zip(
                    (entries.row + 1).tolist(), (entries.col + 1).tolist(), entries.data.tolist(), strict=True
                )
            )
            stream.write("".join(lines).encode())
