"""What a sweep varies and its timing does not see: said before anyone compares two times that cannot differ."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from edgewatt.results.record import canonical_json
from edgewatt.runs.model import Point
from traces.base.errors import IgnoredSettingWarning

_UNSEEN = {
    "engine.outstanding_misses": "has no influence on it",
    "engines": "has no influence on it: one engine makes all accesses",
    "dram.controller": "changes commands and energy, but no engine waits for what it delays",
}


def ignored_settings(points: Iterable[Point]) -> list[str]:
    """Return a sentence for each setting that varies between points of issue time and that issue time does not see."""
    replayed = [p for p in points if p.measure.timing == "replay" and p.measure.measure == "all"]
    ignored = []
    for key, why in _UNSEEN.items():
        # a GPU's memory is open-loop by itself, and the file has said so
        settings = [p.field(key) for p in replayed if p.machine.gpu is None]
        values = {canonical_json(setting) for setting in settings if setting is not None}
        without = any(p.field(key) is None for p in replayed)
        if len(values) + without > 1 or (key == "engines" and values):
            ignored.append(f"{key} {why}")
    if not ignored:
        return []
    return [f"timing 'replay' is issue time: {text}; use timing 'system'" for text in ignored]


def warn_of_ignored(points: Iterable[Point]) -> None:
    """Warn (IgnoredSettingWarning) of what `ignored_settings` finds."""
    for text in ignored_settings(points):
        warnings.warn(text, IgnoredSettingWarning, stacklevel=3)
