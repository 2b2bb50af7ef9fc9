"""Banks against enumeration of all assignments, and bounds on larger inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from edgewatt.operators.words import describe_banks
from reorder.operators.arena.banks import Bank
from reorder.operators.arena.base import Buffers
from tests.oracles.arena_oracle import height_of
from tests.oracles.banks_oracle import least_time
from traces.base.errors import InputError

ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(1, 7), st.integers(0, 20)), min_size=1, max_size=6
)


@settings(max_examples=80, deadline=None)
@given(ROWS, st.integers(1, 14), st.sampled_from([None, 9]), st.sampled_from([1, 2]), st.booleans())
def test_no_assignment_takes_less(rows: list, fast: int, slow: int | None, alignment: int, pin: bool) -> None:
    buffers = [(low, low + length, size) for low, length, size, _ in rows]
    traffic = [moved for *_, moved in rows]
    banks = [Bank("fast", 4000, fast), Bank("slow", 1000, slow)]
    pinned = {0: "slow"} if pin else {}
    expected = least_time(
        buffers, traffic, [(b.ns_per_byte, b.size_bytes) for b in banks], alignment, {0: 1} if pin else {}
    )
    arrays = [np.array([b[k] for b in buffers], np.int64) for k in range(3)]
    if expected is None:
        with pytest.raises(InputError, match=r"do not fit into the banks|larger than every bank|is pinned to"):
            ew.allocate(*arrays, alignment=alignment, banks=banks, traffic=traffic, pinned=pinned)
        return
    found = ew.allocate(*arrays, alignment=alignment, banks=banks, traffic=traffic, pinned=pinned)
    assert found.proved
    assert found.time_ns == pytest.approx(expected)
    assert found.lower_bound_ns <= found.time_ns
    for k, bank in enumerate(banks):
        part = found.bank == k
        height = height_of(Buffers.of(*(a[part] for a in arrays), alignment), found.offset[part])
        assert height == found.heights[k]
        assert bank.size_bytes is None or height <= bank.size_bytes


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_three_banks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 5
    lower = rng.integers(0, 5, n)
    buffers = [
        (int(a), int(a + w), int(s))
        for a, w, s in zip(lower, rng.integers(1, 4, n), rng.integers(1, 6, n), strict=True)
    ]
    traffic = rng.integers(0, 50, n).tolist()
    banks = [Bank("a", 4000, 5), Bank("b", 1500, 7), Bank("c", 100)]
    arrays = [np.array([b[k] for b in buffers], np.int64) for k in range(3)]
    found = ew.allocate(*arrays, banks=banks, traffic=traffic)
    assert found.proved
    assert found.time_ns == pytest.approx(least_time(buffers, traffic, [(b.ns_per_byte, b.size_bytes) for b in banks]))


def test_a_set_that_fits_by_load_but_has_no_placement_is_forbidden() -> None:
    """Eleven buffers of which at most 8 bytes are live at once, and which need 9."""
    rows = [(0, 1, 3), (0, 1, 1), (0, 2, 4), (1, 4, 2), (2, 4, 1), (1, 5, 1), (1, 5, 1), (2, 6, 3), (5, 6, 2),
            (4, 9, 3), (6, 9, 5)]  # fmt: skip
    lower, upper, size = np.array(rows).T
    assert (Buffers.of(lower, upper, size).load, ew.allocate(lower, upper, size).height) == (8, 9)
    found = ew.allocate(lower, upper, size, banks=[Bank("fast", 4000, 8), Bank("slow", 1000)])
    assert found.proved
    assert found.choices > 1
    # spilling one byte for one pair of accesses is the least there can be: 2 bytes, 0.75 ns more each
    assert found.spilled_bytes == 1
    assert found.spill_ns == pytest.approx(1.5)
    said = "1.500 ns more than if all were in the fastest bank; 1 B are outside it: proved"
    assert said in describe_banks(found)[-1]


@pytest.mark.parametrize("n", [60, 120])
def test_larger_inputs_stay_within_their_bounds(n: int) -> None:
    rng = np.random.default_rng(n)
    lower = rng.integers(0, n, n)
    upper = lower + rng.integers(1, 20, n)
    size = rng.integers(1, 1000, n) * 16
    traffic = size * rng.integers(1, 6, n)
    banks = [Bank("dtcm", 3840, 40_000), Bank("sram", 1920, 60_000), Bank("psram", 66.5)]
    found = ew.allocate(lower, upper, size, banks=banks, traffic=traffic, alignment=16)
    assert found.lower_bound_ns <= found.time_ns <= 1.1 * found.lower_bound_ns
    for k, bank in enumerate(banks):
        part = found.bank == k
        height = height_of(Buffers.of(lower[part], upper[part], size[part], 16), found.offset[part])
        assert bank.size_bytes is None or height <= bank.size_bytes


@pytest.mark.parametrize(
    ("banks", "given", "message"),
    [
        ([], {}, "banks: at least one is wanted"),
        ([Bank("a", 1), Bank("a", 2)], {}, "two banks are named 'a'"),
        ([Bank("a", 1, 3)], {}, "buffer 0 of 4 bytes is larger than every bank"),
        ([Bank("a", 1)], {"pinned": {0: "b"}}, "buffer 0 is pinned to 'b', which is not a bank: a"),
        ([Bank("a", 1)], {"pinned": {7: "a"}}, "pinned: buffer 7 does not exist"),
        ([Bank("a", 1)], {"traffic": [1]}, "traffic: 2 whole numbers"),
        ([Bank("a", 1, 6)], {}, "do not fit into the banks: proved"),
    ],
)
def test_what_cannot_be_is_refused(banks: list, given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ew.allocate([0, 0], [1, 1], [4, 5], banks=banks, **given)


def test_a_bank_must_make_sense() -> None:
    with pytest.raises(InputError, match="mb_per_s is 0"):
        Bank("a", 0)
    with pytest.raises(InputError, match="size_bytes is 0"):
        Bank("a", 1, 0)
    with pytest.raises(InputError, match="banks and capacity"):
        ew.allocate([0], [1], [1], banks=[Bank("a", 1)], capacity=1)
    with pytest.raises(InputError, match="traffic and pinned belong to banks"):
        ew.allocate([0], [1], [1], traffic=[1])
