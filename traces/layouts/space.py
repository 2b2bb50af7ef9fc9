"""Arrays placed one after another in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Element:
    """An array that is read at every step: where it starts (image offset), bits of one element, stream name.

    by_weight: its elements are found by the stored weight of a step, which several steps may share, not by the step.
    """

    offset: int
    bits: int
    stream: str
    by_weight: bool = False


@dataclass(frozen=True, eq=False)
class Loads:
    """Loads of structure (pointers, row names) that come before a step, steps ascending.

    step: int64[n] the step. offset: int64[n] image offset. size: uint8[n] bytes. stream: str[n] its name.
    """

    step: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.uint8]
    stream: npt.NDArray[np.str_]

    @classmethod
    def of(cls, step: npt.NDArray[np.int64], offset: npt.NDArray[np.int64], size: npt.ArrayLike, stream: str) -> Loads:
        """Return loads of one stream; size: bytes, one for all or uint8[n]."""
        shape = step.shape
        return cls(
            step,
            offset,
            np.broadcast_to(np.asarray(size, np.uint8), shape).copy(),
            np.full(shape, stream),
        )

    @classmethod
    def none(cls) -> Loads:
        return cls.of(np.zeros(0, np.int64), np.zeros(0, np.int64), 0, "row_pointers")

    @classmethod
    def merge(cls, first: Loads, second: Loads) -> Loads:
        """Return both by step; at one step those of `first` come first."""
        step = np.concatenate((first.step, second.step))
        by_step = np.argsort(step, kind="stable")
        return cls(
            step[by_step],
            np.concatenate((first.offset, second.offset))[by_step],
            np.concatenate((first.size, second.size))[by_step],
            np.concatenate((first.stream, second.stream))[by_step],
        )


class Space:
    """Arrays one after another, each from an aligned base.

    base: the first aligned address; offsets (of the memory image) count from it. parts: (name, offset, bytes) of each
    array. end: bytes so far.
    """

    def __init__(self, base_address: int, alignment: int) -> None:
        self.base = -(-base_address // alignment) * alignment
        self.alignment = alignment
        self.parts: list[tuple[str, int, Bytes]] = []
        self.end = 0

    def add(self, name: str, data: Bytes) -> int:
        """Place an array (uint8[n], its bytes in memory) and return its offset."""
        offset = -(-self.end // self.alignment) * self.alignment
        self.parts.append((name, offset, data))
        self.end = offset + len(data)
        return offset

    def image(self) -> Bytes:
        """Return uint8[end], the memory with all arrays in place, read-only."""
        image = np.zeros(self.end, np.uint8)
        for _, offset, data in self.parts:
            image[offset : offset + len(data)] = data
        image.setflags(write=False)
        return image
