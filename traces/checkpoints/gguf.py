"""GGUF files (ggml's): tensors where they lie, and the metadata under the names of Hugging Face's config.json.

After github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian. Quantised blocks are not
opened: they are streamed as they are stored.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO, Any

from traces.base.errors import InputError
from traces.base.memory import claim
from traces.readers.parts.weights import StoredTensor, check_no_overlap

# ggml's types: number -> (name, values of a block, its bytes), from GGML_QUANT_SIZES of the package gguf
_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_KEY = 1 << 16  # bytes of a key, as the format has it
_KEPT = 4096  # numbers of an array that are kept; vocabularies are passed over
_NAME = 256  # bytes of a tensor's name: ggml takes 63
_TENSOR_BYTES = 24  # at least, of a tensor's entry
_TAKEN = 512 + 4 * _NAME  # bytes of memory for a tensor at most
_MOST_VALUES, _MOST_TEXTS = 1 << 16, 1 << 22  # of the metadata, and in one of them: all are walked over
_MOST_KEPT = 32  # values of the metadata: those of one architecture are fewer
_NAMES = {
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "v_head_dim",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.chunk_size": "attention_chunk_size",
    "attention.sliding_window": "sliding_window",
    "attention.sliding_window_pattern": "sliding_window_pattern",
    "embedding_length": "hidden_size",
    "rope.dimension_count": "qk_rope_head_dim",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
}
"""Key behind the architecture's name -> key of config.json."""
_GENERAL = ("general.architecture", "general.alignment")


class _Header:
    def __init__(self, stream: IO[bytes], file: Path, total: int) -> None:
        self.stream, self.file, self.total = stream, file, total

    def take(self, count: int) -> bytes:
        if count > self.total - self.stream.tell():
            raise InputError(f"{self.file}: ends inside its header: damaged or not a GGUF file")
        return self.stream.read(count)

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(code)))[0]

    def string(self, longest: int) -> str:
        length = self.number("Q")
        if length > longest:
            raise InputError(f"{self.file}: a text of {length} bytes in its header: damaged")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int, kept: bool) -> Any:
        if kind == _STRING:
            return self.string(_NAME) if kept else self.skip(self.number("Q"))
        if kind != _ARRAY:
            return self.number(self.code(kind))
        of, count = self.number("I"), self.number("Q")
        if of == _STRING:
            if count > _MOST_TEXTS:
                raise InputError(f"{self.file}: a list of {count} texts in its header: damaged")
            for _ in range(count):  # ends where the file does
                self.skip(self.number("Q"))
            return None
        code = self.code(of)
        size = struct.calcsize(code)
        if count > _KEPT or not kept:
            self.skip(count * size)
            return None
        return list(struct.unpack(f"<{count}{code}", self.take(count * size)))

    def skip(self, count: int) -> None:
        if count > self.total - self.stream.tell():
            raise InputError(f"{self.file}: ends inside its header: damaged or not a GGUF file")
        self.stream.seek(count, 1)

    def code(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise InputError(f"{self.file}: metadata of the unknown type {kind}: damaged or a newer GGUF")
        return _SCALARS[kind]


def read_gguf(file: Path) -> tuple[dict[str, StoredTensor], dict[str, Any]]:
    """Return (tensors by name, configuration) of a file, checked against its length; shapes are NumPy's, rows first."""
    if not file.is_file():
        raise InputError(f"{file}: {'no regular file' if file.exists() else 'no such file'}")
    try:
        with open(file, "rb") as stream:
            total = stream.seek(0, 2)
            stream.seek(0)
            return _read(_Header(stream, file, total))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error


def _read(header: _Header) -> tuple[dict[str, StoredTensor], dict[str, Any]]:
    file = header.file
    if header.take(4) != b"GGUF":
        raise InputError(f"{file}: no GGUF file")
    version, n_tensors, n_values = header.number("I"), header.number("Q"), header.number("Q")
    if version not in (2, 3):
        raise InputError(f"{file}: GGUF version {version}: 2 and 3 are read, little-endian")
    if n_tensors * _TENSOR_BYTES > header.total or n_values > _MOST_VALUES:
        raise InputError(f"{file}: claims {n_tensors} tensors and {n_values} values, more than fit: damaged")
    claim(_TAKEN * n_tensors, str(file), f"{n_tensors} tensors")
    metadata: dict[str, Any] = {}
    for _ in range(n_values):
        key = header.string(_KEY)
        kept = key in _GENERAL or key.partition(".")[2] in _NAMES
        value = header.value(header.number("I"), kept)
        if kept:
            metadata[key] = value
        if len(metadata) > _MOST_KEPT:
            raise InputError(f"{file}: describes several models: damaged")
    entries = []
    for _ in range(n_tensors):
        name, n_dimensions = header.string(_NAME), header.number("I")
        if n_dimensions > 8:
            raise InputError(f"{file}: tensor {name!r} has {n_dimensions} dimensions: damaged")
        shape = tuple(header.number("Q") for _ in range(n_dimensions))[::-1]
        entries.append((name, shape, header.number("I"), header.number("Q")))
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 8 <= alignment <= 1 << 20 or alignment % 8:
        raise InputError(f"{file}: an alignment of {str(alignment)[:40]} bytes: damaged")
    begin = -(-header.stream.tell() // alignment) * alignment
    tensors: dict[str, StoredTensor] = {}
    for name, shape, number, at in entries:
        if number not in _TYPES:
            raise InputError(f"{file}: tensor {name!r} is of the unknown type {number}")
        kind, values, size = _TYPES[number]
        if shape and shape[-1] % values:
            raise InputError(f"{file}: rows of {shape[-1]} values of tensor {name!r} are not whole blocks of {values}")
        start = begin + at
        stop = start + math.prod(shape) // values * size
        if at % alignment or stop > header.total:
            raise InputError(f"{file}: the place of tensor {name!r} does not fit its shape or the file: damaged")
        if name in tensors:
            raise InputError(f"{file}: has two tensors {name!r}: damaged")
        tensors[name] = StoredTensor(file, name, kind, shape, start, stop)
    check_no_overlap(tensors.values(), file)
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        return tensors, {}
    own = {to: metadata.get(f"{architecture}.{key}") for key, to in _NAMES.items()}
    return tensors, {"model_type": architecture} | {key: value for key, value in own.items() if value is not None}
