"""What each operator of a model computes, in plain NumPy: TensorFlow Lite's meaning, images as [batch, y, x, channels].

An operation takes the node and its operands, weights among them, in the order of the model file, and returns its
results, which are brought into their tensors' shapes after it. Operands are float32, or int64 in integer arithmetic;
lists of axes and sizes come as numbers too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.forward import SMOOTH
from traces.operators.opgraph import Operator, pads_of

Array = npt.NDArray[Any]
Operation = Callable[..., list[Array]]


def channel_axis(node: Operator) -> int:
    return int(node.attributes.get("channel_axis", -1))


def activate(value: Array, node: Operator) -> Array:
    activation = node.attributes.get("activation", "NONE")
    if activation == "NONE":
        return value
    if activation not in ELEMENTWISE:
        raise InputError(f"the reference executor does not know the activation {activation} of {node.name!r}")
    return ELEMENTWISE[activation](value, node)


def _alpha(node: Operator, default: float) -> float:
    return float(node.attributes.get("alpha", default))


def _gelu(x: Array, node: Operator) -> Array:
    if node.attributes.get("approximate") not in (True, b"tanh"):
        return SMOOTH["gelu"](x)
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


ELEMENTWISE: Mapping[str, Callable[[Array, Operator], Array]] = {
    "RELU": lambda x, node: np.maximum(x, 0),
    "RELU6": lambda x, node: SMOOTH["relu6"](x),
    "RELU_N1_TO_1": lambda x, node: np.clip(x, -1, 1),
    "RELU_0_TO_1": lambda x, node: np.clip(x, 0, 1),
    "LOGISTIC": lambda x, node: SMOOTH["sigmoid"](x),
    "TANH": lambda x, node: np.tanh(x),
    "LEAKY_RELU": lambda x, node: SMOOTH["leaky-relu"](x, _alpha(node, 0.01)),
    "ELU": lambda x, node: np.where(x < 0, _alpha(node, 1) * np.expm1(np.minimum(x, 0)), x),
    "HARD_SWISH": lambda x, node: SMOOTH["hard-swish"](x),
    "SILU": lambda x, node: SMOOTH["silu"](x),
    "GELU": _gelu,
    "EXP": lambda x, node: np.exp(x),
    "LOG": lambda x, node: np.log(x),
    "SQRT": lambda x, node: np.sqrt(x),
    "RSQRT": lambda x, node: 1 / np.sqrt(x),
    "SQUARE": lambda x, node: x * x,
    "ABS": lambda x, node: np.abs(x),
    "NEG": lambda x, node: -x,
    "SIN": lambda x, node: np.sin(x),
    "COS": lambda x, node: np.cos(x),
    "FLOOR": lambda x, node: np.floor(x),
    "CEIL": lambda x, node: np.ceil(x),
    "ROUND": lambda x, node: np.rint(x),
}

_PAIRS: Mapping[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "POW": np.power,
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2,
    "FLOOR_DIV": np.floor_divide,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "PRELU": lambda x, slope: np.where(x < 0, slope * x, x),
}

_REDUCTIONS: Mapping[str, Callable[..., Array]] = {
    "MEAN": np.mean, "SUM": np.sum, "REDUCE_MAX": np.max, "REDUCE_MIN": np.min, "REDUCE_PROD": np.prod,
}  # fmt: skip


def whole(values: Array) -> list[int]:
    return [int(v) for v in np.rint(np.asarray(values, np.float64).reshape(-1))]


# -- windows --


def _windows(node: Operator, x: Array, window: tuple[int, int], fill: Any) -> tuple[Array, Array]:
    strides, dilations = node.attributes.get("strides", (1, 1)), node.attributes.get("dilations", (1, 1))
    pads = pads_of(node, x.shape[1:3], window, node.name)
    beyond, most = [(0, 0), (0, 0)], [slice(None)] * 2
    if node.attributes.get("ceil_mode"):  # the last windows may reach beyond the padding, where nothing counts
        sides = node.output.shape[2:4]
        beyond, most = [(0, stride - 1) for stride in strides], [slice(side) for side in sides]
        for k, (low, _) in enumerate(pads):
            if (sides[k] - 1) * strides[k] >= x.shape[1 + k] + low:
                raise InputError(f"its result of shape {list(node.output.shape)} has a window behind the image")

    def view(values: Array, around: Any, blank: Any) -> Array:
        padded = np.pad(values, ((0, 0), *pads, (0, 0)), constant_values=around)
        padded = np.pad(padded, ((0, 0), *beyond, (0, 0)), constant_values=blank)
        reach = tuple((window[k] - 1) * dilations[k] + 1 for k in range(2))
        windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(1, 2))
        windows = windows[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
        return windows[:, *most]

    counted = int(bool(node.attributes.get("count_include_pad")))
    return view(x, fill, fill), view(np.ones_like(x[:1, :, :, :1]), counted, 0).sum(axis=(4, 5))


def _last(node: Operator, x: Array) -> Array:
    return x if channel_axis(node) in (-1, 3) else np.moveaxis(x, 1, -1)


def _back(node: Operator, y: Array) -> Array:
    return y if channel_axis(node) in (-1, 3) else np.moveaxis(y, -1, 1)


def _convolution(node: Operator, x: Array, weights: Array, bias: Array | None = None) -> list[Array]:
    x = _last(node, x)
    if node.attributes.get("weight_layout") == "OIHW":
        weights = np.moveaxis(weights, 1, -1)
    groups = node.attributes.get("groups", 1)
    if "channels" in node.attributes:
        weights = weights[..., slice(*node.attributes["channels"])]
    taps, _ = _windows(node, x, (weights.shape[1], weights.shape[2]), 0)
    parts = []
    for taken, kernel in zip(np.split(taps, groups, axis=3), np.split(weights, groups), strict=True):
        parts.append(np.einsum("bhwckl,oklc->bhwo", taken, kernel, optimize=True))
    y = np.concatenate(parts, axis=-1)
    return [_back(node, y if bias is None else y + bias)]


def _depthwise(node: Operator, x: Array, weights: Array, bias: Array | None = None) -> list[Array]:
    x = _last(node, x)
    if node.attributes.get("weight_layout") == "OIHW":
        weights = np.moveaxis(weights, 0, -1)  # [1, h, w, outputs]
    first, last = node.attributes.get("channels", (0, x.shape[3]))
    bias = np.zeros(weights.shape[-1], x.dtype) if bias is None else bias
    total = node.attributes.get("all_channels", x.shape[3])
    multiplier = weights.shape[-1] // total
    kept = slice(first * multiplier, last * multiplier)
    weights, bias = weights[..., kept], bias[kept]
    taps, _ = _windows(node, x, (weights.shape[1], weights.shape[2]), 0)
    kernel = weights[0].reshape(*weights.shape[1:3], x.shape[3], multiplier)
    y = np.einsum("bhwckl,klcm->bhwcm", taps, kernel, optimize=True)
    return [_back(node, y.reshape(*y.shape[:3], -1) + bias)]


def _transposed_convolution(
    node: Operator, size: Array, weights: Array, x: Array, bias: Array | None = None
) -> list[Array]:
    """Scatter every input value over its window. size: of the output. weights: [O, kh, kw, I]."""
    shape, strides = whole(size), node.attributes.get("strides", (1, 1))
    pads = pads_of(node, shape[1:3], weights.shape[1:3], node.name)
    y = np.zeros((shape[0], *(side + low + high for side, (low, high) in zip(shape[1:3], pads, strict=True)), shape[3]))
    for r in range(weights.shape[1]):
        for c in range(weights.shape[2]):
            rows, columns = (
                slice(k, k + (n - 1) * s + 1, s) for k, n, s in zip((r, c), x.shape[1:3], strides, strict=True)
            )
            y[:, rows, columns] += x @ weights[:, r, c].T
    (top, _), (left, _) = pads
    y = y[:, top : top + shape[1], left : left + shape[2]]
    return [y if bias is None else y + bias]


def _pool(node: Operator, image: Array, *_: Array) -> list[Array]:
    x = _last(node, image)
    window = node.attributes.get("window", x.shape[1:3])
    if node.op == "MAX_POOL_2D":
        low = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(np.int64).min
        taps = _windows(node, x, window, low)[0]
        results = [taps.max(axis=(4, 5))]
        if len(node.outputs) > 1:  # and where they are in the tensor
            shape = image.shape
            at = np.arange(x.size).reshape(shape)
            if node.attributes.get("storage_order"):  # along columns
                at = at.reshape(*shape[:2], shape[3], shape[2]).swapaxes(2, 3)
            indices = _windows(node, _last(node, at), window, 0)[0]
            first = taps.reshape(*taps.shape[:4], -1).argmax(axis=-1)[..., None]
            results.append(np.take_along_axis(indices.reshape(*taps.shape[:4], -1), first, -1)[..., 0])
        return [_back(node, result) for result in results]
    taps, count = _windows(node, x, window, 0)
    total = taps.sum(axis=(4, 5), dtype=x.dtype)
    return [_back(node, total / count if np.issubdtype(x.dtype, np.floating) else total // count)]


def _resize(node: Operator, x: Array, size: Array, *_: Array) -> list[Array]:
    corners, half = (bool(node.attributes.get(key)) for key in ("align_corners", "half_pixel_centers"))
    for axis, n in zip((1, 2), whole(size), strict=True):
        side = x.shape[axis]
        scale = (side - 1) / (n - 1) if corners and n > 1 else side / n
        at = (np.arange(n) + 0.5) * scale - 0.5 if half else np.arange(n) * scale
        if node.op == "RESIZE_NEAREST_NEIGHBOR":
            at = (np.arange(n) + 0.5) * scale if half else at
            near = np.floor(at + 0.5) if corners else np.floor(at)
            x = x.take(np.clip(near, 0, side - 1).astype(int), axis=axis)
            continue
        low = np.clip(np.floor(at), 0, side - 1).astype(int)
        high = np.clip(np.floor(at) + 1, 0, side - 1).astype(int)
        share = (np.maximum(at, 0) - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)]).astype(np.float32)
        x = x.take(low, axis=axis) * (1 - share) + x.take(high, axis=axis) * share
    return [x]


# -- matrices --


def _fully_connected(node: Operator, x: Array, weights: Array, bias: Array | None = None) -> list[Array]:
    weights = weights.T if node.attributes.get("transposed") else weights
    alpha, beta = (node.attributes.get(key, 1) for key in ("alpha", "beta"))  # of ONNX's Gemm
    y = alpha * (x.reshape(-1, weights.shape[1]) @ weights.T)
    return [y if bias is None else y + beta * bias]


def _matmul(node: Operator, *pair: Array) -> list[Array]:
    turned = [node.attributes.get(key, False) for key in ("adj_x", "adj_y")]
    a, b = (x.swapaxes(-1, -2) if turn else x for x, turn in zip(pair, turned, strict=True))
    return [a @ b]


def _softmax(node: Operator, x: Array, *_: Array) -> list[Array]:
    x = x.astype(np.float32) * node.attributes.get("beta", 1.0)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return [e / e.sum(axis=-1, keepdims=True)]


# -- shapes --


def _split_v(node: Operator, x: Array, sizes: Array, axis: Array) -> list[Array]:
    at = whole(axis)[0]
    return list(np.split(x, np.cumsum([tensor.shape[at] for tensor in node.outputs])[:-1], axis=at))


def _concatenation(node: Operator, *parts: Array) -> list[Array]:
    axis = node.attributes.get("axis", channel_axis(node))
    return [np.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]]


def _pad(node: Operator, x: Array, widths: Array, fill: Array | None = None) -> list[Array]:
    pairs = np.array(whole(widths)).reshape(-1, 2)
    if node.op == "MIRROR_PAD":
        return [np.pad(x, pairs, "symmetric" if node.attributes.get("mode") else "reflect")]
    return [np.pad(x, pairs, constant_values=0 if fill is None else float(fill.reshape(-1)[0]))]


def _reduction(node: Operator, x: Array, given: Array | None = None) -> list[Array]:
    axes = node.attributes.get("axes") if given is None else tuple(whole(given))
    return [_REDUCTIONS[node.op](x, axis=axes or None)]


def _slice(node: Operator, x: Array, begin: Array, *_: Array) -> list[Array]:
    return [x[tuple(slice(b, b + side) for b, side in zip(whole(begin), node.output.shape, strict=True))]]


def _strided_slice(node: Operator, x: Array, *bounds: Array) -> list[Array]:
    masks = {key: int(node.attributes.get(f"{key}_mask", 0)) for key in ("begin", "end", "shrink_axis")}
    if node.attributes.get("ellipsis_mask") or node.attributes.get("new_axis_mask"):
        raise InputError(f"{node.name!r}: an ellipsis or a new axis is not computed")
    taken: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(*map(whole, bounds), strict=True)):
        if masks["shrink_axis"] >> axis & 1:
            taken.append(begin)
        else:
            open_ = [masks[key] >> axis & 1 for key in ("begin", "end")]
            taken.append(slice(None if open_[0] else begin, None if open_[1] else end, step))
    return [x[tuple(taken)]]


def _gather(node: Operator, x: Array, ids: Array) -> list[Array]:
    rows = np.array(whole(ids), np.int64).reshape(ids.shape)
    return [x.take(rows, axis=int(node.attributes.get("axis", 0)))]


def _depth_to_space(node: Operator, x: Array) -> list[Array]:
    n, height, width, depth = x.shape
    b = int(node.attributes["block"])
    return [x.reshape(n, height, width, b, b, depth // (b * b)).transpose(0, 1, 3, 2, 4, 5)]


def _space_to_depth(node: Operator, x: Array) -> list[Array]:
    n, height, width, depth = x.shape
    b = int(node.attributes["block"])
    return [x.reshape(n, height // b, b, width // b, b, depth).transpose(0, 1, 3, 2, 4, 5)]


def _select(node: Operator, chosen: Array, a: Array, b: Array) -> list[Array]:
    return [np.where(chosen != 0, a, b)]


def _pair(compute: Callable[[Array, Array], Array]) -> Operation:
    return lambda node, a, b: [compute(a, b)]


def _of_each(compute: Callable[[Array, Operator], Array]) -> Operation:
    return lambda node, x, *_: [compute(x, node)]


OPERATIONS: Mapping[str, Operation] = {
    **{name: _pair(compute) for name, compute in _PAIRS.items()},
    **{name: _of_each(compute) for name, compute in ELEMENTWISE.items()},
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(("RESHAPE", "FLATTEN", "SQUEEZE", "EXPAND_DIMS", "UNSQUEEZE", "IDENTITY", "QUANTIZE", "DEQUANTIZE",
                      "CAST", "DENSIFY", "DROPOUT", "READ_VARIABLE"),
                    lambda node, x, *_: [x]),
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D"), _pool),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    **dict.fromkeys(("BATCH_MATMUL", "MATMUL"), _matmul),
    **dict.fromkeys(("SELECT", "SELECT_V2"), _select),
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _transposed_convolution,
    "FULLY_CONNECTED": _fully_connected,
    "ELEMENTWISE_MEAN": lambda node, *terms: [sum(terms[1:], terms[0]) / len(terms)],
    "GLOBALMAXPOOL": lambda node, x: [x.max(axis=tuple(range(2, x.ndim)))],
    "SOFTMAX": _softmax,
    "SPLIT": lambda node, axis, x: list(np.split(x, len(node.outputs), axis=whole(axis)[0])),  # TensorFlow Lite's order
    "SPLIT_V": _split_v,
    "CONCATENATION": _concatenation,
    "TRANSPOSE": lambda node, x, perm=None: [x.transpose(None if perm is None else whole(perm))],
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "GATHER": _gather,
    "PACK": lambda node, *parts: [np.stack(parts, axis=int(node.attributes.get("axis", 0)))],
    "UNPACK": lambda node, x: list(np.moveaxis(x, int(node.attributes.get("axis", 0)), 0)),
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_DEPTH": _space_to_depth,
    "TILE": lambda node, x, times: [np.tile(x, whole(times))],
    "BROADCAST_TO": lambda node, x, *_: [np.broadcast_to(x, node.output.shape)],
    "ASSIGN_VARIABLE": lambda node, *read: [read[-1]],
}  # fmt: skip
