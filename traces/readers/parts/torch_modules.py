"""PyTorch modules as operator graphs: exported by torch.export, each ATen operator under the suite's own name.

Weights are read as they are used: masks of torch.nn.utils.prune and parametrisations applied, sparse and quantised
tensors made dense, batch normalisation folded into the layer before it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, MissingExtraError, brief
from traces.networks.network import Network, weights_of
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor
from traces.readers.parts.model_network import to_network

Weights = npt.NDArray[np.float32]
Build = Callable[[dict[str, Any], Any], tuple[str, dict[str, Any]]]


def from_torch(
    module: Any, example: Any = None, *, name: str | None = None, kind: str = "network"
) -> Network | OpGraph:
    """Return a PyTorch module of layers with weights as a network: every weight that is not zero is a connection.

    kind: 'network', or 'opgraph' for the operators with their constants, as `schedule` takes them.

    module: an nn.Module, or a torch.export.ExportedProgram. example: an input (or a tuple of inputs) of batch 1; not
    needed where the first layer with weights is an nn.Linear. Read are linear layers, convolutions, batch normalisation
    behind them, pooling, sums, concatenations and ReLU; see `Network.notes`. The module is not changed.
    Raises InputError naming the operator that does not fit; needs the package torch.
    """
    graph = opgraph(module, example, name=name)
    return graph if kind == "opgraph" else to_network(graph)


def opgraph(module: Any, example: Any = None, *, name: str | None = None) -> OpGraph:
    try:
        import torch
        import torch.nn.utils.parametrize
        import torch.nn.utils.prune
    except ImportError as error:
        raise MissingExtraError("torch", "torch") from error
    where = name or type(module).__name__
    if not isinstance(module, torch.export.ExportedProgram):
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"from_torch takes an nn.Module or an ExportedProgram, not {type(module).__name__}")
        module = _exported(torch, _plain(torch, module), example, where)
    return _Program(torch, module, where).graph()


def to_torch(network: Network, module: Any) -> Any:
    """Return a copy of a module of linear layers that has the network's weights, in the network's numbering.

    network: what `from_torch` made of the module, pruned, or with inner neurons renumbered: rows and columns of the
    copy's weights change places then, and zeros fill what was pruned; inputs and outputs stay where they are. The
    module is not changed. Raises InputError where its linear layers are not those of the network.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "torch") from error
    made = _plain(torch, module)
    linear = [each for each in made.modules() if isinstance(each, torch.nn.Linear)]
    weights = weights_of(network, "a module")
    if network.layer is None or network.positions is None or network.weight_ids is not None:
        raise InputError(f"{network.name}: only networks that from_torch made of linear layers become modules again")
    level = network.positions[:, 0]
    neurons = [network.inputs, *(np.flatnonzero(level == k) for k in range(1, len(linear))), network.outputs]
    index = np.full(network.n_neurons, -1)
    for ids in neurons:
        index[ids] = np.arange(len(ids))
    biases = np.zeros(network.n_neurons, np.float32) if network.biases is None else network.biases
    for k, each in enumerate(linear):
        rows, here = neurons[k + 1], network.layer == k
        matrix = np.zeros(tuple(each.weight.shape), np.float32)
        fits = len(rows) <= len(matrix) and len(neurons[k]) <= matrix.shape[1]
        if not fits or network.layer.max() != len(linear) - 1 or (level[network.sources[here]] != k).any():
            raise InputError(f"{network.name}: layer {k} is not linear layer {k} of {type(module).__name__}")
        matrix[index[network.targets[here]], index[network.sources[here]]] = weights[here]
        each.weight = torch.nn.Parameter(torch.from_numpy(matrix))
        bias = np.zeros(len(matrix), np.float32)
        bias[: len(rows)] = biases[rows]
        if bias.any() or each.bias is not None:
            each.bias = torch.nn.Parameter(torch.from_numpy(bias))
    return made


def array_of(tensor: Any, where: str) -> Weights:
    tensor = tensor.detach()
    if hasattr(tensor, "dequantize") and (getattr(tensor, "is_quantized", False) or type(tensor).__name__ != "Tensor"):
        tensor = tensor.dequantize() if hasattr(type(tensor), "dequantize") else tensor
    try:
        return np.array(tensor.to_dense().float().cpu().numpy(), np.float32)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise InputError(f"{where}: a tensor that cannot be made dense ({brief(error)})") from error


def _plain(torch: Any, module: Any) -> Any:
    try:
        made = copy.deepcopy(module)
    except RuntimeError as error:  # weights under a mask are results of a computation
        made = _without_results(torch, module, error)
    for each in made.modules():
        for hook in list(each._forward_pre_hooks.values()):
            if isinstance(hook, torch.nn.utils.prune.BasePruningMethod):
                torch.nn.utils.prune.remove(each, hook._tensor_name)
        if torch.nn.utils.parametrize.is_parametrized(each):
            for tensor in list(each.parametrizations):
                torch.nn.utils.parametrize.remove_parametrizations(each, tensor)
        for key, weight in each._parameters.items():
            if weight is not None and (weight.is_floating_point() or weight.layout != torch.strided):
                values = torch.from_numpy(array_of(weight, key))
                each._parameters[key] = torch.nn.Parameter(values, requires_grad=False)
        for key, buffer in each._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                each._buffers[key] = buffer.float()
    return made.eval()


def _without_results(torch: Any, module: Any, error: Exception) -> Any:
    computed = [
        (each, key, value)
        for each in module.modules()
        for key, value in vars(each).items()
        if isinstance(value, torch.Tensor) and not value.is_leaf
    ]
    if not computed:
        raise InputError(f"{type(module).__name__} cannot be copied ({brief(error)})") from error
    try:
        for each, key, value in computed:
            setattr(each, key, value.detach())
        return copy.deepcopy(module)
    finally:
        for each, key, value in computed:
            setattr(each, key, value)


def _exported(torch: Any, module: Any, example: Any, where: str) -> Any:
    if example is None:
        weighted = (each for each in module.modules() if getattr(each, "weight", None) is not None)
        first = next(weighted, None)
        if not isinstance(first, torch.nn.Linear):
            raise InputError(f"{where}: an example input is needed: from_torch(module, torch.zeros(1, 3, 224, 224))")
        example = torch.zeros(1, first.in_features)
    inputs = tuple(example) if isinstance(example, tuple | list) else (example,)
    inputs = tuple(x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs)
    try:
        return torch.export.export(module, inputs)
    except Exception as error:  # a module may do anything
        raise InputError(f"{where}: torch.export cannot trace the module ({brief(error)})") from error


# -- operators --


def _pair(value: Any) -> tuple[int, int]:
    sides = [value] if isinstance(value, int) else list(value)
    return int(sides[0]), int(sides[-1])


def _window(given: dict[str, Any]) -> dict[str, Any]:
    word = given["padding"]
    padding = word.upper() if isinstance(word, str) else _pair(word) * 2
    strides, dilations = _pair(given["stride"]), _pair(given.get("dilation", 1))
    return {"strides": strides, "padding": padding, "dilations": dilations, "channel_axis": 1}


def _convolution(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
    weight, groups = given["weight"].meta["val"], int(given["groups"])
    depthwise = groups > 1 and weight.shape[1] == 1
    more = {"weight_layout": "OIHW", "groups": 1 if depthwise else groups}
    return "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", {**_window(given), **more}


def _pool(kind: str) -> Build:
    def build(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
        if given.get("ceil_mode"):
            raise InputError("a window that goes beyond the image (ceil_mode) is not read")
        given = {**given, "stride": given["stride"] or given["kernel_size"]}
        counted = bool(given.get("count_include_pad", False))
        return kind, {**_window(given), "window": _pair(given["kernel_size"]), "count_include_pad": counted}

    return build


def _adaptive(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
    image, made = given["self"].meta["val"].shape[-2:], node.meta["val"].shape[-2:]
    if any(side % size for side, size in zip(image, made, strict=True)):
        raise InputError(f"adaptive pooling from {list(image)} to {list(made)} has unequal windows")
    window = tuple(int(side // size) for side, size in zip(image, made, strict=True))
    return "AVERAGE_POOL_2D", {"strides": window, "padding": "VALID", "window": window, "channel_axis": 1}


def _mean(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
    rank = len(given["self"].meta["val"].shape)
    return "MEAN", {"channel_axis": 1, "axes": tuple(int(d) % rank for d in given["dim"] or range(rank))}


def _sum(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
    if given.get("alpha", 1) != 1:
        raise InputError("a sum with a factor is not read")
    return "ADD", {}


def _permuted(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
    axes = list(range(len(node.meta["val"].shape)))
    if "dims" in given:
        axes = [axes[int(d)] for d in given["dims"]]
    else:
        a, b = int(given.get("dim0", 0)), int(given.get("dim1", 1))
        axes[a], axes[b] = axes[b], axes[a]
    return "TRANSPOSE", {"perm": tuple(axes)}


def _clipped(given: dict[str, Any], node: Any) -> tuple[str, dict[str, Any]]:
    ends = (given.get("min_val", given.get("min")), given.get("max_val", given.get("max")))
    kinds = {(0, None): "RELU", (0, 6): "RELU6", (-1, 1): "RELU_N1_TO_1"}
    if ends not in kinds:
        raise InputError(f"clipping to {ends} is not read")
    return kinds[ends], {}


def _alpha(kind: str, key: str) -> Build:
    return lambda given, node: (kind, {"alpha": float(given[key])})


def _plainly(kind: str) -> Build:
    return lambda given, node: (kind, {})


BUILDERS: Mapping[str, Build] = {
    "linear": _plainly("FULLY_CONNECTED"), "conv2d": _convolution, "max_pool2d": _pool("MAX_POOL_2D"),
    "avg_pool2d": _pool("AVERAGE_POOL_2D"), "mean": _mean, "adaptive_avg_pool2d": _adaptive, "add": _sum,
    "cat": lambda given, node: ("CONCATENATION", {"axis": int(given["dim"])}), "permute": _permuted,
    "transpose": _permuted, "t": _permuted, "hardtanh": _clipped, "clamp": _clipped, "elu": _alpha("ELU", "alpha"),
    "leaky_relu": _alpha("LEAKY_RELU", "negative_slope"),
    "gelu": lambda given, node: ("GELU", {"approximate": given.get("approximate") == "tanh"}),
    **dict.fromkeys(("flatten", "view", "reshape", "squeeze", "unsqueeze", "_unsafe_view"), _plainly("RESHAPE")),
    **dict.fromkeys(("dropout", "clone", "contiguous", "detach", "alias", "to", "_to_copy"), _plainly("IDENTITY")),
    **{a: _plainly(b) for a, b in {
        "sigmoid": "LOGISTIC", "hardswish": "HARD_SWISH", "_softmax": "SOFTMAX", "log_softmax": "LOGSOFTMAX",
        "_log_softmax": "LOGSOFTMAX", "bmm": "BATCH_MATMUL",
    }.items()},
}  # fmt: skip
"""Others have their names in capitals, sizes, and no values."""


class _Program:
    """One exported program. names: of ATen's values; a value that only batch normalisation changes is its result."""

    def __init__(self, torch: Any, program: Any, name: str) -> None:
        self.torch, self.program, self.name = torch, program, name
        signature = program.graph_signature
        state = {**program.state_dict, **getattr(program, "constants", {})}
        held = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        held |= getattr(signature, "inputs_to_lifted_tensor_constants", {})
        self.constants: dict[str, npt.NDArray[Any]] = {}
        for placeholder, key in held.items():
            if key in state and isinstance(state[key], torch.Tensor):
                self.constants[placeholder] = array_of(state[key], f"{name}: {key}")
        self.alias: dict[str, str] = {}
        self.nodes: list[Operator] = []

    def graph(self) -> OpGraph:
        outputs: list[str] = []
        for node in self.program.graph.nodes:
            at = f"{self.name}: {node.name!r} ({node.target})"
            if node.op == "placeholder":
                if node.name not in self.constants and isinstance(node.meta.get("val"), self.torch.Tensor):
                    self.nodes.append(Operator(node.name, INPUT, (), (self._tensor(node),)))
            elif node.op == "output":
                outputs = [self._name(value) for value in self._flat(node.args) if hasattr(value, "name")]
            elif node.op == "call_function":
                try:
                    self._operator(node)
                except InputError as error:
                    raise InputError(f"{at}: {error}") from error
            else:
                raise InputError(f"{at}: only calls of operators are read")
        used = {name for node in self.nodes for name in node.constants}
        return OpGraph(
            self.name,
            tuple(self.nodes),
            tuple(dict.fromkeys(outputs)),
            {name: array for name, array in self.constants.items() if name in used},
        )

    def _flat(self, value: Any) -> list[Any]:
        return [v for each in value for v in self._flat(each)] if isinstance(value, tuple | list) else [value]

    def _name(self, node: Any) -> str:
        return self.alias.get(node.name, str(node.name))

    def _tensor(self, node: Any) -> Tensor:
        value = node.meta["val"]
        if not isinstance(value, self.torch.Tensor) or any(not isinstance(side, int) for side in value.shape):
            raise InputError("its result has no fixed shape: export the module with an example of fixed sizes")
        shape = tuple(int(side) for side in value.shape)
        dtype = str(value.dtype).removeprefix("torch.")
        return Tensor(node.name, shape, math.prod(shape) * value.element_size(), node.name, dtype)

    def _operator(self, node: Any) -> None:
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            raise InputError("one of several results of an operator: it is not read")
        given = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
        given |= dict(zip((a.name for a in schema.arguments), node.args, strict=False)) | dict(node.kwargs)
        given["self"] = given.get("self", given.get("input"))
        kind = schema.name.removeprefix("aten::").rstrip("_")
        if kind == "batch_norm":
            self._fold_norm(node, given)
            return
        op, attributes = BUILDERS.get(kind, _plainly(kind.upper()))(given, node)
        names = [
            self._name(value) for value in self._flat([*node.args, *node.kwargs.values()]) if hasattr(value, "name")
        ]
        if all(name in self.constants for name in names):
            raise InputError("computes with weights alone: make it a weight before the export")
        inputs = tuple(dict.fromkeys(name for name in names if name not in self.constants))
        constants = tuple(dict.fromkeys(name for name in names if name in self.constants))
        if op == "PRELU" and len(node.meta["val"].shape) > 2:  # a slope a channel
            self.constants[constants[0]] = self.constants[constants[0]].reshape(-1, 1, 1)
        if names != [*inputs[:1], *constants]:
            attributes = {**attributes, "operands": tuple(names)}
        self.nodes.append(Operator(node.name, op, inputs, (self._tensor(node),), constants, attributes))

    def _fold_norm(self, node: Any, given: dict[str, Any]) -> None:
        before = self.nodes[-1] if self.nodes else None
        readers = len(given["self"].users)
        if before is None or before.output.name != self._name(given["self"]) or readers != 1 or not before.constants:
            raise InputError("batch normalisation is folded into a linear layer or convolution right before it alone")
        shift = {key: self.constants[given[key].name] for key in ("running_mean", "running_var")}
        gain, offset = (self.constants[given[k].name] if given[k] is not None else fill
                        for k, fill in (("weight", np.float32(1)), ("bias", np.float32(0))))  # fmt: skip
        factor = gain / np.sqrt(shift["running_var"] + given["eps"])
        weights = self.constants[before.constants[0]]
        bias = self.constants[before.constants[1]] if len(before.constants) > 1 else np.float32(0)
        made = (f"{before.name}.weight", f"{before.name}.bias")
        self.constants[made[0]] = weights * factor.reshape(-1, *[1] * (weights.ndim - 1))
        self.constants[made[1]] = np.asarray((bias - shift["running_mean"]) * factor + offset, np.float32)
        self.nodes[-1] = Operator(before.name, before.op, before.inputs, before.outputs, made, before.attributes)
        self.alias[node.name] = before.output.name
