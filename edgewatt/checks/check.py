"""One check: what was expected, what was measured, how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass

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
