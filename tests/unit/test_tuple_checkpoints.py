"""Checkpoints of tuple orders: what is not one's own work is never trusted with a kernel."""

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import edgewatt as ew
import reorder.tuples.groups as groups
from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.tuple_order import TupleOrder
from traces.base.errors import InputError
from traces.base.journal import _line

pytestmark = pytest.mark.application


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> scipy.sparse.csr_matrix:
    monkeypatch.setattr(groups, "GROUP_TUPLES", 64)
    return scipy.sparse.random(40, 20, 0.4, format="csr", random_state=np.random.default_rng(0))


def ordered(matrix: scipy.sparse.csr_matrix, path: Path | None = None, **options: Any) -> TupleOrder:
    return ew.order_tuples(
        matrix, value_format="fp16", stride=8, method="greedy", bound=False, checkpoint=path, **options
    )


def packed(numbers: object, dtype: str = "<u4") -> str:
    return base64.b64encode(np.asarray(numbers, dtype).tobytes()).decode()


def swapped_between_strides(order: np.ndarray) -> np.ndarray:
    at = int(np.flatnonzero(order >= 8)[-1])
    order[[0, at]] = order[[at, 0]]
    return order


WRONG: dict[str, Callable[[np.ndarray], dict[str, object]]] = {
    "far": lambda order: {"group": 0, "order": packed(order + 10**6)},
    "zeros": lambda order: {"group": 0, "order": packed(order * 0)},
    "short": lambda order: {"group": 0, "order": packed(order[:-1])},
    "long": lambda order: {"group": 0, "order": packed(np.append(order, 0))},
    "empty": lambda order: {"group": 0, "order": ""},
    "halves": lambda order: {"group": 0, "order": packed(order, "<u2")},
    "bytes": lambda order: {"group": 0, "order": packed(order)[:-7]},
    "number": lambda order: {"group": 0, "order": 3},
    "another stride": lambda order: {"group": 0, "order": packed(swapped_between_strides(order))},
    "beyond": lambda order: {"group": 99, "order": packed(order)},
    "negative": lambda order: {"group": -1, "order": packed(order)},
    "text": lambda order: {"group": "0", "order": "no base64"},
}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_wrong_group_is_ordered_again(matrix: scipy.sparse.csr_matrix, tmp_path: Path, workers: int) -> None:
    path = tmp_path / "c.journal"
    good = ordered(matrix, path)
    first, *lines = path.read_text().splitlines(keepends=True)
    groups = [json.loads(line.rpartition(" ")[0]) for line in lines]
    order = next(
        np.frombuffer(base64.b64decode(line["order"]), "<u4").astype(np.int64) for line in groups if line["group"] == 0
    )
    others = [line for line, group in zip(lines, groups, strict=True) if group["group"] != 0]
    for name, wrong in WRONG.items():
        path.write_text("".join([first, _line(wrong(order.copy())), *(others if workers == 1 else others[:1])]))
        again = ordered(matrix, path, workers=workers)
        assert (again.positions == good.positions).all() and again.cost == good.cost, name
        told: list[int] = []
        ordered(matrix, path, progress=lambda done, total, text, told=told: told.append(done))
        assert not told, f"{name}: the journal is whole again"


def test_every_truncation_and_many_flips(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "c.journal"
    good, rng = ordered(matrix, path), np.random.default_rng(3)
    raw = path.read_bytes()
    damages = [b"", raw[: len(raw) // 2], raw[:-1], raw[:3]]
    for _ in range(60):
        damaged = bytearray(raw)
        damaged[rng.integers(8, len(raw))] ^= 1 << rng.integers(8)
        damages.append(bytes(damaged) if rng.random() < 0.7 else raw[: rng.integers(len(raw))])
    for damage in damages:
        path.write_bytes(damage)
        if damage and not damage.startswith(raw[:7]):
            with pytest.raises(InputError, match="no journal"):
                ordered(matrix, path)
        else:
            assert (ordered(matrix, path).positions == good.positions).all()


def test_a_checkpoint_of_another_matrix_is_begun_afresh(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "c.journal"
    ordered(matrix * 2.5, path)
    good = ordered(matrix)
    assert (ordered(matrix, path).positions == good.positions).all()


def test_a_file_that_is_no_checkpoint_stays(
    matrix: scipy.sparse.csr_matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights.npz"
    scipy.sparse.save_npz(path, matrix)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"weights.npz: no journal of finished work: name another file"):
        ordered(matrix, path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="not a file"):
        ordered(matrix, tmp_path)
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "100")
    with pytest.raises(InputError, match="more than the bound"):
        ordered(matrix, path)


BAD_ORDERS = """
import numpy as np
from cython_ext.cdr.tuples import GREEDY, order_strides, stride_bounds

n, words = 24, np.arange(24, dtype=np.uint64)[:, None]
keep, slots = np.zeros((8, 1), np.uint64), np.zeros(n, np.uint8)


def call(order, bounds=(0, 8, n), keep=keep, words=words):
    given = words, words, keep, slots, np.array(bounds), 0, 2, order
    order_strides(*given, GREEDY, True, 0.0, 0, True, True)
    stride_bounds(*given, 1, True, True, np.zeros(2))


def refused(why, **given):
    try:
        call(**{"order": np.arange(n), **given})
    except ValueError as error:
        assert why in str(error), error
    else:
        raise SystemExit(f"not refused: {why}")


call(np.arange(n))
for bad in (-1, n, 10**12):
    for place in (0, n // 2, n - 1):
        order = np.arange(n)
        order[place] = bad
        refused("a tuple outside the matrix", order=order)
refused("strides lie inside the order", bounds=(0, 8, n + 1))
refused("a stride holds 0 to", bounds=(0, 8, 7))
refused("in all arrays alike", keep=keep[:7])
refused("one row for each tuple", words=words[:-1])
"""


def test_no_kernel_leaves_its_checks_to_assertions() -> None:
    root = Path(__file__).parents[2] / "cython_ext"
    assert not [str(file) for file in root.rglob("*.pyx") if re.search(r"^\s*assert\b", file.read_text(), re.M)]


@pytest.mark.parametrize("optimise", [(), ("-O",)], ids=["python", "python -O"])
def test_the_kernel_refuses_what_it_would_read_beyond(optimise: tuple[str, ...]) -> None:
    """Nor does `python -O`, which leaves assertions out, let it."""
    ran = subprocess.run([sys.executable, *optimise, "-c", BAD_ORDERS], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr


def test_a_method_that_loses_tuples_is_named(
    matrix: scipy.sparse.csr_matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member of another distribution may return anything: it is looked at before it is used or kept."""
    path = tmp_path / "c.journal"
    for wrong, words in (
        (lambda at: at[::-1], "moves a tuple out of its stride"),
        (lambda at: at[0], "is not a permutation"),
        (lambda at: at + 10**9, "is not a permutation"),
    ):

        def order(self, problem, order, first, last, seed, parameters, progress, wrong=wrong):  # type: ignore[no-untyped-def]
            start, stop = problem.bounds[first], problem.bounds[last]
            order[start:stop] = wrong(order[start:stop].copy())

        monkeypatch.setattr(type(TUPLE_ORDERS["greedy"].item), "order", order)
        with pytest.raises(InputError, match=f"tuple order 'greedy': what it returns for strides 0 to .* {words}"):
            ew.order_tuples(matrix, value_format="fp16", stride=8, method="greedy", checkpoint=path)
        assert not path.exists()
