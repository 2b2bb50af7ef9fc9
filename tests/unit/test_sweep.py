"""Sweeps: expansion, sharing, resuming, executors; the same canonical bytes whoever computes them."""

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
from edgewatt._version import COUNTS_VERSION
from edgewatt.results.record import Record, canonical_json
from edgewatt.runs.estimate import estimate
from edgewatt.runs.plan import load_sweep
from edgewatt.runs.sweep import run, sweep
from tests.small_sweep import BASE, GRID, canonical
from traces.base.document import ConfigError
from traces.base.errors import InputError

pytestmark = pytest.mark.application


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
        ({"grid": {"seed": [1, 2]}, "zip": {"seed": [3, 4]}}, "seed is swept twice"),
        ({"grid": {"fast_memory.size": [6, 8], "fast_memory": [{"size": 9}]}}, "is part of fast_memory"),
        ({"exclude": [{"encoder": "transition"}]}, "leaves out nothing"),
        ({"exclude": [{"seed": False}]}, "leaves out nothing"),
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


def test_very_many_keys_are_swept() -> None:
    """Each was compared with all others: 26 s."""
    before = time.process_time()
    with pytest.raises(ConfigError, match=r"z7999\.of\.it is part of z7999, which is swept, too: the later one would"):
        load_sweep({**GRID, "grid": {f"z{k}": [1] for k in range(8000)}, "zip": {"z7999.of.it": [2]}})
    assert time.process_time() - before < 2


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
    differs = [
        pair["differs"] for pair in ew.results.compare(first.store.path(victim.hash), first.store.path(min(before)))
    ]
    assert differs[0]["counts_version"] == [1, COUNTS_VERSION]
    again = sweep(GRID, results=tmp_path, executor="inline")
    assert (again.computed, again.reused, again.outdated) == (1, 11, [str(first.store.path(victim.hash))])
    assert canonical(again.store) == before
    assert sweep(GRID, results=tmp_path, executor="inline").reused == 12


def test_points_of_newer_counts_are_left_alone(tmp_path: Path) -> None:
    first = sweep(GRID, results=tmp_path, executor="inline")
    record = first.records[0]
    first.store.put(Record(record.canonical, {**record.provenance, "counts_version": COUNTS_VERSION + 1}))
    with pytest.raises(InputError, match=r"counts of version \d+, this edgewatt counts by version \d+: update it"):
        sweep(GRID, results=tmp_path, executor="inline")
    assert first.store.get(record.hash).counts_version == COUNTS_VERSION + 1


def test_records_of_a_newer_schema_are_left_alone(tmp_path: Path) -> None:
    """They were called damaged and written anew."""
    first = sweep(GRID, results=tmp_path, executor="inline")
    path = first.store.path(first.records[0].hash)
    newer = path.read_bytes().replace(b'"schema":1', b'"schema":99')
    path.write_bytes(newer)
    with pytest.raises(InputError, match="record schema 99 is newer than this edgewatt reads"):
        sweep(GRID, results=tmp_path, executor="inline")
    assert path.read_bytes() == newer


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
    from edgewatt.runs.compute import run_points
    from edgewatt.runs.estimate import estimate

    plan = load_sweep(BEHIND)
    alone = {p.hash: canonical_json(run_points([p])[0].canonical) for p in plan.points}
    monkeypatch.setattr("edgewatt.runs.machine.KEPT_PASS_BYTES", most)
    done = sweep(plan, results=tmp_path, executor="inline")
    assert canonical(done.store) == alone
    made = [record.provenance["stages_computed"].get("cache_pass", 0) for record in done.records]
    assert len(made) == 8 and sum(made) == 2, "one for each ordering"
    assert estimate(plan, tmp_path)["stages"]["cache passes"] == 2


def test_records_of_points_that_share_a_step_are_each_their_own() -> None:
    records = run({**BASE, "formats": ["fp32", "fp16"]})
    texts = [canonical_json(record.canonical) for record in records]
    for value in records[0].canonical["results"].values():
        if isinstance(value, dict):
            value.clear()
    assert canonical_json(records[0].canonical) != texts[0]
    assert [canonical_json(record.canonical) for record in records[1:]] == texts[1:]


def test_a_pass_nobody_else_needs_is_not_kept(tmp_path: Path) -> None:
    sweep({"base": BASE, "grid": {"caches": [["buffer-8k"], ["l1-32k"]]}}, results=tmp_path, executor="inline")
    assert not (tmp_path / "stages" / "cache_pass").exists()


def test_what_takes_no_time_and_nobody_else_needs_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewatt.runs.memo.WORTH_S", 60.0)
    sweep(GRID, results=tmp_path, executor="inline")
    kept = {path.parent.name for path in (tmp_path / "stages").rglob("*.npz")}
    assert kept == {"ordering"}, "which points share"
    sweep({"base": {**BASE, "orderings": "by-source"}, "grid": {"seed": [5, 6]}}, results=tmp_path, executor="inline")
    assert {path.parent.name for path in (tmp_path / "stages").rglob("*.npz")} == kept
    assert sorted(path.name for path in (tmp_path / "stages").iterdir() if path.is_file()) == ["locks"]


def test_a_second_process_waits_for_what_the_first_makes(tmp_path: Path) -> None:
    code = (
        "import sys, json, time; sys.path[:0] = json.loads(sys.argv[2])\n"
        "import numpy as np; from edgewatt.runs.memo import Memo\n"
        "memo = Memo(sys.argv[1])\n"
        "def make():\n    print('making', flush=True); time.sleep(0.5); return {'a': np.arange(3)}\n"
        "assert memo.arrays('step', 'k', make)['a'].tolist() == [0, 1, 2]\n"
        "print(memo.made.get('step', 0), flush=True)"
    )
    command = [sys.executable, "-c", code, str(tmp_path), json.dumps(sys.path)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None and first.stdout.readline() == "making\n"
    second = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert first.communicate(timeout=60)[0] == "1\n" and second.stdout == "0\n"


def test_record_file_tells_how_to_repeat_it(tmp_path: Path) -> None:
    done = sweep(GRID, results=tmp_path, executor="inline")
    path = done.store.path(done.records[0].hash)
    assert ew.results.rerun(path) == []
    data = json.loads(path.read_text())
    assert {"edgewatt", "libraries", "platform", "duration_s", "paths", "simd"} <= data["provenance"].keys()


def test_commands_that_go_on_say_so_when_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    from edgewatt.cli.parts.output import resumable

    with pytest.raises(SystemExit) as stopped, resumable():
        raise KeyboardInterrupt
    assert stopped.value.code == 130
    assert "finished work is kept: run the same command to continue" in capsys.readouterr().err


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


def test_a_run_that_cannot_be_made_leaves_no_folders(tmp_path: Path) -> None:
    network = {"generate": {"kind": "uniform-layers", "widths": [3, 2], "density": 1.0}}
    with pytest.raises(InputError, match="sample 99 does not exist"):
        run({"network": network, "sample": 99}, results=tmp_path / "made")
    (tmp_path / "own").mkdir()
    with pytest.raises(InputError, match="cannot be kept"):
        run({"network": {**network, "prune": {"n_connections": 99}}}, results=tmp_path / "own")
    assert {path.name for path in tmp_path.rglob("*")} <= {"made", "own", "stages", "locks"}
