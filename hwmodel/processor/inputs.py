"""Input vectors: what is accepted, and how they lie where the kernels read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodel.processor.arena import Arena
from traces.base.errors import InputError
from traces.networks.network import Network, is_real

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
