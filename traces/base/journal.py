"""What is finished of a long work, a line each, so that a killed run continues where it was."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from traces.base.errors import InputError
from traces.base.memory import claim

_KEY = '{"key":'  # begins the first line
_VALUE_BYTES = 72  # of memory for what one of "[{:," begins
_TEXT_TIMES = 4  # of memory for a byte of text, with its copies while it is checked


class Journal:
    """JSON mappings in the lines of a file, each with a checksum behind it. The first one has the key of the work.

    lines: those of an earlier run with the same key. A line that was cut off by a kill, or is damaged, does not count.
    The file is made, and one of another key begun afresh, with the first line that is put.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self._stream: IO[str] | None = None
        self._first: str = _line({"key": key})
        self.lines: list[dict[str, Any]] = []
        self._goes_on = False
        if not path.exists():
            return
        if not path.is_file():
            raise InputError(f"{path}: not a file: a journal of finished work cannot be written there")
        claim(path.stat().st_size, str(path))
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                first = stream.readline(len(self._first) + 1)
                self._goes_on = first == self._first
                self.lines = list(_parsed(stream, str(path))) if self._goes_on else []
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        if first and not first.startswith(_KEY):
            raise InputError(f"{path}: no journal of finished work: name another file, or delete it")

    def put(self, **line: Any) -> None:
        """Note that something is finished: it is in the system's hands when this returns."""
        try:
            if self._stream is None:
                self._stream = open(self.path, "a" if self._goes_on else "w", encoding="utf-8")  # noqa: SIM115
                self._stream.write("\n" if self._goes_on else self._first)  # a line that was cut off ends here
            self._stream.write(_line(line))
            self._stream.flush()
        except OSError as error:
            self.close()
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error})") from error

    def close(self) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()


def _line(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, separators=(",", ":"))
    return f"{text} {crc32(text.encode()):08x}\n"


def _parsed(lines: IO[str], where: str) -> Iterator[dict[str, Any]]:
    takes = 0
    for number, line in enumerate(lines, 2):
        takes += _TEXT_TIMES * len(line) + _VALUE_BYTES * sum(map(line.count, "[{:,"))
        claim(takes, where, f"its first {number} lines")
        text, _, check = line.rpartition(" ")
        if check == f"{crc32(text.encode(errors='replace')):08x}\n":
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(text)
                if isinstance(value, dict):
                    yield value
