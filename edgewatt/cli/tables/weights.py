"""What the reordered matrices of a model send, as `edgewatt order-tuples` shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgewatt.cli.parts.output import say, show_table


def show_weights(orders: Sequence[Any], output: str) -> None:
    """Print what a model's matrices send (`reorder.tuples.shards.MatrixOrder`), and all of them together."""
    ones = lambda o, k: getattr(o, f"{k}ones_values") + getattr(o, f"{k}ones_ids")  # noqa: E731
    sums = [(o.name, o.tuples, ones(o, "original_"), ones(o, "")) for o in orders]
    sums.append(("all", *(sum(each[k] for each in sums) for k in (1, 2, 3))))
    rows = [
        (name, count, before, after, f"{100 * after / before - 100:+.1f} %" if before else "-")
        for name, count, before, after in (sums if len(orders) > 1 else sums[:1])
    ]
    heads = ("matrix", "tuples", "ones as stored", "reordered", "change")
    show_table(heads, rows, title=f"{len(orders)} {'matrix' if len(orders) == 1 else 'matrices'}", numeric=heads[1:])
    say(f"reordered shards: {output}")
