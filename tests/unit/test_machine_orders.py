"""Orders for a whole machine: never worse than what could be had without a search, and plain words about it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.evaluation.machine_cost import MachineCost, order_on_machine
from edgewatt.orders.order_comparison import machine_of
from edgewatt.orders.ordering import machine_cost_for
from reorder.base import ORDERINGS, Task, check_order
from reorder.edges.machine.candidates import CandidatePool
from reorder.edges.machine.search import evaluated_in_layouts
from reorder.edges.machine.surrogate import MachineShape, Surrogate
from reorder.edges.search.budget import Budget
from reorder.edges.search.intervals import Items
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.readers.native import save

CACHE = {"caches": [{"size_bytes": 1024, "line_bytes": 64, "ways": 4, "policy": "lru"}]}
PAD = {"scratchpad": {"size_bytes": 2304, "stream_bytes": 1024}}
FEW = {"rounds": 3, "moves": 2000}


@pytest.fixture(scope="module")
def network() -> Network:
    return random_layered(3, 80, 0.15, seed=4)


@pytest.mark.parametrize("objective", ["energy", "time", "bytes"])
@pytest.mark.parametrize(("system", "lanes"), [(CACHE, 1), (CACHE, 4), (PAD, 1), (PAD, 16)])
def test_it_is_never_worse_than_the_constructions(network: Network, objective: str, system: dict, lanes: int) -> None:
    judge = machine_cost_for(network, objective, system, lanes=lanes)
    found = order_on_machine(judge, "auto", **FEW)
    check_order(network, found.edges)
    assert found.parameters["value"] == judge(found.edges)
    shape = judge.shape()
    names = [name for name in ORDERINGS if name != "file"]
    made = [name for name in names if not ORDERINGS[name].item.searches and ORDERINGS[name].item.extra is None]
    assert len(made) >= 12
    for name in made:
        other = ew.order(network, name, memory=shape.memory, policy=shape.policy)
        assert judge(found.edges) <= judge(other.edges), name
    if lanes > 1:  # with one lane the network fits, or nearly
        assert judge(found.edges) < judge(ew.order(network, "two-optimal", memory=3).edges)


def test_the_same_seed_gives_the_same_order(network: Network) -> None:
    one, other = (
        ew.order(network, "auto", memory=None, objective="energy", machine=CACHE, lanes=4, seed=3, **FEW)
        for _ in range(2)
    )
    assert np.array_equal(one.edges, other.edges) and not one.truncated


def test_a_layout_of_rows_gets_an_order_of_rows(network: Network) -> None:
    found = ew.order(network, "auto", memory=None, objective="bytes", machine=CACHE, lanes=4, layout="csr", **FEW)
    assert (np.diff(np.flatnonzero(np.diff(network.targets[found.edges]))) > 0).all()
    assert len(set(network.targets[found.edges])) == 1 + np.count_nonzero(np.diff(network.targets[found.edges]))


def test_other_methods_search_by_the_fitted_weights(network: Network) -> None:
    found = ew.order(network, "residency", memory=None, objective="energy", machine=PAD, lanes=16, moves=3000)
    assert found.method == "residency" and found.parameters["memory"] == 21
    assert found.parameters["value"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "energy"}, "objective 'energy' needs a machine: give machine="),
        ({"objective": "bytes"}, "needs a machine"),
        ({"objective": "io", "machine": PAD}, "a machine is for the objectives energy, time, bytes, not 'io'"),
        ({"objective": {"kind": "weighted", "a": 1, "b": 1}, "machine": PAD}, "a machine is for the objectives"),
        ({"objective": "energy", "machine": PAD, "target": "this-cpu"}, "a target .* or a machine, not both"),
        ({"objective": "energy", "machine": PAD, "starts": 2}, "takes no 'starts' with objective 'energy'"),
        ({"objective": "energy", "machine": {"caches": []}}, "neither caches nor a scratchpad"),
        ({"objective": "energy", "machine": "no-such-system"}, "no-such-system"),
        ({"objective": "time", "machine": PAD, "timing": "replay"}, "replay's is issue time"),
        ({"objective": "energy", "machine": PAD, "timing": "guess"}, "timing must be"),
        ({"objective": "energy", "machine": PAD, "lanes": 4, "layout": Layout(lanes=2)}, "say it once"),
        ({"objective": "energy", "machine": PAD, "layout": "csx"}, "unknown layout 'csx'"),
        ({"objective": "energy", "machine": PAD, "rounds": -1}, "rounds must be a whole number of at least 0"),
        ({"objective": "energy", "machine": PAD, "lanes": 512}, "holds 0 rows"),
        ({"layout": "csr"}, "layout belongs to an objective with a machine"),
        ({}, "memory is missing"),
    ],
)
def test_bad_requests(network: Network, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ew.order(network, "auto", memory=None, **options)


def test_a_network_without_weights_is_refused(network: Network) -> None:
    with pytest.raises(InputError, match=r"no weights, and a machine, .* needs them: .* array 'weights'"):
        ew.order(network.with_(weights=None), "auto", memory=None, objective="energy", machine=PAD)


@pytest.mark.application
def test_the_command_line(network: Network, tmp_path: Path) -> None:
    file, page = str(tmp_path / "net.npz"), tmp_path / "page.html"
    save(network, file)
    arguments = ["order", file, "--objective", "energy", "--system", "edge", "--lanes", "64", "-s", "rounds=1"]
    arguments += ["--layout", "tuples"]
    done = CliRunner().invoke(app, [*arguments, "-s", "moves=1000", "--explain", str(page)])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    sentence, kernel = said[said.index("It pays in ") :].split(" The best simple blocking: ")
    assert sentence.startswith(
        "It pays in energy on 8 KiB of cache with lpddr4-3200, layout tuples, per inference of 64 at a time: "
    )
    assert sentence.count(". ") == 0 and sentence.endswith(".") and "because" in sentence
    html = page.read_text()
    assert sentence in html and "Bytes over the memory bus" in html and "l1_<wbr>read" in html
    assert "width=device-width" in html and "@MACHINE@" not in html
    done = CliRunner().invoke(app, [*arguments, "-s", "moves=1000", "--json", "-"])
    view = json.loads(done.stdout)["machine"]
    tile = view["blocking"]["tile"]
    numbers = ", ".join(f"{key}: {value}" for key, value in tile.items())
    assert kernel == f"orderings: [{{kind: tiles, {numbers}}}]."
    assert kernel in html and set(tile) == {"targets", "sources", "outer"}
    assert view["sentence"] == sentence and view["auto"]["energy"] < view["two-optimal"]["energy"]
    assert sum(view["auto"]["terms"].values()) == pytest.approx(view["auto"]["energy"])


def test_the_sentence_is_broken_between_words_on_a_terminal(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edgewatt.cli.parts.output import say

    text = (
        "It pays in energy on 8 KiB of scratchpad: 12.15 uJ for two-optimal, because energy -1.20 uJ (write -350 nJ). "
        * 2
    )
    monkeypatch.setenv("COLUMNS", "80")
    say(text)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 80 and " ".join(lines) == text.strip()


def test_it_says_when_an_order_does_not_pay(network: Network, tmp_path: Path) -> None:
    file = str(tmp_path / "net.npz")
    save(network, file)
    done = CliRunner().invoke(app, ["order", file, "-m", "by-source", "--objective", "time", "--system", "edge"])
    assert done.exit_code == 0, done.output
    assert "It does not pay in time on 8 KiB of cache" in done.stdout
    done = CliRunner().invoke(app, ["order", file, "-m", "two-optimal", "--objective", "bytes", "--system", "edge"])
    assert "It does not pay in bytes on 8 KiB of cache" in done.stdout and "both orders cost" in done.stdout
    for arguments, message in (
        (["--objective", "energy"], "needs a machine"),
        (["--layout", "csr"], "--layout, --timing, --format and --renumber belong to --system"),
    ):
        done = CliRunner().invoke(app, ["order", file, *arguments])
        assert isinstance(done.exception, InputError) and message in str(done.exception)


def test_in_a_configuration(network: Network, tmp_path: Path) -> None:
    save(network, tmp_path / "net.npz")
    text = """
network: {file: net.npz}
orderings: [two-optimal, auto]
layout: {kind: tuples, lanes: 64}
system: edge
search: {objective: energy, time_limit_s: LIMIT}
"""
    for limit in (0.5, 4, 32):  # half a second, and what the same search needs under a sanitizer or on a busy machine
        (tmp_path / "run.yaml").write_text(text.replace("LIMIT", str(limit)))
        plain, found = ew.run(tmp_path / "run.yaml", results=tmp_path / "results")
        if saved := plain.results["energy_pj"]["total"] - found.results["energy_pj"]["total"]:
            break
    assert saved > 0


def test_a_machine_object_serves_as_well(network: Network) -> None:
    machine = ew.Machine(scratchpad=ew.ScratchpadSpec(4096), part="lpddr4-3200", encoder="dbi-dc")
    judge = MachineCost(network, machine_of(machine), Layout(lanes=16), "bytes", "replay")
    found = ew.order(network, "auto", memory=None, objective="bytes", machine=machine, lanes=16, **FEW)
    assert found.parameters["value"] == judge(found.edges)


@pytest.mark.parametrize(
    ("share", "begins"),
    [
        (0.0, "It does not pay in energy on "),
        (-0.0002, "It makes no difference in energy on "),
        (0.00049, "It makes no difference in energy on "),
        (-0.00051, "The order is irrelevant in energy on "),
        (0.0099, "The order is irrelevant in energy on "),
        (-0.011, "It pays in energy on "),
        (0.011, "It does not pay in energy on "),
    ],
)
def test_a_change_that_would_print_as_nothing_makes_no_difference(network: Network, share: float, begins: str) -> None:
    from edgewatt.evaluation.machine_cost import sentence

    judge = machine_cost_for(network, "energy", PAD, lanes=4)
    plain = judge.costs(judge.plain)
    terms = {**plain["terms"], "read": plain["terms"].get("read", 0.0) + share * plain["energy"]}
    said = sentence(judge, "auto", {**plain, "energy": plain["energy"] * (1 + share), "terms": terms}, plain)
    assert said.startswith(begins + "2.25 KiB of scratchpad with ") and "-0.0 %" not in said and "+0.0 %" not in said
    assert ("less than 0.05 %" in said) == ("no difference" in said)


@pytest.mark.parametrize("method", ["auto", "residency", "connection-reordering"])
def test_a_time_limit_takes_nothing_from_the_only_order_there_is(method: str) -> None:
    weights = np.ones(5, np.float32)
    chain = ew.Network(np.arange(5), np.arange(1, 6), n_neurons=6, inputs=[0], outputs=[5], weights=weights)
    one = ew.Network([0], [1], n_neurons=2, inputs=[0], outputs=[1], weights=weights[:1])
    two = ew.Network([0, 0], [1, 2], n_neurons=3, inputs=[0], outputs=[1, 2], weights=weights[:2])
    for network in (chain, one):
        assert not ew.order(network, method, memory=3, time_limit_s=0.05).truncated
        options = {"objective": "energy", "machine": PAD, "lanes": 4, "time_limit_s": 0.2}
        assert not ew.order(network, method, memory=None, **options).truncated
    assert ew.order(two, "auto", memory=None, **options).truncated


def test_a_search_begins_with_what_the_one_before_it_found(network: Network) -> None:
    task = Task(20, "min", "literal")
    good = ew.order(network, "auto", memory=20, moves=20000).edges
    items = Items(network)
    items.orders = [good]
    entry = ORDERINGS["auto"]
    made = entry.item(network, replace(task, prepared=items), entry.make_parameters({"moves": 0}))
    assert ew.count_io(network, made, memory=20).total <= ew.count_io(network, good, memory=20).total


def test_the_order_of_the_fewest_ios_is_judged_in_every_layout(network: Network) -> None:
    first, plain = (ew.order(network, name, memory=20).edges for name in ("two-optimal", "by-source"))
    pool = CandidatePool(lambda edges: 2.0, Budget(None), Surrogate(network, MachineShape(20, "min", "literal")))
    pool.offer(first, "first")
    pool.plain = 2.0, plain
    layouts = {"runs": (lambda edges: 1.0 if edges is plain else 3.0, lambda edges: True)}
    assert evaluated_in_layouts(pool, layouts) == {"layout": "runs", "layout_value": 1.0}
    assert pool.best is plain
    pool.names, pool.evaluated = (
        {b"built": ["built"]},
        {b"built": 1.5},
    )  # a construction costs less where the judge chose
    assert evaluated_in_layouts(pool, layouts)["layout"] is None
