"""Values that nobody means, which an attack found to end in a traceback, a hang or a wrong number."""

from pathlib import Path

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.validate.orderings import read_order
from traces.access.trace import Chunk, Memory, Trace
from traces.base.errors import InputError
from traces.generators.networks import random_layered, uniform_layers

HEAD = "kind,kernel,stride,padding,in_h,in_w,in_c,out_h,out_w,out_c,adds\n"


@pytest.mark.parametrize("tile", [0, -1, True, 1.5, 2**50])
def test_tiles_are_rows(tmp_path: Path, tile: object) -> None:
    (tmp_path / "c.csv").write_text(HEAD + "conv,3,1,1,4,4,2,4,4,2,\n" * 2)
    with pytest.raises(InputError, match="tiles"):
        ew.patches(str(tmp_path / "c.csv"), tiles=(tile,))  # type: ignore[arg-type]


def test_a_chain_without_end_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(HEAD + "conv,1,1,0,4,4,2,4,4,2,\n" * 5000)
    with pytest.raises(InputError, match=r"c.csv: 5000 layers, at most 128"):
        ew.patches(str(tmp_path / "c.csv"))


@pytest.mark.parametrize("lanes", [0, -3, 10**9])
def test_a_comparison_has_lanes(lanes: int) -> None:
    with pytest.raises(InputError, match="lanes must be"):
        ew.bench(uniform_layers([8, 8], 0.5), lanes=lanes)


@pytest.mark.parametrize("size", [1, 4, 255])
def test_a_profile_refuses_accesses_beyond_all_addresses(size: int) -> None:
    address = np.array([0, 2**64 - 2], np.uint64)
    two = lambda value: np.full(2, value, np.uint8)  # noqa: E731
    trace = Trace.from_chunks([Chunk(address, two(size), two(0), two(0))], Memory(0, 64, None, ()))
    with pytest.raises(InputError, match=r"access 1 .* does not end below 2\^63"):
        ew.profile_caches(trace, [ew.CacheSpec(1024, 32, 2)])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_calibration_is_finite(value: float) -> None:
    network = random_layered(2, 6, 0.5)
    with pytest.raises(InputError, match=r"calibration: .* finite"):
        ew.compile_inference(network, lanes=2, dtype="int8", calibration=np.full((2, 6), value, np.float32))


def test_an_option_of_a_part_is_given_once() -> None:
    with pytest.raises(InputError, match="option 'wck-sync' is given twice"):
        ew.load_part("lpddr5-6400+wck-sync+wck-sync")


@pytest.mark.parametrize("mark", ["\x1c", "\x1f", "\u2028"])
def test_separators_beside_a_number_are_white_space(tmp_path: Path, mark: str) -> None:
    (tmp_path / "o.txt").write_text(f"0\n{mark}1{mark}\n2\n", encoding="utf-8")
    assert read_order(tmp_path / "o.txt").tolist() == [0, 1, 2]
