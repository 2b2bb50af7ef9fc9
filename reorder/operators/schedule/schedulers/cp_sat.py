"""The scheduling problem as a constraint model for OR-Tools CP-SAT: an independent check of the searches."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.constructive import best_simple_order
from reorder.operators.schedule.operator_problem import OperatorProblem
from traces.base.errors import InputError, MissingExtraError

MAX_OPERATORS = 250  # the model has operators x steps decisions


@dataclass(frozen=True)
class CpSatParameters:
    """work_limit: deterministic time units of the solver (about a second each); workers: solver threads.

    With one worker the result is the same on every run.
    """

    work_limit: float = 120.0
    workers: int = 1


@SCHEDULERS.register(
    "cp-sat", summary="constraint model for OR-Tools, an independent check", parameters=CpSatParameters
)
def cp_sat(problem: OperatorProblem, task: ScheduleTask, parameters: CpSatParameters) -> SearchResult:
    """Solve with decisions done[v, t]: operator v has run by step t.

    A buffer is live during step t if some writer has run by t and some user not by t - 1. Raises InputError for graphs
    of more than MAX_OPERATORS operators.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise MissingExtraError("ortools", "exact") from error

    graph = problem.graph
    n = graph.n_nodes
    if n > MAX_OPERATORS:
        raise InputError(
            f"{graph.name}: {n} operators are too many for cp-sat (at most {MAX_OPERATORS}): use method='best-first'"
        )
    start = best_simple_order(problem)
    highest, lowest = int(problem.costs.peak(start)), int(problem.single_operator_bytes.max())
    unit = math.gcd(*graph.buffer_bytes.tolist())
    model = cp_model.CpModel()
    done = [[model.new_bool_var("") for _ in range(n)] for _ in range(n)]
    for v in range(n):
        for t in range(n - 1):
            model.add_implication(done[v][t], done[v][t + 1])
        model.add(done[v][n - 1] == 1)
        for u in graph.predecessors[v]:
            model.add(done[v][0] == 0)
            for t in range(1, n):
                model.add_implication(done[v][t], done[u][t - 1])
    for t in range(n):
        model.add(sum(done[v][t] for v in range(n)) == t + 1)
    peak = model.new_int_var(lowest // unit, highest // unit, "peak")
    rows = problem.buffer_rows
    writers: list[list[int]] = [[] for _ in graph.buffers]
    users: list[list[int]] = [[] for _ in graph.buffers]
    for v in range(n):
        for b in rows["writes"][v]:
            writers[b].append(v)
        for b in rows["touches"][v]:
            users[b].append(v)
    live = []
    for b in range(len(graph.buffers)):
        live.append([model.new_bool_var("") for _ in range(n)])
        for t in range(n):
            for w in writers[b]:
                for u in users[b] if not problem.kept[b] else ():
                    # begun and not all used up: live
                    literals = [done[w][t].negated(), live[b][t]] + ([done[u][t - 1]] if t else [])
                    model.add_bool_or(literals)
                if problem.kept[b]:
                    model.add_implication(done[w][t], live[b][t])
    for t in range(n):
        model.add(sum(int(size) // unit * live[b][t] for b, size in enumerate(graph.buffer_bytes)) <= peak)
    place = np.argsort(start)
    for v in range(n):
        for t in range(n):
            model.add_hint(done[v][t], int(place[v] <= t))
    model.minimize(peak)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = parameters.workers
    solver.parameters.random_seed = task.seed & 0x7FFFFFFF
    solver.parameters.max_deterministic_time = parameters.work_limit
    if task.deadline is not None:
        solver.parameters.max_time_in_seconds = max(0.01, task.deadline - time.monotonic())
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return SearchResult(start, highest, lowest, 0, task.deadline is not None)
    steps = [sum(solver.value(done[v][t]) == 0 for t in range(n)) for v in range(n)]
    order = np.argsort(steps).astype(np.int32)
    reached = int(problem.costs.peak(order))
    bound = reached if status == cp_model.OPTIMAL else max(lowest, math.ceil(solver.best_objective_bound) * unit)
    late = status != cp_model.OPTIMAL and task.deadline is not None
    return SearchResult(order, reached, min(bound, reached), int(solver.num_branches), late)
