"""What a number format costs in accuracy: a network as a trace executes it, against labels and against float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.layout.settings import Layout
from traces.networks.forward import forward
from traces.networks.network import Network
from traces.trace.build import build_trace, stored_activations

MOST_VECTORS = 1024  # executed together; more are executed in turn


@dataclass(frozen=True)
class Accuracy:
    """Of n input vectors: the share whose largest output is that of their label (None without labels), the share whose
    largest output is the one float64 has, and |outputs - those in float64| / |those in float64| over all (2-norms)."""

    n: int
    accuracy: float | None
    agreement: float
    relative_error: float


def executed_outputs(
    network: Network, order: Any, layout: Layout, vectors: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return float32[n, outputs] as a trace of this order and layout leaves them in memory, one lane per vector.

    Weights are rounded to the layout's value format, activations and partial sums to its neuron format wherever they
    are stored, and sums are float32 in the order of work.
    """
    outputs = []
    for start in range(0, len(vectors), MOST_VECTORS):
        part = vectors[start : start + MOST_VECTORS]
        formats = {name: getattr(layout, name) for name in ("kind", "value_format", "neuron_format", "registers")}
        given = Layout(**formats, lanes=len(part))
        trace = build_trace(network, order, layout=given, inputs=part)
        outputs.append(stored_activations(trace, network.n_neurons, layout.neuron_format)[:, network.outputs])
    return np.concatenate(outputs)


def accuracy_of(
    network: Network,
    order: Any,
    layout: Layout,
    vectors: npt.NDArray[np.float32],
    labels: npt.NDArray[np.integer] | None = None,
) -> Accuracy:
    """Compare what is executed with labels (int[n], positions among the outputs) and with a float64 forward pass."""
    if not len(vectors):
        raise InputError("accuracy needs an input vector or more")
    if labels is not None and (
        labels.shape != (len(vectors),) or labels.min() < 0 or labels.max() >= len(network.outputs)
    ):
        raise InputError(
            f"labels must be {len(vectors)} numbers from 0 to {len(network.outputs) - 1}: one per input vector"
        )
    outputs = executed_outputs(network, order, layout, vectors).astype(np.float64)
    exact = forward(network, vectors, dtype=np.float64)[:, network.outputs]
    answer, expected = outputs.argmax(axis=1), exact.argmax(axis=1)
    size = float(np.linalg.norm(exact))
    difference = float(np.linalg.norm(outputs - exact))
    return Accuracy(
        len(vectors),
        None if labels is None else float((answer == labels).mean()),
        float((answer == expected).mean()),
        difference / size if size else difference,
    )
