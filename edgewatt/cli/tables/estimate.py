"""What a sweep would compute, as `edgewatt sweep --dry-run` shows it."""

from __future__ import annotations

from typing import Any

from edgewatt.cli.parts.output import say, show_table


def show_estimate(counted: dict[str, Any]) -> None:
    """Print what a sweep would compute and how long that may take (`edgewatt.runs.estimate.estimate`)."""
    rows = [(name, str(count)) for name, count in counted["stages"].items()]
    show_table(
        ("stage", "distinct"),
        rows,
        title=f"{counted['points']} points, {counted['to_do']} to compute",
        numeric=("distinct",),
    )
    say(counted["text"])
