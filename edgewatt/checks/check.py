"""One check: what was expected, what was measured, how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass

COLUMNS = ("check", "expected", "measured", "deviation", "verdict")


@dataclass(frozen=True)
class Check:
    """The outcome of one check. `deviation` is relative (0.01 is 1 %), None where a number makes no sense."""

    name: str
    expected: object
    measured: object
    passed: bool
    deviation: float | None = None

    def row(self) -> tuple[str, ...]:
        """Return the cells of COLUMNS."""
        deviation = "" if self.deviation is None else f"{100 * self.deviation:+.3g} %"
        return (self.name, _text(self.expected), _text(self.measured), deviation, self.verdict)

    @property
    def verdict(self) -> str:
        """Return 'ok' or 'FAILED'."""
        return "ok" if self.passed else "FAILED"

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            "name": self.name,
            "expected": _plain(self.expected),
            "measured": _plain(self.measured),
            "deviation": self.deviation,
            "passed": self.passed,
        }


def equal(name: str, expected: int | str, measured: int | str) -> Check:
    """Check exact equality; the deviation of numbers is relative to the expected one, 0 of 0 and 0."""
    deviation = None
    if isinstance(expected, int) and isinstance(measured, int):
        apart = measured - expected
        deviation = apart / abs(expected) if expected else float("inf") if apart else 0.0
    return Check(name, expected, measured, expected == measured, deviation)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | str | bool) or value is None else str(value)
