"""Orders whose stretches meet at shared neurons, and tiles whose sources are brought together."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from reorder.base import check_order
from reorder.edges.machine.links import linked, source_first_tiles
from reorder.edges.methods.long_runs import LongRunsParameters, by_long_runs
from reorder.order import order
from traces.generators.networks import uniform_layers
from traces.networks.network import Network


def stretches(own: np.ndarray, edges: np.ndarray) -> list[list[int]]:
    return [list(group) for _, group in groupby(edges.tolist(), key=lambda edge: own[edge])]


@given(dags(), st.sampled_from(["targets", "sources"]), st.integers(0, 3))
@settings(deadline=None)
def test_stretches_stay_and_half_of_those_that_can_meet_do(network: Network, by: str, seed: int) -> None:
    ends = [network.targets, network.sources]
    own, other = ends if by == "targets" else ends[::-1]
    for method in ("random-topological", "two-optimal", "by-source"):
        edges = order(network, method, memory=3, seed=seed).edges
        found = linked(network, edges, by)
        check_order(network, found)
        before, after = stretches(own, edges), stretches(own, found)
        assert [sorted(each) for each in before] == [sorted(each) for each in after]
        pairs = list(pairwise(after))
        can = sum(bool({*other[one].tolist()} & {*other[two].tolist()}) for one, two in pairs)
        assert 2 * sum(other[one[-1]] == other[two[0]] for one, two in pairs) >= can


@pytest.mark.parametrize(("sources", "targets"), [(8, 8), (24, 16), (100, 3)])
def test_source_first_tiles_begin_with_their_sources_in_turn(sources: int, targets: int) -> None:
    network = uniform_layers([60, 50, 40], 0.3, seed=2)
    edges = source_first_tiles(network, by_long_runs(network, LongRunsParameters(sources)), targets)
    check_order(network, edges)
    s, t, first = network.sources[edges], network.targets[edges], {}
    tile = np.concatenate([np.arange(n) * -(-n // sources) // n for n in (60, 50, 40)])
    for k, key in enumerate(zip(network.depth[t].tolist(), tile[s].tolist(), strict=True)):
        first.setdefault(key, []).append(k)
    for places in first.values():
        assert places == list(range(places[0], places[-1] + 1))  # tile after tile
        its, ends = s[places], t[places]
        met = np.unique(its[np.isin(ends, np.unique(ends)[:targets])])
        assert its[: len(met)].tolist() == met.tolist()
        assert (np.diff(ends[len(met) :]) >= 0).all()
