"""Groups of a tuple order that another distribution brings are kept for that order alone: changed, it orders again."""

import json
from pathlib import Path

import pytest

from tests.outside import run_with, write_distribution
from tests.outside_members import BACKWARDS_INSIDE

pytestmark = pytest.mark.application

ONE = """
import numpy as np, scipy.sparse, json
import edgewatt as ew
matrix = scipy.sparse.csr_matrix(np.arange(1, 7, dtype=np.float32)[None])
found = ew.order_tuples(matrix, value_format="fp16", stride=3, method="backwards", checkpoint="kept.journal")
print(json.dumps(found.positions.tolist()))
"""
FOLDER = """
import json, os
import numpy as np
from safetensors.numpy import load_file, save_file
from reorder.tuples.shards import order_weights
if not os.path.exists("m"):
    os.mkdir("m")
    save_file({"w.weight": np.arange(1, 7, dtype=np.float16)[None]}, "m/model.safetensors")
order_weights("m", "out", stride=3, method="backwards")
print(json.dumps(load_file("out/model.safetensors")["w.weight.indices"].tolist()))
"""


@pytest.mark.parametrize("code", [ONE, FOLDER], ids=["checkpoint", "folder"])
def test_a_changed_tuple_order_orders_again(tmp_path: Path, code: str) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write_distribution(site, "theirs", "1.0", {"own": BACKWARDS_INSIDE}, "[edgewatt.tuple_orders]\nbackwards = own\n")

    def order() -> list[int]:
        done = run_with(site, "-c", code, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found: list[int] = json.loads(done.stdout)
        return found

    assert order() == [2, 1, 0, 5, 4, 3]
    assert order() == [2, 1, 0, 5, 4, 3], "what is kept is taken"
    changed = BACKWARDS_INSIDE.replace("[::-1]", "[[1, 2, 0]]")
    write_distribution(site, "theirs", "1.1", {"own": changed}, "[edgewatt.tuple_orders]\nbackwards = own\n")
    assert order() == [1, 2, 0, 4, 5, 3]
