"""Whatever is handed to the façade, it is taken or an InputError says which argument is wrong."""

import contextlib
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.names import MOVED, PUBLIC
from traces.base.errors import EdgewattError, InputError
from traces.generators.networks import random_layered


class Strange:
    def __repr__(self) -> str:
        raise RuntimeError("not even shown")


WRONG: list[Any] = [
    None, True, False, 0, 1, -1, 2, 2**31, 2**63, -(2**63), 2**64, 10**5000, 0.5, -0.0,
    float("nan"), float("inf"), 1e400, 1e-300, 1j, "",
    "x", "lru", "\x00", "\ud800", "../x", b"x", [], [None], ["a"], [[1], [2, 3]], [[]], (), (1, 2), {}, {"a": 1},
    set(), frozenset({1}), range(3), object(), Strange(), int, len, lambda: 0, Path("nowhere"), ...,
    NotImplemented,
    np.uint8(3), np.uint64(2**63), np.int8(-1), np.float16(2), np.bool_(True), np.str_("x"), np.datetime64("2020"),
    np.array(3), np.zeros(0), np.zeros(3), np.zeros((2, 2)), np.array(["a"]), np.array([None]),
    np.array([1, 2], "M8[s]"),
    np.array([2**63], np.uint64), np.array([-1]), np.array([np.nan]), np.ma.masked, np.zeros(2, "i4,f4"),
    scipy.sparse.csr_matrix((2, 2)), iter([1, 2]), (x for x in "ab"), np.random.default_rng(0),
]  # fmt: skip


@cache
def sound(folder: Path) -> dict[str, dict[str, Any]]:
    """Return arguments that each function takes."""
    network = random_layered(n_layers=2, width=6, density=0.5)
    order = ew.order(network, "two-optimal", memory=5)
    graph = ew.generators.cell("darts_v2", channels=4, size=4)
    trace = ew.build_trace(network)
    matrix = scipy.sparse.random(6, 6, 0.5, "csr", random_state=np.random.default_rng(0))
    run = {
        "network": {"generate": {"kind": "random-layered", "n_layers": 2, "width": 6, "density": 0.5}},
        "measure": "io",
        "fast_memory": {"size": 5},
    }
    plan, results = ew.config.load_sweep(run), str(folder / "results")
    ew.run(run, results=results)
    ew.cache.save_trace(trace, folder / "t.npz")
    buffers = {"lower": [0, 1], "upper": [2, 3], "size": [8, 8]}
    wires = {"value_format": "fp16", "encoder": "dbi-dc", "seed": 0}
    return {
        "run": {"config": run, "results": None, "overrides": None},
        "load_records": {"path": results},
        "load_sweep": {"config": run, "overrides": ()},
        "estimate": {"plan": plan, "results": results, "workers": 1},
        "catalogue": {"what": "parts"},
        "compare": {"a": results, "b": results},
        "collect": {"results": results, "output": str(folder / "c.csv")},
        "from_matrices": {"matrices": [matrix], "orientation": "rows-are-outputs", "activation": "relu", "name": "n"},
        "load": {"path": str(folder / "t.npz"), "kind": "network", "names": None, "image": None, "windows": None},
        "schedule": {"graph": graph, "objective": "peak", "method": "greedy", "rewrite": (), "onchip_bytes": None,
                     "block_bytes": 256, "alignment": 1, "budget_bytes": None, "time_limit_s": 0.1, "seed": 0},
        "allocate": {**buffers, "capacity": None, "alignment": 1, "time_limit_s": 0.1, "allocator": "linear"},
        "rewrite_graph": {"graph": graph, "patterns": (), "whole": {"n2"}},
        "layer_costs": {"traffic": [], "machine": ew.Machine(part="lpddr4-3200"), "bases": {(0, "weights"): 64}},
        "footprint": {"graph": graph, "order": None},
        "offchip_traffic": {"graph": graph, "order": None, "onchip_bytes": 4096, "block_bytes": 256},
        "cell": {"genotype": ((("skip_connect", 0), ("skip_connect", 1)), (2,)), "channels": 4, "size": 4,
                 "name": None},
        "count_io": {"network": network, "order": order, "memory": 5, "policy": "lru", "pinning": "literal"},
        "compile_inference": {"network": network, "order": order, "lanes": 8, "dtype": "float32", "threads": 1,
                              "algorithm": "runs", "calibration": None},
        "order": {"network": network, "method": "by-source", "memory": 5, "policy": "min", "pinning": "literal",
                  "objective": "io", "seed": 0, "time_limit_s": 0.1, "target": None, "lanes": None},
        "io_bounds": {"network": network},
        "io_curve": {"network": network, "order": None, "memories": [5], "policy": "min", "pinning": "literal"},
        "lower_bound": {"network": network, "memory": 5, "work": 1000},
        "core_energy": {"commands": [], "part": "lpddr4-3200", "end_cycle": 100},
        "interface_energy": {"commands": [], "part": "lpddr4-3200", "dbi": True, "lane_order": None, "end_cycle": 100},
        "load_part": {"part": "lpddr4-3200"},
        "simulate_dram": {"address": [0], "is_write": [0], "arrival_cycle": [0], "part": "lpddr4-3200",
                          "controller": None, "trace": False},
        "simulate_cache": {"op": [0], "address": [0], "size": [4], "size_bytes": 1024, "line_bytes": 32, "ways": 2,
                           "policy": "lru", "write": "back", "allocate": True, "seed": 0},
        "profile_caches": {"trace": trace, "specs": [ew.CacheSpec(1024, 32, 2)], "sets": 1, "region_bytes": None},
        "build_trace": {"network": network, "order": order, "layout": "auto", "sample": 0, "batch": None, "lanes": None,
                        "inputs": None, "seed": 0, "chunk_accesses": 64},
        "load_trace": {"path": folder / "t.npz"},
        "save_trace": {"trace": trace, "path": folder / "u.npz"},
        "export_trace": {"trace": trace, "path": folder / "u.txt", "format": "dinero", "line_bytes": 64},
        "replay": {"trace": trace, "machine": ew.Machine()},
        "encode": {"data": b"ab" * 32, "encoder": "dbi-dc", "element_bytes": 2, "bus_bytes": 2, "block_bytes": 32,
                   "state": None},
        "decode": {"data": b"ab" * 32, "encoder": "raw", "flags": None, "element_bytes": 2, "bus_bytes": 2,
                   "block_bytes": 32, "state": None},
        "order_tuples": {"matrix": matrix, **wires, "id_bits": 16, "stride": 4, "layout": "csr", "block_bytes": 32,
                         "base_interval": None, "objective": "joint", "metric": "ones", "bus_bytes": None,
                         "energy_pj": None, "stride_restart": "row", "method": "sort", "effort": 0.0,
                         "workers": 1, "bound": False, "checkpoint": None},
        "order_run_tuples": {"network": network, "edges": order.edges, **wires, "stride": 4, "method": "sort",
                             "block_bytes": 32, "id_bits": None, "workers": 1},
        "order_jointly": {"network": network, "edges": order.edges, "memory": 5, **wires, "block_bytes": 32,
                       "id_bits": None, "method": "sort", "recounts": 1, "workers": 1},
        "Network": {"sources": [0, 1], "targets": [2, 2], "n_neurons": 3, "inputs": [0, 1], "outputs": [2],
                    "weights": [1.0, 2.0], "biases": None, "layer": None, "activation": "relu", "batch": None},
        "CacheSpec": {"size_bytes": 1024, "line_bytes": 32, "ways": 2, "policy": "lru", "write": "back"},
        "ScratchpadSpec": {"size_bytes": 4096, "policy": "min", "pinning": "literal", "stream_bytes": 1024},
        "Layout": {"kind": "csr", "lanes": 4, "id_bits": None, "alignment_bytes": 64},
        "ControllerSpec": {"page_policy": "closed"},
        "simulate": {"trace": trace, "machine": ew.Machine(part="lpddr4-3200"), "keep": False},
        "Machine": {"caches": (), "encoder": "raw", "element_bytes": None, "scratchpad": None, "flush": True},
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("given")


def public(name: str) -> Any:
    space, _, new = MOVED.get(name, f"edgewatt.{name}").rpartition(".")
    return getattr(import_module(space), new)


def attempt(folder: Path, name: str, arguments: dict[str, Any]) -> None:
    function = public(name)
    (folder / "here").mkdir(exist_ok=True)
    with contextlib.chdir(folder / "here"):  # a name is a path in the current folder
        try:
            function(**arguments)
        except EdgewattError as error:
            assert str(error).strip()


def test_other_functions_take_nothing_wrong(folder: Path) -> None:
    """Slow ones and those that write a lot: all that they need is wrong."""
    functions = {name: item for names in PUBLIC.values() for name in names if inspect.isfunction(item := public(name))}
    for name in functions.keys() - sound(folder).keys() - {"diagnose", "paper_figures", "schema", "validate"}:
        places = inspect.signature(functions[name]).parameters.values()
        needed = [p.name for p in places if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        for value in (None, 1j, b"x", object(), Strange(), [None], {1: 2}, np.array(["a"]), lambda: 0):
            attempt(folder, name, dict.fromkeys(needed, value))


def test_what_is_sound_is_taken(folder: Path) -> None:
    for name, arguments in sound(folder).items():
        if name != "load":
            public(name)(**arguments)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_one_wrong_argument(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(sound(folder))))
    arguments = dict(sound(folder)[name])
    place = data.draw(st.sampled_from(sorted(arguments)))
    arguments[place] = WRONG[data.draw(st.integers(0, len(WRONG) - 1))]
    attempt(folder, name, arguments)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("count_io", "memory", "8", "memory: '8' is a str, wanted: int"),
        ("count_io", "network", "n.npz", "network: 'n.npz' is a str, wanted: Network"),
        ("simulate_cache", "address", None, "address: None is a NoneType, wanted: numbers"),
        ("simulate_cache", "address", ["a"], r"address: \['a'\] is a list, wanted: numbers"),
        ("order_tuples", "energy_pj", ("a", 1), "energy_pj: .* wanted: tuple"),
        ("order_tuples", "energy_pj", (1.0,), r"energy_pj: \(1.0,\) is a tuple, wanted: tuple\[float, float\]"),
        ("order_tuples", "seed", 1.0, "seed: 1.0 is a float, wanted: int"),
        ("order_tuples", "seed", np.timedelta64(1), "is a timedelta64, wanted: int"),
        ("load_trace", "path", 3, r"path: 3 is a int, wanted: str \| Path"),
        ("order", "objective", np.zeros(2), "objective"),
        ("load", "path", [None], r"path: \[None\] is no list of files"),
        ("build_trace", "seed", Strange(), "seed: a Strange is a Strange, wanted: int"),
    ],
)
def test_messages(folder: Path, name: str, place: str, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        public(name)(**{**sound(folder)[name], place: value})


@pytest.mark.parametrize(
    ("name", "place", "message"),
    [
        ("order", "time_limit_s", "time_limit_s: an int is beyond 2^63"),
        ("CacheSpec", "line_bytes", "CacheSpec line_bytes: an int is beyond 2^63"),
        ("Network", "n_neurons", "an int neurons and 2 connections are too many"),
    ],
)
def test_numbers_too_long_to_be_written(folder: Path, name: str, place: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        public(name)(**{**sound(folder)[name], place: 10**5000})


def test_fields_of_a_subclass_are_checked() -> None:
    class Mine(ew.Machine):
        pass

    assert Mine(element_bytes=np.uint8(2)).element_bytes == 2
    with pytest.raises(InputError, match="Mine caches: 3 is a int, wanted: tuple"):
        Mine(caches=3)


def test_unsigned_scalars_are_numbers(folder: Path) -> None:
    """np.uint8(3) - 4 is 255: none of them gets inside."""
    for name, arguments in sound(folder).items():
        numbers = {key: v for key, v in arguments.items() if type(v) is int and v < 2**16}
        if name == "load" or not numbers:
            continue
        plain = public(name)(**arguments)
        for kind in (np.uint8, np.uint16, np.uint64, np.int64):
            given = {key: kind(v) for key, v in numbers.items() if v <= np.iinfo(kind).max}
            found = public(name)(**{**arguments, **given})
            if name in ("count_io", "io_curve", "simulate_cache", "lower_bound", "CacheSpec", "ScratchpadSpec"):
                assert found == plain, (name, kind)


INDICES = [
    ("count_io", "order"), ("io_curve", "order"), ("compile_inference", "order"), ("build_trace", "order"),
    ("order_jointly", "edges"), ("order_run_tuples", "edges"), ("footprint", "order"),
    ("offchip_traffic", "order"), ("allocate", "lower"), ("allocate", "upper"), ("allocate", "size"),
    ("simulate_cache", "op"), ("simulate_cache", "address"), ("simulate_cache", "size"), ("simulate_dram", "address"),
    ("simulate_dram", "is_write"), ("simulate_dram", "arrival_cycle"), ("Network", "sources"), ("Network", "targets"),
    ("Network", "inputs"), ("Network", "outputs"), ("Network", "layer"),
]  # fmt: skip


def spoil(values: np.ndarray, data: st.DataObject) -> Any:
    """Return indices with some of them out of range, repeated or exchanged, in whatever array they come."""
    found = values.astype(object)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(found) - 1)) if len(found) else None
        kind = data.draw(st.sampled_from(["value", "repeat", "turn", "drop", "more", "none"]))
        if at is None or kind == "more":
            found = np.append(found, data.draw(st.sampled_from([0, len(found), -1])))
        elif kind == "value":
            ends = [-1, -2, len(found), len(found) + 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**63 - 1, -(2**63), -(2**31)]
            found[at] = data.draw(st.sampled_from(ends))
        elif kind == "repeat":
            found[at] = found[0]
        elif kind == "turn":
            found = found[::-1]
        elif kind == "drop":
            found = np.delete(found, at)
    dtype = data.draw(st.sampled_from(["i8", ">i8", "i4", "u8", "i2", "f8", "O"]))
    with np.errstate(all="ignore"):
        try:
            array = found.astype(dtype)
        except (OverflowError, ValueError):
            array = found.astype("i8")
    return data.draw(st.sampled_from([array, np.repeat(array, 2)[::2], array.tolist(), np.asfortranarray(array)]))


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_index_gets_past_its_range(folder: Path, data: st.DataObject) -> None:
    """Kernels do not look: whatever calls them has. Under `make sanitize` and `make debug-test` they do."""
    name, place = data.draw(st.sampled_from(INDICES))
    arguments = dict(sound(folder)[name])
    if name in ("footprint", "offchip_traffic"):
        given: Any = np.arange(arguments["graph"].n_nodes)
    elif arguments[place] is None:  # io_curve's order, the layers of a network
        given = np.zeros(2, np.int64) if place == "layer" else np.arange(arguments["network"].n_connections)
    else:
        given = arguments[place]
    given = given["a"] if isinstance(given, dict) else getattr(given, "edges", given)
    spoiled = spoil(np.asarray(given, np.int64), data)
    arguments[place] = {"a": spoiled} if place == "orders" else spoiled
    attempt(folder, name, arguments)
