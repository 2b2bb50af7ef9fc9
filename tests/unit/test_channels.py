"""Orders of channels: the function stays, integers bit by bit, and what is found lies between its bounds."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checkpoints import LLAMA, llama
from safetensors.numpy import load_file, save_file

import edgewatt as ew
from reorder.channels import nearest_neighbours, order_channels, two_opt
from traces.base.errors import InputError
from traces.checkpoints.stream import STREAM_FORMATS, converted

Tensors = dict[str, np.ndarray]


def tensors_of(folder: Path) -> Tensors:
    return load_file(folder / "model.safetensors")


def logits(w: Tensors, tokens: list[int], config: dict[str, Any]) -> np.ndarray:
    """A Llama in double precision: RMS norms, rotary embedding, grouped heads, SwiGLU."""
    w = {name: value.astype(np.float64) for name, value in w.items()}
    heads, groups, hidden = config["num_attention_heads"], config["num_key_value_heads"], config["hidden_size"]
    width, n = hidden // heads, len(tokens)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w[name]

    def rotated(x: np.ndarray) -> np.ndarray:
        angle = np.arange(n)[:, None] / 1e4 ** (np.arange(width // 2) / (width // 2))
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        a, b = x[..., : width // 2], x[..., width // 2 :]
        return np.concatenate((a * cos - b * sin, b * cos + a * sin), -1)

    x = w["model.embed_tokens.weight"][tokens]
    for k in range(config["num_hidden_layers"]):
        at = f"model.layers.{k}."
        h = norm(x, f"{at}input_layernorm.weight")
        q, key, v = ((h @ w[f"{at}self_attn.{name}_proj.weight"].T).reshape(n, -1, width) for name in "qkv")
        q, key = rotated(q), rotated(key)
        key, v = (np.repeat(each, heads // groups, axis=1) for each in (key, v))
        scores = np.einsum("ihd,jhd->hij", q, key) / np.sqrt(width) + np.triu(np.full((n, n), -np.inf), 1)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", weights, v).reshape(n, -1) @ w[f"{at}self_attn.o_proj.weight"].T
        h = norm(x, f"{at}input_layernorm.weight")
        gate, up = (h @ w[f"{at}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{at}mlp.down_proj.weight"].T
    return norm(x, "model.norm.weight") @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


@pytest.mark.parametrize("head", [True, False])
def test_logits_stay(tmp_path: Path, head: bool) -> None:
    folder = llama(tmp_path / "m", head=head)
    stronger = {name: (value.astype(np.float32) * 20).astype(value.dtype) for name, value in tensors_of(folder).items()}
    save_file(stronger, folder / "model.safetensors")
    found = order_channels(folder, tmp_path / "o")
    assert [each.name for each in found] == [
        "layer 0: mlp", "layer 1: mlp", *(f"layer {k}: value head {g}" for k in (0, 1) for g in (0, 1)),
        "residual stream",
    ]  # fmt: skip
    before, after = tensors_of(folder), tensors_of(tmp_path / "o")
    assert any((before[name] != after[name]).any() for name in before)
    tokens = [3, 1, 4, 1, 5]
    expected, permuted = logits(before, tokens, LLAMA), logits(after, tokens, LLAMA)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(permuted, expected, rtol=1e-9, atol=1e-12)


def test_integers_are_the_same_bit_by_bit(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m")
    found = {each.name: np.array(each.order) for each in order_channels(folder, tmp_path / "o", stream=False)}
    before, after = tensors_of(folder), tensors_of(tmp_path / "o")
    form = STREAM_FORMATS["int8"]
    assert form is not None
    order = found["layer 1: mlp"]
    for name, rows in (("down_proj", False), ("up_proj", True), ("gate_proj", True)):
        key = f"model.layers.1.mlp.{name}.weight"
        was, now = (converted(t[key], form).reshape(len(t[key]), -1) for t in (before, after))
        expected = was[order] if rows else np.concatenate((was[:, :4], was[:, 4:][:, order]), axis=1)
        np.testing.assert_array_equal(now, expected)


def test_biases_and_fused_gates_move_along(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    at = "model.layers.0.mlp."
    tensors = {
        f"{at}gate_up_proj.weight": rng.normal(size=(24, 8)).astype(np.float32),
        f"{at}gate_up_proj.bias": rng.normal(size=24).astype(np.float32),
        f"{at}down_proj.weight": rng.normal(size=(8, 12)).astype(np.float32),
    }
    (tmp_path / "m").mkdir()
    save_file(tensors, tmp_path / "m" / "model.safetensors")
    order_channels(tmp_path / "m", tmp_path / "o")

    def out(w: Tensors) -> np.ndarray:
        h = w[f"{at}gate_up_proj.weight"].astype(float) @ np.arange(8.0) + w[f"{at}gate_up_proj.bias"]
        return np.asarray(w[f"{at}down_proj.weight"].astype(float) @ (np.tanh(h[:12]) * h[12:]))

    after = tensors_of(tmp_path / "o")
    assert (after[f"{at}down_proj.weight"] != tensors[f"{at}down_proj.weight"]).any()
    np.testing.assert_allclose(out(after), out(tensors), rtol=1e-12)


def test_what_is_found_lies_between_bound_and_random(tmp_path: Path) -> None:
    for each in order_channels(llama(tmp_path / "m"), tmp_path / "o"):
        assert sorted(each.order) == list(range(len(each.order)))
        assert each.lower_bound <= each.found <= each.given
        assert each.found < each.random


def test_paths_against_all_orders() -> None:
    rng = np.random.default_rng(1)
    for n in (4, 6, 7):
        points = rng.integers(0, 2, (n, 40))
        apart = (points[:, None] != points).sum(-1).astype(np.float32)

        def length(order: Any, apart: np.ndarray = apart) -> float:
            return float(sum(apart[a, b] for a, b in itertools.pairwise(order)))

        least = min(length(order) for order in itertools.permutations(range(n)))
        path = two_opt(apart, nearest_neighbours(apart))
        assert sorted(path) == list(range(n))
        assert least <= length(path) <= length(nearest_neighbours(apart))


def test_edges_on_the_wires_fall(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    config = {**LLAMA, "hidden_size": 64, "num_hidden_layers": 2}
    at = "model.layers.0.mlp."
    kinds = rng.normal(0, 1, (8, 64))  # inner channels of eight kinds, side by side at random
    down = np.ascontiguousarray(kinds[rng.integers(0, 8, 256)].T * 0.05).astype(ml_dtypes.bfloat16)
    up = rng.normal(0, 0.02, (256, 64)).astype(ml_dtypes.bfloat16)
    (tmp_path / "m").mkdir()
    save_file({f"{at}up_proj.weight": up, f"{at}down_proj.weight": down}, tmp_path / "m" / "model.safetensors")
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    order_channels(tmp_path / "m", tmp_path / "o")

    def toggles(folder: Path) -> dict[str, int]:
        result = ew.token_energy(folder, part="lpddr5x-8533", channels=1)
        return {each.kind: each.toggles for each in result.tensors}

    before, after = toggles(tmp_path / "m"), toggles(tmp_path / "o")
    assert after["mlp down"] < 0.2 * before["mlp down"]


def test_what_is_not_known_stays(tmp_path: Path) -> None:
    folder = llama(tmp_path / "m", strange=np.ones((3, 16), np.float32))
    assert "residual stream" not in [each.name for each in order_channels(folder, tmp_path / "o")]
    np.testing.assert_array_equal(tensors_of(tmp_path / "o")["strange"], np.ones((3, 16)))
    shutil.rmtree(tmp_path / "o")
    (folder / "config.json").write_text(json.dumps({**LLAMA, "num_attention_heads": 0, "hidden_size": "x"}))
    assert {each.name for each in order_channels(folder, tmp_path / "o")} == {"layer 0: mlp", "layer 1: mlp"}


def test_the_folder_that_is_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another folder"):
        order_channels(llama(tmp_path / "m"), tmp_path / "m")
