"""Checks of orderings and matrices against their definitions."""

from __future__ import annotations

from pathlib import Path

from edgewatt.checks.check import Check
from edgewatt.config.source import NetworkFiles
from traces.base.errors import InputError
from traces.networks.network import Network


def validate(
    *,
    network: Network | str | Path | None = None,
    order: str | Path | None = None,
    matrix: str | Path | None = None,
    reordered: str | Path | None = None,
    stride: int | None = None,
) -> list[Check]:
    """Return the results of the checks that the given files ask for.

    order: of `network`. reordered: `matrix` with tuples in another order, inside pieces of `stride`.

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
        from edgewatt.checks.orders import validate_order
        from reorder.edges.methods.given import read_order

        given = network if isinstance(network, Network) else NetworkFiles((str(network),)).network("validate")
        checks += validate_order(given, read_order(str(order)))
    if matrix is not None and reordered is not None:
        from edgewatt.checks.orders import validate_matrix
        from reorder.tuples.files import read_matrix

        checks += validate_matrix(read_matrix(matrix), read_matrix(reordered), stride=stride)
    if not checks:
        raise InputError("nothing to check: give --order with --network, or --matrix with --reordered")
    return checks
