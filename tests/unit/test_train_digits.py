"""The training script: its gradients are the derivative of its loss, its schedule ends where the recipe says."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_digits.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_digits"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def loss(weights: list[np.ndarray], biases: list[np.ndarray], x: np.ndarray, labels: np.ndarray) -> float:
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        x = x @ w.T + b
        x = np.maximum(x, 0) if k < len(weights) - 1 else x
    return float((np.log(np.exp(x).sum(axis=1)) - x[np.arange(len(x)), labels]).mean())


def test_gradients_are_the_derivative_of_the_cross_entropy(script: ModuleType) -> None:
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(6, 5)), rng.normal(size=(4, 6)), rng.normal(size=(3, 4))]
    biases = [rng.normal(size=len(w)) for w in weights]
    x, labels = rng.normal(size=(7, 5)), rng.integers(0, 3, 7)
    gradients = script._gradients(weights, biases, x, labels)
    for values, gradient in zip((*weights, *biases), gradients, strict=True):
        for at in np.ndindex(values.shape):
            kept, step = values[at], 1e-6
            values[at] = kept + step
            above = loss(weights, biases, x, labels)
            values[at] = kept - step
            below = loss(weights, biases, x, labels)
            values[at] = kept
            assert gradient[at] == pytest.approx((above - below) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("name", ["digits_small", "digits_wide"])
def test_the_schedule_falls_from_all_to_the_recipe(script: ModuleType, name: str) -> None:
    recipe = script.RECIPES[name]
    total = sum(a * b for a, b in zip(recipe.widths[1:], recipe.widths, strict=False))
    left = [script.remaining(recipe, step, total) for step in range(0, recipe.steps + 1, recipe.prune_every)]
    assert left[0] == total and left[-1] == recipe.n_connections
    assert all(a >= b for a, b in pairwise(left))


def test_a_short_training_leaves_what_the_recipe_says(script: ModuleType) -> None:
    images, labels, test_images, _ = script.split_digits(3)
    assert len(images) + len(test_images) == 1797
    recipe = script.Recipe((64, 16, 10), n_connections=200, steps=120, seed=3)
    first, again = script.train(recipe, images, labels), script.train(recipe, images, labels)
    assert sum(np.count_nonzero(w) for w in first[0]) == 200
    for one, other in zip((*first[0], *first[1]), (*again[0], *again[1]), strict=True):
        assert np.array_equal(one, other)
