"""A DRAM part as frozen data: what the timing engine, the trace checker and the energy functions read."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from traces.base.checks import is_whole
from traces.base.errors import InputError
from traces.base.reprs import OneLineRepr

T = TypeVar("T")

# In the order of the compiled engine (cython_ext/dram/tables.h).
COMMANDS = (
    "ACT", "RD", "WR", "RDA", "WRA", "PRE", "PREA", "REFab", "REFpb", "PDE", "PDX",
    "MWR",  # masked write
    "RFM",  # refresh management: the DRAM refreshes the neighbours of often activated rows
    "CAS",  # starts the data clock (LPDDR5 and later)
    "SRE", "SRX",  # self-refresh entry and exit
    "REF2b",  # refresh of two banks, only in command tables
    "ACT2",  # the second half of an activate, where it is a command of its own (tAAD)
)  # fmt: skip


READ_COMMANDS, WRITE_COMMANDS = ("RD", "RDA"), ("WR", "WRA", "MWR")


def added_field(default: Any = 0) -> Any:
    """Declare a field that older parts do not give: while it has its default, it is not part of what they say."""
    return field(default=default, metadata={"later": True})


@dataclass(frozen=True)
class Constant:
    """One number of a part file: its value, where it comes from, and whether that is an estimate."""

    value: float
    source: str
    estimate: bool = False


@dataclass(frozen=True)
class Organisation:
    """Sizes. A channel has `ranks` x `bank_groups` x `banks_per_group` banks; a rank's devices work in lockstep."""

    channels: int
    ranks: int
    bank_groups: int
    banks_per_group: int
    rows: int
    columns: int
    device_dq_bits: int
    devices_per_rank: int
    burst_beats: int
    beats_per_clock: int
    command_buses: int = 1  # 2: row and column commands have wires of their own (HBM)
    column_step: int = added_field()  # columns of a burst; 0: one column a beat
    # banks that one REFpb refreshes: every (banks / refresh_banks)-th from the one it names
    refresh_banks: int = added_field(1)
    pseudo_channels: int = added_field(1)  # of `channels`, so many neighbours share command wires (HBM)
    overhead_bits: int = added_field()  # bits of a burst on the data wires that are no data (LPDDR6: metadata and DBI)

    @property
    def banks(self) -> int:
        """Banks of one rank (derived)."""
        return self.bank_groups * self.banks_per_group

    @property
    def refresh_sets(self) -> int:
        """REFpb commands that refresh every bank of a rank once (derived)."""
        return self.banks // self.refresh_banks

    @property
    def dq_bits(self) -> int:
        """Data wires of the channel (derived)."""
        return self.device_dq_bits * self.devices_per_rank

    @property
    def burst_bytes(self) -> int:
        """Bytes of one burst, the unit of a request (derived)."""
        return (self.dq_bits * self.burst_beats - self.overhead_bits) // 8

    @property
    def columns_per_burst(self) -> int:
        """Columns of one burst (derived)."""
        return self.column_step or self.burst_beats

    @property
    def byte_lanes(self) -> int:
        """Byte lanes of the data wires, a part of one counted whole (derived)."""
        return -(-self.dq_bits // 8)

    @property
    def burst_cycles(self) -> int:
        """Clocks of data bus of one burst (derived)."""
        return self.burst_beats // self.beats_per_clock

    @property
    def capacity_bytes(self) -> int:
        bursts = self.channels * self.ranks * self.banks * self.rows * (self.columns // self.columns_per_burst)
        return bursts * self.burst_bytes


@dataclass(frozen=True)
class Timing:
    """Clocks of tCK. `_L` holds within a bank group, the plain name between groups (all of it without groups)."""

    RL: int
    RL_dbi: int
    WL: int
    tRCD: int
    tRCD_write: int
    tRP: int
    tRPab: int
    tRAS: int
    tRC: int
    tRRD: int
    tRRD_L: int
    tFAW: int
    tCCD: int
    tCCD_L: int
    tRTP: int
    tWR: int
    tWTR: int
    tWTR_L: int
    tPPD: int
    tRFCab: int
    tRFCpb: int  # 0: the part has no per-bank refresh
    tREFpb_gap: int  # per-bank refresh to the next one, to another bank
    tREFI: int
    tXP: int
    tCKE: int
    turnaround: int
    tRTRS: int
    # Added later (a part that does not give them keeps its content hash); 0: the part makes no such distinction.
    tCCD_L_WR: int = added_field()  # write to write within a bank group; 0: tCCD_L
    BL_L: int = added_field()  # clocks of a burst as write to read within a bank group counts them (LPDDR5: BL/n_max)
    tDQSS: int = added_field()  # clocks from the end of write data to the start of write recovery
    tPBR2ACT: int = added_field()  # per-bank refresh to an activate of another bank; 0: tRRD
    tCAS_WCK: int = added_field()  # CAS command to the read or write it starts the data clock for; 0: it always runs
    tWCKPST: int = added_field()  # clocks the data clock runs on after the data of a burst
    tAAD: int = added_field()  # longest distance from ACT-1 to ACT-2; 0: an activate is one command
    tRCD_ACT2: int = added_field()  # 1: tRCD counts from ACT-2 (where tAAD makes it a command), else from ACT-1
    tRFM: int = added_field()  # refresh management of one bank; 0: the part has none
    RAAIMT: int = added_field()  # activates of a bank after which it needs refresh management; 0: none
    tXSR: int = added_field()  # self-refresh exit to a command; 0: the part has no self-refresh
    # What the full JEDEC rules add (ControllerSpec.full_timing) to those that reference tools know.
    tDQSCK: int = added_field()  # longest delay of read data and strobe after RL
    tRPST: int = added_field()  # read postamble, whole clocks
    tWPRE: int = added_field()  # write preamble
    tDQSS_max: int = added_field()  # longest delay of write data after WL: write to precharge and to read
    tCCDMW: int = added_field()  # write to masked write in one bank


@dataclass(frozen=True)
class Currents:
    """Supply rails: volts per rail and milliamperes per JEDEC current name and rail, of one device."""

    rails: tuple[str, ...]
    volts: tuple[float, ...]
    idd_ma: Mapping[str, tuple[float, ...]]
    per_bank_refreshes: float | None = added_field(
        None
    )  # in a tREFI at which IDD5PB is measured; 0: one follows the other

    def power_mw(self, name: str, minus: str | None = None) -> float:
        """Return the power of one current, or of the difference of two, summed over the rails, in mW."""
        base = self.idd_ma[minus] if minus else (0.0,) * len(self.rails)
        return sum(v * (i - j) for v, i, j in zip(self.volts, self.idd_ma[name], base, strict=True))


@dataclass(frozen=True)
class WireGroup:
    """Alike wires. r_eq_ohm: VDDQ / current of the costly level (None: no static current); rise_pj: one rising edge.

    Both are per direction: read (the DRAM drives) and write (the controller drives).
    """

    count: int
    read_r_eq_ohm: float | None
    write_r_eq_ohm: float | None
    read_rise_pj: float
    write_rise_pj: float
    periods_per_clock: int = 0  # clocks and strobes only
    beats_per_clock: int = 0  # command wires only
    idle_level: int = added_field()  # command wires only: level between commands
    always: bool = added_field(False)  # the data clock only: runs without a burst too

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions in which they are driven (derived)."""
        driven = {
            "read": (self.read_r_eq_ohm, self.read_rise_pj), "write": (self.write_r_eq_ohm, self.write_rise_pj),
        }  # fmt: skip
        return tuple(way for way, (ohm, rise) in driven.items() if ohm is not None or rise)


@dataclass(frozen=True)
class Interface:
    """Wires between controller and DRAM. termination: vssq (a 1 costs), vddq (a 0 costs), none (only edges cost)."""

    termination: str
    dbi: str  # data bus inversion rule the part offers: ones, zeros, toggles or none
    vddq_v: float
    wires: Mapping[str, WireGroup]
    command_levels: Mapping[str, tuple[tuple[str, ...], ...]]
    # what each wire carries, see hwmodel.parts.burst_cells; (): whole bytes beat by beat
    cells: tuple[str, ...] = added_field(())

    @property
    def idle_level(self) -> int:
        """Level of an undriven data wire: where its termination pulls it (0 where there is none)."""
        return 1 if self.termination == "vddq" else 0

    @property
    def costly_level(self) -> int | None:
        """Level with a static current, None without termination."""
        return {"vssq": 1, "vddq": 0, "none": None}[self.termination]


@dataclass(frozen=True)
class AddressField:
    """`bits` address bits of one field: from bit `source` of the address to bit `target` of the field."""

    name: str
    source: int
    bits: int
    target: int


FIELDS = ("offset", "column", "bank", "bank_group", "rank", "channel", "row")


@dataclass(frozen=True)
class AddressMap:
    """Bit fields of a byte address, least significant first; a field may come in pieces."""

    fields: tuple[AddressField, ...]

    @classmethod
    def parse(cls, text: str, organisation: Organisation) -> AddressMap:
        """Read e.g. 'offset:5 column:6 bank:3 row:16' and check that it covers the organisation exactly."""
        pieces: list[AddressField] = []
        at = 0
        filled = dict.fromkeys(FIELDS, 0)
        for word in text.split():
            name, _, number = word.partition(":")
            if name not in FIELDS or not is_whole(number) or not 0 < int(number) <= 48:
                raise InputError(
                    f"address map {text!r}: {word!r} is not a field: write NAME:BITS, NAME one of {', '.join(FIELDS)}"
                )
            pieces.append(AddressField(name, at, int(number), filled[name]))
            at += int(number)
            filled[name] += int(number)
        sizes = {
            "offset": organisation.burst_bytes,
            "column": organisation.columns // organisation.columns_per_burst,
            "bank": organisation.banks_per_group,
            "bank_group": organisation.bank_groups,
            "rank": organisation.ranks,
            "channel": organisation.channels,
            "row": organisation.rows,
        }
        on_top = pieces[-1].bits if pieces and pieces[-1].name == "row" else 0
        for name, size in sizes.items():
            if name == "row" and on_top == filled["row"] == (size - 1).bit_length():
                continue  # rows need not be a power of two: those that are not there lie behind the capacity
            if 1 << filled[name] != size:
                raise InputError(
                    f"address map {text!r}: field {name!r} has {filled[name]} bits, but the part has {size} "
                    f"({(size - 1).bit_length()} bits)"
                )
        if not pieces or pieces[0].name != "offset" or filled["offset"] != pieces[0].bits:
            raise InputError(f"address map {text!r}: the first field must be the whole offset inside a burst")
        return cls(tuple(pieces))


@dataclass(frozen=True)
class Derating:
    """What changes above a case temperature: tREFI times a factor, core times longer."""

    above_c: float
    tREFI_factor: float
    add_ns: float


@dataclass(frozen=True)
class Part(OneLineRepr):
    """One DRAM part: organisation, timing in clocks, currents, wires. `constants` keeps value and source of each."""

    name: str
    standard: str
    tck_ns: float
    organisation: Organisation
    timing: Timing
    command_cycles: Mapping[str, int]  # clocks the command wires are busy: ACT RD WR PRE REF
    currents: Currents
    interface: Interface
    address_map: str
    note: str = ""
    constants: Mapping[str, Constant] = field(default_factory=dict, repr=False)
    derating: Derating | None = field(default=None, metadata={"later": True})
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)  # factors, see dram.energy

    __repr__ = OneLineRepr.__repr__

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or another process gets: what is `kept` is made again there."""
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def _repr_fields(self) -> dict[str, object]:
        estimates = sum(constant.estimate for constant in self.constants.values())
        return {
            "name": self.name, "standard": self.standard, "MT/s": round(self.data_rate_mts),
            "data wires": self.organisation.dq_bits, "burst bytes": self.organisation.burst_bytes,
            "constants": len(self.constants), "of them estimates": estimates, "note": self.note or None,
        }  # fmt: skip

    @property
    def data_rate_mts(self) -> float:
        """Transfers per wire, 10^6 per second (derived)."""
        return 1e3 * self.organisation.beats_per_clock / self.tck_ns

    @property
    def beat_ns(self) -> float:
        """One unit interval of the data wires (derived)."""
        return self.tck_ns / self.organisation.beats_per_clock

    @property
    def per_bank_interval_cycles(self) -> float:
        """Clocks between the per-bank refreshes at which IDD5PB is measured."""
        each = self.currents.per_bank_refreshes
        each = self.organisation.refresh_sets if each is None else each
        return self.timing.tREFI / each if each else self.timing.tRFCpb

    def wire_cycles(self, command: str) -> int:
        """Clocks for which a command holds the command wires; 0: it uses another wire (power-down by CKE)."""
        stem = {"RDA": "RD", "WRA": "WR", "MWR": "WR", "PREA": "PRE", "REFab": "REF", "REFpb": "REF", "REF2b": "REF"}
        stem |= {"RFM": "REF", "SRE": "REF", "CAS": "RD"}
        split = self.timing.tAAD and command in ("ACT", "ACT2")
        if split:
            return self.command_cycles["ACT"] // 2 or 1
        if stem.get(command, command) in self.command_cycles:
            return self.command_cycles[stem.get(command, command)]
        rows = self.interface.command_levels.get(command, ())
        return -(-len(rows) // self.interface.wires["ca"].beats_per_clock)

    def at_temperature(self, celsius: float) -> Part:
        """Return the part as it is at a case temperature: derated above the limit it states."""
        if self.derating is None or celsius <= self.derating.above_c:
            return self
        t, more = self.timing, math.ceil(self.derating.add_ns / self.tck_ns - 1e-6)
        longer = {
            name: getattr(t, name) + more for name in ("tRCD", "tRCD_write", "tRP", "tRPab", "tRAS", "tRRD", "tRRD_L")
        }
        interval = max(int(t.tREFI * self.derating.tREFI_factor + 1e-6), t.tRFCab + 1)
        timing = replace(t, **longer, tRC=t.tRC + 2 * more, tFAW=t.tFAW + 4 * more, tREFI=interval)
        return replace(self, timing=timing)

    def fully_timed(self) -> Part:
        """Return the part with the rules that reference tools leave out: read data come tDQSCK after RL, postamble and
        preamble lie between reads and writes, and write data come up to tDQSS_max after WL."""
        t = self.timing
        timing = replace(
            t,
            RL=t.RL + t.tDQSCK,
            RL_dbi=t.RL_dbi + t.tDQSCK,
            turnaround=t.tRPST + t.tWPRE if t.tWPRE else t.turnaround,
            tDQSS=max(t.tDQSS, t.tDQSS_max),
            tWTR=t.tWTR + t.tDQSS_max,
            tWTR_L=t.tWTR_L + t.tDQSS_max,
        )
        return replace(self, timing=timing)

    @property
    def estimates(self) -> tuple[str, ...]:
        return tuple(name for name, constant in self.constants.items() if constant.estimate)


def cached_on(part: Part, make: Callable[..., T], *arguments: Hashable) -> T:
    """Return make(part, *arguments), made once for as long as the part lives (as by functools.cached_property)."""
    made: dict[Any, Any] = part.__dict__.setdefault("_kept", {})
    key = (make, *arguments)
    if key not in made:
        made[key] = make(part, *arguments)
    value: T = made[key]
    return value
