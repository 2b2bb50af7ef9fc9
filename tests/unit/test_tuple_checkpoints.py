"""Checkpoints of tuple orders: what is not one's own work is never trusted with a kernel."""

import io
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import edgewatt as ew
import reorder.tuples.checkpoint as checkpoint
import reorder.tuples.groups as groups
from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.tuple_order import TupleOrder
from traces.base.errors import InputError

pytestmark = pytest.mark.application

ARRAY = "GIVEN"


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> scipy.sparse.csr_matrix:
    monkeypatch.setattr(groups, "GROUP_TUPLES", 64)
    return scipy.sparse.random(40, 20, 0.4, format="csr", random_state=np.random.default_rng(0))


def ordered(matrix: scipy.sparse.csr_matrix, path: Path | None = None, **options: int) -> TupleOrder:
    return ew.order_tuples(
        matrix, value_format="fp16", stride=8, method="greedy", bound=False, checkpoint=path, **options
    )


def rewritten(path: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    with np.load(path) as stored:
        arrays = dict(stored)
    change(arrays)
    np.savez(path, **arrays)


def swap_between_strides(arrays: dict[str, np.ndarray]) -> None:
    first = arrays["group_0"]
    at = int(np.flatnonzero(first >= 8)[-1])
    first[[0, at]] = first[[at, 0]]


WRONG = {
    "far": lambda a: a.update(group_0=a["group_0"] + 10**12),
    "negative": lambda a: a.update(group_0=a["group_0"] - 5),
    "zeros": lambda a: a.update(group_1=np.zeros_like(a["group_1"])),
    "short": lambda a: a.update(group_0=a["group_0"][:-1]),
    "long": lambda a: a.update(group_0=np.append(a["group_0"], 0)),
    "empty": lambda a: a.update(group_0=np.zeros(0, np.int64)),
    "floats": lambda a: a.update(group_0=a["group_0"].astype(float)),
    "nan": lambda a: a.update(group_0=np.full(len(a["group_0"]), np.nan)),
    "table": lambda a: a.update(group_0=a["group_0"][:, None]),
    "scalar": lambda a: a.update(group_0=np.int64(3)),
    "another stride": swap_between_strides,
    "beyond": lambda a: a.update(group_99=a["group_0"]),
    "strange name": lambda a: a.update(group_x=a["group_0"]),
    "long name": lambda a: a.update({"group_" + "9" * 5000: a["group_0"]}),
    "text": lambda a: a.update(group_0=np.array(["x"] * len(a["group_0"]))),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_wrong_group_is_ordered_again(
    matrix: scipy.sparse.csr_matrix, tmp_path: Path, wrong: str, workers: int
) -> None:
    path = tmp_path / "c.npz"
    good = ordered(matrix, path)
    rewritten(path, WRONG[wrong])
    if workers == 2:  # most of the work is still open
        rewritten(path, lambda a: [a.pop(f"group_{k}", None) for k in range(3, 99 if wrong != "beyond" else 9)])
    with pytest.warns(UserWarning, match=r"c\.npz.*(damaged|strides|group).*ordered again"):
        again = ordered(matrix, path, workers=workers)
    assert (again.positions == good.positions).all() and again.cost == good.cost
    assert len(list(tmp_path.glob("c.npz.damaged-*"))) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (ordered(matrix, path).positions == good.positions).all(), "the checkpoint made again is whole"


def test_every_kind_of_damage_to_the_file(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    good = ordered(matrix, path)
    raw = path.read_bytes()
    header_shrunk = raw.replace(b"'shape': (61,)", b"'shape': (11,)")
    for damage in (b"", b"\0" * 4096, b"garbage", raw[: len(raw) // 2], raw[:-1], raw[200:], header_shrunk,
                   raw[:600] + bytes([raw[600] ^ 1]) + raw[601:]):  # fmt: skip
        path.write_bytes(damage)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = ordered(matrix, path)
        assert (again.positions == good.positions).all()


def test_every_truncation_and_many_flips(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    good, rng = ordered(matrix, path), np.random.default_rng(3)
    raw = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            damaged = bytearray(raw)
            damaged[rng.integers(len(raw))] ^= 1 << rng.integers(8)
            path.write_bytes(bytes(damaged) if rng.random() < 0.7 else bytes(damaged[: rng.integers(len(raw))]))
            assert (ordered(matrix, path).positions == good.positions).all()


def test_a_checkpoint_of_another_matrix_is_begun_afresh(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    ordered(matrix * 2.5, path)
    good = ordered(matrix)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (ordered(matrix, path).positions == good.positions).all()


def test_a_file_that_is_no_checkpoint_stays(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    scipy.sparse.save_npz(path, matrix)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"weights.npz: not a checkpoint of tuple orders but another npz file"):
        ordered(matrix, path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="not a file"):
        ordered(matrix, tmp_path)


def test_a_pickle_in_a_checkpoint_stays_closed(matrix: scipy.sparse.csr_matrix, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    good = ordered(matrix, path)
    rewritten(path, lambda a: a.update(group_0=np.array([Explosive()], object)))
    with pytest.warns(UserWarning, match="pickled Python objects, which are never loaded"):
        assert (ordered(matrix, path).positions == good.positions).all()


class Explosive:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('unpickled')",)


def test_a_bomb_is_not_unfolded(
    matrix: scipy.sparse.csr_matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.npz"
    ordered(matrix, path)
    with np.load(path) as stored:
        arrays = dict(stored)
    memory = io.BytesIO()
    np.savez_compressed(memory, **arrays | {"group_0": np.zeros(1 << 21, np.int64)})
    path.write_bytes(memory.getvalue())
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1M")
    with pytest.warns(UserWarning, match="more than the bound"):
        ordered(matrix, path)


BAD_ORDERS = """
import numpy as np
from cython_ext.cdr.tuples import EXACT, GREEDY, order_strides, stride_bounds

n, words = 24, np.arange(24, dtype=np.uint64)[:, None]
keep, slots = np.zeros((8, 1), np.uint64), np.zeros(n, np.uint8)
ends = np.full(2, 255, np.uint8)


def call(order, bounds=(0, 8, n), method=GREEDY, keep=keep, words=words):
    given = words, words, keep, slots, ends, np.array(bounds), 0, 2, order
    order_strides(*given, method, True, 0.0, 0, True, True)
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
refused("exact orders at most 16 tuples", bounds=(0, 17, n), method=EXACT)
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
    path = tmp_path / "c.npz"
    for wrong, words in (
        (lambda at: at[::-1], "moves a tuple out of its stride"),
        (lambda at: at[0], "is no permutation"),
        (lambda at: at + 10**9, "is no permutation"),
    ):

        def order(self, problem, order, first, last, seed, parameters, progress, wrong=wrong):  # type: ignore[no-untyped-def]
            start, stop = problem.bounds[first], problem.bounds[last]
            order[start:stop] = wrong(order[start:stop].copy())

        monkeypatch.setattr(type(TUPLE_ORDERS["greedy"].item), "order", order)
        with pytest.raises(InputError, match=f"tuple order 'greedy': what it returns for strides 0 to .* {words}"):
            ew.order_tuples(matrix, value_format="fp16", stride=8, method="greedy", checkpoint=path)
        assert not path.exists()


def test_a_slow_checkpoint_is_not_written_after_each_group(
    matrix: scipy.sparse.csr_matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "GROUP_TUPLES", 8)
    written, replace = [], checkpoint.replace_file

    def slowly(path: Path, data: memoryview) -> None:
        time.sleep(0.2)
        written.append(len(data))
        replace(path, data)

    monkeypatch.setattr(checkpoint, "replace_file", slowly)
    path = tmp_path / "c.npz"
    good = ordered(matrix, path)
    with np.load(path) as stored:
        kept = sum(len(stored[name]) for name in stored.files if name.startswith("group_"))
    assert kept == matrix.nnz, "the last groups are written at the end"
    assert len(written) <= 3, "not once a group"
    assert (ordered(matrix, path).positions == good.positions).all() and len(written) <= 3
