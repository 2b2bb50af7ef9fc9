"""What a DRAM run did: integer counts, cycles, and the core energy that hwmodel.dram.energy derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hwmodel.parts.part import COMMANDS, READ_COMMANDS, WRITE_COMMANDS


@dataclass(frozen=True)
class DramCounts:
    """What happened, as integers. Commands are indexed as in hwmodel.parts.part.COMMANDS.

    bank_commands int64[channel, bank of the channel, command]: a PREA counts at each bank it closed.
    rank_commands int64[channel, rank, command]. ca_ones, ca_rising int64[channel, wires]: of the command wires.
    background_cycles int64[channel, rank, 5]: clocks with a bank open or
    refreshing, with all banks closed, both of these in power-down, and in self-refresh.
    """

    bank_commands: np.ndarray
    rank_commands: np.ndarray
    background_cycles: np.ndarray
    ca_ones: np.ndarray
    ca_rising: np.ndarray
    reads: int
    writes: int
    forwarded_reads: int = 0  # answered by a waiting write, no burst
    merged_reads: int = 0  # answered by another read's burst
    merged_writes: int = 0  # replaced by a later write before they left
    bank_row_hits: np.ndarray | None = None  # int64[channel, bank]
    conflicts: np.ndarray | None = None  # int64[channel, bank]: rows closed because a request wanted another row
    data_clock_cycles: int = 0  # clocks in which a data clock that stops between bursts runs
    read_row_hits: int = 0
    write_row_hits: int = 0
    read_latency_cycles: int = 0  # sum over reads, from acceptance
    max_read_latency_cycles: int = 0

    @property
    def commands(self) -> dict[str, int]:
        return dict(zip(COMMANDS, self.rank_commands.sum(axis=(0, 1)).tolist(), strict=True))

    def command(self, *names: str) -> int:
        return sum(self.commands[name] for name in names)

    @property
    def row_hits(self) -> int:
        """Bursts that were not the first after an activate."""
        return self.read_row_hits + self.write_row_hits


@dataclass(frozen=True, eq=False)
class DramResult:
    """Outcome of a run. Cycles are clocks of the part (tck_ns).

    done_cycle int64[n]: data returned (reads) or request posted (writes). accept_cycle int64[n]: taken by the
    controller. total_cycles: the last of them. end_cycle:
    end of the last burst, with writes that were still waiting drained; background energy is counted up to here.
    commands: count per command name. commands_at_completion: those up to total_cycles, before writes that still waited
    were drained (where DRAMsim3 stops counting). command_trace: structured array (cycle, request, command, rank,
    bank_group, bank, row, column; channel is the list index) if asked for. energy_pj: core energy per term.
    """

    done_cycle: np.ndarray
    accept_cycle: np.ndarray
    total_cycles: int
    end_cycle: int
    tck_ns: float
    burst_bytes: int
    commands: Mapping[str, int]
    commands_at_completion: Mapping[str, int]
    counts: DramCounts
    energy_pj: Mapping[str, float]
    command_trace: tuple[np.ndarray, ...] | None = field(default=None, repr=False)

    @property
    def time_ns(self) -> float:
        return self.total_cycles * self.tck_ns

    @property
    def mean_read_latency_cycles(self) -> float:
        """Mean over reads of done minus accepted."""
        return self.counts.read_latency_cycles / self.counts.reads if self.counts.reads else 0.0

    def latency_percentiles(self, selected: np.ndarray) -> tuple[int, ...]:
        """Return percentiles 50, 95 and 99 of done minus accepted, in clocks, over the requests bool[n] `selected`.

        The smallest latency that so many percent of the requests do not exceed; zeros without a request.
        """
        latency = np.sort((self.done_cycle - self.accept_cycle)[selected])
        if not len(latency):
            return 0, 0, 0
        return tuple(int(latency[max(int(np.ceil(p / 100 * len(latency))) - 1, 0)]) for p in (50, 95, 99))

    def latency_histogram(self, selected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (edges int64[m + 1], counts int64[m]) of done minus accepted in powers of two of clocks."""
        latency = (self.done_cycle - self.accept_cycle)[selected]
        edges = 1 << np.arange(max(int(latency.max(initial=1)).bit_length(), 1) + 1, dtype=np.int64)
        edges[0] = 0
        return edges, np.histogram(latency, edges)[0].astype(np.int64)

    def bandwidth_over_time(self) -> np.ndarray:
        """Return float64[20], GB/s of requests done (merged and posted ones too) in equal parts of the run."""
        edges = np.linspace(0, max(self.total_cycles, 1), 21)
        done = np.histogram(self.done_cycle, edges)[0]
        return done * self.burst_bytes / (np.diff(edges) * self.tck_ns)

    @property
    def mean_requests_in_memory(self) -> float:
        """Requests accepted and not yet done, averaged over the run (Little's law)."""
        return float((self.done_cycle - self.accept_cycle).sum()) / self.total_cycles if self.total_cycles else 0.0

    def rows_by_bank(self) -> list[dict[str, int]]:
        """Return per channel and bank: bursts, row hits (not the first after an activate), conflicts
        (rows closed because a request wanted another) and activates."""
        row_hits, conflicts = self.counts.bank_row_hits, self.counts.conflicts
        assert row_hits is not None and conflicts is not None
        of = {name: self.counts.bank_commands[..., k] for k, name in enumerate(COMMANDS)}
        columns = {
            "bursts": sum(of[name] for name in READ_COMMANDS + WRITE_COMMANDS), "hits": row_hits,
            "conflicts": conflicts, "activates": of["ACT"], "closed": of["PRE"] + of["PREA"],
        }  # fmt: skip
        return [
            {"channel": at[0], "bank": at[1], **{name: int(column[at]) for name, column in columns.items()}}
            for at in np.ndindex(row_hits.shape)
        ]

    @property
    def core_pj_per_bit(self) -> float:
        """Core energy per bit of data moved; 0 without any."""
        bits = 8 * self.burst_bytes * self.counts.command(*READ_COMMANDS, *WRITE_COMMANDS)
        return self.core_energy_pj / bits if bits else 0.0

    @property
    def core_energy_pj(self) -> float:
        return float(sum(self.energy_pj.values()))
