"""What every registered allocator owes its users."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reorder.operators.arena.base import ALLOCATORS, Buffers, PlacementTask
from reorder.operators.schedule.schedule import schedule
from tests.oracles.arena_oracle import height_of
from traces.generators.operators import cell


@st.composite
def buffers(draw: st.DrawFn, most: int = 12) -> Buffers:
    rows = draw(st.lists(st.tuples(st.integers(-3, 9), st.integers(1, 6), st.integers(0, 9)), max_size=most))
    lower = np.array([row[0] for row in rows], np.int64)
    length, size = (np.array([row[k] for row in rows], np.int64) for k in (1, 2))
    return Buffers.of(lower, lower + length, size, draw(st.sampled_from([1, 2, 4])))


@pytest.mark.parametrize("name", list(ALLOCATORS))
@settings(max_examples=60, deadline=None)
@given(given=buffers())
def test_a_placement_is_one(name: str, given: Buffers) -> None:
    entry = ALLOCATORS[name]
    placed = entry.item.place(given, PlacementTask(), entry.make_parameters({}))
    assert height_of(given, placed.offset) == placed.height
    assert given.load <= placed.lower_bound <= placed.height
    again = entry.item.place(given, PlacementTask(), entry.make_parameters({}))
    assert again.offset.tolist() == placed.offset.tolist()


@pytest.mark.parametrize("name", list(ALLOCATORS))
@pytest.mark.parametrize("objective", ["peak", "arena"])
def test_schedule_accepts_what_is_listed(name: str, objective: str) -> None:
    found = schedule(cell("darts_v2"), allocator=name, objective=objective, evaluations=200)
    assert found.peak_bytes <= found.arena_bytes
    assert len(found.offsets) == len(found.graph.buffers)
