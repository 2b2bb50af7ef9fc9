"""A GPU's view of a sparse product: warps, coalescing into sectors, an L1 per SM, one L2.

The kernel is CSR-vector (Bell and Garland 2009): a warp per row. The machine is Table I of Feinberg et al. 2020; what
it leaves open is a field of `GpuSpec` whose default is an ASSUMPTION of this project:

- l1 associativity 6, l2 associativity 16, LRU; caches are filled and looked up by 32-byte sectors (line = sector);
- stores go through the L1 without allocating there, and are written back from the L2;
- blocks of 4 warps (rows) go to the SMs in turn; an SM holds 32 warps and issues one step of each in turn; a warp that
  ends makes room for the next row of the SM at once;
- SMs run in lockstep: step t of SM 0 reaches the L2 before step t of SM 1;
- an SM's L1 serves in one clock what one instruction asks of one 128-byte line; the memory answers in its own time and
  no access waits for it (open loop).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwmodel.caches.cache import CacheCounts, CacheLevel
from hwmodel.caches.spec import CacheSpec
from papers.studies.spmv import SpmvProblem
from traces.base.checks import whole_number
from traces.base.errors import InputError, shown
from traces.trace.chunks import STREAMS

if TYPE_CHECKING:
    from hwmodel.dram.result import DramResult

Int64Array = npt.NDArray[np.int64]

_POINTERS, _IDS, _VALUES, _INPUTS, _OUTPUTS = (
    STREAMS.index(name) for name in ("row_pointers", "ids", "values", "inputs", "outputs")
)


@dataclass(frozen=True)
class GpuSpec:
    """Defaults: Table I of Feinberg et al. 2020 (8 SMs at 1300 MHz, 32 threads a warp, 32 warps an SM, L1 24 KB, L2 512
    KB), and the assumptions listed at the top of this module."""

    sms: int = 8
    warp_lanes: int = 32
    warps_per_sm: int = 32
    warps_per_block: int = 4
    sector_bytes: int = 32
    l1_bytes_per_clock: int = 128
    clock_mhz: float = 1300.0
    l1: CacheSpec = field(default_factory=lambda: CacheSpec(24 * 1024, 32, 6, "lru", "through", False))
    l2: CacheSpec = field(default_factory=lambda: CacheSpec(512 * 1024, 32, 16))

    def __post_init__(self) -> None:
        for name in ("sms", "warp_lanes", "warps_per_sm", "warps_per_block", "sector_bytes", "l1_bytes_per_clock"):
            whole_number(getattr(self, name), f"gpu {name}")
        if self.sector_bytes & (self.sector_bytes - 1) or not self.sector_bytes <= self.l1.line_bytes:
            raise InputError("gpu sector_bytes must be a power of two, no longer than a line of the L1")
        if self.l1_bytes_per_clock % self.sector_bytes:
            raise InputError("gpu l1_bytes_per_clock must be a multiple of sector_bytes")
        if not 0 < self.clock_mhz < float("inf"):
            raise InputError(f"gpu clock_mhz must be positive, not {shown(self.clock_mhz)}")


@dataclass(frozen=True, eq=False)
class WarpAccesses:
    """Sector accesses of one product on one SM, in issue order.

    address: uint64[n] of the sector. op: uint8[n]. stream: uint8[n]. step: int64[n], the SM's step counter. clock:
    int64[n], the clock of the L1, from 0.
    """

    address: npt.NDArray[np.uint64]
    op: npt.NDArray[np.uint8]
    stream: npt.NDArray[np.uint8]
    step: Int64Array
    clock: Int64Array


@dataclass(frozen=True, eq=False)
class GpuResult:
    """l1: counts summed over the SMs. l2: counts of the L2. l1_accesses: int64[len(STREAMS)] sector accesses.

    misses_by_stream: int64[len(STREAMS)] L1 load misses. memory_address uint64[n], memory_is_write uint8[n],
    memory_cycle int64[n]: what leaves the L2, in order, with the clock of the access that caused it. busy_cycles:
    clocks the L1s need, the busiest one of each product counted.
    """

    l1: CacheCounts
    l2: CacheCounts
    l1_accesses: Int64Array
    misses_by_stream: Int64Array
    memory_address: npt.NDArray[np.uint64]
    memory_is_write: npt.NDArray[np.uint8]
    memory_cycle: Int64Array
    busy_cycles: int


def simulate_gpu_spmv(problem: SpmvProblem, spec: GpuSpec | None = None) -> GpuResult:
    """Play all products of a problem on a GPU; caches stay warm, and the dirty sectors left in the L2 are flushed at
    the end. O(accesses log accesses)."""
    spec = spec or GpuSpec()
    l1 = [CacheLevel(spec.l1) for _ in range(spec.sms)]
    l2 = CacheLevel(spec.l2)
    accesses, misses = np.zeros(len(STREAMS), np.int64), np.zeros(len(STREAMS), np.int64)
    clock = np.zeros(spec.sms, np.int64)
    out: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8], Int64Array]] = []
    for product in range(len(problem.x_shift)):
        requests = []
        for sm, made in enumerate(warp_accesses(problem, spec, product)):
            accesses += np.bincount(made.stream, minlength=len(STREAMS))
            transactions = l1[sm].access(made.op, made.address, np.full(len(made.address), spec.sector_bytes))
            fills = transactions.access_index[transactions.is_write == 0]
            misses += np.bincount(made.stream[fills], minlength=len(STREAMS))
            at = transactions.access_index
            columns = made.step[at], np.full(len(at), sm), np.arange(len(at)), clock[sm] + made.clock[at]
            requests.append((*columns, transactions.address, transactions.size, transactions.is_write))
            clock[sm] += made.clock[-1] + 1 if len(made.clock) else 0
        step, unit, turn, cycle, address, size, is_write = map(np.concatenate, zip(*requests, strict=True))
        order = np.lexsort((turn, unit, step))
        address, size, is_write, cycle = address[order], size[order], is_write[order], cycle[order]
        missed = l2.access(is_write, address, size)
        out.append((missed.address, missed.is_write, cycle[missed.access_index]))
        clock[:] = clock.max()  # the next kernel starts when the last SM is done
    counts = l2.counts
    rest = l2.flush()
    out.append((rest.address, rest.is_write, np.full(len(rest), clock.max())))
    return GpuResult(
        l1=_sum([level.counts for level in l1]),
        l2=counts,
        l1_accesses=accesses,
        misses_by_stream=misses,
        memory_address=np.concatenate([part[0] for part in out]),
        memory_is_write=np.concatenate([part[1] for part in out]),
        memory_cycle=np.maximum.accumulate(np.concatenate([part[2] for part in out])),
        busy_cycles=int(clock.max()),
    )


@dataclass(frozen=True, eq=False)
class GpuTime:
    """time_ns: until the last sector has arrived and the last SM is done. dram: the memory's result, its energy too."""

    time_ns: float
    dram: DramResult


def gpu_time(result: GpuResult, spec: GpuSpec, part: Any, controller: Any = None) -> GpuTime:
    """Return how long the product takes with a memory: its requests arrive when the SMs make them (open loop).

    part, controller: as in hwmodel.dram.engine.simulate_dram; the part's burst must be the L2's line. Without a
    controller each channel takes its requests from a slice of the L2 of its own (front_end `independent`).
    """
    from hwmodel.dram.engine import simulate_dram
    from hwmodel.parts.part_file import load_part

    loaded = load_part(part)
    if loaded.organisation.burst_bytes != spec.l2.line_bytes:
        raise InputError(
            f"the L2's lines of {spec.l2.line_bytes} bytes are not the part's bursts of "
            f"{loaded.organisation.burst_bytes}"
        )
    clock_ns = 1e3 / spec.clock_mhz
    arrival = (result.memory_cycle * (clock_ns / loaded.tck_ns)).astype(np.int64)
    dram = simulate_dram(
        result.memory_address,
        result.memory_is_write,
        arrival,
        part=loaded,
        controller=controller or {"front_end": "independent"},
    )
    return GpuTime(max(dram.time_ns, result.busy_cycles * clock_ns), dram)


def warp_accesses(problem: SpmvProblem, spec: GpuSpec, p: int) -> Iterator[WarpAccesses]:
    """Yield, SM by SM, the coalesced accesses of product p."""
    lengths = np.diff(problem.start)
    for sm in range(spec.sms):
        rows = np.arange(problem.n_rows)
        yield _issue(problem, spec, p, rows[(rows // spec.warps_per_block) % spec.sms == sm], lengths)


def _issue(problem: SpmvProblem, spec: GpuSpec, p: int, rows: Int64Array, lengths: Int64Array) -> WarpAccesses:
    """Return the accesses of one SM. A row takes ceil(length / lanes) steps, at least one.

    Instructions of a step, in order: first step only: the two row pointers; ids, values, x; last step only: y.
    """
    lanes = spec.warp_lanes
    step_of, row_of, part_of = _schedule(np.maximum(-(-lengths[rows] // lanes), 1), spec.warps_per_sm)
    row = rows[row_of]
    n_steps = np.maximum(-(-lengths[row] // lanes), 1)
    begin = problem.start[row] + part_of * lanes
    count = np.minimum(problem.start[row + 1] - begin, lanes)
    # One entry per lane that reads: which issue, which tuple.
    issue = np.repeat(np.arange(len(row)), count)
    tuples = np.arange(len(issue)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
    pointer_bytes = problem.memory.region("row_pointers").n_bytes // len(problem.start)
    first, last = np.flatnonzero(part_of == 0), np.flatnonzero(part_of == n_steps - 1)
    pointers = problem.address("row_pointers") + pointer_bytes * row
    value_bytes = (problem.value_bits + 7) // 8
    y_index = row[last] * problem.y_stride + problem.y_shift[p]
    # instruction of the step, issue, address, bytes, stream
    groups: tuple[tuple[int, Int64Array, Int64Array, int, int], ...] = (
        (0, first, pointers[first], pointer_bytes, _POINTERS),
        (1, first, pointers[first] + pointer_bytes, pointer_bytes, _POINTERS),
        (2, issue, problem.address("column_ids") + problem.id_bytes * tuples, problem.id_bytes, _IDS),
        (3, issue, problem.address("values") + tuples * problem.value_bits // 8, value_bytes, _VALUES),
        (
            4,
            issue,
            problem.address("x") + problem.vector_bytes * (problem.column[tuples] + problem.x_shift[p]),
            problem.vector_bytes,
            _INPUTS,
        ),
        (5, last, problem.address("y") + problem.vector_bytes * y_index, problem.vector_bytes, _OUTPUTS),
    )
    sector = spec.sector_bytes
    columns = []
    for instruction, which, address, n_bytes, stream in groups:
        for edge in {0, n_bytes - 1}:  # elements are no longer than a sector: at most two sectors each
            columns.append((which, np.full(len(which), instruction), (address + edge) // sector, stream))
    key_issue = np.concatenate([c[0] for c in columns])
    key_instruction = np.concatenate([c[1] for c in columns])
    key_sector = np.concatenate([c[2] for c in columns])
    streams = np.concatenate([np.full(len(c[0]), c[3], np.uint8) for c in columns])
    order = np.lexsort((key_sector, key_instruction, key_issue))
    keys = np.stack((key_issue[order], key_instruction[order], key_sector[order]))
    new = np.r_[True, (np.diff(keys, axis=1) != 0).any(axis=0)] if keys.shape[1] else np.zeros(0, bool)
    unique = order[new]
    # A new clock with each new line of an instruction.
    keys = keys[:, new]
    keys[2] //= spec.l1_bytes_per_clock // sector
    clock = np.cumsum((np.diff(keys, axis=1, prepend=keys[:, :1]) != 0).any(axis=0))
    return WarpAccesses(
        (key_sector[unique] * sector).astype(np.uint64),
        (key_instruction[unique] == 5).astype(np.uint8),
        streams[unique],
        step_of[key_issue[unique]],
        clock,
    )


def _schedule(steps: Int64Array, slots: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return (step counter, row, part) of each issue of one SM, in order; row k needs steps[k] issues.

    Rows take the `slots` resident places in order; every turn issues one part of each resident row, place by place; a
    finished row's place goes to the next row in the following turn.
    """
    next_row = min(slots, len(steps))
    resident = [(k, 0) for k in range(next_row)]
    rows: list[int] = []
    parts: list[int] = []
    turns: list[int] = []
    turn, needed = 0, steps.tolist()
    while resident:
        still = []
        for row, part in resident:
            rows.append(row)
            parts.append(part)
            turns.append(turn)
            if part + 1 < needed[row]:
                still.append((row, part + 1))
            elif next_row < len(needed):
                still.append((next_row, 0))
                next_row += 1
        resident = still
        turn += 1
    return np.array(turns, np.int64), np.array(rows, np.int64), np.array(parts, np.int64)


def _sum(counts: list[CacheCounts]) -> CacheCounts:
    names = CacheCounts.__dataclass_fields__
    return CacheCounts(**{name: sum(getattr(one, name) for one in counts) for name in names})
