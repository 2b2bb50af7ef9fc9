"""A scratchpad moves exactly the rows that the I/O model counts, with the bytes they hold."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags
from oracles.trace_oracle import networks, random_network, small_network, topological_order

from hwmodel.caches.spec import CacheSpec
from hwmodel.fastmemory.iomodel import count_io
from hwmodel.fastmemory.scratchpad import Scratchpad, ScratchpadSpec
from hwmodel.machine import BusSpec, EngineSpec, Machine
from hwmodel.replay import replay
from hwmodel.replay.cache_pass import CachePass, KeptPass, keep
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.layout.kind import LAYOUTS
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.trace.build import build_trace, final_image, stored_activations
from traces.trace.chunks import STREAMS
from traces.trace_files.npz import load_trace, save_trace

POLICIES, PINNINGS = ("min", "lru", "rr"), ("literal", "pin_both")
ROWS = [STREAMS.index(name) for name in ("inputs", "partial_sums", "outputs")]


def with_weights(network: Network, rng: np.random.Generator) -> Network:
    return Network(
        network.sources,
        network.targets,
        n_neurons=network.n_neurons,
        inputs=network.inputs,
        outputs=network.outputs,
        weights=rng.standard_normal(network.n_connections).astype(np.float32),
        biases=rng.standard_normal(network.n_neurons).astype(np.float32),
    )


def scratchpad(memory: int, row_bytes: int, **options: object) -> ScratchpadSpec:
    return ScratchpadSpec((memory - 1) * row_bytes + 64, stream_bytes=64, **options)


def assert_moves_what_is_counted(network: Network, memory: int, policy: str, pinning: str, lanes: int) -> None:
    trace = build_trace(network, lanes=lanes, layout="tuples", batch=lanes)
    row_bytes = 4 * lanes
    spec = scratchpad(memory, row_bytes, policy=policy, pinning=pinning)
    found = replay(trace, Machine(scratchpad=spec))
    counts = count_io(network, memory=memory, policy=policy, pinning=pinning)
    moved = found.scratchpad
    assert moved is not None and moved.memory == memory
    assert (moved.reads_neurons, moved.writes_live, moved.writes_outputs) == (
        counts.reads_neurons,
        counts.writes_live,
        counts.writes_outputs,
    )
    # and what went over the bus says the same: one access per row, of all its bytes
    assert int(found.loads[ROWS].sum()) == counts.reads_neurons
    assert int(found.stores.sum()) == counts.writes_live + counts.writes_outputs
    assert int(found.store_bytes.sum()) == (counts.writes_live + counts.writes_outputs) * 4 * lanes


@settings(max_examples=200, deadline=None)
@given(dags(), st.integers(3, 9), st.sampled_from([1, 5, 16]), st.integers(0, 2**32))
def test_rows_moved_are_those_counted(network: Network, memory: int, lanes: int, seed: int) -> None:
    network = with_weights(network, np.random.default_rng(seed))
    for policy in POLICIES:
        for pinning in PINNINGS:
            assert_moves_what_is_counted(network, memory, policy, pinning, lanes)


def test_rows_moved_are_those_of_every_reference_row(reference: Path) -> None:
    made: dict[tuple[str, str], Network] = {}
    with open(reference / "iomodel" / "results.csv") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        key = row["instance"], row["order"]
        if key not in made:
            with np.load(reference / "iomodel" / f"{key[0]}.npz", allow_pickle=False) as data:
                network = Network(
                    data[f"src_{key[1]}"],
                    data[f"dst_{key[1]}"],
                    n_neurons=int(data["n_neurons"]),
                    inputs=np.arange(int(data["n_inputs"])),
                    outputs=data["outputs"].astype(np.int64),
                )
            made[key] = with_weights(network, np.random.default_rng(0))
        trace = build_trace(made[key], layout="tuples")
        spec = scratchpad(int(row["M"]), 4, policy=row["policy"].lower(), pinning=row["pinning"])
        machine = Machine(scratchpad=spec)
        whole = CachePass(trace, machine)
        for _ in whole.run():
            pass
        moved = whole.scratchpad
        assert moved is not None
        for name in ("reads_neurons", "writes_live", "writes_outputs"):
            assert getattr(moved, name) == int(row[name]), (row, name)
        assert int(whole.access_counts[0, 0][ROWS].sum()) == int(row["reads_neurons"])
        assert int(whole.access_counts[1, 0].sum()) == int(row["writes"])


@settings(max_examples=150, deadline=None)
@given(networks, st.integers(3, 12), st.integers(1, 6), st.integers(1, 6), st.data())
def test_every_transfer_carries_what_memory_holds_and_outputs_end_in_memory(made, memory, lanes, n_vectors, data):
    rng, activation = made
    network = random_network(rng, activation=activation)
    kind = data.draw(st.sampled_from([name for name in LAYOUTS if LAYOUTS[name].item.runs_of != "source"]))
    neuron_format = data.draw(st.sampled_from(["fp32", "fp16"]))
    edges = topological_order(network, rng, rows=True)
    layout = Layout(kind=kind, neuron_format=neuron_format, lanes=lanes)
    vectors = rng.standard_normal((n_vectors, len(network.inputs))).astype(np.float32)
    trace = build_trace(network, edges, layout=layout, inputs=vectors)
    spec = scratchpad(
        memory,
        layout.row_pitch,
        policy=data.draw(st.sampled_from(POLICIES)),
        pinning=data.draw(st.sampled_from(PINNINGS)),
        bias=data.draw(st.sampled_from(["row", "scalar"])),
    )
    passed = CachePass(trace, Machine(scratchpad=spec))
    memory_bytes = passed._engine.trace.memory.image.copy()
    base = passed._engine.trace.memory.base_address
    read = np.zeros(len(memory_bytes), np.int64)
    for chunk in passed._engine.trace:
        for k in range(len(chunk)):
            at, size = int(chunk.address[k]) - base, int(chunk.size[k])
            payload = chunk.payload[chunk.payload_offset[k] : chunk.payload_offset[k + 1]]
            if chunk.op[k]:
                memory_bytes[at : at + size] = payload
            else:
                stale = chunk.stream[k] == STREAMS.index("partial_sums") and spec.bias == "scalar"
                assert stale or np.array_equal(memory_bytes[at : at + size], payload)
                if chunk.stream[k] not in ROWS:
                    read[at : at + size] += 1
    passes = -(-n_vectors // lanes)
    assert set(np.unique(read)) <= {0, passes}  # connections are read once a pass
    values = stored_activations(trace, network.n_neurons, neuron_format, image=memory_bytes[: trace.memory.total_bytes])
    alone = stored_activations(trace, network.n_neurons, neuron_format)
    outputs = [n for n in network.outputs if network.out_degree[n] == 0]
    leaves_mid_run = (spec.policy, spec.pinning) == ("rr", "literal")  # a sum that leaves is rounded as it is stored
    if neuron_format == "fp32" or not leaves_mid_run:
        assert np.array_equal(values[:, outputs], alone[:, outputs], equal_nan=True)
    for _ in passed.run():
        pass
    counts = passed.scratchpad
    engine = sum(1 for chunk in trace for s in chunk.stream if s in ROWS)  # what the same engine does to caches
    if leaves_mid_run:  # and read again
        assert counts.rows_read + counts.rows_written >= engine
    else:
        assert counts.rows_read + counts.rows_written == engine
        assert counts.accesses == sum(len(chunk) for chunk in trace)


def test_a_scalar_bias_moves_four_bytes_and_both_sizes_are_told():
    network = small_network()
    found = {}
    for bias in ("row", "scalar"):
        trace = build_trace(network, lanes=16, batch=32, layout="tuples")
        found[bias] = replay(trace, Machine(scratchpad=ScratchpadSpec(1024, stream_bytes=64, bias=bias)))
    row, scalar = (found[bias].scratchpad for bias in ("row", "scalar"))
    assert row.bias_reads == 3 and row.passes == 2  # neurons 2, 4, 5 are computed
    assert row.bias_bytes_row == scalar.bias_bytes_row == 3 * 64 * 2
    assert row.bias_bytes_scalar == scalar.bias_bytes_scalar == 3 * 4 * 2
    assert row.reads_neurons == scalar.reads_neurons
    biases = STREAMS.index("biases")
    assert found["scalar"].load_bytes[biases] == 24 and found["row"].load_bytes[biases] == 0
    assert found["row"].load_bytes.sum() - found["scalar"].load_bytes.sum() == 3 * 60 * 2


def test_a_kept_pass_counts_the_same():
    trace = build_trace(small_network(), lanes=4, layout="tuples")
    machine = Machine(scratchpad=ScratchpadSpec(512, stream_bytes=64))
    kept, direct = replay(KeptPass(keep(trace, machine, 2**20)), machine), replay(trace, machine)
    assert kept.scratchpad == direct.scratchpad and kept.work == direct.work
    assert kept.total.ones == direct.total.ones
    with pytest.raises(InputError):
        KeptPass(keep(trace, machine, 2**20)).checked(Machine(scratchpad=ScratchpadSpec(1024, stream_bytes=64)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Machine(caches=(CacheSpec(8192),), scratchpad=ScratchpadSpec(8192)),
            "a machine has caches or a scratchpad, not both: leave one out",
        ),
        (
            lambda: Machine(scratchpad=ScratchpadSpec(8192, stream_bytes=16), bus=BusSpec(2, 32)),
            "scratchpad stream_bytes 16 is smaller than a burst of 32 bytes: the connections need room for at least "
            "one",
        ),
        (
            lambda: ScratchpadSpec(1024),
            "scratchpad stream_bytes 1024 leaves nothing of size_bytes 1024 for neurons",
        ),
        (lambda: ScratchpadSpec(8192, policy="plru"), "unknown scratchpad policy 'plru'"),
        (lambda: ScratchpadSpec(8192, bias="none"), "unknown scratchpad bias 'none'"),
        (lambda: ScratchpadSpec(0), "scratchpad size_bytes must be a whole number from 1 to 2^40, not 0"),
        (
            lambda: replay(
                build_trace(small_network(), lanes=128, batch=128), Machine(scratchpad=ScratchpadSpec(2000))
            ),
            "a scratchpad of 2000 bytes, 1024 of them for connections, holds 1 rows of 512 bytes, M = 2: at least 3 "
            "are needed, a connection and the two rows it joins; use a larger size_bytes, a smaller stream_bytes or "
            "fewer lanes",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_a_recorded_trace_has_no_order_of_work(tmp_path):
    save_trace(build_trace(small_network()), tmp_path / "trace.npz")
    with pytest.raises(InputError, match="a scratchpad moves rows by the order of work"):
        replay(load_trace(tmp_path / "trace.npz"), Machine(scratchpad=ScratchpadSpec(8192)))


@settings(max_examples=40, deadline=None)
@given(networks, st.integers(3, 12), st.integers(1, 6), st.sampled_from(POLICIES), st.sampled_from([1, 7, 64]))
def test_in_time_the_same_rows_move_and_dma_overlaps_compute(made, memory, lanes, policy, block):
    rng, activation = made
    network = random_network(rng, activation=activation)
    edges = topological_order(network, rng, rows=False)
    trace = build_trace(network, edges, layout="tuples", lanes=lanes, batch=2 * lanes)
    spec = scratchpad(memory, trace.plan.row_pitch, policy=policy)
    machine = Machine(scratchpad=spec, part="lpddr4-3200")
    found, counted = simulate(trace, machine, block_requests=block), replay(trace, machine)
    assert found.counts.scratchpad == counted.scratchpad
    assert np.array_equal(found.counts.run.reads, counted.run.reads)
    assert np.array_equal(found.counts.run.writes, counted.run.writes)
    assert found.counts.work.multiply_adds == counted.work.multiply_adds == 2 * lanes * network.n_connections
    engine = found.engines[0]
    assert engine.compute_cycles <= engine.finish_cycle <= found.total_cycles
    again = simulate(trace, machine, block_requests=64)
    assert again.total_cycles == found.total_cycles  # whatever the blocks of requests


@settings(max_examples=30, deadline=None)
@given(
    networks, st.sampled_from((3, 4, 6, 9)), st.sampled_from(("min", "lru", "rr")), st.sampled_from(("row", "scalar"))
)
def test_slots_name_the_rows_that_are_there(made, memory, policy, bias):
    """A record's slots hold the rows of its ends, by the descriptors alone; rows moved and outputs are those of ids."""
    rng, activation = made
    network = random_network(rng, activation=activation)
    layout = Layout(kind="tuples", lanes=4, value_format="fp16")
    trace = build_trace(network, topological_order(network, rng, rows=False), layout=layout, lanes=4)
    spec = ScratchpadSpec((memory - 1) * 16 + 256, policy, stream_bytes=256, bias=bias)
    ids, slots = (Scratchpad(trace, replace(spec, addressing=name), EngineSpec()) for name in ("ids", "slots"))
    image = final_image(ids.transfers.trace)
    left = final_image(slots.transfers.trace)
    start = trace.plan.neurons_offset
    assert np.array_equal(left[start : start + trace.plan.pass_bytes], image[start : start + trace.plan.pass_bytes])
    assert replace(ids.counts, memory=0) == replace(slots.counts, memory=0)
    memory = slots.transfers.trace.memory
    regions = {region.name: region for region in memory.regions}
    records, words = (
        memory.image[(r := regions[name]).base_address : r.base_address + r.n_bytes]
        for name in ("tuples", "descriptors")
    )
    records = records.reshape(-1, 4)  # two slots of a byte, a weight of two
    words = words.view("<u4")
    held, move = {}, 0
    for k, (source, target) in enumerate(zip(trace.plan.source.tolist(), trace.plan.target.tolist(), strict=True)):
        while move < len(words) and slots.moves.step[move] <= k:
            slot, neuron, store = words[move] & 255, (words[move] >> 8) & (2**23 - 1), words[move] >> 31
            assert neuron == slots.moves.neuron[move] and store == (slots.moves.kind[move] != 0)
            assert not store or held[slot] == neuron
            held[slot] = neuron
            move += 1
        assert held[records[k, 0]] == source and held[records[k, 1]] == target and max(held) < spec.memory(16) - 1
    chunks = list(slots.transfers.trace)
    read = sum(int(chunk.size[chunk.stream == STREAMS.index("ids")].sum()) for chunk in chunks)
    assert read == 4 * len(words) or read == 4 * move  # moves behind the last step are asked for too


@settings(max_examples=30, deadline=None)
@given(networks, st.sampled_from((1, 3)))
def test_zero_sources_cost_their_record_and_their_test(made, lanes):
    """Counted by hand from the values that the walk reads; what moves and what is left in memory stays the same."""
    rng, _ = made
    network = random_network(rng, activation="relu")
    trace = build_trace(network, topological_order(network, rng, rows=False), layout=Layout("tuples", lanes=lanes))
    spec, plan = ScratchpadSpec(4096), trace.plan
    whole, skips = (Scratchpad(trace, spec, EngineSpec(skip_zeros=flag)) for flag in (False, True))
    images = [final_image(pad.transfers.trace) for pad in (whole, skips)]
    assert np.array_equal(*images)
    values = stored_activations(trace, network.n_neurons)
    zero = (values[:, plan.source] == 0).all(axis=0)
    adds = skips.transfers.engine.multiply_adds
    assert adds == lanes * int((~zero).sum()) and whole.transfers.engine.multiply_adds == lanes * len(zero)
    runs = np.split(np.arange(len(zero)), np.flatnonzero(np.diff(plan.target)) + 1)
    written = sum(bool((~zero[run]).any() or plan.finish[run].any()) for run in runs)
    assert skips.counts.rows_written == written
    same_source = np.r_[False, np.diff(plan.source) == 0]
    assert skips.counts.rows_read == written + int((~same_source).sum())
    assert skips.transfers.engine.cycles <= whole.transfers.engine.cycles
