"""Small model files for tests, made from scratch."""

from __future__ import annotations

import flatbuffers
import numpy as np
import tflite as schema


def make_tflite(operators, tensors, constants=(), inputs=(0,), outputs=(-1,)) -> bytes:  # type: ignore[no-untyped-def]
    """A small float32 model: operators (builtin, inputs, outputs), tensors (name, shape), constants index to data."""
    constants = dict(constants)
    b = flatbuffers.Builder(1024)

    def vector(start, offsets):  # type: ignore[no-untyped-def]
        start(b, len(offsets))
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    def ints(values):  # type: ignore[no-untyped-def]
        return b.CreateNumpyVector(np.array(values, np.int32))

    data = {i: b.CreateByteVector(np.asarray(value, np.float32).tobytes()) for i, value in constants.items()}
    buffers = []
    for i in [-1, *sorted(constants)]:
        schema.BufferStart(b)
        if i >= 0:
            schema.BufferAddData(b, data[i])
        buffers.append(schema.BufferEnd(b))
    places = {i: k + 1 for k, i in enumerate(sorted(constants))}
    tables = []
    for i, (name, shape) in enumerate(tensors):
        text, sides = b.CreateString(name), ints(shape)
        schema.TensorStart(b)
        schema.TensorAddName(b, text)
        schema.TensorAddShape(b, sides)
        schema.TensorAddBuffer(b, places.get(i, 0))
        tables.append(schema.TensorEnd(b))
    kinds = sorted({op for op, _, _ in operators})
    codes = []
    for kind in kinds:
        schema.OperatorCodeStart(b)
        schema.OperatorCodeAddBuiltinCode(b, getattr(schema.BuiltinOperator, kind))
        codes.append(schema.OperatorCodeEnd(b))
    lines = []
    for kind, given, made in operators:
        took, gave = ints(given), ints(made)
        schema.OperatorStart(b)
        schema.OperatorAddOpcodeIndex(b, kinds.index(kind))
        schema.OperatorAddInputs(b, took)
        schema.OperatorAddOutputs(b, gave)
        lines.append(schema.OperatorEnd(b))
    tables = vector(schema.SubGraphStartTensorsVector, tables)
    lines = vector(schema.SubGraphStartOperatorsVector, lines)
    begin, end = ints(inputs), ints([i % len(tensors) for i in outputs])
    schema.SubGraphStart(b)
    schema.SubGraphAddTensors(b, tables)
    schema.SubGraphAddOperators(b, lines)
    schema.SubGraphAddInputs(b, begin)
    schema.SubGraphAddOutputs(b, end)
    graphs = vector(schema.ModelStartSubgraphsVector, [schema.SubGraphEnd(b)])
    buffers = vector(schema.ModelStartBuffersVector, buffers)
    codes = vector(schema.ModelStartOperatorCodesVector, codes)
    schema.ModelStart(b)
    schema.ModelAddVersion(b, 3)
    schema.ModelAddSubgraphs(b, graphs)
    schema.ModelAddBuffers(b, buffers)
    schema.ModelAddOperatorCodes(b, codes)
    b.Finish(schema.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


BRANCHES = make_tflite(
    [("RELU", [0], [1]), ("RELU", [0], [2]), ("MEAN", [1], [3]), ("MEAN", [2], [4]), ("ADD", [3, 4], [5])],
    [("x", (1, 8)), ("a", (1, 100)), ("b", (1, 100)), ("a1", (1, 1)), ("b1", (1, 1)), ("y", (1, 1))],
)
MLP = make_tflite(
    [("FULLY_CONNECTED", [0, 1, 2], [3]), ("RELU", [3], [4]), ("FULLY_CONNECTED", [4, 5, -1], [6])],
    [("x", (1, 3)), ("w", (2, 3)), ("b", (2,)), ("h", (1, 2)), ("r", (1, 2)), ("v", (4, 2)), ("y", (1, 4))],
    {1: [[1, 2, 3], [4, 5, 6]], 2: [7, 8], 5: [[1, 0], [0, 1], [2, 2], [3, 3]]},
)
