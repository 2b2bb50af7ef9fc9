"""Models that count accesses per tensor (ZigZag, Stream, Timeloop, AccelForge) together with the tensor's bytes.

A count says how many accesses of so many bits moved a tensor, not in which order. Where the whole tensor moved a known
number of times, the set bits that went over the wires are known exactly; toggles and row misses depend on an order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traces.base.errors import InputError


@dataclass(frozen=True)
class CountedTraffic:
    """accesses x access_bits of a tensor of tensor_bytes bytes with ones_per_pass set bits.

    passes: how often the whole tensor moved; None where neither the loops of the tool nor the count tell.
    """

    accesses: int
    access_bits: int
    tensor_bytes: int
    ones_per_pass: int
    passes: int | None

    @property
    def moved_bytes(self) -> int:
        """Bytes moved, accesses that were not full included."""
        return self.accesses * self.access_bits // 8

    @property
    def rounding_bytes(self) -> int | None:
        """Bytes moved beyond whole passes: tiles that do not fill their last access."""
        return None if self.passes is None else self.moved_bytes - self.passes * self.tensor_bytes

    @property
    def ones(self) -> int | None:
        """Set bits over all passes, None where those are not known."""
        return None if self.passes is None else self.passes * self.ones_per_pass


def count_tensor(tensor: np.ndarray, accesses: int, access_bits: int, *, passes: int | None = None) -> CountedTraffic:
    """Return the traffic of so many accesses to a tensor, whose bytes are those in memory order.

    passes: how often the whole tensor moves by the tool's loops; without it, a count that is a whole number of tensors
    is taken for that many passes. Tools round up per tile, so give it where you have it.
    Raises InputError for an empty tensor, accesses that are no whole bytes, or fewer bytes than the passes need.
    """
    data = np.ascontiguousarray(tensor).view(np.uint8).reshape(-1)
    if not len(data):
        raise InputError("the tensor is empty")
    if accesses < 0 or access_bits < 8 or access_bits % 8:
        raise InputError(f"{accesses} accesses of {access_bits} bits: give a count and a whole number of bytes")
    moved = int(accesses) * int(access_bits) // 8
    if passes is None:
        passes = None if moved % len(data) else moved // len(data)
    elif passes < 0 or passes * len(data) > moved:
        raise InputError(f"{passes} passes of {len(data)} bytes are more than the {moved} bytes that were counted")
    return CountedTraffic(int(accesses), int(access_bits), len(data), int(np.unpackbits(data).sum()), passes)
