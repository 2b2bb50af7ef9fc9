"""What a DRAM run did: its counts, cycles and latencies, and the core energy that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hwmodel.dram.counts import DramCounts
from hwmodel.dram.energy import core_rows
from hwmodel.parts.part import COMMANDS, READ_COMMANDS, WRITE_COMMANDS, Part


@dataclass(frozen=True, eq=False)
class DramResult:
    """Outcome of a run on a part. Cycles are its clocks (tck_ns).

    done_cycle int64[n]: data returned (reads) or request posted (writes). accept_cycle int64[n]: taken by the
    controller. total_cycles: the last of them. end_cycle:
    end of the last burst, with writes that were still waiting drained; background energy is counted up to here.
    commands_at_completion: count per command name up to total_cycles, before writes that still waited were drained
    (where DRAMsim3 stops counting). command_trace: structured array (cycle, request, command, rank, bank_group, bank,
    row, column; channel is the list index) if asked for.
    """

    done_cycle: np.ndarray
    accept_cycle: np.ndarray
    total_cycles: int
    end_cycle: int
    part: Part = field(repr=False)
    commands_at_completion: Mapping[str, int]
    counts: DramCounts
    command_trace: tuple[np.ndarray, ...] | None = field(default=None, repr=False)

    @property
    def tck_ns(self) -> float:
        return self.part.tck_ns

    @property
    def burst_bytes(self) -> int:
        return self.part.organisation.burst_bytes

    @property
    def commands(self) -> Mapping[str, int]:
        """Count per command name."""
        return self.counts.commands

    @cached_property
    def energy_pj(self) -> Mapping[str, float]:
        """Core energy per term."""
        return {row.term: row.energy_pj for row in core_rows(self.counts, self.part)}

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
