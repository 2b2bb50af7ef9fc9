"""What was swept is named: in reports, tables, comparisons and failures."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.pages.report import read_results, summary
from edgewatt.results.record_rows import flat, format_value
from edgewatt.results.swept import point_names, swept_axes, title_of
from edgewatt.runs.plan import load_sweep

pytestmark = pytest.mark.application

NETWORK = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 12, "density": 0.4}}
CACHES = [
    [{"size_bytes": size, "ways": ways, "policy": policy}]
    for size, ways, policy in itertools.product((512, 1024), (2, 4), ("lru", "plru"))
]
HARDWARE: dict[str, Any] = {
    "name": "hardware",
    "base": {"network": NETWORK, "fast_memory": {"size": 8}},
    "grid": {"caches": CACHES, "dram.part": ["lpddr4-3200", "hbm2"]},
}


def axes(*configs: dict[str, Any]) -> dict[str, list[Any]]:
    return {axis.title: axis.values for axis in swept_axes(configs)}


def test_every_varying_key_is_an_axis() -> None:
    one = {"caches": [{"size_bytes": 512, "ways": 2, "policy": "lru"}], "engine": {"accesses_per_ns": 1.0}}
    two = {"caches": [{"size_bytes": 512, "ways": 4, "policy": "lru"}], "engine": {"accesses_per_ns": 0.5}}
    assert axes(one, two) == {"L1 ways": [2, 4], "engine accesses per (ns)": [1.0, 0.5]}
    assert axes(one, {**one, "caches": []}) == {"on-chip memory": ["0.5 KiB 2-way lru", "no cache"]}
    assert axes({"network": {"prune": None}}, {"network": {"prune": {"density": 0.1, "scope": "layer"}}}) == {
        "prune": ["none", "density 0.1, scope layer"]
    }
    assert axes({"dram": {"part": "mine", "sha256": "aaaaaaaaaaaa"}}, {"dram": {"part": "mine", "sha256": "bbbb"}}) == {
        "dram content": ["aaaaaaaa", "bbbb"]
    }
    assert axes({"dram": {"part": "a", "sha256": "x"}}, {"dram": {"part": "b", "sha256": "y"}}) == {}
    assert (
        title_of("caches.1.size_bytes") == "L2 size (bytes)"
        and format_value("L2 size (bytes)", 8192) == "L2 size 8 KiB"
    )


def test_a_value_that_points_leave_out_is_the_default() -> None:
    assert axes({"engine": {"clock_ghz": 0.5}}, {"engine": {}}) == {"engine clock ghz": ["0.5", "default"]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"orderings": ["by-source"], "formats": ["fp16", "fp32"]}, "no other order was measured with this"),
        ({"idle": [0.3, 0.6]}, "idle 0.6: "),
        ({"engine.clock_ghz": [0.5, 1]}, "engine clock ghz default: "),
        ({"measure": ["io", "all"]}, "What differs: ordering"),
        ({"network.generate.density": [0.2, 0.4]}, "2 networks; lpddr4-3200"),
        ({"dram.part": ["lpddr4-3200", "hbm2"]}, "lpddr4-3200 or hbm2, raw bus"),
        ({"layout.lanes": [2, 4]}, "per inference, 2 or 4 inputs at a time"),
        ({"batch": [8]}, "energy and time per inference."),
    ],
)
def test_what_differs_is_said_once_and_rightly(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    """Numbers of `idle`, some points with I/Os alone, defaults among values: tracebacks, two machines of one name."""
    base = {"network": NETWORK, "caches": CACHES[0], "orderings": ["two-optimal", "by-source"]}
    swept = {"base": {**base, **{k: v for k, v in changes.items() if k in base or k == "formats"}}}
    swept["grid"] = {key: value for key, value in changes.items() if key not in swept["base"]}
    (tmp_path / "s.yaml").write_text(json.dumps(swept))
    said = ""
    for options in ([], ["-v"]):
        result = CliRunner().invoke(app, ["run", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "r"), *options])
        assert result.exit_code == 0, result.output
        said += " ".join(result.output.split())
    assert "take any order" not in said or "orders differ" in said
    page = tmp_path / "r.html"
    assert CliRunner().invoke(app, ["report", str(tmp_path / "r"), "-o", str(page)]).exit_code == 0
    assert words in said + page.read_text()


def test_a_page_says_which_records_of_a_folder_it_leaves_out(tmp_path: Path) -> None:
    """The report had one point, `collect` four, and nothing said why."""
    for network in (NETWORK, {"generate": {**NETWORK["generate"], "width": 9}}):
        ew.sweep({"base": {"network": network, "measure": "io"}}, results=tmp_path, executor="inline")
    said = summary(read_results(tmp_path))
    assert any(line.startswith("1 records of earlier sweeps in this folder are not shown") for line in said), said


def test_engines_are_excluded_by_their_number() -> None:
    base = {"network": NETWORK, "caches": CACHES[0]}
    plan = load_sweep({"base": base, "grid": {"engines": [1, 2]}, "exclude": [{"engines": 2}]})
    assert len(plan.points) == 1


def test_a_page_shows_the_fewest_of_several_points(tmp_path: Path) -> None:
    swept = {"base": {"network": NETWORK, "measure": "io", "orderings": ["by-source"]}, "grid": {"seed": [0, 1]}}
    swept["grid"]["network.generate.seed"] = [3, 1, 2]
    points = ew.sweep(swept, results=tmp_path, executor="inline").records
    (mark,) = read_results(tmp_path).io_curves
    assert mark["io"] == min(record.results["io"]["reads"] + record.results["io"]["writes"] for record in points)


def test_a_hardware_sweep_is_named_everywhere(tmp_path: Path) -> None:
    swept = ew.sweep(HARDWARE, results=tmp_path / "a", executor="inline")
    assert len(swept) == 16
    data = read_results(tmp_path / "a")
    assert {axis.title for axis in data.axes} == {"L1 size (bytes)", "L1 ways", "L1 policy"}
    labels = [row["label"] for row in data.rows]
    assert len(set(labels)) == 16 and not any("[" in label for label in labels), labels
    assert "hbm2, L1 policy lru, L1 size 512 B, L1 ways 2" in labels
    ew.report(tmp_path / "a", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    for word in ("L1 size (bytes)", "L1 ways", "L1 policy"):
        assert text.count(word) >= 3, f"{word}: column, tooltip and axis"
    assert "L1 policy" in re.sub("<[^>]+>", "", text.split('id="summary"')[1].split("</section>")[0])
    ew.sweep({**HARDWARE, "base": {**HARDWARE["base"], "formats": "int8"}}, results=tmp_path / "b", executor="inline")
    assert "L1 policy plru" in " ".join(pair["point"] for pair in ew.results.compare(tmp_path / "a", tmp_path / "b"))


def test_shipped_sweep_example_says_which_cache(tmp_path: Path) -> None:
    sweep = Path(__file__).parents[2] / "configs" / "examples" / "sweep.yaml"
    names = point_names([point.config for point in ew.config.load_sweep(sweep).points])
    assert all("L1 size 8 KiB" in name or "L1 size 32 KiB" in name for name in names)
    assert len(set(names)) == len(names)


def test_comparison_says_what_it_compared(tmp_path: Path) -> None:
    few = {**HARDWARE, "grid": {"caches": CACHES[:3], "encoder": ["raw"]}}
    more = {**HARDWARE, "grid": {"caches": CACHES[1:], "encoder": ["dbi-dc"]}}
    for name, config in (("a", few), ("b", more)):
        ew.sweep(config, results=tmp_path / name, executor="inline")
    found = ew.results.compare(tmp_path / "a", tmp_path / "b")
    assert len(found) == 2 and found.alone == (1, 5)
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "only the 2 points that both have are compared: A has 1 more, B 5" in done.output, done.output
    assert "in detail, the point that changes most" in done.output
    assert "the same in every point: I/Os" in done.output, "columns of zeros are said in words"
    json_ = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", "-"])
    assert len(json.loads(json_.stdout)) == 2


def test_sweep_json_holds_the_table(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(json.dumps(HARDWARE))
    arguments = ["sweep", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "r"), "--executor", "inline", "--json", "-"]
    found = json.loads(CliRunner().invoke(app, arguments).output)
    assert found["points"] == 16 == len(found["rows"])
    assert {"ordering", "energy_pj", "time_ns", "part"} <= set(found["rows"][0])
    assert len({row["caches_0_ways"] for row in found["rows"]}) == 2


def test_a_failure_names_the_point(tmp_path: Path) -> None:
    grid = {"fast_memory.size": [8, 9], "orderings": ["two-optimal", {"kind": "file", "path": str(tmp_path / "o.npz")}]}
    (tmp_path / "o.npz").write_bytes(b"no order")
    (tmp_path / "s.yaml").write_text(json.dumps({"base": HARDWARE["base"], "grid": grid}))
    done = CliRunner().invoke(
        app, ["sweep", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "r"), "--executor", "inline"]
    )
    assert done.exit_code == 1
    failed = sorted(line for line in done.output.splitlines() if line.startswith("failed:"))
    assert len(failed) == 2 and all("file" in line for line in failed), done.output
    assert [("M 8" in line, "M 9" in line) for line in failed] == [(True, False), (False, True)]


def test_numbers_in_legends_stand_by_size() -> None:
    from edgewatt.pages.chart import category

    rows = [{"memory": size} for size in (100, 8, 1000, 8)]
    assert category("memory", "M", rows)["sort"] == [8, 100, 1000]
    assert category("ordering", "order", [{"ordering": "b"}, {"ordering": "a"}])["sort"] == ["b", "a"]


def test_flat_is_one_mapping() -> None:
    assert flat({"a": {"b": [1, 2], "c": [{"d": 3}]}}) == {"a.b": [1, 2], "a.c.0.d": 3}


@pytest.mark.parametrize("name", ["sweep", "run"])
def test_a_custom_part_has_one_name(tmp_path: Path, name: str) -> None:
    shipped = Path(__file__).parents[2] / "configs" / "dram" / "lpddr4-3200.yaml"
    (tmp_path / "file-stem.yaml").write_text(re.sub(r"(?m)^name:.*$", "name: my-part", shipped.read_text()))
    (record,) = ew.run({**HARDWARE["base"], "dram": {"part": str(tmp_path / "file-stem.yaml")}})
    assert record.config["dram"]["part"] == "my-part"
