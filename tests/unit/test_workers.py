"""Teams of workers: every piece once, whoever does it; small ones together; errors and deaths are told."""

import itertools
from typing import Any

import pytest
from oracles.pieces import die, square

from reorder import workers
from reorder.workers import Workers
from traces.base.errors import EdgewattError


@pytest.mark.parametrize("executor", ["inline", "threads", "processes"])
def test_every_piece_is_done_once(executor: str) -> None:
    with Workers(2, executor) as team:
        for n in (0, 1, 2, 500):
            done = list(team.map(square, ((k, (k,)) for k in range(n))))
            assert sorted(done) == [(k, k * k) for k in range(n)]
        with pytest.raises(KeyError):
            list(team.map(square, ((k, (k, 90)) for k in range(200))))
        assert len(list(team.map(square, ((k, (k,)) for k in range(9))))) == 9, "the team still works"


def test_small_pieces_travel_together_and_few_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    taken = 0
    submit = workers._Processes.submit

    def counting(self: Any, function: Any, calls: list[Any]) -> Any:
        sizes.append(len(calls))
        return submit(self, function, calls)

    def calls() -> Any:
        nonlocal taken
        for taken in range(1, 5_001):
            yield taken, (taken,)

    monkeypatch.setattr(workers._Processes, "submit", counting)
    with Workers(2, "processes") as team:
        for done, _ in enumerate(team.map(square, calls())):
            assert taken - done <= (workers.IN_FLIGHT * 2 + 1) * workers._MOST_TOGETHER
    most = workers.IN_FLIGHT * 2
    assert sizes[:most] == [1] * most and sum(sizes) == 5_000 and len(sizes) < 500, "after the first they are known"


def test_the_last_pieces_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a worker may have half a second of pieces before it when the others are done."""
    sizes: list[int] = []
    submit = workers._Processes.submit

    def counting(self: Any, function: Any, calls: list[Any]) -> Any:
        sizes.append(len(calls))
        return submit(self, function, calls)

    monkeypatch.setattr(workers._Processes, "submit", counting)
    with Workers(2, "processes") as team:
        done = sorted(team.map(square, ((k, (k,)) for k in range(2_000)), 2_000))
    assert done == [(k, k * k) for k in range(2_000)] == [(k, k * k) for k in range(sum(sizes))]
    assert max(sizes) > 8 and sizes[-4:] == [1] * 4
    for done_before, size in zip(itertools.accumulate(sizes, initial=0), sizes, strict=False):
        assert size <= max((2_000 - done_before) // 4, 1)


def test_a_worker_that_dies_is_told_of() -> None:
    with Workers(2, "processes") as team, pytest.raises(EdgewattError, match="a worker process died"):
        list(team.map(die, ((k, (k,)) for k in range(9))))
