"""Sweeps: expansion, sharing, resuming, executors; the same canonical bytes whoever computes them."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
import edgewatt.sweeps.executors as executors
from edgewatt._version import COUNTS_VERSION
from edgewatt.config import ConfigError
from edgewatt.results.claims import Claims
from edgewatt.results.record import Record, canonical_json
from edgewatt.results.store import Store, StoreError
from edgewatt.sweeps.estimate import estimate
from edgewatt.sweeps.executors import InlineExecutor, ProcessExecutor, make_executor
from edgewatt.sweeps.plan import load_sweep
from edgewatt.sweeps.sweep import sweep
from edgewatt.sweeps.worker import stored
from traces.base.errors import InputError

pytestmark = pytest.mark.application

BASE: dict[str, Any] = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
    "orderings": ["two-optimal", "by-source"],
    "fast_memory": {"size": 8},
    "caches": [{"size_bytes": 1024, "ways": 2}],
}
GRID = {"name": "small", "base": BASE, "grid": {"encoder": ["raw", "dbi-dc"], "fast_memory.size": [6, 8, 12]}}


def canonical(store: Store) -> dict[str, str]:
    return {record.hash: canonical_json(record.canonical) for record in store}


def test_expansion() -> None:
    plan = load_sweep(GRID)
    assert len(plan.points) == 2 * 3 * 2 == len({point.hash for point in plan.points})
    both = load_sweep({**GRID, "zip": {"seed": [1, 2], "sample": [0, 1]}, "list": [{"formats": ["fp16", "int8"]}]})
    assert len(both.points) == 12 * 2 + 2 * 2
    less = load_sweep({**GRID, "exclude": [{"encoder": "raw", "fast_memory.size": 6}, {"orderings": "by-source"}]})
    assert len(less.points) == 5
    assert len(load_sweep(GRID, ["encoder=raw"]).points) == 6, "an override wins over the grid"
    assert len(load_sweep(GRID, ["grid.encoder=[raw]", "base.seed=3"]).points) == 6
    assert len(load_sweep(GRID, ["grid.fast_memory.size=[6, 7, 8, 9]"]).points) == 2 * 4 * 2, "a key with dots"
    assert len(load_sweep(GRID, ["grid.fast_memory.pinning=[literal, pin_both]"]).points) == 2 * 3 * 2 * 2, "a new one"
    assert {p.config["encoder"] for p in load_sweep(GRID, ["grid.encoder.1=transition"]).points} == {
        "raw",
        "transition",
    }
    assert len(load_sweep(BASE).points) == 2, "a run configuration is a small sweep"


def test_hash_is_content(tmp_path: Path) -> None:
    from traces.readers.native import save

    network = ew.Network([0, 1], [2, 2], n_neurons=3, inputs=[0, 1], outputs=[2], weights=[1, 2])
    hashes = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(network, tmp_path / folder / "n.npz")
        file = tmp_path / folder / "run.yaml"
        file.write_text("network: {file: n.npz}\nname: " + folder)
        hashes.append(load_sweep(file).points[0].hash)
    assert hashes[0] == hashes[1]
    save(network.with_(weights=[1, 3]), tmp_path / "b" / "n.npz")
    assert load_sweep(tmp_path / "b" / "run.yaml").points[0].hash != hashes[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": {"encoder": []}}, "grid.*encoder"),
        ({"grid": {"encodr": ["raw"]}}, "unknown key 'encodr'"),
        ({"grid": {"encoder": ["raw", "dbi-dd"]}}, "dbi-dd"),
        ({"zip": {"seed": [1, 2], "sample": [0]}}, "equally long"),
        ({"exclude": [{"encoder": "transition"}]}, "leaves out nothing"),
        ({"exclude": [{"orderings": "by-source"}, {"orderings": "two-optimal"}]}, "every point is excluded"),
        ({"gird": {}}, "unknown key 'gird'"),
        ({"base": "nonesuch.yaml"}, "no such file"),
        ({"base": 3}, "expected a mapping or the path"),
        ({"grid": {"seed": list(range(1001)), "sample": list(range(1001))}}, "combinations"),
    ],
)
def test_bad_sweeps(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_sweep({**GRID, **change})


def test_problems_of_a_file_have_positions(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"base: {json.dumps(BASE)}\ngrid:\n  encoder: [raw, dbi-cd]\n  fast_memory.size: [6, 2]\n")
    with pytest.raises(ConfigError) as caught:
        load_sweep(file)
    lines = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    assert [line.split(": ")[0] for line in lines] == ["s.yaml:3:18", "s.yaml:4:25"], lines


def test_resume_damage_and_failures(tmp_path: Path) -> None:
    first = sweep(GRID, results=tmp_path, executor="inline")
    assert (first.computed, first.reused, first.failed) == (12, 0, {})
    before = canonical(first.store)
    assert [record.hash for record in first.records] == sorted(before)
    again = sweep(GRID, results=tmp_path, executor="inline")
    assert (again.computed, again.reused) == (0, 12)
    victim = sorted(before)[3]
    path = first.store.path(victim)
    path.write_bytes(path.read_bytes()[:100])
    mended = sweep(GRID, results=tmp_path, executor="inline")
    assert (mended.computed, mended.reused, mended.damaged) == (1, 11, [str(path)])
    assert canonical(mended.store) == before


def test_points_of_older_counts_are_computed_again(tmp_path: Path) -> None:
    """A record keeps its name when counts move; its provenance says by which version it was made."""
    first = sweep(GRID, results=tmp_path, executor="inline")
    before, victim = canonical(first.store), first.records[3]
    assert victim.provenance["counts_version"] == COUNTS_VERSION
    older = {key: value for key, value in victim.provenance.items() if key != "counts_version"}
    wrong = {**victim.canonical, "results": {**victim.results, "io": {**victim.results["io"], "total": 1}}}
    first.store.put(Record(wrong, older))
    assert estimate(load_sweep(GRID), tmp_path)["to_do"] == 1
    assert (
        "1 of 12 points were counted by an older version"
        in Path(ew.report(tmp_path, tmp_path / "r.html")[0]).read_text()
    )
    differs = [pair["differs"] for pair in ew.compare(first.store.path(victim.hash), first.store.path(min(before)))]
    assert differs[0]["counts_version"] == [1, COUNTS_VERSION]
    again = sweep(GRID, results=tmp_path, executor="inline")
    assert (again.computed, again.reused, again.outdated) == (1, 11, [str(first.store.path(victim.hash))])
    assert canonical(again.store) == before
    assert sweep(GRID, results=tmp_path, executor="inline").reused == 12


def test_points_of_newer_counts_are_left_alone(tmp_path: Path) -> None:
    first = sweep(GRID, results=tmp_path, executor="inline")
    record = first.records[0]
    first.store.put(Record(record.canonical, {**record.provenance, "counts_version": COUNTS_VERSION + 1}))
    with pytest.raises(InputError, match=r"counts of version \d, this edgewatt counts by version \d: update it"):
        sweep(GRID, results=tmp_path, executor="inline")
    assert first.store.get(record.hash).counts_version == COUNTS_VERSION + 1


def test_a_failed_point_stops_no_other(tmp_path: Path) -> None:
    config = {**BASE, "orderings": "two-optimal"}
    bad = {"base": config, "grid": {"sample": [0, 10**6]}}  # the second has no such input vector
    done = sweep(bad, results=tmp_path, executor="inline")
    assert done.computed == 1 and len(done.failed) == 1
    failure = next(iter(done.store.failed().values()))
    assert "sample" in failure["error"] and "Traceback" in failure["traceback"]
    assert sweep(bad, results=tmp_path, executor="inline").computed == 0
    retried = sweep(bad, results=tmp_path, executor="inline", retry_failed=True)
    assert len(retried.failed) == 1 and retried.reused == 1


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_processes_give_the_same_bytes(tmp_path: Path, workers: int) -> None:
    inline = canonical(sweep(GRID, results=tmp_path / "inline", executor="inline").store)
    found = sweep(GRID, results=tmp_path / "processes", workers=workers)
    assert canonical(found.store) == inline and found.computed == 12


def test_orderings_are_computed_once(tmp_path: Path) -> None:
    done = sweep(GRID, results=tmp_path, workers=2)
    made = [record.provenance["stages_computed"].get("ordering", 0) for record in done.records]
    assert sum(made) == len(list((tmp_path / "stages" / "ordering").glob("*.npz"))) == 2 * 3


BEHIND = {
    **GRID,
    "base": {**GRID["base"], "timing": "replay"},
    "grid": {"encoder": ["raw", "dbi-dc"], "dram.part": ["lpddr4-3200", "lpddr4-4266"]},
}


@pytest.mark.parametrize("most", [1 << 20, 1])
def test_the_pass_through_the_caches_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    from edgewatt.point.compute import run_points
    from edgewatt.sweeps.estimate import estimate

    plan = load_sweep(BEHIND)
    alone = {p.hash: canonical_json(run_points([p])[0].canonical) for p in plan.points}
    monkeypatch.setattr("edgewatt.point.machine.KEPT_PASS_BYTES", most)
    done = sweep(plan, results=tmp_path, executor="inline")
    assert canonical(done.store) == alone
    made = [record.provenance["stages_computed"].get("cache_pass", 0) for record in done.records]
    assert len(made) == 8 and sum(made) == 2, "one for each ordering"
    assert estimate(plan, tmp_path)["stages"]["cache passes"] == 2


def test_a_pass_nobody_else_needs_is_not_kept(tmp_path: Path) -> None:
    sweep({"base": BASE, "grid": {"caches": [["buffer-8k"], ["l1-32k"]]}}, results=tmp_path, executor="inline")
    assert not (tmp_path / "stages" / "cache_pass").exists()


class Killing:
    """A process executor that kills a worker after some outcomes."""

    def __init__(self, at: int) -> None:
        self.inner, self.at = ProcessExecutor(2), at

    def run(self, tasks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for number, outcome in enumerate(self.inner.run(tasks)):
            if number == self.at:
                os.kill(children()[0], signal.SIGKILL)
            yield outcome


def children(parent: int | None = None) -> list[int]:
    """Return the living worker processes of a process."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            state, ppid = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            mine = int(ppid) == (parent or os.getpid()) and state != "Z"
            if mine and b"edgewatt.sweeps.worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


@pytest.mark.parametrize("at", [0, 5])
@pytest.mark.parametrize("ahead_s", [executors.AHEAD_S, 1e6])  # one task before a worker, and as many as there may be
def test_a_killed_worker_loses_nothing(
    tmp_path: Path, at: int, ahead_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "AHEAD_S", ahead_s)
    done = sweep(GRID, results=tmp_path, executor=Killing(at))
    assert done.computed == 12 and not done.failed and not children()


def test_a_task_that_kills_its_workers_takes_none_that_wait_behind_it_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "deadly.py"
    code.write_text(
        "import os, sys; sys.path[:0] = " + repr(sys.path) + "\n"
        "import edgewatt.point.compute as compute\n"
        "def answer(task):\n"
        "    if task['hash'] == 'deadly': os._exit(1)\n"
        "    return {'hash': task['hash'], 'failure': {}}\n"
        "compute.answer = answer\n"
        "from edgewatt.sweeps.worker import main; main()\n"
    )
    monkeypatch.setattr(executors, "AHEAD_S", 1e6)
    monkeypatch.setattr(executors, "module_command", lambda name: [sys.executable, str(code)])
    names = [*(f"a{k}" for k in range(9)), "deadly", *(f"b{k}" for k in range(30))]
    found = list(ProcessExecutor(2).run({"hash": name, "config": {}} for name in names))
    assert sorted(outcome["hash"] for outcome in found) == sorted(names) and not children()
    (died,) = (outcome["failure"]["error"] for outcome in found if outcome["failure"])
    assert "died 3 times" in died


def test_prepared_workers_end_with_the_sweep(tmp_path: Path) -> None:
    pool = ProcessExecutor(2)
    pool.prepare(1)
    assert len(children()) == 1
    pool.close()
    assert not children()
    done = sweep(GRID, results=tmp_path, executor=pool)
    assert done.computed == 12 and not children()
    assert {path.read_bytes() for path in (tmp_path / "records").iterdir()} == {
        record.to_bytes() for record in done.records
    }


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
from edgewatt.sweeps.sweep import sweep
from edgewatt.sweeps.worker import stored
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
    for step in ("ordering", "io", "replay", "two_optimal"):
        assert sum(each.get(step, 0) for each in made) == sum(each.get(step, 0) for each in once), step
    assert not list((tmp_path / "two" / "claims").iterdir()) and not list((tmp_path / "two").rglob(".*"))


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    code = "import sys, json, os; sys.path[:0] = json.loads(sys.argv[2])\n" + (
        "from edgewatt.results.claims import Claims; from pathlib import Path\n"
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
    assert not list(tmp_path.iterdir())


def test_executor_names() -> None:
    assert isinstance(make_executor("inline"), InlineExecutor)
    with pytest.raises(InputError, match="did you mean 'processes'"):
        make_executor("proceses")
    with pytest.raises(InputError, match="at least 1"):
        make_executor("processes", workers=0)


def test_record_file_tells_how_to_repeat_it(tmp_path: Path) -> None:
    done = sweep(GRID, results=tmp_path, executor="inline")
    path = done.store.path(done.records[0].hash)
    assert ew.rerun(path) == []
    data = json.loads(path.read_text())
    assert {"edgewatt", "libraries", "platform", "duration_s", "paths", "simd"} <= data["provenance"].keys()


def test_commands_that_go_on_say_so_when_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    from edgewatt.cli.parts.output import resumable

    with pytest.raises(typer.Exit) as stopped, resumable():
        raise KeyboardInterrupt
    assert stopped.value.exit_code == 130
    assert "what is finished is kept, and the same command goes on" in capsys.readouterr().err


def test_points_of_a_sweep_are_those_of_each_configuration_alone() -> None:
    """What configurations of a sweep share is validated once: 1, 1.0 and true are not the same, and nothing leaks."""
    axes = {
        "encoder": ["raw", "DBI-DC"],
        "formats": ["FP16", ["fp16", "int8"]],
        "caches": [["buffer-8k"], [{"size_bytes": "8 KiB"}], [{"size_bytes": 8192, "ways": 4}]],
        "bus.element_bytes": [2, {"ids": 2}],
        "seed": [0, 1],
    }
    together = load_sweep({"base": BASE, "grid": axes}).points
    alone = [
        point
        for values in itertools.product(*axes.values())
        for point in load_sweep({"base": BASE, "list": [dict(zip(axes, values, strict=True))]}).points
    ]
    assert [p.hash for p in together] == list(dict.fromkeys(p.hash for p in reversed(alone)))[::-1]
    assert {p.hash: p.config for p in together} == {p.hash: p.config for p in alone}
    with pytest.raises(ConfigError) as refused:
        load_sweep({"base": BASE, "grid": {"seed": [1, True, 1.0, "1"], "fast_memory.size": [6, "8"]}})
    assert {str(mark).partition("['grid']")[2] for mark, _ in refused.value.problems} == {
        "['seed'][1]",
        "['seed'][2]",
        "['seed'][3]",
        "['fast_memory.size'][1]",
    }


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


def test_an_answer_waits_neither_for_the_next_task_nor_for_more(tmp_path: Path) -> None:
    """A worker with a long task behind a short one tells of the short one at once."""
    code = tmp_path / "slow.py"
    code.write_text(
        "import sys, time; sys.path[:0] = " + repr(sys.path) + "\n"
        "import edgewatt.point.compute as compute\n"
        "def answer(task):\n"
        "    time.sleep(task['s'])\n"
        "    return {'hash': task['hash'], 'failure': {}}\n"
        "compute.answer = answer\n"
        "from edgewatt.sweeps.worker import main; main()\n"
    )
    command = [sys.executable, str(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        for name, seconds in (("short", 0.0), ("long", 600.0)):
            worker.stdin.write(json.dumps({"hash": name, "s": seconds}).encode() + b"\n")
        worker.stdin.flush()
        assert json.loads(worker.stdout.readline())["hash"] == "short"
        worker.stdin.close()


def test_claims_of_one_process_part_its_sweeps(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        assert one.take("a") and other.take("b") and not other.take("a") and not one.take("b")
        one.give_up("a")
        assert other.take("a")
        other.__exit__(None, None, None)  # its file stays: `one` may hold a claim in it
        assert one.take("a") and one.take("b")
    assert not list(tmp_path.iterdir())
