"""Buffers in several memory banks: which buffer goes where, so that what all accesses take is least.

A buffer stays in one bank for its life. What it costs there is its traffic over the bank's bandwidth. The choice is an
integer programme over the sizes live together (HiGHS, through SciPy); whether the buffers chosen for a bank have a
placement is decided by the exact search, and a set that has none is forbidden from then on (logic-based Benders
decomposition; Hooker and Ottosson, Mathematical Programming 96, 2003). The first choice whose
banks all have a placement is optimal; the bound stays where the search cannot tell.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.operators.arena.base import Buffers, Int64Array, Placement, PlacementTask, place_in_sequence
from reorder.operators.arena.exact_search import ExactParameters, place, sections
from traces.base.errors import InputError

MAX_BUFFERS = 3000  # of the integer programme; more are placed one after another
ROUNDS = 100  # choices that are tried
MASTER_WORK = 200_000  # branches of one integer programme times its variables
PLACEMENT_NODES = 500_000  # placements of one buffer that one search of a bank may try
SHRINKING = 20_000  # the same for making a forbidden set smaller, each time
PLANNED_SHARE = 0.985  # of a bank, each time that no placement is found for what was planned in all of it
MOST_REDUCTIONS = 12  # of that share
ROOM = 1e-6  # relative, below which bounds of the integer programme are not told from what is reached


@dataclass(frozen=True)
class Bank:
    """A memory. size_bytes: None where it holds whatever is put there. mb_per_s: 10^6 bytes per second."""

    name: str
    mb_per_s: float
    size_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("a bank needs a name")
        if not (math.isfinite(self.mb_per_s) and 1e-3 <= self.mb_per_s <= 1e9):
            raise InputError(f"bank {self.name!r}: mb_per_s is {self.mb_per_s}: from 0.001 to 10^9")
        if self.size_bytes is not None and not 0 < self.size_bytes <= 2**62:
            raise InputError(f"bank {self.name!r}: size_bytes is {self.size_bytes}: from 1 to 2^62, or left out")

    @property
    def ns_per_byte(self) -> float:
        return 1000 / self.mb_per_s

    @property
    def room(self) -> int:
        return 2**63 - 1 if self.size_bytes is None else self.size_bytes


@dataclass(frozen=True, eq=False)
class BankedPlacement:
    """bank: int64[n], of each buffer. offset: int64[n] bytes in that bank. heights: highest end in each bank.

    time_ns: what all traffic takes, one access after another. lower_bound_ns: no placement takes less. spill_ns: of
    time_ns, what is beyond all buffers in the fastest bank. spilled_bytes: sizes of buffers in other banks than that.
    choices: integer programmes solved. truncated: a time limit ended the search.
    """

    banks: tuple[Bank, ...]
    bank: Int64Array
    offset: Int64Array
    heights: tuple[int, ...]
    time_ns: float
    lower_bound_ns: float
    spill_ns: float
    spilled_bytes: int
    proved: bool
    choices: int = 0
    truncated: bool = False

    @property
    def names(self) -> list[str]:
        return [self.banks[k].name for k in self.bank.tolist()]


class _Search:
    """Buffers [n], banks [m], allowed: bool[n, m], cost: float[n, m] ns, and what is known of sets so far."""

    def __init__(
        self,
        buffers: Buffers,
        banks: Sequence[Bank],
        traffic: npt.ArrayLike | None,
        pinned: Mapping[int, str] | None,
        deadline: float | None,
        nodes: int,
    ) -> None:
        names = [bank.name for bank in banks]
        if not names:
            raise InputError("banks: at least one is wanted")
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two banks are named {name!r}")
        moved = 2 * buffers.size if traffic is None else np.asarray(traffic)
        if moved.shape != (buffers.count,) or not np.issubdtype(moved.dtype, np.integer) or (moved < 0).any():
            raise InputError(f"traffic: {buffers.count} whole numbers of bytes of at least 0 are wanted")
        if moved.size and int(moved.max()) > 2**62:
            raise InputError("traffic: a buffer's is more than 2^62 bytes")
        rooms = [bank.room for bank in banks]
        allowed = buffers.size[:, None] <= np.array(rooms)
        for i, name in (pinned or {}).items():
            if not 0 <= i < buffers.count:
                raise InputError(f"pinned: buffer {i} does not exist (0 to {buffers.count - 1})")
            if name not in names:
                raise InputError(f"buffer {i} is pinned to {name!r}, which is not a bank: {', '.join(names)}")
            k = names.index(name)
            if not allowed[i, k]:
                raise InputError(f"buffer {i} of {buffers.size[i]} bytes is pinned to {name!r}, which has {rooms[k]}")
            allowed[i, np.arange(len(names)) != k] = False
        for i in np.flatnonzero(~allowed.any(axis=1))[:1].tolist():
            raise InputError(f"buffer {i} of {buffers.size[i]} bytes is larger than every bank")
        self.cost = moved[:, None] * np.array([bank.ns_per_byte for bank in banks])[None, :]
        self.buffers, self.banks, self.allowed = buffers, tuple(banks), allowed
        self.deadline, self.nodes = deadline, nodes
        self.known: dict[tuple[int, bytes], Placement] = {}
        self.planned = [1.0] * len(banks)  # share of each bank that the integer programme may fill
        self.forbidden: list[tuple[int, Int64Array]] = []  # (bank, buffers that have no placement in it together)
        self.filled: dict[int, Placement] = {}  # bank -> where `greedy` placed what it assigned to it

    def part(self, chosen: npt.NDArray[np.bool_]) -> Buffers:
        b = self.buffers
        return Buffers(b.lower[chosen], b.upper[chosen], b.size[chosen], b.alignment)

    def total(self, bank: Int64Array) -> float:
        """Return the time of an assignment, the same for the same one whatever way it was found."""
        return math.fsum(self.cost[np.arange(len(bank)), bank].tolist())

    def late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def place(self, k: int, chosen: npt.NDArray[np.bool_], nodes: int | None = None) -> Placement:
        key = k, np.packbits(chosen).tobytes()
        if key not in self.known:
            task = PlacementTask(self.banks[k].size_bytes, self.deadline)
            placement = place(self.part(chosen), task, ExactParameters(self.nodes if nodes is None else nodes))
            if nodes is not None:
                return placement
            self.known[key] = placement
        return self.known[key]

    def shrink(self, k: int, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return a smaller set that is proved to have no placement in a bank either."""
        room, remaining = self.banks[k].room, chosen.copy()
        for i in np.argsort(self.buffers.size, kind="stable").tolist():
            if remaining[i] and not self.late():
                remaining[i] = False
                remaining[i] = self.place(k, remaining, min(SHRINKING, self.nodes)).lower_bound <= room
        return remaining

    def check(self, chosen: Int64Array) -> tuple[list[int], bool]:
        """Return the banks of which nothing is known, and whether a set was forbidden."""
        undecided, forbidden = [], False
        for k, bank in enumerate(self.banks):
            members = chosen == k
            placed = self.place(k, members)
            if placed.height <= bank.room:
                continue
            if placed.lower_bound <= bank.room:
                undecided.append(k)
            else:
                self.forbidden.append((k, np.flatnonzero(self.shrink(k, members))))
                forbidden = True
        return undecided, forbidden

    def greedy(self) -> Int64Array | None:
        """Assign one buffer after another, those that lose most per byte and step first, to the best bank left.

        What the time does not reach goes together to the cheapest bank that takes it.
        """
        dearest = np.where(self.allowed, self.cost, -1.0).max(axis=1)
        cheapest = np.where(self.allowed, self.cost, np.inf).min(axis=1)
        area = np.maximum(self.buffers.size.astype(float) * (self.buffers.upper - self.buffers.lower), 1)
        gain = np.where(self.allowed.sum(axis=1) == 1, np.inf, (dearest - cheapest) / area)
        bank = np.full(self.buffers.count, -1, np.int64)
        for i in np.argsort(-gain, kind="stable").tolist():
            if self.late():
                break
            for k in np.argsort(self.cost[i], kind="stable").tolist():
                if not self.allowed[i, k]:
                    continue
                bank[i] = k
                if self.fill(k, bank == k):
                    break
                bank[i] = -1
            if bank[i] < 0:
                return None
        for k in np.argsort([b.ns_per_byte for b in self.banks], kind="stable").tolist():
            left = (bank < 0) & self.allowed[:, k]
            if left.any() and self.fill(k, left | (bank == k)):
                bank[left] = k
        return None if (bank < 0).any() else bank

    def fill(self, k: int, chosen: npt.NDArray[np.bool_]) -> bool:
        part, bank = self.part(chosen), self.banks[k]
        if bank.size_bytes is None:
            return True
        if part.load > bank.room:
            return False
        for order in (np.lexsort((part.lower, -part.size)), np.argsort(part.lower, kind="stable")):
            placed = place_in_sequence(part, order, best=False, deadline=self.deadline)
            if placed.height <= bank.room:
                self.filled[k] = placed
                return True
        return False

    def master(self) -> tuple[Int64Array | None, float, bool]:
        """Return (the cheapest assignment whose live sizes fit, a bound of any, whether there is none)."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix

        n, m = self.cost.shape
        unit = self.buffers.alignment
        units = -(-self.buffers.size // unit)
        first, last, count = sections(self.buffers.lower, self.buffers.upper)
        rows: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float, float]] = []
        for i in range(n):
            rows.append((i * m + np.arange(m), np.ones(m), 1, 1))
        for s in range(count):
            live = np.flatnonzero((first <= s) & (s < last))
            for k, bank in enumerate(self.banks):
                most = int(-(-bank.room // unit) * self.planned[k])
                if int(units[live].sum()) > most:
                    rows.append((live * m + k, units[live] / max(most, 1), 0, 1 if most else 0))
        for k, together in self.forbidden:
            rows.append((together * m + k, np.ones(len(together)), 0, len(together) - 1))
        start = np.cumsum([0, *(len(r[0]) for r in rows)])
        matrix = csr_matrix(
            (np.concatenate([r[1] for r in rows]), np.concatenate([r[0] for r in rows]), start), (len(rows), n * m)
        )
        base = np.where(self.allowed, self.cost, np.inf).min(axis=1)
        extra = np.where(self.allowed, self.cost - base[:, None], 0.0)
        scale = max(extra.max(initial=0.0), 1e-300)
        options: dict[str, Any] = {"mip_rel_gap": 0.0, "node_limit": max(20, MASTER_WORK // (n * m))}
        if self.deadline is not None:
            options["time_limit"] = max(0.01, self.deadline - time.monotonic())
        solution = milp(
            (extra / scale).ravel(),
            integrality=np.ones(n * m),
            bounds=Bounds(0, self.allowed.ravel().astype(float)),
            constraints=LinearConstraint(matrix, [r[2] for r in rows], [r[3] for r in rows]),
            options=options,
        )
        fixed = math.fsum(base.tolist())
        if solution.status == 2:
            return None, math.inf, True
        bound = 0.0 if solution.mip_dual_bound is None else max(0.0, float(solution.mip_dual_bound))
        if solution.x is None:
            return None, fixed + bound * scale, False
        return solution.x.reshape(n, m).argmax(axis=1).astype(np.int64), fixed + bound * scale, False


def place_in_banks(
    buffers: Buffers,
    banks: Sequence[Bank],
    *,
    traffic: npt.ArrayLike | None = None,
    pinned: Mapping[int, str] | None = None,
    deadline: float | None = None,
    nodes: int = PLACEMENT_NODES,
) -> BankedPlacement:
    """As `allocate` with banks. nodes: of each search for a placement; where they end, `proved` is false."""
    search = _Search(buffers, banks, traffic, pinned, deadline, nodes)
    lower = math.fsum(np.where(search.allowed, search.cost, np.inf).min(axis=1).tolist())
    best = search.greedy()
    exact, choices, impossible = True, 0, False
    rounds = ROUNDS if buffers.count <= MAX_BUFFERS else 0
    while choices < rounds and not search.late() and (best is None or search.total(best) > lower * (1 + ROOM)):
        chosen, bound, none = search.master()
        choices += 1
        if exact:
            lower, impossible = max(lower, bound), none
        if chosen is None:
            break
        undecided, forbidden = search.check(chosen)
        if not undecided and not forbidden:
            if best is None or search.total(chosen) < search.total(best):
                best = chosen
            break
        if undecided:
            exact = False
            rounds = min(rounds, choices + MOST_REDUCTIONS)
            for k in undecided:
                search.planned[k] *= PLANNED_SHARE
    if best is None:
        outcome = "no way found in the time limit" if search.late() else "no way found"
        raise InputError(
            "the buffers do not fit into the banks: "
            + ("proved, the sizes live together are too large" if impossible else f"{outcome}, none is excluded")
        )
    return _result(search, best, min(float(lower), search.total(best)), choices)


def _result(search: _Search, bank: Int64Array, lower: float, choices: int) -> BankedPlacement:
    offset, heights = np.zeros(len(bank), np.int64), []
    for k in range(len(search.banks)):
        members = bank == k
        placed = search.place(k, members)
        if placed.height > search.banks[k].room:
            placed = search.filled[k]  # the rules by which it was chosen place it all the same
        offset[members] = placed.offset
        heights.append(placed.height)
    total = search.total(bank)
    fastest = int(np.argmin([b.ns_per_byte for b in search.banks]))
    return BankedPlacement(
        banks=search.banks,
        bank=bank,
        offset=offset,
        heights=tuple(heights),
        time_ns=total,
        lower_bound_ns=lower,
        spill_ns=total - math.fsum(search.cost[:, fastest].tolist()),
        spilled_bytes=int(search.buffers.size[bank != fastest].sum()),
        proved=bool(total <= lower * (1 + ROOM)),
        choices=choices,
        truncated=search.late(),
    )
