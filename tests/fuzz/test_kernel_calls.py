"""A short slice of `python -m tests.kernel_calls 2000`: entries of kernels that check their arguments survive any."""

import os
import subprocess
import sys

import pytest

from tests.kernel_calls import ROOT, TESTS


@pytest.mark.application
def test_entries_survive_wrong_arguments() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "tests.kernel_calls", "20"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if " in call " in line or "slow" in line]
    assert done.returncode == 0, "\n".join(wrong) + done.stderr[-2000:]


def test_a_false_next_use_is_refused() -> None:
    """Two positions of one next use took a value out of a memory that had none."""
    import numpy as np

    from cython_ext.iomodel.counts import MIN, PIN_BOTH, count_many, find_next_uses

    sources, targets = np.array([0, 0, 1, 1, 2], np.int32), np.array([3, 4, 3, 4, 4], np.int32)
    outputs, memory = np.array([0, 0, 0, 1, 1], np.uint8), np.array([3], np.int64)
    uses = find_next_uses(sources, targets, outputs)
    true = count_many(sources, targets, 5, outputs, memory, MIN, PIN_BOTH)
    assert (count_many(sources, targets, 5, outputs, memory, MIN, PIN_BOTH, uses) == true).all()
    for k in range(len(uses) - 1):
        for twice in (uses[k + 1], k | 1, len(uses), -1):
            false = uses.copy()
            false[k] = twice
            if twice < 2**31 - 2 and (twice <= k | 1 or twice >= len(uses) or list(false).count(twice) > 1):
                with pytest.raises(ValueError, match="later use"):
                    count_many(sources, targets, 5, outputs, memory, MIN, PIN_BOTH, false)


def test_the_tests_that_make_calls_are_there() -> None:
    """One that was removed ended the recording, and every entry stood uncalled."""
    for name in TESTS:
        assert (ROOT / "tests/{}/test_{}.py".format(*name.split("/"))).exists(), name
