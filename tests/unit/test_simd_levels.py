"""Every SIMD level of the encoder kernels against one plain NumPy count, on the batch and vector borders.

The level is fixed when a process starts, so each level runs in a process of its own; one that the machine lacks falls
back to the next lower one and is then tested twice.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

CASES = [
    (lanes, n, kind) for lanes in (1, 2, 3, 32, 64) for n in (0, 1, 31, 992, 993, 3007, 64009) for kind in range(3)
]

RUN = """
import json, sys
from hwmodel.coding.codec import encode
from test_simd_levels import CASES, stream
found = []
for case in CASES:
    data, lanes = stream(*case), case[0]
    sent = [encode(data, e, element_bytes=2, bus_bytes=lanes) for e in ("dbi-dc", "base-xor+dbi-dc")]
    found.append([int(v) for s in sent for v in (s.ones, s.toggles)])
json.dump(found, sys.stdout)
"""


def stream(lanes: int, n: int, kind: int) -> np.ndarray:
    """n bytes, cut to whole beats: noise; all wires flipping that can; or heavy bytes here and there."""
    rng = np.random.default_rng(1000 * lanes + n)
    data = rng.integers(0, 256, n, dtype=np.uint8)
    if kind == 1:
        data = np.where(np.arange(n) // lanes % 2 == 0, 0x0F, 0xF0).astype(np.uint8)
    elif kind == 2:
        data = np.where(rng.random(n) < 0.02, 0xFF, 0).astype(np.uint8)
    return data[: n // lanes * lanes]


def counted(data: np.ndarray, lanes: int) -> tuple[int, int]:
    """Ones and toggles under DBI-DC, flags counted, straight from the definition."""
    heavy = np.bitwise_count(data) > 4
    sent = np.where(heavy, ~data, data).reshape(-1, lanes)
    flags = heavy.astype(np.uint8).reshape(-1, lanes)
    before, flags_before = (np.vstack((np.zeros((1, lanes), np.uint8), a[:-1])) for a in (sent, flags))
    ones = np.bitwise_count(sent).sum() + flags.sum()
    return int(ones), int(np.bitwise_count(sent ^ before).sum() + (flags ^ flags_before).sum())


def xored(data: np.ndarray) -> np.ndarray:
    """Base+XOR of 2-byte elements in blocks of 32 bytes; a byte after the last whole element is sent as it is."""
    at = np.arange(len(data))
    linked = (at % 32 >= 2) & (at < len(data) // 2 * 2)
    return np.where(linked, data ^ np.concatenate((data[:0], np.zeros(2, np.uint8), data))[: len(data)], data)


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_simd_level_counts_as_the_definition_does(level):
    paths = os.pathsep.join((os.path.dirname(__file__), *sys.path))
    environment = {**os.environ, "EDGEWATT_SIMD": level, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
    for case, found in zip(CASES, json.loads(done.stdout), strict=True):
        data, lanes = stream(*case), case[0]
        plain = counted(data, lanes) if len(data) else (0, 0)
        chained = counted(xored(data), lanes) if len(data) else (0, 0)
        assert found == [*plain, *chained], case


def test_an_unknown_level_is_refused() -> None:
    environment = {**os.environ, "EDGEWATT_SIMD": "avx1024"}
    said = subprocess.run(
        [sys.executable, "-m", "edgewatt", "list", "encoders"], env=environment, capture_output=True, text=True
    )
    assert said.returncode == 2 and "Traceback" not in said.stderr
    assert (
        said.stderr == "edgewatt: EDGEWATT_SIMD is 'avx1024': it may be baseline, avx2, avx512, or not be set at all\n"
    )
