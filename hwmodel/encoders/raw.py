"""raw: bytes as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hwmodel.bus import Coded
from hwmodel.coding.stage import ENCODERS, Role, Stage


@ENCODERS.register("raw", summary="bytes as they are")
class Raw(Stage):
    """No encoding."""

    role = Role.SIMILARITY
    by_block = True
    plain = True

    @classmethod
    def objection(cls, others: Sequence[type[Stage]]) -> str | None:
        """It stands alone."""
        return "does nothing, leave it out" if others else None

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        return coded, state

    decode = encode
