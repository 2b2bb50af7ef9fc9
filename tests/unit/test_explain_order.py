"""The page that explains an order, and the slow replay behind it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.occupancy_oracle import occupancy as play_occupancy
from oracles.random_networks import dags
from typer.testing import CliRunner

from edgewatt.cli import app
from edgewatt.pages.explain import HEIGHT, KINDS, ONCE, explain_page, moves_picture, neuron_moves
from edgewatt.pages.html.page import text
from hwmodel.fastmemory.iomodel import count_io
from reorder.order import order
from traces.base.units import energy
from traces.generators.networks import random_layered
from traces.networks.network import Network
from traces.readers.native import save

pytestmark = pytest.mark.application


@pytest.fixture(scope="module")
def network() -> Network:
    return random_layered(3, 40, 0.15, seed=1)


def data_of(page: str) -> dict[str, Any]:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))  # type: ignore[union-attr, no-any-return]


@pytest.mark.parametrize("pinning", ["literal", "pin_both"])
@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@pytest.mark.parametrize("method", ["two-optimal", "random-topological", "output-stationary"])
def test_moves_are_those_that_are_counted(network: Network, method: str, policy: str, pinning: str) -> None:
    found = order(network, method, memory=12)
    for memory in (3, 12, 30):
        counts = count_io(network, found, memory=memory, policy=policy, pinning=pinning)
        seen = neuron_moves(network, found, memory=memory, policy=policy, pinning=pinning)
        assert seen.reads.sum() == counts.reads_neurons == seen.first_reads + seen.reads_by.sum()
        assert seen.writes.sum() == counts.writes_live == seen.writes_by.sum()
        assert seen.writes_outputs == counts.writes_outputs
        once, again = seen.first_reads + seen.writes_outputs, seen.reads_by + seen.writes_by
        assert seen.piles.sum(axis=0).tolist() == [once, *again[1:]]
        picture = moves_picture(seen.piles, seen.piles.sum(axis=1).max())
        assert picture.shape == (HEIGHT, 300) and picture.max() <= ONCE == len(KINDS)
        drawn = picture > 0
        assert (np.diff(drawn, axis=0) >= 0).all() and drawn[0].any()  # the highest pile reaches the top
        assert set(picture[-1].tolist()) >= {ONCE}  # what every order moves lies at the bottom


@given(dags(), st.integers(3, 12), st.sampled_from(["min", "lru", "rr"]), st.booleans(), st.data())
@settings(deadline=None)
def test_moves_are_those_of_plain_python(
    network: Network, memory: int, policy: str, pin_both: bool, data: st.DataObject
) -> None:
    edges = order(network, "random-topological", memory=3, seed=data.draw(st.integers(0, 9))).edges
    how = {"memory": memory, "policy": policy, "pinning": "pin_both" if pin_both else "literal"}
    seen, true = neuron_moves(network, edges, **how), play_occupancy(network, edges, **how, moments=[0], slots=[0])
    assert (seen.reads.tolist(), seen.writes.tolist()) == (true["reads"], true["writes"])
    assert (seen.reads_by.tolist()[1:], seen.writes_by.tolist()[1:]) == (true["reads_by"][1:], true["writes_by"][1:])
    assert (seen.first_reads, seen.writes_outputs) == (true["first_reads"], true["writes_outputs"])


def test_both_pictures_have_one_scale(network: Network) -> None:
    machine: dict[str, Any] = {"memory": 12, "policy": "min", "pinning": "literal"}
    bad = order(network, "random-topological", memory=12)
    data = data_of(explain_page(network, bad, **machine))
    piles = [neuron_moves(network, o, **machine).piles for o in (bad, order(network, "two-optimal", memory=12))]
    most = [int(each.sum(axis=1).max()) for each in piles]
    assert most[0] > most[1]
    for side, each in zip(data["sides"], piles, strict=True):
        shown = np.frombuffer(base64.b64decode(side["slots"]["data"]), np.uint8).reshape(HEIGHT, -1)
        heights = (shown > 0).sum(axis=0)
        assert np.abs(heights - each.sum(axis=1) * HEIGHT / max(most)).max() <= 0.5
    assert data["kinds"][ONCE] == "first read or output write"


def test_the_page_is_self_contained_and_escaped(network: Network) -> None:
    named = network.with_(name="<script>alert(1)</script> & co")
    found = order(named, "auto", memory=12, moves=5000)
    page = explain_page(named, found, memory=12)
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert not re.search(r"""(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page)
    data = data_of(page)
    assert data["sides"][0]["total"] == count_io(named, found, memory=12).total
    assert sum(count for _, count in data["sides"][0]["costs"]) == data["sides"][0]["total"]
    assert "@" not in re.sub(r"@(media|charset)", "", page)


@pytest.mark.parametrize("method", ["by-source", "two-optimal"])
def test_the_page_has_the_machine_of_an_order_made_for_one(network: Network, tmp_path: Path, method: str) -> None:
    """`--system` alone is enough; amounts have prefixes that fit, and what is equal is not called a change."""
    save(network, tmp_path / "net.npz")
    call = ["order", str(tmp_path / "net.npz"), "--system", "edge", "-m", method, "--explain", str(tmp_path / "x.html")]
    done = CliRunner().invoke(app, [*call, "--json", str(tmp_path / "x.json")])
    assert done.exit_code == 0, done.output
    page, found = (tmp_path / "x.html").read_text(), json.loads((tmp_path / "x.json").read_text())["machine"]
    assert "<h2>On the machine</h2>" in page and text(found["sentence"]) in page
    joules = sum(found[method]["terms"].values())
    head = re.search(r"<th>Energy</th><th>[^<]*, (.?J)</th>", page)
    assert head and f"<tr><td>all</td><td>{energy(joules).split(' ')[0]}</td>" in page.split("<th>Energy</th>")[1]
    assert " +0" not in found["sentence"] and not re.search(r">[+-]0\.0 %<", page)


def test_a_construction_and_a_single_connection_have_pages() -> None:
    network = Network([0], [1], 2, [0], [1])
    page = explain_page(network, order(network, "two-optimal", memory=3), memory=3, policy="rr")
    assert "4 I/Os, as many as two-optimal; both meet the lower bound 4." in page


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
def test_the_page_draws_without_errors(browser: Browser, network: Network, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(explain_page(network, order(network, "auto", memory=12, moves=5000), memory=12), encoding="utf-8")
    with browser.page(page, 1280) as shown:
        shown.wait("document.querySelectorAll('canvas').length === 5")
        assert shown.failures == [] and "two-optimal" in shown.document and "<path" in shown.document
