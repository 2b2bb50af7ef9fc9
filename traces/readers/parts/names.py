"""File and tensor names in the order people mean: layer2 before layer10."""

from __future__ import annotations

import re

from traces.base.checks import is_whole


def natural_key(name: object) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that compares runs of digits as numbers."""
    words = re.split(r"([0-9]+)", str(name))
    return tuple((0, int(word), "") if is_whole(word) else (1, 0, word) for word in words)
