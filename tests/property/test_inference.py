"""Inference on the processor against the definition: every neuron, any order, every SIMD level."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cython_ext.inference.runs import LEVELS, _read_sums, _write_bytes, level_number
from hwmodel.processor.inference import CompiledInference, compile_inference
from hwmodel.processor.work import ordered_work, spread
from reorder.order import order
from tests.oracles import inference_oracle as oracle
from tests.oracles.random_networks import random_order
from tests.strategies import networks
from traces.base.errors import InputError
from traces.generators.networks import random_layered, uniform_layers
from traces.networks.network import Network
from traces.networks.quantization import to_bytes

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
levels = st.sampled_from(LEVELS)
lane_counts = st.sampled_from([1, 2, 16, 17, 40, 64, 128, 200])


def compiled(simd: str, *arguments: Any, **options: Any) -> CompiledInference:
    """Compile for at most a SIMD level."""
    with mock.patch("hwmodel.processor.inference.level_number", partial(level_number, simd)):
        return compile_inference(*arguments, **options)


def whole(network: Network) -> Network:
    """The same network with whole numbers: every sum is exact in float32."""
    return network.with_(weights=network.weights * 8, biases=network.biases * 8, batch=network.batch * 8)


def values_of(exact: list[list[Fraction]]) -> np.ndarray:
    return np.array([[float(v) for v in row] for row in exact])


@few
@given(networks(), st.integers(0, 2**32 - 1), lane_counts, levels, st.sampled_from(["runs", "literal"]))
def test_whole_numbers_are_exact_on_every_neuron_in_any_order(
    network: Network, seed: int, lanes: int, simd: str, algorithm: str
) -> None:
    network = whole(network)
    order = random_order(network, np.random.default_rng(seed))
    made = compiled(simd, network, order, lanes=lanes, algorithm=algorithm)
    expected = values_of(oracle.neurons(network, order, network.batch))
    if np.abs(expected).max(initial=0) < 2**20:
        np.testing.assert_array_equal(made.neurons(network.batch), expected)
        np.testing.assert_array_equal(made.run(network.batch), expected[:, network.outputs])


@few
@given(
    st.integers(0, 2**16), st.sampled_from([0.3, 0.6, 1.0]), st.none() | st.integers(4, 30),
    st.sampled_from([2, 16, 32, 64, 128, 200]), st.sampled_from(["float32", "bf16"]), st.integers(1, 2), st.booleans(),
)  # fmt: skip
def test_pairs_change_no_bit(
    seed: int, density: float, tile: int | None, lanes: int, dtype: str, threads: int, alike: bool
) -> None:
    """Of two targets taken at a time, each adds what it adds alone, in the same order."""
    network = uniform_layers([40, 31, 30, 5], density, seed=seed)
    found = order(network, "long-runs", memory=10, sources=tile, alike=alike)
    made = compile_inference(network, found, lanes=lanes, dtype=dtype, threads=threads)
    assert density < 1.0 or tile or not made._pairs or made._work.shared.any()
    apart = ordered_work(network, found)
    object.__setattr__(apart, "shared", np.zeros(len(apart.starts) - 1, np.int64))
    alone = CompiledInference(apart, lanes, dtype, threads, level_number(), None)
    batch = np.random.default_rng(seed).normal(size=(lanes + 3, 40)).astype(np.float32)
    np.testing.assert_array_equal(made.run(batch), alone.run(batch))
    np.testing.assert_array_equal(made.neurons(batch), alone.neurons(batch))


@few
@given(networks(), st.integers(0, 2**32 - 1), lane_counts, levels, st.sampled_from(["float32", "bf16"]))
def test_floats_stay_within_the_rounding_of_their_own_sum(
    network: Network, seed: int, lanes: int, simd: str, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    network = network.with_(
        weights=rng.normal(size=network.n_connections), batch=rng.normal(size=(3, len(network.inputs)))
    )
    order = random_order(network, rng)
    held = compiled(simd, network, order, lanes=lanes, dtype=dtype).neurons(network.batch)
    check_layer_locally(network, held, 2.0**-24 if dtype == "float32" else 2.0**-8)


@pytest.mark.parametrize("lanes", [1, 16, 32, 64, 128, 144])
@pytest.mark.parametrize("simd", LEVELS)
@pytest.mark.parametrize("dtype", ["float32", "bf16", "int8"])
def test_long_runs_are_exact(dtype: str, simd: str, lanes: int) -> None:
    for in_degree in (7, 8, 9, 15, 23, 66, 257):
        rng = np.random.default_rng(in_degree)
        sources = np.tile(np.arange(in_degree), 2)
        targets = np.repeat([in_degree, in_degree + 1], in_degree)
        network = Network(
            sources, targets, in_degree + 2, inputs=np.arange(in_degree), outputs=[in_degree, in_degree + 1],
            weights=rng.integers(-9, 10, 2 * in_degree), biases=rng.integers(-9, 10, in_degree + 2),
        )  # fmt: skip
        batch = rng.integers(0, 100, (150, in_degree)).astype(np.float32)
        expected = batch @ network.weights.reshape(2, -1).T + network.biases[-2:]
        made = compiled(simd, network, lanes=lanes, dtype=dtype, calibration=batch)
        np.testing.assert_array_equal(made.run(batch), expected, str(in_degree))


def check_layer_locally(network: Network, held: np.ndarray, unit: float) -> None:
    """Each neuron against the exact sum of the values its own sources hold: an error bound without propagation."""
    count = network.in_degree + 2
    for target in np.flatnonzero(network.in_degree).tolist():
        into = network.targets == target
        terms = network.weights[into].astype(np.float64) * held[:, network.sources[into]].astype(np.float64)
        bias = float(network.biases[target])
        total = terms.sum(axis=1)
        bound = count[target] * 1.01 * unit * (np.abs(terms).sum(axis=1) + abs(bias))
        if network.activation == "clipped-relu":
            near = np.abs(total) <= bound
            expected = np.clip(total + bias, 0, 32)
            wrong = (np.abs(held[:, target] - expected) > bound) & ~near
        else:
            expected = total + bias
            if network.activation == "relu" and not network.is_output[target]:
                expected = np.maximum(expected, 0)
            wrong = np.abs(held[:, target] - expected) > bound
        assert not wrong.any(), f"neuron {target}"


@few
@given(networks(), st.integers(0, 2**32 - 1), lane_counts, levels)
def test_bytes_and_sums_of_int8_are_those_of_the_definition(network: Network, seed: int, lanes: int, simd: str) -> None:
    if network.activation == "clipped-relu":
        network = network.with_(activation="relu")
    rng = np.random.default_rng(seed)
    network = network.with_(weights=rng.normal(size=network.n_connections))
    order = random_order(network, rng)
    made = compiled(simd, network, order, lanes=lanes, dtype="int8")
    batch = np.concatenate([network.batch, network.batch * 2])  # half of it leaves the range of the calibration
    q = made._integers.quantized
    stored, sums = oracle.int8_neurons(network, order, batch, q)
    fed = network.in_degree > 0
    expected = (stored - q.zero) * q.scale.astype(np.float64)
    final = fed & network.is_output
    expected[:, final] = sums[:, final] * q.sum_scale.astype(np.float64)[final]
    shown = network.touched
    np.testing.assert_allclose(made.neurons(batch)[:, shown], expected[:, shown].astype(np.float32), rtol=1e-6)
    np.testing.assert_allclose(made.run(batch)[:, shown[network.outputs]],
                               expected[:, network.outputs[shown[network.outputs]]], rtol=1e-6)  # fmt: skip


@few
@given(networks(), st.integers(0, 2**32 - 1), levels)
def test_whole_numbers_that_fit_are_exact_in_int8_too(network: Network, seed: int, simd: str) -> None:
    if network.activation == "clipped-relu":
        network = network.with_(activation="identity")
    network = whole(network)
    order = random_order(network, np.random.default_rng(seed))
    exact = values_of(oracle.neurons(network, order, network.batch))
    hidden = ~network.is_output & network.touched
    read = network.out_degree > 0
    if np.ptp(np.concatenate((exact, np.zeros((1, network.n_neurons))))[:, read | hidden], axis=0).max() <= 255:
        made = compiled(simd, network, order, lanes=64, dtype="int8")
        np.testing.assert_array_equal(made.neurons(network.batch)[:, hidden], exact[:, hidden])
        fed = network.outputs[network.in_degree[network.outputs] > 0]
        np.testing.assert_array_equal(made.neurons(network.batch)[:, fed], exact[:, fed])


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bf16", "int8"])
@pytest.mark.parametrize("lanes", [128, 16, 1])
def test_threads_change_nothing(threads: int, dtype: str, lanes: int) -> None:
    network = random_layered(4, 120, 0.4, seed=3)
    weights = np.random.default_rng(1).integers(-3, 4, network.n_connections)
    network = network.with_(weights=weights, biases=np.zeros(network.n_neurons))
    batch = np.random.default_rng(2).integers(0, 3, (200, 120)).astype(np.float32)
    one = compile_inference(network, lanes=lanes, dtype=dtype, calibration=batch)
    more = compile_inference(network, lanes=lanes, dtype=dtype, threads=threads, calibration=batch)
    np.testing.assert_array_equal(more.run(batch), one.run(batch))
    np.testing.assert_array_equal(more.neurons(batch[:20]), one.neurons(batch[:20]))


@pytest.mark.parametrize("dtype", ["float32", "bf16", "int8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_calls_from_several_threads_do_not_mix(dtype: str, threads: int) -> None:
    network = random_layered(4, 200, 0.3, seed=4)
    batches = [np.random.default_rng(k).random((150, 200), np.float32) for k in range(4)]
    made = compile_inference(network, lanes=64, dtype=dtype, threads=threads, calibration=batches[0])
    expected = [made.run(batch).copy() for batch in batches]

    def call(k: int) -> bool:
        batch = batches[k % 4] if k % 3 else made.pack(batches[k % 4])
        return bool((made.run(batch) == expected[k % 4]).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(40)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    network = random_layered(3, 60, 0.3, seed=4)
    made = compile_inference(network, lanes=64, threads=2)
    expected = made.run(network.batch)
    child = os.fork()
    if child == 0:
        os._exit(0 if (made.run(network.batch) == expected).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_rows_of_its_own() -> None:
    network = random_layered(3, 60, 0.3, seed=4)
    made = compile_inference(network, lanes=64)
    packed = made.pack(network.batch)
    expected = made.run(packed).copy()
    rows, table = made._spare[0][0].bytes.copy(), packed.tables.bytes.copy()
    child = os.fork()
    if child == 0:
        made._spare[0][0].bytes[:] = 255
        packed.tables.bytes[:] = 255
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (made._spare[0][0].bytes == rows).all() and (packed.tables.bytes == table).all()
    np.testing.assert_array_equal(made.run(packed), expected)


def test_threads_end_with_their_network() -> None:
    network = random_layered(3, 60, 0.3, seed=4)
    made = compile_inference(network, lanes=64, threads=3)
    for _ in range(3):
        made.run(network.batch)
    mine = [t for t in threading.enumerate() if t.name.startswith("edgewatt-inference")]
    assert mine
    before = threading.active_count()
    del made
    gc.collect()
    for thread in mine:
        thread.join(5)
    assert threading.active_count() <= before - len(mine)


def small() -> Network:
    return Network([0, 0, 2], [1, 2, 1], 3, inputs=[0], outputs=[1], weights=[1, 2, 3], batch=[[1.0]])


def test_an_illegal_order_is_refused() -> None:
    with pytest.raises(InputError, match="not topological: position 0 processes connection 2"):
        compile_inference(small(), [2, 0, 1])
    with pytest.raises(InputError, match="not a permutation"):
        compile_inference(small(), [0, 0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": 0}, "lanes must be an integer from 1 to 4096"),
        ({"dtype": "fp64"}, "float32"),
        ({"algorithm": "liberal"}, "literal"),
        ({"threads": True}, "threads must be an integer"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compile_inference(small(), **options)  # type: ignore[arg-type]


def test_bad_inputs_are_named() -> None:
    made = compile_inference(small())
    with pytest.raises(InputError, match=r"inputs have shape \(1, 2\), expected \(B, 1\)"):
        made.run([[1.0, 2.0]])
    with pytest.raises(InputError, match="weights"):
        compile_inference(Network([0], [1], 2, inputs=[0], outputs=[1]))
    with pytest.raises(InputError, match="clipped-relu"):
        compile_inference(small().with_(activation="clipped-relu"), dtype="int8")


def test_runs_and_stream_are_counted() -> None:
    made = compile_inference(small(), [0, 1, 2])
    assert (made.runs, made.stream_bytes) == (3, 3 * 16 + 3 * 4 * (2 + 4))
    assert compile_inference(small(), [1, 0, 2]).runs == 2
    assert compile_inference(small(), [1, 0, 2], algorithm="literal").runs == 3
    assert made.run(np.zeros((0, 1))).shape == (0, 1)


def test_any_layout_of_the_inputs_gives_the_same() -> None:
    network = random_layered(3, 50, 0.2, seed=5)
    made: CompiledInference = compile_inference(network, lanes=64)
    batch = np.random.default_rng(0).random((150, 50)).astype(np.float32)
    expected = made.run(batch)
    for other in (
        np.asfortranarray(batch),
        batch.astype(np.float64),
        batch[::-1][::-1],
        np.repeat(batch, 2, 1)[:, ::2],
    ):
        np.testing.assert_array_equal(made.run(other), expected)


def test_int8_without_a_batch_is_calibrated_by_the_first_run() -> None:
    network = small().with_(batch=None)
    assert compile_inference(network, dtype="int8").run([[2.0]]).tolist() == [[14.0]]


@few
@given(networks(), st.integers(0, 2**32 - 1), lane_counts, st.sampled_from(["float32", "int8"]), st.integers(1, 3))
def test_packed_inputs_give_what_the_inputs_give(
    network: Network, seed: int, lanes: int, dtype: str, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    batch = rng.normal(size=(rng.integers(1, 300), len(network.inputs))).astype(np.float32)
    network = network.with_(weights=rng.normal(size=network.n_connections), activation="relu")
    order = random_order(network, rng)
    made = compile_inference(network, order, lanes=lanes, dtype=dtype, threads=threads)
    expected = made.run(batch)
    packed = made.pack(batch)
    batch[:] = np.nan  # they have been copied
    for _ in range(2):  # running them does not change them
        np.testing.assert_array_equal(made.run(packed), expected)


def test_each_network_packs_its_own_inputs() -> None:
    network = random_layered(3, 20, 0.3)
    first, second = compile_inference(network), compile_inference(network)
    with pytest.raises(InputError, match="packed by another compiled network"):
        second.run(first.pack(np.ones((4, 20), np.float32)))
    with pytest.raises(InputError, match="expected"):
        first.pack(np.ones((4, 19), np.float32))


def test_inputs_that_other_runs_read_too_have_rows() -> None:
    network = Network(
        np.array([0, 1, 0, 2]), np.array([2, 2, 3, 3]), 6, inputs=[0, 1, 5], outputs=[3, 5, 4],
        weights=np.array([1.0, 2.0, 3.0, 4.0]), biases=np.array([0, 0, 1, 0, 7.0, 0]), activation="identity",
    )  # fmt: skip
    for lanes, dtype in ((1, "float32"), (64, "float32"), (64, "bf16"), (64, "int8")):
        made = compile_inference(network, lanes=lanes, dtype=dtype)
        np.testing.assert_array_equal(made.run(made.pack(np.array([[1, 2, 5.0], [3, 4, 6]]))), [[27, 5, 7], [57, 6, 7]])


@pytest.mark.parametrize("simd", LEVELS)
@pytest.mark.parametrize("here", [1, 3, 64, 65, 127, 128])
def test_sums_of_int8_come_out_as_products_of_float64(simd: str, here: int) -> None:
    rng = np.random.default_rng(here)
    lanes = np.arange(128)
    place = lanes // 64 * 64 + lanes % 16 // 4 * 16 + lanes % 64 // 16 * 4 + lanes % 4  # as VNNI leaves them
    sums = rng.integers(-(2**31), 2**31, (5, 128), dtype=np.int64).astype(np.int32)
    sums[0, :2] = -(2**31), 2**31 - 1
    scales = rng.random(3) * 1e-3
    out = np.full((3, 200), np.nan, np.float32)
    _read_sums(sums.ctypes.data, np.array([4, 0, 1]) * 512, scales, out[:, 7 : 7 + here], level_number(simd))
    np.testing.assert_array_equal(
        out[:, 7 : 7 + here], (sums[[4, 0, 1]][:, place[:here]] * scales[:, None]).astype("f4")
    )
    assert np.isnan(np.delete(out, range(7, 7 + here), axis=1)).all()
    with pytest.raises(ValueError, match="sizes"):
        _read_sums(sums.ctypes.data, np.zeros(3, np.int64), scales, out[:, ::2], 0)


@pytest.mark.parametrize("simd", LEVELS)
@pytest.mark.parametrize("side_by_side", [True, False])
def test_inputs_become_the_bytes_of_the_definition(simd: str, side_by_side: bool) -> None:
    rng = np.random.default_rng(5)
    n = 40
    batch = (rng.normal(size=(130, n)) * 10.0 ** rng.integers(-3, 3, n)).astype(np.float32)
    batch[0, :6] = [0.5, 1.5, -0.5, np.inf, -np.inf, 3e38]
    scale = rng.random(n).astype(np.float32) + np.float32(0.01)
    scale[:6] = 1
    zero = rng.integers(0, 129, n).astype(np.int32)
    given = np.asfortranarray(batch) if side_by_side else batch
    table = np.zeros((n, 192), np.uint8)
    for first in (0, 64, 128):
        _write_bytes(
            table.ctypes.data + first, np.arange(n) * 192, np.arange(n), given, first, 64, scale.astype(float),
            zero.astype(float), level_number(simd),
        )  # fmt: skip
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(table[:, :130], to_bytes(batch, scale, zero).T)
    assert not table[:, 130:].any()


@given(st.integers(0, 40))
def test_spreading_exchanges_rows_of_one_block(block: int) -> None:
    rows = np.arange(16 * block, 16 * block + 16)
    assert sorted(spread(rows).tolist()) == rows.tolist()
    assert spread(np.array([-1])).tolist() == [-1]


@pytest.mark.parametrize("stride", [16, 32, 64, 128, 256])
def test_spread_rows_of_a_stride_fall_everywhere(stride: int) -> None:
    assert len(set((spread(stride * np.arange(512)) % 16).tolist())) == 16
