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


def test_the_tests_that_make_calls_are_there() -> None:
    """One that was removed ended the recording, and every entry stood uncalled."""
    for name in TESTS:
        assert (ROOT / "tests/{}/test_{}.py".format(*name.split("/"))).exists(), name


def test_a_connection_to_itself_is_refused() -> None:
    """Its next use lies in the same connection: MIN read before a neuron's side."""
    import numpy as np

    from cython_ext.iomodel.counts import LITERAL, MIN, count

    zero = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="to itself"):
        count(zero, zero, 2, np.zeros(1, np.uint8), 3, MIN, LITERAL)


def test_an_order_of_equal_keys_that_has_one_twice_is_refused() -> None:
    """It filled a group beyond its end."""
    import numpy as np

    from cython_ext.edges.intervals import grouped

    for first in ([2, 2, 2], [0, 1, 3], [-1, 0, 1]):
        with pytest.raises(ValueError, match="a place for each key"):
            grouped(np.array([0, 1, 1], np.int32), 2, np.array(first, np.int32))


def test_flags_that_were_no_bits_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """They led out of a table of choices."""
    import numpy as np

    from hwmodel.coding import in_burst
    from hwmodel.dram.energy import data_wire_costs
    from hwmodel.dram.engine import load_part
    from hwmodel.parts.burst_cells import BurstCells

    part, real = load_part("lpddr6-10667"), in_burst.cheapest_shares
    shares = in_burst.ShareFlags(BurstCells(part.interface.cells, part.organisation, part.interface.dbi), 0)
    least = in_burst.LeastCost(shares, data_wire_costs(part))
    data = np.random.default_rng(1).integers(0, 256, 320, np.uint8)
    expected = least.flags(data, np.zeros(shares.wires, np.uint8))

    def full(bursts: np.ndarray, flags: np.ndarray, *rest: object) -> None:
        flags[:] = 255
        real(bursts, flags, *rest)

    monkeypatch.setattr(in_burst, "cheapest_shares", full)
    assert np.array_equal(least.flags(data, np.zeros(shares.wires, np.uint8)), expected)
