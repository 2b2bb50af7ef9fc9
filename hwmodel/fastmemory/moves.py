"""The I/O model's decisions, one by one: which neuron value is loaded or stored at which connection.

`iomodel.count_io` counts them; a scratchpad carries them out (hwmodel.fastmemory.scratchpad).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as kernel
from cython_ext.iomodel.counts import LOAD, STORE_LIVE, STORE_OUTPUT
from traces.work.checks import checked_memory, policy_codes

__all__ = ["LOAD", "STORE_LIVE", "STORE_OUTPUT", "Moves", "moves_of"]


@dataclass(frozen=True, eq=False)
class Moves:
    """Loads and stores of neuron values, int32[E] step, int32[E] neuron, uint8[E] kind, in the order they happen.

    step: the connection (in processing order) before whose update it happens; W for what is left to write at the end.
    kind: LOAD (`reads_neurons`), STORE_LIVE (evicted and used again), STORE_OUTPUT (an output's final write).
    """

    step: npt.NDArray[np.int32]
    neuron: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.step)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return (reads_neurons, writes_live, writes_outputs)."""
        loads, live, outputs = np.bincount(self.kind, minlength=3).tolist()
        return loads, live, outputs


def moves_of(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    is_output: npt.NDArray[np.bool_],
    *,
    memory: int,
    policy: str,
    pinning: str,
) -> Moves:
    """Return what `count_io` counts, move by move. Raises InputError for M < 3 or an unknown name. O(W + N).

    sources, targets: int32[W] in processing order, checked by the caller: ids below N, a topological order. is_output:
    bool[N]. MIN writes an output as soon as it has no later use, LRU and RR when it is evicted or at the end.
    """
    codes = policy_codes(policy, pinning)
    memory = checked_memory(memory)
    return Moves(*kernel.moves(sources, targets, len(is_output), is_output.astype(np.uint8), memory, *codes))
