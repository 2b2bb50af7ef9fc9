"""The I/O model's decisions, one by one: which neuron value is loaded or stored at which connection.

`iomodel.count_io` counts them; a scratchpad carries them out (hwmodel.fastmemory.scratchpad).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as kernel
from cython_ext.iomodel.counts import LOAD, STORE_LIVE, STORE_OUTPUT
from traces.work.checks import checked_memory, policy_codes
from traces.work.network import Network
from traces.work.processing import processing_arrays

__all__ = ["LOAD", "STORE_LIVE", "STORE_OUTPUT", "Moves", "io_moves", "moves_of"]


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


def io_moves(
    network: Network, order: Any = None, *, memory: int, policy: str = "min", pinning: str = "literal"
) -> Moves:
    """Return what `count_io` counts, move by move. Arguments, errors and O(W + N) are those of `count_io`.

    MIN writes an output as soon as it has no later use, LRU and RR when it is evicted or at the end.
    """
    sources, targets = processing_arrays(network, order)
    return moves_of(sources, targets, network.is_output, memory=memory, policy=policy, pinning=pinning)


def moves_of(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    is_output: npt.NDArray[np.bool_],
    *,
    memory: int,
    policy: str,
    pinning: str,
) -> Moves:
    """Return the moves of connections in processing order (int32[W] each); is_output: bool[N]. Checked by the caller:
    ids below N, a topological order. Raises InputError for M < 3 or an unknown name."""
    codes = policy_codes(policy, pinning)
    memory = checked_memory(memory)
    return Moves(*kernel.moves(sources, targets, len(is_output), is_output.astype(np.uint8), memory, *codes))
