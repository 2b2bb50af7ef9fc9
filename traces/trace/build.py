"""From an order of work to its memory trace: an actual forward pass, step by step, with the bytes it moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.checks import whole_number
from traces.base.errors import InputError, shown
from traces.base.memory import claim
from traces.layout.settings import INT8, NEURON_FORMATS, Layout
from traces.networks.checks import check_order
from traces.networks.network import Network
from traces.trace.chunks import Chunk, Trace
from traces.trace.plan import NEURON_STREAMS, ChunkBuffers, Plan, plan_layout

DEFAULT_CHUNK_ACCESSES = 2**17  # a slice of hwmodel.replay: larger arrays are given back and cleared again each time


def build_trace(
    network: Network,
    order: Any = None,
    *,
    layout: Layout | str = "auto",
    sample: int | Sequence[int] = 0,
    batch: int | None = None,
    lanes: int | None = None,
    inputs: npt.ArrayLike | None = None,
    seed: int = 0,
    chunk_accesses: int = DEFAULT_CHUNK_ACCESSES,
) -> Trace:
    """Build the memory trace of a forward pass that processes the connections in `order`.

    order: an Ordering or int[W] (None: the network's own order), checked to be a topological permutation.
    layout: a Layout or the name of a kind. sample: row or rows of the network's batch, in the order of processing.
    batch: how many input vectors, from row `sample` on (default: one for each lane); a network with fewer rows has them
    drawn from its rows with `seed`, one without a batch gets uniform [0, 1) inputs. inputs: float32[n, I] instead.
    lanes: vectors processed together, instead of the layout's; n vectors take ceil(n / lanes) passes, and lanes of the
    last one without a vector compute on inputs of 0 (`padded_lanes` in the description).
    chunk_accesses: accesses per chunk at most, at least 16; chunks of long rows hold fewer.

    A partial sum starts with the bias, is accumulated in float32 in the order of work, and is replaced by the activated
    value at the neuron's last connection, as `traces.networks.forward` defines it. With neurons in int8 all are
    integers by the scales of `traces.networks.quantization`, from the network's batch or else this trace's vectors.

    Returns a Trace; ``final_image(trace)`` gives the memory after the last access. Raises InputError for an order,
    layout or sample that cannot be used.
    """
    if isinstance(layout, str):
        layout = Layout(kind=layout)
    if lanes is not None:
        layout = replace(layout, lanes=lanes)
    whole_number(chunk_accesses, "chunk_accesses", 16)
    edges = np.arange(network.n_connections) if order is None else getattr(order, "edges", order)
    edges = check_order(network, edges)
    vectors, origin = input_vectors(network, sample, batch, inputs, seed, layout.lanes)
    plan = plan_layout(network, edges, layout, vectors)
    settings = asdict(layout)
    del settings["lanes"]
    description = {
        "network": network.name,
        "layout": {**settings, "kind": plan.kind},
        "inputs": origin,
        "samples": len(vectors),
        "zeroed_weights": plan.zeroed,
        "padding_elements": plan.padding,
        "element_bytes": plan.element_bytes,
    }
    if plan.element[:, 3].any():
        assert network.weight_ids is not None
        description["stored_weights"] = int(network.weight_ids.max()) + 1
    if plan.lanes > 1:
        padded = plan.n_passes * plan.lanes - len(vectors)
        description |= {"lanes": plan.lanes, "passes": plan.n_passes, "padded_lanes": padded}
    return trace_of_plan(plan, description, chunk_accesses)


def trace_of_plan(plan: Plan, description: dict[str, Any], chunk_accesses: int = DEFAULT_CHUNK_ACCESSES) -> Trace:
    work = len(plan.source) * plan.lanes * plan.n_passes
    return Trace(lambda: _walk(plan, chunk_accesses), plan.memory, None, description, plan, work)


def final_image(trace: Trace) -> npt.NDArray[np.uint8]:
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


def stored_activations(
    trace: Trace, n_neurons: int, neuron_format: str = "fp32", image: npt.NDArray[np.uint8] | None = None
) -> npt.NDArray[np.float32]:
    """Return float32[B, N]: the neuron values in memory after the last access, one row per sample, padding left out.

    image: the memory to read, if not that after the last access (uint8[total_bytes]).
    """
    from cython_ext.trace.walk import neuron_values

    region = trace.memory.region("neurons")
    start = region.base_address - trace.memory.base_address
    image = (final_image(trace) if image is None else image)[start : start + region.n_bytes]
    lanes, n_passes = trace.description.get("lanes", 1), trace.description.get("passes", trace.description["samples"])
    rows = image.reshape(n_passes, n_neurons, -1)[:, :, : lanes * NEURON_FORMATS[neuron_format]]
    if neuron_format == INT8:
        q = trace.plan.integers
        values: Any = (rows.astype(np.float32) - q.zero[:, None]) * q.scale[:, None]
    else:
        values = neuron_values(np.ascontiguousarray(rows).reshape(-1), list(NEURON_FORMATS).index(neuron_format))
    by_vector = np.asarray(values).reshape(n_passes, n_neurons, lanes).transpose(0, 2, 1).reshape(-1, n_neurons)
    return np.ascontiguousarray(by_vector[: trace.description["samples"]])


def _walk(plan: Plan, chunk_accesses: int) -> Iterator[Chunk]:
    from cython_ext.trace.walk import ForwardWalk

    assert plan.memory.image is not None
    walk = ForwardWalk(plan, plan.memory.image.copy(), NEURON_STREAMS)
    buffers = ChunkBuffers(chunk_accesses, plan.widest_access)
    while not walk.done:
        chunk = buffers.chunk(walk.fill(*buffers.fresh()))
        if len(chunk):
            yield chunk


def input_vectors(
    network: Network,
    sample: int | Sequence[int],
    batch: int | None,
    inputs: npt.ArrayLike | None,
    seed: int,
    lanes: int,
) -> tuple[npt.NDArray[np.float32], str]:
    """Return float32[n, I] and where they come from."""
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
    selected = np.atleast_1d(np.asarray(sample))
    if not selected.size or not np.issubdtype(selected.dtype, np.integer) or selected.ndim != 1:
        raise InputError(f"sample must be a row number of the batch or a list of them, not {shown(sample)}")
    if batch is not None and np.ndim(sample):
        raise InputError("give either a list of samples or a batch size, not both")
    if network.batch is None:
        if selected.min() < 0:
            raise InputError(f"sample {selected.min()} does not exist")
        if not np.ndim(sample):
            n_vectors = batch or lanes
            claim(4 * n * (int(selected[0]) + n_vectors) + 8 * n_vectors, f"batch {n_vectors}", "its input vectors")
            selected = int(selected[0]) + np.arange(n_vectors)
        claim(4 * n * (int(selected.max()) + 1), f"sample {selected.max()}", "its input vectors")
        drawn = np.random.default_rng(seed).random((int(selected.max()) + 1, n), np.float32)
        return drawn[selected], f"uniform [0, 1), seed {seed}: the network has no batch"
    rows = len(network.batch)
    bad = selected[(selected < 0) | (selected >= rows)]
    if bad.size:
        raise InputError(f"sample {bad[0]} does not exist: the batch has rows 0 to {rows - 1}")
    if not np.ndim(sample):
        first = int(selected[0])
        if batch is not None and first + batch > rows:
            claim((8 + 4 * n) * batch, f"batch {batch}", "its input vectors")
            selected = np.random.default_rng(seed).integers(0, rows, batch)
            return network.batch[selected], f"{batch} rows drawn from {rows} batch rows, seed {seed}"
        selected = np.arange(first, min(first + (batch or lanes), rows))
        if len(selected) > 16:
            return network.batch[selected], f"batch rows {first} to {first + len(selected) - 1}"
    return network.batch[selected], "batch rows " + ", ".join(map(str, selected))
