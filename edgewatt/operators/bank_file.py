"""A file that lists memory banks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from edgewatt.config.document import read_document
from edgewatt.config.problems import validate
from edgewatt.config.sections import Section, section_for
from reorder.arena.banks import Bank

_BANK = section_for(Bank, name="BankSection", extra=(("source", str, ""),))


class BankFile(Section):
    """`banks`: a list of name, mb_per_s (10^6 bytes per second), size_bytes (left out: no limit) and source."""

    banks: Annotated[list[_BANK], Field(min_length=1)]  # type: ignore[valid-type]


def read_banks(path: str | Path) -> list[Bank]:
    """Read a file of banks. Raises ConfigError with every problem at its file, line and column."""
    found = validate(BankFile, read_document(path))
    return [Bank(b.name, b.mb_per_s, b.size_bytes) for b in found.banks]  # type: ignore[attr-defined]
