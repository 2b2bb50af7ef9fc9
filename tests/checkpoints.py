"""Small checkpoints of language models for tests."""

import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

RNG = np.random.default_rng(7)
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "torch_dtype": "bfloat16",
}  # fmt: skip


def weights(*shape: int, dtype: Any = ml_dtypes.bfloat16) -> np.ndarray:
    return RNG.normal(0, 0.02, shape).astype(dtype)


def llama(folder: Path, config: dict[str, Any] | None = None, *, head: bool = True, **more: np.ndarray) -> Path:
    tensors = {"model.embed_tokens.weight": weights(32, 16), "model.norm.weight": weights(16)}
    for k in range(2):
        at = f"model.layers.{k}"
        tensors |= {f"{at}.self_attn.{n}_proj.weight": weights(16 if n in "qo" else 8, 16) for n in "qkvo"}
        tensors |= {f"{at}.mlp.{n}_proj.weight": weights(24, 16) for n in ("gate", "up")}
        tensors |= {f"{at}.mlp.down_proj.weight": weights(16, 24), f"{at}.input_layernorm.weight": weights(16)}
    if head:
        tensors["lm_head.weight"] = weights(32, 16)
    folder.mkdir(exist_ok=True)
    save_file({**tensors, **more}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(LLAMA if config is None else config))
    return folder


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(
    tensors: dict[str, tuple[int, tuple[int, ...], bytes]], metadata: dict[str, bytes] | None = None, version: int = 3
) -> bytes:
    """Return a file of NAME: (type, shape with rows first, bytes) and KEY: bytes of type and value."""
    values = metadata or {"general.architecture": struct.pack("<I", 8) + text("llama")}
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    out += b"".join(text(key) + value for key, value in values.items())
    body = b""
    for name, (kind, shape, data) in tensors.items():
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        out += struct.pack("<IQ", kind, len(body))
        body += data + bytes(-len(data) % 32)
    return out + bytes(-len(out) % 32) + body
