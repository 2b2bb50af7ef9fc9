"""A lower bound of every order's peak by minimum cuts.

When operator v runs, some downset S that holds all it needs and not v itself has run, and live(S) plus what v
allocates is in memory. live(S) sums, over the buffers, [some writer in S][some user not in S] x bytes: a cut function.
The smallest value over all such S is therefore a minimum cut; the largest of these over v bounds every order.
"""

from __future__ import annotations

import time

import numpy as np

from reorder.schedule.operator_problem import OperatorProblem
from traces.work.opgraph import MAX_BYTES


class CutBound:
    """The flow network of one problem; `of(v)` is the least memory in which operator v can run in any order."""

    def __init__(self, problem: OperatorProblem) -> None:
        from ortools.graph.python import max_flow

        self._max_flow = max_flow
        graph = problem.graph
        n, nb = graph.n_nodes, len(graph.buffers)
        self.source, self.sink = n + 2 * nb, n + 2 * nb + 1
        total = int(graph.buffer_bytes.astype(object).sum())
        self.infinite = total + 1
        self.usable = 4 * self.infinite < MAX_BYTES
        arcs: list[tuple[int, int, int]] = []  # (tail, head, capacity); the source side of a cut is S
        kept = problem.kept
        rows = problem.buffer_rows
        # begun_b (node n + b) is on the source side once a writer of b is; open_b (n + nb + b) only if all users are.
        for b, size in enumerate(graph.buffer_bytes.tolist()):
            arcs.append((n + b, self.sink if kept[b] else n + nb + b, size))
        for v in range(n):
            arcs += [(v, n + b, self.infinite) for b in rows["writes"][v]]
            arcs += [(n + nb + b, v, self.infinite) for b in rows["touches"][v] if not kept[b]]
            arcs += [(v, u, self.infinite) for u in graph.predecessors[v]]
        self.arcs = np.array(arcs, np.int64)
        self.problem = problem

    def of(self, v: int) -> int:
        """Return the bound for operator v (bytes)."""
        begun = [self.problem.graph.n_nodes + b for b in self.problem.buffer_rows["writes"][v]]
        forced = [(self.source, u, self.infinite) for u in (*self.problem.graph.predecessors[v], *begun)]
        forced.append((v, self.sink, self.infinite))
        arcs = np.concatenate((self.arcs, np.array(forced, np.int64)))
        flow = self._max_flow.SimpleMaxFlow()
        flow.add_arcs_with_capacity(arcs[:, 0], arcs[:, 1], arcs[:, 2])
        if flow.solve(self.source, self.sink) != flow.OPTIMAL:
            return 0
        return int(flow.optimal_flow()) + int(self.problem.work[v])


def lower_bound(
    problem: OperatorProblem,
    *,
    known: int = 0,
    enough: int = MAX_BYTES,
    max_cuts: int = 20_000,
    deadline: float | None = None,
) -> int:
    """Return a proved lower bound of the peak of any order, at least `known`.

    One cut per operator, spread evenly over the graph where it has more than `max_cuts`. Stops at `enough` (a peak that
    is known to be reachable) and at `deadline` (value of time.monotonic()).
    """
    bound = max(known, int(problem.single_operator_bytes.max()))
    cut = CutBound(problem)
    if not cut.usable:
        return bound
    n = problem.graph.n_nodes
    candidates = np.random.default_rng(0).permutation(n)[:max_cuts]  # any stop leaves an even sample
    for v in candidates.tolist():
        if bound >= enough or (deadline is not None and time.monotonic() > deadline):
            break
        bound = max(bound, cut.of(v))
    return min(bound, enough)
