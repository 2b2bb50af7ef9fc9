"""A part and its controller as the compiled engine takes them: settings, gaps, address map, levels of commands.

Gaps are JEDEC's, in the form of reference tools where the two differ (docs/concepts/dram.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.command_table import command_rows
from hwmodel.dram.controller import ControllerSpec, effective_part
from hwmodel.parts.part import COMMANDS, AddressField, AddressMap, Part
from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name

SCOPES = ("bank", "group", "rank", "other_rank")
READS, WRITES = ("RD", "RDA"), ("WR", "WRA", "MWR")
COLUMNS = READS + WRITES
REFRESHES = ("REFab", "REFpb", "RFM")
# A run in which a request waits while no burst is served for this many refresh intervals makes no progress.
WATCHDOG_REFRESH_INTERVALS = 64


@dataclass(frozen=True)
class KernelTables:
    """A part and a controller as the compiled engine takes them.

    settings: value of each of kernel.SETTINGS. gap: int64[scope, from, to]. wire_cycles: int64[command], clocks on the
    command wires. fields: int32[n, 4], the address map as kind, source, bits, target. levels: int16[beat, wire] of each
    command's levels as codes of the engine, None where it has no rows.
    """

    settings: dict[str, int]
    gap: np.ndarray
    wire_cycles: np.ndarray
    fields: np.ndarray
    levels: list[np.ndarray | None]


def address_map(part: Part, chosen: str | None) -> AddressMap:
    """Return the address map of a part, or another one. Raises InputError where that does not fit the part."""
    return AddressMap.parse(chosen or part.address_map, part.organisation)


def gap_table(part: Part, *, read_dbi: bool = False, spacing: str = "first-clocks") -> np.ndarray:
    """Return int64[scope, from, to] clocks; 0 means no constraint. Scopes: same bank, group, rank, another rank.

    spacing: one of SPACINGS. jedec: bursts of different ranks are tRTRS apart. first-clocks: those of writes follow
    each other, as in DRAMsim3. last-clocks: as in Ramulator 2.1, distances count
    between last clocks, and tRP lies before every refresh.
    """
    t, burst = part.timing, part.organisation.burst_cycles
    rl = t.RL_dbi if read_dbi else t.RL
    table = np.zeros((len(SCOPES), len(COMMANDS), len(COMMANDS)), np.int64)

    def after(scope: str, before: str | tuple[str, ...], then: str | tuple[str, ...], clocks: int) -> None:
        befores = (before,) if isinstance(before, str) else before
        thens = (then,) if isinstance(then, str) else then
        for a, b in product(befores, thens):
            at = SCOPES.index(scope), COMMANDS.index(a), COMMANDS.index(b)
            table[at] = max(table[at], clocks)

    # one bank: a row is opened, used and closed
    start = "ACT2" if t.tAAD and t.tRCD_ACT2 else "ACT"
    after("bank", start, READS, t.tRCD)
    after("bank", start, WRITES, t.tRCD_write)
    if t.tAAD:  # the row is only known with the second command
        after("bank", "ACT", COLUMNS, t.tAAD + 1)
    after("bank", "ACT", ("PRE", "PREA"), t.tRAS)
    after("bank", "ACT", ("ACT", *REFRESHES), t.tRC)
    after("bank", "RD", ("PRE", "PREA"), t.tRTP)
    after("bank", ("WR", "MWR"), ("PRE", "PREA"), t.WL + burst + t.tDQSS + t.tWR)
    after("bank", "PRE", ("ACT", *REFRESHES), t.tRP)
    after("bank", "REFpb", ("ACT", *REFRESHES), t.tRFCpb)
    after("bank", "RFM", ("ACT", *REFRESHES), t.tRFM)
    after("bank", ("WR", "MWR"), "MWR", t.tCCDMW)

    # the data wires, within a bank group (L) and between groups, and the write-to-read path in the DRAM
    for scope, ccd, ccd_write, rrd, wtr, length in (
        ("group", t.tCCD_L, t.tCCD_L_WR or t.tCCD_L, t.tRRD_L, t.tWTR_L, max(burst, t.BL_L)),
        ("rank", t.tCCD, t.tCCD, t.tRRD, t.tWTR, burst),
    ):
        after(scope, READS, READS, max(burst, ccd))
        after(scope, WRITES, WRITES, max(burst, ccd_write))
        after(scope, READS, WRITES, max(rl + burst - t.WL + t.turnaround, burst))
        after(scope, WRITES, READS, t.WL + length + wtr)
        after(scope, "ACT", "ACT", rrd)
        after(scope, "ACT", ("REFpb", "RFM"), rrd)
        after(scope, ("REFpb", "RFM"), "ACT", max(t.tPBR2ACT or t.tRRD, rrd if scope == "group" else 0))

    # one rank: precharge to precharge, refresh, power-down
    after("rank", ("PRE", "PREA"), ("PRE", "PREA"), t.tPPD)
    after("rank", "PREA", "ACT", t.tRPab)
    after("rank", "PREA", REFRESHES, t.tRP if spacing == "last-clocks" else t.tRPab)
    after("rank", "REFab", ("ACT", *REFRESHES, "PDE"), t.tRFCab)
    after("rank", ("REFpb", "RFM"), REFRESHES, t.tREFpb_gap)
    after("rank", "REFpb", "PDE", t.tRFCpb)
    after("rank", "RFM", "PDE", t.tRFM)
    after("rank", "SRE", "SRX", max(t.tCKE, 1))
    after("rank", "SRX", tuple(c for c in COMMANDS if c != "SRX"), t.tXSR)
    after("rank", ("ACT", "PRE", "PREA"), "PDE", max(part.command_cycles.values()))
    after("rank", READS, "PDE", rl + burst + 1)
    after("rank", WRITES, "PDE", t.WL + burst + t.tDQSS + t.tWR)
    after("rank", "PDE", "PDX", t.tCKE)
    after("rank", "PDX", "PDE", t.tCKE)
    after("rank", "PDX", tuple(c for c in COMMANDS if c not in ("PDE", "PDX")), t.tXP)

    # ranks share the data wires
    switch, read_ahead = burst + t.tRTRS, rl - t.WL
    if spacing == "last-clocks" and part.standard.startswith("LPDDR"):
        read_ahead = -read_ahead
    after("other_rank", READS, READS, switch)
    after("other_rank", WRITES, WRITES, switch if spacing == "jedec" else burst)
    after("other_rank", READS, WRITES, switch if spacing == "last-clocks" else max(switch + read_ahead, 1))
    after("other_rank", WRITES, READS, max(switch - read_ahead, 1))
    if spacing == "last-clocks" and part.standard.startswith("HBM"):  # whose stacks turn as one rank does
        after("other_rank", READS, WRITES, rl + burst - t.WL + t.turnaround)
        after("other_rank", WRITES, READS, t.WL + burst + t.tWTR)
    if part.organisation.bank_groups == 1:  # one group is the rank
        table[SCOPES.index("rank")] = np.maximum(table[SCOPES.index("rank")], table[SCOPES.index("group")])
    if spacing == "last-clocks":
        clocks = np.array([part.wire_cycles(name) or 1 for name in COMMANDS])
        table = np.where(table > 0, np.maximum(table + clocks[:, None] - clocks, 1), 0)
    return table


def kernel_tables(part: Part, controller: ControllerSpec) -> KernelTables:
    """Return the engine's tables. Raises InputError where the controller asks for what the part has not."""
    fields = address_map(part, controller.address_map).fields
    part = effective_part(part, controller)
    pseudo = shared_channels(part, controller)
    wires = [part.wire_cycles(name) for name in COMMANDS]
    if not controller.command_occupancy:
        wires = [min(cycles, 1) for cycles in wires]
    column_shift = (part.organisation.columns_per_burst - 1).bit_length()  # addresses count bursts, commands columns
    fields_of_map = [
        (kernel.FIELD_NAMES.index(name), source, bits, target + (column_shift if name == "column" else 0))
        for field in fields
        for name, source, bits, target in _merged(field, (pseudo - 1).bit_length(), part.organisation.ranks)
        if name in kernel.FIELD_NAMES
    ]
    return KernelTables(
        _settings(part, controller, max(wires), pseudo),
        gap_table(part, read_dbi=controller.read_dbi, spacing=controller.spacing),
        np.array(wires, np.int64),
        np.array(fields_of_map, np.int32),
        [_level_codes(command_rows(part, name)) for name in COMMANDS],
    )


def compiled_tables(part: Part, controller: ControllerSpec) -> kernel._Tables:
    """Return what compiled memories share."""
    t = kernel_tables(part, controller)
    return kernel._Tables(t.settings, t.gap, t.wire_cycles, t.fields, t.levels)


def shared_channels(part: Part, controller: ControllerSpec) -> int:
    """Return how many neighbouring channels share queues and command wires; 1 with too many banks for that."""
    o = part.organisation
    shared = math.gcd(o.pseudo_channels, o.channels) if controller.shared_pseudo_channels else 1
    return shared if shared * o.ranks * o.banks <= kernel.MOST_BANKS else 1


def _merged(field: AddressField, pseudo_bits: int, ranks: int) -> list[tuple[str, int, int, int]]:
    """Return (name, source, bits, target) of a field where the lowest bits of a channel's number count as ranks."""
    if field.name != "channel":
        return [(field.name, field.source, field.bits, field.target)]
    low = min(max(pseudo_bits - field.target, 0), field.bits)
    rank_bits = (ranks - 1).bit_length()
    pieces = [
        ("rank", field.source, low, field.target + rank_bits),
        ("channel", field.source + low, field.bits - low, field.target + low - pseudo_bits),
    ]
    return [piece for piece in pieces if piece[2]]


def _settings(part: Part, controller: ControllerSpec, longest: int, pseudo: int) -> dict[str, int]:
    """Return the value of each setting: what follows from others, else what policies say, else a field of its name.

    longest: clocks for which a command holds the command wires. pseudo: channels that share them.
    """
    t, o, ca = part.timing, part.organisation, part.interface.wires["ca"]
    read_end, write_end = (t.RL_dbi if controller.read_dbi else t.RL) + o.burst_cycles, t.WL + o.burst_cycles
    settings: dict[str, int] = {
        name: getattr(owner, name) for owner in (controller, o, t) for name in kernel.SETTINGS if hasattr(owner, name)
    }
    settings |= {name: _policy_setting(name, value) for name, value in controller.engine_settings.items()}
    if settings["refresh"] == kernel.CODES["refresh"]["per-bank"]:
        if not t.tRFCpb:
            raise InputError(f"part {part.name!r} has no per-bank refresh (tRFCpb): use refresh 'all-bank'")
        if t.tRFCpb * o.refresh_sets >= t.tREFI:  # the part's own is longer; at a temperature it need not be
            raise InputError(
                f"part {part.name!r}: {o.refresh_sets} refreshes by bank of {t.tRFCpb} clocks take longer than "
                f"tREFI, {t.tREFI} clocks at {controller.temperature_c} C: use refresh 'all-bank'"
            )
    settings |= {
        "read_data_end": read_end,
        "write_data_end": write_end,
        "write_recovery": write_end + t.tDQSS + t.tWR,
        "precharge_all": controller.refresh_precharge == "all",
        "watchdog": WATCHDOG_REFRESH_INTERVALS * t.tREFI,
        "pooled": controller.queues == "pooled",
        "sync_after_read": read_end + t.tWCKPST,
        "sync_after_write": write_end + t.tWCKPST,
        # ACT-2 goes so early that no other command can hold the wires beyond tAAD.
        "second_act": max(t.tAAD - longest + 1, 1) if t.tAAD else 0,
        "second_starts_rcd": t.tRCD_ACT2 > 0,
        "pull_in_idle": t.tRFCab,
        "self_refresh_cycles": settings["self_refresh_cycles"] if t.tXSR and settings["refresh"] else 0,
        "rfm_limit": t.RAAIMT if controller.refresh_management else 0,
        "ranks": o.ranks * pseudo,
        "pseudo_channels": pseudo,
        "masked_writes": settings["masked_writes"] and t.tCCDMW > 0,
        "offset_bits": (o.burst_bytes - 1).bit_length(),
        "clock_run_on": o.burst_cycles + t.tWCKPST,
        "ca_beats_per_clock": ca.beats_per_clock,
        "ca_idle": (1 << ca.count) - 1 if ca.idle_level else 0,
    }
    return {name: int(settings[name]) for name in kernel.SETTINGS}


def _policy_setting(name: str, value: int | str) -> int:
    """Return a setting of a policy as a number. Raises InputError for one that the engine does not have."""
    if name not in kernel.SETTINGS:
        raise unknown_name("setting of the DRAM engine", name, kernel.SETTINGS)
    codes = kernel.CODES.get(name, {})
    if isinstance(value, str) and value not in codes:
        raise unknown_name(f"{name} of the DRAM engine", value, codes)
    number: object = codes[value] if isinstance(value, str) else value
    return whole_number(number, f"the policy's {name}", *kernel.SETTINGS[name])


def _level_codes(rows: tuple[tuple[str, ...], ...] | None) -> np.ndarray | None:
    if not rows:
        return None

    def code(token: str) -> int:
        stem = token.rstrip("0123456789")
        return int(kernel.LEVELS[token] if token in kernel.LEVELS else kernel.WORD_BITS[stem] + int(token[len(stem) :]))

    return np.array([[code(token) for token in row] for row in rows], np.int16)


def channel_of(address: np.ndarray, address_map: AddressMap) -> np.ndarray:
    """Return the channel int64[n] of byte addresses."""
    channel = np.zeros(len(address), np.int64)
    for f in address_map.fields:
        if f.name == "channel":
            piece = (address >> np.uint64(f.source)) & np.uint64((1 << f.bits) - 1)
            channel |= piece.astype(np.int64) << f.target
    return channel


def check_addresses(address: np.ndarray, part: Part, first: int = 0) -> None:
    """Raise InputError for the first address outside the part or not at the start of a burst."""
    o = part.organisation
    for wrong, why in (
        (address % np.uint64(o.burst_bytes) != 0, f"is not a multiple of the {o.burst_bytes}-byte burst"),
        (address >= np.uint64(o.capacity_bytes), f"is beyond the {o.capacity_bytes} bytes of {part.name!r}"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"request {first + at}: address {int(address[at]):#x} {why}")
