"""Generated graphs against stored numbers (made by the oracles: scripts/golden_schedule.py)."""

import json
from pathlib import Path

import pytest

from edgewatt.operators.orders import load_graph
from reorder.rewriting.rewrite import rewrite_graph
from reorder.schedule import constructive
from reorder.schedule.arena import arena
from reorder.schedule.operator_problem import OperatorProblem
from reorder.schedule.schedule import schedule
from reorder.schedule.traffic import offchip_traffic

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "schedule.json").read_text())


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["model"])
def test_generated_graphs(golden: dict) -> None:
    graph = rewrite_graph(load_graph(golden["model"]), golden["rewrite"])
    problem = OperatorProblem(graph)
    kahn = constructive.kahn(problem)
    traffic = offchip_traffic(problem, kahn, onchip_bytes=65536, block_bytes=1024)
    assert {
        "model": golden["model"],
        "rewrite": golden["rewrite"],
        "operators": graph.n_nodes,
        "optimal_peak": schedule(graph).peak_bytes,
        "downsets": schedule(graph, method="serenity", divide=False, budget=False).states,
        "kahn_peak": int(problem.costs.peak(kahn)),
        "greedy_peak": schedule(graph, method="greedy").peak_bytes,
        "kahn_arena": {name: arena(problem, kahn, name).n_bytes for name in golden["kahn_arena"]},
        "kahn_traffic_65536": [traffic.read_bytes, traffic.written_bytes],
    } == golden
    assert schedule(graph).proved
