"""Layouts byte by byte on networks small enough to write down, and what traces refuse."""

import zipfile

import numpy as np
import pytest
from oracles.trace_oracle import small_network as small

from traces.base.errors import InputError
from traces.layout.settings import Layout
from traces.networks.forward import forward
from traces.trace.build import build_trace, final_image, stored_activations
from traces.trace.chunks import STREAMS
from traces.trace_files.npz import load_trace, save_trace


def listing(trace):
    return [
        (STREAMS[s], "store" if op else "load", int(address), int(size))
        for chunk in trace
        for s, op, address, size in zip(chunk.stream, chunk.op, chunk.address, chunk.size, strict=True)
    ]


def test_csr_of_a_small_network():
    trace = build_trace(small(), layout=Layout(alignment_bytes=16))
    assert trace.description["layout"]["kind"] == "csr"
    regions = {region.name: (region.base_address, region.n_bytes) for region in trace.memory.regions}
    assert regions == {"column_ids": (0, 10), "values": (16, 20), "row_pointers": (48, 20), "neurons": (80, 24)}
    image = trace.memory.image
    assert image[:10].view("<u2").tolist() == [0, 1, 1, 0, 2]  # counted from the lowest source of the layer
    assert image[48:68].view("<u4").tolist() == [0, 2, 2, 3, 5]  # rows 2 to 5; row 3 is empty
    assert listing(trace) == [
        ("row_pointers", "load", 48, 4),
        ("row_pointers", "load", 52, 4),
        ("ids", "load", 0, 2),
        ("values", "load", 16, 4),
        ("inputs", "load", 80, 4),
        ("partial_sums", "load", 88, 4),  # the bias
        ("ids", "load", 2, 2),
        ("values", "load", 20, 4),
        ("inputs", "load", 84, 4),
        ("outputs", "store", 88, 4),
        ("row_pointers", "load", 56, 4),
        ("row_pointers", "load", 60, 4),
        ("ids", "load", 4, 2),
        ("values", "load", 24, 4),
        ("partial_sums", "load", 96, 4),  # neuron 1 is still in its register
        ("outputs", "store", 96, 4),
        ("row_pointers", "load", 64, 4),
        ("ids", "load", 6, 2),
        ("values", "load", 28, 4),
        ("inputs", "load", 88, 4),
        ("partial_sums", "load", 100, 4),
        ("ids", "load", 8, 2),
        ("values", "load", 32, 4),
        ("inputs", "load", 96, 4),
        ("outputs", "store", 100, 4),
    ]
    assert stored_activations(trace, 6).tolist() == forward(small())[:1].tolist() == [[1, 2, 6, 7, 0, 27]]


def test_rows_in_another_order_are_named():
    trace = build_trace(small(), [2, 0, 1, 3, 4])
    image, memory = trace.memory.image, trace.memory
    index, pointers = memory.region("row_index"), memory.region("row_pointers")
    assert image[index.base_address :][: index.n_bytes].view("<u2").tolist() == [4, 2, 5]
    assert image[pointers.base_address :][: pointers.n_bytes].view("<u4").tolist() == [0, 1, 3, 5]
    loads = [access for access in listing(trace) if access[0] == "row_pointers"]
    assert len(loads) == 3 + 4


def test_columns():
    trace = build_trace(small(), [0, 1, 2, 3, 4], layout="csc")
    names = [region.name for region in trace.memory.regions]
    assert names == ["row_ids", "values", "column_pointers", "neurons"]
    inputs = [access for access in listing(trace) if access[0] == "inputs"]
    assert len(inputs) == 4  # once per column
    assert np.array_equal(stored_activations(trace, 6), forward(small())[:1])


def test_ellpack_pads_to_the_longest_row_of_the_layer():
    trace = build_trace(small(), layout="ell")
    assert trace.description["padding_elements"] == 1
    region = trace.memory.region("values")
    image = trace.memory.image[region.base_address :][: region.n_bytes]
    assert image.view("<f4").tolist() == [1, 2, -3, 0, 4, 5]
    assert np.array_equal(stored_activations(trace, 6), forward(small())[:1])


def test_two_4_bit_weights_share_a_byte_and_a_load():
    trace = build_trace(small(weights=[1, 2, -3, 4, 7]), layout=Layout(kind="csr", value_format="int4"))
    values = [access for access in listing(trace) if access[0] == "values"]
    region = trace.memory.region("values")
    assert [address - region.base_address for _, _, address, _ in values] == [0, 1, 2]
    assert trace.memory.image[region.base_address :][:3].tolist() == [0x21, 0x4D, 0x07]


def test_rows_start_at_the_row_alignment():
    layout = Layout(kind="csr", row_alignment_bytes=32, value_format="fp16")
    trace = build_trace(small(), layout=layout)
    values = [address for stream, _, address, _ in listing(trace) if stream == "values"]
    base = trace.memory.region("values").base_address
    assert [address - base for address in values] == [0, 2, 32, 64, 66]


def test_an_order_that_cuts_rows_becomes_tuples():
    order = [0, 2, 1, 3, 4]
    assert build_trace(small(), order).description["layout"]["kind"] == "tuples"
    with pytest.raises(InputError, match=r"'csr' needs every row in one run .* use layout 'tuples'"):
        build_trace(small(), order, layout="csr")
    with pytest.raises(InputError, match="needs every column in one run"):
        build_trace(small(), [1, 0, 2, 3, 4], layout="csc")


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        ({"weights": None}, {}, "has no weights"),
        ({}, {"layout": "crs"}, "unknown layout 'crs' .did you mean 'csr'"),
        ({}, {"layout": Layout(value_format="fp12")}, "unknown number format 'fp12'"),
        ({}, {"sample": 2}, "sample 2 does not exist: the batch has rows 0 to 1"),
        ({}, {"sample": -1}, "sample -1 does not exist"),
        ({}, {"inputs": [[1.0, 2.0, 3.0]]}, r"inputs have shape \(1, 3\), expected \(B, 2\)"),
        ({}, {"inputs": [[1.0, np.inf]]}, "not finite"),
        ({}, {"order": [0, 1, 2, 3]}, "the order has 4 entries"),
        ({}, {"order": [3, 0, 1, 2, 4]}, "not topological"),
        ({"layer": None}, {"layout": Layout(id_base="layer")}, "needs a layered network"),
        ({}, {"chunk_accesses": 8}, "at least 16"),
        ({"n_neurons": 300, "outputs": [5, 299], "biases": None}, {"layout": Layout(id_bits=8)}, None),
        (
            {"sources": [0, 1, 1, 2, 299], "targets": [2, 2, 299, 5, 5], "n_neurons": 300, "biases": None},
            {"layout": Layout(id_bits=8, kind="tuples")},
            "neuron id 299 does not fit id_bits 8: use 16",
        ),
    ],
)
def test_what_cannot_be_laid_out_is_refused(network, options, message):
    made = small(**network)
    if message is None:
        build_trace(made, **options)
        return
    with pytest.raises(InputError, match=message):
        build_trace(made, **options)


def test_ids_take_32_bits_where_16_do_not_hold_them():
    wide = small(sources=[0, 1, 1, 2, 70000], targets=[2, 2, 70000, 5, 5], n_neurons=70001, biases=None)
    assert build_trace(wide, layout="coo").memory.region("row_ids").n_bytes == 4 * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alignment_bytes": 48}, "power of two"),
        ({"id_bits": 12}, "id_bits must be 8, 16 or 32"),
        ({"base_address": -1}, "base_address"),
        ({"registers": "many"}, "unknown register model"),
        ({"neuron_format": "int4"}, "unknown neuron format"),
        ({"kind": "coo", "row_alignment_bytes": 32}, "has no rows"),
    ],
)
def test_layouts_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        Layout(**options)


def test_several_samples_have_their_own_neurons():
    trace = build_trace(small(), sample=[1, 0])
    assert stored_activations(trace, 6).tolist() == forward(small())[[1, 0]].tolist()


def test_a_network_without_a_batch_gets_seeded_inputs_and_says_so():
    trace = build_trace(small(batch=None), seed=3)
    assert "seed 3" in trace.description["inputs"]
    again = build_trace(small(batch=None), seed=3)
    assert np.array_equal(final_image(trace), final_image(again))
    assert not np.array_equal(final_image(trace), final_image(build_trace(small(batch=None), seed=4)))


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "trace.npz"
    save_trace(build_trace(small()), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"trace\.npz: "):
            load_trace(path)


def test_a_changed_byte_is_never_read_as_data(tmp_path):
    path = tmp_path / "trace.npz"
    trace = build_trace(small())
    save_trace(trace, path)
    whole = bytearray(path.read_bytes())
    expected = listing(trace)
    for at in range(0, len(whole), 11):
        damaged = whole.copy()
        damaged[at] ^= 0x41
        path.write_bytes(damaged)
        try:
            assert listing(load_trace(path)) == expected  # a byte nothing depends on (a date, say)
        except InputError as error:
            assert "trace.npz" in str(error)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(InputError, match="no such file"):
        load_trace(path)
    np.savez(path, address=np.arange(3))
    with pytest.raises(InputError, match=r"meta\.json\.npy is missing"):
        load_trace(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json.npy", b"\x93NUMPY\x01\x00")
    with pytest.raises(InputError, match="damaged"):
        load_trace(path)
    with pytest.raises(InputError, match="cannot be written"):
        save_trace(build_trace(small()), tmp_path / "missing" / "trace.npz")
    assert not list(tmp_path.glob(".*"))
