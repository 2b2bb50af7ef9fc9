"""A checkpoint of the shapes of a Llama with random weights, shard by shard: for tables of sizes nobody can ship.

Values are Gaussian (kurtosis 3.0 to 3.8 in all-MiniLM-L6-v2 once rows and columns are divided by their spread) times
log-normal spreads of rows (sigma 0.2) and columns (0.15), both medians of that model's matrices, around 0.02. They are
drawn as 16 random bits into a table of bf16 quantiles: a few ns a value, one shard a layer, memory of one matrix.

    python scripts/synthetic_checkpoint.py FOLDER --size 1b [--seed 0]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
from scipy.special import ndtri

SIZES = {  # hidden, layers, inner, heads, heads of keys and values, vocabulary, tied: Llama 3.2 1B and 3B, 3.1 8B
    "tiny": (64, 2, 176, 4, 2, 512, True),
    "1b": (2048, 16, 8192, 32, 8, 128256, True),
    "3b": (3072, 28, 8192, 24, 8, 128256, True),
    "8b": (4096, 32, 14336, 32, 8, 128256, False),
}
SPREAD, ROWS, COLUMNS = 0.02, 0.2, 0.15
STEPS = 8  # tables to a factor of 2 in spread
_BLOCK = 1 << 22  # values at once


def tables() -> np.ndarray:
    """Return bf16 bits, uint16[levels, 65536]: quantiles of Gaussians whose spreads are 2^(k / STEPS) of SPREAD."""
    quantiles = ndtri((np.arange(1 << 16) + 0.5) / (1 << 16))
    spreads = SPREAD * 2.0 ** (np.arange(-4 * STEPS, 4 * STEPS + 1) / STEPS)
    made: np.ndarray = (quantiles * spreads[:, None]).astype(ml_dtypes.bfloat16).view(np.uint16)
    return made


def matrix(rows: int, columns: int, rng: np.random.Generator, levels: np.ndarray) -> Iterator[bytes]:
    of_columns = np.rint(rng.normal(0, COLUMNS * STEPS / np.log(2), columns)).astype(np.int64)
    step = max(1, _BLOCK // columns)
    for first in range(0, rows, step):
        n = min(step, rows - first)
        of_rows = np.rint(rng.normal(0, ROWS * STEPS / np.log(2), n)).astype(np.int64)
        level = np.clip(of_rows[:, None] + of_columns + len(levels) // 2, 0, len(levels) - 1)
        words = np.frombuffer(rng.bytes(2 * n * columns), np.uint16).reshape(n, columns)
        yield levels.reshape(-1)[(level << 16) + words].tobytes()


def shapes(size: str) -> list[dict[str, tuple[int, ...]]]:
    """Return names and shapes of the tensors, a dict a shard."""
    hidden, layers, inner, heads, kv, vocabulary, tied = SIZES[size]
    narrow = hidden // heads * kv
    shards: list[dict[str, tuple[int, ...]]] = [{"model.embed_tokens.weight": (vocabulary, hidden)}]
    for k in range(layers):
        at = f"model.layers.{k}."
        shards.append(
            {f"{at}self_attn.q_proj.weight": (hidden, hidden), f"{at}self_attn.k_proj.weight": (narrow, hidden),
             f"{at}self_attn.v_proj.weight": (narrow, hidden), f"{at}self_attn.o_proj.weight": (hidden, hidden),
             f"{at}mlp.gate_proj.weight": (inner, hidden), f"{at}mlp.up_proj.weight": (inner, hidden),
             f"{at}mlp.down_proj.weight": (hidden, inner), f"{at}input_layernorm.weight": (hidden,),
             f"{at}post_attention_layernorm.weight": (hidden,)}
        )  # fmt: skip
    shards.append({"model.norm.weight": (hidden,)} | ({} if tied else {"lm_head.weight": (vocabulary, hidden)}))
    return shards


def write(folder: Path, size: str, seed: int = 0) -> int:
    """Write the shards, their index and config.json; return the number of parameters."""
    hidden, layers, inner, heads, kv, vocabulary, tied = SIZES[size]
    folder.mkdir(parents=True, exist_ok=True)
    levels, shards, where, count = tables(), shapes(size), {}, 0
    for k, shard in enumerate(shards):
        name, rng = f"model-{k + 1:05}-of-{len(shards):05}.safetensors", np.random.default_rng([seed, k])
        header, at = {}, 0
        for tensor, shape in shard.items():
            n = int(np.prod(shape))
            header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * n]}
            at, count, where[tensor] = at + 2 * n, count + n, name
        text = json.dumps(header).encode()
        with open(folder / name, "wb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text)
            for shape in shard.values():
                if len(shape) == 1:
                    stream.write(rng.normal(1, ROWS, shape).astype(ml_dtypes.bfloat16).tobytes())
                else:
                    stream.writelines(matrix(shape[0], shape[1], rng, levels))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "vocab_size": vocabulary,
        "num_hidden_layers": layers, "intermediate_size": inner, "num_attention_heads": heads,
        "num_key_value_heads": kv, "tie_word_embeddings": tied, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="1b")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{given.folder}: {write(given.folder, given.size, given.seed):,} parameters")
