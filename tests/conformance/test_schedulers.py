"""What every registered scheduling method owes its users."""

import pytest

from reorder.operators.schedule.base import SCHEDULERS
from reorder.operators.schedule.operator_problem import OperatorProblem, footprint
from reorder.operators.schedule.schedule import schedule
from traces.generators.operators import cell, randwire
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor


def _one() -> OpGraph:
    return OpGraph("one", (Operator("x", INPUT, (), (Tensor("x", (3,), 3, "x"),)),), ("x",))


def _chain() -> OpGraph:
    nodes = [Operator("t0", INPUT, (), (Tensor("t0", (5,), 5, "t0"),))]
    nodes += [
        Operator(f"t{i}", "OP", (f"t{i - 1}",), (Tensor(f"t{i}", (i,), 1 + i % 4, f"t{i}"),)) for i in range(1, 70)
    ]
    return OpGraph("chain", tuple(nodes), ("t69", "t3"))


GRAPHS = {"one": _one(), "chain": _chain(), "cell": cell("darts_v2"), "randwire": randwire("er", 12, p=0.4)}


@pytest.mark.parametrize("method", list(SCHEDULERS))
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_method_returns_an_order_it_can_answer_for(method: str, graph: OpGraph) -> None:
    found = schedule(graph, method=method)
    problem = OperatorProblem(graph)
    assert footprint(problem, found.order).peak_bytes == found.peak_bytes  # also checks that the order can run
    assert int(problem.single_operator_bytes.max()) <= found.lower_bound_bytes <= found.peak_bytes
    assert found.peak_bytes <= found.arena_bytes
    best = schedule(graph)
    assert found.lower_bound_bytes <= best.peak_bytes <= found.peak_bytes
    assert found.proved == (found.peak_bytes == found.lower_bound_bytes)
    assert schedule(graph, method=method).order.tolist() == found.order.tolist()
