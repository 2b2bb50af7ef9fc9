"""Matrix Market files: coordinate or array, real, integer or pattern, general or (skew-)symmetric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from traces.base.errors import InputError, did_you_mean
from traces.base.memory import claim
from traces.readers.parts.layers import Matrix, claim_matrix
from traces.readers.parts.triplets import numbered_lines, read_triplets
from traces.readers.reader import NETWORK_READERS, MatrixReader

_FIELDS = ("real", "double", "integer", "pattern")
_LARGEST = 1 << 62
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read(path: str | Path) -> list[Matrix]:
    """Read one matrix. Entries of a pattern count as 1. Raises InputError naming file and line."""
    layout, field, symmetry, sizes, skip = _header(Path(path))
    claim_matrix(0, (sizes[0], sizes[1]), str(path))
    if layout == "array":
        matrix = _read_array(Path(path), field, symmetry, sizes, skip)
    else:
        shape = (sizes[0], sizes[1])
        table = read_triplets(path, skip=skip, has_values=field != "pattern", shape=shape)
        if len(table.rows) != sizes[2]:
            raise InputError(
                f"{path}:{skip}: {sizes[2]} entries announced, {len(table.rows)} found: truncated or damaged"
            )
        matrix = Matrix(table.rows, table.columns, table.values, shape, str(path), entry=table.line)
    return [matrix if symmetry == "general" else _mirrored(matrix, symmetry)]


def _header(path: Path) -> tuple[str, str, str, list[int], int]:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            words = stream.readline(1 << 12).lower().split()
            if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
                raise InputError(f"{path}:1: no Matrix Market file: it starts with '%%MatrixMarket matrix ...'")
            layout, field, symmetry = words[2:]
            for word, known in (
                (layout, ("coordinate", "array")),
                (field, _FIELDS if layout == "coordinate" else _FIELDS[:3]),
                (symmetry, _SYMMETRIES),
            ):
                if word not in known:
                    raise InputError(f"{path}:1: {word!r} matrices cannot be read{did_you_mean(word, known)}")
            for number, line in numbered_lines(stream, path, 2):
                if line.startswith("%") or not line.strip():
                    continue
                try:
                    sizes = [int(word) for word in line.split()]
                except ValueError:
                    sizes = []
                if len(sizes) != (3 if layout == "coordinate" else 2) or min(sizes) < 0:
                    raise InputError(f"{path}:{number}: expected the sizes of the matrix, not {line.strip()[:60]!r}")
                if max(sizes) > _LARGEST:
                    raise InputError(f"{path}:{number}: sizes {sizes} are beyond 2^62")
                if symmetry != "general" and sizes[0] != sizes[1]:
                    raise InputError(f"{path}:{number}: a {symmetry} matrix of shape {sizes[:2]} is not square")
                return layout, field, symmetry, sizes, number
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    raise InputError(f"{path}: ends before the sizes of the matrix")


def _read_array(path: Path, field: str, symmetry: str, sizes: list[int], skip: int) -> Matrix:
    if symmetry != "general":
        raise InputError(f"{path}:1: a dense {symmetry} matrix is not read: write it as coordinate")
    n_rows, n_columns = sizes
    if 2 * n_rows * n_columns > path.stat().st_size + 1:  # a digit and a line end each
        raise InputError(f"{path}: {n_rows} x {n_columns} values announced, the file is too short for them")
    claim(100 * n_rows * n_columns, str(path))
    values: list[float] = []
    lines: list[int] = []
    with open(path, encoding="ascii", errors="replace") as stream:
        for number, line in numbered_lines(stream, path):
            if number <= skip or not line.strip():
                continue
            try:
                values.append(float(line))
            except ValueError:
                raise InputError(f"{path}:{number}: {line.strip()[:40]!r} is not one number") from None
            lines.append(number)
    if len(values) != n_rows * n_columns:
        raise InputError(f"{path}: {n_rows} x {n_columns} values announced, {len(values)} found")
    flat = np.array(values)
    stored = np.flatnonzero(flat)
    at = np.array(lines, np.int64)[stored]
    return Matrix(
        stored % n_rows, stored // n_rows, flat[stored], (n_rows, n_columns), str(path), lambda k: f"{path}:{at[k]}"
    )


def _mirrored(matrix: Matrix, symmetry: str) -> Matrix:
    wrong = np.flatnonzero(matrix.rows < matrix.columns)
    if wrong.size:
        raise InputError(f"{matrix.name_entry(int(wrong[0]))}: a {symmetry} matrix stores its lower triangle")
    off = np.flatnonzero(matrix.rows != matrix.columns)
    if symmetry == "skew-symmetric" and len(off) != len(matrix.rows):
        raise InputError(f"{matrix.where}: a skew-symmetric matrix has no diagonal")
    origin = np.concatenate((np.arange(len(matrix.rows)), off))
    values = matrix.values
    if values is not None:
        values = np.concatenate((values, -values[off] if symmetry == "skew-symmetric" else values[off]))
    return Matrix(
        np.concatenate((matrix.rows, matrix.columns[off])),
        np.concatenate((matrix.columns, matrix.rows[off])),
        values,
        matrix.shape,
        matrix.where,
        lambda k: matrix.entry(int(origin[k])) if matrix.entry else matrix.where,
    )


class MatrixMarket(MatrixReader):
    suffixes = (".mtx",)

    def matrices(self, path: Path, names: Sequence[str] | None) -> list[Matrix]:
        return read(path)


NETWORK_READERS.register("matrix-market", summary="Matrix Market: one matrix per file, coordinate or array")(
    MatrixMarket()
)
