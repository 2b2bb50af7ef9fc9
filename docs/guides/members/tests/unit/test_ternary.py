import numpy as np

from traces.formats import from_bits, pack, to_bits


def test_three_values_in_two_bits() -> None:
    values = np.array([-3.0, 0.2, 3.0, -1.4], np.float32)
    bits, scale, report = to_bits(values, "ternary")
    assert from_bits(bits, "ternary", scale=scale).tolist() == [-3.0, 0.0, 3.0, 0.0]
    assert len(pack(bits, "ternary")) == 1 and report.zeroed == 2
