"""Checks of orderings, matrices, configurations and our own models against definitions and theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traces.base.errors import InputError

COLUMNS = ("check", "expected", "measured", "deviation", "verdict")


@dataclass(frozen=True)
class Check:
    """The outcome of one check. `deviation` is relative (0.01 is 1 %), None where a number makes no sense.

    stated: two figures side by side, of which neither is wrong.
    """

    name: str
    expected: object
    measured: object
    passed: bool
    deviation: float | None = None
    stated: bool = False

    def row(self) -> tuple[str, ...]:
        """Return the cells of COLUMNS."""
        deviation = "" if self.deviation is None else f"{100 * self.deviation:+.3g} %"
        return (self.name, _text(self.expected), _text(self.measured), deviation, self.verdict)

    @property
    def verdict(self) -> str:
        """Return 'ok', 'FAILED', or 'stated' where there is nothing to judge."""
        return "stated" if self.stated else "ok" if self.passed else "FAILED"

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "name": self.name,
            "expected": _plain(self.expected),
            "measured": _plain(self.measured),
            "deviation": self.deviation,
            "passed": self.passed,
            **({"stated": True} if self.stated else {}),
        }


def equal(name: str, expected: int | float | str, measured: int | float | str) -> Check:
    """Check exact equality; the deviation is relative to the expected number."""
    deviation = None
    if isinstance(expected, int | float) and isinstance(measured, int | float):
        deviation = relative(expected, measured)
    return Check(name, expected, measured, expected == measured, deviation)


def within(name: str, expected: float, measured: float, tolerance: float) -> Check:
    """Check a relative tolerance (0.05 is 5 %)."""
    deviation = relative(expected, measured)
    return Check(name, expected, measured, abs(deviation) <= tolerance, deviation)


def at_most(name: str, limit: float, measured: float) -> Check:
    """Check ``measured <= limit``."""
    return Check(name, f"<= {limit}", measured, measured <= limit)


def holds(name: str, statement: str, failures: Sequence[object]) -> Check:
    """Check that a statement that was tried on many cases never failed; the first failure is shown."""
    measured = "holds" if not failures else f"{len(failures)} failures, first: {failures[0]}"
    return Check(name, statement, measured, not failures)


def relative(expected: float, measured: float) -> float:
    """Return (measured - expected) / |expected|, with 0/0 = 0."""
    if measured == expected:
        return 0.0
    return (measured - expected) / abs(expected) if expected else float("inf")


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | bool) or value is None else str(value)


__all__ = ["Check", "run_checks", "validate"]


def run_checks(
    *,
    network: Path | None = None,
    order: Path | None = None,
    system: str | None = None,
    lanes: int = 16,
    matrix: Path | None = None,
    reordered: Path | None = None,
    stride: int | None = None,
    config: Path | None = None,
    reference: Path | None = None,
    seed: int = 0,
) -> list[Check]:
    """Run the checks that the given files ask for; without files, our models against theory and reference data.

    Raises InputError where a file cannot be used or one of a pair is missing.
    """
    for (one, first), (two, second) in (
        (("--order", order), ("--network", network)),
        (("--matrix", matrix), ("--reordered", reordered)),
    ):
        if (first is None) != (second is None):
            raise InputError(f"{one} and {two} belong together: give both")
    if stride is not None and (stride < 1 or matrix is None):
        raise InputError("--stride is a number of at least 1 and goes with --matrix and --reordered")
    if system is not None and order is None:
        raise InputError("--system goes with --order and --network: it is the machine that the order is played on")
    checks: list[Check] = []
    if order is not None and network is not None:
        checks += _order_checks(network, order, system, lanes, seed)
    if matrix is not None and reordered is not None:
        checks += _matrix_checks(matrix, reordered, stride)
    if config is not None:
        from edgewatt.checks.machines import configuration_checks

        checks += configuration_checks(config)
    if not checks:
        checks += validate(reference=reference, seed=seed)
    return checks


def validate(*, reference: Path | None = None, seed: int = 0) -> list[Check]:
    """Check our models against theory and, where `reference` is a folder of reference numbers, against those.

    Returns a row per check: what was compared, ours, theirs, and whether they agree.
    """
    from edgewatt.checks.models import reference_checks, theory_checks

    checks = list(theory_checks(seed=seed))
    if reference is not None and str(reference):
        if not reference.is_dir():
            raise InputError(f"{reference}: there is no such folder of reference numbers")
        checks += reference_checks(reference)
    return checks


def _order_checks(network: Path, order: Path, system: str | None, lanes: int, seed: int) -> list[Check]:
    from edgewatt.checks.orders import read_order, validate_order
    from traces.networks.network import Network
    from traces.readers import load

    given = load(network, kind="network")
    if not isinstance(given, Network):
        raise InputError(f"{network}: holds no network of neurons")
    edges = read_order(order)
    checks = validate_order(given, edges, seed=seed)
    if system is not None and checks[0].passed:
        from edgewatt.checks.machines import machine_checks

        checks += machine_checks(given, edges, system, lanes=lanes, seed=seed)
    return checks


def _matrix_checks(matrix: Path, reordered: Path, stride: int | None) -> list[Check]:
    from edgewatt.checks.orders import read_matrix, validate_matrix

    return validate_matrix(read_matrix(matrix), read_matrix(reordered), stride=stride)
