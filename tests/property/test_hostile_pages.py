"""No name, path, description or label gets out of its place in a page: not in the text, not in a real browser."""

import copy
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.operators.figures import figure
from edgewatt.reporting.data import gather
from edgewatt.reporting.explain_order import explain_page
from edgewatt.reporting.page import drawing, render
from edgewatt.results.record import Record
from traces.generators.networks import random_layered

pytest.importorskip("vl_convert")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
    return render(found, gather(found, title=text, baseline=None, failed={text: text}))


def order_page(text: str) -> str:
    network = random_layered(n_layers=2, width=6, density=0.5).with_(name=text)
    return explain_page(network, ew.order(network, "two-optimal", memory=5), memory=5, policy="min", pinning="literal")


def schedule_page(text: str) -> str:
    graph = ew.cell("darts_v2")
    graph = graph.with_(name=text) if hasattr(graph, "with_") else graph
    for node in graph.nodes:
        object.__setattr__(node, "name", node.name + text)
    return drawing(text, figure(graph, ew.schedule(graph)))


class Elements(HTMLParser):
    """Counts elements and notes attributes that run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.running: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.running += [name for name, _ in attrs if name.startswith("on") or name in ("href", "src", "srcdoc")]


def shape(page: str) -> dict[str, int]:
    """Return the elements of a page, its scripts' own texts taken out."""
    found = Elements(re.sub(r'(<script type="module">).*?(</script>)', r"\1\2", page, flags=re.DOTALL))
    assert not found.running
    return found.counts


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hostile)
def test_a_text_makes_no_element(records: list[Record], text: str) -> None:
    assert shape(report_page(records, text)) == shape(report_page(records, "plain"))
    assert shape(order_page(text)) == shape(order_page("plain"))
    assert shape(schedule_page(text)) == shape(schedule_page("plain"))


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize("kind", ["report", "order", "schedule"])
def test_nothing_runs_in_a_browser(records: list[Record], kind: str, tmp_path: Path) -> None:
    text = "".join(PARTS)
    page = {"report": lambda: report_page(records, text), "order": lambda: order_page(text),
            "schedule": lambda: schedule_page(text)}[kind]()  # fmt: skip
    (tmp_path / "page.html").write_bytes(page.encode("utf-8", "backslashreplace"))
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--dump-dom",
        (tmp_path / "page.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=180)
    dom = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0 and "<body" in dom, done.stderr[-2000:]
    assert "data-owned" not in dom.split("<body")[0], "a script of the text ran"
    assert "data-error" not in dom
    if kind != "order":
        assert 'data-charts="' in dom, "the charts are drawn all the same"
