"""How long work reports that it is still under way."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int | None, str], None]
"""Called with (work done, total work or None where it is not known, short text)."""
