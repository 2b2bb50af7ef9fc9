"""Engines that share the work of a network: nothing is lost between them, and each step is made by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.trace_oracle import networks, random_network, small_network, topological_order

import traces.trace.partition as partition_module
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import load_part
from hwmodel.machine import EngineSpec, Machine
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.layout.kind import LAYOUTS
from traces.layout.settings import Layout
from traces.trace.build import build_trace, stored_activations
from traces.trace.chunks import Trace
from traces.trace.partition import CUTS, EnginesSpec, cut_work, partition


def accesses(trace: Trace) -> list[tuple[int, ...]]:
    columns = [(c.address, c.op, c.stream) for c in trace]
    return [tuple(map(int, row)) for c in columns for row in zip(*c, strict=True)]


@settings(max_examples=150, deadline=None)
@given(networks, st.sampled_from(CUTS), st.integers(2, 5), st.integers(1, 3), st.data())
def test_each_access_belongs_to_one_engine(made, cut, count, lanes, data):
    """The work of all engines, in the order of work, is a forward pass; the cut falls between steps."""
    rng, activation = made
    network = random_network(rng, activation=activation)
    kind = data.draw(st.sampled_from(list(LAYOUTS)))
    edges = topological_order(network, rng, rows=True)
    if not LAYOUTS[kind].item.holds(network, edges):
        return
    layout = Layout(kind=kind, value_format=data.draw(st.sampled_from(["fp32", "int4"])),
                    registers=data.draw(st.sampled_from(["run", "none"])))  # fmt: skip
    vectors = rng.standard_normal((5, len(network.inputs))).astype(np.float32)
    trace = build_trace(network, edges, layout=layout, inputs=vectors, lanes=lanes)
    try:
        parts = cut_work(trace, EnginesSpec(count, cut))
    except InputError as error:
        assert "runs" in str(error) or "passes" in str(error)
        return
    assert len(parts) == count
    assert sum(part.multiply_adds for part in parts) == trace.multiply_adds
    alone = accesses(trace)
    together = sorted(access for part in parts for access in accesses(part))
    assert sum(part.n_accesses for part in parts) == len(together)
    if cut == "passes" or layout.registers == "none":
        assert together == sorted(alone)
    else:  # what one engine leaves to another goes through memory
        assert len(together) >= len(alone) and set(together) >= set(alone)


@pytest.mark.parametrize("cut", ["runs", "blocks"])
def test_what_is_handed_over_is_the_same_forward_pass(cut):
    """The trace that is cut, walked whole, leaves the activations of the trace that is not."""
    from traces.trace.build import trace_of_plan

    network = small_network()
    trace = build_trace(network, layout="tuples", batch=2)
    hand_over = np.zeros(len(trace.plan.source), np.uint8)
    hand_over[1:] = 1  # after every step
    cut_up = trace_of_plan(replace(trace.plan, hand_over=hand_over), dict(trace.description))
    assert np.array_equal(stored_activations(trace, network.n_neurons), stored_activations(cut_up, network.n_neurons))
    assert len(accesses(cut_up)) > len(accesses(trace))


@settings(max_examples=15, deadline=None)
@given(networks, st.sampled_from(CUTS), st.integers(2, 4))
def test_engines_share_memory_and_counts(made, cut, count):
    rng, _ = made
    network = random_network(rng)
    trace = build_trace(network, topological_order(network, rng, rows=False), layout="tuples", batch=8)
    machine = Machine((CacheSpec(512, 64, 2),), part=load_part("lpddr4-3200"), encoder="dbi-dc", engine=EngineSpec())
    try:
        parts = cut_work(trace, EnginesSpec(count, cut))
    except InputError:
        return
    found = simulate(parts, machine)
    assert [run.accesses for run in found.engines] == [part.n_accesses for part in parts]
    assert found.counts.work.multiply_adds == trace.multiply_adds
    total = int(found.counts.loads.sum() + found.counts.stores.sum())
    assert total == sum(part.n_accesses for part in parts)


def test_one_engine_is_the_trace_itself():
    trace = build_trace(small_network(), layout="tuples")
    assert cut_work(trace, EnginesSpec()) == [trace]


def test_blocks_are_pieces_of_the_order_and_runs_are_dealt():
    network = small_network()
    trace = build_trace(network, layout="tuples")
    runs = np.cumsum(np.r_[0, np.diff(trace.plan.target) != 0])
    assert runs[-1] >= 2
    first = cut_work(trace, EnginesSpec(2, "blocks"))[0]
    whole = accesses(trace)
    assert accesses(first)[:-1] == whole[: first.n_accesses - 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EnginesSpec(0), "engines count must be a whole number from 1 to 64, not 0"),
        (lambda: EnginesSpec(65), "from 1 to 64, not 65"),
        (lambda: EnginesSpec(2, "rows"), "cut of the engines"),
        (lambda: cut_work(build_trace(small_network()), EnginesSpec(2)), "2 engines cut by passes need as many passes"),
        (
            lambda: cut_work(build_trace(small_network()), EnginesSpec(64, "runs")),
            "64 engines cannot share",
        ),
        (
            lambda: cut_work(partition(build_trace(small_network()), np.zeros(0, int), 1)[0], EnginesSpec(2)),
            "a recorded trace does not hold",
        ),
    ],
)
def test_bad_cuts(make, message):
    with pytest.raises(InputError, match=message):
        make()


@settings(max_examples=40, deadline=None)
@given(networks, st.sampled_from(("runs", "blocks", "targets")), st.integers(2, 4), st.integers(1, 2))
def test_an_engine_waits_for_what_another_computes(made, cut, count, passes):
    """By hand: a step's accesses begin when its source's and its target's earlier steps elsewhere have ended."""
    rng, _ = made
    network = random_network(rng)
    trace = build_trace(network, topological_order(network, rng, rows=False), layout="tuples", batch=passes)
    try:
        parts = cut_work(trace, EnginesSpec(count, cut))
    except InputError:
        return
    machine = Machine(
        (CacheSpec(2**16, 64, 8),), part=load_part("lpddr4-3200"), engine=EngineSpec(accesses_per_ns=0.01)
    )
    of = partition_module._first_use(trace.plan.target) if cut == "targets" else partition_module._runs(trace.plan)
    engines = partition_module._deal(of, EnginesSpec(count, cut))
    hand_over = np.r_[False, np.diff(engines.astype(int)) != 0].astype(np.uint8)
    each = partition_module._accesses_by_step(replace(trace.plan, hand_over=hand_over))
    free, ended, sums = [0.0] * count, {}, {}
    for p in range(passes):
        for k, (source, target) in enumerate(zip(trace.plan.source, trace.plan.target, strict=True)):
            e = int(engines[k])
            needed = ended.get((p, source), (e, 0)), sums.get((p, target), (e, 0))
            begin = max([free[e], *(end for f, end in needed if f != e)])
            free[e] = begin + each[k] * 100
            sums[p, target] = (e, free[e])
            if trace.plan.finish[k]:
                ended[p, target] = (e, free[e])
    found = simulate(parts, machine)
    by_hand = max(free)
    assert by_hand <= found.time_ns + 1 and found.time_ns <= by_hand * 1.02 + 100 * len(engines) * 0.2 + 2000
