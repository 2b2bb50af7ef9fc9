"""Conversions reproduce the ones that an independent program counted (reference/cdr, raw columns)."""

import json
from pathlib import Path

import numpy as np
import pytest

from traces.formats import to_bits


@pytest.mark.parametrize("matrix", ["ad01_dense0_d10", "resnet8_conv7_d20", "synthetic_gauss4096_d9"])
@pytest.mark.parametrize("name", ["fp16", "bf16", "int8"])
def test_ones_of_raw_values(reference: Path, matrix: str, name: str) -> None:
    expected = json.loads((reference / "cdr" / "best_known.json").read_text())[matrix]["formats"].get(name)
    if expected is None:
        pytest.skip(f"the reference holds no {name} row for {matrix}")
    with np.load(reference / "cdr" / f"{matrix}.npz", allow_pickle=False) as arrays:
        bits, _, report = to_bits(arrays["data"], name)
    assert int(np.bitwise_count(bits).sum()) == expected["raw"][0]
    assert report.zeroed == report.saturated == 0  # the README: no stored weight converts to zero
