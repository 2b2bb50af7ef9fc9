"""Encoders bit by bit over bitarrays: the readable second path beside the kernels.

``encode(..., engine="bitarray")`` runs each stage's `encode_bits`, and `edgewatt validate` compares the kernels with it
on the user's own bursts. An encoder that has no kernel subclasses `BitStage` and writes `encode_bits` and `decode_bits`
only; it is some hundred times slower.
"""

from __future__ import annotations

from typing import Any

from hwmodel.coding.bits import Bits, to_bits, to_bytes
from hwmodel.coding.coded import Coded
from hwmodel.coding.stage import Stage


class BitStage(Stage):
    """An encoder written over bitarrays: subclasses implement `encode_bits` and `decode_bits`.

    State is None before the first byte; what a method returns is given to the next call, and never changed in place.
    """

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Encode bit by bit."""
        sent, state = self.encode_bits(to_bits(coded), offset, state)
        return to_bytes(sent), state

    def decode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """Inverse of encode_bits."""
        raise TypeError(f"{type(self).__name__} does not decode")

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Decode bit by bit."""
        sent, state = self.decode_bits(to_bits(coded), offset, state)
        return to_bytes(sent), state


class BitByBit(BitStage):
    """The `encode_bits` of another stage in place of its kernel; that stage still says where a stream may be cut."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.geometry)
        self._stage = stage

    def cut(self, end: int) -> int:
        """Cut where the stage cuts."""
        return self._stage.cut(end)

    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """Encode as the stage defines it."""
        return self._stage.encode_bits(sent, offset, state)
