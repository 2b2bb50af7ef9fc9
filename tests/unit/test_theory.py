"""Lemmas 1 to 3 and Proposition 2 (Gleinig et al. 2023, section III): exact I/Os of the networks in their proofs."""

from itertools import pairwise

import pytest
from oracles.theory import chains, dense_layers, star, wide_output

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.order import order
from traces.base.errors import InputError


@pytest.mark.parametrize("widths", [[5, 4, 6, 3], [1, 1], [9, 1, 9, 1], [4, 4, 4, 4, 4]])
def test_lemma_1_small_layers_reach_all_lower_bounds(widths: list[int]) -> None:
    network, bounds = dense_layers(widths), io_bounds(dense_layers(widths))
    memory = max(3, 1 + max(a + b for a, b in pairwise(widths)))
    counts = count_io(network, order(network, "layerwise", memory=memory), memory=memory)
    assert (counts.reads, counts.writes) == (bounds.lower_reads, bounds.lower_writes)
    if memory > 3:
        assert count_io(network, memory=memory - 1).total >= bounds.lower_total


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_lemma_2_a_star_meets_its_upper_bounds(n: int) -> None:
    """W = I and N = I + 1, so lower and upper bounds are one: reads 2I + 1, I/Os 2I + 2."""
    network, bounds = star(n), io_bounds(star(n))
    for policy in ("lru", "rr", "min"):
        counts = count_io(network, memory=4, policy=policy)
        if policy == "min" or n <= 2:
            assert (counts.reads, counts.total) == (2 * n + 1, 2 * n + 2)
    assert bounds.lower_total == bounds.upper_total and bounds.lower_reads == bounds.upper_reads


@pytest.mark.parametrize(("hidden", "outputs"), [(1, 9), (3, 297), (2, 998)])
def test_lemma_3_many_outputs_near_the_upper_bound_of_writes(hidden: int, outputs: int) -> None:
    network, bounds = wide_output(4, hidden, outputs), io_bounds(wide_output(4, hidden, outputs))
    counts = count_io(network, memory=4 + hidden + 1)
    epsilon = hidden / (hidden + outputs)
    assert counts.writes == outputs == bounds.lower_writes
    assert counts.writes >= (1 - epsilon) * bounds.upper_writes


@pytest.mark.parametrize("memory", [5, 8, 20, 50])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_proposition_2_layer_after_layer_writes_as_often_as_one_likes(memory: int, depth: int) -> None:
    network = chains(memory, depth)
    by_chain = count_io(network, order(network, "depth-first", memory=memory), memory=memory)
    by_layer = count_io(network, order(network, "layerwise", memory=memory), memory=memory)
    assert by_chain.total == io_bounds(network).lower_total and by_chain.writes == 1
    assert by_layer.writes >= memory * depth
    if memory >= 20:  # per layer 2M values, of which the input and M - 2 of them stay; and the output
        assert by_layer.writes == depth * (memory + 2) + 1


def test_bad_sizes() -> None:
    with pytest.raises(InputError, match="at least two layers"):
        dense_layers([3])
    with pytest.raises(InputError, match=r"widths\[1\] must be a whole number from 1"):
        dense_layers([3, 0])
    with pytest.raises(InputError, match="memory must be"):
        chains(2, 1)
