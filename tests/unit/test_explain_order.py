"""The page that explains an order, and the slow replay behind it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser import CHROMIUM, opened

from edgewatt.reporting.explain_order import explain_page
from hwmodel.fastmemory.iomodel import count_io
from hwmodel.fastmemory.occupancy import occupancy
from reorder.order import order
from traces.generators.networks import random_layered
from traces.work.network import Network

pytestmark = pytest.mark.application


@pytest.fixture(scope="module")
def network() -> Network:
    return random_layered(3, 40, 0.15, seed=1)


@pytest.mark.parametrize("pinning", ["literal", "pin_both"])
@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@pytest.mark.parametrize("method", ["two-optimal", "random-topological", "output-stationary"])
def test_occupancy_counts_what_the_kernels_count(network: Network, method: str, policy: str, pinning: str) -> None:
    found = order(network, method, memory=12)
    for memory in (3, 12, 30):
        counts = count_io(network, found, memory=memory, policy=policy, pinning=pinning)
        seen = occupancy(network, found, memory=memory, policy=policy, pinning=pinning)
        assert seen.reads.sum() == counts.reads_neurons == seen.first_reads + sum(seen.reads_by.values())
        assert seen.writes.sum() == counts.writes_live == sum(seen.writes_by.values())
        assert seen.writes_outputs == counts.writes_outputs
        assert seen.slots.shape[1] == len(seen.moments) and seen.slots.max() <= 3


def test_the_page_is_self_contained_and_escaped(network: Network) -> None:
    named = network.with_(name="<script>alert(1)</script> & co")
    found = order(named, "auto", memory=12, moves=5000)
    page = explain_page(named, found, memory=12)
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    assert not re.search(r"""(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", page)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))  # type: ignore[union-attr]
    assert data["sides"][0]["total"] == count_io(named, found, memory=12).total
    assert sum(count for _, count in data["sides"][0]["costs"]) == data["sides"][0]["total"]
    assert "@" not in re.sub(r"@(media|charset)", "", page)


def test_a_construction_and_a_single_connection_have_pages() -> None:
    network = Network([0], [1], 2, [0], [1])
    page = explain_page(network, order(network, "two-optimal", memory=3), memory=3, policy="rr")
    assert "4 I/Os" in page


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_page_draws_without_errors(network: Network, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(explain_page(network, order(network, "auto", memory=12, moves=5000), memory=12), encoding="utf-8")
    dom, said = opened(page, tmp_path / "profile")
    assert "Uncaught" not in said and "CONSOLE" not in said
    assert dom.count("<canvas") == 5 and "two-optimal" in dom and "<path" in dom
