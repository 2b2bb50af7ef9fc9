"""From an order of work to its memory trace: an actual forward pass, step by step, with the bytes it moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.access.plan import Plan, plan_layout
from traces.access.trace import STREAMS, Chunk, Trace
from traces.base.errors import InputError
from traces.layouts.layout import NEURON_FORMATS, Layout
from traces.work.checks import check_order
from traces.work.network import Network

DEFAULT_CHUNK_ACCESSES = 2**20


def build_trace(
    network: Network,
    order: Any = None,
    *,
    layout: Layout | str = "auto",
    sample: int | Sequence[int] = 0,
    inputs: npt.ArrayLike | None = None,
    seed: int = 0,
    chunk_accesses: int = DEFAULT_CHUNK_ACCESSES,
) -> Trace:
    """Build the memory trace of a forward pass that processes the connections in `order`.

    order: an Ordering or int[W] (None: the network's own order), checked to be a topological permutation.
    layout: a Layout or the name of a kind. sample: row or rows of the network's batch, processed one after another.
    inputs: float32[B, I] input vectors instead of the batch. A network without a batch gets uniform [0, 1) inputs drawn
        with `seed`; the description then says so. chunk_accesses: accesses per chunk at most, at least 16.

    The partial sum of a neuron starts with its bias, is accumulated in float32 in the order of work, and is replaced by
    the activated value at the neuron's last connection, as `traces.work.forward` defines it.

    Returns a Trace; ``final_image(trace)`` gives the memory after the last access.
    Raises InputError for an order, layout or sample that cannot be used.
    """
    if isinstance(layout, str):
        layout = Layout(kind=layout)
    if isinstance(chunk_accesses, bool) or not isinstance(chunk_accesses, int) or chunk_accesses < 16:
        raise InputError(f"chunk_accesses must be a whole number of at least 16, not {chunk_accesses!r}")
    edges = np.arange(network.n_connections) if order is None else getattr(order, "edges", order)
    edges = check_order(network, edges)
    vectors, origin = _input_vectors(network, sample, inputs, seed)
    plan = plan_layout(network, edges, layout, vectors)
    description = {
        "network": network.name,
        "layout": {**asdict(layout), "kind": plan.kind},
        "inputs": origin,
        "samples": len(vectors),
        "zeroed_weights": plan.zeroed,
        "padding_elements": plan.padding,
    }
    return Trace(lambda: _walk(plan, chunk_accesses), plan.memory, None, description)


def final_image(trace: Trace) -> npt.NDArray[np.uint8]:
    """Walk a trace with data and return uint8[total_bytes], its memory after the last access."""
    if trace.memory.image is None:
        raise InputError("an address-only trace has no memory image")
    image = trace.memory.image.copy()
    for chunk in trace:
        assert chunk.payload is not None and chunk.payload_offset is not None
        stores = np.flatnonzero(chunk.op)
        for width in np.unique(chunk.size[stores]):
            # Stores of one width, in order: numpy keeps the last value assigned to an index.
            at = stores[chunk.size[stores] == width]
            lanes = np.arange(int(width))
            where = (chunk.address[at] - np.uint64(trace.memory.base_address)).astype(np.int64)
            image[where[:, None] + lanes] = chunk.payload[chunk.payload_offset[at][:, None] + lanes]
    return image


def stored_activations(trace: Trace, n_neurons: int, neuron_format: str = "fp32") -> npt.NDArray[np.float32]:
    """Return float32[B, N]: the neuron values in memory after the last access, one row per sample."""
    from cython_ext.trace.walk import neuron_values

    region = trace.memory.region("neurons")
    start = region.base_address - trace.memory.base_address
    image = final_image(trace)[start : start + region.n_bytes]
    values: npt.NDArray[np.float32] = neuron_values(image, list(NEURON_FORMATS).index(neuron_format))
    return values.reshape(-1, n_neurons)


def _input_vectors(
    network: Network, sample: int | Sequence[int], inputs: npt.ArrayLike | None, seed: int
) -> tuple[npt.NDArray[np.float32], str]:
    n = len(network.inputs)
    if inputs is not None:
        given = np.atleast_2d(np.asarray(inputs, np.float32))
        if given.ndim != 2 or given.shape[1] != n or not len(given):
            raise InputError(f"inputs have shape {given.shape}, expected (B, {n}): one column per input neuron")
        if not np.isfinite(given).all():
            raise InputError("inputs hold a value that is not finite")
        return given, "given"
    wanted = np.atleast_1d(np.asarray(sample))
    if not wanted.size or not np.issubdtype(wanted.dtype, np.integer) or wanted.ndim != 1:
        raise InputError(f"sample must be a row number of the batch or a list of them, not {sample!r}")
    if network.batch is None:
        if wanted.min() < 0:
            raise InputError(f"sample {wanted.min()} does not exist")
        drawn = np.random.default_rng(seed).random((int(wanted.max()) + 1, n), np.float32)
        return drawn[wanted], f"uniform [0, 1), seed {seed}: the network has no batch"
    bad = wanted[(wanted < 0) | (wanted >= len(network.batch))]
    if bad.size:
        raise InputError(f"sample {bad[0]} does not exist: the batch has rows 0 to {len(network.batch) - 1}")
    return network.batch[wanted], "batch rows " + ", ".join(map(str, wanted))


def _walk(plan: Plan, chunk_accesses: int) -> Iterator[Chunk]:
    from cython_ext.trace.walk import ForwardWalk

    assert plan.memory.image is not None
    streams = tuple(STREAMS.index(name) for name in ("row_pointers", "inputs", "partial_sums", "outputs"))
    walk = ForwardWalk(plan, plan.memory.image.copy(), streams)
    widest = max(8, *(int(bits + 7) // 8 for bits in plan.element[:, 1]))
    while not walk.done:
        address = np.empty(chunk_accesses, np.uint64)
        size, op, stream = (np.empty(chunk_accesses, np.uint8) for _ in range(3))
        offset = np.empty(chunk_accesses + 1, np.int64)
        payload = np.empty(chunk_accesses * widest, np.uint8)
        n = walk.fill(address, size, op, stream, offset, payload)
        if n:
            yield Chunk(address[:n], size[:n], op[:n], stream[:n], offset[: n + 1], payload[: offset[n]])
