"""Values that nobody means, which an attack found to end in a traceback, a hang or a wrong number."""

from pathlib import Path

import numpy as np
import pytest

import edgewatt as ew
from hwmodel.dram.controller import controller_spec
from reorder.edges.methods.given import read_order
from traces.base.errors import InputError
from traces.generators.networks import random_layered, uniform_layers
from traces.trace.chunks import Chunk, Memory, Trace


@pytest.mark.parametrize("lanes", [0, -3, 10**9])
def test_a_comparison_has_lanes(lanes: int) -> None:
    with pytest.raises(InputError, match="lanes must be"):
        ew.orders.bench(uniform_layers([8, 8], 0.5), lanes=lanes)


@pytest.mark.parametrize("size", [1, 4, 255])
def test_a_profile_refuses_accesses_beyond_all_addresses(size: int) -> None:
    address = np.array([0, 2**64 - 2], np.uint64)
    two = lambda value: np.full(2, value, np.uint8)  # noqa: E731
    trace = Trace.from_chunks([Chunk(address, two(size), two(0), two(0))], Memory(0, 64, None, ()))
    with pytest.raises(InputError, match=r"access 1 .* does not end below 2\^63"):
        ew.cache.profile_caches(trace, [ew.CacheSpec(1024, 32, 2)])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_calibration_is_finite(value: float) -> None:
    network = random_layered(2, 6, 0.5)
    with pytest.raises(InputError, match=r"calibration: .* finite"):
        ew.compile_inference(network, lanes=2, dtype="int8", calibration=np.full((2, 6), value, np.float32))


def test_an_option_of_a_part_is_given_once() -> None:
    with pytest.raises(InputError, match="option 'wck-sync' is given twice"):
        ew.dram.load_part("lpddr5-6400+wck-sync+wck-sync")


@pytest.mark.parametrize("mark", ["\x1c", "\x1f", "\u2028"])
def test_separators_beside_a_number_are_white_space(tmp_path: Path, mark: str) -> None:
    (tmp_path / "o.txt").write_text(f"0\n{mark}1{mark}\n2\n", encoding="utf-8")
    assert read_order(tmp_path / "o.txt").tolist() == [0, 1, 2]


SMALL = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 6, "density": 0.4}}


@pytest.mark.parametrize("key", ["system", "caches", "bus", "technology", "dram"])
def test_a_name_longer_than_a_files_is_no_shipped_one(key: str) -> None:
    """The file system's own complaint was a traceback."""
    name = "a" * 5000
    with pytest.raises(InputError, match=r"unknown shipped .* file 'a") as raised:
        ew.run({"network": SMALL, "system": "edge", key: {"part": name} if key == "dram" else name})
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", ["alignment_bytes", "row_alignment_bytes"])
@pytest.mark.parametrize("value", [2**31, 2**63, 2**64, 2**5000])
def test_nothing_is_aligned_beyond_a_gigabyte(name: str, value: int) -> None:
    """2^63 ran over in int64."""
    with pytest.raises(InputError, match=f"{name} must be at most 1073741824, not|{name}: .* is beyond 2"):
        ew.run({"network": SMALL, "system": "edge", "layout": {"kind": "csr", name: value}})


@pytest.mark.parametrize("name", ["alignment_bytes", "row_alignment_bytes"])
def test_what_alignment_takes_is_asked_for_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1G")
    with pytest.raises(InputError, match=f"^{name} 1073741824: the memory with all .*EDGEWATT_MAX_BYTES"):
        ew.run({"network": SMALL, "system": "edge", "layout": {"kind": "csr", name: 2**30}})


@pytest.mark.parametrize("more", [
    {}, {"kind": "uniform-layers", "widths": [4, 4], "density": 0.5}, {"kind": "radix-net", "radix_lists": [[2, 2]]},
    {"kind": "compact-growth", "m_g": 8, "iterations": 5},
])  # fmt: skip
@pytest.mark.parametrize("seed", [-1, -(2**70)])
def test_seeds_of_networks_are_not_negative(more: dict[str, object], seed: int) -> None:
    made = more or SMALL["generate"]
    with pytest.raises(InputError, match="seed must be a whole number of at least 0, not -"):
        ew.run({"network": {"generate": {**made, "seed": seed}}})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ew.Machine(part=5), "part: a name, a path, a mapping or a Part is wanted, not 5"),
        (lambda: ew.Machine(technology=5), "technology: a name, a path or a mapping is wanted, not 5"),
        (lambda: ew.Machine(technology="x"), "onchip"),
        (lambda: controller_spec(5), "a controller is a ControllerSpec or a mapping"),
        (lambda: ew.Ordering(5, "x"), "edges: connections in order are wanted"),
        (lambda: ew.Network([0], [1], 2, [0], [1], notes=5), "notes: sentences are wanted, not 5"),
    ],
)
def test_what_is_no_part_controller_or_order_is_refused(make, words: str) -> None:
    """They ended in Python's own errors, or were left out."""
    with pytest.raises(InputError, match=words):
        make()
