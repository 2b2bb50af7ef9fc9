"""What a run in time returns: counts as replay gives them, the time of each engine, and each request if asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodel.dram.result import DramResult
from hwmodel.replay import ReplayResult


@dataclass(frozen=True)
class EngineRun:
    """One engine: accesses made, requests (bursts) sent to memory, cycle of its end, clocks of pure computing."""

    accesses: int
    requests: int
    finish_cycle: int
    compute_cycles: int

    @property
    def stall_cycles(self) -> int:
        """Clocks spent waiting for memory."""
        return self.finish_cycle - self.compute_cycles


@dataclass(frozen=True, eq=False)
class Requests:
    """Every request of a run, by number: uint64 address, uint8 is_write and stream, int64 accept_cycle, done_cycle.

    served: request numbers in the order of their bursts on the wires of each channel (a request that was merged with
    another, or answered by a waiting write, has no burst).
    """

    address: np.ndarray
    is_write: np.ndarray
    stream: np.ndarray
    accept_cycle: np.ndarray
    done_cycle: np.ndarray
    served: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class SystemResult:
    """Counts as replay gives them (`counts.dram` holds times and energies of this run), and the time of each engine.

    total_cycles: clocks of the part until the last engine has ended and the flush is accepted.
    requests: of a run with keep=True.
    """

    counts: ReplayResult
    engines: tuple[EngineRun, ...]
    total_cycles: int
    tck_ns: float
    requests: Requests | None

    @property
    def dram(self) -> DramResult:
        """Times, commands and core energy of the memory."""
        assert self.counts.dram is not None
        return self.counts.dram

    @property
    def time_ns(self) -> float:
        """Run time in ns."""
        return self.total_cycles * self.tck_ns
