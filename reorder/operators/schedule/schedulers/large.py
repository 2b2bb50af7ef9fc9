"""large: fuse operators without losing the optimum, then search (after Zhong et al., ICCAD 2023, arXiv 2308.13898).

Two operators become one where some optimal order runs them back to back. Both rules are exchange arguments on the
submodular footprint (schedule.state_search), the second one being the first one of the reversed problem:

* **v right after u**: v waits for nothing but u and what u waits for; running it then frees at least what it allocates;
  and it needs no more memory at that moment than u just did. Running v at once can then only lower what follows.
* **u right before v**: nothing but v and what follows v waits for u; u allocates at least what it frees; and v needs no
  less memory than u does just before it. Delaying u can then only lower what comes between.

Both are checked for every set that may have run before, so they hold in every order. The fused operator opens and
closes the buffers of both, except those that live only inside, and carries as `work_bytes` what it needs beyond that.
Fusion repeats until nothing changes. The rules and their proofs are ours; the iteration is theirs.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.constructive import best_simple_order
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from reorder.operators.schedule.schedulers.best_first import BestFirstParameters
from reorder.operators.schedule.state_search import best_first
from traces.operators.opgraph import Operator, OpGraph, Tensor


@dataclass(frozen=True, eq=False)
class Fused:
    """A smaller problem, and for each of its operators the run of original operators it stands for."""

    problem: OperatorProblem
    runs: tuple[tuple[int, ...], ...]

    def expand(self, order: Order) -> Order:
        """Return the order of the original operators that an order of the fused ones stands for."""
        return np.array([v for run in order.tolist() for v in self.runs[run]], np.int32)


def fuse(problem: OperatorProblem) -> Fused:
    """Fuse as much as the two rules allow. O(rounds x edges x width)."""
    return _Fusion(problem).run()


class _Fusion:
    def __init__(self, problem: OperatorProblem) -> None:
        graph = problem.graph
        self.original = problem
        self.size = graph.buffer_bytes.tolist()
        self.kept = problem.kept.tolist()
        self.before = {v: set(ids) for v, ids in enumerate(graph.predecessors)}
        self.after = {v: set(ids) for v, ids in enumerate(graph.successors)}
        self.writes = {v: set(ids) for v, ids in enumerate(problem.buffer_rows["writes"])}
        self.touches = {v: set(ids) for v, ids in enumerate(problem.buffer_rows["touches"])}
        self.work = dict(enumerate(problem.work.tolist()))
        self.runs = {v: [v] for v in self.before}
        self.users: dict[int, set[int]] = {b: set() for b in range(len(self.size))}
        self.writers: dict[int, set[int]] = {b: set() for b in range(len(self.size))}
        for v, buffers in self.touches.items():
            for b in buffers:
                self.users[b].add(v)
            for b in self.writes[v]:
                self.writers[b].add(v)

    def run(self) -> Fused:
        pending = sorted(self.before)
        while pending:
            changed: set[int] = set()
            for u in pending:
                while u in self.before and (v := self._partner(u)) is not None:
                    self._merge(u, v)
                    changed |= {u} | self.before[u] | self.after[u]
            pending = sorted(changed & self.before.keys())
        return self._result()

    def _partner(self, u: int) -> int | None:
        """Return a successor that u may be fused with (only direct successors can qualify under either rule)."""
        for v in sorted(self.after[u]):
            if self.before[v] <= self.before[u] | {u} and self._right_after(u, v):
                return v
        for v in sorted(self.after[u]):
            if self.after[u] <= self.after[v] | {v} and self._right_before(u, v):
                return v
        return None

    def _sole(self, v: int) -> bool:
        """Every buffer that v writes is written by v alone, so v always allocates all of them."""
        return all(len(self.writers[b]) == 1 for b in self.writes[v])

    def _opened(self, v: int) -> int:
        return sum(self.size[b] for b in self.writes[v])

    def _surely_freed(self, v: int, earlier: set[int]) -> int:
        """Bytes freed after v in every order: all other users are in `earlier`, which has run before v."""
        return sum(self.size[b] for b in self.touches[v] if not self.kept[b] and self.users[b] <= earlier | {v})

    def _perhaps_freed(self, v: int, later: set[int]) -> int:
        """Bytes freed after v in some order: no user is in `later`, which runs after v."""
        return sum(self.size[b] for b in self.touches[v] if not self.kept[b] and not self.users[b] & later)

    def _right_after(self, u: int, v: int) -> bool:
        if not (self._sole(u) and self._sole(v)):
            return False
        opened, freed_u = self._opened(v), self._surely_freed(u, self.before[u])
        return (
            opened <= self._surely_freed(v, self.before[u] | {u})
            and opened + self.work[v] <= freed_u + self.work[u]
            and freed_u == self._perhaps_freed(u, self.after[u])
        )

    def _right_before(self, u: int, v: int) -> bool:
        if not (self._sole(u) and self._sole(v)):
            return False
        freed = self._perhaps_freed(u, self.after[u])
        return (
            self._opened(u) >= freed
            and freed + self.work[u] <= self._opened(v) + self.work[v]
            and freed == self._surely_freed(u, self.before[u])
        )

    def _merge(self, u: int, v: int) -> None:
        """Make u stand for u and then v."""
        freed_u = self._surely_freed(u, self.before[u])
        opened_u, opened_v = self._opened(u), self._opened(v)
        highest = max(opened_u + self.work[u], opened_u - freed_u + opened_v + self.work[v])
        inside = {b for b in self.writes[u] | self.writes[v] if not self.kept[b] and self.users[b] <= {u, v}}
        self.before[u] = (self.before[u] | self.before[v]) - {u, v}
        self.after[u] = (self.after[u] | self.after[v]) - {u, v}
        for w in self.before.pop(v):
            if w in self.after:
                self.after[w].discard(v)
        for w in self.after.pop(v):
            self.before[w].discard(v)
        for w in self.before[u]:
            self.after[w].add(u)
        for w in self.after[u]:
            self.before[w].add(u)
        self.writes[u] = (self.writes[u] | self.writes.pop(v)) - inside
        self.touches[u] = (self.touches[u] | self.touches.pop(v)) - inside
        for b in self.touches[u] | inside:
            for owners in (self.users[b], self.writers[b]):
                if v in owners:
                    owners.discard(v)
                    owners.add(u)
            if b in inside:
                self.users[b].clear()
                self.writers[b].clear()
        self.work[u] = highest - self._opened(u)
        self.work.pop(v)
        self.runs[u] += self.runs.pop(v)

    def _result(self) -> Fused:
        """Build the fused graph; an operator that opens no buffer of its own is given the least one there is."""
        graph = self.original.graph
        pending = {v: len(ids) for v, ids in self.before.items()}
        ready = deque(v for v in sorted(pending) if not pending[v])
        order: list[int] = []
        while ready:
            order.append(ready.popleft())
            for w in sorted(self.after[order[-1]]):
                pending[w] -= 1
                if not pending[w]:
                    ready.append(w)
        nodes = []
        for v in order:
            first = graph.nodes[v]
            tensors = []
            for b in sorted(self.writes[v]):
                name = graph.buffers[b]
                tensors.append(Tensor(f"{v}:{name}", (self.size[b],), self.size[b], name))
            work = self.work[v]
            if not tensors:  # all it made is used up inside: one byte without a reader stands for it
                tensors.append(Tensor(f"{v}:", (1,), 1, f"{v}:"))
                self.work[v] = work - 1
            nodes.append((v, first.op, tensors))
        writer_tensor: dict[int, str] = {}
        number = {name: i for i, name in enumerate(graph.buffers)}
        for _, _, tensors in nodes:
            for t in tensors:
                if t.buffer in number:
                    writer_tensor[number[t.buffer]] = t.name
        made = {v: tensors[0].name for v, _, tensors in nodes}
        operators = tuple(
            Operator(f"{v}", op, self._inputs(v, writer_tensor), tuple(t), attributes=self._overwritten(v, made))
            for v, op, t in nodes
        )
        outputs = tuple(writer_tensor[b] for b in range(len(self.size)) if self.kept[b])
        fused = OpGraph(f"{graph.name} (fused)", operators, outputs, allow_disconnected=True)
        work = tuple(self.work[v] for v in order)
        return Fused(OperatorProblem(fused, work), tuple(tuple(self.runs[v]) for v in order))

    def _overwritten(self, v: int, made: dict[int, str]) -> dict[str, tuple[str, ...]]:
        """The attribute `after`: who reads, before v, what v overwrites."""
        readers = {w for b in self.writes[v] for w in (self.users[b] - self.writers[b]) & self.before[v]}
        return {"after": tuple(made[w] for w in sorted(readers))} if readers else {}

    def _inputs(self, v: int, writer_tensor: dict[int, str]) -> tuple[str, ...]:
        """Tensors that make v wait for `before[v]`: any writer of a buffer it reads, and whom it updates in place."""
        updated = [
            f"{w}:{self.original.graph.buffers[b]}"
            for b in sorted(self.writes[v])
            for w in sorted(self.writers[b] & self.before[v])
        ]
        return (*(writer_tensor[b] for b in sorted(self.touches[v] - self.writes[v])), *updated)


@SCHEDULERS.register(
    "large", summary="fuse operators without losing the optimum, then best-first", parameters=BestFirstParameters
)
def large(problem: OperatorProblem, task: ScheduleTask, parameters: BestFirstParameters) -> SearchResult:
    """See Scheduler. details: operators after fusion."""
    fused = fuse(problem)
    start = best_simple_order(problem)
    result = best_first(
        fused.problem,
        lower_bound_bytes=int(problem.single_operator_bytes.max()),
        max_states=parameters.max_states,
        deadline=task.deadline,
        progress=task.progress,
    )
    order = fused.expand(result.order)
    peak = int(problem.costs.peak(order))
    if int(problem.costs.peak(start)) < peak:
        order, peak = start, int(problem.costs.peak(start))
    lower = min(result.lower_bound_bytes, peak)
    details = {"operators_after_fusion": fused.problem.graph.n_nodes}
    return SearchResult(order, peak, lower, result.states, result.truncated, details)
