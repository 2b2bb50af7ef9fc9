"""Constants of operator graphs as real numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.work.opgraph import OpGraph


def real_values(graph: OpGraph, name: str) -> npt.NDArray[np.float32]:
    """Return a constant as real numbers: scale x (stored - zero point) where it is quantised."""
    stored = graph.constants[name]
    given = graph.quantization.get(name)
    if given is None or np.issubdtype(stored.dtype, np.floating):
        return stored.astype(np.float32)
    shape = [1] * stored.ndim
    if len(given.scale) > 1:
        if not 0 <= given.axis < stored.ndim or stored.shape[given.axis] != len(given.scale):
            raise InputError(
                f"{graph.source or graph.name}: constant {name!r} of shape {list(stored.shape)} has "
                f"{len(given.scale)} scales along axis {given.axis}"
            )
        shape[given.axis] = len(given.scale)
    scale, zero = given.scale.reshape(shape), given.zero_point.reshape(shape)
    return ((stored.astype(np.float64) - zero) * scale).astype(np.float32)
