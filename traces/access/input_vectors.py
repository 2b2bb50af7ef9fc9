"""Which input vectors a trace is built for: rows of the network's batch, given ones, or drawn ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.work.network import Network


def input_vectors(
    network: Network,
    sample: int | Sequence[int],
    batch: int | None,
    inputs: npt.ArrayLike | None,
    seed: int,
    lanes: int,
) -> tuple[npt.NDArray[np.float32], str]:
    """Return float32[n, I] and where they come from; the arguments are those of `traces.access.build.build_trace`."""
    if batch is not None:
        whole_number(batch, "batch", why="the number of input vectors")
    n = len(network.inputs)
    if inputs is not None:
        given = np.atleast_2d(np.asarray(inputs, np.float32))
        if given.ndim != 2 or given.shape[1] != n or not len(given):
            raise InputError(f"inputs have shape {given.shape}, expected (B, {n}): one column per input neuron")
        if not np.isfinite(given).all():
            raise InputError("inputs hold a value that is not finite")
        if batch not in (None, len(given)):
            raise InputError(f"batch is {batch}, but {len(given)} input vectors are given: leave batch out")
        return given, "given"
    wanted = np.atleast_1d(np.asarray(sample))
    if not wanted.size or not np.issubdtype(wanted.dtype, np.integer) or wanted.ndim != 1:
        raise InputError(f"sample must be a row number of the batch or a list of them, not {sample!r}")
    if batch is not None and np.ndim(sample):
        raise InputError("give either a list of samples or a batch size, not both")
    if network.batch is None:
        if wanted.min() < 0:
            raise InputError(f"sample {wanted.min()} does not exist")
        if not np.ndim(sample):
            n_vectors = batch or lanes
            claim(4 * n * (int(wanted[0]) + n_vectors) + 8 * n_vectors, f"batch {n_vectors}", "its input vectors")
            wanted = int(wanted[0]) + np.arange(n_vectors)
        claim(4 * n * (int(wanted.max()) + 1), f"sample {wanted.max()}", "its input vectors")
        drawn = np.random.default_rng(seed).random((int(wanted.max()) + 1, n), np.float32)
        return drawn[wanted], f"uniform [0, 1), seed {seed}: the network has no batch"
    rows = len(network.batch)
    bad = wanted[(wanted < 0) | (wanted >= rows)]
    if bad.size:
        raise InputError(f"sample {bad[0]} does not exist: the batch has rows 0 to {rows - 1}")
    if not np.ndim(sample):
        first = int(wanted[0])
        if batch is not None and first + batch > rows:
            claim((8 + 4 * n) * batch, f"batch {batch}", "its input vectors")
            wanted = np.random.default_rng(seed).integers(0, rows, batch)
            return network.batch[wanted], f"{batch} rows drawn from {rows} batch rows, seed {seed}"
        wanted = np.arange(first, min(first + (batch or lanes), rows))
        if len(wanted) > 16:
            return network.batch[wanted], f"batch rows {first} to {first + len(wanted) - 1}"
    return network.batch[wanted], "batch rows " + ", ".join(map(str, wanted))
