"""The least energy on a machine: no order falls below it, in no term, on any machine; and it says what it proves."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.trace_oracle import networks, random_network, topological_order

from edgewatt.evaluation.least import least_energy
from edgewatt.evaluation.machine_cost import MachineCost
from edgewatt.orders.pays_machine import machine_of
from hwmodel.parts.part_file import part_names
from traces.generators.networks import random_layered
from traces.layout.settings import Layout
from traces.networks.network import Network

BACKGROUND = (
    "background_active", "background_precharged", "power_down_active", "power_down_precharged", "self_refresh",
)  # fmt: skip


@st.composite
def caches(draw):
    levels, line = [], 64
    for _ in range(draw(st.integers(1, 2))):
        line *= 2 ** draw(st.integers(0, 1))
        ways = 2 ** draw(st.integers(0, 2))
        levels.append(
            {
                "size_bytes": line * ways * 2 ** draw(st.integers(0, 5)), "line_bytes": line, "ways": ways,
                "policy": draw(st.sampled_from(("lru", "fifo", "min"))),
                "write": draw(st.sampled_from(("back", "through"))), "allocate": draw(st.booleans()),
            }
        )  # fmt: skip
    return {"caches": levels}


@st.composite
def pads(draw):
    size, stream = draw(st.sampled_from((2560, 4096))), draw(st.sampled_from((64, 512)))
    policy, bias = draw(st.sampled_from(("min", "lru", "rr"))), draw(st.sampled_from(("row", "scalar")))
    return {"scratchpad": {"size_bytes": size, "stream_bytes": stream, "policy": policy, "bias": bias}}


@st.composite
def systems(draw):
    controller = draw(st.sampled_from(("dramsim3", "jedec", "ramulator2")))
    dram = {"part": draw(st.sampled_from(PARTS)), "controller": {"preset": controller}}
    if controller != "ramulator2" and draw(st.booleans()):
        dram["controller"] |= {"page_policy": draw(st.sampled_from(("closed", "adaptive"))), "power_down_cycles": 50}
    memory = draw(st.one_of(caches(), pads()))
    priced = all(one["size_bytes"] >= 2048 for one in memory.get("caches", ()))
    more = {"technology": "lop-45nm"} if priced and draw(st.booleans()) else {}
    engine = {"accesses_per_ns": draw(st.sampled_from((0.05, 1.0)))}
    encoder = draw(st.sampled_from(("raw", "dbi-dc", "dbi-ac", "base-xor+dbi-dc")))
    idle = draw(st.sampled_from(("all", "none", "capacity", "bandwidth", 0.3)))
    return {**memory, "dram": dram, "encoder": encoder, "engine": engine, "idle": idle, **more}


PARTS = tuple(part_names())


def not_below(judge, edges, least):
    """Assert that an order costs no less than `least` in any term, and in bytes."""
    cost = judge.costs(edges)
    terms = dict(cost["terms"])
    terms["background"] = sum(terms.get(name, 0.0) for name in BACKGROUND)
    for name, pj in least.terms.items():
        assert pj <= terms[name] * (1 + 1e-12), name
    assert least.total_pj <= cost["energy"] * (1 + 1e-12)
    assert least.bytes <= cost["bytes"]


@settings(max_examples=60)
@given(networks, systems(), st.sampled_from((1, 3, 16)), st.sampled_from(("tuples", "coo")), st.booleans(), st.data())
def test_no_order_falls_below_it(made, system, lanes, kind, system_timing, data):
    rng, activation = made
    network = random_network(rng, activation=activation)
    layout = Layout(kind=kind, lanes=lanes, value_format=data.draw(st.sampled_from(("fp32", "fp16", "int4", "int8"))))
    if layout.value_format == "int8" and network.activation != "clipped-relu":
        layout = replace(layout, neuron_format="int8")
    timing = "system" if system_timing else "replay"
    judge = MachineCost(network, machine_of(system), layout, "energy", timing)
    least = least_energy(network, judge.plain, judge.machine, judge.layout, timing=timing)
    assert least is not None and least.total_pj > 0
    for _ in range(3):
        not_below(judge, topological_order(network, rng, rows=False), least)
    not_below(judge, judge.plain, least)


TINY = Network(
    [0, 1, 0, 2, 3, 1], [2, 2, 3, 4, 4, 4], 5, [0, 1], [4], weights=[1, -2, 0.5, 3, 0.25, 7], biases=[0, 0, 1, 2, 3],
    activation="relu",
)  # fmt: skip


def topological(edges):
    """Whether every connection into a neuron comes before all from it."""
    sources, targets = TINY.sources[list(edges)].tolist(), TINY.targets[list(edges)].tolist()
    return all(source not in targets[k:] for k, source in enumerate(sources))


@pytest.mark.parametrize("system", [
    {"scratchpad": {"size_bytes": 192, "stream_bytes": 64}},
    {"caches": [{"size_bytes": 128, "line_bytes": 64, "ways": 1, "policy": "lru"}], "technology": None},
])  # fmt: skip
def test_all_orders_of_a_tiny_network(system):
    machine = machine_of({**system, "encoder": "dbi-dc"})
    judge = MachineCost(TINY, machine, Layout("tuples", lanes=16), "energy", "replay")
    least = least_energy(TINY, judge.plain, judge.machine, judge.layout, timing="replay")
    orders = [edges for edges in permutations(range(TINY.n_connections)) if topological(edges)]
    assert len(orders) == 120
    for edges in orders:
        not_below(judge, edges, least)


def test_it_is_met_where_everything_fits():
    """In a scratchpad that holds the network only activates, commands, edges and what is written are left open."""
    network = random_layered(2, 12, 0.4, seed=3)
    pad = {"scratchpad": {"size_bytes": 8192}, "encoder": "dbi-dc"}
    judge = MachineCost(network, machine_of(pad), Layout("tuples", lanes=16), "energy", "replay")
    least = least_energy(network, judge.plain, judge.machine, judge.layout, timing="replay")
    cost = judge.costs(judge.plain)
    assert least.bytes == cost["bytes"]
    for name in ("read", "write", "dq_read_static", "dbi_read_static", "dqs_read_static", "activate"):
        assert least.terms[name] == pytest.approx(cost["terms"][name], rel=1e-12), name


def test_nothing_is_proved_of_layouts_whose_bytes_depend_on_the_order():
    judge = MachineCost(TINY, machine_of("edge"), Layout(kind="csr", lanes=16), "energy", "replay")
    assert least_energy(TINY, judge.plain, judge.machine, judge.layout, timing="replay") is None
