"""The stacked bars of a report: parts add up to the total, and the ends are those of the estimates."""

import pytest

import edgewatt as ew
from edgewatt.pages.charts.energy_parts import PARTS, energy_parts
from edgewatt.pages.data import gather
from edgewatt.results.record_rows import row_of

pytestmark = pytest.mark.application

BASE = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 20, "density": 0.4}},
    "orderings": ["two-optimal", "by-source"],
    "formats": ["fp32", "int8"],
    "layout": {"lanes": 4},
}


def records(**more):
    return ew.run({**BASE, **more})


def chart(found):
    return energy_parts(gather(found, title="", baseline=None, failed={}))


def test_parts_add_up_and_ends_are_of_the_total():
    found = records(system="scratchpad-8k")
    spec = chart(found)
    bars, ends = spec["data"]["values"], spec["layer"][1]["data"]["values"]
    rows = {row["label"]: row for row in gather(found, title="", baseline=None, failed={}).rows}
    for label, row in rows.items():
        parts = {bar["part"]: bar["pj"] for bar in bars if bar["point"] == label}
        assert set(parts) == set(PARTS) and sum(parts.values()) == pytest.approx(row["energy_pj"])
        assert parts["on-chip memory"] == row["onchip_energy_pj"] and parts["compute"] == row["compute_energy_pj"]
        end = next(each for each in ends if each["point"] == label)
        assert end["low_pj"] < row["energy_pj"] < end["high_pj"]
    energy, row = found[0].results["energy_pj"], row_of(found[0])
    assert (row["energy_low_pj"], row["energy_high_pj"]) == (energy["low"], energy["high"])
    assert energy["memory_low"] < energy["low"] < energy["total"] < energy["high"]


def test_memory_alone_has_no_chip():
    spec = chart(records(technology="none", caches=[{"size_bytes": 512}]))
    assert {bar["part"] for bar in spec["data"]["values"]} <= {"DRAM", "data wires", "strobes, clock, commands"}


def test_no_machine_no_bars():
    assert chart(ew.run({**BASE, "layout": {}, "measure": "io"})) is None


def test_columns_of_the_page(tmp_path):
    pytest.importorskip("altair", reason="needs the extra 'report'")
    from edgewatt.pages.report import read_results, rendered

    ew.run({**BASE, "system": "edge", "accuracy": True}, results=tmp_path / "r")
    page = rendered(read_results(tmp_path / "r", None))
    for head in ("on-chip nJ", "compute nJ", "DRAM traffic", "energy, low end", "as float64 %"):
        assert head in page
    assert "energy_parts" in page
