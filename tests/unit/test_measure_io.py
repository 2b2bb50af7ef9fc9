"""`measure: io` stops before trace and machine, with the counts that the full run has."""

from pathlib import Path

import pytest

import edgewatt as ew
from edgewatt.cli.parts.tables import show_records
from edgewatt.results import record_rows
from edgewatt.results.record import Record
from edgewatt.results.record_rows import Column, row_of

pytestmark = pytest.mark.application

CONFIG = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 2, "width": 12, "density": 0.4}},
    "orderings": ["two-optimal", "by-source"],
    "fast_memory": {"size": 6},
}


def test_io_alone_counts_what_the_full_run_counts() -> None:
    for counted, played in zip(ew.run({**CONFIG, "measure": "io"}), ew.run(CONFIG), strict=True):
        assert counted.results.keys() < played.results.keys()
        assert {key: played.results[key] for key in counted.results} == counted.results
        assert counted.hash != played.hash
        assert row_of(counted).items() <= {**row_of(played), "hash": counted.hash}.items()


def test_reports_and_comparisons_take_records_of_both_kinds(tmp_path: Path) -> None:
    ew.sweep({"base": CONFIG, "grid": {"measure": ["io", "all"]}}, results=tmp_path / "r", executor="inline")
    text = Path(ew.report(tmp_path / "r", tmp_path / "page.html")[0]).read_text()
    assert "I/O" in text
    ew.run({**CONFIG, "measure": "io"}, results=tmp_path / "io")
    ew.report(tmp_path / "io", tmp_path / "io.html")
    pairs = ew.results.compare(tmp_path / "io", tmp_path / "io")
    assert [pair["changes"]["io"]["percent"] for pair in pairs] == [0.0, 0.0]
    assert all("energy_pj" not in pair["changes"] for pair in pairs)


def test_records_hold_the_gap_to_the_best_bound(capsys: pytest.CaptureFixture[str]) -> None:
    dense = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 12, "density": 0.5}}
    records = ew.run({**CONFIG, "network": dense, "fast_memory": {"size": 3}, "measure": "io"})
    first = records[0].results
    assert (
        first["best_bound"]["total"] > first["bounds"]["lower_total"] and first["best_bound"]["argument"] == "windows"
    )
    assert all(record.results["best_bound"] == first["best_bound"] for record in records)
    for record in records:
        row = row_of(record)
        found, lower = row["io"] - row["io_bound"], records[0].results["io"]["total"] - row["io_bound"]
        assert row["gap_to_bound"] == found / lower < row["gap"] or row["gap"] >= 1
    show_records(records, title="dense")
    shown = " ".join(capsys.readouterr().out.split())
    assert f"at least {first['best_bound']['total']} (windows)" in shown and " best " in shown
    older = {key: value for key, value in first.items() if "best_bound" not in key}
    row = row_of(Record({**records[0].canonical, "results": older}))
    assert (row["gap_to_bound"], row["io_bound"], row["bound"]) == (row["gap"], row["io_lower"], "theorem-1")


def test_a_column_is_declared_in_one_place(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One with a `brief` head is on the terminal too; nothing else names it."""
    records = ew.run({**CONFIG, "measure": "io"})
    monkeypatch.setitem(record_rows.COLUMNS, "io_lower", Column("io_lower", "lower", "count", brief="Theorem 1"))
    monkeypatch.setitem(record_rows.COLUMNS, "gap", Column("gap", "gap", "decimal", brief="beyond"))
    records[0].results["gap"] = 1 / 7
    show_records(records, title="")
    shown = capsys.readouterr().out.split()
    assert {"Theorem", "beyond", "0.1429"} <= set(shown)  # four digits, not all that a float has
