"""A lower bound of every order's peak by minimum cuts.

When operator v runs, some downset S that holds all it needs and not v itself has run, and live(S) plus what v
allocates is in memory. live(S) sums, over the buffers, [some writer in S][some user not in S] x bytes: a cut function.
The smallest value over all such S is therefore a minimum cut; the largest of these over v bounds every order.

More is known of the last of several operators. Let D be a downset. One of its maximal elements runs last of D, and when
it does, all else of D has run: every order needs at least the least, over the maximal l of D, of the minimum cut with
D - l on one side and l and its descendants on the other. Likewise the first operator of an upset U to run has all of U
on the other side. A single operator is the case of D its ancestors and itself. A good D is found by peeling: from all
operators, the end with the least cut is taken away again and again. (The bound and the peeling are ours.)
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reorder.operators.schedule.operator_problem import OperatorProblem
from traces.base.errors import MissingExtraError
from traces.operators.opgraph import MAX_BYTES

Mask = npt.NDArray[np.bool_]
MAX_CUTS = 20_000  # of one operator each
PEELED = 20_000  # operators; which reaches which takes n^2 / 4 bytes


class CutBound:
    """The flow network of one problem; `of(v)` is the least memory in which operator v can run in any order."""

    def __init__(self, problem: OperatorProblem) -> None:
        try:
            from ortools.graph.python import max_flow
        except ImportError as error:
            raise MissingExtraError("ortools", "exact") from error

        self._max_flow = max_flow
        graph = problem.graph
        n, nb = graph.n_nodes, len(graph.buffers)
        self.source, self.sink = n + 2 * nb, n + 2 * nb + 1
        self.infinite = sum(graph.buffer_bytes.tolist()) + 1
        self.usable = 4 * self.infinite < MAX_BYTES
        arcs: list[tuple[int, int, int]] = []  # (tail, head, capacity); the source side of a cut is S
        retained = problem.retained
        rows = problem.buffer_rows
        # begun_b (node n + b) is on the source side once a writer of b is; open_b (n + nb + b) only if all users are.
        for b, size in enumerate(graph.buffer_bytes.tolist()):
            arcs.append((n + b, self.sink if retained[b] else n + nb + b, size))
        for v in range(n):
            arcs += [(v, n + b, self.infinite) for b in rows["writes"][v]]
            arcs += [(n + nb + b, v, self.infinite) for b in rows["touches"][v] if not retained[b]]
            arcs += [(v, u, self.infinite) for u in graph.predecessors[v]]
        self.arcs = np.array(arcs, np.int64)
        self.problem = problem
        self.writers, self.users = (
            np.array([(b, v) for v in range(n) for b in rows[kind][v]], np.int64) for kind in ("writes", "touches")
        )

    def of(self, v: int) -> int:
        begun = [self.problem.graph.n_nodes + b for b in self.problem.buffer_rows["writes"][v]]
        forced = [(self.source, u, self.infinite) for u in (*self.problem.graph.predecessors[v], *begun)]
        forced.append((v, self.sink, self.infinite))
        arcs = np.concatenate((self.arcs, np.array(forced, np.int64)))
        flow = self._max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(arcs[:, 0], arcs[:, 1], arcs[:, 2])
        if flow.solve(self.source, self.sink) != flow.OPTIMAL:
            return 0
        return int(flow.optimal_flow())

    def between(self, v: int, ran: Mask, waits: Mask) -> int:
        """Return the least memory when v runs, where all of `ran` has and nothing of `waits` has (bool[n]; v waits).

        ran holds the predecessors of what it holds, waits the successors.
        """
        n, nb = len(ran), len(self.problem.graph.buffers)
        side = np.arange(self.sink + 1)
        side[:n][ran] = side[n : n + nb][self.writers[ran[self.writers[:, 1]], 0]] = self.source
        for b in self.problem.buffer_rows["writes"][v]:
            side[n + b] = self.source
        side[:n][waits] = side[n + nb : n + 2 * nb][self.users[waits[self.users[:, 1]], 0]] = self.sink
        tail, head, size = side[self.arcs[:, 0]], side[self.arcs[:, 1]], self.arcs[:, 2]
        across = (tail == self.source) & (head == self.sink)
        base = int(size[across].sum())
        left = (tail != head) & (tail != self.sink) & (head != self.source) & ~across
        flow = self._max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(tail[left], head[left], size[left])
        if not left.any():
            return base
        return base + int(flow.optimal_flow()) if flow.solve(self.source, self.sink) == flow.OPTIMAL else 0


class Peeling:
    """Bounds by the last operator of a downset, or (first) by the first one of an upset; see above."""

    def __init__(self, cut: CutBound, first: bool) -> None:
        self.cut, self.first = cut, first
        graph = cut.problem.graph
        ends = graph.predecessors, graph.successors
        self.inner, self.outer = reversed(ends) if first else ends
        self.beyond = self._reached(self.outer)

    def _reached(self, rows: Sequence[Sequence[int]]) -> npt.NDArray[np.uint8]:
        """uint8[n, n / 8]: bits of all that is reached along `rows`."""
        n = len(rows)
        reached = np.zeros((n, (n + 7) // 8), np.uint8)
        forwards = all(u < v for v, row in enumerate(rows) for u in row)
        for v in range(n) if forwards else range(n - 1, -1, -1):
            for u in rows[v]:
                reached[v] |= reached[u]
                reached[v, u >> 3] |= 128 >> (u & 7)
        return reached

    def end(self, v: int, held: Mask) -> int:
        """Return the bound where v is the last (first) of `held` to run."""
        other = np.unpackbits(self.beyond[v], count=len(held)).view(bool)
        rest = held.copy()
        if self.first:
            return self.cut.between(v, other, rest)
        rest[v], other[v] = False, True
        return self.cut.between(v, rest, other)

    def bound(self, known: int, enough: int, deadline: float | None) -> int:
        """Return the best bound found while peeling, at least `known`. Some 2 n cuts, and 60 per 1/64 of progress."""
        n = len(self.inner)
        held, best = np.ones(n, bool), known
        outer = np.array([len(row) for row in self.outer])
        value = {v: self.end(v, held) for v in np.flatnonzero(outer == 0).tolist()}
        while value and best < enough and not (deadline is not None and time.monotonic() > deadline):
            weakest = min(value, key=value.__getitem__)
            value[weakest] = self.end(weakest, held)  # it shrinks with what is held
            weakest = min(value, key=value.__getitem__)
            if value[weakest] >= best + best // 64 + 1:
                for v in sorted(value, key=value.__getitem__):
                    value[v] = self.end(v, held)
                    if value[v] <= best:
                        break
                else:
                    best = min(value.values())
                weakest = min(value, key=value.__getitem__)
            held[weakest] = False
            del value[weakest]
            for u in self.inner[weakest]:
                outer[u] -= 1
                if not outer[u]:
                    value[u] = self.end(u, held)
        return min(best, enough)


def lower_bound(
    problem: OperatorProblem, *, known: int = 0, enough: int = MAX_BYTES, deadline: float | None = None
) -> int:
    """Return a proved lower bound of the peak of any order, at least `known`.

    One cut per operator, spread evenly over the graph where it has more than MAX_CUTS; then, for up to PEELED
    operators, peeling from both ends. Stops at `enough` (a peak that is known to be reachable) and at `deadline` (value
    of time.monotonic()), of which the cuts of one operator may take a sixteenth: peeling finds higher bounds.
    """
    bound = max(known, int(problem.single_operator_bytes.max()))
    cut = CutBound(problem)
    if not cut.usable:
        return bound
    n = problem.graph.n_nodes
    candidates = np.random.default_rng(0).permutation(n)[:MAX_CUTS]  # any stop leaves an even sample
    now = time.monotonic()
    until = None if deadline is None else now + (deadline - now) / (16 if n <= PEELED else 1)
    for v in candidates.tolist():
        if bound >= enough or (until is not None and time.monotonic() > until):
            break
        bound = max(bound, cut.of(v))
    if n <= PEELED and bound < enough:
        for first in (False, True):
            bound = Peeling(cut, first).bound(bound, enough, deadline)
    return min(bound, enough)
