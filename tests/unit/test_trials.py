"""What people met who tried the commands and the façade on networks of their own."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from traces.base.errors import InputError
from traces.generators.networks import uniform_layers
from traces.readers.native import save

pytestmark = pytest.mark.application

BASE: dict[str, Any] = {
    "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}},
    "fast_memory": {"size": 8},
    "measure": "io",
}


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_loaded_records_are_a_list_that_shows_itself_in_few_words(tmp_path: Path) -> None:
    memories = list(range(6, 46))
    ran = ew.run({"base": BASE, "grid": {"fast_memory.size": memories}}, results=tmp_path)
    found = ew.results.load_records(tmp_path)
    assert len(found) == len(memories) and [record.hash for record in found] == [record.hash for record in ran]
    assert found[0].config["fast_memory"]["size"] == 6 and found[-1].config["fast_memory"]["size"] == 45
    assert isinstance(found, list) and found == ran and found != ran[:3]
    for held in (found, ran, found[3:9], ew.sweep(BASE, results=tmp_path, executor="inline").records):
        line, table = repr(held), held._repr_html_()
        assert line.startswith(f"<Records points {len(held)}") and len(line) < 200, line
        assert table.startswith("<table>") and "points" in table
        assert len(held.frame()) == len(held)
    assert "M" in repr(found), "what varies is said"
    assert repr(found[:0]) == "<Records points 0>"


def test_records_draw_the_charts_of_the_report(tmp_path: Path) -> None:
    altair = pytest.importorskip("altair")
    ew.run({"base": BASE, "grid": {"fast_memory.size": [6, 12]}}, results=tmp_path)
    assert isinstance(ew.results.load_records(tmp_path).plot.io(), altair.TopLevelMixin)


def test_two_files_of_orders_are_named(tmp_path: Path) -> None:
    net = tmp_path / "net.npz"
    save(uniform_layers([12, 10, 8], 0.5, seed=0), net)
    for method in ("by-source", "two-optimal"):
        assert invoke("order", net, "-m", method, "-M", 7, "-o", tmp_path / f"{method}.npz").exit_code == 0
    files = [tmp_path / "by-source.npz", tmp_path / "two-optimal.npz"]
    done = invoke("pays", net, "--order", files[0], "--against", files[1], "--json", tmp_path / "p.json")
    assert done.exit_code == 0, done.output
    assert "by-source.npz against two-optimal.npz" in done.output.replace("\n", " "), done.output
    assert "file against file" not in done.output
    assert json.loads((tmp_path / "p.json").read_text())["order"] == "by-source.npz"


def test_arena_takes_what_schedule_writes(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    done = invoke("schedule", "darts_v2", "--json", plan)
    assert done.exit_code == 0, done.output
    wanted = json.loads(plan.read_text())
    done = invoke("arena", plan, "--json", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["height"], found["alignment"]) == (wanted["arena_bytes"], wanted["alignment"])
    assert len(found["offsets"]) == len(wanted["buffers"]) and wanted["alignment"] == 64
    placed = tmp_path / "placed.csv"
    assert invoke("arena", plan, "-o", placed).exit_code == 0
    assert placed.read_text().startswith("id,lower,upper,size,offset\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"peak_bytes": 3}, "`edgewatt schedule MODEL --json` writes it; there is none"),
        ({"buffers": 7}, "'buffers' is a list of mappings"),
        ({"buffers": [7]}, "entry 1 of 'buffers': a mapping with id, lower, upper and size is wanted"),
        ({"buffers": [{"id": "a", "lower": 0, "upper": 2}]}, "entry 1 of 'buffers': no 'size'"),
        (
            {"buffers": [{"id": "a", "lower": 0, "upper": 2, "size": True}]},
            "entry 1 of 'buffers': size is True: a whole number",
        ),
        ({"buffers": [{"id": "a", "lower": 2, "upper": 2, "size": 1}]}, "entry 1 of 'buffers': live from 2 to 2"),
        (
            {"buffers": [{"id": "a", "lower": 0, "upper": 2, "size": 1}] * 2},
            "entry 2 of 'buffers': buffer 'a' is already in entry 1",
        ),
        ({"buffers": [{"id": "a", "lower": 0, "upper": 2, "size": 1.5}]}, "size is 1.5: a whole number"),
    ],
)
def test_bad_lists_of_buffers_are_refused(tmp_path: Path, content: Any, message: str) -> None:
    file = tmp_path / "b.json"
    file.write_text(json.dumps(content))
    done = invoke("arena", file)
    assert isinstance(done.exception, InputError) and message in str(done.exception), done.exception


def test_schedule_has_the_short_option_for_its_output(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    import onnx
    from onnx import TensorProto, helper

    put = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in ("x", "y")]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Sigmoid", ["a"], ["y"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", put[:1], put[1:])), str(model))
    done = invoke("schedule", model, "-o", tmp_path / "back.onnx")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "back.onnx").exists()


def test_equal_folders_are_said_to_be_equal(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ew.run({"base": BASE, "grid": {"fast_memory.size": [6, 12]}}, results=tmp_path / name)
    done = invoke("compare", tmp_path / "a", tmp_path / "b")
    assert done.exit_code == 0, done.output
    assert "changes most" not in done.output, done.output
    assert "nothing differs: " in done.output and "all 2 points are in both" in done.output


def test_a_setting_is_said_once_in_the_name_of_a_point(tmp_path: Path) -> None:
    network = BASE["network"]["generate"]
    for name, ordering in (("a", "two-optimal"), ("b", "by-source")):
        grid = {"seed": [1, 2], "network.generate": [{**network, "seed": 1}, {**network, "seed": 2}]}
        config = {"base": {**BASE, "orderings": [ordering]}, "grid": grid}
        ew.sweep(config, results=tmp_path / name, executor="inline")
    pairs = ew.results.compare(tmp_path / "a", tmp_path / "b")
    names = [pair["point"] for pair in pairs]
    assert len(set(names)) == len(names), names
    for name in names:
        said = name.split(" / ")
        assert len(said) == len(set(said)), name


def test_two_orders_of_one_method_are_told_apart() -> None:
    network = uniform_layers([12, 10, 8], 0.5, seed=0)
    orders = [ew.order(network, "random-topological", memory=6, seed=seed) for seed in (1, 2)]
    names = ew.pays(network, orders[0], against=orders[1], sizes=[512], lanes=[2]).names
    assert names[0] != names[1] and "seed=1" in names[0] and "seed=2" in names[1], names


def test_seeds_of_a_generated_network_are_seeds_too(tmp_path: Path) -> None:
    """The range over networks drawn by one rule is what a student asks for; the point's own seed comes first."""
    from edgewatt.pages.data import gather

    def groups(grid: dict[str, list[int]]) -> list[set[int]]:
        ran = ew.run({"base": BASE, "grid": {"fast_memory.size": [6, 12], **grid}})
        data = gather(ran, title="", baseline=None, failed={})
        assert sorted(number for group in data.groups for number in group) == list(range(len(ran)))
        return [{data.rows[number]["memory"] for number in group} for group in data.groups]

    assert groups({"network.generate.seed": [1, 2, 3]}) == [{6}, {12}]
    assert sorted(groups({"seed": [0, 1], "network.generate.seed": [1, 2]}), key=min) == [{6}, {6}, {12}, {12}]


def test_exports_say_which_of_several_points(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({**BASE, "measure": "all", "orderings": ["by-source", "two-optimal"]}))
    done = invoke("export", config, "-f", "matrix", "-o", tmp_path / "m.npz")
    assert done.exit_code == 0 and "point 0 of 0 to 1 (--point): by-source" in done.output, done.output
    done = invoke("export", config, "-f", "dinero", "-o", tmp_path / "m.din", "-s", "orderings=two-optimal")
    assert done.exit_code == 0 and "--point" not in done.output, done.output


def test_a_cache_is_said_once_beside_no_cache(tmp_path: Path) -> None:
    from edgewatt.results.swept import point_names

    caches = [[], [{"size_bytes": 8192, "ways": 2}], [{"size_bytes": 16384, "ways": 4}]]
    ran = ew.run({"base": {**BASE, "measure": "all"}, "grid": {"caches": caches}})
    assert point_names([record.config for record in ran]) == ["no cache", "8 KiB 2-way lru", "16 KiB 4-way lru"]


def test_notes_and_hints_name_what_one_has(tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(16, 8, 4)).astype("float32")
    np.put_along_axis(weights, np.argsort(np.abs(weights), 2)[:, :, :2], 0, 2)
    file = tmp_path / "w.safetensors"
    save_file({"fc.weight": weights.reshape(16, 32), "fc.bias": np.zeros(16, "float32")}, file)
    done = invoke("order", file, "-M", 12, "-m", "two-optimal")
    assert "is 2:4 sparse" in done.output and f"{file}: {file}" not in done.output, done.output
    done = invoke("order", file, "-M", 12, "--names", "fc")
    assert "(known: fc.weight)" in str(done.exception)
