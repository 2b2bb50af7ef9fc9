"""The memory that neurons' rows live in."""

from __future__ import annotations

import contextlib
import mmap
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.network import Network, is_real

HUGE_PAGE_BYTES = 2 << 20
HUGE_FROM_BYTES = 256 << 10
"""Less is a few dozen small pages: a whole huge one would be wasted on it."""
OWN = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
"""Not shared with processes that are forked later; what is shared is given no huge pages on most systems, either."""


class Arena:
    """Zeroed bytes at an address that is a multiple of 2 MiB, on huge pages where they are many and the system has them
    to give."""

    def __init__(self, n_bytes: int) -> None:
        try:
            self._map = mmap.mmap(-1, n_bytes + 2 * HUGE_PAGE_BYTES, **OWN)
        except (OSError, OverflowError, ValueError, MemoryError) as error:
            raise InputError(
                f"the values need {n_bytes / 2**30:.1f} GiB, which cannot be had ({error}): use fewer lanes"
            ) from None
        whole = np.frombuffer(self._map, np.uint8)
        start = -whole.ctypes.data % HUGE_PAGE_BYTES
        if hasattr(mmap, "MADV_HUGEPAGE") and n_bytes >= HUGE_FROM_BYTES:
            with contextlib.suppress(OSError):  # a kernel without them: small pages do
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes: npt.NDArray[np.uint8] = whole[start : start + n_bytes]
        self.address: int = self.bytes.ctypes.data

    def rows(self, pitch_bytes: int, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        return (
            self.bytes[: len(self.bytes) // pitch_bytes * pitch_bytes]
            .view(dtype)
            .reshape(-1, pitch_bytes // np.dtype(dtype).itemsize)
        )


Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PackedInputs:
    """Input vectors as one compiled network reads them: a table [input, lane] per pass. n_vectors: how many there are.

    owner: the compiled network that packed them, the only one that may run them.
    """

    owner: object
    n_vectors: int
    tables: Arena


def checked_inputs(network: Network, inputs: npt.ArrayLike) -> Float32:
    """Return inputs as float32[B, I]. Raises InputError for a wrong shape or type."""
    given = np.asarray(inputs)
    if given.ndim != 2 or given.shape[1] != len(network.inputs):
        raise InputError(f"inputs have shape {given.shape}, expected (B, {len(network.inputs)}): one column per input")
    if given.dtype == np.float32 and not (given.strides[0] | given.strides[1]) & 3:
        return given
    if not is_real(given.dtype):
        raise InputError(f"inputs must hold real numbers, not {given.dtype}")
    return np.ascontiguousarray(given, np.float32)
