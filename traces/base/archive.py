"""npz archives from anywhere: read without pickle, and never allocating more than the file's own headers agree on."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from traces.base.errors import InputError

MAX_BYTES = 1 << 32  # of all arrays of one file together
# What zipfile, zlib and numpy raise on damaged files; RuntimeError: encryption, unknown compression.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError, RuntimeError)


def read_npz(path: str | Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file by name (only those of `names` that are there, if given).

    Every array is checked before it is allocated: no Python objects, a size that fits the archive's directory, all
    together at most MAX_BYTES. Raises InputError naming the file and the array.
    """
    wanted = None if names is None else set(names)
    arrays: dict[str, np.ndarray] = {}
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name == member.filename or (wanted is not None and name not in wanted):
                    continue
                if name in arrays:
                    raise InputError(f"{path}: array {name!r} is stored twice")
                total += member.file_size
                if total > MAX_BYTES:
                    raise InputError(f"{path}: its arrays take more than {MAX_BYTES} bytes: refused")
                with archive.open(member) as stream:
                    arrays[name] = _read_array(stream, member.file_size, f"{path}: array {name!r}")
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged or no npz file ({error})") from error
    return arrays


def read_npy(path: str | Path) -> np.ndarray:
    """Return the array of an npy file, checked like those of an npz. Raises InputError naming the file."""
    try:
        size = Path(path).stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{path}: it takes more than {MAX_BYTES} bytes: refused")
        with Path(path).open("rb") as stream:
            return _read_array(stream, size, f"{path}: the array")
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged or no npy file ({error})") from error


def npz_names(path: str | Path) -> set[str]:
    """Return the names of an npz file's arrays. Raises InputError naming the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise InputError(f"{path}: damaged or no npz file ({error})") from error


def _read_array(stream: IO[bytes], stored_bytes: int, where: str) -> np.ndarray:
    from numpy.lib import format as npy

    version = npy.read_magic(stream)
    reader: Any = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if reader is None:
        raise InputError(f"{where}: unknown npy version {version}")
    shape, fortran_order, dtype = reader(stream)
    if dtype.hasobject:
        raise InputError(f"{where} holds pickled Python objects, which are never loaded: store plain numbers")
    if any(length < 0 for length in shape):
        raise InputError(f"{where} has a negative length in its shape {shape}")
    n_bytes = dtype.itemsize
    for length in shape:
        n_bytes *= length  # Python integers: cannot overflow
    if n_bytes > stored_bytes:
        raise InputError(f"{where} claims {n_bytes} bytes, the archive holds {stored_bytes}: damaged")
    data = bytearray(n_bytes)
    view, done = memoryview(data), 0
    while done < n_bytes:
        part = stream.read(min(n_bytes - done, 1 << 20))
        if not part:
            raise InputError(f"{where} ends after {done} of {n_bytes} bytes: truncated")
        view[done : done + len(part)] = part
        done += len(part)
    stream.read(1)  # reaching the end makes zipfile compare the checksum
    values = np.frombuffer(data, dtype) if n_bytes else np.empty(0, dtype)
    return values.reshape(shape, order="F" if fortran_order else "C")
