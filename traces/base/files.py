"""Files that are complete or absent: written under a temporary name, flushed, then renamed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from traces.base.errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a binary stream; the file appears under `path` only when the block ends without an error.

    A symbolic link stays and its target is written. What is no regular file (a pipe, a device, /dev/stdout) stays, too:
    it is given the whole content at the end of the block, nothing after an error. Raises InputError naming the path
    where it cannot be written.
    """
    try:
        state = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        state = None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from error
    special = state is not None and (not stat.S_ISREG(state.st_mode) or _stream_number(state) is not None)
    target = Path(path) if special else Path(os.path.realpath(path))
    try:
        if special:
            if state is not None and stat.S_ISDIR(state.st_mode):
                raise IsADirectoryError(21, "Is a directory")
            handle, name = tempfile.mkstemp(prefix="edgewatt.")
        else:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            if not special:
                os.fsync(stream.fileno())
        if special:
            _pour(name, target, state)
        else:
            os.chmod(name, stat.S_IMODE(state.st_mode) if state is not None else 0o666 & ~_umask())
            os.replace(name, target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        Path(name).unlink(missing_ok=True)  # gone after the rename; left only by an error


def _stream_number(state: os.stat_result) -> int | None:
    """Return 1 or 2 where the file is this process's output or error stream, whatever it is called."""
    for number in (1, 2):
        try:
            if os.path.samestat(os.fstat(number), state):
                return number
        except OSError:
            continue
    return None


def _pour(name: str, target: Path, state: os.stat_result | None) -> None:
    """Write a finished file into what is no regular file; an open stream goes on where it is."""
    number = _stream_number(state) if state is not None else None
    descriptor = os.dup(number) if number is not None else os.open(target, os.O_WRONLY)
    with open(name, "rb") as source, os.fdopen(descriptor, "wb") as sink:
        shutil.copyfileobj(source, sink)


def refuse_inputs(output: str | Path | None, inputs: Iterable[str | Path], *, force: bool = False) -> None:
    """Raise InputError if an output is one of the files that are read, unless `force`."""
    if output is None or force:
        return
    for given in inputs:
        try:
            same = os.path.samefile(output, given)
        except (OSError, ValueError):
            continue
        if same:
            raise InputError(f"{output}: is read and would be replaced; name another file, or add --force")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
