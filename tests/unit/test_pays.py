"""Where an order stops paying: bisection against the full grid, the sentence, the page and the command."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from oracles.trace_oracle import random_network, topological_order
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.orders.break_even import METRICS, BreakEvenPoint, Changes, changes_of
from edgewatt.orders.break_even_page import break_even_page
from edgewatt.orders.order_comparison import StudyChoice, legal_sizes, machine_of
from edgewatt.orders.ordering import machine_cost_for
from traces.base.errors import InputError
from traces.base.resources import shipped_names
from traces.layout.settings import Layout
from traces.readers.native import save

pytestmark = pytest.mark.application

NETWORK = "configs/examples/networks/digits_small.npz"


def machine(**options):
    return ew.Machine(scratchpad=ew.ScratchpadSpec(512, stream_bytes=64, **options), part="lpddr4-3200")


@pytest.mark.parametrize("all_sizes", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_break_even_equals_the_full_grid(seed, all_sizes, monkeypatch):
    """Where few or cheap sizes are legal, all are looked at; elsewhere I/Os and bytes still are those of the grid, and
    every change of energy and time that is reported is one of the grid."""
    if not all_sizes:
        monkeypatch.setattr("edgewatt.orders.break_even.FEW_SIZES", 0)
        monkeypatch.setattr("edgewatt.orders.break_even.CHEAP_STEPS", 0)
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    edges = topological_order(network, rng, rows=False)
    legal = legal_sizes(network, machine(), 4)
    grid = ew.pays(network, "two-optimal", against=edges, system=machine(), sizes=legal, lanes=[4], timing="replay")
    found = ew.pays(
        network, "two-optimal", against=edges, system=machine(), sizes=legal[:: max(len(legal) // 4, 1)] + legal[-1:],
        lanes=[4], timing="replay",
    )  # fmt: skip
    choice = str(grid.points[0].choice)
    exact = found.searched[choice]
    whole = all_sizes or len(found.points) == len(legal)
    assert set(exact) == set(METRICS if whole else ("io", "bytes") if found.layout == "tuples" else ("io",))
    for metric in METRICS:
        saves = {point.size_bytes: point.saving(metric) > 0 for point in grid.points}
        changes = tuple((a, saves[a]) for a, b in itertools.pairwise(saves) if saves[a] != saves[b])
        if metric in exact:
            last = max((size for size, each in saves.items() if each), default=None)
            assert found.break_even[choice][metric] == last, metric
            assert found.crossings[choice][metric] == changes, metric
        else:
            assert set(found.crossings[choice][metric]) <= set(changes)


def test_bisection_asks_few_sizes():
    asked = []

    def saves(size):
        asked.append(size)
        return size < 700.5

    assert changes_of(saves, [1, 500, 1000], list(range(1, 1001))) == Changes(((700, True),), 1, 700, False)
    assert len(asked) < 25
    assert changes_of(lambda size: True, [1, 5], [1, 2, 5]) == Changes((), 1, 5, True)
    assert changes_of(lambda size: False, [1, 5], [1, 2, 5]) == Changes((), None, None, False)


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.data())
def test_every_change_between_probes_is_found(pattern, data):
    """Whatever the pattern, what is reported is true; with every size probed, it is everything."""
    legal = list(range(10, 10 + len(pattern)))
    probes = sorted({legal[0], legal[-1], *data.draw(st.lists(st.sampled_from(legal)))})
    saves = dict(zip(legal, pattern, strict=True))
    wanted = tuple((a, saves[a]) for a, b in itertools.pairwise(legal) if saves[a] != saves[b])
    assert set(changes_of(saves.__getitem__, probes, legal).crossings) <= set(wanted)
    every = changes_of(saves.__getitem__, legal, legal)
    assert every.crossings == wanted
    assert (every.first, every.last) == (min((a for a in legal if saves[a]), default=None),
                                         max((a for a in legal if saves[a]), default=None))  # fmt: skip


def test_a_machine_moves_the_bytes_of_its_bursts() -> None:
    """Requests that were merged, or answered by a write that waits, go over no bus: they were counted."""
    model = machine_cost_for(ew.load(NETWORK), "bytes", "scratchpad-8k", lanes=1, timing="replay")
    cost = model.costs(model.plain)
    trace = ew.build_trace(model.network, model.plain, layout=model.layout)
    total = ew.replay(trace, model.machine).total
    assert cost["bytes"] == sum(cost["streams"].values()) == 32 * total.bursts
    assert total.bursts < int((total.reads + total.writes).sum())


def test_verdict_reason_and_page():
    network = ew.load(NETWORK)
    order = ew.order(network, "connection-reordering", memory=113, iterations=5000)
    found = ew.pays(network, order, system="scratchpad-8k", sizes=[2048, 8192, 65536], lanes=[16], timing="replay")
    assert found.verdict.startswith("connection-reordering against two-optimal on lpddr4-3200, fp32, 16 lanes, min: ")
    assert "The reason: " in found.verdict and found.layout == "auto"
    page = break_even_page(found)
    assert (
        "connection-reordering against two-optimal on lpddr4-3200" in page
        and "class=edge" in page
        and "http://" not in page
        and "https://" not in page
    )
    assert json.loads(json.dumps(found.as_dict()))["points"]
    big = next(point for point in found.points if point.size_bytes == 8192)
    assert big.memory == 113 and sum(big.order["streams"].values()) == big.order["bytes"]
    assert sum(big.order["terms"].values()) == pytest.approx(big.order["energy"])


def test_an_order_that_never_pays_is_said_once():
    found = ew.pays(ew.load(NETWORK), "by-source", system="scratchpad-8k", sizes=[4096, 8192], timing="replay")
    assert ": it does not pay in anything (I/Os, bytes, energy and time) from " in found.verdict
    assert found.verdict.count("does not pay") == 1 and "+0.0 kB" not in found.verdict


def test_where_the_order_changes_nothing_that_is_said(tmp_path):
    """A chain has one order; no stream and no term is named as a reason, and no change has a minus sign."""
    n = 400
    chain = ew.Network(
        list(range(n - 1)), list(range(1, n)), n_neurons=n, inputs=[0], outputs=[n - 1], weights=np.ones(n - 1)
    )
    save(chain, tmp_path / "chain.npz")
    found = ew.pays(chain, "auto", system="scratchpad-8k", timing="replay")
    assert found.verdict == (
        "auto against two-optimal on lpddr4-3200, fp32, 16 lanes, min: the order changes nothing on this machine from "
        "1.125 KiB to 26.06 KiB: I/Os, bytes, energy and time are the same"
    )
    assert "-0.0" not in break_even_page(found)
    call = ["pays", str(tmp_path / "chain.npz"), "--order", "auto", "--system", "scratchpad-8k", "--timing", "replay"]
    done = CliRunner().invoke(app, call)
    said = " ".join(done.output.split())
    assert done.exit_code == 0 and "-0.0" not in said and "changes nothing on this machine" in said


def test_reasons_name_what_makes_the_change_and_what_it_costs_in_return():
    order = {"streams": {"ids": 8, "values": 20}, "terms": {"activate": 5.0}}
    same = {"io": 1, "bytes": 28, "energy": 5.0, "time": 1.0}

    def because(mine=(), **other):
        against = {**order, **same, **other}
        return BreakEvenPoint(
            StudyChoice("p", "fp32", 1, "min"), 1024, 3, {**order, **same, **dict(mine)}, against
        ).reason()

    assert because(streams={"ids": 8, "values": 24}, bytes=32) == "energy as before; bytes -4 B (values -4 B)"
    assert because(terms={"activate": 1.0}, energy=1.0) == "energy +4.00 pJ (activate +4.00 pJ); bytes as before"
    assert because(time=3.0) == "every stream moves as many bytes at the same energy, at other times"
    # a saving whose largest change is an increase: what is saved comes first
    assert because(
        {"terms": {"read": 2.0, "write": 9.0, "activate": 1.0}, "streams": {"partial_sums": 1020}},
        terms={"read": 9.0, "write": 1.0, "activate": 7.0},
        streams={"inputs": 700, "ids": 20},
    ) == (
        "energy -5.00 pJ (read -7.00 pJ, activate -6.00 pJ, in return write +8.00 pJ); "
        "bytes +300 B (partial_sums +1.02 kB, though inputs -700 B)"
    )
    assert because(streams={"ids": 20, "values": 8}) == (
        "energy as before; bytes as before in sum (ids -12 B, in return values +12 B)"
    )


@pytest.mark.parametrize(
    ("widths", "system"),
    [((200, 8, 200), "scratchpad-8k"), ((8, 300, 8), "scratchpad-8k"), ((40, 40, 40), "edge"), ((300, 20), "edge")],
)
@pytest.mark.parametrize("order", ["connection-reordering", "by-source"])
def test_the_reason_begins_with_what_has_the_sign_of_the_verdict(widths, system, order):
    rng = np.random.default_rng(1)
    layers = [sp.random(b, a, 0.5, "csr", rng=rng) for a, b in itertools.pairwise(widths)]
    found = ew.pays(ew.from_matrices(layers), order, system=system, sizes=[2048, 8192], lanes=[4], timing="replay")
    for point in found.points:
        change = {name: pj - point.against["terms"].get(name, 0) for name, pj in point.order["terms"].items()}
        total = sum(change.values())
        if not total:
            continue
        largest = max(change, key=lambda name: np.sign(total) * change[name])
        assert point.reason().split("(")[1].startswith(f"{largest} {'+' if total > 0 else '-'}"), point.reason()
        least = 0.05 * max(map(abs, change.values()))
        back = [name for name in change if change[name] * total < 0 and abs(change[name]) >= least]
        assert any(name in point.reason() for name in back) or not back


def test_caches_vary_by_legal_sizes():
    network = ew.load(NETWORK)
    found = ew.pays(network, "by-source", system="edge", sizes=[8192, 20000], lanes=[4], timing="replay")
    assert [point.size_bytes for point in found.points] == [8192, 16384]


def test_bad_input(tmp_path):
    network = ew.load(NETWORK)
    with pytest.raises(InputError, match="the order has 3 entries, the network 8000 connections"):
        ew.pays(network, [0, 1, 2], system="scratchpad-8k")
    with pytest.raises(InputError, match="neither caches nor a scratchpad"):
        ew.pays(network, "by-source", system={"caches": []})
    with pytest.raises(InputError, match="must be a whole number of bytes of at least 1, not 0"):
        ew.pays(network, "by-source", system="edge", sizes=[8192, 0])
    missing = CliRunner().invoke(app, ["pays", NETWORK, "--order", "missing.npz", "--system", "edge"])
    assert isinstance(missing.exception, InputError) and "missing.npz: no such file" in str(missing.exception)
    with pytest.raises(InputError, match="timing must be"):
        ew.pays(network, "by-source", system="edge", timing="guess")
    (tmp_path / "order.txt").write_text("0\n1\n2\n")
    wrong = CliRunner().invoke(app, ["pays", NETWORK, "--order", str(tmp_path / "order.txt"), "--system", "edge"])
    assert isinstance(wrong.exception, InputError) and "an order belongs to one network" in str(wrong.exception)


def test_command(tmp_path):
    page = tmp_path / "pays.html"
    arguments = ["pays", NETWORK, "--order", "by-source", "--system", "scratchpad-8k", "--size", "8192", "--lanes", "4"]
    found = CliRunner().invoke(app, [*arguments, "-o", str(page)])
    assert found.exit_code == 0, found.output
    assert "by-source against two-optimal" in found.output and page.read_text().startswith("<!doctype html>")


@pytest.mark.skipif(os.name != "posix", reason="a terminal")
def test_sentences_are_broken_between_words_on_a_terminal():
    ours, theirs = os.openpty()
    words = ["pays", NETWORK, "--order", "by-source", "--system", "scratchpad-8k"]
    done = subprocess.Popen(
        [sys.executable, "-m", "edgewatt", *words, "--size", "8192", "--timing", "replay"],
        stdout=theirs, stderr=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the terminal's other end is closed
        while part := os.read(ours, 1 << 16):
            said += part
    os.close(ours)
    assert done.wait() == 0
    lines = said.decode().splitlines()
    sentence = lines[next(k for k, line in enumerate(lines) if " was made for " in line) :]
    assert sentence[0] == "by-source was made for 8 KiB, lpddr4-3200, fp32, 16 lanes, min."
    assert sentence[1].startswith("by-source against two-optimal on") and max(map(len, sentence)) <= 80 < len(said)


@pytest.mark.parametrize("system", shipped_names("systems"))
def test_every_shipped_system_gives_an_answer(system):
    network = ew.load(NETWORK)
    found = ew.pays(network, "by-source", system=system, timing="replay")
    assert len(found.points) >= 3 and found.verdict.startswith("by-source against two-optimal on ")


def test_sizes_without_energies_are_refused_by_name():
    tiny = ew.Machine(scratchpad=ew.ScratchpadSpec(128, stream_bytes=64), part="lpddr4-3200", technology="lop-22nm")
    with pytest.raises(InputError, match="has no energies for on-chip memories of"):
        legal_sizes(random_network(np.random.default_rng(1)), tiny, 1)


def test_what_changes_by_less_than_is_printed_is_no_difference():
    from edgewatt.orders.break_even import _verdict

    choice = StudyChoice("lpddr4-3200", "fp32", 16, "min")
    rest = {"io": 100, "streams": {"weights": 1}, "time": 7.0}
    other = {**rest, "bytes": 1000, "energy": 1e4, "terms": {"read": 1e4}, "sources": [[1e4] * 3] + [[0.0] * 3] * 3}
    mine = {**rest, "bytes": 900, "energy": 9_998.0, "terms": {"read": 9_998.0}}
    mine["sources"] = [[9_998.0] * 3] + [[0.0] * 3] * 3
    point = BreakEvenPoint(choice, 8192, 113, mine, other)
    saving = Changes((), 8192, 8192, False)
    changes = {metric: Changes((), None, None, False) for metric in METRICS} | {"bytes": saving, "energy": saving}
    said = _verdict(("auto", "two-optimal"), [point], choice, changes)
    assert "it makes no difference in I/Os, energy and time at 8 KiB (less than 0.05 %)" in said
    assert "it pays in bytes" in said and "pays in energy" not in said


@pytest.fixture(scope="module")
def layers():
    """Two random SciPy layers."""
    rng = np.random.default_rng(5)
    return ew.from_matrices([sp.random(b, a, 0.15, "csr", rng=rng) for a, b in ((45, 35), (35, 25))])


@pytest.mark.parametrize(
    "one",
    [{"parts": ["hbm3"]}, {"lanes": [4]}, {"formats": ["fp16"]}, {"policies": ["lru"]}, {"sizes": [4096]}],
    ids=lambda one: next(iter(one)),
)
def test_an_order_by_name_is_made_for_the_machine_that_is_asked_for(layers, one):
    """The search is that of `ew.order` on that machine, with the same value."""
    study = ew.pays(layers, "auto", system="edge", **{"lanes": [8], **one})
    (own,) = [point for point in study.points if point.own]
    keys = {"dram": {"part": one.get("parts", ["lpddr4-3200"])[0]}}
    caches = {"size_bytes": one.get("sizes", [8192])[0], "policy": one.get("policies", ["plru"])[0]}
    machine = replace(machine_of("edge"), part=machine_of({"system": "edge", **keys}).part)
    machine = replace(
        machine_of({"system": "edge", **keys}), caches=(replace(machine.caches[0], **caches), *machine.caches[1:])
    )
    layout = Layout(value_format=one.get("formats", ["fp32"])[0], lanes=one.get("lanes", [8])[0])
    mine = ew.order(layers, "auto", memory=None, objective="energy", machine=machine, layout=layout)
    assert (own.order["energy"], own.against["energy"]) == (mine.parameters["value"], mine.parameters["two_optimal"])
    assert own.size_bytes == caches["size_bytes"]
    choice = f"{keys['dram']['part']}, {layout.value_format}, {layout.lanes} lanes, {caches['policy']}"
    assert study.made_for == f"auto was made for {own.size_bytes // 1024} KiB, {choice}."
    assert str(own.choice) == choice and study.made_for in str(study)


def test_of_several_values_an_order_is_made_for_the_first(layers):
    asked = {"parts": ["hbm2", "lpddr4-3200"], "lanes": [4, 16], "sizes": [16384, 4096]}
    study = ew.pays(layers, "depth-first", system="edge", **asked)
    assert study.made_for == "depth-first was made for 16 KiB, hbm2, fp32, 4 lanes, plru."
    assert [(point.size_bytes, str(point.choice)) for point in study.points if point.own] == [
        (16384, "hbm2, fp32, 4 lanes, plru")
    ]
    assert [point["made_for_this"] for point in study.as_dict()["points"]] == [point.own for point in study.points]
    assert study.as_dict()["made_for"] == study.made_for


def test_given_orders_are_made_for_no_machine(layers):
    plain = ew.order(layers, "two-optimal", memory=8)
    study = ew.pays(layers, plain, against=np.array(plain.edges), system="edge", sizes=[8192])
    assert study.made_for == "" and not any(point.own for point in study.points)
    half = ew.pays(layers, plain, against="depth-first", system="edge", sizes=[8192])
    assert half.made_for == "depth-first was made for 8 KiB, lpddr4-3200, fp32, 16 lanes, plru."
    rows = ew.pays(layers, plain, system="edge", sizes=[4096, 8192])  # two-optimal depends on no machine
    assert rows.made_for == "" and not any(point.own for point in rows.points)
    both = ew.pays(layers, "by-source", against="depth-first", system="edge", sizes=[8192])
    assert both.made_for.startswith("by-source and depth-first were made for 8 KiB, ")
    fast = ew.pays(layers, "depth-first", system="edge", memory=20, sizes=[8192])
    assert fast.made_for.endswith("was made for M = 20 on 8 KiB, lpddr4-3200, fp32, 16 lanes, plru.")
    assert not any(point.own for point in fast.points)


@pytest.mark.parametrize("system", ["edge", "scratchpad-8k"])
def test_with_an_order_for_each_row_no_row_is_worse(layers, system):
    """Each row is the search for its own machine, which compares with two-optimal; given orders stay what they are."""
    asked = {"system": system, "parts": ["hbm3", "lpddr4-3200"], "lanes": [8], "sizes": [1536, 8192], "moves": 20_000}
    study = ew.pays(layers, "auto", each=True, **asked)
    assert len(study.points) == study.evaluations == 4 and all(point.own for point in study.points)
    assert all(point.order["energy"] <= point.against["energy"] for point in study.points)
    assert study.made_for == "auto was made for each machine anew."
    once = ew.pays(layers, "auto", **asked)
    for mine, one in zip(study.points, once.points, strict=True):
        assert one.against == mine.against
        assert mine.order == one.order or not one.own
    sizes = {point.size_bytes for point in study.points}
    assert {size for of in study.crossings.values() for each in of.values() for size, _ in each} <= sizes
    assert {size for of in study.break_even.values() for size in of.values()} <= {*sizes, None}
    assert all(of == () for of in study.searched.values()) or system == "edge"


def test_each_row_has_what_its_method_makes_there(layers):
    """Whatever the metric or method: a row is the study of its machine alone."""
    asked = {"system": "scratchpad-8k", "lanes": [4], "objective": "io"}
    study = ew.pays(layers, "two-optimal", against="depth-first", each=True, sizes=[1536, 3000], **asked)
    for point in study.points:
        (alone,) = ew.pays(layers, "two-optimal", against="depth-first", sizes=[point.size_bytes], **asked).points
        assert alone == point


def test_what_each_cannot_be_is_said(layers):
    plain = ew.order(layers, "two-optimal", memory=8)
    with pytest.raises(InputError, match="both orders are given, name a method"):
        ew.pays(layers, plain, against=plain, each=True)
    with pytest.raises(InputError, match="two-optimal depends on no machine"):
        ew.pays(layers, plain, each=True)
    with pytest.raises(InputError, match="memory is for one order on all machines, each for"):
        ew.pays(layers, "auto", memory=20, each=True)


def test_the_machine_that_orders_were_made_for_is_marked(tmp_path, layers):
    save(layers, tmp_path / "net.npz")
    call = ["pays", str(tmp_path / "net.npz"), "--order", "depth-first", "--part", "hbm3", "--timing", "replay"]
    call += ["--system", "edge"]
    made = "depth-first was made for 8 KiB, hbm3, fp32, 16 lanes, plru.\n"
    page = tmp_path / "pays.html"
    done = CliRunner().invoke(app, [*call, "-o", str(page)], env={"COLUMNS": "240"})
    assert done.exit_code == 0 and f"\n* {made}" in done.output and done.output.count("* 8 KiB") == 1
    assert f"<p>* {made.strip()}</p>" in page.read_text() and page.read_text().count('">* ') == len(METRICS)
    done = CliRunner().invoke(app, [*call, "--size", "8KiB"])
    assert f"\n{made}" in done.output and "* " not in done.output  # one row needs no mark
    done = CliRunner().invoke(app, [*call, "--each", "-o", str(page)])
    assert "\ndepth-first was made for each machine anew.\n" in done.output
    assert "* " not in done.output and '">* ' not in page.read_text()


def test_progress_with_an_order_for_each_is_that_of_all_machines(layers):
    said = []
    asked = {"sizes": [2048, 8192], "parts": ["hbm3", "lpddr4-3200"], "lanes": [4], "time_limit_s": 0.1}
    ew.pays(layers, "auto", each=True, progress=lambda done, total, text: said.append((done, total, text)), **asked)
    assert {total for _, total, _ in said} == {4} and [done for done, _, _ in said] == sorted(n for n, _, _ in said)
    assert said[-1] == (4, 4, "sizes simulated") and any("orders tried" in text for _, _, text in said)
