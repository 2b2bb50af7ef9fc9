"""The file a trace is read from: plain or compressed (found by its first bytes), or standard input."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from traces.base.errors import InputError, MissingExtraError, brief

_ZSTD_INPUT = 1 << 12  # bytes a call: even a bomb unpacks to no more than a block of 128 KiB per 4 bytes
_WINDOW = 1 << 27  # bytes of memory a frame may ask for; what `zstd` itself refuses without --long


@dataclass(frozen=True)
class Source:
    """A file that can be read any number of times. name: as messages and records name it.

    compression: 'gzip', 'zstd' or '' for a plain file.
    """

    path: Path
    name: str
    compression: str = ""
    keep: Any = field(default=None, repr=False)  # the temporary file of standard input lives as long as this

    @classmethod
    def of(cls, path: str | Path) -> Source:
        """Return the source of a path; '-' is standard input, which is kept in a temporary file while it is used."""
        if str(path) == "-":
            keep, path, name = *_spooled(sys.stdin.buffer), "standard input"
        else:
            keep, path, name = None, Path(path), str(path)
        with _opened(path, name) as stream:
            head = stream.read(8)
        kind = next((kind for kind, (magic, _) in _COMPRESSIONS.items() if head.startswith(magic)), "")
        return cls(path, name, kind, keep)

    @property
    def n_bytes(self) -> int | None:
        """Bytes that reading gives, None where only reading tells."""
        return None if self.compression else self.path.stat().st_size

    def open(self) -> IO[bytes]:
        stream = _opened(self.path, self.name)
        if not self.compression:
            return stream
        unpack = _COMPRESSIONS[self.compression][1]
        return io.BufferedReader(_Unpacked(stream, unpack(stream), f"{self.name}: damaged {self.compression} file"))


class _Unpacked(io.RawIOBase):
    """Blocks of bytes as a stream; what the library raises on damage becomes an InputError."""

    def __init__(self, packed: IO[bytes], blocks: Iterator[bytes], damaged: str) -> None:
        self.packed, self.blocks, self.damaged = packed, blocks, damaged
        self.rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            try:
                block = next(self.blocks, None)
            except (OSError, EOFError, zlib.error, ValueError) as error:
                raise InputError(f"{self.damaged} ({brief(error)})") from error
            if block is None:
                return 0
            self.rest = memoryview(block)
        n = min(len(buffer), len(self.rest))
        buffer[:n] = self.rest[:n]
        self.rest = self.rest[n:]
        return n

    def close(self) -> None:
        self.packed.close()
        super().close()


def _opened(path: Path, name: str) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


def _spooled(stream: IO[bytes]) -> tuple[Any, Path]:
    try:
        keep = tempfile.NamedTemporaryFile(prefix="edgewatt-")  # noqa: SIM115
        shutil.copyfileobj(stream, keep)
        keep.flush()
    except OSError as error:
        raise InputError(
            f"standard input cannot be kept in {tempfile.gettempdir()} ({error.strerror or error})"
        ) from error
    return keep, Path(keep.name)


def _gzip(packed: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=packed) as unpacked:
        while block := unpacked.read(1 << 18):
            yield block


def _zstd(packed: IO[bytes]) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("zstandard", "zstd") from error
    machine = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame = None
    while raw := packed.read(_ZSTD_INPUT):
        while raw:
            frame = frame or machine.decompressobj()
            try:
                block = frame.decompress(raw)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error
            if block:
                yield block
            raw = b""
            if frame.eof:
                raw, frame = frame.unused_data, None
    if frame is not None:
        raise EOFError("it ends inside a frame")


_COMPRESSIONS: dict[str, tuple[bytes, Callable[[IO[bytes]], Iterator[bytes]]]] = {
    "gzip": (b"\x1f\x8b", _gzip),
    "zstd": (b"\x28\xb5\x2f\xfd", _zstd),
}
