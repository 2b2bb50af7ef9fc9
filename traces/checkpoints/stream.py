"""Tensors as the bytes that travel: as they are stored, or converted chunk by chunk.

Formats: `as-stored`; `bf16`; `fp8` (E4M3); `int8`, a float32 scale before each row; `int4`, groups of 32 values of a
row behind a float16 scale (blocks of 18 bytes, as in ggml's Q4_0; codes are two's complement). Matrices of floats are
converted; vectors of floats (norms, biases) become bf16; integers, quantised and packed tensors stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, unknown_name
from traces.base.memory import claim
from traces.checkpoints.token_plan import TokenRead
from traces.formats.convert import pack
from traces.formats.format import FORMATS
from traces.readers.parts.weights import FLOATS, dtype_of

AS_STORED, VECTORS = "as-stored", "bf16"


@dataclass(frozen=True)
class StreamFormat:
    """A number format and its scales: one of `scale` (NumPy's name; '' for none) before each `group` values of a row
    (0: before the whole row)."""

    values: str
    scale: str = ""
    group: int = 0


STREAM_FORMATS: dict[str, StreamFormat | None] = {
    AS_STORED: None,
    "bf16": StreamFormat("bf16"),
    "fp8": StreamFormat("fp8_e4m3"),
    "int8": StreamFormat("int8", "<f4"),
    "int4": StreamFormat("int4", "<f2", 32),
}
LAYOUTS = ("plain", "byte-planes", "bit-planes")
PLANE = 4096  # values whose high bytes, or bits of one place, stand together
CHUNK_BYTES = 1 << 20  # of a tensor that are read together
IN_CACHE = 1 << 17  # values that are converted together: what becomes of them on the way stays in the cache
PIECE_BYTES = 1 << 12
"""Whole bursts of every part: a tensor that is sent in pieces is cut at multiples of it."""
_SIZES = {"F64": 4, "F32": 4, "F16": 2, "BF16": 2}  # of floats; of F64 as two of four bytes
_PACKED = ("scale", "scales", "zero_point", "qzeros", "g_idx", "packed", "absmax", "compressed", "bitmask", "quant_map")
_TAKES = 40  # bytes of memory for a value under conversion

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class TensorStream:
    """How tensors become bytes. format: one of STREAM_FORMATS. layout: of each 4,096 values of bf16 or fp16
    `byte-planes` sends the high bytes (sign and exponent) first, then the low ones; `bit-planes` all signs, then the
    bits of the next place, and so on. What is left at the end of a tensor are byte planes. Raises InputError for other
    names."""

    format: str = AS_STORED
    layout: str = "plain"

    def __post_init__(self) -> None:
        if self.format not in STREAM_FORMATS:
            raise unknown_name("format of a token", self.format, STREAM_FORMATS)
        if self.layout not in LAYOUTS:
            raise unknown_name("layout", self.layout, LAYOUTS)

    def format_of(self, read: TokenRead) -> StreamFormat | None:
        tensor, target = read.tensor, STREAM_FORMATS[self.format]
        if tensor is None or target is None or tensor.kind not in _SIZES or _is_packed(tensor.name):
            return None
        target = target if len(tensor.shape) > 1 else StreamFormat(VECTORS)
        return None if FLOATS.get(tensor.kind, ("",))[0] == target.values else target

    def element_bytes(self, reads: Sequence[TokenRead]) -> int:
        sums = {1: 0, 2: 0, 4: 0}
        for read in reads:
            if read.tensor is not None:
                to = self.format_of(read)
                bits = FORMATS[to.values].item.bits if to else 8 * _SIZES.get(read.tensor.kind, 1)
                sums[min(max(bits // 8, 1), 4)] += read.stored_bytes
        return max(sums, key=lambda size: sums[size])

    def sent_bytes(self, read: TokenRead) -> int:
        to, columns = self.format_of(read), read.matrix[1]
        if to is None or read.tensor is None:
            return read.stored_bytes
        bits, size = FORMATS[to.values].item.bits, to.group or max(columns, 1)
        groups = [size] * (columns // size) + [columns % size] * (columns % size > 0)
        scale = np.dtype(to.scale).itemsize if to.scale else 0
        return sum(last - first for first, last in read.rows) * sum(scale + -(-n * bits // 8) for n in groups)

    def end(self, read: TokenRead, count: int) -> bytes:
        sent, (first, last) = self.sent_bytes(read), read.rows[-1]
        if read.tensor is not None and self.format_of(read) is None and last - first == read.matrix[0]:
            return read.tensor.read(max(sent - count, 0), min(count, sent))
        rows = sum(last - first for first, last in read.rows)
        target, ranges = -(-count * rows // max(sent, 1)), list[tuple[int, int]]()
        for first, last in reversed(read.rows):
            if target > 0:
                ranges.insert(0, (max(first, last - target), last))
                target -= last - first
        return b"".join(chunk.tobytes() for chunk in self.chunks(replace(read, rows=tuple(ranges))))[-count:]

    def chunks(self, read: TokenRead) -> Iterator[Bytes]:
        """Yield the bytes of a read, uint8[n] each. Raises InputError for a damaged file or a value not finite."""
        if read.tensor is None or not read.matrix[0]:
            return
        row_bytes = (read.tensor.stop - read.tensor.start) // read.matrix[0]
        to, columns = self.format_of(read), read.matrix[1]
        for first, last in read.rows:
            if to is None:
                for at in range(first * row_bytes, last * row_bytes, CHUNK_BYTES):
                    raw = read.tensor.read(at, min(CHUNK_BYTES, last * row_bytes - at))
                    yield self._laid_out(np.frombuffer(raw, np.uint8), read.tensor.kind in ("BF16", "F16"))
                continue
            step = max(1, CHUNK_BYTES // max(1, row_bytes))
            for row in range(first, last, step):
                stop = min(row + step, last)
                raw = read.tensor.read(row * row_bytes, (stop - row) * row_bytes)
                where = f"{read.tensor.file}: tensor {read.name!r}"
                claim(_TAKES * columns * (stop - row), where)
                words = np.frombuffer(raw, dtype_of(read.tensor.kind)).reshape(stop - row, columns)
                yield self._laid_out(converted(words, to, where), FORMATS[to.values].item.bits == 16)

    def _laid_out(self, data: Bytes, of_two_bytes: bool) -> Bytes:
        if self.layout == LAYOUTS[0] or not of_two_bytes:
            return data
        whole = len(data) // (2 * PLANE) * 2 * PLANE
        body = data[:whole].reshape(-1, PLANE, 2)[..., ::-1].transpose(0, 2, 1).reshape(-1)
        if self.layout == "bit-planes":
            body = transposed_bits(body).reshape(-1, PLANE // 8, 8)[..., ::-1].transpose(0, 2, 1).reshape(-1)
        tail = data[whole:].reshape(-1, 2)[..., ::-1].T.reshape(-1)
        return np.concatenate((body, tail))


def transposed_bits(data: Bytes) -> Bytes:
    """Return each eight bytes as a matrix of bits, transposed: bit i of byte k of eight is bit k of byte i.

    Warren, Hacker's Delight, 2nd ed., section 7-3.
    """
    words = data.view("<u8")
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
        moved = (words ^ words >> np.uint64(shift)) & np.uint64(mask)
        words = words ^ moved ^ moved << np.uint64(shift)
    return words.view(np.uint8)


def _is_packed(name: str) -> bool:
    """Whether a tensor belongs to a quantised or sparse one, whose bits are to stay."""
    last = name.rpartition(".")[2].rpartition(":")[2]
    return any(part in last for part in _PACKED)


def converted(values: npt.NDArray[Any], to: StreamFormat, where: str = "values") -> Bytes:
    """Return the bytes of values[rows, columns] of a floating-point type in a format, row by row."""
    if not to.scale:
        if values.dtype.itemsize == 2:  # 65,536 values there are
            return _table(values.dtype, to.values)[values.view(np.uint16)].reshape(-1).view(np.uint8)
        return _encoded(values, to.values).reshape(-1).view(np.uint8)
    rows, columns = values.shape
    size = to.group or columns
    whole = columns // size * size if size else 0
    ends = [(at, end) for at, end in ((0, whole), (whole, columns)) if at < end]
    made = []
    for row in range(0, rows if columns else 0, step := max(1, IN_CACHE // max(1, columns))):
        some = values[row : row + step]
        groups = [_groups(some[:, at:end].reshape(len(some), -1, min(size, end - at)), to, where) for at, end in ends]
        made.append(groups[0] if len(groups) == 1 else np.concatenate(groups, axis=1))
    return np.concatenate(made).reshape(-1) if made else np.zeros(0, np.uint8)


def _groups(values: npt.NDArray[Any], to: StreamFormat, where: str) -> Bytes:
    """Return groups[rows, n, size] as bytes[rows, n * (scale and codes)]."""
    form, (rows, n, size) = FORMATS[to.values].item, values.shape
    values = values.astype(np.float32)
    largest, left = np.abs(values).reshape(-1).view(np.int32), size  # which are ordered as their numbers are
    while left < 128 and left % 2 == 0:  # of short rows: five times as fast as `max` along them
        largest, left = np.maximum(largest[::2], largest[1::2]), left // 2
    most = largest.reshape(rows, n, left).max(axis=2, keepdims=True).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (most / form.code_max).astype(to.scale)
    if not np.isfinite(scale).all():
        raise InputError(f"{where} holds a value that is not finite, or too large for the scales of {to.values}")
    step = np.where(scale > 0, scale.astype(np.float32), np.float32(np.inf))  # all codes 0 where the scale is
    codes = form.encode(values, step)[0]
    if form.bits < 8 and size % 2:
        codes = np.concatenate((codes, np.zeros((rows, n, 1), codes.dtype)), axis=2)
    packed = pack(codes, to.values).reshape(rows * n, -1)
    made = np.empty(rows * n, [("scale", to.scale), ("codes", f"V{packed.shape[1]}")])
    made["scale"], made["codes"] = scale.reshape(-1), packed.view(made.dtype["codes"]).reshape(-1)
    return made.view(np.uint8).reshape(rows, -1)


def _encoded(values: npt.NDArray[Any], to: str) -> npt.NDArray[Any]:
    form = FORMATS[to].item
    shape = values.shape
    with np.errstate(over="ignore", invalid="ignore"):
        return form.encode(values.astype(np.float64).reshape(-1), None)[0].reshape(shape)


@cache
def _table(dtype: np.dtype[Any], to: str) -> npt.NDArray[Any]:
    return _encoded(np.arange(1 << 16, dtype=np.uint16).view(dtype), to)
