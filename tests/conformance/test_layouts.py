"""What every layout must do, whoever brings it: hold the orders it says it holds, and compute the forward pass."""

import numpy as np
import pytest

from traces.layout.kind import LAYOUTS
from traces.layout.settings import Layout
from traces.networks.forward import forward
from traces.networks.network import Network
from traces.trace.build import build_trace, final_image
from traces.trace.chunks import LOAD, STREAMS

FORMATS = ("fp32", "int4")


def network() -> Network:
    """Two layers with an empty row range, unequal rows and biases."""
    rng = np.random.default_rng(5)
    layers = [(range(6), range(6, 11)), (range(6, 11), range(11, 15))]
    triples = [
        (s, t, k)
        for k, (sources, targets) in enumerate(layers)
        for t in targets
        for s in sources
        if (s + 2 * t) % 3 or s == min(sources)
    ]
    sources, targets, layer = map(np.array, zip(*triples, strict=True))
    return Network(
        sources,
        targets,
        n_neurons=15,
        inputs=range(6),
        outputs=range(11, 15),
        layer=layer,
        weights=rng.standard_normal(len(triples)).astype(np.float32),
        biases=rng.standard_normal(15).astype(np.float32),
    )


def orders(net: Network) -> dict[str, np.ndarray]:
    """Return orders of work: by row, by column, and one that cuts both."""
    cut = np.lexsort((net.targets % 2, net.sources % 2, net.layer))
    return {
        "rows": np.arange(net.n_connections),
        "columns": np.lexsort((net.targets, net.sources, net.layer)),
        "cut": cut,
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_says_what_it_is(name):
    kind = LAYOUTS[name].item
    assert LAYOUTS[name].summary and kind.runs_of in (None, "source", "target")
    assert set(kind.ids) <= {"source", "target"}
    net = network()
    assert any(kind.holds(net, order) for order in orders(net).values())


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_trace_computes_the_forward_pass_and_moves_the_bytes_declared(name, form):
    net, kind = network(), LAYOUTS[name].item
    inputs = np.random.default_rng(1).random((1, 6)).astype(np.float32)
    for order in orders(net).values():
        if not kind.holds(net, order):
            with pytest.raises(ValueError, match=f"layout {name!r} needs every {kind.run_name} in one run"):
                build_trace(net, order, layout=name)
            continue
        trace = build_trace(net, order, layout=Layout(kind=name, value_format=form, id_bits=16), inputs=inputs)
        read = 0
        padding = trace.description["padding_elements"]
        for chunk in trace:
            own = np.isin(chunk.stream, [STREAMS.index(s) for s in ("values", "ids", "tuples")])
            names = trace.memory.region(f"{kind.run_name}_index") if _has(trace, f"{kind.run_name}_index") else None
            if names is not None:  # structure, not per connection
                at = chunk.address.astype(np.int64) - names.base_address
                own &= ~((at >= 0) & (at < names.n_bytes))
            assert (chunk.op[own] == LOAD).all()
            read += int(chunk.size[own].sum())
        value_bits = 32 if form == "fp32" else 4
        wanted = bytes_per_connection(name, kind, value_bits) * (net.n_connections + padding)
        assert wanted <= read < wanted + 1  # two int4 share the load of their byte
        if form == "fp32":
            memory = final_image(trace)
            region = trace.memory.region("neurons")
            values = memory[region.base_address - trace.memory.base_address :][: region.n_bytes].view(np.float32)
            expected = forward(net, inputs)[0]
            assert np.allclose(values[net.outputs], expected[net.outputs], atol=1e-5)


def bytes_per_connection(name, kind, value_bits):
    """Bytes read for each connection with ids of 2 bytes, structure and padding not counted."""
    whole = max(value_bits // 8, 1)  # in a record a weight smaller than a byte takes one
    special = {"tuples": 4 + whole, "runs": 2 + whole, "runs-delta": 1 + value_bits / 8}
    return special.get(name, 2 * len(kind.ids) + value_bits / 8)


def _has(trace, name):
    return any(region.name == name for region in trace.memory.regions)


def decode_steps(data):
    ids, code, shift = [], 0, 0
    for byte in data.tolist():
        code |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            ids.append((ids[-1] if ids else 0) + (-(code + 1) // 2 if code & 1 else code // 2))
            code = shift = 0
    return ids


def test_delta_coded_ids_are_read_back():
    from traces.layout.records import encode_steps

    rng = np.random.default_rng(0)
    for top in (2, 60, 200, 70_000, 2**40):
        ids = rng.integers(0, top, 1000)
        data, lengths = encode_steps(ids)
        assert np.array_equal(decode_steps(data), ids) and int(lengths.sum()) == len(data)
    assert encode_steps(np.array([0, 1, 0, 63, 0]))[0].tolist() == [0, 2, 1, 126, 125]
