"""Tensors as the bytes that travel: as they are stored, or converted chunk by chunk.

Formats: `as-stored`; `bf16`; `fp8` (E4M3); `int8`, a float32 scale before each row; `int4`, groups of 32 values of a
row behind a float16 scale (blocks of 18 bytes, as in ggml's Q4_0; codes are two's complement). Matrices of floats are
converted; vectors of floats (norms, biases) become bf16; integers, quantised and packed tensors stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, unknown_name
from traces.base.memory import claim
from traces.checkpoints.token_plan import TokenRead
from traces.formats.convert import pack
from traces.formats.format import FORMATS

AS_STORED = "as-stored"
STREAM_FORMATS = {AS_STORED: "", "bf16": "bf16", "fp8": "fp8_e4m3", "int8": "int8", "int4": "int4"}
"""Names of what is streamed -> number formats of the values."""
LAYOUTS = ("plain", "byte-planes")
GROUP = 32  # values under one scale of int4
PLANE = 4096  # values whose high bytes stand together in byte-planes
CHUNK_BYTES = 1 << 22  # of a tensor that are read together
_FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_PACKED = ("scale", "scales", "zero_point", "qzeros", "g_idx", "packed", "absmax", "compressed", "bitmask", "quant_map")
_TAKES = 40  # bytes of memory for a value under conversion

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class TensorStream:
    """How tensors become bytes. format: one of STREAM_FORMATS. layout: `byte-planes` sends of each 4,096 values of
    bf16 or fp16 the high bytes (sign and exponent) first, then the low ones. Raises InputError for other names."""

    format: str = AS_STORED
    layout: str = "plain"

    def __post_init__(self) -> None:
        if self.format not in STREAM_FORMATS:
            raise unknown_name("format of a token", self.format, STREAM_FORMATS)
        if self.layout not in LAYOUTS:
            raise unknown_name("layout", self.layout, LAYOUTS)

    def format_of(self, read: TokenRead) -> str:
        """Return the number format that a tensor is converted to, '' where it stays as it is stored."""
        tensor = read.tensor
        if tensor is None or self.format == AS_STORED or tensor.kind not in _FLOATS or _is_packed(tensor.name):
            return ""
        wanted = STREAM_FORMATS[self.format] if len(tensor.shape) > 1 else "bf16"
        return "" if (wanted, tensor.kind) == ("bf16", "BF16") else wanted

    def chunks(self, read: TokenRead) -> Iterator[Bytes]:
        """Yield the bytes of a read, uint8[n] each. Raises InputError for a damaged file or a value not finite."""
        if read.tensor is None or not read.matrix[0]:
            return
        row_bytes = (read.tensor.stop - read.tensor.start) // read.matrix[0]
        to, columns = self.format_of(read), read.matrix[1]
        for first, last in read.rows:
            if not to:
                for at in range(first * row_bytes, last * row_bytes, CHUNK_BYTES):
                    raw = read.tensor.read(at, min(CHUNK_BYTES, last * row_bytes - at))
                    yield self._laid_out(np.frombuffer(raw, np.uint8), read.tensor.kind)
                continue
            step = max(1, CHUNK_BYTES // max(1, row_bytes))
            for row in range(first, last, step):
                stop = min(row + step, last)
                raw = read.tensor.read(row * row_bytes, (stop - row) * row_bytes)
                where = f"{read.tensor.file}: tensor {read.name!r}"
                claim(_TAKES * columns * (stop - row), where)
                words = np.frombuffer(raw, _float_dtype(read.tensor.kind)).reshape(stop - row, columns)
                yield self._laid_out(converted(words, to, where), "BF16" if to == "bf16" else to)

    def _laid_out(self, data: Bytes, kind: str) -> Bytes:
        if self.layout == "plain" or kind not in ("BF16", "F16"):
            return data
        whole = len(data) // (2 * PLANE) * 2 * PLANE
        body = data[:whole].reshape(-1, PLANE, 2)[..., ::-1].transpose(0, 2, 1).reshape(-1)
        tail = data[whole:].reshape(-1, 2)[..., ::-1].T.reshape(-1)
        return np.concatenate((body, tail))


def _is_packed(name: str) -> bool:
    """Whether a tensor belongs to a quantised or sparse one, whose bits are to stay."""
    last = name.rpartition(".")[2].rpartition(":")[2]
    return any(part in last for part in _PACKED)


@cache
def _float_dtype(kind: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, _FLOATS[kind], _FLOATS[kind]))


def converted(values: npt.NDArray[Any], to: str, where: str = "values") -> Bytes:
    """Return the bytes of values[rows, columns] of a floating-point type in a number format, row by row.

    int8 and int4 have their scales before their values. Raises InputError for integers of values that are not finite.
    """
    form = FORMATS[to].item
    if not form.needs_scale:
        if values.dtype.itemsize == 2:  # 65,536 values there are
            return _table(values.dtype, to)[values.view(np.uint16)].reshape(-1).view(np.uint8)
        return _encoded(values, to).reshape(-1).view(np.uint8)
    size = values.shape[1] if to == "int8" else GROUP
    scale_type = np.dtype("<f4") if to == "int8" else np.dtype("<f2")
    whole = values.shape[1] // size * size if size else 0
    pieces = [values[:, :whole].reshape(len(values), -1, size)] if whole else []
    if whole < values.shape[1]:
        pieces.append(values[:, None, whole:])
    made = [_groups(piece.astype(np.float32), to, scale_type, where) for piece in pieces]
    return np.concatenate(made, axis=1).reshape(-1) if made else np.zeros(0, np.uint8)


def _groups(values: npt.NDArray[np.float32], to: str, scale_type: np.dtype[Any], where: str) -> Bytes:
    """Return groups[rows, n, size] as bytes[rows, n * (scale and codes)]."""
    form = FORMATS[to].item
    largest = np.abs(values).max(axis=2, keepdims=True, initial=0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (largest / form.code_max).astype(scale_type)
    if not np.isfinite(scale).all():
        raise InputError(f"{where} holds a value that is not finite, or too large for the scales of {to}")
    step = np.where(scale > 0, scale.astype(np.float32), np.float32(np.inf))  # all codes 0 where the scale is
    codes = form.encode(values / step, np.float32(1.0))[0]  # type: ignore[arg-type]
    rows, n, size = codes.shape
    if form.bits < 8 and size % 2:
        codes = np.concatenate((codes, np.zeros((rows, n, 1), codes.dtype)), axis=2)
    packed = pack(codes, to).reshape(rows, n, -1)
    return np.concatenate((scale.view(np.uint8).reshape(rows, n, -1), packed), axis=2).reshape(rows, -1)


def _encoded(values: npt.NDArray[Any], to: str) -> npt.NDArray[Any]:
    form = FORMATS[to].item
    shape = values.shape
    with np.errstate(over="ignore", invalid="ignore"):
        return form.encode(values.astype(np.float64).reshape(-1), None)[0].reshape(shape)


@cache
def _table(dtype: np.dtype[Any], to: str) -> npt.NDArray[Any]:
    """Return the bits in a format of each of the 65,536 values of a type of 16 bits."""
    return _encoded(np.arange(1 << 16, dtype=np.uint16).view(dtype), to)
