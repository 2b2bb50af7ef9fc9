"""A file that lists memory banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from edgewatt.config.problems import validate
from edgewatt.config.sections import Section, section_for
from reorder.operators.arena.banks import Bank
from traces.base.document import read_document
from traces.base.errors import InputError, unknown_name

_BANK = section_for(Bank, name="BankSection", extra=(("source", str, ""),))


class BankFile(Section):
    """`banks`: a list of name, mb_per_s (10^6 bytes per second), size_bytes (left out: no limit) and source.

    `pinned`: names of tensors (of `arena`: ids of buffers) and the bank that each must be in.
    """

    banks: Annotated[list[_BANK], Field(min_length=1)]  # type: ignore[valid-type]
    pinned: Annotated[dict[str, str], Field(default_factory=dict)]


@dataclass(frozen=True)
class Memories:
    """banks: in the file's order. pinned: name of a tensor or buffer -> name of its bank. path: of the file."""

    banks: list[Bank]
    pinned: Mapping[str, str]
    path: str

    def numbered(self, what: str, places: Mapping[str, int], sizes: Sequence[int]) -> dict[int, str]:
        """Return number of a buffer -> its bank.

        places: name of a tensor or buffer -> its number; what: which of the two. sizes: bytes of each buffer. Raises
        InputError naming those that are unknown or do not fit.
        """
        rooms = {bank.name: bank.size_bytes for bank in self.banks}
        bank_of: dict[int, str] = {}
        for name, bank in self.pinned.items():
            if name not in places:
                raise InputError(f"{self.path}: pinned: {unknown_name(what, name, places)}")
            if bank not in rooms:
                raise InputError(f"{self.path}: pinned: {name!r}: {unknown_name('bank', bank, rooms)}")
            room, number = rooms[bank], places[name]
            if room is not None and sizes[number] > room:
                raise InputError(f"{self.path}: pinned: {name!r} has {sizes[number]} bytes, {bank!r} has {room}")
            if bank_of.setdefault(number, bank) != bank:
                raise InputError(
                    f"{self.path}: pinned: {name!r} shares its memory with a tensor in {bank_of[number]!r}: "
                    f"it cannot be in {bank!r}"
                )
        return bank_of


def read_banks(path: str | Path) -> Memories:
    """Read a file of banks. Raises ConfigError with every problem at its file, line and column."""
    bank_file = validate(BankFile, read_document(path))
    banks = [Bank(b.name, b.mb_per_s, b.size_bytes) for b in bank_file.banks]  # type: ignore[attr-defined]
    return Memories(banks, bank_file.pinned, str(path))
