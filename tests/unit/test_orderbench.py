"""The public corpus: its checker counts as edgewatt does, tasks stay, best known costs are reproducible."""

import ast
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags, random_order
from orderbench.__main__ import BEST, add, main, run
from orderbench.check import count
from orderbench.instances import KINDS, OTHERS, instances
from orderbench.page import page

from hwmodel.fastmemory.iomodel import count_io
from traces.networks.network import Network

TASKS = {task["name"]: json.loads(json.dumps(task)) for task in instances()}
KNOWN = json.loads(BEST.read_text())


@given(dags(), st.integers(3, 6), st.sampled_from(["min", "lru", "rr"]), st.integers(0, 9))
@settings(deadline=None)
def test_the_checker_counts_as_the_model_does(network: Network, memory: int, policy: str, seed: int) -> None:
    order = random_order(network, np.random.default_rng(seed))
    pairs = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    task = {"connections": pairs, "outputs": network.outputs.tolist(), "memory": memory, "policy": policy}
    assert count(task, order.tolist()) == count_io(network, order, memory=memory, policy=policy).total


@pytest.mark.parametrize(
    ("method", "only"), [("greedy", "tuples"), ("greedy", "operators"), ("size-best-fit", "arenas"), ("sort", "tuples")]
)
def test_the_checker_counts_what_the_library_does(method: str, only: str) -> None:
    import edgewatt as ew

    for name, row in run(method, None, only, method != "greedy", {})["rows"].items():
        task = TASKS[name]
        if only == "arenas":
            first, end, size = np.array(task["buffers"]).T
            assert row["cost"] == ew.allocate(first, end, size, allocator=method).height
            continue
        assert KNOWN[name]["floor"] <= KNOWN[name]["cost"] <= row["cost"]
        assert row["cost"] < count(task, list(range(len(row["answer"])))) or only == "operators"


CHAIN = {"connections": [[0, 1], [1, 2]], "outputs": [2], "memory": 3, "policy": "min"}
ROWS = {"entries": [[0, 1, 2], [0, 3, 4], [1, 5, 6]]}
OPERATORS = {"operators": [[4, []], [2, [0]]], "outputs": [1]}
ARENA = {"buffers": [[0, 2, 8], [1, 3, 8]]}


@pytest.mark.parametrize(
    ("task", "answer", "message"),
    [
        (CHAIN, [0], "wanted: order or offsets, 2 whole numbers from 0, not 1"),
        (CHAIN, [0, "1"], "wanted: order or offsets, 2 whole numbers from 0, not ['1']"),
        (CHAIN, None, "wanted: order or offsets, 2 whole numbers from 0, not [None]"),
        (ARENA, [0, 10**400], "2 whole numbers from 0, not [1000000"),
        (CHAIN, [0, 0], "number 0 occurs 2 times, of 0 to 1 each once"),
        (CHAIN, [0, 2], "number 2 occurs 1 times, of 0 to 1 each once"),
        (CHAIN, [1, 0], "connection 1 comes before its source is complete"),
        (ROWS, [0, 2, 1], "entry 2 is of row 1, but place 1 of row 0"),
        (OPERATORS, [1, 0], "operator 1 comes before one of its inputs"),
        (ARENA, [0, 4], "buffers 0 and 1 share bytes while both are live"),
        (ARENA, [-1, 8], "wanted: order or offsets, 2 whole numbers from 0, not [-1]"),
    ],
)
def test_checker_and_command_say_what_is_wrong(task: dict, answer: list, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        count(task, answer)
    key = "offsets" if "buffers" in task else "order"
    (tmp_path / "task.json").write_text(json.dumps({"name": "one", **task}))
    (tmp_path / "answer.json").write_text(json.dumps({key: answer}))
    command = [sys.executable, "-I", str(BEST.parent / "check.py"), "task.json", "answer.json"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1 and message in said.stderr and "Traceback" not in said.stderr
    assert len(said.stderr) < 200
    (tmp_path / "answer.json").write_text("[" * 100_000)
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1 and said.stderr.startswith("RecursionError: ")


def test_the_checker_is_short_and_needs_python_alone() -> None:
    text = (BEST.parent / "check.py").read_text()
    nodes = ast.walk(ast.parse(text))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert len(text.splitlines()) <= 100 and modules == {"json", "sys"}
    assert count(ROWS, [1, 0, 2]) == 2 + 1 + 1 + 2 + 1 + 1  # ones of 3, 4; 3 ^ 1, 4 ^ 2; 1 ^ 5, 2 ^ 6
    assert count(OPERATORS, [0, 1]) == 6 and count(ARENA, [0, 8]) == 16


def test_every_task_has_a_best_known_cost_and_a_floor() -> None:
    assert len(TASKS) >= 200 and {task["kind"] for task in TASKS.values()} == KINDS.keys() | OTHERS.keys()
    assert TASKS.keys() == KNOWN.keys()
    closed = sum(known["cost"] == known["floor"] for known in KNOWN.values())
    assert closed >= 0.4 * len(KNOWN)
    for name, known in KNOWN.items():
        assert TASKS[name].get("memory", 3) >= 3 and known["floor"] <= known["cost"], name
        said = r"python scripts/orderbench.* +# edgewatt [0-9.]+, commit [0-9a-f]{8}(-dirty)?"
        assert re.fullmatch(said, known["recipe"]), name


@pytest.mark.parametrize(
    ("method", "only"),
    [
        ("auto", "tiny-1"),
        ("auto", "windows-00"),
        ("auto", "grown-01"),
        ("best-first", "operators"),
        ("exact", "arenas"),
    ],
)
def test_recipes_reproduce_what_they_found(method: str, only: str) -> None:
    rows = run(method, None, only, method != "greedy", {})["rows"]
    assert rows
    for name, row in rows.items():
        if f"run {method}  #" in KNOWN[name]["recipe"]:
            assert row["cost"] == KNOWN[name]["cost"], name
        assert KNOWN[name]["floor"] <= row["cost"] and row["floor"] <= row["cost"]


def test_results_of_others_are_taken_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = TASKS["tiny-00"]
    made = run("two-optimal", None, "tiny-00", False, {})
    assert re.fullmatch(r"python \S+ run \S+  # edgewatt [0-9.]+, commit ([0-9a-f]{8,}(-dirty)?|\?)", made["recipe"])
    row = made["rows"]["tiny-00"]
    theirs = {"method": "theirs", "recipe": "by hand", "rows": {"tiny-00": {**row, "floor": None}}}
    best = json.loads(json.dumps(KNOWN))
    assert add(theirs, best) == 0 and best == KNOWN
    best["tiny-00"].update(cost=row["cost"] + 1, floor=0)
    assert add(theirs, best) == 1 and best["tiny-00"]["by"] == "theirs"
    with pytest.raises(ValueError, match=r"tiny-00: a floor of 99999, but an answer has"):
        add({**theirs, "rows": {"tiny-00": {**row, "floor": 99999}}}, best)
    shown = page(list(TASKS.values()), KNOWN, [theirs])
    assert "<script" not in shown and f"<td>tiny-00<td>{len(task['connections'])} connections" in shown
    assert "theirs" in shown and "9 buffers" not in shown and "buffers" in shown

    monkeypatch.setattr("sys.argv", ["orderbench", "write", str(tmp_path)])
    main()
    written = json.loads((tmp_path / "tree-00.json").read_text())
    assert written == TASKS["tree-00"] and len(list(tmp_path.iterdir())) == len(TASKS)


def test_a_folder_of_answers_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run("two-optimal", None, "tiny-00", False, {})["rows"]["tiny-00"]["answer"]
    (folder := tmp_path / "theirs").mkdir()
    path, results = folder / "tiny-00.json", tmp_path / "results.json"
    monkeypatch.setattr("orderbench.__main__.instances", lambda: [TASKS["tiny-00"]])
    monkeypatch.setattr("sys.argv", ["orderbench", "count", str(folder), "-o", str(results)])
    path.write_text(json.dumps({"order": answer, "seconds": 2.5}))
    main()
    made = json.loads(results.read_text())
    assert made["method"] == "theirs" and made["rows"]["tiny-00"]["seconds"] == 2.5
    for wrong, message in [
        ({"order": answer[::-1]}, "tiny-00: connection"),
        ({"order": answer[1:]}, rf"{len(answer)} whole numbers from 0, not {len(answer) - 1}$"),
        ({"edges": answer}, r"tiny-00: wanted: order or offsets, 10 whole numbers from 0, not \[None\]"),
        (None, r"not \[None\]"),
        *(({"order": answer, "seconds": odd}, "tiny-00: wanted: seconds") for odd in (-5, "fast", None, True)),
        *(({"order": answer, "floor": odd}, "tiny-00: wanted: a floor") for odd in (10**6, 40.5, "x", True, -1)),
        ({"order": answer, "seconds": math.nan}, r"'NaN'; wanted: JSON without NaN"),
        ({"order": answer, "floor": math.nan}, r"'NaN'; wanted: JSON without NaN"),
    ]:
        path.write_text(json.dumps(wrong))
        with pytest.raises(SystemExit, match=rf"ValueError: \S+theirs/tiny-00\.json: .*{message}"):
            main()
    path.write_text("[1, ")
    with pytest.raises(SystemExit, match=r"tiny-00\.json: Expecting value"):
        main()
    monkeypatch.setattr("sys.argv", ["orderbench", "run", "no-such-method"])
    with pytest.raises(SystemExit, match=r"'no-such-method' is no method.* auto, .* two-optimal"):
        main()


def test_only_files_of_tasks_are_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["orderbench", "count", str(tmp_path)])
    for name in ("README.md", "tiny-00.txt", "tiny-0.json"):
        (tmp_path / name).write_text(json.dumps({"order": [0]}))
    with pytest.raises(SystemExit, match="no answers: wanted: files TASK"):
        main()
    made = run("two-optimal", None, "tiny-00", False, {})["rows"]["tiny-00"]
    (tmp_path / "tiny-00.json").write_text(json.dumps({"order": made["answer"]}))
    capsys.readouterr()
    main()
    said = capsys.readouterr()
    assert json.loads(said.out)["rows"].keys() == {"tiny-00"}
    assert f"{tmp_path}: left out, no TASK.json: README.md, tiny-0.json, tiny-00.txt\n" in said.err


def test_results_are_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page showed any cost, `add` took a false one where it was not better."""
    made = run("two-optimal", None, "tiny-00", False, {})
    row, path, before = made["rows"]["tiny-00"], tmp_path / "results.json", BEST.read_text()
    monkeypatch.setattr("orderbench.__main__.instances", lambda: [TASKS["tiny-00"]])
    refused = f"tiny-00: the answer costs {row['cost']}, not"
    rows = [({**row, "cost": cost}, refused) for cost in (1, -5, 999, "25", float(row["cost"]))]
    rows += [
        ({**row, "answer": [0] * len(row["answer"])}, "tiny-00: number 0 occurs"),
        ({**row, "seconds": None}, "tiny-00: wanted: seconds"),
        ({**row, "cost": math.nan}, "'NaN'; wanted: JSON"),
        ({"cost": 24}, "'tiny-00': wanted: a task's name, with cost, seconds and answer"),
    ]
    texts = [(json.dumps({**made, "rows": {"tiny-00": wrong}}), message) for wrong, message in rows]
    texts += [(json.dumps({**made, "rows": wrong}), "wanted: method, recipe and rows") for wrong in ([], {}, None)]
    texts += [(json.dumps({**made, "rows": {"foo-99": row}}), "'foo-99': wanted: a task's name")]
    texts += [("[" * 100_000, "maximum recursion depth.*wanted: JSON"), ("[]", "wanted: method, recipe and rows")]
    for text, message in texts:
        path.write_text(text)
        for command in ("add", "page"):
            monkeypatch.setattr("sys.argv", ["orderbench", command, str(path)])
            with pytest.raises(SystemExit, match=rf"ValueError: \S+results\.json: .*{message}"):
                main()
    assert BEST.read_text() == before


def test_an_output_that_cannot_be_written_is_said_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orderbench.__main__.perform", lambda asked: pytest.fail("worked"))
    monkeypatch.setattr("sys.argv", ["orderbench", "run", "auto", "-o", "/no-such-folder/x.json"])
    with pytest.raises(SystemExit, match=r"FileNotFoundError: .*/no-such-folder/x"):
        main()


@pytest.mark.parametrize(
    ("method", "package", "name"),
    [
        ("nested_dissection", "pymetis", "band-01"),
        ("mt_kahypar", "mtkahypar", "band-01"),
        ("held_karp", "", "tuples-00"),
    ],
)
def test_solvers_make_orders(method: str, package: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BEST.parent)
    solvers = __import__("solvers")
    task = TASKS[name]
    if package:
        assert count(task, solvers.by_targets(task, list(range(task["n_neurons"])))) >= KNOWN[name]["floor"]
        pytest.importorskip(package)
    least = min(count(task, order) for order in getattr(solvers, method)(task))
    assert least >= KNOWN[name]["floor"] and (package or least == KNOWN[name]["cost"])


def test_held_karp_is_as_good_as_trying_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BEST.parent)
    from itertools import permutations, product

    rng = np.random.default_rng(0)
    for _ in range(5):
        entries = [[row, *rng.integers(0, 1 << 16, 2).tolist()] for row in (0, 0, 0, 0, 1, 1, 1)]
        task = {"entries": entries}
        least = min(count(task, [*a, *b]) for a, b in product(permutations(range(4)), permutations((4, 5, 6))))
        assert [count(task, order) for order in __import__("solvers").held_karp(task)] == [least]
