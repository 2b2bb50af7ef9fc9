"""Adaptive soft budgeting (Ahn et al. 2020, Algorithm 2): it saves states, and it ends."""

import os
from pathlib import Path

import pytest

import edgewatt as ew
from edgewatt.operators.request import load_graph
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedule import schedule
from reorder.operators.schedule.schedulers.serenity import waists
from traces.base.errors import InputError
from traces.operators.opgraph import Operator, OpGraph, Tensor

REFERENCE = Path(os.environ.get("EDGEWATT_REFERENCE", "/nowhere")) / "schedule"


@pytest.mark.parametrize("limit", [16, 300, 2000])
@pytest.mark.parametrize("model", ["darts_v2", "randwire-ws16-seed3", "randwire-er16-seed1"])
def test_any_limit_ends_with_the_optimum(model: str, limit: int) -> None:
    graph = load_graph(model)
    found = schedule(graph, method="serenity", max_level_states=limit)
    assert found.proved
    assert found.peak_bytes == schedule(graph).peak_bytes
    for part in found.details["parts"]:
        assert part["transitions"] >= part["states"] - len(part["budgets_bytes"])
        assert len(part["budgets_bytes"]) <= 40  # no creeping by single bytes


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="no reference data: set EDGEWATT_REFERENCE")
def test_rewritten_swiftnet_needs_few_states() -> None:
    graph = ew.load(REFERENCE / "swiftnet_62_rewritten.json", kind="opgraph")
    found = schedule(graph, method="serenity")
    assert (found.peak_bytes, found.proved) == (188_160, True)
    assert found.states <= 50_000
    assert schedule(graph, method="serenity", max_level_states=300).proved


def test_a_buffer_that_passes_an_operator_is_seen_even_if_bytes_agree() -> None:
    """After n1, t0 passes and t1 is dead, both of one byte: n1 divides nothing."""

    def tensor(name: str, size: int) -> Tensor:
        return Tensor(name, (size,), size, name, "uint8")

    nodes = (
        Operator("n0", "INPUT", (), (tensor("t0", 1),), (), {}),
        Operator("n1", "OP", ("t0",), (tensor("t1", 1), tensor("u1", 7)), (), {}),
        Operator("n2", "OP", ("t0", "u1"), (tensor("t2", 1),), (), {}),
        Operator("n3", "OP", ("t2",), (tensor("t3", 1),), (), {}),
    )
    graph = OpGraph("g", nodes, ("t3",), allow_disconnected=True)
    assert waists(OperatorProblem(graph)) == [0, 2]
    assert ew.schedule(graph, method="serenity").peak_bytes == ew.schedule(graph).peak_bytes


@pytest.mark.parametrize("model", ["darts_v2", "randwire-er16-seed1"])
def test_the_budgets_as_printed(model: str) -> None:
    graph = load_graph(model)
    given_up = schedule(graph, method="serenity", soft_budget="printed", divide=False, max_level_states=2)
    (part,) = given_up.details["parts"]
    hard, second, *_ = budgets = part["budgets_bytes"]
    assert len(budgets) == 40 and second == hard // 2 and not part["ends"]  # out of time: half of it
    found = schedule(graph, method="serenity", soft_budget="printed")
    assert found.proved and found.peak_bytes == schedule(graph).peak_bytes
    with pytest.raises(InputError, match="soft_budget"):
        schedule(graph, method="serenity", soft_budget="odd")
