"""Small model files for tests, made from scratch."""

from __future__ import annotations

import flatbuffers
import numpy as np
import tflite as schema


def make_tflite(operators, tensors, constants=(), inputs=(0,), outputs=(-1,)) -> bytes:  # type: ignore[no-untyped-def]
    """A small model: operators (builtin, inputs, outputs[, options, their fields]), constants index to data.

    tensors: (name, shape[, dtype, scale, zero point]), float32 where nothing is said.
    """
    constants = dict(constants)
    b = flatbuffers.Builder(1024)

    def vector(start, offsets):  # type: ignore[no-untyped-def]
        start(b, len(offsets))
        for offset in reversed(offsets):
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    def ints(values):  # type: ignore[no-untyped-def]
        return b.CreateNumpyVector(np.array(values, np.int32))

    data = {
        i: b.CreateByteVector(np.asarray(value, (*tensors[i], "float32")[2]).tobytes())
        for i, value in constants.items()
    }
    buffers = []
    for i in [-1, *sorted(constants)]:
        schema.BufferStart(b)
        if i >= 0:
            schema.BufferAddData(b, data[i])
        buffers.append(schema.BufferEnd(b))
    places = {i: k + 1 for k, i in enumerate(sorted(constants))}
    tables = []
    for i, (name, shape, *stored) in enumerate(tensors):
        text, sides, quantization = b.CreateString(name), ints(shape), None
        if stored[1:]:
            scale = b.CreateNumpyVector(np.atleast_1d(np.float32(stored[1])))
            zero = b.CreateNumpyVector(np.zeros_like(np.atleast_1d(stored[1]), np.int64) + stored[2])
            schema.QuantizationParametersStart(b)
            schema.QuantizationParametersAddScale(b, scale)
            schema.QuantizationParametersAddZeroPoint(b, zero)
            schema.QuantizationParametersAddQuantizedDimension(b, 3 if np.ndim(stored[1]) and shape[0] == 1 else 0)
            quantization = schema.QuantizationParametersEnd(b)
        schema.TensorStart(b)
        schema.TensorAddType(b, getattr(schema.TensorType, (*stored, "float32")[0].upper()))
        if quantization is not None:
            schema.TensorAddQuantization(b, quantization)
        schema.TensorAddName(b, text)
        schema.TensorAddShape(b, sides)
        schema.TensorAddBuffer(b, places.get(i, 0))
        tables.append(schema.TensorEnd(b))
    kinds = sorted({op[0] for op in operators})
    codes = []
    for kind in kinds:
        schema.OperatorCodeStart(b)
        schema.OperatorCodeAddBuiltinCode(b, getattr(schema.BuiltinOperator, kind))
        codes.append(schema.OperatorCodeEnd(b))
    lines = []
    for kind, given, made, *more in operators:
        took, gave, options = ints(given), ints(made), None
        if more:
            getattr(schema, f"{more[0]}Start")(b)
            for field, value in more[1].items():
                getattr(schema, f"{more[0]}Add{field}")(b, value)
            options = getattr(schema, f"{more[0]}End")(b)
        schema.OperatorStart(b)
        if options is not None:
            schema.OperatorAddBuiltinOptionsType(b, getattr(schema.BuiltinOptions, more[0]))
            schema.OperatorAddBuiltinOptions(b, options)
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
