"""Our own trace files: one npz with every column, chunk by chunk, read back in chunks."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from traces.base.archive import open_zip, opened_member, read_array, read_npy_header
from traces.base.errors import InputError, brief
from traces.base.files import whole_file
from traces.base.memory import claim
from traces.trace.chunks import STORE, STREAMS, Chunk, Memory, Region, Trace
from traces.trace_files.reader import TRACE_READERS, TraceReader
from traces.trace_files.source import Source
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter

_COLUMNS = {
    "address": np.uint64,
    "size": np.uint8,
    "op": np.uint8,
    "stream": np.uint8,
    "payload_offset": np.int64,
    "payload": np.uint8,
    "cycle": np.int64,
}
_ALWAYS = ("address", "size", "op", "stream")
# What zipfile, zlib and numpy raise on a damaged file.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, OSError, RuntimeError)
_FORMAT = "edgewatt-trace"
_VERSION = 1


def save_trace(trace: Trace, path: str | Path) -> int:
    """Write a trace as one npz file, complete or absent, in constant memory; return the number of accesses.

    path: of the file. Members: meta.json.npy (format, version, footprint, numbers of chunks and multiply-adds),
    image.npy, and per chunk 00000000/address.npy and so on; ``numpy.load`` reads them. Raises InputError if the file
    cannot be written.
    """
    with whole_file(path) as stream:
        return _write(trace, stream)


def _write(trace: Trace, stream: IO[bytes]) -> int:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        n_accesses = n_chunks = 0
        for chunk in trace:
            for name in _COLUMNS:
                values = getattr(chunk, name)
                if values is not None:
                    _put(archive, f"{n_chunks:08d}/{name}", values)
            n_accesses += len(chunk)
            n_chunks += 1
        memory = trace.memory
        if memory.image is not None:
            _put(archive, "image", memory.image)
        meta = {
            "format": _FORMAT,
            "version": _VERSION,
            "streams": STREAMS,
            "chunks": n_chunks,
            "accesses": n_accesses,
            "base_address": memory.base_address,
            "total_bytes": memory.total_bytes,
            "regions": [[r.name, r.base_address, r.n_bytes] for r in memory.regions],
            "description": dict(trace.description),
            "multiply_adds": trace.multiply_adds,
        }
        _put(archive, "meta.json", np.frombuffer(json.dumps(meta).encode(), np.uint8))
    return n_accesses


def load_trace(path: str | Path) -> Trace:
    """Return a trace from the file `path` that `save_trace` wrote; chunks are read as they are asked for.

    Raises InputError naming the file and member where it is truncated, damaged or of another kind.
    """
    path = Path(path)
    with _open(path) as archive:
        meta = _read_meta(archive, path)
        total = int(meta["total_bytes"])
        members = set(archive.namelist())
        has_data = "image.npy" in members
        image = _take(archive, "image", np.uint8, path) if has_data else None
        if image is not None and len(image) != total:
            raise InputError(f"{path}: image.npy holds {len(image)} bytes, the footprint {total}: the file is damaged")
        _check_lengths(archive, meta, path)
    memory = Memory(int(meta["base_address"]), total, image, tuple(Region(str(n), b, s) for n, b, s in meta["regions"]))
    if image is not None:
        image.setflags(write=False)
    n_chunks = int(meta["chunks"])

    def chunks() -> Iterator[Chunk]:
        with _open(path) as archive:
            for number in range(n_chunks):
                columns = {
                    name: _take(archive, f"{number:08d}/{name}", dtype, path)
                    for name, dtype in _COLUMNS.items()
                    if name in _ALWAYS or (has_data and name != "cycle") or f"{number:08d}/{name}.npy" in members
                }
                chunk = Chunk(**columns)
                _check_chunk(chunk, memory, f"{path}: chunk {number}")
                yield chunk

    multiply_adds = meta.get("multiply_adds", 0)  # files of before 0.3 have none
    return Trace(chunks, memory, int(meta["accesses"]), meta["description"], multiply_adds=multiply_adds)


def _put(archive: zipfile.ZipFile, name: str, values: np.ndarray) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.ascontiguousarray(values), allow_pickle=False)


@contextmanager
def _damage(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError(f"{path}: {name} is missing: no trace file, or a damaged one") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: {name} is damaged ({brief(error)})") from error


def _open(path: Path) -> zipfile.ZipFile:
    try:
        return open_zip(path)
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: no trace file, or a damaged one ({brief(error)}); write it again") from error


def _take(archive: zipfile.ZipFile, name: str, dtype: type, path: Path) -> np.ndarray:
    name += ".npy"
    where = f"{path}: {name}"
    with _damage(path, name):
        info = archive.getinfo(name)
        claim(info.file_size, where)
        with opened_member(archive, info, where) as member:
            values = read_array(member, info.file_size, where)
    wider = name.endswith("/size.npy") and values.dtype == np.uint16  # rows of lanes
    if (values.dtype != np.dtype(dtype) and not wider) or values.ndim != 1:
        raise InputError(
            f"{where} holds {values.dtype} of shape {values.shape}, expected {np.dtype(dtype)} of one dimension"
        )
    return values


def _read_meta(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads(_take(archive, "meta.json", np.uint8, path).tobytes())
        known = STREAMS[: len(meta["streams"])]  # later versions add streams at the end
        if meta["format"] != _FORMAT or meta["version"] != _VERSION or tuple(meta["streams"]) != known:
            raise InputError(f"{path}: format {meta['format']!r} version {meta['version']!r} is not readable here")
        numbers = [meta[key] for key in ("chunks", "accesses", "base_address", "total_bytes")]
        numbers.append(meta.get("multiply_adds", 0))
        if any(type(number) is not int or not 0 <= number < 2**63 for number in numbers):
            raise ValueError("a size is not a whole number below 2^63")
        first, end = meta["base_address"], meta["base_address"] + meta["total_bytes"]
        if end > 2**63:
            raise ValueError("the footprint ends beyond 2^63")
        if any(type(b) is not int or type(s) is not int for _, b, s in meta["regions"]):
            raise ValueError("a region is not a name with two whole numbers")
        if any(s < 0 or b < first or b + s > end for _, b, s in meta["regions"]):
            raise ValueError("a region lies outside the footprint")
        if not isinstance(meta["description"], dict):
            raise ValueError("description is not a mapping")
        if numbers[-1] and type(meta["description"]["layout"]["value_format"]) is not str:
            raise ValueError("multiply-adds have no format")
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: meta.json is damaged ({brief(error)})") from error
    return meta


def _check_lengths(archive: zipfile.ZipFile, meta: dict[str, Any], path: Path) -> None:
    accesses = 0
    numbers = {name.partition("/")[0] for name in archive.namelist() if "/" in name}
    if len(numbers) > meta["chunks"]:
        raise InputError(f"{path}: {len(numbers)} chunks in it, {meta['chunks']} announced: the file is damaged")
    for number in range(meta["chunks"]):
        name = f"{number:08d}/address.npy"
        with _damage(path, name), opened_member(archive, archive.getinfo(name), f"{path}: {name}") as member:
            accesses += (read_npy_header(member, f"{path}: {name}")[0] or (0,))[0]
    if accesses != meta["accesses"]:
        raise InputError(
            f"{path}: {accesses} accesses in its chunks, {meta['accesses']} announced: the file is damaged"
        )


def _check_chunk(chunk: Chunk, memory: Memory, where: str) -> None:
    n = len(chunk)
    cycles = [] if chunk.cycle is None else [chunk.cycle]
    if any(len(column) != n for column in (chunk.size, chunk.op, chunk.stream, *cycles)):
        raise InputError(f"{where}: columns of different length: the file is damaged")
    if n == 0:
        return
    if chunk.op.max() > STORE or chunk.stream.max() >= len(STREAMS) or not chunk.size.all():
        raise InputError(f"{where}: op, stream or size out of range: the file is damaged")
    offset, payload = chunk.payload_offset, chunk.payload
    first = chunk.address - np.uint64(memory.base_address)  # wraps to a large number below the base
    if first.max() > memory.total_bytes or (first + chunk.size).max() > memory.total_bytes:
        raise InputError(f"{where}: an access lies outside the footprint: the file is damaged")
    if memory.image is not None:
        assert offset is not None and payload is not None
        fits = len(offset) == n + 1 and offset[0] == 0 and offset[-1] == len(payload)
        if not fits or (np.diff(offset) != chunk.size).any():
            raise InputError(f"{where}: payload and sizes disagree: the file is damaged")


class NpzReader(TraceReader):
    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        return head[:4] == b"PK\x03\x04"

    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        return iter(load_trace(source.path))

    def open(self, source: Source, access_bytes: int, format: str) -> Trace:
        if source.compression:
            raise InputError(f"{source.name}: an npz is compressed already: unpack the {source.compression} around it")
        trace = load_trace(source.path)
        if not trace.n_accesses:
            raise InputError(f"{source.name}: no accesses in it")
        return trace


TRACE_READERS.register("npz", summary="our own: every column, with the bytes moved")(NpzReader())


class NpzWriter(TraceWriter):
    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        return _write(trace, stream)


TRACE_WRITERS.register("npz", summary="our own: every column, with the bytes moved")(NpzWriter())
