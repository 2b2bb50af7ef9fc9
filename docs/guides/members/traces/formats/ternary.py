"""ternary: -1, 0 and 1 times a step, as two bits."""

from __future__ import annotations

from traces.formats.format import FORMATS
from traces.formats.integers import IntegerFormat

FORMATS.register("ternary", summary="-1, 0 or 1 times max|value|, four to a byte")(IntegerFormat(2))
