"""The I/O kernels against the plain oracle, the reference counts, and laws that hold on any input."""

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import iomodel_oracle as oracle
from oracles.moves import io_moves
from oracles.random_networks import dags

from hwmodel.fastmemory.iomodel import compact_growth_memory, count_io, io_bounds, io_curve
from reorder.base import Ordering
from traces.base.errors import InputError
from traces.networks.network import Network

POLICIES = ("lru", "rr", "min")
PINNINGS = ("literal", "pin_both")


@settings(max_examples=150, deadline=None)
@given(dags(), st.integers(3, 9))
def test_counts_equal_the_oracle(network: Network, memory: int) -> None:
    connections = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    for policy in POLICIES:
        for pinning in PINNINGS:
            expected = oracle.count(connections, network.outputs.tolist(), memory, policy, pinning)
            found = count_io(network, memory=memory, policy=policy, pinning=pinning)
            for name in ("reads_neurons", "writes_live", "writes_outputs"):
                assert getattr(found, name) == expected[name], (policy, pinning, name)


@settings(max_examples=500, deadline=None)
@given(dags(), st.integers(3, 9))
def test_moves_equal_the_oracle_and_the_counts(network: Network, memory: int) -> None:
    connections = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    kinds = ("reads_neurons", "writes_live", "writes_outputs")
    for policy in POLICIES:
        for pinning in PINNINGS:
            expected: list[tuple[int, int, str]] = []
            oracle.count(connections, network.outputs.tolist(), memory, policy, pinning, expected)
            moves = io_moves(network, memory=memory, policy=policy, pinning=pinning)
            counts = count_io(network, memory=memory, policy=policy, pinning=pinning)
            assert moves.counts == (counts.reads_neurons, counts.writes_live, counts.writes_outputs)
            found = [
                (step, neuron, kinds[kind])
                for step, neuron, kind in zip(
                    *map(np.ndarray.tolist, (moves.step, moves.neuron, moves.kind)), strict=True
                )
            ]
            if policy == "min":  # when an output without a later use is written is free
                assert sorted(n for _, n, what in found if what == kinds[2]) == sorted(
                    n for _, n, what in expected if what == kinds[2]
                )
                found, expected = ([move for move in side if move[2] != kinds[2]] for side in (found, expected))
            assert found == expected, (policy, pinning)
            assert all(a[0] <= b[0] for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("memory", [12, 97, 98, 150, 300])
def test_a_long_order_of_many_hits_and_then_many_misses(memory: int) -> None:
    """More connections than a block, more accesses without an eviction than LRU's list has room for."""
    rng = np.random.default_rng(3)
    sources, targets = (side.ravel() for side in np.divmod(np.arange(100 * 100), 100))
    few = (sources < 48) & (targets < 48)  # 2,304 connections among 96 neurons
    order = np.concatenate((rng.permutation(np.flatnonzero(few)), rng.permutation(np.flatnonzero(~few))[:700]))
    network = Network(sources[np.sort(order)], targets[np.sort(order)] + 100, 200, range(100), range(120, 200))
    order = np.searchsorted(np.sort(order), order)
    connections = list(zip(network.sources[order].tolist(), network.targets[order].tolist(), strict=True))
    for policy in POLICIES:
        for pinning in PINNINGS:
            expected = oracle.count(connections, network.outputs.tolist(), memory, policy, pinning)
            three = tuple(expected[name] for name in ("reads_neurons", "writes_live", "writes_outputs"))
            for given_as in (order, Ordering(order, "given")):
                found = count_io(network, given_as, memory=memory, policy=policy, pinning=pinning)
                assert (found.reads_neurons, found.writes_live, found.writes_outputs) == three, (policy, pinning)
            assert io_moves(network, order, memory=memory, policy=policy, pinning=pinning).counts == three


@settings(max_examples=80, deadline=None)
@given(dags())
def test_the_curve_equals_single_counts(network: Network) -> None:
    memories = list(range(3, network.n_neurons + 4))
    for policy in POLICIES:
        for pinning in PINNINGS:
            singles = [count_io(network, memory=m, policy=policy, pinning=pinning) for m in memories]
            assert io_curve(network, None, memories, policy, pinning) == singles


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(3, 12))
def test_laws(network: Network, memory: int) -> None:
    bounds = io_bounds(network)
    counts = {policy: count_io(network, memory=memory, policy=policy) for policy in POLICIES}
    for found in counts.values():
        assert found.total >= bounds.lower_total and found.reads >= bounds.lower_reads
        assert found.writes >= bounds.lower_writes
        assert found.reads >= counts["min"].reads  # Belady
    least = compact_growth_memory(network)
    connections = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    assert least == oracle.least_memory_without_extra(connections)
    assert (counts["min"].total == bounds.lower_total) == (memory >= least)
    by_target = np.lexsort((network.sources, network.targets, network.depth[network.targets]))
    assert count_io(network, by_target, memory=memory).total <= bounds.upper_total or memory < 3
    assert count_io(network, by_target, memory=network.n_neurons + 1).total == bounds.lower_total


def instance(reference: Path, name: str, order: str) -> Network:
    with np.load(reference / "iomodel" / f"{name}.npz", allow_pickle=False) as data:
        return Network(
            data[f"src_{order}"],
            data[f"dst_{order}"],
            n_neurons=int(data["n_neurons"]),
            inputs=np.arange(int(data["n_inputs"])),
            outputs=data["outputs"].astype(np.int64),
        )


def rows(reference: Path, name: str) -> list[dict[str, str]]:
    with open(reference / "iomodel" / name) as file:
        return list(csv.DictReader(file))


def test_every_reference_row(reference: Path) -> None:
    networks: dict[tuple[str, str], Network] = {}
    seen = 0
    for row in rows(reference, "results.csv"):
        key = row["instance"], row["order"]
        network = networks.setdefault(key, instance(reference, *key)) if key not in networks else networks[key]
        found = count_io(network, memory=int(row["M"]), policy=row["policy"].lower(), pinning=row["pinning"])
        for name in ("reads_connections", "reads_neurons", "writes_live", "writes_outputs", "reads", "writes", "total"):
            assert getattr(found, name) == int(row[name]), (row, name)
        moves = io_moves(network, memory=int(row["M"]), policy=row["policy"].lower(), pinning=row["pinning"])
        assert moves.counts == (found.reads_neurons, found.writes_live, found.writes_outputs)
        bounds = io_bounds(network)
        assert bounds.lower_total == int(row["lower_bound_total"])
        assert bounds.upper_total == int(row["upper_bound_total_grouped_MIN"])
        seen += 1
    assert seen == 672


def test_plain_caches_where_they_apply(reference: Path) -> None:
    """LRU `literal` is an ordinary LRU on a, b; MIN is Belady on a, b, a; RR without a skip is FIFO."""
    skips = {
        (r["instance"], r["order"], r["M"]): int(r["rr_pointer_skips"])
        for r in rows(reference, "results.csv")
        if r["policy"] == "RR" and r["pinning"] == "literal"
    }
    for row in rows(reference, "plain_stream_misses.csv"):
        network, memory = instance(reference, row["instance"], row["order"]), int(row["M"])
        reads = {policy: count_io(network, memory=memory, policy=policy).reads_neurons for policy in POLICIES}
        assert reads["lru"] == int(row["lru_misses_ab_stream_cap_M-1"])
        assert reads["min"] == int(row["belady_misses_aba_stream_cap_M-1"])
        if not skips[row["instance"], row["order"], row["M"]]:
            assert reads["rr"] == int(row["fifo_misses_ab_stream_cap_M-1"])


def test_compact_growth_instance_needs_its_memory(reference: Path) -> None:
    network = instance(reference, "c01", "grouped")
    assert compact_growth_memory(network) <= 20


@pytest.fixture
def chain() -> Network:
    return Network([0, 1, 2], [1, 2, 3], n_neurons=5, inputs=[0], outputs=[3])


def test_bad_requests(chain: Network) -> None:
    with pytest.raises(InputError, match="memory is 2: at least 3"):
        count_io(chain, memory=2)
    with pytest.raises(InputError, match=r"unknown policy .lrv. .did you mean .lru."):
        count_io(chain, memory=3, policy="lrv")
    with pytest.raises(InputError, match="unknown pinning"):
        count_io(chain, memory=3, pinning="pinboth")
    with pytest.raises(InputError, match="not topological"):
        count_io(chain, [2, 1, 0], memory=3)
    with pytest.raises(InputError, match="integer"):
        count_io(chain, memory=3.0)  # type: ignore[arg-type]


def test_isolated_neurons_count_in_nothing(chain: Network) -> None:
    counts = count_io(chain, memory=3)
    assert (counts.total, counts.reads_neurons, counts.writes, counts.runs) == (3 + 4 + 1, 4, 1, 3)
    assert io_bounds(chain).lower_total == 8


def test_movement_distance_is_that_of_a_list_in_order_of_use():
    from hwmodel.fastmemory.iomodel import movement_distance
    from traces.generators.networks import random_layered

    network = random_layered(3, 9, 0.4, seed=2)
    stack: list[int] = []
    total, touched = 0.0, int(network.touched.sum())
    for source, target in zip(network.sources.tolist(), network.targets.tolist(), strict=True):
        for neuron in (source, target):
            total += (stack.index(neuron) + 1 if neuron in stack else touched) ** 0.5
            stack = [neuron, *(each for each in stack if each != neuron)]
    assert movement_distance(network) == pytest.approx(total)
