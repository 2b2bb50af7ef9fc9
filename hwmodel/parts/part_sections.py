"""The sections of a part: every number with unit and source, every contradiction named with its line.

The schema is documented in docs/concepts/dram-parts.md. All problems of a file are reported at once: first what is no
constant, then, of constants, what contradicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache, lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model, model_validator
from pydantic_core import CoreSchema, core_schema

from hwmodel.parts.burst_cells import check_cells
from hwmodel.parts.part import (
    COMMANDS,
    AddressMap,
    Constant,
    Currents,
    Derating,
    Interface,
    Organisation,
    Part,
    Timing,
    WireGroup,
)
from traces.base.document import Document, Loc, dotted
from traces.base.errors import InputError, did_you_mean
from traces.base.schema import ABSENT, Section, SectionChoice, Whole, keys_of, validate

T = TypeVar("T")
Complain = Callable[[Loc, str], None]  # notes a problem at a place

LEAST = {"device_dq_bits": 4, "burst_beats": 2}  # of sizes that must be given, else 1
# What a timing name falls back to where a part makes no such distinction: 0 for those that have a default, unless said
# here; others must be given.
FALLBACK: dict[str, str | int] = {
    "RL_dbi": "RL", "tRCD_write": "tRCD", "tRPab": "tRP", "tRC": "tRAS + tRP", "tRRD_L": "tRRD", "tCCD_L": "tCCD",
    "tWTR_L": "tWTR", "tPPD": 0, "tRFCpb": 0, "tREFpb_gap": "tRFCpb", "tXP": 0, "tCKE": 0, "turnaround": 0, "tRTRS": 0,
    **{each.name: each.default for each in fields(Timing) if each.default is not MISSING},
}  # fmt: skip
WIRE_COMMANDS = ("ACT", "RD", "WR", "PRE", "REF")
CURRENTS = ("IDD0", "IDD2N", "IDD2P", "IDD3N", "IDD3P", "IDD4R", "IDD4W", "IDD5AB")
# IDD5PB: per-bank refresh; IDD6: self-refresh; I_beta: the share of IDD0 that flows while the row is precharged.
OPTIONAL_CURRENTS = ("IDD5PB", "IDD6", "I_beta")
PER_BANK = "IDD5PB_refreshes_per_tREFI"
GROUPS = {"dq": ..., "dbi": None, "dqs": None, "wck": None, "ck": ..., "ca": ...}  # None: a part may be without
MOST_RAILS = 8
MOST_WIRES, MOST_RATE = 1 << 12, 1 << 12  # of a group (wires are counted one by one), and periods or beats in a clock
RATES = {"ca": "beats_per_clock", **dict.fromkeys(("dqs", "wck", "ck"), "periods_per_clock")}
_LEVEL = re.compile(r"0|1|V|R1?\d|C(1[0-5]|\d)|(BA|BG)[0-7]")


@cache
def _real(least: float, most: float = 1e12) -> Any:
    return Sourced[Annotated[float, Field(ge=least, le=most)]]


@cache
def _whole(least: int, most: int = 10**12) -> Any:
    return Sourced[Annotated[Whole, Field(ge=least, le=most)]]


def _says(given: Any) -> Any:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("has no source: say which standard, datasheet or estimate it comes from")
    return given


Source = Annotated[str, BeforeValidator(_says), Field(default="", validate_default=True)]


class SourcedSection(Section, defer_build=True):
    source: Source
    note: str | None = None


class Estimable(SourcedSection):
    """What a constant says of its value. range: factors that an estimated current or capacitance may be off by."""

    estimate: bool = False
    range: list[float] | None = None

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            numbers = "".join(f"{key}: NUMBER, " for key, field in keys_of(cls).items() if field.is_required())
            raise ValueError(f"write {{{numbers}source: WHERE IT COMES FROM}}")
        return given


class Sourced(Estimable, Generic[T]):
    value: T


class Current(Estimable):
    """Milliamperes of each rail, as further fields."""


class OnRails(SectionChoice):
    """Annotation of `currents`: volts of each rail, and currents on each."""

    def chosen(self, data: Any) -> list[type[BaseModel]]:
        keys = data if isinstance(data, dict) else ()
        return [_on_rails(tuple(key[:-2] for key in keys if key.endswith("_V"))[:MOST_RAILS])]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda data: self.chosen(data)[0].model_validate(data))


@lru_cache(maxsize=16)
def _on_rails(rails: tuple[str, ...]) -> type[Section]:
    milliamperes = Annotated[float, Field(ge=0, le=1e12)]
    on_rails: Any = {f"rail{k}": (milliamperes, Field(alias=rail)) for k, rail in enumerate(rails)}
    current = create_model("Current", __base__=Current, **on_rails)
    given: Any = {
        PER_BANK: (_real(0), ABSENT),
        **{f"volts{k}": (_real(0.1), Field(alias=f"{rail}_V")) for k, rail in enumerate(rails)},
        **{f"{name}_mA": (current, ...) for name in CURRENTS},
        **{f"{name}_mA": (current, ABSENT) for name in OPTIONAL_CURRENTS},
    }
    return create_model("Currents", __base__=Section, **given)


def _section(title: str, /, **given: Any) -> Any:
    return create_model(title, __base__=Section, __cls_kwargs__={"defer_build": True}, **given)


_ORGANISATION = _section("Organisation", **{
    each.name: (_whole(LEAST.get(each.name, 1)), ...) if each.default is MISSING else (_whole(each.default), ABSENT)
    for each in fields(Organisation)
})  # fmt: skip
_TIMING = _section("Timing", **{
    f"{each.name}_{unit}": (kind, ABSENT)
    for each in fields(Timing) for unit, kind in (("ns", _real(0)), ("cycles", _whole(0)))
})  # fmt: skip
_WIRES = _section(
    "Wires",
    count=(_whole(1, MOST_WIRES), ...),
    periods_per_clock=(_whole(1, MOST_RATE), ABSENT),
    beats_per_clock=(_whole(1, MOST_RATE), ABSENT),
    idle_level=(_whole(0, 1), ABSENT),
    runs=(Literal["always", "bursts"], "bursts"),
    **{
        f"{way}_{what}": (_real(0), ABSENT)
        for way in ("read", "write")
        for what in ("r_eq_ohm", "termination_ohm", "driver_ohm", "rise_pJ", "capacitance_pF")
    },
)


class Cells(SourcedSection):
    beats: Annotated[list[str], Field(min_length=1)]


class Levels(SourcedSection, extra="allow"):
    __pydantic_extra__: dict[str, list[str]]


_INTERFACE = _section(
    "Interface",
    termination=(Literal["vssq", "vddq", "none"], ...),
    dbi=(Literal["ones", "zeros", "toggles", "none"], ...),
    vddq_V=(_real(0.1), ...),
    vddq_per_voh=(_real(1), ABSENT),
    cells=(Cells, ABSENT),
    wires=(_section("Groups", **{each: (_WIRES, needed) for each, needed in GROUPS.items()}), ...),
    command_levels=(Levels, ...),
)
_TEMPERATURE = _section(
    "Temperature", above_C=(_real(0), ...), tREFI_factor=(_real(0.01, 1), ...), add_ns=(_real(0), ...)
)
PartFile = _section(
    "PartFile",
    name=(str, "unnamed"),
    **dict.fromkeys(("extends", "with", "options"), (Any, None)),  # taken before: here for who mistypes them
    standard=(str, ""),
    note=(str, ""),
    clock=(_section("Clock", tCK_ns=(_real(1e-3), ...)), ...),
    organisation=(_ORGANISATION, ...),
    timing=(_TIMING, ...),
    commands=(_section("Commands", **{f"{each}_cycles": (_whole(1), ...) for each in WIRE_COMMANDS}), ...),
    currents=(Annotated[Any, OnRails()], ...),
    interface=(_INTERFACE, ...),
    temperature=(_TEMPERATURE, ABSENT),
    address_map=(Sourced[str], ...),
)


def _values(section: Section) -> dict[str, Any]:
    """Return the values of the constants that a section gives."""
    return {name: each.value for name, each in section if isinstance(each, Sourced)}


def build(document: Document) -> Part:
    """Return the part that a document describes. Raises ConfigError with every problem at its place."""
    file = validate(PartFile, document)
    own = document.mark(()).file  # what contradicts is told of in the part's own file, of which its base knows nothing
    for marks in (document.keys, document.values):
        for loc in [loc for loc, mark in marks.items() if mark.file != own]:
            del marks[loc]
    tck_ns, hot = file.clock.tCK_ns.value, file.temperature
    organisation = Organisation(**_values(file.organisation))
    complain = document.complain
    _check_organisation(complain, organisation)
    timing = _timing(complain, file.timing, tck_ns)
    currents = _currents(complain, file.currents)
    interface = _interface(complain, file.interface)
    constants, ranges = _constants(complain, file, document.data, currents.rails)
    if not document.problems:
        _check_timing(complain, timing, organisation, currents, document.data["timing"])
        for problem in check_cells(interface.cells, organisation, interface.dbi) if interface.cells else ():
            complain(("interface", "cells", "beats"), problem)
        try:
            AddressMap.parse(file.address_map.value, organisation)
        except InputError as error:
            complain(("address_map",), str(error))
    document.finish()
    return Part(
        name=file.name,
        standard=file.standard,
        tck_ns=tck_ns,
        organisation=organisation,
        timing=timing,
        command_cycles={name.removesuffix("_cycles"): clocks for name, clocks in _values(file.commands).items()},
        currents=currents,
        interface=interface,
        address_map=file.address_map.value,
        note=file.note.strip(),
        constants=constants,
        derating=Derating(*_values(hot).values()) if hot else None,
        ranges=ranges,
    )


def _constants(
    complain: Complain, file: Section, data: Any, rails: tuple[str, ...]
) -> tuple[dict[str, Constant], dict[str, tuple[float, float]]]:
    """Return the constants of a part, by their dotted names, and the ranges that some have."""
    constants: dict[str, Constant] = {}
    ranges: dict[str, tuple[float, float]] = {}

    def walk(section: Any, data: Any, at: Loc) -> None:
        if not isinstance(section, Estimable | Cells):
            for name, field in type(section).model_fields.items():
                inside, key = getattr(section, name), field.alias or name
                if isinstance(inside, Section):
                    walk(inside, data[key], (*at, key))
            return
        numbers = {at: data.get("value")}  # 8 stays 8, as the file writes it
        if isinstance(section, Current):
            numbers = {(*at, rail): getattr(section, f"rail{k}") for k, rail in enumerate(rails)}
        for loc, value in numbers.items():
            number = value if isinstance(value, int | float) else math.nan
            constants[dotted(loc)] = Constant(number, section.source, getattr(section, "estimate", False))
        if not isinstance(section, Estimable) or section.range is None:
            return
        ends = section.range
        if len(ends) != 2 or not 0 < ends[0] <= 1 <= ends[1] <= 100:
            text = f"must be two factors, one up to 1 and one from 1 on, such as [0.6, 1.6], not {ends}"
            complain((*at, "range"), text)
        elif not section.estimate or not str(at[-1]).endswith(("_mA", "_pF")):
            complain((*at, "range"), "only estimated currents and capacitances have one")
        else:
            ranges[dotted(at)] = ends[0], ends[1]

    walk(file, data, ())
    return constants, ranges


def _check_organisation(complain: Complain, o: Organisation) -> None:
    odd = {"devices_per_rank", "overhead_bits", "rows"}
    odd |= {"device_dq_bits", "burst_beats"} if o.overhead_bits else set()
    for key, value in vars(o).items():
        if key not in odd and value & (value - 1):
            complain(("organisation", key), f"must be a power of two, not {value}")
    whole = o.burst_bytes >= 1 and not o.burst_bytes & (o.burst_bytes - 1)
    for wrong, name, message in (
        (
            not whole,
            "overhead_bits" if o.overhead_bits else "devices_per_rank",
            "device_dq_bits x devices_per_rank x burst_beats - overhead_bits must be a power of two of bytes, not "
            f"{o.dq_bits} x {o.burst_beats} - {o.overhead_bits} bits",
        ),
        (o.burst_beats % o.beats_per_clock, "burst_beats", "a burst must fill whole clocks and whole bytes"),
        (o.refresh_banks > o.banks, "refresh_banks", f"at most the {o.banks} banks of a rank"),
        (o.command_buses > 2, "command_buses", "must be 1 or 2"),
        (o.rows > 1 << 20 or o.columns > 1 << 16, "rows", "at most 2^20 rows and 2^16 columns"),
        (o.columns % o.columns_per_burst, "columns", "must be a multiple of burst_beats (or of column_step)"),
        (o.ranks * o.pseudo_channels > 8, "ranks", "at most 8 ranks, those of pseudo channels counted together"),
        (o.ranks * o.banks > 64, "ranks", "at most 64 banks in a channel"),
        (o.capacity_bytes > 1 << 48 or o.channels > 64, "channels", "at most 2^48 bytes and 64 channels"),
    ):
        if wrong:
            complain(("organisation", name), message)


def _timing(complain: Complain, section: Section, tck_ns: float) -> Timing:
    """Turn each constant into clocks: nanoseconds rounded up; given in both units, the larger holds (JEDEC's max)."""
    given, clocks = _values(section), dict[str, int]()
    for name in (each.name for each in fields(Timing)):
        both = [given[f"{name}_cycles"]] if f"{name}_cycles" in given else []
        if f"{name}_ns" in given:
            # A refresh interval is a maximum, so it is rounded down; every other time is a minimum.
            exact = given[f"{name}_ns"] / tck_ns
            both.append(math.floor(exact + 1e-6) if name == "tREFI" else math.ceil(exact - 1e-6))
        if not both and name not in FALLBACK:
            complain(("timing",), f"{name} is missing: give {name}_ns or {name}_cycles with its source")
        fallback = FALLBACK.get(name, 0)
        other = fallback if isinstance(fallback, int) else sum(clocks[each] for each in fallback.split(" + "))
        clocks[name] = max(both, default=other)
        if clocks[name] > 1 << 24:
            complain(("timing",), f"{name} is {clocks[name]} clocks: beyond 2^24")
    return Timing(**clocks)


def _check_timing(
    complain: Complain, t: Timing, organisation: Organisation, currents: Currents, given: Mapping[str, Any]
) -> None:
    """Refuse timings that contradict each other; the message shows both sides in clocks."""
    burst = organisation.burst_cycles
    for wrong, name, message in (
        (t.tRC < t.tRAS + t.tRP, "tRC", f"tRC {t.tRC} is shorter than tRAS + tRP = {t.tRAS} + {t.tRP} clocks"),
        (t.tRAS < t.tRCD, "tRAS", f"tRAS {t.tRAS} is shorter than tRCD {t.tRCD} clocks"),
        (t.tREFI <= t.tRFCab, "tREFI", f"refresh interval {t.tREFI} is not longer than the refresh {t.tRFCab} clocks"),
        (t.tFAW < t.tRRD, "tFAW", f"tFAW {t.tFAW} is shorter than tRRD {t.tRRD} clocks"),
        (t.tCCD < burst, "tCCD", f"tCCD {t.tCCD} is shorter than the burst of {burst} clocks"),
        (t.tRCD < 1, "tRCD", "tRCD must be at least 1 clock"),
        (t.tRP < 1, "tRP", "tRP must be at least 1 clock"),
        (t.tRPab < t.tRP, "tRPab", f"tRPab {t.tRPab} is shorter than tRP {t.tRP} clocks"),
        (0 < t.BL_L < burst, "BL_L", f"BL_L {t.BL_L} is shorter than the burst of {burst} clocks"),
        (0 < t.tCCD_L_WR < t.tCCD, "tCCD_L_WR", f"tCCD_L_WR {t.tCCD_L_WR} is shorter than tCCD {t.tCCD} clocks"),
        (t.tAAD >= t.tRCD, "tAAD", f"tAAD {t.tAAD} is not shorter than tRCD {t.tRCD} clocks"),
        (t.RL < 1, "RL", "RL must be at least 1 clock"),
        (t.RL_dbi < t.RL, "RL_dbi", f"RL_dbi {t.RL_dbi} is shorter than RL {t.RL} clocks"),
        (t.tRFCpb > t.tRFCab, "tRFCpb", f"tRFCpb {t.tRFCpb} is longer than tRFCab {t.tRFCab} clocks"),
        (
            t.tRFCpb * organisation.refresh_sets >= t.tREFI,  # each set of banks in turn, all of them once in tREFI
            "tRFCpb",
            f"tRFCpb {t.tRFCpb} is not shorter than the interval of per-bank refreshes, "
            f"tREFI / {organisation.refresh_sets} = {t.tREFI // organisation.refresh_sets} clocks",
        ),
        (t.tRRD_L < t.tRRD, "tRRD_L", f"tRRD_L {t.tRRD_L} is shorter than tRRD {t.tRRD} clocks"),
        (t.tCCD_L < t.tCCD, "tCCD_L", f"tCCD_L {t.tCCD_L} is shorter than tCCD {t.tCCD} clocks"),
        (t.tWTR_L < t.tWTR, "tWTR_L", f"tWTR_L {t.tWTR_L} is shorter than tWTR {t.tWTR} clocks"),
        (t.RL + burst < t.WL, "WL", f"WL {t.WL} is longer than RL + burst = {t.RL + burst} clocks"),
    ):
        if wrong:
            keys = (f"{name}_{unit}" for unit in ("cycles", "ns"))
            complain(("timing", next((key for key in keys if key in given), name)), message)
    for name, base in (("IDD0", "IDD2N"), ("IDD4R", "IDD3N"), ("IDD4W", "IDD3N"), ("IDD5AB", "IDD3N")):
        if currents.power_mw(name, base) < 0:
            complain(("currents", f"{name}_mA"), f"{name} draws less power than the background {base}")
    if t.tRFCpb and "IDD5PB" not in currents.idd_ma:
        complain(("currents", "IDD5PB_mA"), "is missing, but the part has per-bank refresh (tRFCpb)")


def _currents(complain: Complain, section: Section) -> Currents:
    given = _values(section)
    rails = tuple(str(field.alias)[:-2] for field in type(section).model_fields.values() if field.alias)
    if not rails:
        complain(("currents",), "names no supply rail: give e.g. vdd2_V")
    idd = {
        name: tuple(getattr(getattr(section, f"{name}_mA"), f"rail{k}") for k in range(len(rails)))
        for name in CURRENTS + OPTIONAL_CURRENTS
        if getattr(section, f"{name}_mA") is not None
    }
    return Currents(rails, tuple(given[f"volts{k}"] for k in range(len(rails))), idd, given.get(PER_BANK))


def _interface(complain: Complain, section: Any) -> Interface:
    given, groups, at = _values(section), section.wires, ("interface", "wires")
    if section.termination == "vssq" and "vddq_per_voh" not in given:
        complain(("interface", "vddq_per_voh"), "this constant is missing")
    if section.dbi != "none" and not section.cells and groups.dbi is None:
        complain(at, "the group dbi is missing")
    ends = section.termination, given["vddq_V"], given.get("vddq_per_voh", 1.0)
    wires = {name: _wire_group(complain, name, wires, *ends) for name, wires in groups if wires is not None}
    cells = tuple(" ".join(row.split()) for row in section.cells.beats) if section.cells else ()
    levels = _command_levels(complain, section.command_levels, wires["ca"].count)
    return Interface(section.termination, section.dbi, given["vddq_V"], wires, levels, cells)


def _wire_group(
    complain: Complain, name: str, section: Any, termination: str, vddq: float, divisor: float
) -> WireGroup:
    """Derive R_eq = VDDQ / I and the energy of a rising edge from termination and capacitance.

    vssq (LVSTL): VOH = VDDQ / divisor, I = VOH / R_termination. vddq (POD): I = VDDQ / (R_driver + R_termination), the
    swing is VDDQ - VOL. none: full swing, no static current. A rising edge takes C * VDDQ * swing from the supply.
    """
    loc, given = ("interface", "wires", name), _values(section)

    def need(*names: str) -> None:
        if not any(each in given for each in names):
            complain((*loc, names[0]), f"this constant is missing{''.join(f' (or {n})' for n in names[1:])}")

    if name in RATES:
        need(RATES[name])
    driven: dict[str, tuple[float | None, float]] = {"read": (None, 0.0), "write": (None, 0.0)}
    ways = [way for way in driven if any(key.startswith(f"{way}_") for key in given)]
    if not ways:
        complain(loc, "gives no termination and capacitance: read_..., write_... or both")
    for way in ways:
        resistance, pull, driver = (given.get(f"{way}_{what}_ohm") for what in ("r_eq", "termination", "driver"))
        swing = vddq
        if termination == "none":
            resistance = None
        else:
            need(f"{way}_termination_ohm", f"{way}_r_eq_ohm")
            if termination == "vssq":
                swing = vddq / divisor
                resistance = resistance if resistance is not None else (pull or 0.0) * vddq / swing
            else:
                need(f"{way}_driver_ohm", f"{way}_r_eq_ohm")
                if pull is not None and driver is not None:
                    swing = vddq * pull / (pull + driver) if pull + driver else vddq
                    resistance = resistance if resistance is not None else pull + driver
            if not resistance:
                complain(loc, f"{way}: a terminated wire needs a resistance above 0")
        need(f"{way}_capacitance_pF", f"{way}_rise_pJ")
        energy = given.get(f"{way}_rise_pJ", given.get(f"{way}_capacitance_pF", 0.0) * vddq * swing)
        driven[way] = resistance, energy
    (read_ohm, read_pj), (write_ohm, write_pj) = driven.values()
    others = {key: given.get(key, 0) for key in ("periods_per_clock", "beats_per_clock", "idle_level")}
    return WireGroup(given["count"], read_ohm, write_ohm, read_pj, write_pj, **others, always=section.runs == "always")


def _command_levels(complain: Complain, section: Levels, wires: int) -> dict[str, tuple[tuple[str, ...], ...]]:
    levels = {name: tuple(tuple(beat.split()) for beat in beats) for name, beats in section.__pydantic_extra__.items()}
    at = ("interface", "command_levels")
    for command, rows in levels.items():
        if command not in COMMANDS:
            complain((*at, command), f"unknown command{did_you_mean(command, COMMANDS)}")
        elif not 1 <= len(rows) <= 8 or max(map(len, rows)) > 32:
            complain((*at, command), "a command has 1 to 8 beats of at most 32 wires")
        for row in rows:
            if len(row) != wires:
                text = f"a beat names {len(row)} levels, but there are {wires} command wires"
                complain((*at, command), text)
            for level in (level for level in row if not _LEVEL.fullmatch(level)):
                complain((*at, command), f"level {level!r} is none of 0, 1, V, BA#, BG#, R#, C#")
    for command in ("ACT", "RD", "WR", "PRE", "REFab"):
        if command not in levels:
            complain(at, f"the levels of {command} are missing")
    return levels
