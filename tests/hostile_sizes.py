"""Small files that ask for more memory than the bound, for every reader, and the process that reads them.

``python -m tests.hostile_sizes READER FOLDER`` reads each in a copy of itself whose address space is what the
interpreter takes and twice the bound, and prints a line a file.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

BOUND = 64 << 20
Made = Iterator[tuple[str, bytes]]


def one(made: Made, what: str) -> bytes:
    """Return the file of that name."""
    return next(data for name, data in made if name == what)


def npz(kind: int = zipfile.ZIP_DEFLATED, *, claims: int | None = None, **arrays: Any) -> bytes:
    """An npz. claims: the size that its directory says of each member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
    data = buffer.getvalue()
    if claims is not None:
        at = data.index(b"PK\1\2")
        while data[at : at + 4] == b"PK\1\2":
            data = data[: at + 24] + struct.pack("<I", claims) + data[at + 28 :]
            at += 46 + sum(struct.unpack("<HHH", data[at + 28 : at + 34]))
    return data


def npy(header: str, data: bytes = b"") -> bytes:
    head = header.encode().ljust(118 - 10 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def scipy_npz() -> Made:
    few = dict(data=np.ones(2, np.float32), row=np.array([0, 1]), col=np.array([0, 1]))
    for shape in ([5 * 10**8, 4], [4, 5 * 10**8], [2**40, 4], [4, 2**40], [2**30, 2**30], [3 * 10**6, 3]):
        yield f"coo {shape}", npz(format=b"coo", shape=shape, **few)
    for n in (2 * 10**6, 8 * 10**6, 30 * 10**6):
        ids = np.zeros(n, np.uint8)
        yield f"coo {n} entries", npz(format=b"coo", shape=[4, 4], data=ids, row=ids, col=ids)
        yield f"csr {n} entries", npz(format=b"csr", shape=[1, 4], data=ids, indices=ids, indptr=np.array([0, n]))
        rows = np.zeros(n + 1, np.uint8)
        yield f"csr {n} rows", npz(format=b"csr", shape=[n, 4], data=rows[:0], indices=rows[:0], indptr=rows)
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        much = np.zeros(400_000_000, np.uint8) if kind == zipfile.ZIP_BZIP2 else np.zeros(200_000_000, np.uint8)
        yield f"packed {kind}", npz(kind, claims=1000, format=b"csr", shape=[1, 4], data=much)
    yield "a directory that says little", npz(claims=1000, format=b"csr", shape=[1, 4], data=np.zeros(10**8, np.uint8))
    yield "a long name of its format", npz(format=np.array("csr" * 10**7), shape=[1, 4], data=few["data"])
    yield "a long shape", npz(format=b"csr", shape=np.zeros(5 * 10**7, np.uint8), data=few["data"])


def numpy() -> Made:
    for side in (2000, 4000, 7000, 20000):
        for kind in (np.uint8, np.bool_, np.float16, np.int8):
            yield f"{side} {kind.__name__}", npz(w=np.ones((side, side // 2), kind))
    yield "many", npz(**{f"w{k}": np.ones((1000, 1000), np.uint8) for k in range(60)})
    yield "shape", npz(w=np.zeros((10**9, 0), np.uint8))
    for shape in ("(99999999999, 99999999)", "(4000000000, 0)"):
        yield f"npy {shape}", npy(f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}")


def native() -> Made:
    good: dict[str, Any] = dict(
        edgewatt_network=np.array(1), sources=np.array([0]), targets=np.array([1]), n_neurons=np.array(2),
        inputs=np.array([0]), outputs=np.array([1]), activation=np.array("relu"), name=np.array("n"),
    )  # fmt: skip
    for n in (2**24, 2**28, 2**31 - 1, 2**62):
        yield f"{n} neurons", npz(**good | {"n_neurons": np.array(n)})
    for name in ("sources", "targets", "inputs", "outputs", "weights", "biases", "layer", "weight_ids"):
        for n in (10**7, 6 * 10**7):
            yield f"{name} {n}", npz(**good | {name: np.zeros(n, np.uint8)})
    yield "batch", npz(**good | {"batch": np.zeros((6 * 10**7, 1), np.int8)})
    yield "positions", npz(**good | {"positions": np.zeros((2 * 10**7, 3), np.int8)})


def matrix_market() -> Made:
    head = b"%%MatrixMarket matrix coordinate "
    for sizes in (b"500000000 4 1", b"4 500000000 1", b"1099511627776 4 1", b"3000000 3000000 1", b"4 4 99999999999"):
        for field in (b"real general\n", b"pattern general\n"):
            yield f"{sizes!r} {field!r}", head + field + sizes + b"\n1 1 1\n"
    for n in (10**6, 1_200_000, 1_500_000):
        yield f"{n} lines", head + b"pattern general\n1 1 %d\n" % n + b"1 1\n" * n
        yield f"{n} mirrored", head + b"pattern symmetric\n2 2 %d\n" % n + b"2 1\n" * n
        yield f"{n} blank", head + b"pattern general\n1 1 1\n" + b"\n" * n * 10
    yield "dense", b"%%MatrixMarket matrix array real general\n4000 4000\n" + b"1\n" * 4000 * 4000
    yield "dense zeros", b"%%MatrixMarket matrix array real general\n3000 3000\n" + b"0\n" * 3000 * 3000
    yield "one long line", head + b"real general\n1 1 1\n" + b"1" * 10**8


def tsv() -> Made:
    for last in (10**7, 10**8, 2 * 10**9, 2**40, 2**62):
        yield f"row {last}", b"%d\t1\t1\n" % last
        yield f"column {last}", b"1\t%d\t1\n" % last
    for n in (10**6, 1_200_000, 1_500_000, 2 * 10**6, 3 * 10**6):
        yield f"{n} lines", b"1\t1\t1\n" * n
    for n in (10**7, 2 * 10**7, 3 * 10**7):
        yield f"{n} spaces", b"1\t1\t1\n" + b" " * n
        yield f"{n} blank", b"1\t1\t1\n" + b"\n" * n


def safetensors(tensors: dict[str, tuple[str, list[int]]], data: int) -> bytes:
    at, header = 0, {}
    sizes = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8}
    for name, (kind, shape) in tensors.items():
        n = int(np.prod(shape, dtype=object)) * sizes[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"\x01" * data


def safetensors_files() -> Made:
    for side in (1500, 3000, 5000, 7000):
        for kind in ("U8", "F8_E4M3", "F16", "BF16"):
            yield f"{kind} {side}", safetensors({"w": (kind, [side, side])}, side * side * (1 + (kind[-2:] == "16")))
    yield "many", safetensors({f"w{k}": ("U8", [1000, 1000]) for k in range(60)}, 60 * 10**6)
    yield "many names", safetensors({f"w{k}": ("U8", [0, 1]) for k in range(200_000)}, 0)
    yield "columns", safetensors({"w": ("F32", [1, 2**24])}, 2**26)
    yield "rows", safetensors({"w": ("F32", [2**24, 1])}, 2**26)
    yield "nothing wide", safetensors({"w": ("F32", [2**62, 0])}, 0)
    text = b'{"w": ' + b"[" * 10**7 + b"}"
    yield "nested", struct.pack("<Q", len(text)) + text
    text = b'{"w": [' + b"{}," * 10**7 + b"{}]}"
    yield "lists", struct.pack("<Q", len(text)) + text


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx() -> Made:
    from onnx import TensorProto, helper

    def model(*graph: bytes) -> bytes:
        return field(1, 8) + field(7, b"".join(graph)) + field(8, field(2, 17))

    def node(kind: str, given: list[str], made: str, **more: Any) -> bytes:
        return field(1, helper.make_node(kind, given, [made], **more).SerializeToString())

    def info(number: int, name: str, shape: tuple[int, ...]) -> bytes:
        return field(number, helper.make_tensor_value_info(name, TensorProto.FLOAT, shape).SerializeToString())

    def ints(name: str, values: list[int]) -> bytes:
        return field(5, helper.make_tensor(name, TensorProto.INT64, (len(values),), values).SerializeToString())

    ends = info(11, "x", (1, 4)) + info(12, "y", (1, 4)), node("Relu", ["x"], "y")
    for n in (10**6, 1_500_000):
        yield f"{n} nodes", model(*ends, field(1, b"") * n)
        yield f"{n} values", model(*ends, field(13, b"") * n)
        yield f"{n} constants", model(*ends, field(5, b"") * n)
        yield f"{n} inputs", model(*ends, field(1, field(1, b"") * n))
        yield f"{n} attributes", model(*ends, field(1, field(5, b"") * n))
        for name, number, kind in (("int64", 7, 7), ("int32", 5, 6), ("float", 4, 1)):
            stored = b"\1" * (4 * n)
            length = n if kind == 1 else 4 * n
            tensor = field(1, length) + field(2, kind) + field(number, stored) + field(8, b"c")
            yield f"{n} {name}", model(*ends, field(5, tensor), node("Neg", ["c"], "d"))
    yield "strings", model(*ends, field(5, field(1, 9 * 10**6) + field(2, 8) + field(6, b"") * 9 * 10**6))
    yield (
        "raw",
        model(*ends, field(5, field(1, 5 * 10**7) + field(2, 3) + field(8, b"c") + field(9, b"\1" * 5 * 10**7))),
    )
    for shape in ([2**40], [2**20, 2**20], [10**8], [3 * 10**7]):
        yield f"filled {shape}", model(*ends, ints("s", shape), node("ConstantOfShape", ["s"], "c"))
        yield (
            f"tiled {shape}",
            model(*ends, ints("s", shape), ints("a", [1] * len(shape)), node("Tile", ["a", "s"], "c")),
        )


def tflite() -> Made:
    import flatbuffers
    import tflite as schema

    def model(n_tensors: int, name: int, sides: int, n_inputs: int = 1, stored: int = 0, kind: int = 3) -> bytes:
        """Tensors that share one name, one shape and one buffer, which has bytes of a kind (3: uint8, 17: int4)."""
        b = flatbuffers.Builder(1024)
        text = b.CreateString("n" * name)
        data = b.CreateNumpyVector(np.zeros(stored, np.uint8)) if stored else 0
        shape = b.CreateNumpyVector(np.array([stored * (1 + (kind == 17))] if stored else [1] * sides, np.int32))
        scale = b.CreateNumpyVector(np.ones(sides, np.float32))
        schema.QuantizationParametersStart(b)
        schema.QuantizationParametersAddScale(b, scale)
        quantization = schema.QuantizationParametersEnd(b)
        schema.TensorStart(b)
        if stored:
            schema.TensorAddType(b, kind)
        for add, value in (("Name", text), ("Shape", shape), ("Quantization", quantization)):
            getattr(schema, f"TensorAdd{add}")(b, value)
        tensor = schema.TensorEnd(b)
        schema.SubGraphStartTensorsVector(b, n_tensors)
        for _ in range(n_tensors):
            b.PrependUOffsetTRelative(tensor)
        tensors = b.EndVector()
        inputs = b.CreateNumpyVector(np.arange(n_inputs, dtype=np.int32))
        schema.SubGraphStart(b)
        schema.SubGraphAddTensors(b, tensors)
        schema.SubGraphAddInputs(b, inputs)
        graph = schema.SubGraphEnd(b)
        schema.ModelStartSubgraphsVector(b, 1)
        b.PrependUOffsetTRelative(graph)
        graphs = b.EndVector()
        schema.BufferStart(b)
        if stored:
            schema.BufferAddData(b, data)
        buffer = schema.BufferEnd(b)
        schema.ModelStartBuffersVector(b, 1)
        b.PrependUOffsetTRelative(buffer)
        buffers = b.EndVector()
        schema.ModelStart(b)
        schema.ModelAddSubgraphs(b, graphs)
        schema.ModelAddBuffers(b, buffers)
        b.Finish(schema.ModelEnd(b), b"TFL3")
        return bytes(b.Output())

    for n in (12_000, 100_000, 300_000, 1_000_000):
        for name, sides in ((1, 1), (60_000, 1), (1, 10_000), (200, 4), (1000, 1000)):
            yield f"{n} tensors, {name} characters, {sides} sides", model(n, name, sides)
    yield "inputs", model(100_000, 1, 1, 100_000)
    for kind in (3, 17):
        yield f"3000 constants of one buffer, type {kind}", model(3000, 1, 1, stored=100_000, kind=kind)


def opgraph() -> Made:
    def nodes(n_writers: int, n_readers: int) -> bytes:
        some = [{"name": f"w{k}", "shape": [1], "bytes": 1, "buffer": "b"} for k in range(n_writers)]
        some += [{"name": f"r{k}", "shape": [1], "bytes": 1, "inputs": ["w0"]} for k in range(n_readers)]
        return json.dumps({"nodes": some, "outputs": ["r0"]}).encode()

    for n in (2000, 4000, 8000, 16000):
        yield f"{n} writers and readers", nodes(n, n)
    start = b'{"outputs": ["a"], "nodes": ['
    node = b'{"name": "a", "bytes": 1, "shape": [%b]}]}'
    for n in (10**6, 3 * 10**6, 10**7):
        for what in (b"1,", b"[],", b"{},", b'"a",', b"0.5,"):
            yield f"{n} {what!r}", start + node % (what * n + b"1")
    yield "a long number", start + node % (b"9" * 10**7)
    yield "a long name", start + b'{"name": "' + b"a" * 10**8 + b'", "bytes": 1, "shape": [1]}]}'
    yield "nested", start + b"[" * 10**7


def traces() -> Made:
    comments = b"# " + b"x" * 60000 + b"\n"
    line = b"0 0x10 1\n"
    for n in (1000, 3000):
        text = comments * n
        for name, pack in (("gz", gzip.compress),):
            yield f"{n} comments {name}", pack(text)
    zeros = bytes(300_000_000)
    for name, pack in (("gz", gzip.compress),):
        yield f"zeros {name}", pack(zeros)
        yield f"lines {name}", pack(line * 10**6)
    yield "long lines", (b"0 " + b"1" * 65000 + b" 1\n") * 3000
    yield "blank lines", b"\n" * 3 * 10**7
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        for n in (10**8, 2 * 10**8):
            yield f"npz {kind} {n}", npz(kind, claims=1000, **{"meta.json": np.zeros(n, np.uint8)})
    yield "npz", npz(**{"meta.json": np.zeros(10**8, np.uint8)})
    yield "npz that says little", npz(claims=1000, **{"meta.json": np.zeros(10**8, np.uint8)})


def trace_lines(start: bytes, line: bytes) -> Made:
    """Traces of many lines, of none that ends, and packed."""
    for n in (10**5, 3 * 10**5):
        yield f"{n} lines", start + line * n
        yield f"{n} lines gz", gzip.compress(start + line * n, 1)
        yield f"{n} lines, then none", start + line * n + b"x" * 10**6
    yield "blank lines", start + b"\n" * 10**6
    yield "blank lines gz", gzip.compress(start + b"\n" * 10**6, 1)
    for what in (b" ", b"#", line[:1], b"\0", b"9", b"x"):
        yield f"a long line of {what!r}", start + what * 10**8
        yield f"a long line of {what!r} gz", gzip.compress(start + what * 10**8, 1)


def gguf() -> Made:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    def model(tensors: int, values: int, body: bytes) -> bytes:
        return b"GGUF" + struct.pack("<IQQ", 3, tensors, values) + body

    def tensor(name: bytes, *shape: int) -> bytes:
        return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 24, 0)

    for n in (10**6, 1_500_000):
        for key in (b"%07d", b"a.%07d", b"%07d.expert_count"):
            keys = b"".join(text(key % k) + struct.pack("<IB", 0, 1) for k in range(n))
            yield f"{n} keys {key!r}", model(0, n, keys)
        yield f"{n} tensors", model(n, 0, b"".join(tensor(b"%07d" % k) for k in range(n)))
        yield (
            f"{n // 20} tensors of 8 dimensions",
            model(n // 20, 0, b"".join(tensor(b"%07d" % k, *[2**63] * 8) for k in range(n // 20))),
        )
    for n in (4096, 4097, 10**7):
        numbers = struct.pack("<IIQ", 9, 11, n) + bytes(8 * n)
        yield f"arrays of {n}", model(0, 20, b"".join(text(b"%d.expert_count" % k) + numbers for k in range(20)))
    smile = "\U0001f600".encode()
    for n in (2**10, 2**24 - 4):
        yield (
            f"texts of {n}",
            model(
                0,
                20,
                b"".join(
                    text(b"%d.expert_count" % k) + struct.pack("<I", 8) + text(smile + b"a" * n) for k in range(20)
                ),
            ),
        )
        yield f"names of {n}", model(20, 0, b"".join(tensor(smile + b"%d" % k + b"a" * n) for k in range(20)))
    for n in (2**40, 2**63, 2**64 - 1):
        yield f"claims {n} tensors", model(n, 0, b"")
        yield f"claims {n} values", model(0, n, b"")
        yield f"claims a text of {n}", model(0, 1, struct.pack("<Q", n))


def yaml(start: bytes) -> Made:
    for n in (10**5, 10**6, 3 * 10**6):
        for what in (b"[],", b"1,", b"{},", b"a,", b"*a,", b"!t a,"):
            yield f"{n} {what!r}", b"a: &a [1]\nb: [" + what * n + b"1]\n"
        yield f"{n} keys", b"".join(b"k%d: 1\n" % k for k in range(min(n, 10**6)))
    for n in (10**6, 10**8):
        for what in (b"9", b"a", b"[", b"{a: ", b"- ", b"#", b" ", b"\n", b"&a "):
            yield f"{what!r} x {n}", start + what * (n // len(what))
    laughs = b"a0: &a0 [1, 1]\n"
    for k in range(1, 30):
        laughs += b"a%d: &a%d [*a%d, *a%d]\n" % (k, k, k - 1, k - 1)
    yield "laughs", laughs


def scalesim() -> Made:
    for rows, width in ((10**6, 4), (3 * 10**6, 4), (10, 10**6), (1, 10**7), (10**5, 100), (10**7, 2), (10**4, 1000)):
        for word in (b"-1", b"1", b"0.0"):
            yield (
                f"{rows} x {width} {word!r}",
                gzip.compress((b",".join([b"0"] + [word] * (width - 1)) + b"\n") * rows, 1),
            )


def words(kind: str) -> Made:
    """Lists of numbers as text and tables: orders, buffers."""
    table = b"id,lower,upper,size\n"
    heads = {
        "order": [b"0\n", b"0 ", b"00000\n", b"\n", b"9" * 50],
        "buffers": [table + b"a,0,1,1\n", table + b",,,\n", b"\n", b"id\n" + b"a" * 99, b",\n"],
    }  # fmt: skip
    for word in heads[kind]:
        for n in (10**6, 3 * 10**6, 10**7, 4 * 10**7):
            yield f"{word!r} x {n}", word[: len(word) // 2] + word * (n // max(1, len(word) // 4))


READERS: dict[str, tuple[str, Callable[[], Made]]] = {
    "scipy": ("m.npz", scipy_npz), "matrix": ("m.npz", scipy_npz), "numpy": ("m.npz", numpy),
    "native": ("n.npz", native), "matrix-market": ("m.mtx", matrix_market), "tsv": ("m.tsv", tsv),
    "safetensors": ("m.safetensors", safetensors_files), "weights": ("m.safetensors", safetensors_files),
    "onnx": ("m.onnx", onnx), "tflite": ("m.tflite", tflite), "opgraph": ("g.json", opgraph), "traces": ("t", traces),
    "lackey": ("t", partial(trace_lines, b"==1== Lackey\n", b" L 04222c,4\n")),
    "dinero": ("t", partial(trace_lines, b"", b"r 4222c 4\n")),
    "dramsim3": ("t", partial(trace_lines, b"", b"0x4222c0 READ 1\n")),
    "dramsys": ("t", partial(trace_lines, b"", b"1:\tread\t0x40\n")),
    "ramulator2": ("t", partial(trace_lines, b"", b"LD 4222c0\n")),
    "libcachesim": ("t", partial(trace_lines, b"", struct.pack("<IQIq", 1, 64, 4, -1))),
    "gguf": ("m.gguf", gguf), "config": ("config.json", opgraph), "part": ("p.yaml", partial(yaml, b"part: {name: ")),
    "network-source": ("n.yaml", partial(yaml, b"base: {network: {file: ")),
    "scalesim": ("layer0/IFMAP_DRAM_TRACE.csv.gz", scalesim), "order": ("o.txt", partial(words, "order")),
    "buffers": ("b.csv", partial(words, "buffers")),
}  # fmt: skip


TEXT_TRACES = ("lackey", "dinero", "dramsim3", "dramsys", "ramulator2", "libcachesim")


def reading(reader: str) -> Callable[[Path], Any]:
    """Return what reads a file, with all that it imports loaded."""
    import scipy.sparse  # noqa: F401

    import edgewatt as ew
    from edgewatt.runs.plan import load_sweep
    from hwmodel.dram.engine import load_part
    from reorder.edges.methods.given import read_order
    from reorder.operators.arena.files import read_buffers
    from reorder.tuples.files import read_matrix
    from traces.accelerators.scalesim import read_run
    from traces.checkpoints import plan_token, read_checkpoint
    from traces.readers import NETWORK_READERS
    from traces.readers.parts.weights import ModelWeights
    from traces.trace_files import TRACE_READERS, open_trace

    NETWORK_READERS.loadable(), TRACE_READERS.loadable()
    if reader in ("onnx", "tflite"):
        __import__(reader)
    if reader == "onnx":
        import onnx.reference  # noqa: F401

    def weights(path: Path) -> Any:
        found = ModelWeights(path)
        return [read_matrix(path, names=[name]) for name in found.names()]

    def run(path: Path) -> Any:
        folder = path.parent.parent
        (folder / "r.cfg").write_text("[architecture_presets]\nIfmapOffset=0\nFilterOffset=0\nOfmapOffset=0\n")
        return read_run(folder, {f"layer0_{name}": np.zeros((4, 4), np.uint8) for name in ("ifmap", "filter", "ofmap")})

    def traced(path: Path) -> Any:
        return sum(1 for _ in open_trace(path, reader))

    def token(path: Path) -> Any:
        if reader == "config":
            (path.parent / "m.safetensors").write_bytes(safetensors({"embed_tokens": ("U8", [4, 4])}, 16))
        return plan_token(read_checkpoint(path.parent))

    def schedule(path: Path) -> Any:
        graph = ew.load(path)
        return graph.predecessors, graph.successors

    return {
        "matrix": read_matrix, "weights": weights, "traces": open_trace, "scalesim": run, "order": read_order,
        "buffers": read_buffers, "opgraph": schedule, "gguf": token, "config": token, "part": load_part,
        "network-source": load_sweep, **dict.fromkeys(TEXT_TRACES, traced),
    }.get(reader, ew.load)  # fmt: skip


def main() -> None:
    """Print what became of each file: refused, read, or what it raised."""
    reader, folder = sys.argv[1], Path(sys.argv[2])
    os.environ["EDGEWATT_MAX_BYTES"] = str(BOUND)
    read = reading(reader)
    from traces.base.errors import InputError

    name, makers = READERS[reader]
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    for what, data in makers():
        path.write_bytes(data)
        del data
        child = os.fork()
        if child == 0:
            with open("/proc/self/statm") as stream:
                limit = int(stream.read().split()[0]) * resource.getpagesize() + 2 * BOUND
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            try:
                read(path)
                said = "read"
            except InputError as error:
                said = (
                    "MemoryError told" if isinstance(error.__context__, MemoryError) else f"refused {str(error)[-150:]}"
                )
            except BaseException as error:
                said = f"{type(error).__name__} {error}"
            print(f"{reader} {what}: {' '.join(said.split())}", flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"{reader} {what}: ended with {status}", flush=True)


if __name__ == "__main__":
    main()
