"""Arena placement against exhaustive search, OR-Tools CP-SAT and bounds that hold on any input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from reorder.operators.arena.base import Buffers
from tests.oracles.arena_oracle import height_of, least_height
from traces.base.errors import InputError

ROWS = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 5), st.integers(0, 7)), max_size=7)


@settings(max_examples=250, deadline=None)
@given(ROWS, st.sampled_from([1, 2, 4]))
def test_the_least_height_is_found_and_proved(rows: list[tuple[int, int, int]], alignment: int) -> None:
    buffers = [(low, low + length, size) for low, length, size in rows]
    lower, upper, size = (np.array([b[k] for b in buffers], np.int64) for k in range(3))
    found = ew.allocate(lower, upper, size, alignment=alignment)
    assert height_of(Buffers.of(lower, upper, size, alignment), found.offset) == found.height
    assert found.height == least_height(buffers, alignment)
    assert found.proved


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(0, 30))
def test_a_capacity_is_met_or_refuted(rows: list[tuple[int, int, int]], capacity: int) -> None:
    buffers = [(low, low + length, size) for low, length, size in rows]
    lower, upper, size = (np.array([b[k] for b in buffers], np.int64) for k in range(3))
    found = ew.allocate(lower, upper, size, capacity=capacity)
    best = least_height(buffers)
    assert (found.height <= capacity) == (best <= capacity)
    assert found.lower_bound <= best <= found.height
    if best > capacity:
        assert found.lower_bound > capacity


def cp_sat_height(lower: np.ndarray, upper: np.ndarray, size: np.ndarray) -> int:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    most = int(size.sum())
    height = model.new_int_var(0, most, "height")
    times, places = [], []
    for low, up, s in zip(lower.tolist(), upper.tolist(), size.tolist(), strict=True):
        at = model.new_int_var(0, most - s, "")
        times.append(model.new_fixed_size_interval_var(low, up - low, ""))
        places.append(model.new_fixed_size_interval_var(at, s, ""))
        model.add(at + s <= height)
    model.add_no_overlap_2d(times, places)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return int(solver.objective_value)


@pytest.mark.parametrize("seed", range(12))
def test_cp_sat_agrees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 16))
    lower = rng.integers(0, 12, n)
    upper = lower + rng.integers(1, 6, n)
    size = rng.integers(1, 20, n)
    found = ew.allocate(lower, upper, size)
    assert found.proved
    assert found.height == cp_sat_height(lower, upper, size)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 60))
def test_what_was_cut_from_a_rectangle_fits_into_it(seed: int, pieces: int) -> None:
    """Rectangles of time x bytes, cut again and again: a placement at the full height exists."""
    rng = np.random.default_rng(seed)
    whole = [(0, 64, 0, 64)]
    while len(whole) < pieces:
        k = int(rng.integers(len(whole)))
        a, b, c, d = whole.pop(k)
        if (rng.random() < 0.5 and b - a > 1) or d - c == 1:
            if b - a == 1:
                whole.append((a, b, c, d))
                break
            cut = int(rng.integers(a + 1, b))
            whole += [(a, cut, c, d), (cut, b, c, d)]
        else:
            cut = int(rng.integers(c + 1, d))
            whole += [(a, b, c, cut), (a, b, cut, d)]
    table = np.array(whole, np.int64)
    found = ew.allocate(table[:, 0], table[:, 1], table[:, 3] - table[:, 2], nodes=200_000)
    assert found.lower_bound == 64
    assert found.height >= 64
    if pieces <= 20:
        assert found.height == 64


def cut_with_slack(seed: int, pieces: int, removed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rectangles of 256 steps x 2^20 bytes, cut and shuffled, a share of their area taken out: 2^20 bytes suffice."""
    rng = np.random.default_rng(seed)
    whole = [(0, 256, 0, 16384)]
    while len(whole) < pieces:
        a, b, c, d = whole.pop(int(rng.integers(len(whole))))
        if (rng.random() < 0.5 and b - a > 1) or d - c == 1:
            if b - a == 1:
                whole.append((a, b, c, d))
                continue
            k = int(rng.integers(a + 1, b))
            whole += [(a, k, c, d), (k, b, c, d)]
        else:
            k = int(rng.integers(c + 1, d))
            whole += [(a, b, c, k), (a, b, k, d)]
    table = np.array(whole, np.int64)[rng.permutation(len(whole))]
    area = ((table[:, 1] - table[:, 0]) * (table[:, 3] - table[:, 2])).cumsum()
    table = table[area > removed * 256 * 16384]
    return table[:, 0], table[:, 1], (table[:, 3] - table[:, 2]) * 64


@pytest.mark.parametrize(("seed", "above"), [(0, 0), (5, 0.02), (7, 0)])
def test_without_a_capacity_the_search_goes_nearly_as_low_as_with_it(seed: int, above: float) -> None:
    """250 pieces, a tenth taken out; of seed 5 only preferences that are drawn find a placement at the capacity."""
    lower, upper, size = cut_with_slack(seed, 250, 0.1)
    given = ew.allocate(lower, upper, size, capacity=2**20, nodes=1_000_000)
    free = ew.allocate(lower, upper, size, nodes=1_000_000)
    assert given.height <= 2**20
    assert free.height <= (1 + above) * given.height
    assert height_of(Buffers.of(lower, upper, size), free.offset) == free.height


def test_the_result_does_not_depend_on_the_run_and_stops_in_time() -> None:
    rng = np.random.default_rng(1)
    lower = rng.integers(0, 200, 400)
    upper = lower + rng.integers(1, 80, 400)
    size = rng.integers(1, 5000, 400)
    first, second = (ew.allocate(lower, upper, size, nodes=20_000) for _ in range(2))
    assert first.offset.tolist() == second.offset.tolist()
    limited = ew.allocate(lower, upper, size, time_limit_s=0.2)
    assert height_of(Buffers.of(lower, upper, size), limited.offset) == limited.height


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"lower": [0], "upper": [0], "size": [1]}, "buffer 0: live from 0 to 0: upper must be above lower"),
        ({"lower": [0], "upper": [1], "size": [-1]}, "buffer 0: a size of -1 bytes"),
        ({"lower": [0, 1], "upper": [1], "size": [1]}, "2 lower, 1 upper, 1 sizes"),
        ({"lower": [0.5], "upper": [1], "size": [1]}, "lower: a list of whole numbers is wanted"),
        ({"lower": [0], "upper": [1], "size": [2**62 + 1]}, "too large to place"),
        ({"lower": [0], "upper": [1], "size": [1], "alignment": 0}, "alignment is 0"),
        ({"lower": [0], "upper": [1], "size": [1], "capacity": -1}, "capacity is -1"),
        ({"lower": [0], "upper": [1], "size": [1], "time_limit_s": 0}, "time_limit_s must be above 0"),
        ({"lower": [0], "upper": [1], "size": [1], "allocator": "exakt"}, "did you mean 'exact'"),
    ],
)
def test_what_cannot_be_placed_is_refused(arguments: dict, text: str) -> None:
    with pytest.raises(InputError, match=text.replace("(", r"\(").replace(")", r"\)")):
        ew.allocate(**arguments)
