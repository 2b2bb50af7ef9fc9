"""Kernels against the obvious versions on small random graphs with shared buffers and several outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import schedule_oracle as oracle
from oracles.random_graphs import graphs, random_order

from reorder.operators.arena.base import ALLOCATORS
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.bounds import CutBound, Peeling, lower_bound
from reorder.operators.schedule.operator_problem import OperatorProblem, footprint
from reorder.operators.schedule.schedule import schedule
from reorder.operators.schedule.traffic import offchip_traffic
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 1000), st.integers(1, 6), st.sampled_from([1, 3, 8]))
def test_costs_match_the_oracle(graph: OpGraph, seed: int, blocks: int, block_bytes: int) -> None:
    problem = OperatorProblem(graph)
    order = random_order(graph, np.random.default_rng(seed))
    assert [set(ids) for ids in graph.predecessors] == [oracle.predecessors(graph, v) for v in range(graph.n_nodes)]
    found = footprint(problem, order)
    assert found.peak_bytes == oracle.peak(graph, order)
    left = problem.costs.footprint(problem.check_order(order))[2][-1]
    assert left == sum(graph.buffer_bytes[list(graph.buffers).index(b)] for b in graph.output_buffers)
    for allocator, entry in ALLOCATORS.items():
        if entry.item.rule is None:
            continue
        found_bytes = arena(problem, order, allocator).height
        assert found_bytes == oracle.arena(graph, order, allocator)
        rows, random = np.array(order, np.int32), np.zeros(1, np.uint64)
        none = {"goal": 0, "evaluations": 0, "done_before": 0, "total": 1, "heat": 0.0, "random": random}
        assert found_bytes == problem.costs.improve(rows, rows.copy(), entry.item.rule, 2**62, **none)
    traffic = offchip_traffic(problem, order, onchip_bytes=blocks * block_bytes, block_bytes=block_bytes)
    assert (traffic.read_bytes, traffic.written_bytes) == oracle.traffic(
        graph, order, blocks * block_bytes, block_bytes
    )
    assert problem.greedy().tolist() == oracle.greedy(graph)
    for stack in (False, True):
        assert problem.kahn(stack=stack).tolist() == oracle.kahn(graph, stack)


@settings(max_examples=120, deadline=None)
@given(graphs())
def test_searches_find_the_optimum(graph: OpGraph) -> None:
    problem = OperatorProblem(graph)
    optimum, n_downsets = oracle.optimal_peak(graph)
    assert lower_bound(problem) <= optimum
    for method in ("best-first", "serenity"):
        found = schedule(graph, method=method)
        assert (found.peak_bytes, found.lower_bound_bytes) == (optimum, optimum), method
        assert footprint(graph, found.order).peak_bytes == optimum
    plain = schedule(graph, method="serenity", divide=False, soft_budget="unbounded")
    assert (plain.peak_bytes, plain.states) == (optimum, n_downsets)


@settings(max_examples=100, deadline=None)
@given(graphs(7), st.data())
def test_the_last_of_a_downset_and_the_first_of_an_upset_bound_the_peak(graph: OpGraph, data: st.DataObject) -> None:
    problem, n = OperatorProblem(graph), graph.n_nodes
    cut = CutBound(problem)
    before = [oracle.predecessors(graph, v) for v in range(n)]
    downsets = [
        {v for v in range(n) if bits >> v & 1}
        for bits in range(1 << n)
        if all(bits >> u & 1 for v in range(n) if bits >> v & 1 for u in before[v])
    ]

    def least(v: int, ran: set[int], waits: set[int]) -> int:
        """Of all points at which v may run next, with all of `ran` run and none of `waits`."""
        points = [s for s in downsets if v not in s and before[v] <= s and ran <= s and not waits & s]
        return min(oracle.live_after(graph, s) + allocated(v, s) for s in points)

    def allocated(v: int, done: set[int]) -> int:
        begun = {t.buffer for u in done for t in graph.nodes[u].outputs}
        return sum({t.buffer: t.n_bytes for t in graph.nodes[v].outputs if t.buffer not in begun}.values())

    held = data.draw(st.sampled_from(downsets))
    for first, of in ((False, held), (True, set(range(n)) - held)):
        mask = np.array([v in of for v in range(n)])
        for v in of:
            if any(v in before[u] and u in of for u in range(n)) if not first else before[v] & of:
                continue  # another one of them must run after (before) it
            expected = least(v, of - {v}, {v}) if not first else least(v, set(), of)
            assert Peeling(cut, first).end(v, mask) == expected
    optimum, _ = oracle.optimal_peak(graph)
    for first in (False, True):
        assert Peeling(cut, first).bound(0, 2**62, None) <= optimum


@settings(max_examples=60, deadline=None)
@given(graphs(), st.booleans(), st.booleans())
def test_every_variant_of_the_state_search_is_exact(graph: OpGraph, backwards: bool, safe_moves: bool) -> None:
    from cython_ext.schedule import schedule as kernel

    problem = OperatorProblem(graph)
    optimum, _ = oracle.optimal_peak(graph)
    search = kernel.Search(problem.reversed if backwards else problem.compiled, 0, kernel.NEVER, 10**6, safe_moves)
    assert search.best_first(10**6) == kernel.SOLVED
    assert search.goal_peak == optimum
    order = search.order()
    assert problem.costs.peak(graph.n_nodes - 1 - order[::-1] if backwards else order) == optimum
    # under a budget below the optimum nothing is found, and the least peak cut off is a lower bound
    search = kernel.Search(problem.compiled, optimum - 1, optimum, 10**6)
    assert search.best_first(10**6) == kernel.EXHAUSTED
    assert search.pruned_peak == optimum


@settings(max_examples=40, deadline=None)
@given(graphs(most=7))
def test_minimum_cut_is_the_least_memory_an_operator_can_run_in(graph: OpGraph) -> None:
    from itertools import combinations

    problem = OperatorProblem(graph)
    cut = CutBound(problem)
    before = [oracle.predecessors(graph, v) for v in range(graph.n_nodes)]
    for v in range(graph.n_nodes):
        least = None
        for size in range(graph.n_nodes):
            for done in map(set, combinations([u for u in range(graph.n_nodes) if u != v], size)):
                if before[v] <= done and all(before[u] <= done for u in done):
                    new = {t.buffer: t.n_bytes for t in graph.nodes[v].outputs}
                    for u in done:
                        for t in graph.nodes[u].outputs:
                            new.pop(t.buffer, None)
                    memory = oracle.live_after(graph, done) + sum(new.values())
                    least = memory if least is None else min(least, memory)
        assert cut.of(v) == least


@settings(max_examples=40, deadline=None)
@given(graphs(most=8), st.integers(0, 99))
def test_local_search_keeps_its_promises(graph: OpGraph, seed: int) -> None:
    best = schedule(graph)
    arena_aware = schedule(graph, objective="arena", evaluations=200, seed=seed)
    assert arena_aware.peak_bytes == best.peak_bytes
    assert arena_aware.peak_bytes <= arena_aware.arena_bytes <= best.arena_bytes
    traffic = schedule(graph, objective="traffic", onchip_bytes=16, block_bytes=4, evaluations=200, seed=seed)
    for order in (None, OperatorProblem(graph).kahn(), best.order):
        assert traffic.traffic_bytes <= offchip_traffic(graph, order, onchip_bytes=16, block_bytes=4).total_bytes
    again = schedule(graph, objective="traffic", onchip_bytes=16, block_bytes=4, evaluations=200, seed=seed)
    assert again.order.tolist() == traffic.order.tolist()


@pytest.mark.parametrize("level", ["operators", "sizes"])
def test_wide_bitsets_and_large_sizes(level: str) -> None:
    """More operators than one or two machine words hold, and sizes near 2^62."""
    n, size = (150, 10) if level == "operators" else (20, 2**57)
    nodes = [Operator("in", INPUT, (), (Tensor("in", (1,), size, "in"),))]
    nodes += [Operator(f"a{i}", "OP", ("in",), (Tensor(f"a{i}", (1,), size, f"a{i}"),)) for i in range(n)]
    nodes += [Operator(f"b{i}", "OP", (f"a{i}",), (Tensor(f"b{i}", (1,), 1, f"b{i}"),)) for i in range(n)]
    nodes.append(Operator("out", "OP", tuple(f"b{i}" for i in range(n)), (Tensor("out", (1,), 1, "out"),)))
    found = schedule(OpGraph("wide", tuple(nodes), ("out",)))
    assert found.proved
    assert found.peak_bytes == 2 * size + (n - 1)  # one long branch at a time, the short results pile up
