"""Tuple orders at every SIMD level: vectors only rule out moves that the plain search would not take.

The level is fixed when a process starts, so each level runs in a process of its own; one that the machine lacks falls
back to the next lower one.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

JOINT = dict(value_format="fp16", stride=100)
CASES = [
    (300, JOINT),
    (70, dict(value_format="fp16", stride=5)),
    (300, dict(value_format="int8", stride=128)),
    (300, dict(value_format="fp32", stride="row", id_bits=32)),
    (300, dict(value_format="int4", stride=64)),
    (300, dict(value_format="bf16", stride="matrix", layout="coo")),
    (200, dict(value_format="fp32", stride="matrix", layout="coo", id_bits=32)),  # two words a tuple
    (200, dict(value_format="fp32", stride=90, layout="coo", id_bits=32, base_interval=4)),
    (300, dict(**JOINT, base_interval="row")),
    (300, dict(**JOINT, base_interval="matrix")),
    (300, dict(**JOINT, base_interval=2)),
    (300, dict(**JOINT, base_interval=4)),
    (300, dict(**JOINT, base_interval=10)),
    (300, dict(**JOINT, base_interval=16)),
    (300, dict(**JOINT, encoder="base-xor")),
    (300, dict(**JOINT, objective="values")),
    (300, dict(**JOINT, metric="toggles", encoder="dbi-dc", bus_bytes=1)),  # a pair costs not the same turned round
    (300, dict(**JOINT, metric="toggles", encoder="raw", bus_bytes=2)),
    (300, dict(**JOINT, method="greedy")),
    (1500, dict(value_format="fp16", stride="row", effort=0.2)),  # too long for tables
    (1500, dict(value_format="fp32", stride="matrix", layout="coo", id_bits=32, method="greedy")),
]

RUN = """
import hashlib, json, sys
import edgewatt as ew
from test_tuple_levels import CASES, matrix
found = []
for k, (size, kind) in enumerate(CASES):
    order = ew.order_tuples(matrix(k, size), bound=False, **{"effort": 1.0, **kind})
    found.append([hashlib.sha256(order.positions.tobytes()).hexdigest(), order.cost])
json.dump(found, sys.stdout)
"""


def matrix(seed: int, size: int) -> sp.csr_matrix:
    """Two rows of normal weights, about `size` of them."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(0, 0.01, (2, 2 * size)) * (rng.random((2, 2 * size)) < 0.25)
    return sp.csr_matrix(dense.astype(np.float32))


def orders(level: str) -> list[list[object]]:
    env = {**os.environ, "EDGEWATT_SIMD": level}
    env["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def plain() -> list[list[object]]:
    return orders("baseline")


@pytest.mark.parametrize("level", ["avx2", "avx512"])
def test_orders_are_those_of_the_plain_search(plain, level):
    assert orders(level) == plain
