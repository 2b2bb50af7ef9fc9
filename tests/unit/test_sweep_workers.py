"""Workers of a sweep: killed, interrupted, on several hosts; none loses a point or computes it twice."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
from edgewatt.results.record import Record
from edgewatt.results.store import Claims, Store, StoreError
from edgewatt.runs.compute import stored
from edgewatt.runs.sweep import TeamExecutor, sweep
from tests.small_sweep import BASE, GRID, canonical
from traces.base import workers as pools
from traces.base.errors import InputError

pytestmark = pytest.mark.application


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_processes_give_the_same_bytes(tmp_path: Path, workers: int) -> None:
    inline = canonical(sweep(GRID, results=tmp_path / "inline", executor="inline").store)
    found = sweep(GRID, results=tmp_path / "processes", workers=workers)
    assert canonical(found.store) == inline and found.computed == 12


class Killing:
    """A process executor that kills a worker after some outcomes."""

    def __init__(self, at: int, which: int) -> None:
        self.inner, self.at, self.which = TeamExecutor("processes", 2), at, which
        self.inner.prepare(2)

    def run(self, tasks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, outcome in enumerate(self.inner.run(tasks)):
            if number == self.at:
                os.kill(sorted(children())[self.which], signal.SIGKILL)
            yield outcome


def children(parent: int | None = None) -> list[int]:
    """Return the living worker processes of a process, by the sessions that it started: some are copies of others."""
    states = {}
    for folder in Path("/proc").iterdir():
        try:
            state, ppid, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_bytes()  # empty for an instant after a process is started
            worker = state == "Z" or not command or b"traces.base.worker" in command
            if worker:
                states[int(folder.name)] = state, int(ppid), int(session)
        except (OSError, ValueError):
            continue
    own = {pid for pid, (_, ppid, session) in states.items() if ppid == (parent or os.getpid()) and session == pid}
    return [pid for pid, (state, _, session) in states.items() if session in own and state != "Z"]


@pytest.mark.parametrize("at", [0, 5])
@pytest.mark.parametrize("which", [0, -1])  # the first one and its copy
@pytest.mark.parametrize("ahead_s", [pools.AHEAD_S, 1e6])  # one task before a worker, and as many as there may be
def test_a_killed_worker_loses_nothing(
    tmp_path: Path, at: int, which: int, ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "AHEAD_S", ahead_s)
    done = sweep(GRID, results=tmp_path, executor=Killing(at, which))
    assert done.computed == 12 and not done.failed and not children()


def test_tasks_are_sent_some_at_a_time() -> None:
    """To wake a worker takes a tenth of a tiny point: more is sent when half of what lies before it is done."""
    worker = pools._Process(*[None] * 3)  # type: ignore[arg-type]
    assert worker.prefetch(99) == 1, "its pace is not known yet"
    worker._since, worker._pace_s = 1.0, pools.AHEAD_S / 9.5
    wanted = {}
    for lying in range(11):
        worker.pieces.extend([None] * (lying - len(worker.pieces)))  # type: ignore[list-item]
        wanted[lying] = worker.prefetch(99)
    assert wanted == {lying: 10 - lying if lying <= 5 else 0 for lying in range(11)}
    worker.pieces.clear()
    assert worker.prefetch(3) == 3, "near the end each has its share"
    worker._pace_s = 2 * pools.AHEAD_S
    assert worker.prefetch(99) == 1


def test_a_task_that_kills_its_workers_takes_none_that_wait_behind_it_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "deadly.py"
    code.write_text(
        "import os, sys; sys.path[:0] = " + repr(sys.path) + "\n"
        "import edgewatt.runs.compute as compute\n"
        "def answer(task):\n"
        "    if task['hash'] == 'deadly': os._exit(1)\n"
        "    return {'hash': task['hash'], 'failure': {}}\n"
        "compute.answer = answer\n"
        "from traces.base.worker import main; main()\n"
    )
    monkeypatch.setattr(pools, "AHEAD_S", 1e6)
    monkeypatch.setattr(pools, "module_command", lambda name: [sys.executable, str(code)])
    names = [*(f"a{k}" for k in range(9)), "deadly", *(f"b{k}" for k in range(30))]
    found = list(TeamExecutor("processes", 2).run({"hash": name, "config": {}} for name in names))
    assert sorted(outcome["hash"] for outcome in found) == sorted(names) and not children()
    (died,) = (outcome["failure"]["error"] for outcome in found if outcome["failure"])
    assert "died 3 times" in died


@pytest.mark.parametrize("threads", [0, 1])
def test_workers_are_copies_of_one_that_has_loaded(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something that is loaded runs a thread, a copy would lack it, and each worker loads on its own."""
    code = tmp_path / "telling.py"
    code.write_text(
        "import os, sys, threading; sys.path[:0] = " + repr(sys.path) + "\n"
        "import edgewatt.runs.compute as compute, traces.base.worker as worker\n"
        "def answer(task):\n"
        "    told = [os.getpid(), os.getsid(0), len(sys.argv) - 1, os.stat(0).st_rdev]\n"
        "    return {'hash': task['hash'], 'failure': told}\n"
        "compute.answer = answer\n"
        "worker.module_command = lambda name: [sys.executable, __file__]\n"
        f"if {threads}: threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "worker.main()\n"
    )
    monkeypatch.setattr(pools, "module_command", lambda name: [sys.executable, str(code)])
    pool, names = TeamExecutor("processes", 3), [f"p{k}" for k in range(30)]
    pool.prepare(9)
    outcomes = list(pool.run({"hash": name, "config": {}} for name in names))
    assert sorted(outcome["hash"] for outcome in outcomes) == sorted(names)
    told = {tuple(outcome["failure"]) for outcome in outcomes}
    sessions = {pid: session for pid, session, _, _ in told}
    assert len(sessions) == 3 and len({*sessions.values()}) == 1 and {*sessions.values()} < {*sessions}
    assert sorted(given for _, _, given, _ in told) == ([3, 1, 1] if threads else [3, 3, 3])[::-1]
    assert {device for *_, device in told} == {os.stat(os.devnull).st_rdev} or threads, "no task is read by a library"


def test_prepared_workers_end_with_the_sweep(tmp_path: Path) -> None:
    pool = TeamExecutor("processes", 2)
    pool.prepare(1)
    assert len(children()) == 1
    pool.prepare(9)
    assert len(children()) == 2
    pool.close()
    assert not children()
    done = sweep(GRID, results=tmp_path, executor=pool)
    assert done.computed == 12 and not children()
    assert {path.read_bytes() for path in (tmp_path / "records").iterdir()} == {
        record.to_bytes() for record in done.records
    }


def test_no_more_workers_start_than_there_are_points(tmp_path: Path) -> None:
    pool = TeamExecutor("processes", 500)
    pool.prepare(1)
    outcomes = pool.run([{"hash": "a", "config": {}, "paths": {}, "name": "a"}])
    next(outcomes)
    assert len(children()) == 1
    outcomes.close()
    pool.close()


def test_workers_end_when_the_sweep_is_interrupted(tmp_path: Path) -> None:
    def stop(done: int, total: int | None, text: str) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(GRID, results=tmp_path, workers=2, progress=stop)
    assert not children()
    resumed = sweep(GRID, results=tmp_path, workers=2)
    assert resumed.reused >= 3 and resumed.reused + resumed.computed == 12


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    code = "import sys, json; sys.path[:0] = json.loads(sys.argv[3])\n" + (
        "from edgewatt import sweep; sweep(json.loads(sys.argv[1]), results=sys.argv[2], workers=2)"
    )
    long = {**GRID, "grid": {"seed": list(range(400)), "encoder": ["raw", "dbi-dc"]}}
    parent = subprocess.Popen([sys.executable, "-c", code, json.dumps(long), str(tmp_path), json.dumps(sys.path)])
    store, deadline = Store(tmp_path), time.monotonic() + 60
    while len(store.hashes()) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = children(parent.pid)
    parent.kill()
    parent.wait()
    assert len(workers) == 2
    deadline = time.monotonic() + 20
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_alive, workers))
    assert all(isinstance(record, Record) for record in store)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except OSError:
        return False


HOST = """
import ctypes, json, socket, sys
host, sweep_of, results, path, executor = json.loads(sys.argv[1])
sys.path[:0] = path
if ctypes.CDLL(None).unshare(0x04000000) == 0:  # CLONE_NEWUTS: a host name of its own, where that is allowed
    socket.sethostname(host)
else:
    socket.gethostname = lambda: host
from edgewatt.runs.sweep import sweep
from edgewatt.runs.compute import stored
done = sweep(sweep_of, results=results, executor=executor, workers=2)
print(json.dumps([done.computed, done.reused, sorted(done.failed)]))
"""


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_two_hosts_on_one_store_compute_nothing_twice(tmp_path: Path, executor: str) -> None:
    slow = {**GRID, "base": {**BASE, "orderings": [{"kind": "connection-reordering", "iterations": 3000}]}}
    slow = {**slow, "list": [{"seed": 0}, {"seed": 1}, {"sample": 10**6}]}  # the last one fails
    given = [json.dumps([host, slow, str(tmp_path / "two"), sys.path, executor]) for host in ("alpha", "beta")]
    both = [subprocess.Popen([sys.executable, "-c", HOST, each], stdout=subprocess.PIPE) for each in given]
    said = [json.loads(process.communicate()[0]) for process in both]
    alone = sweep(slow, results=tmp_path / "one", executor="inline")
    assert canonical(Store(tmp_path / "two")) == canonical(alone.store)
    assert alone.failed and [failed for _, _, failed in said] == [sorted(alone.failed)] * 2
    assert sum(computed for computed, _, _ in said) == alone.computed, said
    assert all(computed + reused + len(failed) == len(alone.points) for computed, reused, failed in said)
    made = [record.provenance["stages_computed"] for record in Store(tmp_path / "two")]
    once = [record.provenance["stages_computed"] for record in alone.store]
    for step in ("ordering", "replay"):  # what takes no time both may compute
        assert sum(each.get(step, 0) for each in made) == sum(each.get(step, 0) for each in once), step
    assert not list((tmp_path / "two").rglob(".*"))


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    code = "import sys, json, os; sys.path[:0] = json.loads(sys.argv[2])\n" + (
        "from edgewatt.results.store import Claims; from pathlib import Path\n"
        "c = Claims(Path(sys.argv[1])).__enter__(); print(c.take('a'), flush=True); sys.stdin.read(); os._exit(9)"
    )
    command = [sys.executable, "-c", code, str(tmp_path), json.dumps(sys.path)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
        Claims(tmp_path) as claims,
    ):
        assert other.stdout is not None and other.stdout.readline() == b"True\n"
        assert not claims.take("a") and claims.take("b") and not claims.take("b")
        other.kill()
        other.wait()
        assert claims.take("a")
        claims.give_up("a")
        assert claims.take("a")


def test_executor_names() -> None:
    assert TeamExecutor("inline", 3).team.count == 1
    with pytest.raises(InputError, match="did you mean 'processes'"):
        TeamExecutor("proceses")
    with pytest.raises(InputError, match="at least 1"):
        TeamExecutor("processes", workers=0)


def test_a_worker_that_cannot_write_a_record_stops_the_sweep(tmp_path: Path) -> None:
    (done,) = ew.run({**BASE, "orderings": "two-optimal"})
    outcome = {"hash": done.hash, "record": {"canonical": done.canonical, "provenance": done.provenance}}
    written = stored(outcome, str(Store(tmp_path / "there").open().folder), True)
    assert "record" not in written and Store(tmp_path / "there").get(done.hash) == done
    unwritten = stored(outcome, str(tmp_path / "gone"), False)
    assert "cannot be written" in unwritten["unwritten"]

    class Unable:
        def run(self, tasks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
            return ({**unwritten, "hash": task["hash"]} for task in tasks)

    with pytest.raises(StoreError, match=str(tmp_path / "gone")):
        sweep(GRID, results=tmp_path / "there", executor=Unable())


def test_an_answer_waits_neither_for_the_next_task_nor_for_more() -> None:
    """A worker with a long task behind a short one tells of the short one at once."""
    command = [sys.executable, "-m", "traces.base.worker", ""]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        for seconds in (0.0, 600.0):
            piece = pickle.dumps((time.sleep, (seconds,)))
            worker.stdin.write(len(piece).to_bytes(8, "little") + piece)
        worker.stdin.flush()
        assert pickle.loads(worker.stdout.read(int.from_bytes(worker.stdout.read(8), "little"))) == ("result", None)
        worker.stdin.close()


def test_claims_of_one_process_part_its_sweeps(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        assert one.take("a") and other.take("b") and not other.take("a") and not one.take("b")
        one.give_up("a")
        assert other.take("a")
        other.__exit__(None, None, None)
        assert one.take("a") and one.take("b")


@pytest.mark.parametrize("change", ["moved", "deleted"])
def test_claims_of_a_folder_that_goes_away(tmp_path: Path, change: str) -> None:
    """It ended a sweep with "file descriptor cannot be a negative integer"."""
    folder = tmp_path / "claims"
    with Claims(folder) as claims:
        assert claims.take("a")
        if change == "moved":
            folder.rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(folder)
        assert claims.take("b"), "there is nothing to part it from others by"
        claims.give_up("a")
        claims.give_up("b")


def test_a_worker_has_loaded_what_a_point_needs(tmp_path: Path) -> None:
    from edgewatt.runs.compute import make_task
    from edgewatt.runs.plan import load_sweep

    code = (
        "import sys, json; sys.path[:0] = json.loads(sys.argv[2])\n"
        "from edgewatt.runs.compute import answer, load\n"
        "load(lambda: False); lazy = 'simpy' not in sys.modules\n"
        "load(lambda: True); loaded = set(sys.modules)\n"
        "assert 'record' in answer(json.loads(sys.argv[1]))\n"
        "more = {name.split('.')[0] for name in set(sys.modules) - loaded}\n"
        "print(json.dumps([lazy, 'scipy' in sys.modules, len(set(sys.modules) - loaded), sorted(more)]))"
    )
    task = make_task(load_sweep(GRID).points[0], stages=None)
    given = [sys.executable, "-c", code, json.dumps(task), json.dumps(sys.path)]
    lazy, scipy, more, names = json.loads(subprocess.run(given, stdout=subprocess.PIPE, check=True).stdout)
    assert lazy, "a task that waits is computed at once"
    assert not scipy and more < 16, names


def test_workers_are_started_before_anything_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys, json; sys.path[:0] = json.loads(sys.argv[1])\n"
        "from edgewatt.runs.sweep import sweep\n"
        "class Stop(Exception): pass\n"
        "class Early:\n"
        "    def prepare(self, n): raise Stop\n"
        "    def close(self): pass\n"
        "    def run(self, tasks): return iter(())\n"
        "try: sweep('none.yaml', results=sys.argv[2], executor=Early())\n"
        "except Stop: print(json.dumps([name for name in ('numpy', 'pydantic', 'yaml') if name in sys.modules]))"
    )
    given = [sys.executable, "-c", code, json.dumps(sys.path), str(tmp_path / "new")]
    assert json.loads(subprocess.run(given, stdout=subprocess.PIPE, check=True).stdout) == []
