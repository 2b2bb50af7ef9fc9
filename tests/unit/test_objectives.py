"""Objectives: what they are made from and what they are worth."""

import pytest

from hwmodel.fastmemory.iomodel import count_io
from reorder.base import Task
from reorder.edges.search.objectives import IOTerm, Objective, io, make_objective, memories, report, runs, weighted
from traces.base.errors import InputError
from traces.networks.network import Network

CROSS = Network([0, 1, 0, 1, 2, 3], [2, 2, 3, 3, 4, 4], n_neurons=5, inputs=[0, 1], outputs=[4])
MIXED = [0, 2, 1, 3, 4, 5]  # targets 2 3 2 3 4 4: five runs


def test_values() -> None:
    task = Task(memory=3, policy="lru")
    assert runs().evaluate(CROSS, MIXED, task) == 5
    assert runs().evaluate(CROSS, None, task) == 3
    for policy in ("lru", "rr", "min"):
        for memory in (3, 4):
            expected = count_io(CROSS, MIXED, memory=memory, policy=policy).total
            assert io(policy, memory=memory).evaluate(CROSS, MIXED, task) == expected
    lru = count_io(CROSS, MIXED, memory=3, policy="lru").total
    assert weighted(0.5, 2).evaluate(CROSS, MIXED, task) == 0.5 * 5 + 2 * lru
    assert memories([3, 5]).evaluate(CROSS, MIXED, task) == lru + count_io(CROSS, MIXED, memory=5, policy="lru").total


def test_made_from_names_and_mappings() -> None:
    assert make_objective("io") == Objective("io", io=(IOTerm(),))
    assert make_objective({"kind": "io", "policy": "rr"}) == io("rr")
    assert make_objective({"kind": "weighted", "a": 1, "b": 2.5}) == weighted(1, 2.5)
    assert make_objective({"kind": "memories", "sizes": [3, 9]}) == memories([3, 9])
    assert make_objective(runs()) == runs()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("i0", "unknown objective 'i0'"),
        ("enrgy", r"did you mean 'energy'\?\); energy, time and bytes need a machine: .* --system"),
        ("runns", r"unknown objective 'runns' \(did you mean 'runs'\?\)$"),
        ({"kind": "weighted", "a": 1}, "needs b"),
        ({"kind": "weighted", "a": 1, "c": 1}, "no option 'c'"),
        ({"kind": "weighted", "a": -1, "b": 1}, "a must be"),
        ({"kind": "weighted", "a": 0, "b": 0}, "both 0"),
        ({"kind": "memories", "sizes": []}, "list of memory sizes"),
        ({"kind": "memories", "sizes": [2]}, "memory is 2"),
        ({"kind": "io", "policy": "mn"}, "unknown policy 'mn'"),
        ({"name": "io"}, "mapping with 'kind'"),
        (7, "a name or a mapping"),
    ],
)
def test_bad_objectives(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_objective(given)


def test_every_order_is_reported_under_all() -> None:
    values = report(CROSS, MIXED, Task(memory=3, objective={"kind": "weighted", "a": 1, "b": 1}))
    assert set(values) == {"io_lru", "io_lru_pin_both", "io_rr", "io_rr_pin_both", "io_min", "runs", "objective"}
    assert values["objective"] == values["runs"] + values["io_min"]


def test_what_cannot_be_shown_is_refused_all_the_same() -> None:
    class Strange:
        def __repr__(self) -> str:
            raise RuntimeError("not even shown")

    for given in (Strange(), {"kind": "weighted", "a": Strange(), "b": 1}):
        with pytest.raises(InputError, match="Strange"):
            make_objective(given)
