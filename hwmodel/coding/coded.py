"""What stages hand each other, and what wires cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class WireCosts:
    """What a data wire costs, in pJ or in any other unit: a unit interval at 1, one at 0, a rising edge."""

    one_pj: float = 1.0
    zero_pj: float = 0.0
    rise_pj: float = 1.0

    def __post_init__(self) -> None:
        if not all(0 <= cost < float("inf") for cost in (self.one_pj, self.zero_pj, self.rise_pj)):
            raise InputError(f"costs of wires are finite and not negative, not {self}")


@dataclass(frozen=True, eq=False)
class Coded:
    """What a stage hands on. n bytes go on the data wires in `data`.

    flags: uint8[ceil(n / 8)] or None: bit i (LSB first) travels with byte i on its lane's first flag (DBI) wire.
    extra: uint8[n] or None: the flag wires of a lane beyond the first; bit k of byte i is flag wire k + 1 beside data
    byte i.
    """

    data: Bytes
    flags: Bytes | None = None
    extra: Bytes | None = None

    def part(self, start: int, end: int) -> Coded:
        """Return what goes with bytes `start` to `end`, multiples of 8."""
        flags = None if self.flags is None else self.flags[start // 8 : end // 8]
        return Coded(self.data[start:end], flags, None if self.extra is None else self.extra[start:end])
