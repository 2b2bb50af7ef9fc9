"""SCALE-Sim runs: the DRAM traces of every layer and tensor, with the byte behind each word.

A run is the folder `<out>/<run_name>` of SCALE-Sim 2 or 3: layerN/{IFMAP,FILTER,OFMAP}_DRAM_TRACE.csv (or .csv.gz), and
its configuration. Words are bytes; each (layer, tensor) gets a base address of its own.

Reads of `InterfaceBandwidth: CALC` runs are padded with 1 where -1 is meant: words outside the tensor are dropped, and
where 1 lies inside it, what a row ends in is padding, but for one 1 of a row that came out one word shorter than both
of its neighbours. Under `ws` and `is` the n-th write of an output is the n-th partial sum, which the caller gives.
"""

from __future__ import annotations

import configparser
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traces.base.checks import is_whole, plain_digits
from traces.base.errors import InputError, brief, shown
from traces.base.files import named_fields
from traces.base.memory import claim, read_within
from traces.trace.chunks import Chunk, Memory, Trace

TENSORS = ("ifmap", "filter", "ofmap")
STREAM = {"ifmap": 3, "filter": 0, "ofmap": 5}  # inputs, values, outputs of traces.trace.chunks.STREAMS
_AT_ONCE, _LONGEST_ROW = 1 << 18, 1 << 22  # bytes of a trace or a tensor
_BYTES_READ, _BYTES_HELD = 64, 32  # of memory: a word while its trace is read, and one that moved, as it stays
_PAGE = 4096  # bytes: a tensor begins at a multiple


@dataclass(frozen=True, eq=False)
class TensorTraffic:
    """What one layer moved of one tensor, in file order, row by row.

    cycle int64[n] (array clocks of the layer, the first prefetches negative), row int64[n] (row of the file, 0 of a
    walk), word int64[n] (from 0), data uint8[n] (its true byte). tensor_words: size of the tensor.
    """

    layer: int
    tensor: str
    is_write: bool
    tensor_words: int
    cycle: np.ndarray
    row: np.ndarray
    word: np.ndarray
    data: np.ndarray

    @property
    def missing(self) -> int:
        return self.tensor_words - len(np.unique(self.word))

    @property
    def ones(self) -> int:
        return _ones(self.data)


def read_run(
    folder: str | Path,
    tensors: Mapping[str, np.ndarray],
    *,
    partials: Mapping[str, np.ndarray] | None = None,
    configuration: str | Path | None = None,
) -> list[TensorTraffic]:
    """Return the traffic of every layer and tensor of a run.

    tensors: layerN_ifmap [h, w, c], layerN_filter [f, r, s, c], layerN_ofmap [oy, ox, f], bytes (int8 or uint8), as
    np.load gives them. partials: layerN_partial [n, oy*OW + ox, f], needed where an output is written more than once.
    configuration: the .cfg file; None takes the only one in the folder.
    """
    folder = Path(folder)
    offsets, padded = _configuration(folder, configuration)
    layers = sorted(int(p.name[5:]) for p in folder.glob("layer*") if is_whole(p.name[5:]) and p.is_dir())
    if not layers:
        raise InputError(f"{folder}: no folders layer0, layer1 ...: give the folder of one SCALE-Sim run")
    traffic: list[TensorTraffic] = []
    for layer in layers:
        for tensor in TENSORS:
            given = _bytes_of(tensors, f"layer{layer}_{tensor}")
            path = _trace_file(folder / f"layer{layer}", tensor)
            cycle, words = _read_rows(path, sum(len(each.word) for each in traffic))
            word = words - offsets[tensor]
            kept = (words != -1) & (word >= 0) & (word < len(given))
            if padded and tensor != "ofmap" and 0 <= 1 - offsets[tensor] < len(given):
                kept &= ~_padding(words)
            row, column = np.nonzero(kept)
            moved = word[row, column]
            data = given[moved]
            if tensor == "ofmap" and partials is not None and f"layer{layer}_partial" in partials:
                data = _partial_bytes(moved, partials[f"layer{layer}_partial"], len(given), path)
            elif tensor == "ofmap" and len(np.unique(moved)) < len(moved):
                raise InputError(f"{path}: outputs are written more than once: give the partial sums (partials=)")
            traffic.append(TensorTraffic(layer, tensor, tensor == "ofmap", len(given), cycle[row], row, moved, data))
    return traffic


def base_addresses(traffic: Sequence[TensorTraffic]) -> dict[tuple[int, str], int]:
    bases, at = {}, 0
    for each in traffic:
        bases[each.layer, each.tensor] = at
        at += -(-each.tensor_words // _PAGE) * _PAGE
    return bases


def as_trace(traffic: Sequence[TensorTraffic], *, burst_bytes: int, bases: Mapping[tuple[int, str], int]) -> Trace:
    """Return the traffic as a trace with payload: words that follow each other in a row and lie in one burst are one
    access (the tool itself has no bursts). Layers follow each other; inside a layer accesses go by cycle, then by
    tensor and file order. cycle: array clocks from 0, to be taken as clocks of the memory.
    """
    end = max((bases[each.layer, each.tensor] + each.tensor_words for each in traffic), default=0)
    image = np.zeros(-(-max(end, 1) // burst_bytes) * burst_bytes, np.uint8)
    for each in traffic:
        if not each.is_write:
            image[bases[each.layer, each.tensor] + each.word] = each.data

    def chunks() -> Iterator[Chunk]:
        begin = 0
        for layer in sorted({each.layer for each in traffic}):
            mine = [each for each in traffic if each.layer == layer]
            first = min((int(each.cycle.min()) for each in mine if len(each.cycle)), default=0)
            parts = [_accesses(each, bases[layer, each.tensor], burst_bytes) for each in mine]
            address, size, op, stream, cycle = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.argsort(cycle, kind="stable")
            given, size = np.cumsum(size) - size, size[order]
            offset = np.concatenate([[0], np.cumsum(size)])
            at = np.repeat(given[order] - offset[:-1], size) + np.arange(offset[-1])
            payload = np.concatenate([each.data for each in mine])[at]
            clock = begin + cycle[order] - first
            begin = int(clock[-1]) + 1 if len(clock) else begin
            address, size = address[order].astype(np.uint64), size.astype(np.uint16)
            yield Chunk(address, size, op[order], stream[order], offset, payload, clock)

    return Trace(chunks, Memory(0, len(image), image), None, {"source": "SCALE-Sim", "burst_bytes": burst_bytes})


def _accesses(each: TensorTraffic, base: int, burst_bytes: int) -> tuple[np.ndarray, ...]:
    address = base + each.word
    follows = (np.diff(address) == 1) & (np.diff(each.row) == 0) & (np.diff(address // burst_bytes) == 0)
    first = np.flatnonzero(np.append(True, ~follows)[: len(address)])
    size = np.diff(np.append(first, len(address)))
    op, stream = np.full(len(first), each.is_write, np.uint8), np.full(len(first), STREAM[each.tensor], np.uint8)
    return address[first], size, op, stream, each.cycle[first]


def _padding(words: np.ndarray) -> np.ndarray:
    if not len(words):
        return np.zeros(words.shape, bool)
    filled = words != 1
    length = np.where(filled.any(1), words.shape[1] - np.argmax(filled[:, ::-1], 1), 0)
    around = np.concatenate([[-1], length, [-1]])
    before, after = around[:-2], around[2:]
    before[0], after[-1] = after[0], before[-1]  # the first and the last row have one neighbour
    length = length + ((before == length + 1) & (after == length + 1))
    return np.asarray(np.arange(words.shape[1]) >= length[:, None])


def _partial_bytes(word: np.ndarray, partial: np.ndarray, tensor_words: int, path: Path) -> np.ndarray:
    sums = np.ascontiguousarray(partial).view(np.uint8).reshape(len(partial), -1)
    if partial.dtype.itemsize != 1 or sums.shape[1] != tensor_words:
        raise InputError(
            f"{path}: the partial sums must be bytes [n, positions, filters] of {tensor_words} outputs each"
        )
    order = np.argsort(word, kind="stable")
    nth = np.empty(len(word), np.int64)
    nth[order] = np.arange(len(word)) - np.searchsorted(word[order], word[order])
    if len(nth) and int(nth.max()) >= len(partial):
        raise InputError(f"{path}: an output is written {int(nth.max()) + 1} times, but there are {len(partial)} sums")
    return np.asarray(sums[nth, word])


def _bytes_of(tensors: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if name not in tensors:
        raise InputError(f"the tensors lack {name!r}")
    array = np.ascontiguousarray(tensors[name])
    if array.dtype.itemsize != 1:
        raise InputError(f"tensor {name!r} must have one byte per word, as SCALE-Sim counts, not {array.dtype}")
    return array.view(np.uint8).reshape(-1)


def _ones(data: np.ndarray) -> int:
    return sum(int(np.bitwise_count(data[at : at + _AT_ONCE]).sum()) for at in range(0, len(data), _AT_ONCE))


def _configuration(folder: Path, given: str | Path | None) -> tuple[dict[str, int], bool]:
    files = [Path(given)] if given is not None else sorted(folder.glob("*.cfg"))
    if len(files) != 1:
        raise InputError(
            f"{folder}: {len(files)} configurations (*.cfg): name one (--configuration FILE, configuration=)"
        )
    parser = configparser.ConfigParser(interpolation=None)  # ten deep, %(x)s grows without bound
    try:
        parser.read_string(read_within(files[0], 20).decode("utf-8"))
        offsets = {t: parser.getint("architecture_presets", f"{t.capitalize()}Offset") for t in TENSORS}
        padded = parser.get("run_presets", "InterfaceBandwidth", fallback="CALC").strip().upper() == "CALC"
    except (OSError, UnicodeDecodeError, configparser.Error, ValueError) as error:
        raise InputError(f"{files[0]}: not a SCALE-Sim configuration: {brief(error)}") from error
    for tensor, offset in offsets.items():
        if not 0 <= offset <= 1 << 62:
            raise InputError(f"{files[0]}: {tensor.capitalize()}Offset is {shown(offset)}: 0 to 2^62 is wanted")
    return offsets, padded


def _trace_file(folder: Path, tensor: str) -> Path:
    for ending in (".csv", ".csv.gz"):
        path = folder / f"{tensor.upper()}_DRAM_TRACE{ending}"
        if path.is_file():
            return path
    raise InputError(f"{folder}: {tensor.upper()}_DRAM_TRACE.csv is missing")


def _read_rows(path: Path, held: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int64[rows] cycles and int64[rows, columns] words, -1 for an empty slot. held: words read before."""
    parts: list[np.ndarray] = []
    n_rows, width, rest, block = 0, 0, b"", b"\n"
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while block:
                block = file.read(_AT_ONCE)
                *lines, rest = (rest + (block or b"\n")).split(b"\n")
                if len(rest) > _LONGEST_ROW:
                    raise InputError(f"{path}: a row of more than {_LONGEST_ROW} characters")
                rows = [row for line in lines if (row := line.strip())]
                width = width or len(rows[0].split(b",") if rows else b"")
                claim(
                    _BYTES_READ * width * (n_rows + len(rows)) + _BYTES_HELD * held + 64 * sum(map(len, rows)),
                    str(path), "its words",
                )  # fmt: skip
                if rows:
                    parts.append(_numbers(rows, width, n_rows, path))
                n_rows += len(rows)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {brief(error)}") from error
    if not parts:
        return np.zeros(0, np.int64), np.zeros((0, 1), np.int64)
    whole = np.concatenate(parts)
    return whole[:, 0], whole[:, 1:]


def _numbers(rows: list[bytes], width: int, before: int, path: Path) -> np.ndarray:
    split = [row.split(b",") for row in rows]
    for line, row in enumerate(split, before + 1):
        if len(row) != width or width < 2:
            raise InputError(f"{path}:{line}: {len(row)} columns, but the first row has {width}")
    try:
        numbers = np.array(split, dtype=np.float64)
    except ValueError as error:
        raise InputError(f"{path}: a cycle or word is not a number: {brief(error)}") from error
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any() or np.abs(numbers).max() > 2**53:
        raise InputError(f"{path}: cycles and words must be whole numbers")
    return numbers.astype(np.int64)


_SAME = {"i": "ifmap", "w": "filter", "o": "ofmap", "inputs": "ifmap", "weights": "filter", "outputs": "ofmap"}
_NEEDED = ("layer", "tensor", "dram_reads", "dram_writes", "access_bits")
_COLUMNS = (*_NEEDED, "passes", "layer_cycles")
_MOST_WALKED = 1 << 30  # bytes
_BYTES_A_WORD = 41  # of memory: cycle, access, word, two on the way, and the byte


@dataclass(frozen=True)
class CountedTraffic:
    accesses: int
    access_bits: int
    tensor_bytes: int
    ones_per_pass: int
    passes: int | None

    @property
    def moved_bytes(self) -> int:
        return self.accesses * self.access_bits // 8

    @property
    def rounding_bytes(self) -> int | None:
        """Bytes moved beyond whole passes: tiles that do not fill their last access."""
        return None if self.passes is None else self.moved_bytes - self.passes * self.tensor_bytes

    @property
    def ones(self) -> int | None:
        return None if self.passes is None else self.passes * self.ones_per_pass


def count_tensor(tensor: np.ndarray, accesses: int, access_bits: int, *, passes: int | None = None) -> CountedTraffic:
    """Return the traffic of so many accesses to a tensor, whose bytes are those in memory order.

    passes: how often the whole tensor moves by the tool's loops; without it, a count that is a whole number of tensors
    is taken for that many passes. Tools round up per tile, so give it where you have it.
    """
    data = np.ascontiguousarray(tensor).view(np.uint8).reshape(-1)
    if not len(data):
        raise InputError("the tensor is empty")
    if accesses < 0 or access_bits < 8 or access_bits % 8:
        raise InputError(f"{accesses} accesses of {access_bits} bits: give a count and a whole number of bytes")
    moved = int(accesses) * int(access_bits) // 8
    if passes is None:
        passes = None if moved % len(data) else moved // len(data)
    elif passes < 0 or passes * len(data) > moved:
        raise InputError(f"{passes} passes of {len(data)} bytes are more than the {moved} bytes that were counted")
    return CountedTraffic(int(accesses), int(access_bits), len(data), _ones(data), passes)


def read_counts(path: str | Path, tensors: Mapping[str, np.ndarray]) -> list[tuple[TensorTraffic, CountedTraffic]]:
    """Return the traffic of a table of counts, walked linearly, with what is exact of each.

    path: CSV with a header and the columns layer (from 0), tensor (ifmap, filter, ofmap; also I, W, O), dram_reads,
    dram_writes (accesses), access_bits, and where known passes and layer_cycles (clocks over which the accesses are
    spread; without it they are offered at once). A line with reads and writes makes two. tensors: as for `read_run`.
    A walk is one row, so that accesses inside a burst become one burst, at the first one's clock.
    Whole passes move the tensor whole. Raises InputError naming file and line.
    """
    walked = []
    try:
        reader = csv.reader(io.StringIO(read_within(Path(path), 100).decode("utf-8"), newline=""))
        header = next(reader, [])
        rows = [(reader.line_num, named_fields(header, row, _COLUMNS)) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not rows or not set(_NEEDED) <= set(header):
        raise InputError(f"{path}: a table of counts has a header with {', '.join(sorted(_NEEDED))}, and lines")
    for line, row in rows:
        where = f"{path}:{line}"
        numbers = ("layer", "dram_reads", "dram_writes", "access_bits")
        layer, reads, writes, bits = (_whole(row, number, where) for number in numbers)
        name = row.get("tensor", "")
        tensor = _SAME.get(name.strip().lower(), name.strip().lower())
        if tensor not in TENSORS:
            raise InputError(f"{where}: tensor {name!r} is none of {', '.join(TENSORS)}")
        if f"layer{layer}_{tensor}" not in tensors:
            raise InputError(f"{where}: the tensors lack 'layer{layer}_{tensor}'")
        data = np.ascontiguousarray(tensors[f"layer{layer}_{tensor}"]).view(np.uint8).reshape(-1)
        passes, cycles = (
            _whole(row, name, where) if row.get(name, "").strip() else None for name in ("passes", "layer_cycles")
        )
        for accesses, is_write in ((reads, False), (writes, True)):
            if accesses:
                try:
                    counted = count_tensor(data, accesses, bits, passes=passes if not (reads and writes) else None)
                except InputError as error:
                    raise InputError(f"{where}: {error}") from error
                walked.append((_walk(layer, tensor, is_write, data, counted, cycles or 0, where), counted))
    return walked


def _walk(
    layer: int, tensor: str, is_write: bool, data: np.ndarray, counted: CountedTraffic, cycles: int, where: str
) -> TensorTraffic:
    n = counted.moved_bytes if counted.passes is None else counted.passes * len(data)
    if n > _MOST_WALKED:
        raise InputError(f"{where}: a walk of {n} bytes, more than {_MOST_WALKED}: count layers apart")
    claim(_BYTES_A_WORD * n, where, "the walk")
    word = np.arange(n, dtype=np.int64) % len(data)
    access = np.arange(n, dtype=np.int64) // (counted.access_bits // 8)
    cycle = access * cycles // max(1, int(access[-1]) + 1 if n else 1)
    one_row = np.zeros(n, np.int64)  # a walk is linear: accesses inside a burst become one burst
    return TensorTraffic(layer, tensor, is_write, len(data), cycle, one_row, word, data[word])


def _whole(row: Mapping[str, str], name: str, where: str) -> int:
    text = row.get(name, "").strip()
    try:
        value = float(plain_digits(text))
        if value != int(value) or not 0 <= value < 2**53:
            raise ValueError
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {name} is {shown(text)}: a whole number from 0 is needed") from None
    return int(value)
