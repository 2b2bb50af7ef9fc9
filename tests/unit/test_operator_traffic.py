"""The transfers of a schedule as a trace: every byte of the traffic count, with the model's own numbers in it."""

from pathlib import Path

import numpy as np
import pytest

from edgewatt.operators.energy import draw_inputs, operator_energy, operator_trace
from edgewatt.operators.request import load_graph
from hwmodel.machine import Machine
from hwmodel.replay import replay
from reorder.operators.rewriting.rewrite import rewrite_graph
from reorder.operators.schedule.schedule import schedule
from reorder.operators.schedule.traffic import offchip_traffic
from traces.base.errors import InputError
from traces.operators.execute import execute
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor
from traces.readers import load
from traces.trace.chunks import STREAMS


def small_network() -> OpGraph:
    """Two convolutions of one input, concatenated and convolved again; float32."""
    random = np.random.default_rng(3)
    constants = {
        f"w{i}": random.normal(size=s).astype(np.float32) for i, s in enumerate([(4, 3, 3, 2)] * 2 + [(3, 1, 1, 8)])
    }

    def tensor(name: str, width: int) -> tuple[Tensor, ...]:
        return (Tensor(name, (1, 6, 6, width), 4 * 36 * width, name, "float32"),)

    same = {"padding": "SAME"}
    return OpGraph(
        "small",
        (
            Operator("x", INPUT, (), tensor("x", 2)),
            Operator("a", "CONV_2D", ("x",), tensor("a", 4), ("w0",), same),
            Operator("b", "CONV_2D", ("x",), tensor("b", 4), ("w1",), same),
            Operator("c", "CONCATENATION", ("a", "b"), tensor("c", 8), (), {"axis": 3, "operands": ("a", "b")}),
            Operator("y", "CONV_2D", ("c",), tensor("y", 3), ("w2",), same),
        ),
        ("y",),
        constants,
    )


@pytest.mark.parametrize("patterns", [(), "all"])
def test_trace_carries_the_counted_traffic_and_the_right_bytes(patterns: str) -> None:
    graph = rewrite_graph(small_network(), patterns)
    order = schedule(graph).order
    trace = operator_trace(graph, order, onchip_bytes=1024, block_bytes=128, seed=5)
    counted = offchip_traffic(graph, order, onchip_bytes=1024, block_bytes=128)
    values = execute(graph, draw_inputs(graph, 5), order=order.tolist())
    read = written = weights = 0
    regions = {region.name: region for region in trace.memory.regions}
    home = np.array(trace.memory.image)
    for chunk in trace:
        for i in range(len(chunk)):
            held = chunk.payload[chunk.payload_offset[i] : chunk.payload_offset[i + 1]]
            at = int(chunk.address[i])
            if chunk.op[i]:
                written += len(held)
                home[at : at + len(held)] = held
            else:
                weights += len(held) * (STREAMS[chunk.stream[i]] == "values")
                read += len(held) * (STREAMS[chunk.stream[i]] != "values")
                assert np.array_equal(home[at : at + len(held)], held)  # what is read was written there before
    assert (read, written) == (counted.read_bytes, counted.written_bytes)
    assert counted.written_bytes > 0
    assert weights == sum(graph.constants[name].nbytes for node in graph.nodes for name in node.constants)
    # a buffer that was written out last holds the tensor's final values
    for name in ("a", "b"):
        region = regions[name]
        stored = home[region.base_address : region.base_address + region.n_bytes].view(np.float32)
        kept = stored != 0
        assert np.array_equal(stored[kept], values[name].reshape(-1)[kept])


def test_addresses_alone_need_no_weights() -> None:
    graph = load_graph("randwire-ws16")
    order = schedule(graph).order
    with pytest.raises(InputError, match="has no weights: transfers carry no data"):
        operator_trace(graph, order, onchip_bytes=32768)
    result = replay(operator_trace(graph, order, onchip_bytes=32768, data=False), Machine(()))
    counted = offchip_traffic(graph, order, onchip_bytes=32768)
    assert int(result.load_bytes.sum()) == counted.read_bytes
    assert int(result.store_bytes.sum()) == counted.written_bytes
    assert result.run.ones is None


def test_published_model_on_the_wires(reference: Path) -> None:
    graph = load(reference / "models" / "swiftnet_vww_uint8.tflite")
    found = schedule(graph)
    sent = {}
    for name, order in (("file", np.arange(graph.n_nodes)), ("scheduled", found.order)):
        result = replay(operator_trace(graph, order, onchip_bytes=65536), Machine((), element_bytes=1))
        counted = offchip_traffic(graph, order, onchip_bytes=65536)
        assert int(result.store_bytes.sum()) == counted.written_bytes
        assert int(result.load_bytes.sum()) - int(result.load_bytes[STREAMS.index("values")]) == counted.read_bytes
        sent[name] = result.run.ones
    assert sent["scheduled"] < sent["file"]


def test_energy_follows_the_traffic(reference: Path) -> None:
    pytest.importorskip("hwmodel.energy.total")
    graph = load(reference / "models" / "swiftnet_vww_uint8.tflite")
    found = schedule(graph)
    before = operator_energy(graph, np.arange(graph.n_nodes), onchip_bytes=65536)
    after = operator_energy(graph, found.order, onchip_bytes=65536)
    assert (
        after["weight_bytes"]
        == before["weight_bytes"]
        == sum(graph.constants[name].nbytes for node in graph.nodes for name in node.constants)
    )
    for key in ("ones", "toggles", "io_pj", "core_pj", "total_pj", "time_ns"):
        assert 0 < after[key] < before[key], key
    inverted = operator_energy(graph, found.order, onchip_bytes=65536, encoder="dbi-dc")
    assert inverted["ones"] < after["ones"]
    bare = operator_energy(load_graph("randwire-ws16"), schedule(load_graph("randwire-ws16")).order, onchip_bytes=32768)
    assert bare["ones"] is None
    assert bare["core_pj"] > 0
