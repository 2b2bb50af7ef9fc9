"""Operator graphs made by rule: randomly wired networks (Xie et al. 2019) and cells from published genotypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traces.errors import InputError, MissingExtraError, unknown_name
from traces.opgraph import INPUT, Operator, OpGraph, Tensor


class _Builder:
    """Collects operators; one byte per element, each operator writes its own buffer."""

    def __init__(self) -> None:
        self.nodes: list[Operator] = []
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, name: str, op: str, inputs: Sequence[str], shape: tuple[int, ...], **attributes: Any) -> str:
        size = 1
        for side in shape:
            size *= side
        self.nodes.append(
            Operator(name, op, tuple(dict.fromkeys(inputs)), (Tensor(name, shape, size, name),), (), attributes)
        )
        self.shapes[name] = shape
        return name


# -- randomly wired networks -------------------------------------------------------------------------------------------


def _erdos_renyi(networkx: Any, n: int, p: float, k: int, m: int, seed: int) -> Any:
    for attempt in range(200):  # as Xie et al.: draw until connected
        graph = networkx.erdos_renyi_graph(n, p, seed=seed + attempt)
        if networkx.is_connected(graph):
            return graph
    raise InputError(f"no connected Erdős-Rényi graph of {n} nodes with p = {p} in 200 draws: raise p")


def _barabasi_albert(networkx: Any, n: int, p: float, k: int, m: int, seed: int) -> Any:
    return networkx.barabasi_albert_graph(n, m, seed=seed)


def _watts_strogatz(networkx: Any, n: int, p: float, k: int, m: int, seed: int) -> Any:
    return networkx.connected_watts_strogatz_graph(n, k, p, tries=200, seed=seed)


RANDOM_GRAPHS: Mapping[str, tuple[Callable[..., Any], float]] = {
    "er": (_erdos_renyi, 0.2),
    "ba": (_barabasi_albert, 0.0),
    "ws": (_watts_strogatz, 0.75),
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
    """A randomly wired network (Xie et al. 2019): per stage one random graph, directed from small to large label.

    kind: 'er' (Erdős-Rényi, edge probability p), 'ba' (Barabási-Albert, m new edges) or 'ws' (Watts-Strogatz, k
    neighbours, rewiring probability p). The seed of stage s is seed + s. The input is size x size x channels/2; a
    stage halves the side and (from the second on) doubles the channels; nodes without predecessors read the stage's
    input, the mean of the sinks leaves it; global pooling ends the network. One byte per element.
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
