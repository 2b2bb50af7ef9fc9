"""Matrix Market files: coordinate or array, real, integer or pattern, general or (skew-)symmetric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from traces.base.checks import plain_digits
from traces.base.errors import InputError, did_you_mean
from traces.base.memory import claim
from traces.readers.parts.layers import Matrix, claim_matrix
from traces.readers.parts.triplets import lines_after, read_triplets
from traces.readers.reader import NETWORK_READERS, MatrixReader

_FIELDS = ("real", "double", "integer", "pattern")


def _header(path: Path) -> tuple[str, str, str, list[int], int]:
    with open(path, encoding="ascii", errors="replace") as stream:
        words = stream.readline(1 << 12).lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise InputError(f"{path}:1: no Matrix Market file: it starts with '%%MatrixMarket matrix ...'")
    layout, field, symmetry = words[2:]
    for word, known in (
        (layout, ("coordinate", "array")),
        (field, _FIELDS if layout == "coordinate" else _FIELDS[:3]),
        (symmetry, ("general", "symmetric", "skew-symmetric")),
    ):
        if word not in known:
            raise InputError(f"{path}:1: {word!r} matrices cannot be read{did_you_mean(word, known)}")
    for number, line in lines_after(path, 1):
        if line.startswith("%"):
            continue
        try:
            sizes = [int(plain_digits(word)) for word in line.split()]
        except ValueError:
            sizes = []
        if len(sizes) != (3 if layout == "coordinate" else 2) or min(sizes) < 0:
            raise InputError(f"{path}:{number}: expected the sizes of the matrix, not {line.strip()[:60]!r}")
        if max(sizes) > 1 << 62:
            raise InputError(f"{path}:{number}: sizes {sizes} are beyond 2^62")
        if symmetry != "general" and sizes[0] != sizes[1]:
            raise InputError(f"{path}:{number}: a {symmetry} matrix of shape {sizes[:2]} is not square")
        return layout, field, symmetry, sizes, number
    raise InputError(f"{path}: ends before the sizes of the matrix")


def _read_array(path: Path, symmetry: str, shape: tuple[int, int], skip: int) -> Matrix:
    if symmetry != "general":
        raise InputError(f"{path}:1: a dense {symmetry} matrix is not read: write it as coordinate")
    n_rows, n_columns = shape
    if 2 * n_rows * n_columns > path.stat().st_size + 1:  # a digit and a line end each
        raise InputError(f"{path}: {n_rows} x {n_columns} values announced, the file is too short for them")
    claim(100 * n_rows * n_columns, str(path))
    values: list[float] = []
    lines: list[int] = []
    for number, line in lines_after(path, skip):
        try:
            values.append(float(plain_digits(line)))
        except ValueError:
            raise InputError(f"{path}:{number}: {line.strip()[:40]!r} is not one number") from None
        lines.append(number)
    if len(values) != n_rows * n_columns:
        raise InputError(f"{path}: {n_rows} x {n_columns} values announced, {len(values)} found")
    flat = np.array(values)
    stored = np.flatnonzero(flat)
    at = np.array(lines, np.int64)[stored]
    return Matrix(stored % n_rows, stored // n_rows, flat[stored], shape, str(path), lambda k: f"{path}:{at[k]}")


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
        layout, field, symmetry, sizes, skip = _header(path)
        shape = (sizes[0], sizes[1])
        claim_matrix(0, shape, str(path))
        if layout == "array":
            matrix = _read_array(path, symmetry, shape, skip)
        else:
            table = read_triplets(path, skip=skip, has_values=field != "pattern", shape=shape)
            if len(table.rows) != sizes[2]:
                raise InputError(
                    f"{path}:{skip}: {sizes[2]} entries announced, {len(table.rows)} found: truncated or damaged"
                )
            matrix = Matrix(table.rows, table.columns, table.values, shape, str(path), entry=table.line)
        return [matrix if symmetry == "general" else _mirrored(matrix, symmetry)]


NETWORK_READERS.register("matrix-market", summary="Matrix Market: one matrix per file, coordinate or array")(
    MatrixMarket()
)
