"""Files that are complete or absent: written under a temporary name, flushed, then renamed."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from traces.base.errors import InputError


def named_fields(header: Sequence[str], row: Sequence[str], columns: Collection[str]) -> dict[str, str]:
    """Return those of `columns` that a row of a CSV file has: csv.DictReader keeps one for every name of the header."""
    return {name: text for name, text in zip(header, row, strict=False) if name in columns}


def own_folder(folder: Path) -> Path:
    """Return the hidden folder in `folder` in which this process alone creates files, where others do so in theirs:
    processes that create files in one folder wait for each other. It need not be there."""
    return folder / f".{_host()}-{os.getpid()}"


def create_beside(path: Path, within: Path | None = None) -> tuple[int, str]:
    """Create an empty, hidden file to be renamed to `path`; return its descriptor, open for writing, and its name.

    within: the folder for it, made where it is missing; None: that of `path`. The name holds host and process, for
    people, and random digits: processes of several machines or containers never share a file. Raises OSError.
    """
    folder, stem = os.path.split(path)
    stem = stem.encode("utf-8", "surrogateescape")[:120].decode("utf-8", "ignore")
    while True:
        name = os.path.join(within or folder, f".{stem}.{_host()}-{os.getpid()}-{secrets.token_hex(8)}")
        try:
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), name
        except FileExistsError:
            continue
        except FileNotFoundError:  # somebody tidied it away
            if within is None or not os.path.isdir(folder):
                raise
            os.makedirs(within, exist_ok=True)


@cache
def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]


def replace_file(path: Path, data: bytes | memoryview, *, fsync: bool = False, within: Path | None = None) -> None:
    """Give a file a new content: all of it or, after an OSError, what it had. within: of `create_beside`.

    Where clocks disagree, whoever tidies the folder may take the temporary file for a leftover: it is written again.
    """
    for attempt in range(3):
        descriptor, name = create_beside(path, within)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                if fsync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(name, path)
            return
        except BaseException as error:
            gone = isinstance(error, FileNotFoundError) and path.parent.is_dir()
            with contextlib.suppress(OSError):
                os.unlink(name)
            if not gone or attempt == 2:
                raise


def need_regular(path: str | Path) -> None:
    """Raise InputError where a path that a file names is neither file nor folder: pipes and devices may not end."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # whoever reads it says so
        return
    _need_regular(path, mode)


def _need_regular(path: str | Path, mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(f"{path}: a pipe or a device, not a file")


Stamp = tuple[int, ...]


def stamp_of(path: str | Path) -> Stamp:
    """Return what tells a file from what it was before: what was read of it is good while it stays.

    The time of the last change of its inode is in it, which no program can set back as it can that of the content.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    _need_regular(path, state.st_mode)
    return state.st_dev, state.st_ino, state.st_ctime_ns, state.st_mtime_ns, state.st_size


def why_no_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder, not a file"
    if path.exists():
        return "is a pipe or a device, not a file"
    return "is a link to no file" if path.is_symlink() else "no such file"


def set_aside(path: Path) -> None:
    try:
        os.rename(path, path.with_name(f"{path.name}.damaged-{secrets.token_hex(4)}"))
    except OSError:
        with contextlib.suppress(OSError):  # a folder that cannot take another name may still let go of this one
            path.unlink()


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a binary stream; the file appears under `path` only when the block ends without an error.

    A symbolic link stays and its target is written. A pipe, a device, /dev/stdout stay, too:
    it is given the whole content at the end of the block, nothing after an error. Raises InputError naming the path
    where it cannot be written.
    """
    try:
        try:
            state = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            state = None
        if state is not None and stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(21, "Is a directory")
        special = state is not None and (not stat.S_ISREG(state.st_mode) or _stream_number(state) is not None)
        target = Path(path) if special else Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix="edgewatt.") if special else create_beside(target)
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
            if state is not None:
                os.chmod(name, stat.S_IMODE(state.st_mode))
            os.replace(name, target)
    except OSError as error:
        other = error.filename is not None and os.fspath(error.filename) not in (str(path), str(target), name)
        what = f"{error.filename}: cannot be read" if other else f"{path}: cannot be written"  # read inside the block
        raise InputError(f"{what} ({error.strerror or error})") from error
    finally:
        Path(name).unlink(missing_ok=True)  # gone after the rename; left only by an error


def sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _stream_number(state: os.stat_result) -> int | None:
    for number in (1, 2):
        try:
            if os.path.samestat(os.fstat(number), state):
                return number
        except OSError:
            continue
    return None


def _pour(name: str, target: Path, state: os.stat_result | None) -> None:
    number = _stream_number(state) if state is not None else None
    descriptor = os.dup(number) if number is not None else os.open(target, os.O_WRONLY)
    with open(name, "rb") as source, os.fdopen(descriptor, "wb") as sink:
        shutil.copyfileobj(source, sink)


def check_writable(*paths: str | Path | None) -> None:
    """Raise InputError now where `whole_file` would after minutes of work. None and '-' are not files."""
    for path in paths:
        if path is not None and path != "-":
            with contextlib.suppress(_NothingToWriteError), whole_file(path):
                raise _NothingToWriteError


class _NothingToWriteError(Exception):
    """Leaves `whole_file` without a file."""


def refuse_inputs(output: str | Path, inputs: Iterable[str | Path]) -> None:
    for given in inputs:
        try:
            same = os.path.samefile(output, given)
        except (OSError, ValueError):
            continue
        if same:
            raise InputError(f"{output}: is read and would be replaced; name another file, or add --force")


def harmless(value: Any) -> Any:
    """Return a cell of a CSV table that no spreadsheet runs as a formula: a text that begins like one gets a '."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
