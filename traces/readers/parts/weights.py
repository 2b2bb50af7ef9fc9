"""Weights in safetensors shards, row by row: no more of a file is read than the rows that are asked for.

A model is one ``.safetensors`` file, or a folder with ``model.safetensors.index.json`` and its shards. A matrix in it:

- a dense tensor NAME [rows, columns], whose entries are its non-zeros,
- NAME.compressed, NAME.bitmask and NAME.shape: values and a bit for each place, the compressed-tensors formats
  sparse-bitmask and sparse-24-bitmask (2:4),
- NAME.values [blocks, height, width], NAME.crow_indices, NAME.col_indices and NAME.shape: blocks, named as in PyTorch,
- NAME.data, NAME.indices, NAME.indptr and NAME.shape: CSR, as SciPy names it.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, brief, did_you_mean
from traces.base.memory import claim, read_within
from traces.base.sparse import row_pointers
from traces.readers.parts.layers import natural_key

Int64Array = npt.NDArray[np.int64]

INDEX = "model.safetensors.index.json"
FLOATS = {"F32": ("fp32", "<u4"), "F16": ("fp16", "<u2"), "BF16": ("bf16", "<u2")}
"""Types of values -> number format, and the words of their bits."""
_INTEGERS = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8"}
_SIZES = {"F64": 8, "F8_E4M3": 1, "F8_E5M2": 1, "I8": 1, "BOOL": 1} | {
    name: np.dtype(kind).itemsize for name, kind in {**_INTEGERS, **{k: v[1] for k, v in FLOATS.items()}}.items()
}
# safetensors' types of values and numbers -> NumPy's (the small floats are ml_dtypes')
TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn"}
TYPES |= {"F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8"}
TYPES |= {"U8": "uint8", "BOOL": "bool"}
_MOST_ELEMENTS = 1 << 60
_MOST_HEADER = 100 << 20  # bytes, as safetensors itself allows
_HEADER_TAKES = 32  # bytes of memory for one of a header, read as JSON
_ROW_TAKES = 32  # bytes of memory for a row, its pointer and what finds it
_COUNTED_BYTES = 1 << 24  # of a dense tensor that are looked at together


@cache
def dtype_of(kind: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, TYPES[kind], TYPES[kind])).newbyteorder("<")


@dataclass(frozen=True)
class StoredTensor:
    """One tensor: bytes [start, stop) of a file."""

    file: Path
    name: str
    kind: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def words(self, first: int, last: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize
        return np.frombuffer(self.read(first * size, (last - first) * size), dtype)

    def read(self, at: int, count: int) -> bytes:
        claim(count, str(self.file), f"{count} bytes of {self.name!r}")
        try:
            with open(self.file, "rb") as stream:
                stream.seek(self.start + at)
                raw = stream.read(count)
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read ({error.strerror or error})") from error
        if len(raw) != count:
            raise InputError(f"{self.file}: ends inside tensor {self.name!r}: damaged")
        return raw

    def integers(self, first: int = 0, last: int | None = None) -> Int64Array:
        if self.kind not in _INTEGERS:
            raise InputError(f"{self.file}: tensor {self.name!r} is {self.kind}: whole numbers are wanted")
        numbers = self.words(first, math.prod(self.shape) if last is None else last, _INTEGERS[self.kind])
        if self.kind == "U64" and numbers.size and numbers.max() >= 2**63:
            raise InputError(f"{self.file}: tensor {self.name!r} holds a number beyond 64 bits with sign")
        return numbers.astype(np.int64)


def read_header(file: Path) -> dict[str, StoredTensor]:
    try:
        with open(file, "rb") as stream:
            total = stream.seek(0, 2)
            stream.seek(0)
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= min(total - 8, _MOST_HEADER):
                raise InputError(f"{file}: damaged or not a safetensors file (a header of {length} bytes)")
            claim(_HEADER_TAKES * length, str(file), "its header")
            header = json.loads(stream.read(length), object_pairs_hook=_once_each)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: damaged or not a safetensors file ({brief(error)})") from error
    tensors = {}
    try:
        for name, facts in header.items():
            if name != "__metadata__":
                shape = _counts(facts["shape"])
                start, stop = _counts(facts["data_offsets"])
                tensors[name] = StoredTensor(
                    file, name, str(facts["dtype"]), shape, 8 + length + start, 8 + length + stop
                )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file}: damaged or not a safetensors file ({brief(error)})") from error
    for each in tensors.values():
        size = _SIZES.get(each.kind)
        fits = size is None or math.prod(each.shape) * size == each.stop - each.start
        fits = fits and math.prod(max(1, side) for side in each.shape) < _MOST_ELEMENTS  # or NumPy has no such shape
        if not (8 + length <= each.start <= each.stop <= total and fits):
            raise InputError(f"{file}: the place of tensor {each.name!r} does not fit its shape or the file: damaged")
    check_no_overlap(tensors.values(), file)
    return tensors


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("its header gives a name twice")
    return found


def check_no_overlap(tensors: Iterable[StoredTensor], file: Path) -> None:
    by_offset = sorted(tensors, key=lambda each: (each.start, each.stop))
    for one, other in pairwise(by_offset):
        if other.start < one.stop:
            raise InputError(f"{file}: tensors {one.name!r} and {other.name!r} lie on each other: damaged")


def _counts(given: Any) -> tuple[int, ...]:
    if type(given) is not list or len(given) > 64 or any(type(n) is not int or not 0 <= n < 2**63 for n in given):
        raise ValueError("a shape or a place is not a list of sizes")
    return tuple(given)


class RowMatrix(ABC):
    tensors: ClassVar[tuple[str, ...]] = ()  # what stands behind NAME

    def __init__(self, name: str, shape: tuple[int, int], values: StoredTensor) -> None:
        self.name, self.shape, self.values = name, shape, values
        if values.kind not in FLOATS:
            raise InputError(
                f"{values.file}: tensor {values.name!r} is {values.kind}: weights of {', '.join(FLOATS)} are ordered"
            )
        self.value_format, self.word = FLOATS[values.kind]
        claim(_ROW_TAKES * (shape[0] + 1), str(values.file), f"{shape[0]} rows of {name!r}")

    @cached_property
    @abstractmethod
    def pointers(self) -> Int64Array:
        """int64[rows + 1]: how many entries stand before each row. Raises InputError where they are not pointers."""

    @abstractmethod
    def entries(self, first: int, last: int) -> tuple[Int64Array, npt.NDArray[Any]]:
        """Return (columns int64[n], bits uint16 or uint32[n]) of rows [first, last), row by row."""

    def _checked(self, pointers: Int64Array, rows: int, count: int) -> Int64Array:
        return row_pointers(pointers, rows, count, f"{self.values.file}: {self.name!r}: its array of row pointers")


class Dense(RowMatrix):
    """NAME [rows, columns]; zeros of either sign are no entries."""

    def _pieces(self, first: int, last: int) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]]:
        columns, word = self.shape[1], np.dtype(self.word)
        for start, stop in _parts(first, last, columns * word.itemsize):
            words = self.values.words(start * columns, stop * columns, word)
            yield words, (words & word.type(np.iinfo(word).max >> 1)) != 0

    @cached_property
    def pointers(self) -> Int64Array:
        rows, columns = self.shape
        if not columns:
            return np.zeros(rows + 1, np.int64)
        counts = [np.count_nonzero(kept.reshape(-1, columns), axis=1) for _, kept in self._pieces(0, rows)]
        return np.concatenate(([0], np.cumsum(np.concatenate([*counts, np.zeros(0, np.int64)])))).astype(np.int64)

    def entries(self, first: int, last: int) -> tuple[Int64Array, npt.NDArray[Any]]:
        columns, values = [np.zeros(0, np.int64)], [np.zeros(0, self.word)]
        for words, kept in self._pieces(first, last):
            at = np.flatnonzero(kept)
            columns.append(at % max(1, self.shape[1]))
            values.append(words[at])
        return np.concatenate(columns), np.concatenate(values)


def _parts(first: int, last: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that are looked at together: what is not kept of them takes no memory."""
    step = max(1, _COUNTED_BYTES // max(1, row_bytes))
    return ((at, min(at + step, last)) for at in range(first, last, step))


class Bitmask(RowMatrix):
    """NAME.compressed: values; NAME.bitmask uint8[rows, ceil(columns / 8)]: bit k % 8 of byte k // 8 is column k."""

    tensors = ("compressed", "bitmask", "shape")

    def __init__(self, name: str, parts: Mapping[str, StoredTensor]) -> None:
        super().__init__(name, _shape(parts["shape"]), parts["compressed"])
        self.mask = parts["bitmask"]
        width = -(-self.shape[1] // 8)
        if self.mask.kind != "U8" or math.prod(self.mask.shape) != self.shape[0] * width:
            raise InputError(f"{self.mask.file}: tensor {self.mask.name!r} has no bit for each place: damaged")
        self.width = width

    @cached_property
    def pointers(self) -> Int64Array:
        bits = self._bits(0, self.shape[0])
        counts = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
        if self.shape[1] % 8 and (bits[:, -1] >> (self.shape[1] % 8)).any():
            raise InputError(f"{self.mask.file}: tensor {self.mask.name!r} has bits beyond the last column: damaged")
        pointers = np.concatenate(([0], np.cumsum(counts)))
        return self._checked(pointers, self.shape[0], math.prod(self.values.shape))

    def _bits(self, first: int, last: int) -> npt.NDArray[np.uint8]:
        return self.mask.words(first * self.width, last * self.width, "u1").reshape(last - first, self.width)

    def entries(self, first: int, last: int) -> tuple[Int64Array, npt.NDArray[Any]]:
        columns = [np.zeros(0, np.int64)]
        for part in _parts(first, last, 8 * self.width):
            bits = np.unpackbits(self._bits(*part), axis=1, bitorder="little")[:, : self.shape[1]]
            columns.append(np.flatnonzero(bits) % max(1, self.shape[1]))
        return np.concatenate(columns), self.values.words(
            int(self.pointers[first]), int(self.pointers[last]), self.word
        )


class CsrArrays(RowMatrix):
    """NAME.data, NAME.indices, NAME.indptr; the order of a row's entries is that of the file."""

    tensors = ("data", "indices", "indptr", "shape")

    def __init__(self, name: str, parts: Mapping[str, StoredTensor]) -> None:
        super().__init__(name, _shape(parts["shape"]), parts["data"])
        self.indices, self.indptr = parts["indices"], parts["indptr"]
        if self.indices.shape != self.values.shape:
            raise InputError(f"{self.values.file}: {name!r}: {self.indices.shape} ids, {self.values.shape} values")

    @cached_property
    def pointers(self) -> Int64Array:
        return self._checked(self.indptr.integers(), self.shape[0], math.prod(self.values.shape))

    def entries(self, first: int, last: int) -> tuple[Int64Array, npt.NDArray[Any]]:
        start, stop = int(self.pointers[first]), int(self.pointers[last])
        columns = self.indices.integers(start, stop)
        if columns.size and (columns.min() < 0 or columns.max() >= self.shape[1]):
            raise InputError(f"{self.indices.file}: {self.name!r}: a column outside 0 to {self.shape[1] - 1}: damaged")
        return columns, self.values.words(start, stop, self.word)


class Blocks(RowMatrix):
    """NAME.values [blocks, height, width], NAME.crow_indices, NAME.col_indices; zeros inside a block are entries."""

    tensors = ("values", "crow_indices", "col_indices", "shape")

    def __init__(self, name: str, parts: Mapping[str, StoredTensor]) -> None:
        super().__init__(name, _shape(parts["shape"]), parts["values"])
        if len(self.values.shape) != 3 or min(self.values.shape[1:]) < 1:
            raise InputError(f"{self.values.file}: tensor {self.values.name!r} is not a list of blocks: damaged")
        _, self.height, self.width = self.values.shape
        if self.shape[0] % self.height or self.shape[1] % self.width:
            raise InputError(
                f"{self.values.file}: {name!r} of {self.shape} are not whole blocks of {self.values.shape[1:]}"
            )
        self.columns, self.rows = parts["col_indices"], parts["crow_indices"]

    @cached_property
    def block_rows(self) -> Int64Array:
        """int64[block rows + 1]: how many blocks stand before each row of blocks."""
        if math.prod(self.columns.shape) != self.values.shape[0]:
            raise InputError(f"{self.columns.file}: {self.name!r}: its column ids do not fit its blocks: damaged")
        return self._checked(self.rows.integers(), self.shape[0] // self.height, self.values.shape[0])

    @cached_property
    def pointers(self) -> Int64Array:
        lengths = np.repeat(np.diff(self.block_rows) * self.width, self.height)
        return np.concatenate(([0], np.cumsum(lengths)))

    def entries(self, first: int, last: int) -> tuple[Int64Array, npt.NDArray[Any]]:
        columns: list[Int64Array] = []
        words: list[npt.NDArray[Any]] = []
        size = self.height * self.width
        for row in range(first // self.height, -(-last // self.height)):
            start, stop = int(self.block_rows[row]), int(self.block_rows[row + 1])
            if start == stop:
                continue
            blocks = self.columns.integers(start, stop)
            if blocks.min() < 0 or blocks.max() >= self.shape[1] // self.width:
                raise InputError(f"{self.columns.file}: {self.name!r}: a block outside the matrix: damaged")
            values = self.values.words(start * size, stop * size, self.word).reshape(-1, self.height, self.width)
            line = (blocks[:, None] * self.width + np.arange(self.width)).ravel()
            for k in range(max(first - row * self.height, 0), min(last - row * self.height, self.height)):
                columns.append(line)
                words.append(values[:, k].ravel())
        return np.concatenate([*columns, np.zeros(0, np.int64)]), np.concatenate([*words, np.zeros(0, self.word)])


_FORMS = (Bitmask, CsrArrays, Blocks)


def _shape(tensor: StoredTensor) -> tuple[int, int]:
    sizes = tensor.integers(0, min(math.prod(tensor.shape), 8)).tolist()
    if len(sizes) != 2 or min(sizes) < 0:
        raise InputError(f"{tensor.file}: tensor {tensor.name!r} is {sizes}: a matrix has rows and columns")
    return sizes[0], sizes[1]


class ModelWeights:
    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.folder = path if path.is_dir() else path.parent
        index = path / INDEX if path.is_dir() else path
        if index.name.endswith(".index.json") and index.is_file():
            self.files = _shards(index)
        else:
            found = sorted(path.glob("*.safetensors"), key=lambda file: natural_key(file.name))
            self.files = found if path.is_dir() else [path]
        for file in self.files:
            if not file.is_file():  # a pipe would keep who opens it
                raise InputError(f"{file}: {'no regular file' if file.exists() else 'no such file'}")
        if not self.files:
            raise InputError(f"{path}: holds no {INDEX} and no .safetensors file")
        self.tensors: dict[str, StoredTensor] = {}
        for file in self.files:
            for name, tensor in read_header(file).items():
                if name in self.tensors:
                    raise InputError(f"{file}: tensor {name!r} is also in {self.tensors[name].file.name}")
                self.tensors[name] = tensor

    def parts(self, name: str) -> list[str]:
        if name in self.tensors:
            return [name] if len(self.tensors[name].shape) == 2 else []
        form = self._form(name)
        offsets = (f"{name}.row_offsets",) if form is Bitmask and f"{name}.row_offsets" in self.tensors else ()
        return [*(f"{name}.{part}" for part in form.tensors), *offsets] if form else []

    def _form(self, name: str) -> type[Bitmask] | type[CsrArrays] | type[Blocks] | None:
        return next((f for f in _FORMS if all(f"{name}.{part}" in self.tensors for part in f.tensors)), None)

    def names(self) -> list[str]:
        names = set()
        for name, tensor in self.tensors.items():
            stem, _, part = name.rpartition(".")
            if any(part == form.tensors[0] for form in _FORMS) and self.parts(stem):
                names.add(stem)
            elif len(tensor.shape) == 2 and tensor.kind in FLOATS:
                names.add(name)
        inside = {part for name in names for part in self.parts(name) if part != name}
        return sorted(names - inside, key=natural_key)

    def matrix(self, name: str) -> RowMatrix:
        tensor = self.tensors.get(name)
        if tensor is not None and len(tensor.shape) == 2:
            return Dense(name, (tensor.shape[0], tensor.shape[1]), tensor)
        if (form := self._form(name)) is None:
            raise InputError(f"{self.folder}: no matrix {name!r}{did_you_mean(name, self.names())}")
        return form(name, {part: self.tensors[f"{name}.{part}"] for part in form.tensors})


def _shards(index: Path) -> list[Path]:
    try:
        weight_map = json.loads(read_within(index, _HEADER_TAKES))["weight_map"]
        names: Sequence[str] = sorted({str(name) for name in weight_map.values()}, key=natural_key)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{index}: no index of shards ({brief(error)})") from error
    for name in names:
        if Path(name).name != name or len(name) > 200 or not (index.parent / name).is_file():  # .partial has room
            raise InputError(f"{index}: names the shard {name!r}, which is not a file beside it")
        if not name.endswith(".safetensors"):  # under its name it is written, too: beside the journal and the index
            raise InputError(f"{index}: names the shard {name!r}: the name of a shard ends in .safetensors")
    return [index.parent / name for name in names]
