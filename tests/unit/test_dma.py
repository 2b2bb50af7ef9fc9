"""Transfers of a scratchpad that go on where the one before ended, over slices too."""

import numpy as np
import pytest

from hwmodel.replay.hierarchy import Bursts
from hwmodel.system.dma import _goes_on


def bursts(*addresses: int) -> Bursts:
    n = len(addresses)
    zeros = np.zeros(n, np.uint8)
    return Bursts(np.array(addresses, np.uint64), zeros, zeros, np.arange(n), np.zeros(n), None)


@pytest.mark.parametrize(
    ("last", "first", "goes_on"), [(64, 96, True), (96, 64, False), (96, 96, False), (0, 64, False)]
)
def test_a_slice_goes_on_where_the_one_before_ended(last: int, first: int, goes_on: bool) -> None:
    """An address below the last one went round below zero, with a warning."""
    found = _goes_on(bursts(first, first + 32, first), bursts(0, last), 32)
    assert found.tolist() == [goes_on, True, False]
