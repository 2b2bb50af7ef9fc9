"""Operator graphs made by rule: randomly wired networks (Xie et al. 2019) and cells from published genotypes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traces.base.errors import InputError, MissingExtraError, unknown_name
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor


class _Builder:
    """Collects operators; one byte per element, each operator writes its own buffer."""

    def __init__(self) -> None:
        self.nodes: list[Operator] = []
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, name: str, op: str, inputs: Sequence[str], shape: tuple[int, ...], **attributes: Any) -> str:
        tensor = Tensor(name, shape, math.prod(shape), name)
        self.nodes.append(Operator(name, op, tuple(dict.fromkeys(inputs)), (tensor,), (), attributes))
        self.shapes[name] = shape
        return name


# -- randomly wired networks --


def _erdos_renyi(networkx: Any, n: int, p: float, k: int, m: int, seed: int) -> Any:
    for attempt in range(200):  # as Xie et al.: draw until connected
        graph = networkx.erdos_renyi_graph(n, p, seed=seed + attempt)
        if networkx.is_connected(graph):
            return graph
    raise InputError(f"no connected Erdős-Rényi graph of {n} nodes with p = {p} in 200 draws: raise p")


RANDOM_GRAPHS: Mapping[str, tuple[Callable[..., Any], float]] = {
    "er": (_erdos_renyi, 0.2),
    "ba": (lambda networkx, n, p, k, m, seed: networkx.barabasi_albert_graph(n, m, seed=seed), 0.0),
    "ws": (
        lambda networkx, n, p, k, m, seed: networkx.connected_watts_strogatz_graph(n, k, p, tries=200, seed=seed),
        0.75,
    ),
}


def randwire(
    kind: str = "ws",
    n: int = 32,
    *,
    p: float | None = None,
    k: int = 4,
    m: int = 5,
    seed: int = 0,
    stages: int = 1,
    size: int = 32,
    channels: int = 78,
    expanded: bool = False,
) -> OpGraph:
    """Return a randomly wired network (Xie et al. 2019): per stage a random graph, directed from small to large label.

    n: nodes of each of `stages`. kind: 'er' (Erdős-Rényi, edge probability p), 'ba' (Barabási-Albert, m new edges) or
    'ws' (Watts-Strogatz, k neighbours, rewiring probability p). The seed of stage s is seed + s. The input is size x
    size x channels/2; a stage halves the side and (from the second on) doubles the channels; nodes without predecessors
    read the stage's input, the mean of the sinks leaves it; global pooling ends the network. One byte per element.
    expanded: aggregation, depthwise and pointwise convolution of a node as separate operators.

    Needs networkx (extra `models`). Raises InputError for parameters out of range.
    """
    try:
        import networkx
    except ImportError as error:
        raise MissingExtraError("networkx", "models") from error
    if kind not in RANDOM_GRAPHS:
        raise unknown_name("random graph", kind, RANDOM_GRAPHS)
    make, usual_p = RANDOM_GRAPHS[kind]
    p = usual_p if p is None else p
    if not (2 <= n <= 100_000 and 0 <= p <= 1 and 2 <= k < max(n, 3) and 1 <= m < n and stages >= 1):
        raise InputError(
            f"randwire: n={n}, p={p}, k={k}, m={m}, stages={stages}: out of range (2 <= k, m < n; 0 <= p <= 1)"
        )
    if size >> stages < 1 or channels < 2:
        raise InputError(
            f"randwire: a side of {size} cannot be halved {stages} times, or too few channels ({channels})"
        )
    build = _Builder()
    before = build.add("input", INPUT, (), (1, size, size, channels // 2))
    for stage in range(stages):
        graph = make(networkx, n, p, k, m, seed + stage)
        shape = (1, size >> (stage + 1), size >> (stage + 1), channels << stage)
        before = _stage(build, graph, f"s{stage}", before, shape, expanded)
    build.add("gap", "AVERAGE_POOL_2D", (before,), (1, 1, 1, channels << (stages - 1)))
    return OpGraph(f"randwire_{kind}{n}{f'x{stages}' if stages > 1 else ''}_seed{seed}", tuple(build.nodes), ("gap",))


def _stage(build: _Builder, graph: Any, prefix: str, before: str, shape: tuple[int, ...], expanded: bool) -> str:
    labels = sorted(graph.nodes)
    last: dict[int, str] = {}
    for v in labels:
        inputs = [last[u] for u in sorted(graph.neighbors(v)) if u < v] or [before]
        name = f"{prefix}_n{v}"
        if not expanded:
            last[v] = build.add(name, "AGG_RELU_SEPCONV", inputs, shape)
            continue
        source = inputs[0]
        if len(inputs) > 1:
            source = build.add(f"{name}_agg", "WEIGHTED_SUM", inputs, shape)
        depthwise = build.add(f"{name}_dw", "DEPTHWISE_CONV_2D", (source,), (*shape[:3], build.shapes[source][3]))
        last[v] = build.add(f"{name}_pw", "CONV_2D", (depthwise,), shape)
    sinks = [last[v] for v in labels if all(u < v for u in graph.neighbors(v))]
    return build.add(f"{prefix}_out", "MEAN", sinks, shape)


# -- cells from genotypes --

# Normal cells as published: per intermediate node two (operation, index of its input), 0 and 1 being the two cells
# before; then the nodes that are concatenated. Sources: Liu et al. 2019 (DARTS), Zoph et al. 2018 (NASNet-A),
# Real et al. 2019 (AmoebaNet-A), as listed in cnn/genotypes.py of the DARTS authors' repository.
Genotype = tuple[tuple[tuple[str, int], ...], tuple[int, ...]]
GENOTYPES: Mapping[str, Genotype] = {
    "darts_v1": (
        (
            ("sep_conv_3x3", 1), ("sep_conv_3x3", 0), ("skip_connect", 0), ("sep_conv_3x3", 1),
            ("skip_connect", 0), ("sep_conv_3x3", 1), ("sep_conv_3x3", 0), ("skip_connect", 2),
        ),
        (2, 3, 4, 5),
    ),
    "darts_v2": (
        (
            ("sep_conv_3x3", 0), ("sep_conv_3x3", 1), ("sep_conv_3x3", 0), ("sep_conv_3x3", 1),
            ("sep_conv_3x3", 1), ("skip_connect", 0), ("skip_connect", 0), ("dil_conv_3x3", 2),
        ),
        (2, 3, 4, 5),
    ),
    "nasnet": (
        (
            ("sep_conv_5x5", 1), ("sep_conv_3x3", 0), ("sep_conv_5x5", 0), ("sep_conv_3x3", 0), ("avg_pool_3x3", 1),
            ("skip_connect", 0), ("avg_pool_3x3", 0), ("avg_pool_3x3", 0), ("sep_conv_3x3", 1), ("skip_connect", 1),
        ),
        (2, 3, 4, 5, 6),
    ),
    "amoebanet": (
        (
            ("avg_pool_3x3", 0), ("max_pool_3x3", 1), ("sep_conv_3x3", 0), ("sep_conv_5x5", 2), ("sep_conv_3x3", 0),
            ("avg_pool_3x3", 3), ("sep_conv_3x3", 1), ("skip_connect", 1), ("skip_connect", 0), ("avg_pool_3x3", 1),
        ),
        (4, 5, 6),
    ),
}  # fmt: skip
_SEPARABLE = ("dw1", "pw1", "dw2", "pw2")
_OPERATIONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "skip_connect": (),
    "avg_pool_3x3": (("pool", "AVERAGE_POOL_2D"),),
    "max_pool_3x3": (("pool", "MAX_POOL_2D"),),
    **{f"sep_conv_{k}x{k}": tuple((s, "DEPTHWISE_CONV_2D" if s[0] == "d" else "CONV_2D") for s in _SEPARABLE)
       for k in (3, 5, 7)},
    **{f"dil_conv_{k}x{k}": (("dw", "DEPTHWISE_CONV_2D"), ("pw", "CONV_2D")) for k in (3, 5)},
}  # fmt: skip


def cell(
    genotype: str | Genotype = "darts_v2", *, channels: int = 48, size: int = 56, name: str | None = None
) -> OpGraph:
    """Return the first normal cell of a searched network on ImageNet, with the stem's results as its inputs.

    genotype: a name of GENOTYPES or (pairs of (operation, input), concatenated nodes). The older input is
    size x size x channels, reduced by two strided convolutions; the cell works at half that side, ReLU and batch
    normalisation fused, a separable convolution twice, as its authors do; two 1x1 convolutions of the following cells
    read the result. One byte per element. Raises InputError for unknown operations and inputs.
    """
    if isinstance(genotype, str):
        if genotype not in GENOTYPES:
            raise unknown_name("genotype", genotype, GENOTYPES)
        name, (pairs, joined) = name or f"{genotype}_cell1", GENOTYPES[genotype]
    else:
        try:
            pairs, joined = genotype
            len(pairs), len(joined)
        except (TypeError, ValueError):
            raise InputError(
                "cell: a genotype is a name or (pairs of (operation, input), concatenated nodes)"
            ) from None
    if channels < 2 or channels % 2 or size < 2 or size % 2:
        raise InputError(f"cell: channels={channels} and size={size} must be even and at least 2")
    if len(pairs) % 2 or not joined:
        raise InputError("cell: a genotype has two operations per node and concatenates at least one node")
    small = (1, size // 2, size // 2, channels)
    build = _Builder()
    build.add("s0", INPUT, (), (1, size, size, channels))
    build.add("s1", "CONV_2D", ("s0",), small)
    halves = [build.add(f"pre0_{part}", "CONV_2D", ("s0",), (*small[:3], channels // 2)) for part in "ab"]
    states = [build.add("pre0", "CONCATENATION", halves, small), build.add("pre1", "CONV_2D", ("s1",), small)]
    for first in range(0, len(pairs), 2):
        node = f"n{len(states)}"
        ends = []
        for k, (operation, index) in enumerate(pairs[first : first + 2]):
            if operation not in _OPERATIONS:
                raise unknown_name("cell operation", operation, _OPERATIONS)
            if not 0 <= index < len(states):
                raise InputError(f"cell: node {node} reads node {index}, which is not there yet")
            at = states[index]
            for suffix, op in _OPERATIONS[operation]:
                at = build.add(f"{node}_{k}_{suffix}", op, (at,), small)
            ends.append(at)
        states.append(build.add(f"{node}_add", "ADD", ends, small, operands=tuple(ends)))
    if not all(0 <= k < len(states) for k in joined):
        raise InputError(f"cell: it concatenates {joined}, but its nodes are 0 to {len(states) - 1}")
    parts = [states[k] for k in joined]
    build.add("out", "CONCATENATION", parts, (*small[:3], channels * len(parts)))
    outputs = tuple(build.add(f"next{k}", "CONV_2D", ("out",), small) for k in (0, 1))
    return OpGraph(name or "cell", tuple(build.nodes), outputs)
