"""RadiX-Net topologies (Kepner & Robinett 2019), as the Sparse DNN Graph Challenge uses them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, shown
from traces.generators.generator import at_least, check_size, checked_seed, generator
from traces.networks.forward import default_bias
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]


@generator
def radix_net(
    radix_lists: Sequence[Sequence[int]],
    widths: Sequence[int] | None = None,
    *,
    blocks: int = 1,
    permutations: Sequence[npt.ArrayLike] | None = None,
    seed: int = 0,
    bias: float | None = None,
    batch_rows: int = 16,
    name: str = "radix-net",
) -> Network:
    """Return a RadiX-Net with the Graph Challenge's weights, bias and activation.

    radix_lists: mixed radix lists (extended form: one after another). All have one product N; the last may have a
        product that divides N. A list (N1..Nd) gives d layers: neuron j feeds (j + k * N1 * ... * N(i-1)) mod N for
        k = 0..Ni - 1.
    widths: Kronecker widths D_0..D_L for L layers; layer i becomes kron(ones(D_(i-1), D_i), A_i), with neuron index
        block * N + j. None: all 1.
    blocks: how often the whole base is appended to itself. Every copy A after the first is permuted: A[p][:, p].
    permutations: p of each block, the first one included, 0-based; replaces `blocks` and `seed`.
    bias: of every neuron that is not an input; None takes the challenge's value for the width.
    batch_rows: synthetic images of 0 and 1 to carry as the batch, three pixels in ten set.

    Weights are 2 / (connections out of a neuron of that layer), 1/16 for the challenge's 32. Connections are stored by
    layer, target, source. O(W log degree). Raises InputError for lists and widths that do not fit together.
    """
    bases = _base_layers(radix_lists)
    size = math.prod(radix_lists[0])
    if widths is None:
        widths = [1] * (len(bases) + 1)
    if len(widths) != len(bases) + 1:
        raise InputError(f"{len(bases)} layers need {len(bases) + 1} Kronecker widths, not {len(widths)}")
    if any(width < 1 for width in widths):
        raise InputError(f"Kronecker widths must be at least 1, not {min(widths)}")
    if permutations is None and blocks < 1:
        raise InputError(f"a network needs at least one block, not {blocks}")
    n_blocks = blocks if permutations is None else len(permutations)
    neurons = [size * width for width in widths]
    degrees = [radix * width for (radix, _), width in zip(bases, widths[1:], strict=True)]
    n_connections = n_blocks * sum(n * degree for n, degree in zip(neurons, degrees, strict=False))
    n_neurons = neurons[0] + n_blocks * sum(neurons[1:])
    check_size(n_neurons + at_least("batch_rows", batch_rows, 0) * neurons[0] // 16, n_connections)
    orders = _block_orders(neurons, n_blocks, permutations, np.random.default_rng(checked_seed(seed)))

    sources, targets, weights, counts = [], [], [], []
    first = 0  # id of the first source neuron of the layer
    for order in orders:
        for i, (radix, stride) in enumerate(bases):
            of_target = _layer_sources(size, radix, stride, widths[i], widths[i + 1])
            if order is not None:
                of_target = np.sort(np.argsort(order)[of_target[order]], axis=1)
            n_in, (n_out, degree) = neurons[i], of_target.shape
            sources.append(of_target.reshape(-1) + first)
            targets.append(np.repeat(np.arange(n_out), degree) + first + n_in)
            counts.append(n_out * degree)
            weights.append(2 / degrees[i])
            first += n_in

    fed = np.arange(n_neurons) >= neurons[0]
    images = np.random.default_rng((checked_seed(seed), 1)).random((batch_rows, neurons[0])) < 0.3
    return Network(
        np.concatenate(sources),
        np.concatenate(targets),
        n_neurons=n_neurons,
        inputs=np.arange(neurons[0]),
        outputs=np.arange(n_neurons - neurons[-1], n_neurons),
        weights=np.repeat(weights, counts),
        biases=fed * (default_bias(neurons[0]) if bias is None else bias),
        layer=np.repeat(np.arange(len(counts)), counts),
        activation="clipped-relu",
        batch=images.astype(np.float32) if batch_rows else None,
        name=name,
    )


def _base_layers(radix_lists: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    if not radix_lists or any(not radices for radices in radix_lists):
        raise InputError("a RadiX-Net needs at least one radix list, and none may be empty")
    for radices in radix_lists:
        for radix in radices:
            if isinstance(radix, bool) or not isinstance(radix, int | np.integer) or radix < 2:
                raise InputError(f"radix list {list(radices)}: a radix is an integer of at least 2, not {shown(radix)}")
    size = math.prod(radix_lists[0])
    layers = []
    for number, radices in enumerate(radix_lists):
        product = math.prod(radices)
        last = number == len(radix_lists) - 1
        if product != size and not (last and size % product == 0):
            rule = f"must divide {size}" if last else f"must be {size}, like that of the first"
            raise InputError(f"radix list {list(radices)} has the product {product}: it {rule}")
        stride = 1
        for radix in radices:
            layers.append((int(radix), stride))
            stride *= int(radix)
    return layers


def _layer_sources(size: int, radix: int, stride: int, width_in: int, width_out: int) -> Int64Array:
    j = np.arange(size)[:, None]
    base = np.sort((j - stride * np.arange(radix)) % size, axis=1)
    blocks = size * np.arange(width_in)[None, :, None]
    whole = (base[:, None, :] + blocks).reshape(size, width_in * radix)
    return np.tile(whole, (width_out, 1))


def _block_orders(
    neurons: Sequence[int], n_blocks: int, permutations: Sequence[npt.ArrayLike] | None, rng: np.random.Generator
) -> list[Int64Array | None]:
    if permutations is None and n_blocks == 1:
        return [None]
    if neurons[0] != neurons[-1]:
        raise InputError(f"blocks of {neurons[0]} inputs and {neurons[-1]} outputs cannot follow one another")
    if len(set(neurons)) > 1:
        raise InputError(f"permuted blocks need layers of one width, not {sorted(set(neurons))}")
    if permutations is None:
        return [None, *(rng.permutation(neurons[0]) for _ in range(n_blocks - 1))]
    orders: list[Int64Array | None] = []
    for number, given in enumerate(permutations):
        order = np.asarray(given)
        if order.shape != (neurons[0],) or not np.array_equal(np.sort(order), np.arange(neurons[0])):
            raise InputError(f"block {number}: not a permutation of 0 to {neurons[0] - 1}")
        orders.append(order.astype(np.int64))
    if not orders:
        raise InputError("a network needs at least one block, and so one permutation")
    return orders
