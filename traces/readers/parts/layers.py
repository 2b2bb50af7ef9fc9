"""A network from one sparse matrix per layer: what every matrix format has in common, patterns of zeros among it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.checks import is_whole
from traces.base.errors import InputError, brief, unknown_name
from traces.base.memory import claim
from traces.networks.network import MAX_NEURONS, Network, is_real


@contextmanager
def damage(where: str) -> Iterator[None]:
    """Say that a model is damaged where what it holds makes this code stumble."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RuntimeError, struct.error) as error:
        raise InputError(f"{where}: damaged ({type(error).__name__}: {brief(error)})") from error


def natural_key(name: object) -> tuple[tuple[int, int, str], ...]:
    words = re.split(r"([0-9]+)", str(name))
    return tuple((0, int(word), "") if is_whole(word) else (1, 0, word) for word in words)


MOST_SCANNED = 1 << 24  # places of a layer's dense form, a byte each
_GROUPS = ((1, 4), (2, 4), (2, 8), (4, 8))  # (most non-zeros, of so many), the stricter first
_BLOCKS = (64, 32, 16, 8, 4)
_FULL = 0.9  # share of a kept block that must be non-zero
_MIXED = 0.5  # share of groups that must use all they may, or another pattern is the better word
_LEAST_GROUPED = _MIXED * min(most / of for most, of in _GROUPS)  # below this density no groups are told

_QUANTISED = re.compile(r"\b(weight_(scale|zero_point|packed|shape)|qweight|qzeros|scales|g_idx)\b")


def zero_pattern(weights: np.ndarray) -> str:
    """Return what a weight tensor's zeros look like in words, '' where they follow no pattern known here.

    weights: [outputs, ...]; N:M groups are consecutive inputs (dimension 1; for convolutions at one tap), blocks are
    squares of outputs x inputs of the flattened tensor, or columns and rows of them.
    """
    kept = weights != 0
    n_kept = int(np.count_nonzero(kept))
    if not 0 < n_kept < 0.95 * kept.size:
        return ""
    flat = kept.reshape(len(kept), -1)

    def n_blocks(tall: int, wide: int) -> int:
        return int(flat.reshape(-1, tall, flat.shape[1] // wide, wide).any(axis=(1, 3)).sum())

    return _groups(kept) or _blocks(flat.shape, n_kept, n_blocks)


def entry_pattern(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], shape: tuple[int, int]) -> str:
    """Return `zero_pattern` of the matrix that is not zero at these places alone, in the time that few entries take."""
    if len(rows) >= _LEAST_GROUPED * shape[0] * shape[1]:
        kept = np.zeros(shape, bool)
        kept[rows, columns] = True
        return zero_pattern(kept)

    def n_blocks(tall: int, wide: int) -> int:
        held = np.zeros((shape[0] // tall, shape[1] // wide), bool)
        held[rows // tall, columns // wide] = True
        return int(held.sum())

    return _blocks(shape, len(rows), n_blocks) if len(rows) else ""


def _groups(kept: np.ndarray) -> str:
    rows = np.moveaxis(kept, 1, -1).reshape(-1, kept.shape[1])
    for most, of in _GROUPS:
        if rows.shape[1] % of == 0:
            counts = rows.reshape(-1, of).sum(axis=1)
            if counts.max() <= most and np.mean(counts == most) >= _MIXED and len(counts) >= 8:
                return f"{most}:{of} sparse: at most {most} of {of} consecutive inputs are not zero"
    return ""


def _blocks(shape: Sequence[int], n_kept: int, n_blocks: Callable[[int, int], int]) -> str:
    """n_blocks: of so many rows and columns, how many hold anything."""
    shapes = [(side, side) for side in _BLOCKS] + [(1, side) for side in _BLOCKS] + [(side, 1) for side in _BLOCKS]
    size = shape[0] * shape[1]
    for tall, wide in shapes:
        if shape[0] % tall or shape[1] % wide or size < 4 * tall * wide:
            continue
        held = n_blocks(tall, wide) * tall * wide
        if held <= 0.95 * size and n_kept >= _FULL * held and held < 2 * n_kept:
            return f"block-sparse: blocks of {tall} x {wide}, {held / size:.0%} of them kept"
    return ""


ORIENTATIONS = ("rows-are-outputs", "rows-are-inputs")


@dataclass(frozen=True, eq=False)
class Matrix:
    """The stored entries of one layer's matrix.

    rows, columns: int64[nnz], 0-based. values: real[nnz] or None (a pattern: every entry counts as 1).
    where: names the matrix in messages; entry: names its k-th entry there (a line of a text file, for example).
    bias: real[outputs] or None.
    """

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    values: npt.NDArray[Any] | None
    shape: tuple[int, int]
    where: str
    entry: Callable[[int], str] | None = None
    bias: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        claim_matrix(len(self.rows), self.shape, self.where)

    def name_entry(self, k: int) -> str:
        where = self.entry(k) if self.entry else f"{self.where}: entry {k}"
        return f"{where} (row {self.rows[k]}, column {self.columns[k]}, counted from 0)"


def claim_matrix(n_entries: int, shape: Sequence[int], where: str) -> None:
    what = f"a matrix of shape {tuple(shape)} with {n_entries} entries"
    claim(64 * n_entries + 48 * sum(shape), where, what)  # bytes of an entry, and of a row or column


def claim_network(n_connections: int, n_neurons: int, where: str) -> None:
    what = f"a network of {n_connections} connections and {n_neurons} neurons"
    claim(64 * (n_connections + n_neurons), where, what)


def check_orientation(orientation: str) -> None:
    if orientation not in ORIENTATIONS:
        raise unknown_name("orientation", orientation, ORIENTATIONS)


def from_layers(
    layers: Sequence[Matrix], *, orientation: str = "rows-are-outputs", name: str = "network", activation: str = "relu"
) -> Network:
    """Build a layered network: neurons are numbered layer by layer, the first layer's are the inputs.

    Connections are stored layer by layer, by target, then source (two-optimal, Gleinig et al. 2023, Theorem 1),
    whatever order the file had. Every stored entry is a connection, also one whose value is zero.
    """
    check_orientation(orientation)
    if not layers:
        raise InputError("no layer given: a network needs at least one matrix")
    outputs_first = orientation == "rows-are-outputs"
    sizes: list[int] = []
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]] = []
    biases: list[npt.NDArray[Any]] = []
    for matrix in layers:
        _check(matrix)
    claim_network(sum(len(m.rows) for m in layers), sum(sum(m.shape) for m in layers), layers[0].where)
    for matrix in layers:
        n_out, n_in = matrix.shape if outputs_first else matrix.shape[::-1]
        if not sizes:
            sizes.append(n_in)
        elif sizes[-1] != n_in:
            turned = " (or turn them: orientation)" if n_out == sizes[-1] else ""
            if _QUANTISED.search(matrix.where):
                raise InputError(
                    f"{matrix.where}: a scale or zero point of quantised weights, which are not put together here: "
                    "save the model with its weights as real numbers"
                )
            raise InputError(
                f"{matrix.where}: a matrix of shape {matrix.shape} takes {n_in} inputs, but the layer before gives "
                f"{sizes[-1]} outputs: order the layers from input to output{turned}"
            )
        if matrix.bias is not None and matrix.bias.shape != (n_out,):
            raise InputError(f"{matrix.where}: the bias has shape {matrix.bias.shape}, expected ({n_out},)")
        first = sum(sizes[:-1])
        sizes.append(n_out)
        source, target = (matrix.columns, matrix.rows) if outputs_first else (matrix.rows, matrix.columns)
        key = target * n_in + source  # both ids are below 2^31
        order = slice(None) if (np.diff(key) > 0).all() else np.argsort(key, kind="stable")
        parts.append((source[order] + first, target[order] + first + n_in, float32_values(matrix)[order]))
        biases.append(np.zeros(n_out) if matrix.bias is None else matrix.bias)
    n = sum(sizes)
    if n > MAX_NEURONS:
        raise InputError(f"{layers[0].where}: {n} neurons in all are too many: at most {MAX_NEURONS} can be numbered")
    sources, targets, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    has_bias = any(matrix.bias is not None for matrix in layers)
    try:
        return Network(
            sources,
            targets,
            n_neurons=n,
            inputs=np.arange(sizes[0]),
            outputs=np.arange(n - sizes[-1], n),
            weights=weights,
            biases=np.concatenate([np.zeros(sizes[0]), *biases]) if has_bias else None,
            layer=np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts]),
            activation=activation,
            name=name,
            notes=_patterns(layers, outputs_first),
        )
    except InputError as error:
        raise InputError(f"{layers[0].where}: {error}") from None


def dense_layer(values: np.ndarray, where: str, *, bias: np.ndarray | None = None) -> Matrix:
    return dense_layers([(values, where, bias)])[0]


def dense_layers(given: Sequence[tuple[np.ndarray, str, np.ndarray | None]]) -> list[Matrix]:
    if given:
        counts = [int(np.count_nonzero(values)) for values, _, _ in given]
        claim_matrix(sum(counts), np.sum([values.shape for values, _, _ in given], axis=0).tolist(), given[0][1])
    layers = []
    for values, where, bias in given:
        rows, columns = np.nonzero(values)
        shape = (values.shape[0], values.shape[1])
        layers.append(Matrix(rows, columns, values[rows, columns], shape, where, bias=bias))
    return layers


def _patterns(layers: Sequence[Matrix], outputs_first: bool) -> tuple[str, ...]:
    notes = []
    for matrix in layers:
        if matrix.shape[0] * matrix.shape[1] > MOST_SCANNED:
            continue
        kept = slice(None) if matrix.values is None else np.flatnonzero(matrix.values != 0)
        rows, columns = matrix.rows[kept], matrix.columns[kept]
        entries = (rows, columns, matrix.shape) if outputs_first else (columns, rows, matrix.shape[::-1])
        if pattern := entry_pattern(*entries):
            notes.append(f"{matrix.where} is {pattern}")
    return tuple(notes)


def _check(matrix: Matrix) -> None:
    n_rows, n_columns = matrix.shape
    if n_rows < 1 or n_columns < 1:
        raise InputError(f"{matrix.where}: an empty matrix of shape {matrix.shape}")
    if max(matrix.shape) > MAX_NEURONS:
        raise InputError(f"{matrix.where}: shape {matrix.shape} is too large: at most {MAX_NEURONS} neurons")
    bad = np.flatnonzero(
        (matrix.rows < 0) | (matrix.rows >= n_rows) | (matrix.columns < 0) | (matrix.columns >= n_columns)
    )
    if bad.size:
        raise InputError(f"{matrix.name_entry(int(bad[0]))} lies outside the shape {matrix.shape}")
    float32_values(matrix)
    pair = matrix.rows * n_columns + matrix.columns
    if not (np.diff(pair) > 0).all() and (np.diff(np.sort(pair)) == 0).any():
        by_pair = np.argsort(pair, kind="stable")
        again = by_pair[1:][np.diff(pair[by_pair]) == 0].min()
        raise InputError(f"{matrix.name_entry(int(again))} is there twice: every connection may appear once")


def float32_values(matrix: Matrix) -> npt.NDArray[np.float32]:
    if matrix.values is None:
        return np.ones(len(matrix.rows), np.float32)
    return as_float32(matrix.values, matrix.where, matrix.name_entry)


def as_float32(values: npt.NDArray[Any], where: str, entry: Callable[[int], str]) -> npt.NDArray[np.float32]:
    """Return weights as float32. Raises InputError naming the entry that is no finite one, and for other types."""
    if values.dtype != bool and not is_real(values.dtype):
        raise InputError(f"{where}: weights must be real numbers, not {values.dtype}")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
        single = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(single))
    if bad.size:
        raise InputError(f"{entry(int(bad[0]))} is {values.flat[bad[0]]}: not a finite float32 number")
    return single
