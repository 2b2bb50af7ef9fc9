"""Hypothesis strategies shared by the property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from traces.networks.network import COMPILED_ACTIVATIONS, Network


@st.composite
def networks(draw: st.DrawFn, max_neurons: int = 12, weighted: bool = True) -> Network:
    """A small acyclic network with neurons and connections in any order, isolated and unfed hidden neurons included.

    Weights and biases are multiples of 1/8, some of them zero; the batch has one to three rows.
    """
    n = draw(st.integers(2, max_neurons))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=min(len(pairs), 40), unique=True))
    name = draw(st.permutations(range(n)))  # neuron ids need not be in topological order
    sources = np.array([name[a] for a, _ in chosen])
    targets = np.array([name[b] for _, b in chosen])
    fed, feeds = np.bincount(targets, minlength=n) > 0, np.bincount(sources, minlength=n) > 0
    inputs = [i for i in range(n) if not fed[i] and (draw(st.booleans()) or i == sources[0])]
    outputs = [i for i in range(n) if i not in inputs and ((fed[i] and not feeds[i]) or draw(st.booleans()))]
    eighths = st.integers(-16, 16)
    batch = draw(st.lists(st.lists(eighths, min_size=len(inputs), max_size=len(inputs)), min_size=1, max_size=3))
    some = lambda k: np.array(draw(st.lists(eighths, min_size=k, max_size=k)), np.float32) / 8  # noqa: E731
    return Network(
        sources,
        targets,
        n_neurons=n,
        inputs=inputs,
        outputs=outputs,
        weights=some(len(chosen)) if weighted else None,
        biases=some(n) if weighted else None,
        activation=draw(st.sampled_from(COMPILED_ACTIVATIONS)),
        batch=np.array(batch, np.float32).reshape(len(batch), len(inputs)) / 8 if weighted else None,
    )
