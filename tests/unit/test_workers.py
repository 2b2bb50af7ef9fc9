"""Teams of workers: every piece once, whoever does it; small ones together; errors and deaths are told."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from oracles.pieces import die, square

from traces.base import workers
from traces.base.errors import EdgewattError
from traces.base.workers import Workers


@pytest.mark.parametrize("executor", ["inline", "threads", "processes"])
def test_every_piece_is_done_once(executor: str) -> None:
    with Workers(2, executor) as team:
        for n in (0, 1, 2, 500):
            done = list(team.map(square, ((k, (k,)) for k in range(n))))
            assert sorted(done) == [(k, k * k) for k in range(n)]
        with pytest.raises(KeyError):
            list(team.map(square, ((k, (k, 90)) for k in range(200))))
        assert len(list(team.map(square, ((k, (k,)) for k in range(9))))) == 9, "the team still works"


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pieces were sent at a time."""
    sent: list[int] = []
    give = workers._Process.give

    def counting(self: Any, pieces: Any) -> None:
        sent.append(len(pieces))
        give(self, pieces)

    monkeypatch.setattr(workers._Process, "give", counting)
    return sent


def test_small_pieces_travel_together_and_few_are_under_way(sizes: list[int]) -> None:
    taken = 0

    def calls() -> Any:
        nonlocal taken
        for taken in range(1, 5_001):
            yield taken, (taken,)

    with Workers(2, "processes") as team:
        for done, _ in enumerate(team.map(square, calls())):
            assert taken - done <= 3 * workers.AHEAD, "before two workers, and the answers of one"
    assert sizes[:2] == [1, 1] and sum(sizes) == 5_000 and len(sizes) < 1_000, "after the first they are known"


def test_the_last_pieces_go_one_by_one(sizes: list[int]) -> None:
    """Else a worker may have many pieces before it when the others are done."""
    with Workers(2, "processes") as team:
        done = sorted(team.map(square, ((k, (k,)) for k in range(2_000)), 2_000))
    assert done == [(k, k * k) for k in range(2_000)] and sum(sizes) == 2_000
    assert max(sizes) > 8 and sizes[-2:] == [1] * 2
    for done_before, size in zip(itertools.accumulate(sizes, initial=0), sizes, strict=False):
        assert size <= max((2_000 - done_before) // 4, 1)


def test_a_lost_piece_may_have_a_result() -> None:
    with Workers(2, "processes") as team:
        calls = [(k, (k,)) for k in range(9)]
        found = dict(team.map(die, calls, lost=lambda key, times, why: (key, times), attempts=2))
        assert found == {k: (k, 2) if k == 3 else k for k in range(9)}


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    script = "from traces.base.workers import Workers\nfrom math import sqrt\nprint('run')\n"
    script += (
        "with Workers(2, 'processes') as team:\n    print(sorted(team.map(sqrt, [(k, (k,)) for k in range(3)])))\n"
    )
    (tmp_path / "plain.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout.count("run") == 1 and "(2, 1.41421" in done.stdout, done.stderr


def test_a_worker_that_dies_is_told_of() -> None:
    with Workers(2, "processes") as team, pytest.raises(EdgewattError, match="a worker process died"):
        list(team.map(die, ((k, (k,)) for k in range(9))))
