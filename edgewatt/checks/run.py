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
from reorder.tuples.files import read_matrix
from reorder.tuples.matrix import LAYOUTS, stride_bounds
from traces.base.errors import InputError
from traces.base.sparse import checked_sparse
from traces.base.workers import in_turn
from traces.networks.network import Network
from traces.networks.prune import prune_matrix

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


def validate_matrix(
    original: Any, reordered: Any, *, stride: int | None = None, layout: str = "csr", stride_restart: str = "row"
) -> list[Check]:
    """Check a reordered matrix against the original: same rows (csc: columns) of tuples, moves inside strides.

    original, reordered: SciPy matrices as stored (indices of `reordered` need not be sorted).
    stride: tuples may only have moved inside consecutive groups of `stride` of a row, or as `stride_restart` of
    `order_tuples` says; None: anywhere in the row (coo: anywhere).
    """
    original, reordered = checked_sparse(original, "the original"), checked_sparse(reordered, "the reordered matrix")
    checks = [
        equal("shape", str(original.shape), str(reordered.shape)),
        equal("stored values", original.nnz, reordered.nnz),
    ]
    if not all(check.passed for check in checks):
        return checks
    kind = LAYOUTS[layout]
    line = "column" if kind.by_columns else "row"
    before, after = kind.read(original, in_turn), kind.read(reordered, in_turn)
    if not kind.rows_mix:
        n_lines = original.shape[kind.by_columns]
        ends = [np.cumsum(np.bincount(major, minlength=n_lines)) for major, _, _ in (before, after)]
        checks.append(equal(f"{line} pointers that differ", 0, int((ends[0] != ends[1]).sum())))
        if not checks[-1].passed:
            return checks
    pieces = stride or ("matrix" if kind.rows_mix else "row")
    bounds = stride_bounds(before[0], pieces, stride_restart, rows_may_mix=kind.rows_mix)
    group = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    one, two = ([part[np.lexsort((*each[::-1], group))] for part in each] for each in (before, after))
    moved = int(np.any([a != b for a, b in zip(one, two, strict=True)], axis=0).sum())
    where = f"its stride of {stride}" if stride else "the matrix" if kind.rows_mix else f"its {line}"
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
    density: float | None = None,
    layout: str | None = None,
    stride_restart: str | None = None,
) -> list[Check]:
    """Return the results of the checks that the given files ask for.

    order: of `network`. reordered: `matrix` with tuples in another order, inside pieces of `stride`. names: the tensor
    that is meant of a `matrix` with several, and of a `reordered` folder. density: the share of `matrix` that was kept.
    layout, stride_restart: as of `order_tuples`.

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
    if (layout or stride_restart) and matrix is None:
        raise InputError("--layout and --stride-restart go with --matrix and --reordered")
    if stride_restart and stride is None:
        raise InputError("--stride-restart goes with --stride: say how many tuples a stride has")
    checks: list[Check] = []
    if order is not None and network is not None:
        from reorder.edges.methods.given import read_order

        known = network if isinstance(network, Network) else NetworkFiles((str(network),)).network("validate")
        checks += validate_order(known, read_order(str(order)))
    if matrix is not None and reordered is not None:
        of_many = names if Path(reordered).is_dir() else ()
        layout = layout or "csr"
        given = read_matrix(matrix, names=names, layout=layout)
        checks += validate_matrix(
            given if density is None else prune_matrix(given, density=density),
            read_matrix(reordered, names=of_many, layout=layout),
            stride=stride, layout=layout, stride_restart=stride_restart or "row",
        )  # fmt: skip
    if not checks:
        raise InputError("nothing to check: give --order with --network, or --matrix with --reordered")
    return checks
