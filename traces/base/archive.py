"""npz archives from anywhere: read without pickle, and never allocating more than the file's own headers agree on."""

from __future__ import annotations

import io
import lzma
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from traces.base.errors import InputError, brief
from traces.base.memory import claim

# What zipfile, zlib and numpy raise on damaged files; RuntimeError: encryption, unknown compression.
_STREAM_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError)
_DAMAGE = (*_STREAM_DAMAGE, ValueError, RuntimeError, IndexError, KeyError)
_end_record: Any = getattr(zipfile, "_EndRecData", lambda stream: None)  # private: found as ZipFile will find it
_DIRECTORY_SIZE = 5  # its place in the end record
_LISTED = 16  # bytes of memory for one of the directory: 800 an entry


def open_zip(path: str | Path, content: bytes | None = None) -> zipfile.ZipFile:
    """Open an archive. Raises InputError where the list of its members, made at once, is beyond the bound of memory."""
    with Path(path).open("rb") if content is None else io.BytesIO(content) as stream:
        end = _end_record(stream)
    claim(_LISTED * end[_DIRECTORY_SIZE] if end else 0, str(path), "the list of its members")
    return zipfile.ZipFile(path if content is None else io.BytesIO(content))


@contextmanager
def _named(path: str | Path, kind: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged or not a {kind} file ({brief(error)})") from error


def read_npz(
    path: str | Path, names: Iterable[str] | None = None, *, content: bytes | None = None
) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file by name: those of `names` that are there, or all. content: if read already.

    Every array is checked before it is allocated: no Python objects, a size that fits the archive's directory, all
    together within the bound of memory. Raises InputError naming the file and the array.
    """
    chosen = None if names is None else set(names)
    arrays: dict[str, np.ndarray] = {}
    total = 0
    with _named(path, "npz"), open_zip(path, content) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name == member.filename or (chosen is not None and name not in chosen):
                continue
            if name in arrays:
                raise InputError(f"{path}: array {name!r} is stored twice")
            total += member.file_size
            claim(total, str(path), "its arrays")
            where = f"{path}: array {name!r}"
            with opened_member(archive, member, where) as stream:
                arrays[name] = read_array(stream, member.file_size, where)
    return arrays


def read_npy(path: str | Path) -> np.ndarray:
    with _named(path, "npy"):
        size = Path(path).stat().st_size
        claim(size, str(path))
        with Path(path).open("rb") as stream:
            return read_array(stream, size, f"{path}: the array")


def opened_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> IO[bytes]:
    """Open a member of an npz, stored or deflated as NumPy writes them: other kinds unpack without any bound."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{where} is packed in a way that NumPy does not write: save it with numpy.savez")
    return archive.open(member)


def npz_names(path: str | Path) -> set[str]:
    with _named(path, "npz"), open_zip(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")}


def read_npy_header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether in Fortran order, and dtype. Raises InputError for anything but an array of plain values.

    NumPy reads a header as a Python expression, whose parser raises what it likes on damage.
    """
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(stream)
        reader: Any = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if reader is None:
            raise InputError(f"{where}: unknown npy version {version}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a header that Python 2 wrote
            shape, fortran_order, dtype = reader(stream)
    except InputError:
        raise
    except _STREAM_DAMAGE:
        raise
    except Exception as error:
        raise InputError(f"{where}: its npy header is damaged ({type(error).__name__}: {brief(error)})") from error
    if dtype.hasobject:
        raise InputError(f"{where} holds pickled Python objects, which are never loaded: store plain numbers")
    if any(type(length) is not int or length < 0 for length in shape):
        raise InputError(f"{where} has a shape of other things than lengths: {shape}")
    return shape, bool(fortran_order), dtype


def read_array(stream: IO[bytes], stored_bytes: int, where: str) -> np.ndarray:
    shape, fortran_order, dtype = read_npy_header(stream, where)
    n_bytes = dtype.itemsize * math.prod(shape)  # Python integers: cannot overflow
    if n_bytes != stored_bytes - stream.tell():
        raise InputError(
            f"{where} claims {n_bytes} bytes, {stored_bytes - stream.tell()} are stored: the file is damaged"
        )
    claim(n_bytes, where)
    data = bytearray(n_bytes)  # held once
    view, done = memoryview(data), 0
    while done < n_bytes:
        part = stream.read(min(n_bytes - done, 1 << 20))
        if not part:
            raise InputError(f"{where} ends after {done} of {n_bytes} bytes: truncated")
        view[done : done + len(part)] = part
        done += len(part)
    stream.read(1)  # reaching the end makes zipfile compare the checksum
    values = np.frombuffer(data, dtype) if n_bytes else np.empty(0, dtype)
    if dtype.kind == "U" and n_bytes and int(values.view(f"{dtype.byteorder.replace('|', '=')}u4").max()) > 0x10FFFF:
        raise InputError(f"{where} holds text with characters that do not exist: the file is damaged")
    return values.reshape(shape, order="F" if fortran_order else "C")
