"""The compiled memory (cython_ext.dram.engine) for a part and a controller: opened, checked, and read at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.command_table import command_rows
from hwmodel.dram.constraints import gap_table
from hwmodel.dram.controller import PAGE_POLICIES, ControllerSpec
from hwmodel.dram.result import DramCounts, DramResult
from hwmodel.parts.commands import COMMANDS
from hwmodel.parts.part import AddressMap, Part, kept
from traces.base.errors import EdgewattError, InputError

# A run in which a request waits while no burst is served for this many refresh intervals makes no progress.
WATCHDOG_REFRESH_INTERVALS = 64


class StuckError(EdgewattError, RuntimeError):
    """A simulation made no progress; the message names the queues that wait."""


def open_memory(
    part: Part,
    controller: ControllerSpec,
    *,
    ports: int = 1,
    requests_per_clock: int | None = None,
    trace: bool = False,
    sent: bool = False,
) -> kernel.Memory:
    """Return compiled channels with the part's tables and the controller's policies.

    ports: sources of requests. requests_per_clock: None takes the controller's. trace: keep every command. sent: tell
    which requests drove the wires, in what order.
    """
    return kernel.Memory(
        kept(part, _compiled_tables, controller),
        n_channels=part.organisation.channels,
        n_ports=ports,
        width=controller.requests_per_clock if requests_per_clock is None else requests_per_clock,
        trace=trace,
        sent=sent,
    )


def _compiled_tables(part: Part, controller: ControllerSpec) -> kernel.Tables:
    t = kernel_tables(part, controller)
    return kernel.Tables(t.settings, t.gap, t.wire_cycles, t.fields, t.levels)


@dataclass(frozen=True)
class KernelTables:
    """A part and a controller as the compiled engine takes them.

    settings: scalars in clocks. gap: int64[scope, from, to]. wire_cycles: int64[command], clocks on the command wires.
    fields: int32[n, 4], the address map as kind, source, bits, target. levels: int16[beat, wire] of each command's
    levels as codes of the engine, None where it has no rows.
    """

    settings: dict[str, int]
    gap: np.ndarray
    wire_cycles: np.ndarray
    fields: np.ndarray
    levels: list[np.ndarray | None]


def effective_part(part: Part, controller: ControllerSpec) -> Part:
    """Return the part whose rules a controller obeys: at its temperature, with the full JEDEC timing if it says so."""
    warm = part.at_temperature(controller.temperature_c)
    return warm.fully_timed() if controller.full_timing else warm


def address_map(part: Part, chosen: str | None) -> AddressMap:
    """Return the address map of a part, or another one. Raises InputError where that does not fit the part."""
    return AddressMap.parse(chosen or part.address_map, part.organisation)


def kernel_tables(part: Part, controller: ControllerSpec) -> KernelTables:
    """Return the engine's tables. Raises InputError where the controller asks for what the part has not."""
    fields = address_map(part, controller.address_map).fields
    part = effective_part(part, controller)
    t, o = part.timing, part.organisation
    if controller.refresh == "per-bank" and not t.tRFCpb:
        raise InputError(f"part {part.name!r} has no per-bank refresh (tRFCpb): use refresh 'all-bank'")
    wires = [_wire_cycles(part, name, controller.command_occupancy) for name in COMMANDS]
    longest = max(wires)
    read_end = (t.RL_dbi if controller.read_dbi else t.RL) + o.burst_cycles
    settings = {
        "faw": t.tFAW,
        "refresh_interval": t.tREFI,
        "refresh_cycles": t.tRFCab,
        "refresh_bank_cycles": t.tRFCpb,
        "read_data_end": read_end,
        "write_data_end": t.WL + o.burst_cycles,
        "rp": t.tRP,
        "rtp": t.tRTP,
        "write_recovery": t.WL + o.burst_cycles + t.tDQSS + t.tWR,
        "cke": t.tCKE,
        "ranks": o.ranks,
        "groups": o.bank_groups,
        "banks_per_group": o.banks_per_group,
        "command_buses": o.command_buses,
        "strict_order": controller.scheduler == "fcfs",
        "hit_cap": controller.hit_cap,
        "hit_cap_strict": controller.hit_cap_strict,
        "page": PAGE_POLICIES.index(controller.page_policy),
        "page_idle": controller.page_idle_cycles,
        "read_entries": controller.read_queue_entries,
        "write_entries": controller.write_queue_entries,
        "bank_entries": controller.bank_queue_entries,
        "write_high": controller.write_high,
        "write_low": controller.write_low,
        "write_idle": controller.write_idle,
        "latency": controller.controller_latency_cycles,
        "refresh": ("none", "all-bank", "per-bank").index(controller.refresh),
        "refresh_sets": o.refresh_sets,
        "precharge_all": controller.refresh_precharge == "all",
        "power_down": controller.power_down_cycles,
        "watchdog": WATCHDOG_REFRESH_INTERVALS * t.tREFI,
        "ca_beats_per_clock": part.interface.wires["ca"].beats_per_clock,
        "ca_idle": (1 << part.interface.wires["ca"].count) - 1 if part.interface.wires["ca"].idle_level else 0,
        "pooled": controller.queues == "pooled",
        "posted": controller.posted_writes,
        "sync_cycles": t.tCAS_WCK,
        "sync_after_read": read_end + t.tWCKPST,
        "sync_after_write": t.WL + o.burst_cycles + t.tWCKPST,
        # ACT-2 goes so early that no other command can hold the wires beyond tAAD.
        "second_act": max(t.tAAD - longest + 1, 1) if t.tAAD else 0,
        "second_starts_rcd": bool(t.tRCD_ACT2),
        "postpone": controller.refresh_postpone,
        "pull_in": controller.refresh_pull_in,
        "pull_in_idle": t.tRFCab,
        "self_refresh": controller.self_refresh_cycles if t.tXSR and controller.refresh != "none" else 0,
        "rfm_limit": t.RAAIMT if controller.refresh_management else 0,
        "rfm_cycles": t.tRFM,
        "age_cap": controller.age_cap_cycles,
        "masked": controller.masked_writes and t.tCCDMW > 0,
        "clock_run_on": o.burst_cycles + t.tWCKPST,
        "offset_bits": (o.burst_bytes - 1).bit_length(),
    }
    column_shift = (o.columns_per_burst - 1).bit_length()  # the address counts bursts, the command columns
    fields_of_map = [
        (kernel.FIELD_NAMES.index(f.name), f.source, f.bits, f.target + (column_shift if f.name == "column" else 0))
        for f in fields
        if f.name in kernel.FIELD_NAMES
    ]
    return KernelTables(
        {name: int(value) for name, value in settings.items()},
        gap_table(part, read_dbi=controller.read_dbi),
        np.array(wires, np.int64),
        np.array(fields_of_map, np.int32),
        [_level_codes(command_rows(part, name)) for name in COMMANDS],
    )


def _wire_cycles(part: Part, command: str, occupancy: bool) -> int:
    cycles = part.wire_cycles(command)
    return cycles if occupancy else min(cycles, 1)


def _level_codes(rows: tuple[tuple[str, ...], ...] | None) -> np.ndarray | None:
    if not rows:
        return None

    def code(token: str) -> int:
        stem = token.rstrip("0123456789")
        return kernel.LEVELS[token] if token in kernel.LEVELS else kernel.WORD_BITS[stem] + int(token[len(stem) :])

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
        (address % np.uint64(o.burst_bytes) != 0, f"is no multiple of the {o.burst_bytes}-byte burst"),
        (address >= np.uint64(o.capacity_bytes), f"is beyond the {o.capacity_bytes} bytes of {part.name!r}"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"request {first + at}: address {int(address[at]):#x} {why}")


def stuck_error(memory: kernel.Memory) -> StuckError:
    """Return the watchdog's error: which queues of which channels wait."""
    return StuckError(
        f"the memory made no progress up to cycle {memory.now()}: {waiting(memory)}. "
        "The part's refresh or the controller's limits leave no time to serve a request"
    )


def waiting(memory: kernel.Memory) -> str:
    """Return what waits in the queues, channel by channel."""
    return "; ".join(
        f"channel {c}: " + (", ".join(f"{name} holds {n}" for name, n in memory.state(c).items() if n) or "idle")
        for c in range(memory.n_channels)
    )


def collect_result(
    memory: kernel.Memory,
    part: Part,
    done_cycle: np.ndarray,
    accept_cycle: np.ndarray,
    commands: tuple[np.ndarray, ...] | None,
) -> DramResult:
    """Return the result of a memory that has run to the end; background is charged up to its last data."""
    from hwmodel.dram.energy import core_energy_pj

    raw = memory.counts()
    end = max(raw["last_done"], raw["last_data"])
    counts = _counts(memory, raw, end)
    return DramResult(
        done_cycle=done_cycle,
        accept_cycle=accept_cycle,
        total_cycles=raw["last_done"],
        end_cycle=end,
        tck_ns=part.tck_ns,
        burst_bytes=part.organisation.burst_bytes,
        commands=counts.commands,
        commands_at_completion=dict(zip(COMMANDS, memory.completed().tolist(), strict=True)),
        counts=counts,
        energy_pj=core_energy_pj(counts, part),
        command_trace=commands,
    )


def _counts(memory: kernel.Memory, raw: dict[str, int], end: int) -> DramCounts:
    """Return the counters of all channels, background up to cycle `end`. raw: those of requests."""
    bank_commands, conflicts = memory.bank_counts()
    rank_commands, background = memory.rank_counts(end)
    ca_ones, ca_rising = memory.command_wires()
    return DramCounts(
        bank_commands=bank_commands,
        rank_commands=rank_commands,
        background_cycles=background,
        ca_ones=ca_ones,
        ca_rising=ca_rising,
        conflicts=conflicts,
        reads=raw["reads"],
        writes=raw["writes"],
        forwarded_reads=raw["forwarded"],
        merged_reads=raw["merged_reads"],
        merged_writes=raw["merged_writes"],
        data_clock_cycles=raw["data_clock"],
        read_row_hits=raw["read_hits"],
        write_row_hits=raw["write_hits"],
        read_latency_cycles=raw["latency_sum"],
        max_read_latency_cycles=raw["latency_max"],
    )
