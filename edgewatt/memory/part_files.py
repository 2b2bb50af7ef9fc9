"""Files of memory parts: those made of another simulator's specification, and those that the C library opens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hwmodel.dram.tables import include_folder, write_library_file
from hwmodel.part_readers.reader import Imported, import_part
from traces.base.files import whole_file

__all__ = ["import_file", "imported_in_words", "library_file"]


def library_file(file: str | Path, part: str, controller: Mapping[str, Any]) -> str:
    """Write a part and its controller, resolved to clocks, for edgewatt_dram_open; return the folder of its header."""
    write_library_file(file, part, dict(controller))
    return str(include_folder())


def import_file(
    file: str | Path, output: str | Path, *, base: str | None, name: str | None, format: str | None
) -> Imported:
    """Write the part file (YAML) of another simulator's memory specification."""
    imported = import_part(file, base=base, name=name, format=format)
    text = yaml.safe_dump(imported.data, sort_keys=False, allow_unicode=True, width=120)
    with whole_file(output) as stream:
        stream.write(f"# Schema: docs/concepts/dram-parts.md.\n{text}".encode())
    return imported


def imported_in_words(imported: Imported) -> list[str]:
    """Return what was imported, and what of the specification was not used."""
    part = imported.part
    said = [
        f"{part.name}, {part.standard}, {part.data_rate_mts:.0f} MT/s, "
        f"{part.organisation.capacity_bytes / 2**30:g} GiB, wires of {imported.data['extends']}"
    ]
    return [*said, *([f"not used: {', '.join(imported.unused)}"] if imported.unused else [])]
