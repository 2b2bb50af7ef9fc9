"""Files that are complete or absent: written under a temporary name, flushed, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from traces.base.errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a binary stream; the file appears under `path` only when the block ends without an error.

    Raises InputError naming the path where it cannot be written.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        Path(name).unlink(missing_ok=True)  # gone after the rename; left only by an error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
