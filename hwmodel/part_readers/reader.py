"""What a reader of memory specifications is, and what all of them share: names translated, every number checked.

Wires and command levels are those of a base part of the same standard. Where a file says no currents, an activate, a
bit read or written and a refresh take the base's energy at the new clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hwmodel.parts.part import Part
from hwmodel.parts.part_file import load_part
from traces.base.document import Document, read_document
from traces.base.errors import InputError, did_you_mean, shown
from traces.base.registry import Registry

# The shipped part that an imported one takes what its file does not say from, by memory standard.
BASES = {
    "LPDDR4": "lpddr4-3200", "LPDDR4X": "lpddr4-3200", "LPDDR5": "lpddr5-6400", "LPDDR5X": "lpddr5x-8533",
    "LPDDR6": "lpddr6-10667", "DDR4": "ddr4-3200-x8", "DDR5": "ddr5-4800-x8", "HBM2": "hbm2", "HBM3": "hbm3",
}  # fmt: skip
LARGEST = 1 << 48
CORE = "core"  # rail of a specification that has one: the base's core rail, whose other rails then draw nothing
CORE_RAILS = ("vdd", "vdd2", "vdd2h", "vdd2c")


@dataclass
class Specification:
    """What a file says, in our names. organisation and timing (clocks): whole numbers; currents: mA of rails. order: of
    the fields of an address, least significant first."""

    name: str
    standard: str
    tck_ns: float
    organisation: dict[str, int]
    timing: dict[str, int]
    currents: dict[str, dict[str, float]] = field(default_factory=dict)
    volts: dict[str, float] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    order: tuple[str, ...] = ("channel", "bank_group", "rank", "column", "bank", "row")


@dataclass(frozen=True)
class PartReader:
    """recognises(data): whether a file's plain data are of this format. read(document): what they say.

    `read` complains to the document about what is wrong and returns None where too much is.
    """

    recognises: Callable[[Any], bool]
    read: Callable[[Document], Specification | None]


PART_READERS: Registry[PartReader] = Registry(
    "part reader", "edgewatt.part_readers", folder="hwmodel.part_readers", instances_of=PartReader
)


class NumberSection:
    """One mapping of a file whose numbers are taken by name; what is not taken is reported as unused."""

    def __init__(self, document: Document, *keys: str) -> None:
        self.document, self.keys = document, keys
        node: Any = document.data
        for key in keys:
            node = node.get(key) if isinstance(node, dict) else None
        if not isinstance(node, dict):
            document.complain(keys, "this section is missing" if node is None else "must be a mapping of constants")
        self.data: dict[str, Any] = node if isinstance(node, dict) else {}
        self.left = set(self.data)

    def taken(self, name: str) -> Any:
        """Return a value as it is, None where it is not there."""
        self.left.discard(name)
        return self.data.get(name)

    def text(self, name: str) -> str:
        """Return a text, '' with a complaint where it is none."""
        text = self.taken(name)
        if not isinstance(text, str | None):
            self.document.complain((*self.keys, name), f"must be text, not {shown(text)}")
        return text if isinstance(text, str) else ""

    def number(self, *names: str, required: bool = True, whole: bool = True, least: float = 0) -> float | None:
        """Return the number of the first of the names that is there; all of them count as taken."""
        from traces.base.schema import number_of

        for name in names:
            if name in self.data:
                self.left -= set(names)
                try:
                    return number_of(self.data[name], least, LARGEST, whole=whole)
                except InputError as error:
                    self.document.complain((*self.keys, name), str(error))
                    return None
        if required:
            self.document.complain(
                self.keys, f"{names[0]} is missing{' (or ' + ', '.join(names[1:]) + ')' if names[1:] else ''}"
            )
        return None

    def whole(self, *names: str, default: int | None = None, least: int = 1) -> int | None:
        """Return a whole number; `default` where none of the names is there (None: complain)."""
        value = self.number(*names, required=default is None, least=least)
        if value is None:
            return default if not any(name in self.data for name in names) else None
        return int(value)

    def timing(self, names: Mapping[str, tuple[str, ...]], needed: tuple[str, ...]) -> dict[str, int]:
        """Return our timing names -> clocks; `needed` ones are complained about where they are missing."""
        clocks = {}
        for ours, theirs in names.items():
            value = self.number(*theirs, required=ours in needed)
            if value is not None:
                clocks[ours] = int(value)
        return clocks


@dataclass(frozen=True)
class Imported:
    """The data of a part file, the part they make, what of the specification was not used, and which currents follow
    from the base's energy an event."""

    data: dict[str, Any]
    part: Part
    unused: tuple[str, ...]
    inherited: tuple[str, ...] = ()


def import_part(
    path: str | Path, *, base: str | None = None, name: str | None = None, format: str | None = None
) -> Imported:
    """Read another simulator's memory specification and make a part of it.

    base: the shipped part or part file to extend (default: one of the same standard). Raises InputError naming file,
    line and column of everything that is missing, no number, out of range or contradicts something else.
    """
    document = read_document(Path(path), ini_as_yaml if Path(path).suffix.lower() == ".ini" else None)
    reader = _reader(document, format)
    given = reader.read(document)
    document.finish()
    assert given is not None
    if base is None and given.standard not in BASES:
        raise InputError(
            f"{path}: no shipped part is of standard {given.standard!r}{did_you_mean(given.standard, list(BASES))}: "
            "name the part to take wires and command levels from (base, --base on the command line)"
        )
    base_name = base or BASES[given.standard]
    base_part = load_part(base_name)
    if "tRFCpb" in given.timing and "IDD5PB" not in base_part.currents.idd_ma:
        del given.timing["tRFCpb"]
        given.unused.append("per-bank refresh (no current for it)")
    for plain in ("tRRD", "tCCD", "tWTR"):  # where a file makes no difference within a bank group, neither do we
        if plain in given.timing:
            given.timing.setdefault(f"{plain}_L", given.timing[plain])
    called = Path(path).stem if "/" in given.name else given.name  # some files give the page they were read from
    data = _part_data(given, base_name, base_part, name or called, Path(path).name)
    try:
        part = load_part(data)
        if kept := inherited_currents(base_part, part, given.currents):
            data.setdefault("currents", {}).update(kept)
            data["note"] += f"; {', '.join(name.removesuffix('_mA') for name in kept)}: energy an event as there"
            part = load_part(data)
        return Imported(data, part, tuple(given.unused), tuple(name.removesuffix("_mA") for name in kept))
    except InputError as error:
        lines = [f"{path}: what it says makes no part we can model: {line}" for line in str(error).split("\n")]
        raise InputError("\n".join(lines)) from error


def _reader(document: Document, format: str | None) -> PartReader:
    if format is not None:
        return PART_READERS[format].item
    for entry in PART_READERS.loadable().values():
        if entry.item.recognises(document.data):
            return entry.item
    raise InputError(f"{document.mark(()).file}: no memory specification of a known format ({', '.join(PART_READERS)})")


def _part_data(given: Specification, base_name: str, base: Part, name: str, file: str) -> dict[str, Any]:
    source = f"imported from {file}"

    def made(value: float) -> dict[str, Any]:
        return {"value": value, "source": source}

    o = {**_sizes(base), **given.organisation}
    dq = o["device_dq_bits"] * o["devices_per_rank"]
    overhead = base.organisation.overhead_bits * o["burst_beats"] // base.organisation.burst_beats
    burst_bytes = (dq * o["burst_beats"] - overhead) // 8
    step = o["column_step"] or o["burst_beats"]
    counts = {
        "channel": o["channels"], "bank_group": o["bank_groups"], "rank": o["ranks"], "column": o["columns"] // step,
        "bank": o["banks_per_group"], "row": o["rows"],
    }  # fmt: skip
    fields = {"offset": burst_bytes, **{name: counts[name] for name in given.order}}
    if "RL" in given.timing and "RL_dbi" not in given.timing:  # as much longer with DBI as the base's
        given.timing["RL_dbi"] = given.timing["RL"] + base.timing.RL_dbi - base.timing.RL
    data: dict[str, Any] = {
        "extends": base_name,
        "name": name,
        "standard": given.standard,
        "note": f"{source}; wires, command levels and what is not listed here are those of {base_name}",
        "clock": {"tCK_ns": made(given.tck_ns)},
        "organisation": {key: made(value) for key, value in o.items()},
        "timing": {f"{key}_cycles": made(value) for key, value in given.timing.items()},
        "address_map": {
            "value": " ".join(f"{key}:{(size - 1).bit_length()}" for key, size in fields.items() if size > 1),
            "source": source if given.order != Specification.order else "choice, channels and bank groups in turn",
        },
    }
    wires = base.interface.wires
    data["interface"] = {"wires": {"dq": {"count": made(dq)}}}
    if "dbi" in wires:
        data["interface"]["wires"]["dbi"] = {"count": made(-(-dq // 8))}
    if given.currents:
        core = next(rail for rail in CORE_RAILS if rail in base.currents.rails)
        volts = {core if rail == CORE else rail: volt for rail, volt in given.volts.items()}
        data["currents"] = {f"{rail}_V": made(volt) for rail, volt in volts.items()}
        for current, rails in given.currents.items():
            on_rails = rails if CORE not in rails else {**dict.fromkeys(base.currents.rails, 0.0), core: rails[CORE]}
            data["currents"][f"{current}_mA"] = {**on_rails, "source": source, "estimate": False, "range": None}
    return data


def inherited_currents(base: Part, part: Part, given: Collection[str]) -> dict[str, Any]:
    """Return the currents (mA, as in a part file) that a file does not give, so that its events take the base's energy.

    An activate with its precharge, a bit read or written and a refresh take what they take on the base; background
    currents stay. {} where nothing changes.
    """
    rails = part.currents.rails
    if rails != base.currents.rails:
        return {}
    source = f"energy an event as {base.name}, at this clock"
    kept: dict[str, Any] = {}
    for name in ("IDD0", "IDD4R", "IDD4W", "IDD5AB", "IDD5PB"):
        if name in given or name not in base.currents.idd_ma or (name == "IDD5PB" and not part.timing.tRFCpb):
            continue
        milliamperes = [_inherited(name, base, part, rail) for rail in range(len(rails))]
        if not np.allclose(milliamperes, part.currents.idd_ma[name], rtol=1e-6):
            range_of = base.ranges.get(f"currents.{name}_mA")
            kept[f"{name}_mA"] = {
                **{rail: round(value, 6) for rail, value in zip(rails, milliamperes, strict=True)},
                "source": source, "estimate": True, "range": None if range_of is None else list(range_of),
            }  # fmt: skip
    return kept


def _inherited(name: str, base: Part, part: Part, rail: int) -> float:
    """Return a current of one rail so that its charge an event (mA ns) is the base's."""
    (old, new), (before, now) = (
        [each.timing for each in (base, part)],
        [{key: ma[rail] for key, ma in each.currents.idd_ma.items()} for each in (base, part)],
    )
    was, is_ = base.tck_ns, part.tck_ns
    open_before, open_now = before["IDD3N"], now["IDD3N"]
    if name == "IDD0":
        charge = was * ((before[name] - open_before) * old.tRAS + (before[name] - before["IDD2N"]) * old.tRP)
        return float((charge / is_ + open_now * new.tRAS + now["IDD2N"] * new.tRP) / (new.tRAS + new.tRP))
    if name == "IDD5AB":
        return float(open_now + (before[name] - open_before) * was * old.tRFCab / (is_ * new.tRFCab))
    if name == "IDD5PB":
        apart = base.per_bank_interval_cycles
        charge = was * ((before[name] - before["IDD2N"]) * apart + (before["IDD2N"] - open_before) * old.tRFCpb)
        more = charge / is_ - (now["IDD2N"] - open_now) * new.tRFCpb
        return float(now["IDD2N"] + more / part.per_bank_interval_cycles)
    bit_before, bit_now = (
        each.organisation.burst_cycles / (each.organisation.device_dq_bits * each.organisation.burst_beats)
        for each in (base, part)
    )
    return float(open_now + (before[name] - open_before) * was * bit_before / (is_ * bit_now))


def ini_as_yaml(text: str) -> str:
    """Return the text of an .ini file as YAML, line by line."""
    lines = []
    for line in text.splitlines():
        content = line.split(";")[0].split("#")[0].strip()
        name, found, value = content.partition("=")
        if content.startswith("["):
            content = f"{content.strip('[] ')}:"
        elif found:
            content = f"  {name.strip()}: {value.strip()}"
        lines.append(content)
    return "\n".join(lines)


def _sizes(base: Part) -> dict[str, int]:
    o = base.organisation
    names = ("channels", "ranks", "bank_groups", "banks_per_group", "rows", "columns", "device_dq_bits",
             "devices_per_rank", "burst_beats", "beats_per_clock", "column_step", "refresh_banks")  # fmt: skip
    return {name: getattr(o, name) for name in names}
