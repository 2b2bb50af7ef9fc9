"""What on-chip memories and multiply-adds cost in one technology: sourced tables, read between their points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.base.document import Document, Loc, Mark, dotted, read_document
from traces.base.errors import InputError, did_you_mean, shown
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
    if isinstance(technology, Mapping):
        return _Reading(Document(technology, values={(): Mark("technology")})).technology("technology")
    name = str(technology)
    path = Path(name) if name.endswith((".yaml", ".yml")) else shipped_path("onchip", name)
    need_regular(path)
    return _Reading(read_document(path)).technology(path.stem)


def _narrowest(tables: Sequence[SizeTable], access_bytes: float) -> SizeTable:
    fits = [table for table in tables if table.block_bytes >= access_bytes]
    return min(fits, key=lambda t: t.block_bytes) if fits else max(tables, key=lambda t: t.block_bytes)


class _Reading:
    def __init__(self, document: Document) -> None:
        self.document = document

    def technology(self, name: str) -> Technology:
        about = self.section((), ("technology_nm", "low", "high", "ram", "cache", "multiply_add", "source"),
                             ("description", "codec"))  # fmt: skip
        arithmetic = self.section(("multiply_add",), ("source", "low", "high"), None)
        return Technology(
            name=name,
            technology_nm=self.whole(("technology_nm",)),
            low=self.number(("low",)),
            high=self.number(("high",)),
            ram=self.tables("ram", ()),
            cache=self.tables("cache", ("ways",)),
            multiply_add={
                key: self.multiply_add(("multiply_add", key))
                for key in arithmetic
                if key not in ("source", "low", "high")
            },
            arithmetic_low=self.number(("multiply_add", "low")),
            arithmetic_high=self.number(("multiply_add", "high")),
            source=f"{about['source']}; {arithmetic['source']}",
            codec=self.codec() if "codec" in about else None,
        )

    def section(self, loc: Loc, keys: Sequence[str], others: Sequence[str] | None = ()) -> Mapping[str, Any]:
        """Return a mapping that has these keys; others: those that it may have, None for any."""
        node = self.document.get(loc)
        if not isinstance(node, Mapping):
            raise self.wrong(loc, f"a mapping with {', '.join(keys)} is needed, not {shown(node)}")
        for key in node if others is not None else ():
            if key not in (*keys, *(others or ())):
                raise self.wrong((*loc, key), f"unknown key {shown(key)}{did_you_mean(key, (*keys, *(others or ())))}")
        if missing := [key for key in keys if key not in node]:
            raise self.wrong(loc, f"missing key {missing[0]!r}")
        return node

    def wrong(self, loc: Loc, message: str) -> InputError:
        return self.document.fail(loc, f"not a technology: {f'{dotted(loc)}: ' if loc else ''}{message}")

    def number(self, loc: Loc) -> float:
        value = self.document.get(loc)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.wrong(loc, f"a positive number is needed, not {shown(value)}")
        try:
            return float(value)
        except OverflowError:
            raise self.wrong(loc, f"{shown(value)} is too large") from None

    def whole(self, loc: Loc) -> int:
        value = self.number(loc)
        if value != int(value):
            raise self.wrong(loc, f"a whole number is needed, not {value}")
        return int(value)

    def list_of(self, loc: Loc) -> list[Loc]:
        node = self.document.get(loc)
        if not isinstance(node, list | tuple) or not node:
            raise self.wrong(loc, f"a list is needed, not {shown(node)}")
        return [(*loc, k) for k in range(len(node))]

    def tables(self, of: str, keys: Sequence[str]) -> tuple[SizeTable, ...]:
        figures = ("read_pj", "write_pj", "leakage_mw")
        tables = []
        for loc in self.list_of((of,)):
            node = self.section(loc, ("block_bytes", "size_bytes", *figures, *keys), ("area_mm2",))
            sizes = tuple(self.whole(each) for each in self.list_of((*loc, "size_bytes")))
            if len(sizes) < 2 or list(sizes) != sorted(set(sizes)):
                raise self.wrong((*loc, "size_bytes"), "two sizes or more are needed, ascending")
            columns = []
            for key in (*figures, *(["area_mm2"] if "area_mm2" in node else [])):
                columns.append(tuple(self.number(each) for each in self.list_of((*loc, key))))
                if len(columns[-1]) != len(sizes):
                    raise self.wrong((*loc, key), f"{len(sizes)} figures are needed, one a size")
            ways = self.whole((*loc, "ways")) if "ways" in keys else 1
            tables.append(SizeTable(self.whole((*loc, "block_bytes")), ways, sizes, *columns))
        return tuple(tables)

    def multiply_add(self, loc: Loc) -> MultiplyAdd:
        node = self.section(loc, ("product_pj", "sum_pj"), ("estimate",))
        if not isinstance(estimate := node.get("estimate", False), bool):
            raise self.wrong((*loc, "estimate"), f"true or false is needed, not {shown(estimate)}")
        return MultiplyAdd(self.number((*loc, "product_pj")), self.number((*loc, "sum_pj")), estimate)

    def codec(self) -> Codec:
        self.section(("codec",), ("area_um2", "block_bytes", "low", "high"), ("source",))
        area, low, high = (self.number(("codec", key)) for key in ("area_um2", "low", "high"))
        return Codec(area, self.whole(("codec", "block_bytes")), low, high)
