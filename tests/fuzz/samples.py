"""A small valid file of every kind that a reader takes, and how each is read."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import scipy.sparse
import zstandard
from model_files import MLP, make_tflite
from safetensors.numpy import save as save_safetensors

from fuzz.machine_samples import machine_samples
from fuzz.operator_samples import operator_samples
from fuzz.other_samples import Sample, other_samples
from fuzz.weights_samples import weights_samples
from traces.base.archive import read_npy
from traces.networks.network import Network
from traces.readers import graph_challenge, load, native
from traces.readers.scipy_sparse import from_matrices
from traces.trace.build import build_trace
from traces.trace_files import TRACE_WRITERS, export_trace, open_trace


def network() -> Network:
    """Two layers with a batch."""
    rng = np.random.default_rng(1)
    layers = [rng.standard_normal((5, 4)) * (rng.random((5, 4)) < 0.6), rng.standard_normal((3, 5))]
    return from_matrices(layers).with_(batch=rng.random((2, 4)).astype(np.float32))


def samples(folder: Path) -> dict[str, Sample]:
    """Return name -> sample; `folder` is for files on the way."""
    net = network()
    found: dict[str, Sample] = {}

    def add(name: str, file: str, data: bytes, read: Callable[[Path], Any]) -> None:
        found[name] = (file, data, read)

    native.save(net, folder / "n.npz")
    add("network npz", "n.npz", (folder / "n.npz").read_bytes(), load)
    matrix = scipy.sparse.random(6, 5, 0.4, random_state=np.random.default_rng(2))
    for kind in ("csr", "coo"):
        scipy.sparse.save_npz(folder / "m.npz", matrix.asformat(kind))
        add(f"scipy {kind}", "m.npz", (folder / "m.npz").read_bytes(), load)
    entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    lines = "".join(f"{r + 1} {c + 1} {v!r}\n" for r, c, v in entries)
    add("mtx", "m.mtx", f"%%MatrixMarket matrix coordinate real general\n6 5 {matrix.nnz}\n{lines}".encode(), load)
    add("mtx array", "a.mtx", b"%%MatrixMarket matrix array integer general\n2 3\n1\n0\n2\n3\n4\n5\n", load)
    add("tsv", "n6-l1.tsv", lines.replace(" ", "\t").encode(), load)
    add("tsv images", "i.tsv", b"1\t1\t1\n2\t3\t0.5\n", lambda path: graph_challenge.read_images(path, 6))
    tensors = {
        "0.weight": np.ones((3, 4), np.float32),
        "0.bias": np.ones(3, np.float32),
        "c.weight": np.ones((2, 3, 3, 3)),
    }
    add("safetensors", "m.safetensors", save_safetensors(tensors), load)
    kernels = {
        "c1.weight": np.ones((2, 1, 3, 3), np.float32),
        "c1.bias": np.ones(2, np.float32),
        "fc.weight": np.ones((2, 18), np.float32),
    }

    def unrolled(path: Path) -> Any:
        return load(path, image=(6, 6), windows={"c*": {"padding": 1, "pool": 2}})

    add("safetensors convolutions", "m.safetensors", save_safetensors(kernels), unrolled)
    (folder / "k.safetensors").write_bytes(save_safetensors(kernels))
    native.save(unrolled(folder / "k.safetensors"), folder / "k.npz")
    add("network npz with positions", "n.npz", (folder / "k.npz").read_bytes(), load)
    add("network npz, its extras", "n.npz", (folder / "k.npz").read_bytes(), native.read_extras)
    node = {"shape": [4], "bytes": 4}
    nodes = [{"name": "a", **node}, {"name": "b", "op": "RELU", "inputs": ["a"], **node}]
    add("json", "g.json", json.dumps({"nodes": nodes, "outputs": ["b"]}).encode(), load)
    add("tflite", "m.tflite", MLP, load)
    add("tflite network", "m.tflite", MLP, lambda path: load(path, kind="network"))
    add("tflite convolutions", "m.tflite", _tflite_convolutions(), lambda path: load(path, kind="network"))
    add("onnx", "m.onnx", _onnx(), load)
    add("onnx convolutions", "m.onnx", _convolutions(), lambda path: load(path, kind="network"))
    add("onnx network", "m.onnx", _onnx(), lambda path: load(path, kind="network"))
    buffer = io.BytesIO()
    np.save(buffer, np.arange(20))
    add("npy", "o.npy", buffer.getvalue(), read_npy)

    trace = build_trace(net, chunk_accesses=40)
    for name in TRACE_WRITERS:
        export_trace(trace, folder / "t", name)
        data = (folder / "t").read_bytes()
        walk = lambda path, name=name: [len(chunk) for chunk in open_trace(path, name)]  # noqa: E731
        add(f"trace {name}", "t", data, walk)
    found["trace guessed"] = ("t", found["trace dinero"][1], lambda path: [len(chunk) for chunk in open_trace(path)])
    lackey = b"==1== x\nI  04000c30,3\n L 1ffeffe7e8,8\n S 1ffeffe7e0,8\n M 0421c7cc,4\n"
    add("trace lackey", "t", lackey, lambda path: [len(chunk) for chunk in open_trace(path, "lackey")])
    text = found["trace ramulator2"][1]
    for kind, packed in (("gzip", gzip.compress(text)), ("zstd", zstandard.ZstdCompressor().compress(text))):
        add(f"trace {kind}", "t", packed, lambda path: [len(chunk) for chunk in open_trace(path, "ramulator2")])
    return (
        found
        | other_samples(net, folder)
        | machine_samples(folder)
        | operator_samples(folder)
        | weights_samples(folder)
    )


def _onnx() -> bytes:
    make = onnx.helper
    weights = [
        onnx.numpy_helper.from_array(np.ones((4, 3), np.float32), "w"),
        onnx.numpy_helper.from_array(np.ones((2, 4), np.float32), "v"),
    ]
    nodes = [
        make.make_node("Gemm", ["x", "w"], ["h"], transB=1),
        make.make_node("Relu", ["h"], ["r"]),
        make.make_node("Gemm", ["r", "v"], ["y"], transB=1),
    ]
    info = make.make_tensor_value_info
    graph = make.make_graph(
        nodes, "mlp", [info("x", 1, [1, 3])], [info("y", 1, [1, 2])], weights, value_info=[info("h", 1, [1, 4])]
    )
    data: bytes = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)]).SerializeToString()
    return data


def _tflite_convolutions() -> bytes:
    return make_tflite(
        [
            ("CONV_2D", [0, 1, 2], [3]),
            ("DEPTHWISE_CONV_2D", [3, 4, -1], [5]),
            ("RESHAPE", [5], [6]),
            ("FULLY_CONNECTED", [6, 7, -1], [8]),
        ],
        [
            ("x", (1, 4, 4, 1)), ("w", (2, 3, 3, 1)), ("b", (2,)), ("h", (1, 2, 2, 2)), ("d", (1, 1, 1, 2)),
            ("e", (1, 2, 2, 2)), ("f", (1, 8)), ("v", (2, 8)), ("y", (1, 2)),
        ],
        {1: np.ones((2, 3, 3, 1)), 2: [1, 2], 4: [[[[1, 2]]]], 7: np.ones((2, 8))},
    )  # fmt: skip


def _convolutions() -> bytes:
    make, info = onnx.helper, onnx.helper.make_tensor_value_info
    weights = [
        onnx.numpy_helper.from_array(np.ones((2, 1, 3, 3), np.float32), "w"),
        onnx.numpy_helper.from_array(np.ones((2, 8), np.float32), "v"),
    ]
    nodes = [
        make.make_node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1], strides=[1, 1]),
        make.make_node("Relu", ["h"], ["r"]),
        make.make_node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        make.make_node("Flatten", ["p"], ["f"]),
        make.make_node("Gemm", ["f", "v"], ["y"], transB=1),
    ]
    graph = make.make_graph(nodes, "conv", [info("x", 1, [1, 1, 4, 4])], [info("y", 1, [1, 2])], weights)
    data: bytes = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)]).SerializeToString()
    return data


def rezipped(data: bytes, change: Callable[[bytes], bytes], which: int) -> bytes:
    """Return a zip whose member number `which` is changed, with a checksum that fits again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(members):
            archive.writestr(name, change(content) if number == which % len(members) else content)
    return buffer.getvalue()
