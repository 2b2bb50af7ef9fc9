"""Hypothesis strategies of machines, and small traces to play on them."""

from hypothesis import strategies as st
from oracles.trace_oracle import random_network, topological_order

from hwmodel.caches.policy import CACHE_POLICIES
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import BusSpec, Machine
from traces.layout.settings import Layout
from traces.trace.build import build_trace


@st.composite
def hierarchies(draw, encoder="raw", **more):
    caches, line = [], 8
    for _ in range(draw(st.integers(0, 3))):
        line *= 2 ** draw(st.integers(0, 2))
        ways = 2 ** draw(st.integers(0, 2))
        caches.append(
            CacheSpec(
                line * ways * 2 ** draw(st.integers(0, 2)),
                line,
                ways,
                draw(st.sampled_from(list(CACHE_POLICIES))),
                draw(st.sampled_from(("back", "through"))),
                draw(st.booleans()),
            )
        )
    return Machine(tuple(caches), encoder=encoder, bus=BusSpec(2, 8), **more)


def a_trace(made, chunk_accesses=64):
    rng, activation = made
    network = random_network(rng, activation=activation)
    layout = Layout(kind="tuples", base_address=12, alignment_bytes=4, registers="none")
    order = topological_order(network, rng, rows=False)
    return build_trace(network, order, layout=layout, sample=[0, 1], chunk_accesses=chunk_accesses)
