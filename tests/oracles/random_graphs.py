"""Random operator graphs for property tests."""

import numpy as np
from hypothesis import strategies as st

from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> OpGraph:
    """Small graphs: accumulating buffers, in-place updates, several outputs, unused results."""
    n = draw(st.integers(1, most))
    nodes: list[Operator] = []
    tensors: list[Tensor] = []
    sealed: set[str] = set()  # buffers that somebody has read: no further writer may join
    for i in range(n):
        known = [t.name for t in tensors]
        inputs = draw(st.lists(st.sampled_from(known), unique=True, max_size=3)) if known else []
        size = draw(st.integers(1, 12)) * draw(st.sampled_from([1, 50]))
        kind = draw(st.sampled_from(["plain", "plain", "plain", "two", "accumulate", "in-place"]))
        outputs = [Tensor(f"t{i}", (size,), size, f"t{i}")]
        open_buffers = [t for t in tensors if t.buffer not in sealed]
        used = {t.buffer for t in tensors if t.name in inputs}
        if kind == "two":
            outputs.append(Tensor(f"u{i}", (7,), 7, f"u{i}"))
        elif kind == "accumulate" and (join := [t for t in open_buffers if t.buffer not in used]):
            same = draw(st.sampled_from(join))
            outputs = [Tensor(f"t{i}", same.shape, same.n_bytes, same.buffer)]
        elif kind == "in-place" and open_buffers:
            last = {t.buffer: t for t in open_buffers}
            same = draw(st.sampled_from(sorted(last.values(), key=lambda t: t.name)))
            if sum(t.buffer == same.buffer for t in tensors) == 1:
                inputs = [name for name in inputs if name != same.name] + [same.name]
                outputs = [Tensor(f"t{i}", same.shape, same.n_bytes, same.buffer)]
                used.discard(same.buffer)
                sealed.add(same.buffer)
        sealed |= used
        nodes.append(Operator(f"n{i}", "OP" if inputs else INPUT, tuple(inputs), tuple(outputs)))
        tensors += outputs
    outputs = draw(st.lists(st.sampled_from([t.name for t in tensors]), unique=True, min_size=1, max_size=2))
    return OpGraph("g", tuple(nodes), tuple(outputs), allow_disconnected=True)


def random_order(graph: OpGraph, rng: np.random.Generator) -> list[int]:
    done: set[int] = set()
    order: list[int] = []
    while len(order) < graph.n_nodes:
        ready = [v for v in range(graph.n_nodes) if v not in done and set(graph.predecessors[v]) <= done]
        v = int(rng.choice(ready))
        done.add(v)
        order.append(v)
    return order
