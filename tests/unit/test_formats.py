"""Number formats: exhaustive for the small ones, exact on the edges of the large ones."""

import numpy as np
import pytest
from oracles.packing import unpack

from traces.base.errors import InputError
from traces.formats import FORMATS, element_bits, from_bits, pack, symmetric_scale, to_bits

FLOATS = [name for name in FORMATS if not FORMATS[name].item.needs_scale]
INTEGERS = [name for name in FORMATS if FORMATS[name].item.needs_scale]


def small_float_value(code: int, exponent_bits: int, mantissa_bits: int) -> float:
    """The value of a code by the definition of a binary float (no infinity or NaN here)."""
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) else 1.0
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    return sign * (fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias))


@pytest.mark.parametrize(
    ("name", "exponent_bits", "mantissa_bits", "codes"),
    [
        ("fp8_e4m3", 4, 3, [c for c in range(256) if c & 0x7F != 0x7F]),
        ("fp8_e5m2", 5, 2, [c for c in range(256) if (c & 0x7C) != 0x7C]),
        ("fp16", 5, 10, [c for c in range(65536) if (c & 0x7C00) != 0x7C00]),
        ("bf16", 8, 7, [c for c in range(65536) if (c & 0x7F80) != 0x7F80]),
    ],
)
def test_every_code_has_the_value_its_definition_gives(
    name: str, exponent_bits: int, mantissa_bits: int, codes: list[int]
) -> None:
    values = from_bits(np.array(codes), name)
    assert values.tolist() == [small_float_value(code, exponent_bits, mantissa_bits) for code in codes]
    bits, scale, report = to_bits(values, name)
    assert bits.tolist() == codes and scale is None
    assert (report.zeroed, report.saturated) == (0, 0)


@pytest.mark.parametrize("name", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def test_rounding_takes_the_nearest_ties_to_even(name: str) -> None:
    form = FORMATS[name].item
    positive = from_bits(np.arange(1 << (form.bits - 1)), name)
    codes = np.flatnonzero(np.isfinite(positive))
    low, high = positive[codes[:-1]].astype(np.float64), positive[codes[1:]].astype(np.float64)
    middle = (low + high) / 2  # exact in float32: one more mantissa bit
    assert (to_bits(middle, name)[0] == codes[:-1] + codes[:-1] % 2).all()
    assert (to_bits(low + 0.25 * (high - low), name)[0] == codes[:-1]).all()
    assert (to_bits(low + 0.75 * (high - low), name)[0] == codes[1:]).all()


@pytest.mark.parametrize(
    ("name", "largest", "first_beyond"),
    [("fp16", 65504.0, 65520.0), ("fp8_e5m2", 57344.0, 61440.0), ("fp8_e4m3", 448.0, 465.0)],
)
def test_overflow_saturates_and_is_counted(name: str, largest: float, first_beyond: float) -> None:
    just_inside = np.nextafter(np.float32(first_beyond), np.float32(0)) if name != "fp8_e4m3" else np.float32(464)
    bits, _, report = to_bits([just_inside, first_beyond, -first_beyond, 3e38], name)
    assert from_bits(bits, name).tolist() == [largest, largest, -largest, largest]
    assert report.saturated == 3


def test_a_stored_non_zero_that_becomes_zero_is_counted() -> None:
    _, _, report = to_bits([1e-30, -1e-30, 0.0, 1.0], "fp16")
    assert report.zeroed == 2
    assert to_bits([1.0, 0.003, -0.005, 0.0], "int8")[2].zeroed == 1
    assert to_bits([1.0, 0.05], "int4")[2].zeroed == 1
    assert to_bits([1e-30, 0.0], "fp32")[2].zeroed == 0


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_codes_round_trip(name: str) -> None:
    top = FORMATS[name].item.code_max
    codes = np.arange(-top, top + 1)
    values = (codes * np.float32(0.37)).astype(np.float32)
    bits, scale, report = to_bits(values, name)
    assert scale == pytest.approx(0.37, rel=1e-6)
    assert (bits == codes % (1 << element_bits(name))).all()  # two's complement
    np.testing.assert_allclose(from_bits(bits, name, scale=scale), values, rtol=2e-7)
    assert report.saturated == 0 and report.zeroed == 0


def test_integers_with_a_given_scale_saturate_symmetrically() -> None:
    bits, scale, report = to_bits([300.0, -300.0, 128.0, 127.4, -1.0], "int8", scale=1.0)
    assert bits.view(np.int8).tolist() == [127, -127, 127, 127, -1]
    assert scale == 1.0 and report.saturated == 3


def test_nothing_to_scale() -> None:
    assert symmetric_scale([0.0, 0.0], "int4") == 1.0


def test_packed_bytes_are_little_endian_and_int4_starts_in_the_low_nibble() -> None:
    assert pack(np.array([0x1234, 0xABCD]), "fp16").tolist() == [0x34, 0x12, 0xCD, 0xAB]
    assert pack(np.array([0x12345678]), "fp32").tolist() == [0x78, 0x56, 0x34, 0x12]
    assert pack(np.array([1, 2, 15]), "int4").tolist() == [0x21, 0x0F]


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_unpack_undoes_pack(name: str, n: int) -> None:
    bits, _, _ = to_bits(np.linspace(-1, 1, n), name)
    assert len(pack(bits, name)) == -(-n * element_bits(name) // 8)
    assert unpack(pack(bits, name), name, n).tolist() == bits.tolist()


def test_bad_input_says_what_is_wrong() -> None:
    with pytest.raises(InputError, match="value 1 is nan"):
        to_bits([1.0, np.nan], "fp16")
    with pytest.raises(InputError, match=r"unknown number format 'fp61'.*fp16"):
        to_bits([1.0], "fp61")
    with pytest.raises(InputError, match="takes no scale"):
        to_bits([1.0], "fp16", scale=2.0)
    with pytest.raises(InputError, match="positive finite"):
        to_bits([1.0], "int8", scale=0.0)
    with pytest.raises(InputError, match="needs the scale"):
        from_bits([1], "int8")
