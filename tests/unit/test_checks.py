"""Checks of numbers and arrays: the edges of every type, and the sentence that refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.base.checks import whole_number, whole_numbers
from traces.base.errors import InputError


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "ways must be a whole number from 1 to 2^40, not 0"),
        (2**40 + 1, "not 1099511627777"),
        (True, "not True"),
        (2.0, "not 2.0"),
        ("3", "not '3'"),
    ],
)
def test_what_is_no_whole_number(value: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        whole_number(value, "ways", 1, 2**40)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("values", "dtype", "most", "said"),
    [
        ([[1]], np.int64, None, "address must be one-dimensional, not of shape (1, 1)"),
        ([0.5], np.int64, None, "address must hold whole numbers, not float64"),
        ([0, -1], np.uint64, None, "request 1: address -1 is out of range (0 to 2^64 - 1), it is negative"),
        ([1, 2**63], np.int64, None, "request 1: address 9223372036854775808 is out of range (0 to 2^63 - 1)"),
        ([5, 300], np.uint8, None, "request 1: address 300 is out of range (0 to 255)"),
        ([0, 2], np.uint8, 1, "request 1: address 2 is out of range (0 to 1)"),
        ([2**61], np.int64, 2**60, "is out of range (0 to 2^60)"),
    ],
)
def test_what_is_no_array_of_whole_numbers(values: list, dtype: type, most: int | None, said: str) -> None:
    given = np.array(values, np.uint64) if max(np.ravel(values)) >= 2**63 else np.array(values)
    with pytest.raises(InputError) as caught:
        whole_numbers(given, "address", dtype, item="request", most=most)
    assert str(caught.value).endswith(said)


TYPES = st.sampled_from([np.uint8, np.uint16, np.uint64, np.int64])


@given(st.lists(st.integers(-3, 2**64 - 1), max_size=5), TYPES, TYPES)
def test_an_array_is_kept_or_refused(values: list[int], given_as: type, dtype: type) -> None:
    """What comes back has the values that were given; what the type cannot hold is refused, never wrapped."""
    info = np.iinfo(given_as)
    values = [v for v in values if info.min <= v <= info.max]
    array = np.array(values, given_as)
    if all(0 <= v <= np.iinfo(dtype).max for v in values):
        found = whole_numbers(array[::-1], "x", dtype)
        assert found.dtype == dtype and found.flags.c_contiguous and found.tolist() == values[::-1]
    else:
        with pytest.raises(InputError, match="out of range"):
            whole_numbers(array, "x", dtype)
