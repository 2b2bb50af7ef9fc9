"""SERENITY as published (Ahn et al. 2020, section 3): the dynamic programme over zero-indegree sets (Algorithm 1),
divide and conquer at the waists of the graph, adaptive soft budgeting (Algorithm 2). Each part is a switch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import cython_ext.schedule.schedule as kernel
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from traces.base.errors import unknown_name
from traces.operators.opgraph import INPUT, OpGraph

SLICE_STATES = 8192
SOFT_BUDGETS = ("ours", "printed", "unbounded")
PRINTED_STEPS = 40
FIRST_STEPS = 100  # the first step of the budget is this part of the hard one
STEP_LIMIT_GROWTH = 4  # factor of the limit on a search step


@dataclass(frozen=True)
class SerenityParameters:
    """divide: the parts between waists are scheduled one by one. soft_budget: 'ours', 'unbounded' or
    'printed': Algorithm 2 line by line, which moves both budgets at once and may not end; after 40 budgets a part is
    given up. min_part: parts of fewer operators are joined with the next one (1: cut at every waist; 2 gives the cells
    of the paper). max_level_states: states of one search step at which a run counts as out of time, at first (the paper
    goes by a clock). A run without an order says what the next budget must be at least; from there budgets rise by
    steps that double, and fall by halves after a run out of time; where no lower one is left, the limit grows fourfold.
    max_states: all states of a run.
    """

    divide: bool = True
    soft_budget: str = "ours"
    min_part: int = 2
    max_level_states: int = 2_000
    max_states: int = 20_000_000

    def __post_init__(self) -> None:
        if self.soft_budget not in SOFT_BUDGETS:
            raise unknown_name("soft_budget", self.soft_budget, SOFT_BUDGETS)


def waists(problem: OperatorProblem) -> list[int]:
    """Return the operators v, in file order, that every order runs after all before and before all behind them, and
    after which nothing is live but what v wrote: there the graph falls into parts that can be scheduled alone."""
    graph = problem.graph
    n = graph.n_nodes
    _, _, live = problem.costs.footprint(problem.file_order())
    alone = [-1] * n  # bytes of what each operator wrote, where it is the only writer
    for v, buffers in enumerate(problem.buffer_rows["writes"]):
        if all(len(graph.writers[graph.buffers[b]]) == 1 for b in buffers):
            alone[v] = sum(int(graph.buffer_bytes[b]) for b in buffers)
    # v is passed by every order iff no edge jumps over it from or to an operator that is not related to it: all of
    # 0..v-1 reach v, and v reaches all of v+1..n-1.
    operators = []
    ancestors = _related(graph.predecessors)
    descendants = _related([tuple(n - 1 - u for u in graph.successors[n - 1 - v]) for v in range(n)])
    passing = _passing(problem)
    for v in range(n - 1):
        passed = ancestors[v] == v and descendants[n - 1 - v] == n - 1 - v
        if passed and live[v] == alone[v] and not passing[v]:
            operators.append(v)
    return operators


def _passing(problem: OperatorProblem) -> list[bool]:
    """Whether some buffer written before each operator is needed after it. Bytes alone do not tell: what passes may be
    as large as results of the operator that nothing reads."""
    rows, n = problem.buffer_rows, problem.graph.n_nodes
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for v in range(n):
        for b in rows["writes"][v]:
            first.setdefault(b, v)
        for b in (*rows["reads"][v], *rows["writes"][v]):
            last[b] = v
    passing = [False] * n
    for b, v in first.items():
        for passed in range(v + 1, n if problem.retained[b] else last[b]):
            passing[passed] = True
    return passing


def _related(before: Sequence[Sequence[int]]) -> list[int]:
    """Number of operators that must run before each one (Python integers as bitsets)."""
    sets: list[int] = []
    for v, ids in enumerate(before):
        members = 0
        for u in ids:
            members |= sets[u] | 1 << u
        sets.append(members)
        assert not members >> v
    return [members.bit_count() for members in sets]


def parts_of(problem: OperatorProblem, min_part: int) -> list[tuple[list[int], OperatorProblem]]:
    """Cut the problem at its waists: per part the operators it adds and a problem that starts with the waist's data."""
    graph = problem.graph
    cuts: list[int] = []
    for v in waists(problem):
        if v + 1 - (cuts[-1] + 1 if cuts else 0) >= min_part:
            cuts.append(v)
    if cuts and graph.n_nodes - 1 - cuts[-1] < min_part:
        cuts.pop()
    parts = []
    for first, last in zip([-1, *cuts], [*cuts, graph.n_nodes - 1], strict=True):
        own = list(range(first + 1, last + 1))
        nodes = [graph.nodes[v] for v in own]
        if first >= 0:
            nodes.insert(0, replace(graph.nodes[first], op=INPUT, inputs=(), constants=()))
        present = {t.name for node in nodes for t in node.outputs}
        outputs = [name for name in graph.outputs if name in present]
        if last < graph.n_nodes - 1:
            outputs += [t.name for t in graph.nodes[last].outputs if t.name not in outputs]
        used = {name: graph.constants[name] for node in nodes for name in node.constants}
        name = f"{graph.name}[{first + 1}:{last + 1}]"
        part = OpGraph(name, tuple(nodes), tuple(outputs), used, allow_disconnected=True)
        parts.append((own, OperatorProblem(part)))
    return parts


@SCHEDULERS.register(
    "serenity",
    summary="Ahn et al. 2020: dynamic programme, divide and conquer, adaptive soft budgeting",
    parameters=SerenityParameters,
)
def serenity(problem: OperatorProblem, task: ScheduleTask, parameters: SerenityParameters) -> SearchResult:
    """Run the published algorithm; exact, unless a limit ends it. details: operators, states, transitions
    (successors generated), seconds and whether the search ended, per part; last_transitions: of the run that found the
    order."""
    started = time.thread_time()
    cut = parts_of(problem, parameters.min_part) if parameters.divide else [([*range(problem.graph.n_nodes)], problem)]
    divided = time.thread_time() - started
    order: list[int] = []
    states, complete, truncated = 0, True, False
    rows: list[dict[str, Any]] = []
    for own, part in cut:
        started = time.thread_time()
        run = _Part(part, parameters, task)
        piece = run.schedule()
        ends = piece is not None
        shift = part.graph.n_nodes - len(own)  # 1 where the part begins with the data of the waist before it
        if piece is None:
            complete, truncated = False, truncated or run.truncated
            piece = part.greedy()
        order += [own[v - shift] for v in piece.tolist() if v >= shift]
        states += run.states
        seconds = time.thread_time() - started
        rows.append(
            {
                "operators": part.graph.n_nodes,
                "ends": ends,
                "states": run.states,
                "transitions": run.transitions,
                "last_transitions": run.last_transitions,
                "seconds": seconds,
                "budgets_bytes": run.budgets,
            }
        )
    steps = np.array(order, np.int32)
    peak = int(problem.costs.peak(steps))
    lower = peak if complete else int(problem.single_operator_bytes.max())
    return SearchResult(steps, peak, lower, states, truncated, {"parts": rows, "divide_seconds": divided})


class _Part:
    """One part: Algorithm 1, inside Algorithm 2 if asked for."""

    def __init__(self, problem: OperatorProblem, parameters: SerenityParameters, task: ScheduleTask) -> None:
        self.problem, self.parameters, self.task = problem, parameters, task
        self.states = self.transitions = self.last_transitions = 0
        self.truncated = False
        self.budgets: list[int] = []

    def schedule(self) -> Order | None:
        if self.parameters.soft_budget == "unbounded":
            return self._programme(kernel.NEVER, self.parameters.max_states)[1]
        hard = int(self.problem.costs.peak(self.problem.kahn()))  # tau_max, Algorithm 2 line 3
        limit = self.parameters.max_level_states
        if self.parameters.soft_budget == "printed":
            return self._printed(hard, limit)
        below, above = int(self.problem.single_operator_bytes.max()) - 1, hard + 1  # no order; out of time
        tau, step = hard, 0
        while True:
            self.budgets.append(tau)
            status, order, next_peak = self._programme(tau + 1, limit)
            if order is not None or self.truncated:
                return order
            if status == kernel.EXHAUSTED:
                below = max(tau, min(next_peak, hard) - 1)
                step = 2 * step if step else max(1, hard // FIRST_STEPS)
            else:
                if tau == below + 1 or above - below <= hard // FIRST_STEPS:  # no lower budget can help: more time can
                    if limit >= self.parameters.max_states:
                        return None
                    limit, above = limit * STEP_LIMIT_GROWTH, hard + 1
                else:
                    above = tau
                step = 0
            tau = below + 1 + step
            if tau >= above:
                tau = max(below + 1, (below + above) // 2)
            tau = min(tau, hard)

    def _printed(self, hard: int, limit: int) -> Order | None:
        old = new = hard
        status = kernel.EXHAUSTED  # no solution
        for _ in range(PRINTED_STEPS):
            old, new = new, (new + old) // 2 if status == kernel.EXHAUSTED else new // 2
            self.budgets.append(new)
            status, order, _ = self._programme(new + 1, limit)
            if order is not None or self.truncated:
                return order
        return None

    def _programme(self, upper: int, max_level_states: int) -> tuple[int, Order | None, int]:
        """Return the status, the order found, and the least peak that was cut off."""
        search = kernel.Search(self.problem.compiled, 0, upper, self.parameters.max_states, safe_moves=False)
        status = kernel.RUNNING
        while status == kernel.RUNNING and not self.truncated:
            status = search.levels(SLICE_STATES, max_level_states)
            if self.task.progress is not None:
                self.task.progress(int(search.level), self.problem.graph.n_nodes, f"{search.n_states} states")
            self.truncated = self.task.deadline is not None and time.monotonic() > self.task.deadline
        self.states += int(search.n_states)
        if status == kernel.NO_MEMORY:
            raise MemoryError(f"{self.problem.graph.name}: out of memory after {self.states} states: lower max_states")
        self.last_transitions = int(search.n_generated)
        self.transitions += self.last_transitions
        return status, search.order() if status == kernel.SOLVED else None, int(search.pruned_peak)
