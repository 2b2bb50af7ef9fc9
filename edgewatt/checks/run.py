"""Checks of an order by definition, and of a reordered sparse matrix: expected, measured, how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.config.source import NetworkFiles
from reorder.base import check_order
from traces.base.errors import InputError
from traces.base.sparse import checked_sparse
from traces.networks.network import Network

COLUMNS = ("check", "expected", "measured", "deviation", "verdict")


@dataclass(frozen=True)
class Check:
    """The outcome of one check. `deviation` is relative (0.01 is 1 %), None where a number makes no sense."""

    name: str
    expected: int | str
    measured: int | str
    passed: bool
    deviation: float | None = None

    def row(self) -> tuple[str, ...]:
        deviation = "" if self.deviation is None else f"{100 * self.deviation:+.3g} %"
        verdict = "ok" if self.passed else "FAILED"
        return (self.name, _text(self.expected), _text(self.measured), deviation, verdict)

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def equal(name: str, expected: int | str, measured: int | str) -> Check:
    """Check exact equality; the deviation of numbers is relative to the expected one, 0 of 0 and 0."""
    deviation = None
    if isinstance(expected, int) and isinstance(measured, int):
        apart = measured - expected
        deviation = apart / abs(expected) if expected else float("inf") if apart else 0.0
    return Check(name, expected, measured, expected == measured, deviation)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def validate_order(network: Network, order: npt.ArrayLike) -> list[Check]:
    try:
        check_order(network, order)
    except InputError as error:
        return [Check("permutation and topological", "yes", str(error), False)]
    return [Check("permutation and topological", "yes", "yes", True)]


def validate_matrix(original: Any, reordered: Any, *, stride: int | None = None) -> list[Check]:
    """Check a reordered CSR matrix against the original: same rows of tuples, moves inside strides.

    original, reordered: scipy.sparse CSR matrices as stored (indices of `reordered` need not be sorted).
    stride: tuples may only have moved inside consecutive groups of `stride` of a row; None: anywhere in the row.
    """
    original, reordered = checked_sparse(original, "the original"), checked_sparse(reordered, "the reordered matrix")
    checks = [
        equal("shape", str(original.shape), str(reordered.shape)),
        equal("stored values", original.nnz, reordered.nnz),
    ]
    if not all(check.passed for check in checks):
        return checks
    row_pointers_differ = int((np.asarray(original.indptr) != np.asarray(reordered.indptr)).sum())
    checks.append(equal("row pointers that differ", 0, row_pointers_differ))
    if row_pointers_differ:
        return checks
    row = np.repeat(np.arange(original.shape[0]), np.diff(original.indptr))
    group = np.zeros(len(row), np.int64)
    if stride is not None:
        group = (np.arange(len(row)) - np.asarray(original.indptr)[row]) // stride

    def sorted_tuples(matrix: Any) -> tuple[np.ndarray, ...]:
        order = np.lexsort((matrix.data, matrix.indices, group, row))
        return matrix.indices[order], matrix.data[order]

    before, after = sorted_tuples(original), sorted_tuples(reordered)
    moved = int(((before[0] != after[0]) | (before[1] != after[1])).sum())
    where = "its row" if stride is None else f"its stride of {stride}"
    checks.append(equal(f"tuples changed or moved out of {where}", 0, moved))
    return checks


def validate(
    *,
    network: Network | str | Path | None = None,
    order: str | Path | None = None,
    matrix: str | Path | None = None,
    reordered: str | Path | None = None,
    stride: int | None = None,
    names: Sequence[str] = (),
) -> list[Check]:
    """Return the results of the checks that the given files ask for.

    order: of `network`. reordered: `matrix` with tuples in another order, inside pieces of `stride`. names: the tensor
    that is meant of a `matrix` with several, and of a `reordered` folder.

    Raises InputError where a file cannot be used, one of a pair is missing, or there is nothing to check.
    """
    for (one, first), (two, second) in (
        (("--order", order), ("--network", network)),
        (("--matrix", matrix), ("--reordered", reordered)),
    ):
        if (first is None) != (second is None):
            raise InputError(f"{one} and {two} belong together: give both")
    if stride is not None and (stride < 1 or matrix is None):
        raise InputError("--stride is a number of at least 1 and goes with --matrix and --reordered")
    checks: list[Check] = []
    if order is not None and network is not None:
        from reorder.edges.methods.given import read_order

        given = network if isinstance(network, Network) else NetworkFiles((str(network),)).network("validate")
        checks += validate_order(given, read_order(str(order)))
    if matrix is not None and reordered is not None:
        from reorder.tuples.files import read_matrix

        of_many = names if Path(reordered).is_dir() else ()
        checks += validate_matrix(
            read_matrix(matrix, names=names), read_matrix(reordered, names=of_many), stride=stride
        )
    if not checks:
        raise InputError("nothing to check: give --order with --network, or --matrix with --reordered")
    return checks
