"""The networks of Gleinig et al. 2023, section III, whose least I/Os are known: Lemmas 1 to 3, Proposition 2."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from traces.base.errors import InputError
from traces.generators.generator import at_least, check_size
from traces.networks.network import Network


def dense_layers(widths: Sequence[int]) -> Network:
    """Lemma 1: fully connected layers. If two neighbours together have at most M - 1 neurons, the least I/Os are W+N+S.

    Layer after layer reaches them: one layer and the next one's partial sums fit into fast memory. O(W).
    """
    sizes = [at_least(f"widths[{k}]", width, 1) for k, width in enumerate(widths)]
    if len(sizes) < 2:
        raise InputError("widths must name at least two layers")
    check_size(sum(sizes), sum(a * b for a, b in pairwise(sizes)))
    first = np.concatenate(([0], np.cumsum(sizes)))
    sources, targets, layer = [], [], []
    for k, (width, following) in enumerate(pairwise(sizes)):
        sources.append(np.tile(first[k] + np.arange(width), following))
        targets.append(np.repeat(first[k + 1] + np.arange(following), width))
        layer.append(np.full(width * following, k))
    return Network(
        np.concatenate(sources),
        np.concatenate(targets),
        n_neurons=int(first[-1]),
        inputs=np.arange(sizes[0]),
        outputs=np.arange(first[-2], first[-1]),
        layer=np.concatenate(layer),
        name="dense-layers-" + "-".join(map(str, sizes)),
    )


def star(n_inputs: int) -> Network:
    """Lemma 2: all inputs feed one output. Least reads and I/Os are the upper bounds 2W + N - I and 2(W + N - I)."""
    return dense_layers([at_least("n_inputs", n_inputs, 1), 1]).with_(name=f"star-{n_inputs}")


def wide_output(n_inputs: int, hidden: int, n_outputs: int) -> Network:
    """Lemma 3: one hidden layer and many outputs. Writes are at least S, which nears the upper bound N - I = h + S."""
    return dense_layers([n_inputs, hidden, n_outputs]).with_(name=f"wide-output-{n_inputs}-{hidden}-{n_outputs}")


def chains(memory: int, depth: int) -> Network:
    """Proposition 2: 2M chains of `depth` hidden neurons between one input and one output (M the memory size).

    Chain after chain needs one write (from M = 5 on); layer after layer at least M per hidden layer. O(M depth).
    """
    width, depth = 2 * at_least("memory", memory, 3), at_least("depth", depth, 1)
    check_size(depth * width + 2, (depth + 1) * width)
    hidden = 1 + np.arange(depth * width).reshape(depth, width)
    output = 1 + depth * width
    sources = np.concatenate((np.zeros(width, np.int64), hidden.reshape(-1)))
    targets = np.concatenate((hidden.reshape(-1), np.full(width, output)))
    return Network(
        sources,
        targets,
        n_neurons=output + 1,
        inputs=np.array([0]),
        outputs=np.array([output]),
        layer=np.repeat(np.arange(depth + 1), width),
        name=f"chains-{memory}-{depth}",
    )
