"""edgewatt.checks: what is wrong must be seen, what is right must pass."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.integer_oracle import integer_mismatches

from edgewatt.checks.run import validate_matrix, validate_order
from reorder.base import check_order
from reorder.edges.methods.given import read_order
from traces.base.errors import InputError
from traces.networks.network import Network


def layered(widths: list[int], seed: int) -> Network:
    """A dense layered network with its connections sorted by (target, source)."""
    starts = np.concatenate(([0], np.cumsum(widths)))
    pairs = [
        (s, t)
        for a in range(len(widths) - 1)
        for t in range(starts[a + 1], starts[a + 2])
        for s in range(starts[a], starts[a + 1])
    ]
    sources, targets = np.array(pairs).T
    weights = np.random.default_rng(seed).standard_normal(len(pairs))
    n = int(starts[-1])
    return Network(
        sources, targets, n_neurons=n, inputs=range(widths[0]), outputs=range(starts[-2], n), weights=weights
    )


def test_a_topological_order_passes_every_check() -> None:
    network = layered([5, 4, 4, 2], 0)
    order = np.concatenate([np.random.default_rng(1).permutation(20), 20 + np.arange(24)])
    assert all(check.passed for check in validate_order(network, order))


def test_an_order_that_uses_unfinished_values_is_named_and_gives_wrong_values() -> None:
    network = layered([5, 4, 4, 2], 0)
    order = np.arange(network.n_connections)[::-1]
    (check,) = validate_order(network, order)
    assert not check.passed
    assert "not topological: position 0 processes connection 43" in str(check.measured)
    assert integer_mismatches(network, order) > 0


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1], "the order has 2 entries, the network 44 connections"),
        ([0] * 44, "is not a permutation: connection 1 is missing"),
        ([*range(43), 44], "connection 44 does not exist"),
        ([0.5] * 44, "one-dimensional integer array"),
    ],
)
def test_what_is_no_permutation_is_refused(order: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_order(layered([5, 4, 4, 2], 0), order)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.integers(0, 1000))
def test_random_topological_orders_are_exact(widths: list[int], seed: int) -> None:
    network = layered(widths, seed)
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(network.n_connections), network.depth[network.targets]))
    assert integer_mismatches(network, order, seed=seed) == 0


def test_orders_are_read_from_npy_npz_and_text(tmp_path: Path) -> None:
    order = np.array([2, 0, 1])
    np.save(tmp_path / "a.npy", order)
    np.savez(tmp_path / "a.npz", edges=order)
    (tmp_path / "a.txt").write_text("2\n0\n1\n")
    for name in ("a.npy", "a.npz", "a.txt"):
        assert read_order(str(tmp_path / name)).tolist() == [2, 0, 1]


def test_bad_order_files_name_file_and_entry(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("0\nzwei\n")
    with pytest.raises(InputError, match=r"bad\.txt: entry 2 is 'zwei', no index of a connection"):
        read_order(str(tmp_path / "bad.txt"))
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(InputError, match=r"cut\.npz"):
        read_order(str(tmp_path / "cut.npz"))
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"pickled\.npy"):
        read_order(str(tmp_path / "pickled.npy"))
    with pytest.raises(InputError, match=r"absent\.txt"):
        read_order(str(tmp_path / "absent.txt"))


def test_a_reordered_matrix_is_checked_tuple_by_tuple() -> None:
    matrix = sp.csr_matrix(np.array([[1.0, 2, 0, 3], [0, 4, 5, 0]]))
    swapped = matrix.copy()
    swapped.indices[[0, 1]], swapped.data[[0, 1]] = matrix.indices[[1, 0]], matrix.data[[1, 0]]
    swapped.has_sorted_indices = False
    assert all(check.passed for check in validate_matrix(matrix, swapped))
    assert not all(check.passed for check in validate_matrix(matrix, swapped, stride=1))
    broken = swapped.copy()
    broken.data[0] = 9.0
    assert not all(check.passed for check in validate_matrix(matrix, broken))
