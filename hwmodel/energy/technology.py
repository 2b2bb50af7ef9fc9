"""What on-chip memories and multiply-adds cost in one technology: sourced tables, read between their points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.base.document import Document, Mark, read_document
from traces.base.errors import InputError
from traces.base.files import need_regular
from traces.base.resources import shipped_path

REACH = 4.0  # beyond its ends a table goes on with the slope of its last two points, up to this factor


@dataclass(frozen=True)
class Access:
    """One on-chip memory: energy of an access of a whole block in pJ, leakage in mW, area in um2 (None: not known)."""

    block_bytes: int
    read_pj: float
    write_pj: float
    leakage_mw: float
    area_um2: float | None = None


@dataclass(frozen=True)
class SizeTable:
    """Figures of memories of one block size, the bytes of an access (and number of ways, 1 for a ram), over their
    sizes, ascending."""

    block_bytes: int
    ways: int
    size_bytes: tuple[int, ...]
    read_pj: tuple[float, ...]
    write_pj: tuple[float, ...]
    leakage_mw: tuple[float, ...]
    area_mm2: tuple[float, ...] = ()

    def covers(self, size_bytes: int) -> bool:
        """Whether a size is inside the table, or within reach of its ends."""
        return self.size_bytes[0] / REACH <= size_bytes <= self.size_bytes[-1] * REACH

    def at(self, size_bytes: int) -> Access:
        """Return the figures of one size, log-log between the points. Raises InputError far outside the table."""
        sizes = self.size_bytes
        if not self.covers(size_bytes):
            raise InputError(
                f"the technology's table goes from {sizes[0]} to {sizes[-1]} bytes; a memory of {size_bytes} bytes is "
                "beyond a factor of four of that"
            )
        above = next((k for k, size in enumerate(sizes) if size >= size_bytes and k), len(sizes) - 1)
        x0, x1 = math.log(sizes[above - 1]), math.log(sizes[above])
        share = (math.log(size_bytes) - x0) / (x1 - x0)

        def read(values: tuple[float, ...]) -> float:
            y0, y1 = math.log(values[above - 1]), math.log(values[above])
            return math.exp(y0 + share * (y1 - y0))

        area = 1e6 * read(self.area_mm2) if self.area_mm2 else None
        return Access(self.block_bytes, read(self.read_pj), read(self.write_pj), read(self.leakage_mw), area)


@dataclass(frozen=True)
class MultiplyAdd:
    """Energy of a product and of the sum it goes into, pJ; estimate: the source does not have it as such.

    estimated_from: listed formats that the figures of a format that is not listed come from.
    """

    product_pj: float
    sum_pj: float
    estimate: bool = False
    estimated_from: tuple[str, ...] = ()

    @property
    def total_pj(self) -> float:
        return self.product_pj + self.sum_pj


@dataclass(frozen=True)
class Codec:
    """Area of one encoder stage with its decoder for blocks of `block_bytes`, in um2, and factors it may be off by."""

    area_um2: float
    block_bytes: int
    low: float
    high: float


@dataclass(frozen=True)
class Technology:
    """On-chip memories and arithmetic of one technology node.

    low, high: factors that the memory figures may be off by; arithmetic_low, arithmetic_high: those of arithmetic.
    codec: of an encoder chain; None: no area is known.
    """

    name: str
    technology_nm: int
    low: float
    high: float
    ram: tuple[SizeTable, ...]
    cache: tuple[SizeTable, ...]
    multiply_add: Mapping[str, MultiplyAdd]
    arithmetic_low: float
    arithmetic_high: float
    source: str
    codec: Codec | None = None

    def covers(self, size_bytes: int, ways: int | None = None) -> bool:
        """Whether there are figures for a ram of a size (ways None) or for a cache."""
        if ways is None:
            return all(table.covers(size_bytes) for table in self.ram)
        return self._cache_table(ways).covers(size_bytes)

    def scratchpad(self, size_bytes: int, access_bytes: float) -> Access:
        """Return the narrowest ram that takes an access in one piece, else the widest; sizes in bytes."""
        return _narrowest(self.ram, access_bytes).at(size_bytes)

    def line_cache(self, size_bytes: int, ways: int, access_bytes: float = math.inf) -> Access:
        """Return a cache of the nearest number of ways in the table: tags and an access of so many bytes.

        Of the narrowest port that takes it in one piece, else the widest: a whole line.
        """
        nearest = self._cache_table(ways).ways
        return _narrowest([t for t in self.cache if t.ways == nearest], access_bytes).at(size_bytes)

    def _cache_table(self, ways: int) -> SizeTable:
        return min(self.cache, key=lambda t: (abs(math.log(t.ways / ways)), t.ways))

    def arithmetic(self, value_format: str) -> MultiplyAdd:
        """Return the multiply-add of a number format; an estimate for one that the file does not list.

        A product's energy goes with the square of the significand's bits; between two listed formats (of integers, or
        of floats) it is read log-log by these bits. The sum has their accumulator (fp32, int32), whose energy goes with
        the width for a significand wider than all listed ones. Raises InputError for what is no format, and where
        the file lists none of its family.
        """
        if value_format in self.multiply_add:
            return self.multiply_add[value_format]
        from traces.formats import FORMATS

        def family(name: str) -> bool:
            return FORMATS[name].item.needs_scale

        known = [name for name in self.multiply_add if name in FORMATS and value_format in FORMATS]
        listed = {name: FORMATS[name].item.significand_bits for name in known if family(name) == family(value_format)}
        if not listed:
            raise InputError(
                f"technology {self.name!r} has no multiply-add in {value_format!r}: it has "
                + ", ".join(self.multiply_add)
            )
        bits = FORMATS[value_format].item.significand_bits
        ranked = sorted(listed, key=lambda name: listed[name])
        narrow = next((name for name in reversed(ranked) if listed[name] <= bits), ranked[0])
        wide = next((name for name in ranked if listed[name] >= bits), narrow)
        below, above = self.multiply_add[narrow], self.multiply_add[wide]
        power = 2.0
        if listed[wide] > listed[narrow]:
            power = math.log(above.product_pj / below.product_pj) / math.log(listed[wide] / listed[narrow])
        ratio = bits / listed[narrow]
        sum_pj = below.sum_pj * (max(ratio, 1.0) if narrow == wide else 1.0)
        return MultiplyAdd(below.product_pj * ratio**power, sum_pj, True, tuple(dict.fromkeys((narrow, wide))))


def load_technology(technology: str | Path | Mapping[str, Any] | Technology) -> Technology:
    """Return a technology from a shipped name (configs/onchip), a YAML path or a mapping of the same shape.

    Raises ConfigError naming file, line and column of an unknown or missing key, or of a figure that is none.
    """
    if isinstance(technology, Technology):
        return technology
    from hwmodel.energy.technology_file import read_technology

    if isinstance(technology, Mapping):
        name, document = "technology", Document(dict(technology), values={(): Mark("technology")})
    else:
        given = str(technology)
        path = Path(given) if given.endswith((".yaml", ".yml")) else shipped_path("onchip", given)
        need_regular(path)
        name, document = path.stem, read_document(path)
    file = read_technology(document)
    arithmetic, codec = file.multiply_add, file.codec
    return Technology(
        name=name,
        technology_nm=file.technology_nm,
        low=file.low,
        high=file.high,
        ram=tuple(SizeTable(**{"ways": 1, **dict(each)}) for each in file.ram),
        cache=tuple(SizeTable(**dict(each)) for each in file.cache),
        multiply_add={key: MultiplyAdd(**dict(each)) for key, each in arithmetic.__pydantic_extra__.items()},
        arithmetic_low=arithmetic.low,
        arithmetic_high=arithmetic.high,
        source=f"{file.source}; {arithmetic.source}",
        codec=Codec(codec.area_um2, codec.block_bytes, codec.low, codec.high) if codec else None,
    )


def _narrowest(tables: Sequence[SizeTable], access_bytes: float) -> SizeTable:
    fits = [table for table in tables if table.block_bytes >= access_bytes]
    return min(fits, key=lambda t: t.block_bytes) if fits else max(tables, key=lambda t: t.block_bytes)
