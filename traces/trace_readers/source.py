"""The file a trace is read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from traces.base.errors import InputError


@dataclass(frozen=True)
class Source:
    """A file that can be read any number of times. name: as messages and records name it."""

    path: Path
    name: str

    @classmethod
    def of(cls, path: str | Path) -> Source:
        return cls(Path(path), str(path))

    @property
    def n_bytes(self) -> int | None:
        """Bytes that reading gives, None where only reading tells."""
        return self.path.stat().st_size

    def open(self) -> IO[bytes]:
        """Open for reading bytes. Raises InputError naming the file."""
        try:
            return self.path.open("rb")
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: no such file") from error
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror or error})") from error
