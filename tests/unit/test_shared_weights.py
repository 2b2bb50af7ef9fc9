"""Connections that share a stored weight: stored once, read where it is stored, the same forward pass."""

import numpy as np
import pytest

from hwmodel.machine import Machine
from traces.base.errors import InputError
from traces.layout.kind import LAYOUTS
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.networks.prune import prune_magnitude
from traces.readers import load, native
from traces.trace.build import build_trace, final_image
from traces.trace.chunks import STREAMS


def convolution_1d() -> Network:
    """A window of three weights over six inputs, four outputs."""
    kernel = np.array([0.5, -2.0, 3.0], np.float32)
    targets, taps = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    return Network(
        targets + taps,
        6 + targets,
        n_neurons=10,
        inputs=range(6),
        outputs=range(6, 10),
        weights=kernel[taps],
        layer=np.zeros(12, int),
        weight_ids=taps,
        positions=[(0, 0, x) for x in range(6)] + [(1, 0, x) for x in range(4)],
        batch=np.arange(6)[None] + 1.0,
    )


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("form", ["fp32", "int8", "int4"])
def test_a_weight_is_read_where_it_is_stored(kind, form):
    net = convolution_1d()
    order = np.arange(12) if LAYOUTS[kind].item.runs_of != "source" else np.lexsort((net.targets, net.sources))
    trace = build_trace(net, order, layout=Layout(kind=kind, value_format=form))
    plain = build_trace(net.with_(weight_ids=None), order, layout=Layout(kind=kind, value_format=form))
    ends = []
    for each in (trace, plain):
        region, image = each.memory.region("neurons"), final_image(each)
        ends.append(image[region.base_address - each.memory.base_address :][: region.n_bytes])
    assert np.array_equal(*ends)  # the same forward pass
    if not any(region.name == "values" for region in trace.memory.regions):  # records hold a weight each
        assert "stored_weights" not in trace.description
        return
    assert trace.description["stored_weights"] == 3
    bits = {"fp32": 32, "int8": 8, "int4": 4}[form]
    values = trace.memory.region("values")
    assert values.n_bytes == -(-3 * bits // 8)
    at = np.concatenate(
        [
            chunk.address[chunk.stream == STREAMS.index("values")].astype(np.int64) - values.base_address
            for chunk in trace
        ]
    )
    if bits >= 8:
        assert at.tolist() == (net.weight_ids[order] * bits // 8).tolist()
    else:
        assert set(at.tolist()) == {0, 1}


def test_padding_of_ell_reads_a_zero_of_its_own():
    net = prune_magnitude(convolution_1d(), n_connections=7)
    trace = build_trace(net, layout="ell")
    assert trace.description["padding_elements"] == 1
    assert trace.memory.region("values").n_bytes == 4 * (2 + 1)
    assert trace.description["stored_weights"] == 2


def test_a_shared_network_keeps_it_through_orders_pruning_and_files(tmp_path):
    net = convolution_1d()
    turned = net.in_order(np.arange(12)[::-1])
    assert turned.weight_ids.tolist() == net.weight_ids[::-1].tolist()
    assert prune_magnitude(net, n_connections=8).weight_ids.tolist() == [0, 1] * 4
    native.save(net, tmp_path / "n.npz")
    back = load(tmp_path / "n.npz")
    assert np.array_equal(back.weight_ids, net.weight_ids) and np.array_equal(back.positions, net.positions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(weights=np.arange(12)), "connections 0 and 3 share the stored weight 0, but weigh 0.0 and 3.0"),
        (dict(weights=None), "the network has no weights"),
        (dict(weight_ids=np.arange(12) * 2), "at most one per connection, not 22"),
        (dict(weight_ids=np.arange(12) - 1), "count stored weights from 0"),
        (dict(weight_ids=np.zeros(11, int)), "weight_ids has 11 values, expected 12"),
        (dict(positions=np.zeros((10, 2), int)), r"positions has shape \(10, 2\), expected \(N, 3\)"),
        (dict(positions=np.zeros((9, 3), int)), "positions has 9 values, expected 10"),
        (dict(positions=np.zeros(10, int)), r"positions must be two-dimensional, \(N, 3\)"),
        (
            dict(positions=np.full((10, 3), -2)),
            r"positions do not fit: neuron 0 lies at \(layer, y, x\) = \(-2, -2, -2\), but layers count from 0",
        ),
        (dict(positions=np.zeros((10, 3), int)), "positions do not fit: connection 0 goes from neuron 0 in layer 0 to"),
        (
            dict(layer=np.repeat([0, 1], 6), weight_ids=np.r_[0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 0, 1], weights=np.ones(12)),
            "layers 0 and 1 share the stored weight 0, but layer 0 has 3 stored weights and layer 1 2, not the same",
        ),
    ],
)
def test_tables_that_do_not_fit(changes, message):
    with pytest.raises(InputError, match=message):
        convolution_1d().with_(**changes)


def test_a_scratchpad_says_what_it_cannot_stream():
    from hwmodel.machine import ScratchpadSpec
    from hwmodel.replay import replay

    trace = build_trace(convolution_1d())
    with pytest.raises(InputError, match="several connections read one stored weight: use the layout 'tuples'"):
        replay(trace, Machine(scratchpad=ScratchpadSpec(4096)))
