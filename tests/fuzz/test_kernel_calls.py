"""A short slice of `python -m tests.kernel_calls 2000`: entries of kernels that check their arguments survive any."""

import pytest

from cython_ext.common import UNCHECKED
from tests.kernel_calls import entries, name_of, stands

EVERY = {name_of(entry): entry for entry in entries()}


def believes(name: str) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in UNCHECKED)


@pytest.mark.parametrize("name", sorted(name for name in EVERY if not believes(name)))
def test_an_entry_survives_arguments_that_make_no_sense(name: str) -> None:
    assert not stands(EVERY[name], 20, 0)


def test_what_believes_its_arguments_is_there() -> None:
    for each in UNCHECKED:
        assert any(name == each or name.startswith(f"{each}.") for name in EVERY), each
