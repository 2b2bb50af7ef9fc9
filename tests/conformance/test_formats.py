"""What every number format must do, whoever brings it."""

import numpy as np
import pytest
from oracles.packing import unpack

from traces.formats import FORMATS, element_bits, from_bits, pack, to_bits
from traces.formats.integers import IntegerFormat
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.trace.build import build_trace

VALUES = np.random.default_rng(0).standard_normal(1001)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_says_what_it_is(name):
    form = FORMATS[name].item
    assert FORMATS[name].summary and form.bits in (1, 2, 4, 8, 16, 32) and element_bits(name) == form.bits
    assert form.needs_scale == (form.code_max > 0)


@pytest.mark.parametrize("name", FORMATS)
def test_conversions_undo_each_other_and_packing_loses_nothing(name):
    form = FORMATS[name].item
    bits, scale, report = to_bits(VALUES, name)
    assert bits.dtype == form.bits_dtype and int(bits.max()) < 2**form.bits
    assert (scale is not None) == form.needs_scale
    converted = from_bits(bits, name, scale=scale)
    again, _, _ = to_bits(converted, name, scale=scale)
    assert (from_bits(again, name, scale=scale) == converted).all()
    assert report.zeroed == np.count_nonzero((VALUES != 0) & (converted == 0))
    packed = pack(bits, name)
    assert len(packed) == -(-len(VALUES) * form.bits // 8)
    assert (unpack(packed, name, len(VALUES)) == bits).all()


@pytest.mark.parametrize("name", FORMATS)
def test_values_beyond_the_range_are_set_to_the_largest_and_counted(name):
    scale = 1.0 if FORMATS[name].item.needs_scale else None
    bits, _, report = to_bits([1e38, -1e38, 0.0], name, scale=scale)
    high, low, zero = from_bits(bits, name, scale=scale)
    assert report.saturated == (0 if high > 9e37 else 2)
    assert np.isfinite([high, low]).all() and high == -low > 0 and zero == 0


@pytest.mark.parametrize("kind", ["csr", "tuples"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_trace_in_the_format_can_be_walked(name, kind):
    network = Network([0, 1, 0, 1], [2, 2, 3, 3], n_neurons=4, inputs=[0, 1], outputs=[2, 3], weights=[1, -2, 3, 4])
    trace = build_trace(network, layout=Layout(kind=kind, value_format=name))
    assert sum(len(chunk) for chunk in trace) > 0


@pytest.mark.parametrize("bits", [*range(2, 17), 24, 32])
def test_integers_of_any_width_are_stored_in_the_next_one_there_is(bits):
    form = IntegerFormat(bits)
    assert form.bits >= bits and form.code_max == 2 ** (bits - 1) - 1
    codes = np.array([-form.code_max, -1, 0, 1, form.code_max], np.float64)
    stored, saturated = form.encode(codes * 0.5, np.array(0.5))
    assert not saturated.any() and (form.decode(stored, np.array(0.5)) == (codes * 0.5).astype(np.float32)).all()
