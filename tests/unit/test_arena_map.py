"""The map of an arena: what its page and figure say, and that it draws; banks on the command line; alignments."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.operators.arena import arena_map, in_banks, of_schedule, read_banks
from edgewatt.pages.arena import arena_page
from reorder.operators.arena.files import read_buffers
from reorder.operators.schedule.arena import lifetimes, own_alignment
from reorder.operators.schedule.operator_problem import OperatorProblem
from traces.base.errors import InputError

pytestmark = pytest.mark.application

REFERENCE = Path(os.environ.get("EDGEWATT_REFERENCE", "/nowhere")) / "schedule"
TEXT = "id,lower,upper,size,traffic,bank\na<b>,0,2,30,60,\nb,1,3,40,400,\nc,2,4,30,60,slow\n"
BANKS = "banks:\n  - {name: fast, mb_per_s: 4000, size_bytes: 48, source: a table}\n  - {name: slow, mb_per_s: 1000}\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "b.csv").write_text(TEXT)
    (tmp_path / "banks.yaml").write_text(BANKS)
    return tmp_path / "b.csv", tmp_path / "banks.yaml"


def test_the_peak_is_named_in_words() -> None:
    result = ew.schedule(ew.generators.cell("darts_v2"))
    shown = of_schedule(result)
    first = shown.words()[0]
    assert f"Peak of {result.peak_bytes:,} B while " in first
    at = int(shown.live.argmax())
    assert repr(result.names[at]) in first
    assert shown.live.max() == result.peak_bytes
    assert shown.size[shown.at_peak].sum() == result.peak_bytes
    assert all(shown.names[i] in first for i in shown.at_peak.tolist())


def test_the_page_holds_every_buffer_and_asks_for_nothing(files: tuple[Path, Path]) -> None:
    given = read_buffers(files[0])
    b = given.buffers
    page = arena_page(arena_map("three", given.names, b, ew.allocate(b.lower, b.upper, b.size), 100))
    assert "a&lt;b&gt;" in page and "a<b>" not in page
    assert "default-src 'none'" in page and "http:" not in page and "https:" not in page
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [row[0] for row in data["buffers"]] == ["a<b>", "b", "c"]
    assert (data["times"], data["live"], data["end"]) == ([0, 1, 2, 3], [30, 70, 70, 30], 4)
    assert data["banks"] == [{"name": "arena", "height": 70, "size": 100}]


def test_banks_on_the_command_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    out, page = tmp_path / "placed.csv", tmp_path / "m.html"
    written = ["-o", str(out), "--page", str(page)]
    done = CliRunner().invoke(
        app,
        ["arena", str(files[0]), "--banks", str(files[1]), *written],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    # b moves most and takes the 48 bytes; a, live with it, and c, pinned, are in the slow bank
    assert "fast: 1 buffers in 40 B of 48 B" in done.output
    assert "proved, no placement takes less" in done.output
    assert out.read_text().splitlines()[1:] == ["a<b>,0,2,30,0,slow", "b,1,3,40,0,fast", "c,2,4,30,0,slow"]
    assert "in the" not in page.read_text().split("<main>")[0]
    done = CliRunner().invoke(app, ["arena", str(files[0]), "--banks", str(files[1]), "--json", "-"])
    found = json.loads(done.stdout)
    assert found["bank"] == {"a<b>": "slow", "b": "fast", "c": "slow"}
    assert found["time_ns"] == pytest.approx(60 + 100 + 60)
    assert found["proved"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("banks: []\n", "banks.yaml:1:8"),
        ("banks:\n  - {name: a, mb_pers: 3}\n", "did you mean 'mb_per_s'"),
        ("banks:\n  - {name: a, mb_per_s: 0}\n", "mb_per_s is 0"),
        ("banks:\n  - {name: a, mb_per_s: 5, size_bytes: big}\n", "banks.yaml:2:"),
        ("memories: 3\n", "banks.yaml:1:1"),
    ],
)
def test_bad_banks_are_refused_by_place(files: tuple[Path, Path], text: str, message: str) -> None:
    files[1].write_text(text)
    with pytest.raises(InputError) as error:
        read_banks(files[1])
    assert message in str(error.value)


def test_a_schedule_in_banks(tmp_path: Path, files: tuple[Path, Path]) -> None:
    files[1].write_text(BANKS.replace("48", "100000"))
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        app, ["schedule", "darts_v2", "--banks", str(files[1]), "--page", str(page), "--json", "-"]
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["placement_in_banks"]
    assert sum(bank["buffers"] for bank in found["banks"]) == len(ew.generators.cell("darts_v2").buffers)
    assert found["banks"][0]["height"] <= 100_000
    assert "fast" in page.read_text()


def test_tensors_of_a_schedule_are_pinned_to_banks(files: tuple[Path, Path]) -> None:
    graph = ew.generators.cell("darts_v2")
    result = ew.schedule(graph)
    first, last = graph.nodes[0].output.name, graph.outputs[0]

    def placed(text: str) -> dict[str, str]:
        files[1].write_text(BANKS.replace("48", "200000") + text)
        found = in_banks(result, read_banks(files[1]), 64)
        problem = OperatorProblem(graph)
        _, numbers = lifetimes(problem, result.order.astype(np.int32), 64)
        names = [graph.buffers[b] for b in numbers.tolist()]
        return {name: found.names[k] for k, name in enumerate(names)}

    names = ["fast", "slow"]
    for bank in names:
        assert placed(f"pinned: {{{first}: {bank}}}\n")[first] == bank
    assert placed(f"pinned: {{{first}: {names[1]}, {last}: {names[1]}}}\n")[last] == names[1]
    for text, message in (
        (f"pinned: {{{first}x: {names[0]}}}", f"unknown tensor '{first}x'"),
        (f"pinned: {{{first}: {names[0]}x}}", f"unknown bank '{names[0]}x'"),
        ("pinned: 3", "banks.yaml:"),
    ):
        with pytest.raises(InputError, match=message):
            placed(text + "\n")
    files[1].write_text(BANKS + f"pinned: {{{last}: {names[0]}}}\n")
    with pytest.raises(InputError, match=rf"pinned: '{last}' has \d+ bytes, '{names[0]}' has 48"):
        in_banks(result, read_banks(files[1]), 64)


def test_the_own_alignment_of_a_graph() -> None:
    graph = ew.generators.cell("darts_v2")
    assert own_alignment(graph) == 64
    result = ew.schedule(graph, alignment="graph")
    assert (result.alignment, result.arena_bytes) == (64, result.peak_bytes)
    with pytest.raises(InputError, match="alignment is 'page'"):
        ew.schedule(graph, alignment="page")
    with pytest.raises(InputError, match="alignment is 0"):
        ew.schedule(graph, alignment=0)


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="no reference data: set EDGEWATT_REFERENCE")
def test_every_arena_is_the_peak_at_the_graphs_alignment() -> None:
    files = sorted(REFERENCE.glob("*.json"))
    assert files
    for file in files:
        result = ew.schedule(ew.load(file, kind="opgraph"), alignment="graph")
        assert result.proved and result.arena_bytes == result.peak_bytes, file.name


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="no reference data: set EDGEWATT_REFERENCE")
def test_where_sizes_are_rounded_up_no_order_has_a_smaller_arena() -> None:
    result = ew.schedule(ew.load(REFERENCE / "swiftnet_cellC_folded.json", kind="opgraph"), alignment=64)
    assert (result.peak_bytes, result.arena_bytes, result.arena_lower_bound_bytes) == (32_536, 32_588, 32_588)


def test_the_bound_of_an_arena_holds_for_every_order() -> None:
    """All orders of a small graph, each placed exactly."""
    from itertools import permutations

    from reorder.operators.schedule.arena import arena
    from reorder.operators.schedule.operator_problem import OperatorProblem
    from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor

    rng = np.random.default_rng(3)
    for _ in range(12):
        nodes: list[Operator] = [Operator("x", INPUT, (), (Tensor("x", (1,), int(rng.integers(1, 40)), "x"),))]
        for k in range(5):
            given = sorted({nodes[int(i)].name for i in rng.integers(0, len(nodes), 2)})
            t = Tensor(f"t{k}", (1,), int(rng.integers(1, 40)), f"t{k}")
            nodes.append(Operator(t.name, "OP", tuple(given), (t,)))
        graph = OpGraph("g", tuple(nodes), ("t4",), allow_disconnected=True)
        problem = OperatorProblem(graph)
        orders = []
        for order in permutations(range(6)):
            try:
                orders.append(problem.check_order(np.array(order)))
            except InputError:
                continue
        best = min(arena(problem, order, "exact", alignment=16).height for order in orders)
        found = ew.schedule(graph, alignment=16)
        assert found.arena_lower_bound_bytes <= best <= found.arena_bytes


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)")
def test_the_page_draws_without_errors(browser: Browser, files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(arena_page(of_schedule(ew.schedule(ew.generators.cell("darts_v2")))), encoding="utf-8")
    with browser.page(page, 1200) as shown:
        shown.wait("document.body.dataset.drawn === '2'")
        assert shown.failures == [] and "(the peak)" in shown.document
