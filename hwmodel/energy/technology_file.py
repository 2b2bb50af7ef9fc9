"""Files of technologies: what they must hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from traces.base.document import Document
from traces.base.schema import ABSENT, Section, Whole, validate

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[Whole, Field(ge=1, le=1 << 60)]
Figures = Annotated[tuple[Positive, ...], Field(strict=False)]


class RamTable(Section):
    block_bytes: Count
    size_bytes: Annotated[tuple[Count, ...], Field(strict=False)]
    read_pj: Figures
    write_pj: Figures
    leakage_mw: Figures
    area_mm2: Figures = ()


class CacheTable(RamTable):
    ways: Count


class Arithmetic(Section):
    product_pj: Positive
    sum_pj: Positive
    estimate: bool = False


class Formats(Section, extra="allow"):
    __pydantic_extra__: dict[str, Arithmetic]
    source: str
    low: Positive
    high: Positive


class CodecSection(Section):
    area_um2: Positive
    block_bytes: Count
    low: Positive
    high: Positive
    source: str = ""


class TechnologyFile(Section):
    description: str = ""
    source: str
    technology_nm: Count
    low: Positive
    high: Positive
    ram: Annotated[tuple[RamTable, ...], Field(strict=False, min_length=1)]
    cache: Annotated[tuple[CacheTable, ...], Field(strict=False, min_length=1)]
    multiply_add: Formats
    codec: CodecSection = ABSENT


def read_technology(document: Document) -> TechnologyFile:
    file = validate(TechnologyFile, document)
    for of, tables in (("ram", file.ram), ("cache", file.cache)):
        for k, table in enumerate(tables):
            sizes = table.size_bytes
            if len(sizes) < 2 or list(sizes) != sorted(set(sizes)):
                document.complain((of, k, "size_bytes"), "two sizes or more are needed, ascending")
            for key in table.model_fields_set & {"read_pj", "write_pj", "leakage_mw", "area_mm2"}:
                if len(getattr(table, key)) != len(sizes):
                    document.complain((of, k, key), f"{len(sizes)} figures are needed, one a size")
    document.finish()
    return file
