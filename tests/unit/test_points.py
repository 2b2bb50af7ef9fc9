"""Points: their names stay what they were, every field counts, and steps are shared by what they read."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.results.record import Record, canonical_json, content_hash
from edgewatt.results.record_rows import row_of
from edgewatt.runs.model import Point
from edgewatt.runs.plan import points_of
from edgewatt.runs.steps import STEPS, identities, inputs, own_steps, shared, steps_of
from traces.base.errors import InputError
from traces.base.resources import config_root

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "points.json").read_text())
IO = {"network", "ordering", "io", "two_optimal", "best_bound"}
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 8, "density": 0.5}}


def one(**config) -> Point:
    return ew.config.load_sweep({"network": NETWORK, "timing": "replay", **config}).points[0]


@pytest.mark.parametrize("name", GOLDEN["runs"])
def test_points_keep_their_hashes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the commit that the golden file names, whatever fields and members came later.

    The hash of the DRAM part's own constants is left out: they may be mended.
    """
    monkeypatch.chdir(config_root().parent)
    golden = GOLDEN["runs"][name]
    found = []
    for point in ew.config.load_sweep(golden["config"]).points:
        dram = {key: value for key, value in point.config["dram"].items() if key != "sha256"}
        found.append(content_hash({**point.config, "dram": dram}))
    assert found == golden["hashes"]


@pytest.mark.parametrize("name", ["record-io", "record-all"])
def test_older_records_are_read_and_repeated(name: str) -> None:
    """Records of that commit: every byte of the canonical part has its place in today's types."""
    path = Path(__file__).parents[1] / "golden" / f"{name}.json"
    record = Record.from_bytes(path.read_bytes(), str(path))
    point = Point.from_config(record.config, record.provenance["paths"])
    assert point.hash == record.hash and canonical_json(point.config) == canonical_json(record.config)
    assert not [change for change in ew.results.rerun(path) if not change["key"].startswith("results.")]


@pytest.mark.parametrize("name", ["all-kinds", "system", "file", "external-trace"])
def test_a_point_is_read_back_from_its_record(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config_root().parent)
    for point in ew.config.load_sweep(GOLDEN["runs"][name]["config"]).points:
        again = Point.from_config(json.loads(canonical_json(point.config)), point.paths, point.name)
        assert again == point and again.hash == point.hash


@pytest.mark.parametrize("name", ["all-kinds", "io", "external-trace"])
def test_every_field_is_read_by_a_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be in the hash for nothing; `measure` chooses the steps."""
    monkeypatch.chdir(config_root().parent)
    point = ew.config.load_sweep(GOLDEN["runs"][name]["config"]).points[0]
    read = {path.split(".")[0] for step in STEPS.values() for path in step.reads}
    read |= {"measure"} | {name for step in STEPS.values() for name in step.derived}
    assert set(point.config) <= read


def test_steps_come_after_what_they_ask_for() -> None:
    point = one(strides=8, accuracy=True)
    seen: set[str] = set()
    steps = steps_of(point)
    for step in own_steps(steps):
        assert {given.name for given in inputs(steps, step).values()} <= seen
        seen.add(step.name)
    assert seen == set(STEPS), "a network with a tuple order has every step"


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"encoder": "dbi-dc"}, IO | {"gaps", "trace", "cache_pass"}),
        ({"fast_memory": {"curve": [5]}}, IO - {"io"} | {"trace", "cache_pass", "replay"}),
        ({"formats": "fp16"}, IO | {"gaps"}),
        ({"dram": {"part": "lpddr4-4266"}}, IO | {"gaps", "trace", "cache_pass"}),
        ({"caches": [{"size_bytes": 4096}]}, {"network"}),
        ({"seed": 1}, {"network", "two_optimal", "best_bound"}),
        ({"search": {"time_limit_s": 5.0}}, {"network", "two_optimal", "best_bound"}),
    ],
)  # fmt: skip
def test_points_share_what_they_do_not_differ_in(change: dict, same: set[str]) -> None:
    a, b = identities(one()), identities(one(**change))
    assert {name for name in a if a[name] == b.get(name)} == same


def test_orderings_and_passes_are_shared_behind_the_caches() -> None:
    plan = ew.config.load_sweep(
        {"base": {"network": NETWORK, "timing": "replay"}, "grid": {"encoder": ["raw", "dbi-dc"], "seed": [0, 1]}}
    )
    named = {point.hash: identities(point) for point in plan.points}
    found = {point_hash: sorted(steps) for point_hash, steps in shared(named).items()}
    assert found == {point_hash: ["cache_pass", "ordering"] for point_hash in named} and len(named) == 4
    assert shared({plan.points[0].hash: named[plan.points[0].hash]}) == {}


def test_points_of_a_sweep_are_those_of_their_configurations() -> None:
    """Sections that configurations share are validated once: words, sizes and whole numbers stay apart."""
    base = {"network": NETWORK, "timing": "replay", "system": "edge"}
    grid: dict[str, list[Any]] = {
        "encoder": ["RAW", "dbi-dc"],
        "caches": [
            ["l1-32k"],
            [{"size_bytes": "8 KiB", "ways": 2}],
            [{"size_bytes": 8192, "ways": 2, "policy": "FIFO"}],
        ],
        "layout.alignment_bytes": [64, 32],
        "idle": [1, 1.0, "all"],
    }
    load_sweep = ew.config.load_sweep
    found = load_sweep({"base": base, "grid": grid})
    alone = []
    for values in itertools.product(*grid.values()):
        one_of = {"base": base, "list": [dict(zip(grid, values, strict=True))]}
        alone += load_sweep(one_of).points
    assert [point.config for point in found.points] == [p.config for p in {p.hash: p for p in alone}.values()]
    for wrong in ({"size_bytes": True, "ways": 2}, {"size_bytes": 8192, "ways": 2.5}):
        with pytest.raises(InputError, match="caches"):
            load_sweep({"base": base, "grid": {"seed": [1, 2], "caches": [[{"size_bytes": 8192, "ways": 2}], [wrong]]}})


def test_expand_needs_no_file_of_its_own() -> None:
    from edgewatt.config.loading import as_document

    assert [p.hash for p in points_of(as_document({"network": NETWORK, "timing": "replay"}))] == [one().hash]


def test_an_order_from_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    """Relative to the configuration; another content is another point, the same content elsewhere the same one."""
    network = ew.run({"network": NETWORK, "measure": "io"})[0].results["network"]
    hashes, totals = [], []
    for folder, backwards in (("a", False), ("b", False), ("c", True)):
        (tmp_path / folder).mkdir()
        order = np.arange(network["connections"])
        half = len(order) // 2
        order[:3] = order[:3][::-1] if backwards and half > 3 else order[:3]
        np.save(tmp_path / folder / "order.npy", order)
        config = {"network": NETWORK, "measure": "io", "orderings": {"kind": "file", "path": "order.npy"}}
        (tmp_path / folder / "run.yaml").write_text(json.dumps(config))
        (record,) = ew.run(tmp_path / folder / "run.yaml")
        hashes.append(record.hash)
        totals.append(record.results["io"]["total"])
        assert not ew.results.rerun(record)
        assert row_of(record)["ordering"] == "file (path=order.npy)"
    assert hashes[0] == hashes[1] != hashes[2] and totals[0] == totals[1]
    np.save(tmp_path / "c" / "order.npy", np.arange(network["connections"]))
    with pytest.raises(ew.InputError, match=r"order.npy: the file has changed"):
        ew.results.rerun(record)


def test_a_part_that_is_edited_is_another_machine(tmp_path: Path) -> None:
    """Of one process, as in a notebook: neither its file nor what it extends is kept from the run before."""
    base, part = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    part.write_text("{name: mine, extends: base.yaml}")
    config = {"network": NETWORK, "timing": "system", "orderings": ["two-optimal"], "dram": {"part": str(part)}}

    def run(t_rcd_ns: int) -> Record:
        of_mine = f"timing: {{tRCD_ns: {{value: {t_rcd_ns}, source: mine}}}}"
        base.write_text(f"{{name: base, extends: lpddr4-3200, {of_mine}}}")
        return ew.run(config)[0]

    quick, slow = run(18), run(24)
    assert quick.hash != slow.hash and quick.results != slow.results


def test_a_part_that_is_edited_after_the_plan_is_refused(tmp_path: Path) -> None:
    part = tmp_path / "mine.yaml"
    part.write_text("{name: mine, extends: lpddr4-3200}")
    plan = ew.config.load_sweep({"network": NETWORK, "dram": {"part": str(part)}, "timing": "system"})
    (record,) = ew.run(plan)
    assert not ew.results.rerun(record)
    part.write_text("{name: mine, extends: lpddr4-3200, timing: {tRCD_ns: {value: 24, source: mine}}}")
    with pytest.raises(InputError, match="has changed since"):
        ew.results.rerun(record)


def test_a_machine_that_is_edited_is_read_again(tmp_path: Path) -> None:
    system = tmp_path / "mine.yaml"
    sizes = []
    for size_bytes in (4096, 8192):
        system.write_text(f"{{scratchpad: {{size_bytes: {size_bytes}}}, dram: {{part: lpddr4-3200}}}}")
        (point,) = ew.config.load_sweep({"network": NETWORK, "system": str(system), "timing": "replay"}).points
        sizes.append(point.machine.scratchpad.size_bytes)
    assert sizes == [4096, 8192]
