"""No cache is the natural baseline: it runs, and tables, reports, comparisons and collections take it."""

import csv
from pathlib import Path

from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.results.record_rows import row_of

NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}
SWEEP = {"base": {"network": NETWORK}, "grid": {"caches": [[], [{"size_bytes": 1024}]]}}


def test_a_point_without_caches_is_a_point_like_any_other(tmp_path: Path) -> None:
    found = ew.sweep(SWEEP, results=tmp_path / "r", executor="inline")
    rows = {len(record.config["caches"]): row_of(record) for record in found.records}
    assert rows[0]["cache_misses"] is None and rows[0]["hit_rate"] is None
    assert rows[0]["dram_reads"] > rows[1]["dram_reads"] > 0, "every access goes to memory"
    for timing in ("replay", "system"):
        record = ew.run({"network": NETWORK, "caches": [], "timing": timing})[0]
        assert record.results["cache"] == [] and record.results["energy_pj"]["total"] > 0
    ew.report(tmp_path / "r", tmp_path / "r.html")
    ew.results.collect(tmp_path / "r", tmp_path / "r.csv")
    assert {row["cache_misses"] == "" for row in csv.DictReader((tmp_path / "r.csv").open())} == {True, False}
    one, other = (tmp_path / "r" / "records" / f"{name}.json" for name in found.store.hashes())
    (pair,) = ew.results.compare(one, other)
    assert "energy_pj" in pair["changes"] and "cache_misses" not in pair["changes"]


def test_the_commands_take_it(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        "network: {generate: {kind: random-layered, n_layers: 2, width: 8, density: 0.5}}\n"
    )
    run = ["run", str(tmp_path / "run.yaml"), "-s", "caches=[]", "-o", str(tmp_path / "r")]
    report = ["report", str(tmp_path / "r"), "-o", str(tmp_path / "r.html")]
    export = ["export", *run[1:4], "-f", "dinero", "--level", "bursts", "-o", str(tmp_path / "b.din")]
    for command in (run, report, export):
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    assert "no cache" in CliRunner().invoke(app, run).output
