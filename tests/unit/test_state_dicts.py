"""Weights without a model: what is read, what is left, convolutions unrolled over an image, patterns of zeros."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
from safetensors.numpy import save_file

from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.readers import load
from traces.readers.parts.layers import entry_pattern, zero_pattern

pytestmark = pytest.mark.application


def lenet(folder: Path, density: float = 0.5) -> tuple[Path, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    shapes = {"conv1.weight": (3, 1, 3, 3), "conv1.bias": (3,), "bn.running_mean": (3,), "conv2.weight": (4, 3, 2, 2),
              "fc.weight": (5, 16), "fc.bias": (5,)}  # fmt: skip
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    for values in tensors.values():
        if values.ndim > 1:
            values[rng.random(values.shape) > density] = 0
    save_file(tensors, folder / "net.safetensors")
    return folder / "net.safetensors", tensors


WINDOWS = {"conv1*": {"stride": 2}, "conv2.weight": {"padding": 0, "pool": 2}}


def by_hand(t: dict[str, np.ndarray], image: np.ndarray) -> np.ndarray:
    """The forward pass of `lenet` over a 10 x 10 image with SciPy's correlation."""
    padded = np.pad(image, 1)
    one = np.stack([scipy.signal.correlate2d(padded, kernel[0], "valid")[::2, ::2] for kernel in t["conv1.weight"]])
    one = np.maximum(one + t["conv1.bias"][:, None, None], 0)
    two = np.stack(
        [sum(scipy.signal.correlate2d(one[c], kernel[c], "valid") for c in range(3)) for kernel in t["conv2.weight"]]
    )
    pooled = np.maximum(two, 0).reshape(4, 2, 2, 2, 2).mean(axis=(2, 4))
    return t["fc.weight"] @ pooled.reshape(-1) + t["fc.bias"]


def test_convolutions_over_an_image(tmp_path: Path) -> None:
    path, tensors = lenet(tmp_path)
    network = load(path, image=(10, 10), windows=WINDOWS)
    image = np.random.default_rng(1).random((10, 10)).astype(np.float32)
    found = forward(network, image.reshape(1, -1))[0, network.outputs]
    assert np.allclose(found, by_hand(tensors, image), rtol=1e-4, atol=1e-5)
    assert network.positions[network.inputs].tolist()[11] == [0, 1, 1]
    stored = sum(int(np.count_nonzero(tensors[name])) for name in ("conv1.weight", "conv2.weight", "fc.weight"))
    assert int(network.weight_ids.max()) + 1 == stored + 1  # and the mean's quarter
    assert network.notes[:2] == (
        "read 3 of 6 tensors as layers, in order of their names (names=[...], --names: another): conv1.weight, "
        "conv2.weight, fc.weight",
        "left 1 tensors: bn.running_mean [3]",
    )


def test_what_is_left_is_said(tmp_path: Path) -> None:
    path, _ = lenet(tmp_path)
    network = load(path)
    assert network.n_connections > 0 and network.notes[0] == "read 1 of 6 tensors as layers: fc.weight"
    assert "conv1.weight [3, 1, 3, 3]" in network.notes[1] and "image=(height, width)" in network.notes[2]
    chosen = load(path, image=(5, 5), names=["conv1.weight"])
    assert chosen.notes[0] == "read 1 of 6 tensors as layers: conv1.weight"
    assert len(chosen.inputs) == 25 and len(chosen.outputs) == 75


def test_an_order_of_names_that_nobody_chose_is_said(tmp_path: Path) -> None:
    """A transformer's down_proj comes before its up_proj by name, and both fit that way, too."""
    from safetensors.numpy import save_file

    path, rng = tmp_path / "ffn.safetensors", np.random.default_rng(0)
    up, down = rng.random((8, 2), np.float32), rng.random((2, 8), np.float32)
    save_file({"mlp.up_proj.weight": up, "mlp.down_proj.weight": down}, path)
    assert "in order of their names (names=[...], --names: another): mlp.down_proj.weight, mlp" in load(path).notes[0]
    chosen = load(path, names=["*up_proj*", "*down_proj*"])
    assert len(chosen.inputs) == 2 and "in order of their names" not in chosen.notes[0]


def test_a_pattern_means_the_layers_it_matches(tmp_path: Path) -> None:
    """`fc*` matches the bias of a layer too, which goes with its weight."""
    path, tensors = lenet(tmp_path)
    network = load(path, names=["fc*"])
    assert network.n_connections == np.count_nonzero(tensors["fc.weight"])
    assert network.biases is not None and network.biases[-5:].tolist() == tensors["fc.bias"].tolist()
    with pytest.raises(InputError, match=r"tensor 'fc.bias' has shape \[5\]"):
        load(path, names=["fc.bias"])
    with pytest.raises(InputError, match=r"tensor 'bn.running_mean' has shape \[3\]"):
        load(path, names=["bn*"])


def test_a_mean_between_is_inferred_and_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weights = {
        "a.weight": rng.random((4, 2, 3, 3)).astype(np.float32),
        "b.weight": rng.random((3, 4)).astype(np.float32),
    }
    save_file(weights, tmp_path / "m.safetensors")
    assert "b.weight: the mean over the whole image" in load(tmp_path / "m.safetensors", image=(6, 6)).notes[-1]
    weights["b.weight"] = rng.random((3, 36)).astype(np.float32)
    save_file(weights, tmp_path / "m.safetensors")
    assert "a mean over windows of 2 x 2" in load(tmp_path / "m.safetensors", image=(6, 6)).notes[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(image=(10,)), r"an image has a height and a width .* not \[10\]"),
        (dict(image=(0, 4)), "an image has a height and a width"),
        (dict(image=(3, 10, 10)), r"tensor 'conv1.weight' of shape|do not fit|takes 16 inputs"),
        (dict(image=(10, 10)), r"tensor 'fc.weight' takes 16 inputs, but 4 x 9 x 9 come: give strides or pools"),
        (
            dict(image=(10, 10), windows={"conv1*": {"strides": 2}}),
            "a convolution has no 'strides' .did you mean 'stride'",
        ),
        (
            dict(image=(10, 10), windows={"conv1*": {"stride": 0}}),
            "stride of a convolution must be a whole number from 1",
        ),
        (dict(image=(10, 10), windows={"cnv1.weight": {"stride": 2}}), "no tensor 'cnv1.weight' .did you mean"),
        (dict(windows=WINDOWS), r"windows need the size of the input image"),
        (dict(names=["conv1.weight"]), r"a layer has two dimensions, a convolution four and an image"),
        (dict(image=(10, 10), names=["fc.weight", "conv1.weight"]), "takes 16 inputs|behind a fully connected"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, options: dict, message: str) -> None:
    path, _ = lenet(tmp_path)
    with pytest.raises(InputError, match=message):
        load(path, **options)


def test_an_image_is_for_weights_without_a_model(tmp_path: Path) -> None:
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n")
    with pytest.raises(InputError, match=r"image and windows are for weights without a model, .safetensors files"):
        load(tmp_path / "m.mtx", image=(4, 4))


def test_patterns_of_zeros() -> None:
    rng = np.random.default_rng(4)
    dense = rng.random((64, 64)) + 0.1
    two_four = dense.reshape(-1, 4).copy()
    two_four[np.arange(len(two_four))[:, None], np.argsort(rng.random((len(two_four), 4)), axis=1)[:, :2]] = 0
    assert zero_pattern(two_four.reshape(64, 64)).startswith("2:4 sparse")
    convolution = two_four.reshape(8, 8, 8, 8).transpose(0, 3, 1, 2)  # groups along the input channels
    assert zero_pattern(convolution).startswith("2:4 sparse")
    blocks = np.kron(rng.random((8, 8)) < 0.3, np.ones((8, 8)))
    assert zero_pattern(dense * blocks).startswith("block-sparse: blocks of 8 x 8")
    assert zero_pattern(dense * np.kron(rng.random((64, 4)) < 0.3, np.ones((1, 16)))).startswith(
        "block-sparse: blocks of 1 x 16"
    )
    assert zero_pattern(dense) == "" == zero_pattern(dense * (rng.random((64, 64)) < 0.3))


def test_patterns_from_entries_are_those_of_the_dense_matrix() -> None:
    rng = np.random.default_rng(5)
    told = set()
    for tall, wide in ((1, 1), (4, 4), (1, 8), (16, 1), (8, 8)):
        for density in (0, 0.01, 0.05, 0.125, 0.3, 0.9, 1):
            for filled in (0.85, 0.95, 1):
                held = np.kron(rng.random((64 // tall, 96 // wide)) < density, np.ones((tall, wide)))
                weights = held * (rng.random(held.shape) < filled)
                assert entry_pattern(*np.nonzero(weights), weights.shape) == zero_pattern(weights)
                told.add(zero_pattern(weights)[:28])
    assert len(told) > 3


def test_a_layer_of_few_entries_is_never_made_dense() -> None:
    tracemalloc.start()
    assert entry_pattern(np.array([7]), np.array([9]), (4096, 4096)) == ""
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096 / 2


def test_every_file_of_matrices_says_its_pattern(tmp_path: Path) -> None:
    import scipy.io
    import scipy.sparse
    from safetensors.numpy import save_file

    dense = np.tile([1.0, 0.0, 0.0, 2.0], (16, 4)).astype(np.float32)
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_array(dense))
    scipy.io.mmwrite(tmp_path / "b.mtx", scipy.sparse.csr_array(dense))
    save_file({"c": dense}, tmp_path / "c.safetensors")
    for name in ("a.npz", "b.mtx", "c.safetensors"):
        (said,) = [note for note in load(tmp_path / name).notes if "sparse" in note]
        assert said.endswith("is 2:4 sparse: at most 2 of 4 consecutive inputs are not zero"), said
        turned = load(tmp_path / name, orientation="rows-are-inputs")
        assert not [note for note in turned.notes if "2:4" in note], "its groups run along the outputs"
    many = load([tmp_path / "a.npz", tmp_path / "a.npz"])
    assert sum("2:4" in note for note in many.notes) == 2


def _pruned() -> tuple[np.ndarray, np.ndarray]:
    """A kernel [8, 8, 3, 3] whose groups of four inputs hold two weights, and a matrix 16 x 32 of blocks of 8 x 8."""
    rng = np.random.default_rng(6)
    groups = rng.random((8, 3, 3, 2, 4)).astype(np.float32) + 0.1
    groups[rng.permuted(np.broadcast_to(np.arange(4), groups.shape), axis=-1) < 2] = 0
    kernel = groups.reshape(8, 3, 3, 8).transpose(0, 3, 1, 2)  # along the input channels
    blocks = np.kron(np.array([[1, 0, 0, 1], [0, 1, 0, 0]]), np.ones((8, 8)))
    return np.ascontiguousarray(kernel), (rng.random((16, 32)) * blocks + blocks).astype(np.float32)


def _onnx(path: Path, convolution: bool) -> None:
    onnx = pytest.importorskip("onnx")
    kernel, blocks = _pruned()
    h, matrix = onnx.helper, kernel.transpose(0, 2, 3, 1).reshape(-1, 16)[:32]
    nodes = [h.make_node("Conv", ["x", "k"], ["c"]), h.make_node("Relu", ["c"], ["r"])]
    nodes += [h.make_node("Flatten", ["r"], ["f"]), h.make_node("Gemm", ["f", "m"], ["y"], transB=1)]
    if not convolution:
        nodes = [h.make_node("Gemm", ["x", "k"], ["c"], transB=1), h.make_node("Relu", ["c"], ["r"])]
        nodes.append(h.make_node("Gemm", ["r", "m"], ["y"], transB=1))
    first = {"k": kernel if convolution else matrix, "m": blocks}
    constants = [onnx.numpy_helper.from_array(np.ascontiguousarray(each), name) for name, each in first.items()]
    given = h.make_tensor_value_info("x", 1, [1, 8, 4, 4] if convolution else [1, 16])
    graph = h.make_graph(nodes, "m", [given], [h.make_tensor_value_info("y", 1, [1, 16])], constants)
    path.write_bytes(h.make_model(graph).SerializeToString())


def _tflite(path: Path, convolution: bool) -> None:
    pytest.importorskip("tflite")
    from model_files import make_tflite

    kernel, blocks = _pruned()
    stored = np.ascontiguousarray(kernel.transpose(0, 2, 3, 1))  # OHWI
    if convolution:
        tensors = [("x", (1, 4, 4, 8)), ("k", (8, 3, 3, 8)), ("c", (1, 2, 2, 8)), ("m", (16, 32)), ("y", (1, 16))]
        options = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 1,
                   "FusedActivationFunction": 1}  # fmt: skip
        operators = [("CONV_2D", [0, 1], [2], "Conv2DOptions", options), ("FULLY_CONNECTED", [2, 3], [4])]
        data = {1: stored, 3: blocks}
    else:
        tensors = [("x", (1, 16)), ("k", (32, 16)), ("c", (1, 32)), ("m", (16, 32)), ("y", (1, 16))]
        relu = {"FusedActivationFunction": 1}
        operators = [("FULLY_CONNECTED", [0, 1], [2], "FullyConnectedOptions", relu), ("FULLY_CONNECTED", [2, 3], [4])]
        data = {1: stored.reshape(-1, 16)[:32], 3: blocks}
    path.write_bytes(make_tflite(operators, tensors, data, outputs=(4,)))


@pytest.mark.parametrize("convolution", [True, False], ids=["unrolled", "chain"])
@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_models_say_their_patterns(tmp_path: Path, suffix: str, convolution: bool) -> None:
    path = tmp_path / f"m.{suffix}"
    {"onnx": _onnx, "tflite": _tflite}[suffix](path, convolution)
    network = load(path, kind="network")
    first, second = (note for note in network.notes if "sparse" in note)
    assert first.endswith("is 2:4 sparse: at most 2 of 4 consecutive inputs are not zero"), network.notes
    assert second.endswith("is block-sparse: blocks of 8 x 8, 38% of them kept"), network.notes
    assert str(path) in first and "operator '" in first


def test_the_command_line_says_what_was_read(tmp_path: Path) -> None:
    path, _ = lenet(tmp_path)
    command = [sys.executable, "-m", "edgewatt", "order", str(path), "-M", "20", "-m", "two-optimal", "--image=10x10",
               "--window", "conv1*:stride=2", "--window", "conv2.weight:padding=0,pool=2", "--json", "-"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert "left 1 tensors: bn.running_mean [3]" in done.stderr and "stored weights, " in done.stderr
    done = subprocess.run([*command[:5], "--image", "ten"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2 and "write height x width, as 32x32" in done.stderr.replace("\n", " ")
