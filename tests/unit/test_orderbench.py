"""The public corpus: its checker counts as edgewatt does, instances stay, best known totals are reproducible."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags, random_order
from orderbench.__main__ import BEST, add, main, network_of, run
from orderbench.check import count
from orderbench.instances import KINDS, instances
from orderbench.page import page

from hwmodel.fastmemory.iomodel import count_io
from traces.networks.network import Network

TASKS = {one.name: one for one in instances()}
KNOWN = json.loads(BEST.read_text())


@given(dags(), st.integers(3, 6), st.sampled_from(["min", "lru", "rr"]), st.integers(0, 9))
@settings(deadline=None)
def test_the_checker_counts_as_the_model_does(network: Network, memory: int, policy: str, seed: int) -> None:
    order = random_order(network, np.random.default_rng(seed))
    pairs = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    found = count(network.n_neurons, pairs, network.outputs.tolist(), memory, policy, order.tolist())
    assert found == count_io(network, order, memory=memory, policy=policy).total


def test_the_checker_needs_python_alone_and_refuses_what_is_no_order() -> None:
    path = BEST.parent / "check.py"
    lines = path.read_text().splitlines()
    names = {alias.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import)
             for alias in node.names}  # fmt: skip
    assert len(lines) <= 100 and names == {"json", "sys"}
    with pytest.raises(ValueError, match="not a permutation"):
        count(3, [(0, 1), (1, 2)], [2], 3, "min", [0, 0])
    with pytest.raises(ValueError, match="before its source"):
        count(3, [(0, 1), (1, 2)], [2], 3, "min", [1, 0])


def test_every_instance_has_a_best_known_total_and_a_floor() -> None:
    assert len(TASKS) >= 200 and {one.kind for one in TASKS.values()} == KINDS.keys()
    assert TASKS.keys() == KNOWN.keys()
    closed = sum(known["io"] == known["floor"] for known in KNOWN.values())
    assert closed >= 0.4 * len(KNOWN)
    for name, known in KNOWN.items():
        one = TASKS[name]
        assert one.memory >= 3 and known["floor"] <= known["io"], name
        assert known["recipe"].startswith("python scripts/orderbench run "), name


@pytest.mark.parametrize("only", ["tiny-1", "windows-00", "grown-01"])
def test_recipes_reproduce_what_they_found(only: str) -> None:
    rows = run("auto", None, only)["rows"]
    assert rows
    for name, row in rows.items():
        if KNOWN[name]["recipe"].endswith("run auto"):
            assert row["io"] == KNOWN[name]["io"], name
        assert row["floor"] <= row["io"]


def test_results_of_others_are_taken_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = TASKS["tree-00"]
    network = network_of(one)
    worse = {"method": "theirs", "recipe": "by hand", "rows": {one.name: {"io": 10**6, "seconds": 1.0, "floor": None}}}
    better = {**worse, "rows": {one.name: {"io": 1, "seconds": 1.0, "floor": 1}}}
    best = json.loads(json.dumps(KNOWN))
    assert add(worse, best) == 0 and best == KNOWN
    assert add(better, best) == 1 and best[one.name]["by"] == "theirs"
    shown = page(list(TASKS.values()), KNOWN, [worse])
    assert "<script" not in shown and f"<td>{one.name}<td>{network.n_neurons}" in shown and "theirs" in shown
    monkeypatch.setattr("sys.argv", ["orderbench", "write", str(tmp_path)])
    main()
    written = json.loads((tmp_path / "tree-00.json").read_text())
    assert written["connections"] == [list(pair) for pair in one.connections] and written["memory"] == one.memory


@pytest.mark.parametrize(("method", "package"), [("nested_dissection", "pymetis"), ("mt_kahypar", "mtkahypar")])
def test_partitioners_make_orders(method: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BEST.parent)
    partitioners = __import__("partitioners")
    one = TASKS["band-01"]
    task = one.as_dict()
    counted = one.n_neurons, one.connections, one.outputs, one.memory, one.policy
    assert count(*counted, partitioners.by_targets(task, list(range(one.n_neurons)))) >= KNOWN[one.name]["floor"]
    pytest.importorskip(package)
    orders = list(getattr(partitioners, method)(task))
    assert min(count(*counted, order) for order in orders) >= KNOWN[one.name]["floor"]
