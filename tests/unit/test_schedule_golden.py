"""Generated graphs against stored numbers (made by the oracles: tests/golden_files.py)."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cython_ext.schedule.schedule import NEVER, Graph, Search
from edgewatt.operators.request import load_graph
from reorder.operators.arena.base import ALLOCATORS, Allocator, Buffers, Placement, PlacementTask
from reorder.operators.rewriting.rewrite import rewrite_graph
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import schedule
from reorder.operators.schedule.traffic import offchip_traffic
from traces.operators.opgraph import Operator, OpGraph, Tensor

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "schedule.json").read_text())


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["model"])
def test_generated_graphs(golden: dict) -> None:
    graph = rewrite_graph(load_graph(golden["model"]), golden["rewrite"])
    problem = OperatorProblem(graph)
    kahn = problem.kahn()
    traffic = offchip_traffic(problem, kahn, onchip_bytes=65536, block_bytes=1024)
    assert {
        "model": golden["model"],
        "rewrite": golden["rewrite"],
        "operators": graph.n_nodes,
        "optimal_peak": schedule(graph).peak_bytes,
        "downsets": schedule(graph, method="serenity", divide=False, soft_budget="unbounded").states,
        "kahn_peak": int(problem.costs.peak(kahn)),
        "greedy_peak": schedule(graph, method="greedy").peak_bytes,
        "kahn_arena": {name: arena(problem, kahn, name).height for name in golden["kahn_arena"]},
        "kahn_traffic_65536": [traffic.read_bytes, traffic.written_bytes],
    } == golden
    assert schedule(graph).proved


def test_an_arena_at_its_bound_is_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [Tensor(f"t{i}", (100,), 100, f"t{i}") for i in range(3)]
    nodes = [Operator(f"n{i}", "OP", (f"t{i - 1}",) if i else (), (t,)) for i, t in enumerate(tensors)]
    graph = OpGraph("chain", tuple(nodes), ("t2",))
    entry = ALLOCATORS["exact"]
    asked: list[int | None] = []

    class Counted(Allocator):
        def place(self, buffers: Buffers, task: PlacementTask, parameters: object) -> Placement:
            asked.append(task.capacity)
            return entry.item.place(buffers, task, parameters)

    monkeypatch.setitem(ALLOCATORS._entries, "exact", replace(entry, item=Counted()))
    found = schedule(graph)
    assert (found.peak_bytes, found.arena_bytes, found.arena_lower_bound_bytes) == (200, 228, 228)
    assert asked == [200]


def test_an_operator_waits_for_each_other_once() -> None:
    """Else it would be ready twice, and lists of what is ready as long as the operators overflow."""
    one, rows = np.array([4], np.int64), np.zeros(4, np.int32)
    own = np.arange(4, dtype=np.int32), rows
    for before in ([0, 0, 0], [1, 0, 0]):
        waits = np.array([0, 0, 1, 3], np.int32), np.array([0, *before[:2], 0], np.int32)
        with pytest.raises(ValueError, match="once, ascending"):
            Graph(waits, own, (rows, rows), one, np.zeros(1, np.uint8))


@pytest.mark.parametrize("safe_moves", [True, False])
def test_a_state_search_goes_on_as_it_began(safe_moves: bool) -> None:
    """States of levels are those without safe moves: an order along them with such moves had too many operators."""
    graph = OperatorProblem(load_graph("darts_v2")).compiled
    first, second = (Search(graph, 0, NEVER, 10**5, safe_moves) for _ in range(2))
    first.best_first(1)
    with pytest.raises(ValueError, match="from its start"):
        first.levels(1, 10**5)
    if safe_moves:
        with pytest.raises(ValueError, match="without safe moves"):
            second.levels(1, 10**5)
    else:
        second.levels(1, 10**5)
        with pytest.raises(ValueError, match="from its start"):
            second.best_first(1)
