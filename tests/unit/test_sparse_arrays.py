"""Sparse matrices whose pointers or ids lead outside their arrays: one message, from files and in memory.

Each of them ended the process by a signal, or filled the memory, before arrays were checked in one place.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import edgewatt as ew
from edgewatt.checks.run import validate_matrix
from papers.studies.spmv import lay_out_spmv
from reorder.tuples.files import read_matrix, write_matrix
from traces.base.errors import InputError
from traces.networks.prune import prune_matrix

ROUND = [0, 2**63 - 1, -(2**63), -1, 5]  # differences go round: four positive ones, whose sum is 2^64 + 5
GOOD = [0, 2, 3, 3, 5]


def broken(kind: str, change: Callable[[Any], None]) -> Any:
    matrix = sparse.csr_matrix((np.arange(1.0, 6), [0, 3, 1, 2, 5], GOOD), shape=(4, 6)).asformat(kind)
    change(matrix)
    return matrix


def setting(name: str, values: Any) -> Callable[[Any], None]:
    return lambda matrix: setattr(matrix, name, np.array(values))


def at(name: str, place: int, value: int) -> Callable[[Any], None]:
    return lambda matrix: getattr(matrix, name).__setitem__(place, value)


BROKEN = {
    "pointers go round": ("csr", setting("indptr", ROUND)),
    "pointers fall": ("csr", setting("indptr", [0, 4, 3, 3, 5])),
    "pointers beyond the end": ("csr", setting("indptr", [0, 2, 3, 3, 2**30])),
    "too few pointers": ("csr", setting("indptr", [0, 2, 5])),
    "no pointers": ("csr", setting("indptr", np.zeros(0, np.int32))),
    "an id beyond": ("csr", at("indices", 1, 2**30)),
    "a negative id": ("csr", at("indices", 1, -(2**30))),
    "ids that are not whole numbers": ("csr", setting("indices", [0.0, 3, 1, 2, 5])),
    "fewer ids": ("csr", setting("indices", [0, 3])),
    "fewer values": ("csr", setting("data", [1.0])),
    "columns: an id beyond": ("csc", at("indices", 1, 2**30)),
    "columns: pointers fall": ("csc", at("indptr", 3, -1)),
    "blocks: an id beyond": ("bsr", at("indices", 0, 2**30)),
    "blocks: pointers beyond": ("bsr", at("indptr", 1, 2**30)),
    "places: a row beyond": ("coo", at("row", 0, 2**30)),
    "places: a negative column": ("coo", at("col", 0, -7)),
}
PUBLIC = {
    "order_tuples csr": lambda m: ew.order_tuples(m, layout="csr", value_format="fp16", stride=4),
    "order_tuples csc": lambda m: ew.order_tuples(m, layout="csc", value_format="fp16", stride=4),
    "order_tuples coo": lambda m: ew.order_tuples(m, layout="coo", value_format="fp16", stride=4),
    "from_matrices": lambda m: ew.from_matrices([m]),
    "lay_out_spmv": lambda m: lay_out_spmv(m, np.ones(6)),
    "prune_matrix": lambda m: prune_matrix(m, density=0.5),
    "validate_matrix": lambda m: validate_matrix(m, m),
    "write_matrix": lambda m: write_matrix(m, "m.mtx"),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("public", PUBLIC)
def test_in_memory(public: str, what: str) -> None:
    with pytest.raises(InputError):
        PUBLIC[public](broken(*BROKEN[what]))


def lists(columns: int, values: int) -> Any:
    matrix = sparse.lil_matrix((4, 6))
    matrix.rows[0], matrix.data[0] = list(range(columns)), [1.0] * values
    return matrix


def diagonals(offsets: Any, shape: tuple[int, ...]) -> Any:
    matrix = sparse.dia_matrix((4, 6))
    matrix.offsets, matrix.data = np.array(offsets), np.ones(shape)
    return matrix


ODD = {
    "more values than columns in a list": lambda: lists(1, 10**6),
    "fewer values than columns": lambda: lists(5, 1),
    "more diagonals than offsets": lambda: diagonals([0], (30_000, 6)),
    "fewer diagonals than offsets": lambda: diagonals([0, 1, 2], (1, 6)),
    "offsets that are no whole numbers": lambda: diagonals([0.5], (1, 6)),
    "a diagonal alone": lambda: diagonals([0], (6,)),
    "values that are no numbers": lambda: broken("csr", setting("data", list("abcde"))),
    "a side beyond 2^63": lambda: broken("csr", lambda matrix: setattr(matrix, "_shape", (4, 2**70))),
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("public", ["order_tuples csc", "from_matrices"])
def test_formats_whose_conversion_follows_what_it_finds(public: str, what: str) -> None:
    with pytest.raises(InputError):
        PUBLIC[public](ODD[what]())


def connections(matrix: Any) -> list[list[float]]:
    network = ew.from_matrices([matrix])
    return [network.sources.tolist(), network.targets.tolist(), network.weights.tolist()]


def test_a_side_without_entries_is_claimed() -> None:
    wide = broken("csr", lambda matrix: setattr(matrix, "_shape", (4, 2**40)))
    with pytest.raises(InputError, match="pointers to its rows or columns"):
        PUBLIC["order_tuples csc"](wide)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("ids", [np.int32, np.int64, np.uint64, np.int8, ">i4"])
def test_room_behind_the_last_entry_and_ids_of_any_width(kind: str, ids: Any) -> None:
    matrix, changed = (broken(kind, lambda _: None) for _ in range(2))
    changed.indices = np.append(matrix.indices, [0, 0]).astype(ids)
    changed.indptr = matrix.indptr.astype(ids)
    changed.data = np.concatenate((matrix.data, matrix.data[:2]))
    assert connections(changed) == connections(matrix)
    assert len(changed.indices) == len(matrix.indices) + 2, "the caller's matrix stays as it is"
    assert (
        ew.order_tuples(changed, layout="csr", value_format="fp32", stride=4).ones
        == ew.order_tuples(matrix, layout="csr", value_format="fp32", stride=4).ones
    )


def test_diagonals_outside_are_left_out() -> None:
    assert connections(diagonals([0, 2**62, -(2**63)], (3, 6))) == connections(diagonals([0], (1, 6)))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_every_format_is_taken(kind: str) -> None:
    matrix = broken(kind, lambda _: None)
    assert ew.from_matrices([matrix]).n_connections == matrix.tocoo().nnz
    ordered = ew.order_tuples(matrix, layout="csr", value_format="fp32", stride=4).matrix()
    assert (ordered.toarray() == matrix.toarray()).all()


def test_room_behind_the_last_entry_is_no_entry() -> None:
    """SciPy lets arrays be longer than the pointers say."""
    matrix = broken("csr", lambda m: (setting("indices", [0, 3, 1, 2, 5, 0])(m), setting("data", [1.0] * 6)(m))[0])
    assert len(ew.order_tuples(matrix, layout="csr", value_format="fp16", stride=4).matrix().data) == 5


@pytest.mark.parametrize("read", [ew.load, read_matrix], ids=["load", "read_matrix"])
@pytest.mark.parametrize("kind", ["csr", "csc", None], ids=["csr", "csc", "four arrays"])
def test_pointers_of_a_file(read: Callable[[Path], object], kind: str | None, tmp_path: Path) -> None:
    shape = [4, 6] if kind != "csc" else [6, 4]
    arrays: dict[str, Any] = dict(shape=shape, data=np.ones(5), indices=np.arange(5) % 4, indptr=np.array(ROUND))
    if kind:
        arrays["format"] = np.bytes_(kind)
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(InputError, match=r"m\.npz"):
        read(tmp_path / "m.npz")


@pytest.mark.parametrize("scipys", [True, False], ids=["scipy", "four arrays"])
@pytest.mark.parametrize(("data", "said"), [
    ([1 + 2j, 3], "must be real numbers, not complex128"), (np.zeros(2, "M8[s]"), "not datetime64"),
    (["a", "b"], "must be real numbers, not <U1"), (np.zeros(2, "f4,i4"), "must be real numbers"),
    ([1e300, 1], r"is 1e\+300: not a finite float32"), ([1, 2**60 + 1], "is 1152921504606846977: float32 does not"),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_values_of_a_file_that_float32_does_not_hold(tmp_path: Path, data: Any, said: str, scipys: bool) -> None:
    more = {"format": np.bytes_("csr")} if scipys else {}
    np.savez(tmp_path / "m.npz", data=data, indices=[0, 1], indptr=[0, 1, 2], shape=[2, 2], **more)
    with pytest.raises(InputError, match=rf"m\.npz.* {said}"):
        read_matrix(tmp_path / "m.npz")


@pytest.mark.parametrize("value", [1e300, 2j])
@pytest.mark.filterwarnings("error")
def test_values_in_memory_that_float32_does_not_hold(value: complex) -> None:
    with pytest.raises(InputError, match=r"is 1e\+300: only finite float32|complex128 values"):
        ew.order_tuples(np.array([[value, 0], [0, 1]]), value_format="fp32", stride="row")
