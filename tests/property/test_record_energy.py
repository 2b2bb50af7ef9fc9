"""A record's energies on any machine: dynamic + static = total, the sum of terms with unit, kind and range."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.results.record_rows import row_of
from hwmodel.energy.onchip import chip_area
from hwmodel.machine import Machine
from hwmodel.parts.part_file import part_names
from traces.base.errors import InputError

pytestmark = pytest.mark.application

NETWORK = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 12, "density": 0.4}}
MEMORIES = (
    {"caches": [{"size_bytes": 8192}]},
    {"caches": [{"size_bytes": 8192, "write": "through", "allocate": False}, {"size_bytes": 65536, "ways": 8}]},
    {"scratchpad": {"size_bytes": 4096}},
)
IDLE = ("all", "none", "capacity", "bandwidth", 0.25)


def checked(record):
    """Return a record's energies, which add up."""
    energy = record.results["energy_pj"]
    terms = energy["terms"].values()
    assert {term["kind"] for term in terms} <= {"dynamic", "static"}
    for term in terms:
        assert set(term) == {"count", "unit", "kind", "pj", "low", "high"}
        assert term["unit"] and term["count"] > 0
        assert 0 <= term["low"] <= term["pj"] * (1 + 1e-12) and term["pj"] <= term["high"] * (1 + 1e-12)
    for kind in ("dynamic", "static"):
        assert energy[kind] == pytest.approx(sum(t["pj"] for t in terms if t["kind"] == kind), rel=1e-12)
    assert energy["dynamic"] + energy["static"] == energy["total"]
    groups = energy["interface"] + energy["dram"] + energy.get("onchip", 0.0) + energy.get("compute", 0.0)
    assert groups == pytest.approx(energy["total"], rel=1e-12)
    assert energy["low"] <= energy["total"] * (1 + 1e-12) and energy["total"] <= energy["high"] * (1 + 1e-12)
    row = row_of(record)
    assert (row["dynamic_energy_pj"], row["static_energy_pj"]) == (energy["dynamic"], energy["static"])
    return energy


@settings(max_examples=25, deadline=None)
@given(
    part=st.sampled_from(part_names()),
    memory=st.sampled_from(MEMORIES),
    technology=st.sampled_from(("none", "lop-45nm", "lop-22nm")),
    idle=st.sampled_from(IDLE),
    lanes=st.sampled_from((1, 16)),
    encoder=st.sampled_from(("raw", "base-xor+dbi-dc")),
    timing=st.sampled_from(("replay", "system")),
)
def test_energies_of_a_record_add_up(part, memory, technology, idle, lanes, encoder, timing):
    config = {
        "network": NETWORK, "dram": {"part": part}, "technology": technology, "idle": idle, "timing": timing,
        "layout": {"lanes": lanes}, "encoder": encoder,
    }  # fmt: skip
    (record,) = ew.run({**config, **memory})
    energy = checked(record)
    if idle == "none":
        assert energy["static"] == 0 and energy["idle"]["whole_static"] > 0
    if idle == "all":
        assert energy["static"] == pytest.approx(energy["idle"]["whole_static"])
    assert ("area_um2" in record.results) == (technology != "none")


def test_the_share_of_idle_energy():
    """Of the device's static energy is billed what the data fill, or what the bandwidth used is of the peak."""
    found = {idle: ew.run({"network": NETWORK, "system": "scratchpad-8k", "idle": idle})[0].results for idle in IDLE}
    energy = {idle: results["energy_pj"] for idle, results in found.items()}
    assert len({e["dynamic"] for e in energy.values()}) == 1
    leaks = energy["all"]["terms"]["scratchpad_leakage"]["pj"]
    device = energy["all"]["static"] - leaks
    traffic, part = found["all"]["traffic"], ew.dram.load_part("lpddr4-3200")
    moved = sum(found["all"]["dram"]["commands"][name] for name in ("RD", "WR")) * traffic["block_bytes"]
    peak = part.data_rate_mts * 1e-3 * part.organisation.dq_bits / 8  # bytes per ns
    assert energy["bandwidth"]["static"] - leaks == pytest.approx(device * moved / (peak * found["all"]["time_ns"]))
    assert energy["capacity"]["static"] - leaks < device * 1e-4
    assert energy[0.25]["static"] - leaks == pytest.approx(device / 4)
    assert row_of(ew.run({"network": NETWORK, "system": "edge", "idle": 0.25})[0])["idle"] == "0.25"
    for wrong in ("some", 1.5, -0.1):
        with pytest.raises(InputError, match="idle"):
            Machine(idle=wrong)


def test_a_sweep_names_the_option_in_the_point_only_where_it_is_not_the_default():
    usual, named, other = (ew.run({"network": NETWORK, "system": "edge", **keys})[0] for keys in (
        {}, {"idle": "all"}, {"idle": "bandwidth"}))  # fmt: skip
    assert usual.hash == named.hash != other.hash and "idle" not in usual.config


def test_area_is_memory_and_codecs():
    from hwmodel.caches.spec import CacheSpec

    spec = CacheSpec(8192, 64, 4)
    plain, coded, two = (
        {area.name: area for area in chip_area(Machine((spec,), encoder=e, technology="lop-45nm"))}
        for e in ("raw", "base-xor", "base-xor+dbi-dc")
    )
    assert set(plain) == {"l1"} and plain["l1"].um2 == pytest.approx(161561)
    assert coded["codec"].um2 == pytest.approx(2232 * (45 / 16) ** 2, rel=1e-3)
    assert two["codec"].um2 == 2 * coded["codec"].um2
    assert all(a.low_um2 < a.um2 < a.high_um2 for a in two.values())


def test_a_larger_memory_does_not_always_win():
    """Energy falls with the size of the scratchpad, area rises: both ends are on the front, and a limit holds."""
    space = {
        "base": {"network": NETWORK, "system": "scratchpad-8k", "layout": {"lanes": 16}},
        "grid": {"scratchpad.size_bytes": [2048, 4096, 16384]},
        "optimize": {"objectives": ["energy_pj", "area_um2"]},
    }
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        front = ew.results.optimize(space, results=folder, executor="inline").front
        limit = {**space, "optimize": {"objectives": ["energy_pj"], "constraints": ["area_um2 <= 1 x baseline"]}}
        kept = ew.results.optimize(limit, results=folder, executor="inline").front
    areas = [row_of(record)["area_um2"] for record in front]
    assert len(front) > 1 and areas == sorted(areas, reverse=True)
    assert [r.config["scratchpad"]["size_bytes"] for r in kept] == [2048]


def test_older_records_are_read_without_what_they_lack():
    from edgewatt.results.record import Record

    (record,) = ew.run({"network": NETWORK, "system": "edge"})
    newer = ("dynamic", "static", "idle", "low", "high")
    energy = {k: v for k, v in record.results["energy_pj"].items() if k not in newer}
    results = {k: v for k, v in record.results.items() if k not in ("area_um2", "area")} | {"energy_pj": energy}
    old = Record({**record.canonical, "results": results}, {**record.provenance, "counts_version": 3})
    row = row_of(Record.from_bytes(old.to_bytes(), "old.json"))
    assert row["energy_pj"] == energy["total"] and row["dynamic_energy_pj"] is None and row["area_um2"] is None
