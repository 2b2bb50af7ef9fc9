"""What a DRAM run counted, as integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodel.parts.part import COMMANDS


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
