"""ONNX's own inference of shapes, asked in a process of its own; and which nodes it is asked about.

It is C++ that trusts its models: a file of 36 bytes can end the process that it runs in, or take all memory.
"""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from traces.base.errors import InputError, brief
from traces.base.memory import max_bytes

MEMORY_BYTES = 512 << 20
"""What inference may take: the types of all tensors, and constants of a few thousand values."""
CPU_S, WAIT_S = 10, 100.0
"""Processor time of one file; how long one answer may take on a machine that is busy otherwise."""
LARGEST = 2**31
"""Whole numbers in attributes are at most this; in Slice of old models they say 'to the end', and are not."""
MOST_AXES = 64
_NAMES = """
Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization
BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu CenterCropPad Clip Col2Im
Compress Concat Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumSum DFT DeformConv DepthToSpace
DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU
Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual
GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity InstanceNormalization
IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul
MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Neg
NonMaxSuppression NonZero Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN
Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT Scatter ScatterElements
ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt
Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Upsample Where Xor
"""
NUMERIC = frozenset(_NAMES.split())
"""Operators on tensors of numbers. Others work on strings, sequences and graphs, draw random numbers, or train."""
_AXES = {"axis", "axes", "perm", "batch_dims", "batch_axis", "time_axis"}


@dataclass(frozen=True)
class Signature:
    least_inputs: int
    most_inputs: int
    most_outputs: int
    attributes: Mapping[str, int]

    @classmethod
    def of(cls, schema: Any) -> Self:
        types = {name: int(attribute.type) for name, attribute in schema.attributes.items()}
        return cls(schema.min_input, schema.max_input, schema.max_output, types)

    def odd(self, node: Any) -> str:
        n_in, n_out = len(node.input), len(node.output)
        if n_out > self.most_outputs or not self.least_inputs <= n_in <= self.most_inputs:
            return f"{n_in} inputs and {n_out} outputs are not what it has"
        for given in node.attribute:
            if self.attributes.get(given.name, given.type) != given.type:
                return f"attribute {given.name!r} is of another type"
            most = MOST_AXES if given.name in _AXES else LARGEST
            numbers = [given.i, *given.ints]
            if node.op_type != "Slice" and not -most <= min(numbers) <= max(numbers) <= most:
                return f"attribute {given.name!r} is {max(numbers, key=abs)}, beyond {most}"
            if given.name == "num_outputs" and given.i != n_out:
                return f"attribute {given.name!r} is {given.i}, {n_out} results are named"
            if not given.s.isascii():
                return f"attribute {given.name!r} is not plain text"
        return ""


class Inference:
    def __init__(self, onnx: Any, path: Path) -> None:
        self.onnx, self.path = onnx, path
        self._process: subprocess.Popen[bytes] | None = None
        self.why = ""

    def __enter__(self) -> Inference:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def types(
        self, nodes: Iterable[Any], types: Mapping[str, Any], values: Iterable[Any], opsets: Any
    ) -> dict[str, Any]:
        """Return name -> type of what nodes make, as far as it follows from what they read.

        nodes: in an order in which they can run. types: name -> type of tensors that they read. values: tensors whose
        values are known. opsets: the model's. Errors count where there is one node (`why`), else what has one stays
        unknown. Raises InputError where inference does not survive the question.
        """
        model = self.onnx.ModelProto(ir_version=10, opset_import=opsets)
        graph = model.graph
        graph.name = "g"
        graph.node.extend(nodes)
        graph.initializer.extend(values)
        for name, type_ in types.items():
            graph.input.add(name=name).type.tensor_type.CopyFrom(type_)
        for name in {name for node in graph.node for name in node.output if name} - types.keys():
            graph.output.add(name=name)
        answer = self._ask(bytes([len(graph.node) == 1]) + model.SerializeToString())
        if answer[0]:
            self.why = brief(ValueError(answer[1:].decode("utf-8", "replace")))
            return {}
        inferred = self.onnx.ModelProto.FromString(answer[1:]).graph
        return {value.name: value.type.tensor_type for value in (*inferred.value_info, *inferred.output)}

    def _ask(self, question: bytes) -> bytes:
        process = self._process = self._process or self._started()
        assert process.stdin is not None and process.stdout is not None
        until = time.monotonic() + WAIT_S
        try:
            process.stdin.write(len(question).to_bytes(8, "little") + question)
            process.stdin.flush()
            size = int.from_bytes(self._read(process, 8, until), "little")
            return self._read(process, size, until)
        except (BrokenPipeError, EOFError):
            code = process.wait()
            reason = f"took more than {CPU_S} s of processor time" if code == -signal.SIGXCPU else f"ended with {code}"
            raise InputError(f"{self.path}: ONNX's shape inference does not survive this model: it {reason}") from None

    def _read(self, process: subprocess.Popen[bytes], count: int, until: float) -> bytes:
        assert process.stdout is not None
        parts, ready = bytearray(), select.poll()
        ready.register(process.stdout, select.POLLIN)
        while len(parts) < count:
            if not ready.poll(1000 * max(0.0, until - time.monotonic())):
                raise InputError(f"{self.path}: ONNX's shape inference has no answer after {WAIT_S:g} s")
            part = process.stdout.raw.read(count - len(parts))  # type: ignore[attr-defined]
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def _started(self) -> subprocess.Popen[bytes]:
        child = Path(__file__).with_name("onnx_child.py")
        extension = self.onnx.onnx_cpp2py_export.__file__
        room = min(MEMORY_BYTES, max_bytes())
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(child), extension, str(room), str(CPU_S)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"{self.path}: no process for shape inference ({error.strerror or error})") from error
