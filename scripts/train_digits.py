"""Train the shipped networks digits_small and digits_wide: python scripts/train_digits.py [--out FOLDER] [NAME ...]

With --memory M each is trained a second time, inside windows that a fast memory of M values has room for, with as many
connections and at most as many neurons, and written as NAME_memory_M.npz with the order that belongs to it.

Handwritten digits of scikit-learn (8 x 8 pixels, 1,797 images), one image in five held out. A multilayer perceptron is
trained with Adam while its smallest weights are set to zero along the cubic schedule of Zhu & Gupta 2017 ("To prune,
or not to prune", equation 1), all layers ranked together, then fine-tuned with the final mask. Needs scikit-learn for
the data (pip install 'edgewatt[train]'); numpy does the training. The same seed gives the same file on one machine.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the order of sums must not depend on the cores

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgewatt.prune.mask import fitting, order_in
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from traces.networks.forward import forward
from traces.networks.network import Network
from traces.pruning.selection import Candidates, choose
from traces.pruning.windows import Windows, mixed
from traces.readers import native
from traces.readers.parts.layers import dense_layer, from_layers

Trained = tuple[list[np.ndarray], list[np.ndarray]]  # weights and biases of every layer
PIXEL_MAX = 16.0  # scikit-learn's digits have pixels 0 to 16
BATCH_ROWS = 64  # test inputs that travel with the network, for payloads


@dataclass(frozen=True)
class Recipe:
    """What one network is trained with. A step takes `rows_per_step` images; every `prune_every` steps prune."""

    widths: tuple[int, ...]
    n_connections: int
    steps: int
    seed: int
    learning_rate: float = 1e-3
    weight_decay: float = 1.0  # decoupled, times the learning rate: pixels that are always 0 lose their connections
    rows_per_step: int = 64
    prune_every: int = 20
    prune_from: float = 0.15  # share of the steps before pruning starts, and after which the mask stays
    prune_to: float = 0.7


RECIPES = {
    "digits_small": Recipe((64, 256, 256, 10), n_connections=8_000, steps=3_000, seed=1),
    "digits_wide": Recipe((64, 1024, 1024, 10), n_connections=64_000, steps=3_000, seed=2),
}


def split_digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (training images, labels, test images, labels); images are uint8[n, 64]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    test, train = np.split(order, [len(order) // 5])
    images, labels = digits.data.astype(np.uint8), digits.target.astype(np.uint8)
    return images[train], labels[train], images[test], labels[test]


def remaining(recipe: Recipe, step: int, total: int) -> int:
    """Connections left at a step: s_t = s_f + (s_i - s_f)(1 - t)^3 in terms of what stays."""
    start, end = recipe.prune_from * recipe.steps, recipe.prune_to * recipe.steps
    t = min(1.0, max(0.0, (step - start) / (end - start)))
    return recipe.n_connections + round((total - recipe.n_connections) * (1 - t) ** 3)


def train(
    recipe: Recipe,
    images: np.ndarray,
    labels: np.ndarray,
    windows: Windows | None = None,
    neurons: int | None = None,
    scale: float = PIXEL_MAX,
) -> Trained:
    """Return the masked weights (rows = outputs) and biases of every layer.

    windows: the connections allowed; None: all. neurons: how many may have connections in the end.
    """
    rng = np.random.default_rng(recipe.seed)
    shapes = list(zip(recipe.widths[1:], recipe.widths[:-1], strict=True))
    masks = [np.ones(shape, np.float32) for shape in shapes]
    if windows is not None:
        masks = [mask.astype(np.float32) for mask in windows.allowed()]
        pairs = [windows.pairs(k) for k in range(len(shapes))]
    fed = [float(mask.sum()) / max(1, int(mask.any(axis=1).sum())) for mask in masks]  # inputs of a neuron
    weights = [(rng.normal(0, np.sqrt(2 / n), m.shape) * m).astype(np.float32) for n, m in zip(fed, masks, strict=True)]
    biases = [np.zeros(n_out, np.float32) for n_out, _ in shapes]
    total, size = int(sum(mask.sum() for mask in masks)), sum(w.size for w in weights)
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in (*weights, *biases)]
    inputs = images.astype(np.float32) / np.float32(scale)
    for step in range(1, recipe.steps + 1):
        rows = rng.choice(len(inputs), recipe.rows_per_step, replace=False)
        gradients = _gradients(weights, biases, inputs[rows], labels[rows])
        rate = recipe.learning_rate * 0.5 * (1 + np.cos(np.pi * step / recipe.steps))
        for p, g, (m, v) in zip((*weights, *biases), gradients, moments, strict=True):  # Adam with decoupled decay
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= rate * (m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8) + recipe.weight_decay * p)
        if step % recipe.prune_every == 0 and step <= recipe.prune_to * recipe.steps + recipe.prune_every:
            keep = remaining(recipe, step, total)
            magnitudes = [np.abs(w) for w in weights]
            if windows is not None:
                dead = 0 if neurons is None else (sum(recipe.widths) - neurons) * (total - keep)
                most = sum(recipe.widths) - dead // max(1, total - recipe.n_connections)
                masks = choose(Candidates(recipe.widths, pairs, magnitudes), keep, neurons=most)
            else:
                kept = np.zeros(size, np.float32)
                kept[np.argsort(-np.concatenate([m.ravel() for m in magnitudes]), kind="stable")[:keep]] = 1
                parts = np.split(kept, np.cumsum([w.size for w in weights])[:-1])
                masks = [part.reshape(w.shape) for part, w in zip(parts, weights, strict=True)]
        for w, mask in zip(weights, masks, strict=True):
            w *= mask
    return weights, biases


def _gradients(
    weights: list[np.ndarray], biases: list[np.ndarray], x: np.ndarray, labels: np.ndarray
) -> list[np.ndarray]:
    """Gradients of the mean cross-entropy (of labels) or of half the squared error (of vectors), weights first."""
    held = [x]
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = held[-1] @ w.T + b
        held.append(np.maximum(z, 0) if k < len(weights) - 1 else z)
    if labels.ndim == 1:
        scores = np.exp(held[-1] - held[-1].max(axis=1, keepdims=True))
        delta = scores / scores.sum(axis=1, keepdims=True)
        delta[np.arange(len(x)), labels] -= 1
    else:
        delta = held[-1] - labels
    delta /= np.float32(len(x))
    by_weight: list[np.ndarray] = []
    by_bias: list[np.ndarray] = []
    for k in range(len(weights) - 1, -1, -1):
        by_weight.insert(0, delta.T @ held[k])
        by_bias.insert(0, delta.sum(axis=0))
        delta = (delta @ weights[k]) * (held[k] > 0)
    return [*by_weight, *by_bias]


def make(name: str, folder: Path) -> tuple[Network, float]:
    """Train one network and write ``FOLDER/NAME.npz``; return it with its accuracy on the held-out images."""
    recipe = RECIPES[name]
    images, labels, *test = split_digits(recipe.seed)
    return _written(name, folder, recipe.seed, train(recipe, images, labels), *test)


def make_for_memory(name: str, folder: Path, memory: int, free: Network) -> tuple[Network, float, int]:
    """Train one network inside windows; write it and its order (`edges`); return it with its accuracy and I/Os.

    free: the network trained without, which says how many neurons may stay: then no order of it needs fewer I/Os.
    """
    recipe = RECIPES[name]
    images, labels, *test = split_digits(recipe.seed)
    shapes, near = fitting(recipe.widths, memory, recipe.n_connections)
    if near:
        raise SystemExit(f"train_digits: {near}")
    windows = mixed(shapes[0], recipe.seed)
    neurons = int(free.touched.sum()) + int((free.in_degree[free.outputs] > 0).sum()) - recipe.widths[-1]
    trained, called = train(recipe, images, labels, windows, neurons), f"{name}_memory_{memory}"
    network, accuracy = _written(called, folder, recipe.seed, trained, *test)
    edges = order_in(windows, network)
    np.savez_compressed(folder / f"{called}_order.npz", edges=edges)
    return network, accuracy, count_io(network, edges, memory=memory).total


def _written(
    name: str, folder: Path, seed: int, trained: Trained, images: np.ndarray, labels: np.ndarray
) -> tuple[Network, float]:
    """Write a trained network; return it with its accuracy on the held-out images."""
    layers = [dense_layer(w, f"layer {k}", bias=b) for k, (w, b) in enumerate(zip(*trained, strict=True))]
    network = from_layers(layers, name=name)
    test = images.astype(np.float32) / np.float32(PIXEL_MAX)
    network = network.with_(batch=test[:BATCH_ROWS])
    answers = forward(network, test)[:, network.outputs].argmax(axis=1)
    accuracy = float((answers == labels).mean())
    # test_images: divide by pixel_max; the first rows are the network's batch
    held_out = {"test_images": images, "test_labels": labels, "pixel_max": PIXEL_MAX}
    extras = {"accuracy": accuracy, "seed": seed, **held_out}
    native.save(network, folder / f"{name}.npz", extras=extras)
    return network, accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = f"which ones (default: {' '.join(RECIPES)})"
    parser.add_argument("names", nargs="*", choices=[[], *RECIPES], metavar="NAME", help=known)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "configs" / "examples" / "networks")
    parser.add_argument("--memory", type=int, metavar="M", help="also train inside the windows of this fast memory")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names or RECIPES:
        network, accuracy = make(name, given.out)
        size = (given.out / f"{name}.npz").stat().st_size
        print(f"{name}: {network.n_connections} connections, test accuracy {accuracy:.4f}, {size} bytes")
        if given.memory:
            network, accuracy, ios = make_for_memory(name, given.out, given.memory, network)
            bound = io_bounds(network).lower_total
            words = f"test accuracy {accuracy:.4f}, {ios} I/Os, lower bound {bound}"
            print(f"{network.name}: {network.n_connections} connections, {words}")


if __name__ == "__main__":
    main()
