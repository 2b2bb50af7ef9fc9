"""A checkpoint: safetensors shards with config.json beside them, or GGUF files, which have both in one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.base.errors import InputError, brief
from traces.base.memory import read_within
from traces.checkpoints.gguf import read_gguf
from traces.readers.parts.layers import natural_key
from traces.readers.parts.weights import ModelWeights, StoredTensor

_PARSED = 32  # bytes of memory for one of a JSON file


@dataclass(frozen=True)
class Checkpoint:
    """tensors: by name, as they are stored. config: keys of Hugging Face's config.json; empty where there is none."""

    path: Path
    tensors: Mapping[str, StoredTensor]
    config: Mapping[str, Any]


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Return the checkpoint in a folder or file; its data is read later, piece by piece."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    files = sorted(path.glob("*.gguf"), key=lambda file: natural_key(file.name)) if path.is_dir() else [path]
    if any(path.glob("*.safetensors")) if path.is_dir() else path.suffix.lower() != ".gguf":
        weights = ModelWeights(path)
        return Checkpoint(path, weights.tensors, _config(weights.folder / "config.json"))
    if not files:
        raise InputError(f"{path}: holds no .safetensors and no .gguf file")
    tensors: dict[str, StoredTensor] = {}
    config: dict[str, Any] = {}
    for file in files:
        own, its_config = read_gguf(file)
        for name, tensor in own.items():
            if name in tensors:
                raise InputError(f"{file}: tensor {name!r} is also in {tensors[name].file.name}: name one file")
            tensors[name] = tensor
        config = its_config | config  # the first of a split file has it all
    return Checkpoint(path, tensors, config)


def _config(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        config = json.loads(read_within(file, _PARSED))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read as JSON ({brief(error)})") from error
    if not isinstance(config, dict):
        raise InputError(f"{file}: no configuration of a model: a JSON object is wanted")
    text = config.get("text_config")
    return config | text if isinstance(text, dict) else config
