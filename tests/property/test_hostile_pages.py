"""No name, path, description or label gets out of its place in a page: not in the text, not in a real browser."""

import copy
import dataclasses
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
import papers.page as papers
from edgewatt.operators.arena import of_schedule
from edgewatt.orders.break_even import METRICS, BreakEven
from edgewatt.orders.break_even_page import break_even_page
from edgewatt.pages.arena import ArenaMap, BankShown, arena_page
from edgewatt.pages.data import gather
from edgewatt.pages.explain import explain_page
from edgewatt.pages.report import rendered
from edgewatt.pages.token import token_page
from edgewatt.results.record import Record
from papers.catalogue import FIGURES
from papers.claim import Claim, least
from papers.figure import Chart, Run, Table
from traces.generators.networks import random_layered
from traces.readers.opgraph_json import from_dict

pytestmark = pytest.mark.application

pytest.importorskip("vl_convert")
ROOT = Path(__file__).parents[2]
RUN = "document.documentElement.dataset.owned=1"
PARTS = (
    f"</script><script>{RUN}</script>", f"<img src=x onerror={RUN}>", f'"><svg onload={RUN}>', f"' onmouseover='{RUN}",
    "<!--<script>", "]]>", "</style></title></textarea>", f"javascript:{RUN}", "{{constructor}}", "{0}", "@DATA@",
    "\u2028\u2029", "\x1b[31m\x1b]0;t\x07", "\x00", "\ud800",
    "&lt;script&gt;", "\\u003cscript\\u003e", "\r\n", "w" * 300,
)  # fmt: skip
hostile = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), min_size=1, max_size=4).map("".join)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    network = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
    return ew.run({"base": {"network": network, "caches": ["buffer-8k"]}, "grid": {"seed": [0, 1]}})


def spoiled(record: Record, text: str) -> Record:
    """Put the text behind every string of a record: names of files, members, parts, layouts, hosts and so on."""

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        if isinstance(value, list):
            return [change(item) for item in value]
        return value + text if isinstance(value, str) else value

    canonical = copy.deepcopy(dict(record.canonical))
    return Record(
        {**canonical, "config": change(canonical["config"])}, {**change(dict(record.provenance)), "name": text}
    )


def report_page(records: list[Record], text: str) -> str:
    found = [spoiled(record, text) for record in records]
    return rendered(gather(found, title=text, baseline=None, failed={text: text}))


def order_page(text: str) -> str:
    network = random_layered(n_layers=2, width=6, density=0.5).with_(name=text)
    return explain_page(network, ew.order(network, "two-optimal", memory=5), memory=5, policy="min", pinning="literal")


def schedule_page(text: str) -> str:
    graph = ew.generators.cell("darts_v2")
    graph = graph.with_(name=text) if hasattr(graph, "with_") else graph
    for node in graph.nodes:
        object.__setattr__(node, "name", node.name + text)
    return arena_page(of_schedule(ew.schedule(graph)))


def own_graph_page(text: str) -> str:
    """The page of an own graph whose very name is hostile."""
    node = {"shape": [4], "bytes": 4}
    nodes = [{"name": "a" + text, **node}, {"name": "b" + text, "op": "RELU" + text, "inputs": ["a" + text], **node}]
    graph = from_dict({"nodes": nodes, "outputs": ["b" + text]})
    return arena_page(of_schedule(ew.schedule(graph)))


def papers_page(records: list[Record], text: str) -> str:
    """The page of a figure whose texts, rows, claims and records say the text."""
    text = f"so {text}"  # what is empty has no place
    rows = [{text: text, "name": text, "x": text, "y": 1.5}]
    shows = (Chart("7", "x", ("y",), "misses", series="name", bars=True), Table(text, (text,), ("y",)))
    texts = {"title": text, "reading": text, "rows": lambda job, result: rows, "shows": shows}
    figure = dataclasses.replace(FIGURES["eon-frontier"], **texts)
    claim = Claim(text, text, text, ("eon-frontier",), least(0), {text: lambda r: 1.0}, text, note=text)
    record = spoiled(records[0], text)
    job = {"job": {"seed": 1, text: text}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(papers.CLAIMS, "kamatar-2023", [claim])
        run = Run(figure, [{}], [Record({**record.canonical, "config": job, "results": {}}, record.provenance)])
        return papers.render([run])


def pays_html(text: str) -> str:
    choice = "fp16 " + text
    return break_even_page(
        BreakEven(
            "so " + text, (), {choice: dict.fromkeys(METRICS, 4096)}, {choice: ()}, "csr " + text, ("a" + text, text)
        )
    )


def arena_html(text: str) -> str:
    """A map whose buffers, memories and steps are all named by the text."""
    lower, upper, size, offset, bank = np.array([[0, 1], [2, 3], [64, 32], [0, 0], [0, 1]], np.int64)
    banks = [BankShown("fast " + text, 64, 128), BankShown("slow " + text, 32)]
    names, steps = ["a" + text, "b" + text], ["one" + text, "two", "three"]
    return arena_page(ArenaMap("map " + text, names, lower, upper, size, offset, bank, banks, steps))


class Elements(HTMLParser):
    """Counts elements and notes attributes that run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.running: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            # a place of the page, or a table to keep: neither runs anything
            within = name == "href" and re.fullmatch(r"#[\w-]+|data:text/csv;base64,[\w+/=]+", value or "")
            if name.startswith("on") or (name in ("href", "src", "srcdoc") and not within):
                self.running.append(name)


def shape(page: str) -> dict[str, int]:
    """Return the elements of a page, its scripts' own texts taken out."""
    found = Elements(re.sub(r'(<script type="module">).*?(</script>)', r"\1\2", page, flags=re.DOTALL))
    assert not found.running
    return found.counts


def token_html(text: str) -> str:
    heads, rows = (text, "bytes"), [(text, "1"), (text, "2")]
    return token_page(text, text, [text], [(text, heads, rows, [1.0, 2.0])], (heads, rows), 1)


def pages(records: list[Record], text: str) -> dict[str, Callable[[], str]]:
    """Return every kind of page, with the text in every name, path, description and label."""
    return {
        "report": lambda: report_page(records, text),
        "order": lambda: order_page(text),
        "schedule": lambda: schedule_page(text),
        "own graph": lambda: own_graph_page(text),
        "papers": lambda: papers_page(records, text),
        "pays": lambda: pays_html(text),
        "arena": lambda: arena_html(text),
        "token": lambda: token_html(text),
    }


KINDS = tuple(pages([], ""))
PAGES = {
    "report",
    "arena",
    "explain",
    "token",
    "break_even_page",
}  # of these modules


def test_every_page_is_tried() -> None:
    """A new page, papers aside, is put on the common frame and among `pages` here."""
    framed = re.compile(r"^from edgewatt\.pages\.html\.page import .*\bPage\b", re.M)
    assert {path.stem for path in (ROOT / "edgewatt").rglob("*.py") if framed.search(path.read_text())} == PAGES


def test_who_makes_elements_escapes_by_the_one_function() -> None:
    frame = ROOT / "edgewatt" / "pages" / "html" / "page.py"
    for path in {*(ROOT / "edgewatt").rglob("*.py")} - {frame}:
        code = path.read_text()
        assert not re.search(r"^\s*(import html|from html import)", code, re.M), path
        if re.search(r'(?<!b")<(table|html|svg|h1|h2)\b', code):  # bytes are what a file begins with
            assert "from edgewatt.pages.html.page import" in code, path


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(text=hostile)
def test_a_text_makes_no_element(kind: str, records: list[Record], text: str) -> None:
    page = pages(records, text)[kind]()
    assert shape(page) == shape(pages(records, "plain")[kind]())
    page.encode("utf-8", "backslashreplace" if kind in ("report", "papers") else "strict")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_runs_in_a_browser(browser: Browser, records: list[Record], kind: str, tmp_path: Path) -> None:
    page = pages(records, "".join(PARTS))[kind]()
    (tmp_path / "page.html").write_bytes(page.encode("utf-8", "backslashreplace"))
    with browser.page(tmp_path / "page.html", 1280) as shown:
        charts = kind == "report"
        shown.wait("document.body.dataset.charts" if charts else "true")
        time.sleep(0.3)  # for what a picture that cannot load, or an animation, would run
        assert shown.run("return document.documentElement.dataset.owned ?? null;") is None, "a script of the text ran"
        assert shown.run("return document.body.dataset.error ?? null;") is None
