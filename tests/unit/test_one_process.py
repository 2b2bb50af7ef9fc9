"""One process that goes on and on, as a notebook does: nothing of an earlier call changes what a later one finds."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import edgewatt as ew
from edgewatt.names import PUBLIC
from hwmodel.caches.cache import CacheLevel
from hwmodel.caches.spec import CacheSpec
from reorder.base import ORDERINGS, Ordering
from traces.base.errors import InputError
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor


def config(size: int = 100) -> dict[str, Any]:
    widths = {"kind": "uniform-layers", "widths": [16, 12, 4], "density": 0.5}
    return {"network": {"generate": widths}, "timing": "replay", "fast_memory": {"size": size}}


def sections(value: Any) -> list[dict[str, Any]]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(each for one in inside for each in sections(one))]


def test_a_record_is_its_owners() -> None:
    (record,) = ew.run(config())
    kept = copy.deepcopy((record.config, record.provenance["libraries"]))
    for section in sections(record.config):
        section.update({key: -1 for key, value in section.items() if not isinstance(value, dict)})
    record.provenance["libraries"].clear()
    (again,) = ew.run(config())
    assert (again.config, again.provenance["libraries"]) == kept


def test_a_file_of_the_same_size_and_time_is_another_file(tmp_path: Path) -> None:
    hashes = set()
    for seed in (3, 4):
        matrix = sp.random(10, 20, density=0.3, format="csr", random_state=seed)
        sp.save_npz(tmp_path / "net.npz", matrix, compressed=False)
        os.utime(tmp_path / "net.npz", (1.5e9, 1.5e9))
        (record,) = ew.run({"network": {"file": str(tmp_path / "net.npz")}, "measure": "io"})
        hashes.add(record.hash)
    assert len(hashes) == 2


def test_parts_of_one_name_in_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for t_rcd_ns in (18, 24):
        (tmp_path / str(t_rcd_ns)).mkdir()
        monkeypatch.chdir(tmp_path / str(t_rcd_ns))
        timing = f"timing: {{tRCD_ns: {{value: {t_rcd_ns}, source: mine}}}}"
        Path("p.yaml").write_text(f"{{name: p, extends: lpddr4-3200, {timing}}}")
        os.utime("p.yaml", (1.5e9, 1.5e9))
        assert ew.dram.load_part("p.yaml").constants["timing.tRCD_ns"].value == t_rcd_ns


@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_read_only_too(again: Callable[[Any], Any]) -> None:
    network = ew.generators.uniform_layers([6, 5, 4], 0.5, seed=1)
    assert network.ends is not None  # kept with it
    assert not again(network).ends.flags.writeable and not again(network).weights.flags.writeable
    assert not again(ew.order(network, "by-source", memory=5)).edges.flags.writeable
    given = Tensor("x", (2, 3), 24, "x")
    graph = OpGraph("g", (Operator("in", INPUT, (), (given,)),), ("x",), {"w": np.ones(2)})
    assert again(graph).tensors == graph.tensors and list(again(graph).constants) == ["w"]


def test_an_order_is_not_a_view_of_what_may_change() -> None:
    edges = np.arange(5)
    view = edges.view()
    view.setflags(write=False)
    order = Ordering(view, "given")
    edges[:] = edges[::-1].copy()
    assert order.edges.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("space", PUBLIC)
def test_functions_can_be_sent_to_other_processes(space: str) -> None:
    module = ew if space == "edgewatt" else getattr(ew, space.partition(".")[2])
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value) and not isinstance(value, type):
            assert pickle.loads(pickle.dumps(value)) is value, name


def test_records_of_a_sweep_are_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    swept = ew.sweep(config(), results="out", executor="inline")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert len(swept.records) == 1


def test_a_member_that_is_defined_again_replaces_itself() -> None:
    def define(backwards: bool) -> None:
        @ORDERINGS.register("of-a-cell", summary="as a cell of a notebook makes it")
        def of_a_cell(network: Any, task: Any, parameters: None) -> Ordering:
            edges = np.arange(network.n_connections)
            return Ordering(edges[::-1].copy() if backwards else edges, "of-a-cell")

    try:
        define(True)
        define(False)
        network = ew.generators.uniform_layers([6, 5], 0.5, seed=1)
        assert ew.order(network, "of-a-cell", memory=5).edges[0] == 0
        with pytest.raises(ValueError, match="registered twice"):

            @ORDERINGS.register("of-a-cell", summary="another")
            def another(network: Any, task: Any, parameters: None) -> Ordering:
                raise AssertionError

    finally:
        ORDERINGS._entries.pop("of-a-cell", None)


def test_what_a_plan_and_a_configuration_take() -> None:
    plan = ew.config.load_sweep(config())
    with pytest.raises(InputError, match="give them to load_sweep"):
        ew.run(plan, overrides=["seed=9"])
    given = config()
    given["network"]["generate"]["widths"] = np.array([16, 12, 4])
    assert ew.config.load_sweep(given).points[0].hash == plan.points[0].hash


def test_an_axis_that_one_override_makes_is_changed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("network: {generate: {kind: uniform-layers, widths: [4, 3], density: 1}}\n")
    (tmp_path / "sweep.yaml").write_text("base: base.yaml\ngrid: {orderings: [two-optimal]}\n")
    texts = ["grid.fast_memory.size=[10, 20, 30]", "grid.fast_memory.size.0=11"]
    plan = ew.config.load_sweep(tmp_path / "sweep.yaml", overrides=texts)
    assert [point.order.fast_memory.size for point in plan.points] == [11, 20, 30]


def test_stores_do_not_pass_by_a_cache() -> None:
    cache = CacheLevel(CacheSpec(128, 32, 2, bypass=("values",)))
    with pytest.raises(InputError, match="loads alone pass by"):
        cache.access([1], [0], [4], np.zeros(1, np.uint8))
