"""Records whose checksums are right and whose content is not edgewatt's: read by every command that reads results."""

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
from edgewatt.pages.report import report
from edgewatt.results.collection import collect, frame
from edgewatt.results.comparison import compare
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from edgewatt.runs.compute import rerun
from papers.catalogue import FIGURES
from papers.figure import run_figure
from papers.page import compare_claims, paper_page
from traces.base.errors import InputError

pytestmark = pytest.mark.application

CONFIG: dict[str, Any] = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 2, "width": 6, "density": 0.5}},
    "orderings": ["two-optimal", {"kind": "connection-reordering", "iterations": 50}],
    "caches": [{"size_bytes": 8192, "line_bytes": 32, "ways": 2, "policy": "lru"}],
    "dram": {"part": "lpddr4-3200"},
    "technology": "lop-45nm",
}
WORDS = [None, True, -1, 0, 1e308, "x", "</script><script>x", "\x1b[31m", [], {}, [[1]], {"a": 1}, 2**70, "9" * 500]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:4]) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*path, key)
        yield from places(item, (*path, key))


def forged(record: Record, pick: random.Random) -> Record:
    """Return a record with one or two other values, hashed again."""
    canonical, provenance = json.loads(json.dumps([record.canonical, record.provenance]))
    for _ in range(pick.choice((1, 1, 2))):
        part = pick.choice([canonical["config"], canonical["results"], canonical["results"], provenance])
        *way, last = pick.choice(list(places(part)) or [("new",)])
        for key in way:
            part = part[key]
        if pick.random() < 0.3 and isinstance(part, dict):
            part.pop(last, None)
        else:
            part[last] = pick.choice(WORDS)
    return Record(canonical | {"hash": content_hash(canonical["config"])}, provenance)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    ew.run(CONFIG, results=folder)
    return folder


def test_a_forged_record_is_an_input_error(whole: Path, tmp_path: Path) -> None:
    records = list(Store(whole))
    ways = {
        "collect": lambda folder: collect(folder, tmp_path / "o.csv"),
        "parquet": lambda folder: collect(folder, tmp_path / "o.parquet"),
        "frame": lambda folder: frame(Store(folder)),
        "compare": lambda folder: compare(whole, folder),
        "repr": lambda folder: [(repr(record), record._repr_html_()) for record in Store(folder)],
        "rerun": lambda folder: rerun(next((folder / "records").glob("*.json"))),
        "report": lambda folder: report(folder, tmp_path / "r.html"),
    }
    refused = dict.fromkeys(ways, 0)
    for case in range(60):
        pick = random.Random(case)
        store = Store(tmp_path / f"{case}").open()
        for record in records:
            store.put(forged(record, pick))
        for name, read in ways.items():
            if name in ("report", "rerun") and case % 4:
                continue  # they take a tenth of a second each
            try:
                read(store.folder)
            except InputError as error:
                refused[name] += 1
                assert len(str(error)) < 1000
    assert refused["repr"] < min(refused["collect"], refused["compare"]), refused
    page = tmp_path / "r.html"
    assert not page.exists() or "<script>x" not in page.read_text()


@pytest.mark.parametrize("name", FIGURES)
def test_forged_results_of_a_paper_s_figure_are_an_input_error(name: str, tmp_path: Path) -> None:
    figure = FIGURES[name]
    for number, results in enumerate(({}, {"a": 1}, {str(k): None for k in range(600)})):
        store = figure.open(tmp_path / f"{number}").open()
        for job in figure.jobs(False)[:3]:
            identity = figure.identity(job)
            canonical = {"config": identity, "hash": content_hash(identity), "seed": 0, "results": results}
            store.put(Record(canonical, {}))
        done = run_figure(figure, results=tmp_path / f"{number}", run=False)
        for read in (
            lambda done=done: paper_page([done], tmp_path / "p.html"),
            lambda done=done: compare_claims([done]),
        ):
            with contextlib.suppress(InputError):
                read()
    with pytest.raises(InputError, match=f"results of {name}: its content is not what|no job of these figures"):
        paper_page([run_figure(figure, results=tmp_path / "0", run=False)], tmp_path / "p.html")


def test_what_a_spreadsheet_would_run_is_text(whole: Path, tmp_path: Path) -> None:
    record = next(iter(Store(whole)))
    config = {**record.config, "x": "@x", "y": "\r+y"}
    store = Store(tmp_path / "s").open()
    store.put(Record({**record.canonical, "config": config, "hash": content_hash(config)}, record.provenance))
    collect(store.folder, tmp_path / "o.csv")
    text = (tmp_path / "o.csv").read_bytes()
    assert b"'@x" in text and b"'\r+y" in text


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "1" + 5000 * "0"])
def test_numbers_that_json_has_not(whole: Path, number: str) -> None:
    raw = next((whole / "records").glob("*.json")).read_text()
    for key in ('"seed":', '"edgewatt":', '"time_ns":'):
        place = raw.index(key) + len(key)
        damaged = raw[:place] + number + raw[raw.index(",", place) :]
        with pytest.raises(
            InputError, match=r"r.json: the record is damaged.*without the file its point is computed again"
        ):
            Record.from_bytes(damaged.encode(), "r.json")


def test_json_of_another_command_is_not_called_damaged() -> None:
    with pytest.raises(InputError, match=r"^r.json: no record, which `run` and `sweep` write") as said:
        Record.from_bytes(b'{"cost": 3, "order": []}', "r.json")
    assert "damaged" not in str(said.value)
