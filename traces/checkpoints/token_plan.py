"""What one decoded token reads of a checkpoint's tensors, and of the keys and values of its context.

Kinds and layers follow from the names that Hugging Face's models and GGUF give their tensors (Llama, Mistral, Qwen,
Gemma, Phi, GPT-2, GPT-NeoX, OPT, Mixtral and other mixtures of experts, BERT; Mamba and other recurrent layers, alone
or beside attention). A tensor whose name says nothing is of kind `other` and streamed whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traces.base.errors import InputError, shown
from traces.base.memory import claim
from traces.checkpoints.checkpoint import Checkpoint
from traces.readers.parts.layers import natural_key
from traces.readers.parts.weights import StoredTensor

UNREAD, KV_CACHE, OTHER = "unread", "kv cache", "other"
EMBEDDING, LM_HEAD, EXPERT, NORM = "embedding", "lm_head", "expert", "norm"
RECURRENT = "recurrent"
_KINDS: tuple[tuple[str, str], ...] = (
    (UNREAD, r"rotary_emb|position_ids$|masked_bias$|\.attn\.bias$|\.attention\.bias$|^mm\.|^v\.blk|"
             r"vision_(tower|model|encoder|adapter|language_adapter)|(^|\.)(visual|vpm|resampler|mtp)\.|patch_merger|"
             r"multi_modal_projector|audio_tower|embed_(vision|audio)"),
    (NORM, r"[nN]orm|(^|\.)ln(_\d|_f|_attn)?\."),
    ("router", r"router|\.gate\.|ffn_gate_inp|shared_expert_gate|exp_probs_b"),
    (EXPERT, r"(?<!shared_)experts\.|_exps\b|ffn_(gate|up|down)\.\d+\.|block_sparse_moe\.(in|out)put_linear"),
    (EMBEDDING, r"embed_tokens|embed_positions|tok_embeddings|wte\b|wpe\b|(word|position|token_type)_embeddings|"
                r"embed_in\b|token_embd\b|position_embd|token_types|(backbone|rwkv)\.embeddings?\."),
    (LM_HEAD, r"^lm_head|\.lm_head|embed_out|^(output|head)\.|(^|\.)output_layer\."),
    ("head", r"pooler|classifier|^score\.|^cls\."),
    (RECURRENT, r"mamba|linear_attn|(^|[._])ssm_?|mixer\.(in_proj|out_proj|x_proj|dt_proj|conv1d|A_log|D$|dt_bias)|"
                r"(\.|short)conv\.|time_mix|channel_mix|rwkv|recurrent"),
    ("attention qkv", r"qkv|c_attn|query_key_value|in_proj"),
    ("attention q", r"q_proj|q_[ab]_proj|\.query\b|attn_q(_[ab])?\b|q_lin|\bwq\b"),
    ("attention k", r"k_proj|\.key\b|attn_k(_b)?\b|k_lin|\bwk\b"),
    ("attention v", r"v_proj|\.value\b|attn_v(_b)?\b|v_lin|\bwv\b"),
    ("attention kv", r"kv_[ab]_proj|kv_a_mqa|attn_kv"),
    ("attention o", r"o_proj|out_proj|attn_output|attention\.(output\.)?dense|attn\.(c_proj|dense|o\b)|out_lin|\bwo\b"),
    ("mlp gate+up", r"gate_up_proj"),
    ("mlp gate", r"gate_proj|ffn_gate|\bw1\b"),
    ("mlp down", r"down_proj|mlp\.c_proj|fc2|output\.dense|dense_4h_to_h|ffn_down|\bw2\b|lin2|mlp\.Wo\b"),
    ("mlp up", r"up_proj|c_fc|fc1|intermediate\.dense|dense_h_to_4h|ffn_up|\bw3\b|lin1|mlp\.Wi\b"),
)  # fmt: skip
_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in _KINDS]
_LAYER = re.compile(r"(?:^|\.)(?:layers|layer|h|blk|blocks|block)\.(\d{1,6})\.")
_EXPERT = re.compile(r"(?:(?<!shared_)experts|ffn_(?:gate|up|down))\.(\d{1,6})\.")
_NO_HEAD = re.compile(r"position|type|wpe|per_layer")
_MAKES = re.compile(r"\.[kv]_proj\.weight$")
_TABLE = re.compile(r"position|wpe\b|embed_positions")
_ENCODERS = ("bert", "electra", "mpnet", "xlm", "nomic", "esm")
"""Parts of names of models whose layers read a whole text at once."""
_OTHERWISE = {
    "albert": "its layers share their tensors",
    **dict.fromkeys(("t5", "bart", "whisper", "marian", "pegasus", "m2m", "blenderbot"), "it encodes and decodes"),
}
"""Parts of names of models whose steps are neither a decoder's nor an encoder's, and why."""
_ALL_SLIDE = ("mistral", "ministral", "mixtral", "phi3", "phimoe", "phi4_multimodal", "starcoder2")
_LAST_IS_FULL = {
    "gemma2": 2, "vaultgemma": 2, "gpt_oss": 2, "cohere2": 4, "olmo2": 4, "olmo3": 4, "exaone4": 4, "gemma3n": 5,
    "gemma3": 6,
}  # fmt: skip
"""Family -> of so many layers in a row the last attends to the whole context, the others to a sliding window: defaults
of the configurations in transformers 5.24, and of llama.cpp (whose olmo2 is olmo3, too)."""
_FIRST_ARE_FULL = ("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen3")
"""Families whose layers slide from `max_window_layers` on."""
_ORDER = {kind: k for k, kind in enumerate((
    RECURRENT, "attention qkv", "attention q", "attention kv", "attention k", "attention v", "attention o", "router",
    EXPERT, "mlp gate+up", "mlp gate", "mlp up", "mlp down", NORM, OTHER,
))}  # fmt: skip
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1}
_MOST, _MOST_EXPERTS = 1 << 31, 1 << 16
_ROW_BYTES = 200  # of memory for a row that is looked up


@dataclass(frozen=True)
class TokenRead:
    """One tensor, or the keys and values of one layer, as a step moves it.

    rows: ranges [first, last) of the rows of the tensor as a matrix of `matrix` = (rows, columns): its first axis the
    rows, of stacked experts all but the last. kv_read, kv_written: bytes of keys and values, whose data is not known
    (tensor None).
    """

    name: str
    kind: str
    layer: int | None
    tensor: StoredTensor | None
    rows: tuple[tuple[int, int], ...] = ()
    matrix: tuple[int, int] = (0, 0)
    kv_read: int = 0
    kv_written: int = 0

    @property
    def stored_bytes(self) -> int:
        if self.tensor is None:
            return self.kv_read + self.kv_written
        each = (self.tensor.stop - self.tensor.start) // self.matrix[0] if self.matrix[0] else 0
        return each * sum(last - first for first, last in self.rows)


@dataclass(frozen=True)
class TokenPlan:
    """The reads of one step: tensors in the order in which the layers need them, then keys and values by layer.

    tokens: how many come out of the step (a decoder: the batch, an encoder: all of its texts). context: tokens of each
    text before it. decoder: whether the step is that of a decoder. notes: what was assumed.
    """

    reads: tuple[TokenRead, ...]
    tokens: int
    batch: int
    context: int
    decoder: bool
    notes: tuple[str, ...]


def plan_token(
    checkpoint: Checkpoint, *, context: int = 0, batch: int = 1, experts: int | None = None, kv_bits: int | None = None
) -> TokenPlan:
    """Return what a step that decodes one token of each of `batch` texts moves.

    context: tokens whose keys and values each text has. experts: distinct experts that a layer reads in the step
    (None: the configuration's for one text, their expected number under uniform routing for several). kv_bits: of a key
    or value (None: the configuration's type, else 16). An encoder (BERT) reads `batch` texts of max(1, context) tokens
    in one pass. Raises InputError for what contradicts the configuration.
    """
    _number(context, "context", 0)
    _number(batch, "batch", 1)
    return _Planner(checkpoint, context, batch, experts, kv_bits).plan()


def kind_of_tensor(name: str) -> str:
    return next((kind for kind, pattern in _PATTERNS if pattern.search(name)), OTHER)


def layer_of(name: str) -> int | None:
    found = _LAYER.search(name)
    return int(found[1]) if found else None


def _number(value: Any, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value < _MOST:
        raise InputError(f"{what}: {shown(value)} is not a whole number from {least} to {_MOST - 1}")
    return value


class _Planner:
    def __init__(
        self, checkpoint: Checkpoint, context: int, batch: int, experts: int | None, kv_bits: int | None
    ) -> None:
        self.checkpoint, self.context, self.batch, self.kv_bits = checkpoint, context, batch, kv_bits
        self.config, self.notes = checkpoint.config, list[str]()
        self.decoder = self._is_decoder()
        self.layers = self._of_config("num_hidden_layers", "n_layer", "num_layers", "n_layers")
        self.tokens = batch if self.decoder else batch * max(1, context)
        self.experts = count, read = self._experts(experts)
        self.chosen = {k * count // read: None for k in range(read)}  # ascending, and looked up at once

    def _of_config(self, *names: str) -> int | None:
        for name in names:
            value = self.config.get(name)
            if value is not None:
                return _number(value, f"{self.checkpoint.path}: {name} of the configuration")
        return None

    def _is_decoder(self) -> bool:
        if not self.config:
            if self.context or self.batch > 1 or self.kv_bits is not None:
                raise InputError(
                    f"{self.checkpoint.path}: context, batch and the bits of keys and values need the model's "
                    "configuration: put its config.json beside the tensors (without one they are streamed whole, once)"
                )
            self.notes.append("no configuration beside the tensors: all are streamed whole, once")
            return False
        own = str(self.config.get("model_type", "")).lower()
        why = next((why for part, why in _OTHERWISE.items() if part in own), "")
        if why or self.config.get("is_encoder_decoder") is True:
            why = why or "it encodes and decodes"
            known = "decoders and encoders like BERT are read"
            raise InputError(f"{self.checkpoint.path}: a step of {own or 'this model'} is not known: {why} ({known})")
        given = self.config.get("architectures")
        names = " ".join(map(str, given)) if isinstance(given, list) else ""
        if "ForCausalLM" in names or "LMHead" in names or "ForConditionalGeneration" in names:
            return True
        return not any(part in own for part in _ENCODERS)

    def _experts(self, given: int | None) -> tuple[int, int]:
        count = self._of_config("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
        if not count:
            numbers = [int(m[1]) for m in map(_EXPERT.search, self.checkpoint.tensors) if m]
            count = max(numbers) + 1 if numbers else 0
        if not count:
            if given is not None:
                raise InputError(f"{self.checkpoint.path}: experts={given}, but no layer has experts")
            return 0, 0
        if given is None:
            each = self._of_config("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k")
            if each is None:
                raise InputError(f"{self.checkpoint.path}: how many experts a token reads is not in its configuration: "
                                 "give `experts` (--experts)")  # fmt: skip
            _number(each, "experts of a token", 1)
            given = each if self.tokens == 1 else round(count * (1 - (1 - min(1, each / count)) ** self.tokens))
            if self.tokens > 1:
                self.notes.append(f"{self.tokens} tokens read {given} of {count} experts: expected, routing uniform")
        if not 1 <= given <= count <= _MOST_EXPERTS:
            raise InputError(f"{self.checkpoint.path}: experts={given}: a layer has 1 to {min(count, _MOST_EXPERTS)}")
        return count, given

    def plan(self) -> TokenPlan:
        before: list[TokenRead] = []
        inside: dict[int, list[TokenRead]] = {}
        behind: list[TokenRead] = []
        unread, others = [], []
        tensors = self.checkpoint.tensors
        tables = [n for n in tensors if kind_of_tensor(n) == EMBEDDING and not _NO_HEAD.search(n)]
        has_head = any(kind_of_tensor(name) == LM_HEAD for name in tensors)
        for name in sorted(tensors, key=natural_key):
            read = self._read(name, tensors[name])
            if read.kind == UNREAD or (read.layer or 0) >= (self.layers or _MOST):
                unread.append(name)
                continue
            if read.kind == OTHER:
                others.append(name)
            if read.rows:
                group = before if read.kind == EMBEDDING else behind if read.layer is None else None
                (inside.setdefault(read.layer or 0, []) if group is None else group).append(read)
        if self.decoder and not has_head and tables:
            for name in tables:
                matrix = _matrix(tensors[name])
                behind.append(TokenRead(name, LM_HEAD, None, tensors[name], _whole(matrix), matrix))
            self.notes.append(f"the embedding {tables[0]!r} is the output layer, too: read whole once, and by rows")
        caches = self._caches(inside)
        self._compare(inside)
        for reads in inside.values():
            reads.sort(key=lambda read: (_ORDER.get(read.kind, len(_ORDER)), natural_key(read.name)))
        behind.sort(key=lambda read: read.kind == LM_HEAD)
        self._say(unread, "not read by a token")
        self._say(others, "of unknown use, streamed whole")
        layers = [read for layer in sorted(inside) for read in inside[layer]]
        return TokenPlan(
            (*before, *layers, *behind, *caches), self.tokens, self.batch, self.context, self.decoder, tuple(self.notes)
        )

    def _say(self, names: Sequence[str], what: str) -> None:
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            tensors = "tensors" if len(names) > 1 else "tensor"
            self.notes.append(f"{len(names)} {tensors} {what}: {', '.join(names[:3])}{more}")

    def _read(self, name: str, tensor: StoredTensor) -> TokenRead:
        kind, layer = kind_of_tensor(name), layer_of(name)
        matrix = _matrix(tensor, stacked=kind == EXPERT)
        rows = _whole(matrix)
        if kind == EXPERT:
            rows = self._rows_of_experts(name, tensor, matrix)
        elif kind == EMBEDDING and self.config and len(tensor.shape) == 2:
            rows = self._rows_of_tokens(name, matrix[0])
        return TokenRead(name, kind, layer, tensor, rows, matrix)

    def _rows_of_experts(self, name: str, tensor: StoredTensor, matrix: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        count, _ = self.experts
        if not count:
            if self.config:
                raise InputError(f"{self.checkpoint.path}: the configuration does not say how many experts a layer has")
            return _whole(matrix)
        if (numbered := _EXPERT.search(name)) is not None:
            return _whole(matrix) if int(numbered[1]) in self.chosen else ()
        if not tensor.shape or tensor.shape[0] != count or matrix[0] % count:
            raise InputError(
                f"{tensor.file}: tensor {name!r} of shape {list(tensor.shape)} does not hold {count} experts"
            )
        each = matrix[0] // count
        return tuple((k * each, (k + 1) * each) for k in self.chosen)

    def _rows_of_tokens(self, name: str, rows: int) -> tuple[tuple[int, int], ...]:
        """Return the rows that a step looks up. Which tokens they are is not known: they are spread over the table."""
        if not rows:
            return ()
        if "type" in name:
            return ((0, 1),)
        if _TABLE.search(name):
            last = self.context if self.decoder else max(1, self.context) - 1
            most = rows - 2 if self.config.get("model_type") == "opt" else rows  # OPT's positions begin at 2
            if last >= most:
                raise InputError(f"context {self.context}: the model has {most} positions (tensor {name!r})")
            return ((last, last + 1),) if self.decoder else ((0, last + 1),)
        if self.tokens >= rows:
            return ((0, rows),)
        claim(_ROW_BYTES * self.tokens, "the tokens of a step", f"{self.tokens} rows of {name!r}")
        return _joined([k * rows // self.tokens for k in range(self.tokens)])

    def _caches(self, inside: Mapping[int, Sequence[TokenRead]]) -> list[TokenRead]:
        """Return the keys and values of each layer, which lie behind all tensors: those read, then those written."""
        caches, new = list[TokenRead](), list[TokenRead]()
        recurrent = sum(any(read.kind == RECURRENT for read in reads) for reads in inside.values())
        if recurrent and self.decoder:
            self.notes.append(f"the state that {recurrent} recurrent layer(s) read and write is not counted")
        own = (self.layers or _MOST) - (self._of_config("num_kv_shared_layers") or 0)  # later ones read another's
        for layer, reads in sorted(inside.items()) if self.decoder else ():
            if any(read.kind.startswith("attention") for read in reads):
                each = self._kv_bytes(layer)
                read, written = self.batch * self._seen(layer) * each, self.batch * each
                name = f"layer {layer}: keys and values"
                if layer < own:
                    new.append(TokenRead(f"{name}, new", KV_CACHE, layer, None, kv_written=written))
                if read:
                    caches.append(TokenRead(name, KV_CACHE, layer, None, kv_read=read))
        return caches + new

    def _compare(self, inside: Mapping[int, Sequence[TokenRead]]) -> None:
        positions = self._of_config("max_position_embeddings")
        if positions and self.context >= positions:
            self.notes.append(f"a context of {self.context} tokens: the configuration has {positions} positions")
        if self.layers is not None and 0 < len(inside) < self.layers:
            self.notes.append(f"the configuration has {self.layers} layers, the tensors are of {len(inside)}")
        for layer, reads in sorted(inside.items()) if self.decoder and not self._of_config("kv_lora_rank") else ():
            made = sum(read.matrix[0] for read in reads if _MAKES.search(read.name) and _is_float(read.tensor))
            if made and made != self._kv_values(layer):
                self.notes.append(
                    f"layer {layer} makes {made} keys and values of a token; by its configuration, as counted, "
                    f"they are {self._kv_values(layer)}"
                )
                return

    def _seen(self, layer: int) -> int:
        """Return the tokens before this one that a layer attends to; a window's last token is this one."""
        chunk = self._of_config("attention_chunk_size")
        if chunk and self._chunked(layer):
            return self.context % chunk
        window = self._of_config("sliding_window")
        return min(self.context, window - 1) if window and self._slides(layer, window) else self.context

    def _chunked(self, layer: int) -> bool:
        """Return whether a layer attends to its chunk of the context alone: Llama 4's, but for every fourth."""
        for flags in map(self.config.get, ("layer_types", "no_rope_layers")):  # no_rope_layers: 1 has rotary positions
            if isinstance(flags, list) and layer < len(flags):
                return "chunked" in flags[layer] if isinstance(flags[layer], str) else bool(flags[layer])
        return (layer + 1) % 4 != 0

    def _slides(self, layer: int, window: int) -> bool:
        """Return whether a layer attends to the window alone: as the configuration says, else as its family does."""
        family = str(self.config.get("model_type")).replace("-", "_").removesuffix("_text")
        if not self.config.get("use_sliding_window", not family.startswith("qwen")):
            return False
        for flags in map(self.config.get, ("layer_types", "sliding_window_pattern")):  # GGUF's pattern: 1 slides
            if isinstance(flags, list) and layer < len(flags):
                return "sliding" in flags[layer] if isinstance(flags[layer], str) else bool(flags[layer])
        every = self.config.get("sliding_window_pattern") or _LAST_IS_FULL.get(family)
        if isinstance(every, int):
            return (layer + 1) % _number(every, f"{self.checkpoint.path}: sliding_window_pattern", 1) != 0
        first = self._of_config("max_window_layers") if family in _FIRST_ARE_FULL else None
        if first is not None or family in _ALL_SLIDE:
            return layer >= (first or 0)
        note = (
            f"which layers slide over the window of {window} tokens is not known of this model: keys and values of the "
            "whole context are read in all"
        )
        if self.context > window and note not in self.notes:
            self.notes.append(note)
        return False

    def _kv_bytes(self, layer: int) -> int:
        where = f"{self.checkpoint.path}: the configuration"
        bits = self.kv_bits
        if bits is None:
            dtype = str(self.config.get("torch_dtype") or self.config.get("dtype") or "float16").removeprefix("torch.")
            if dtype not in _BYTES:
                raise InputError(
                    f"{where} has values of type {shown(dtype)}: give the bits of keys and values (--kv-bits)"
                )
            bits = 8 * _BYTES[dtype]
        if bits not in (4, 8, 16, 32):
            raise InputError(f"kv_bits: {bits}: keys and values take 4, 8, 16 or 32 bits each")
        return -(-self._kv_values(layer) * bits // 8)

    def _kv_values(self, layer: int) -> int:
        latent = self._of_config("kv_lora_rank")  # DeepSeek's latent attention keeps one vector and the rotated key
        if latent:
            return latent + (self._of_config("qk_rope_head_dim") or 0)
        heads = self._of_config("num_attention_heads", "n_head", "n_heads", "num_heads")
        hidden = self._of_config("hidden_size", "n_embd", "d_model", "dim")
        groups = self._kv_heads(layer)
        if not heads or not hidden:
            raise InputError(
                f"{self.checkpoint.path}: the configuration does not say how many attention heads there are, or how "
                "wide they are"
            )
        head = self._of_config("head_dim", "kv_channels") or hidden // heads
        return (heads if groups is None else groups) * (head + (self._of_config("v_head_dim") or head))

    def _kv_heads(self, layer: int) -> int | None:
        given = self.config.get("num_key_value_heads")
        if isinstance(given, list):  # GGUF's of models whose layers differ
            if layer >= len(given):
                raise InputError(f"{self.checkpoint.path}: key and value heads of {len(given)} layers, none of {layer}")
            return _number(given[layer], f"{self.checkpoint.path}: key and value heads")
        if self.config.get("multi_query") is True and self.config.get("new_decoder_architecture") is not True:
            return 1
        if self.config.get("multi_query_attention") is True:  # ChatGLM's
            return self._of_config("multi_query_group_num")
        return self._of_config("num_key_value_heads", "num_kv_heads")  # num_kv_heads: Falcon's


def _matrix(tensor: StoredTensor, *, stacked: bool = False) -> tuple[int, int]:
    """Return rows (outputs; stacked: of all matrices) and columns of a tensor; one row if they are not whole bytes."""
    rows = math.prod(tensor.shape[:-1] if stacked else tensor.shape[:1])
    n_bytes = tensor.stop - tensor.start
    if not rows or not n_bytes or len(tensor.shape) < 2 or n_bytes % rows:
        rows = 1
    return rows, math.prod(tensor.shape) // rows


def _is_float(tensor: StoredTensor | None) -> bool:
    """Whether a tensor has a row for each output: packed ones, of integers, may not."""
    return tensor is not None and tensor.kind.lower().startswith(("f", "bf"))


def _whole(matrix: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return ((0, matrix[0]),)


def _joined(rows: Sequence[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row:
            ranges[-1] = (ranges[-1][0], row + 1)
        else:
            ranges.append((row, row + 1))
    return tuple(ranges)


def layer_group(layer: int | None, layers: int) -> str:
    if layer is None:
        return "before and after"
    size = max(1, -(-layers // 8))
    first = layer // size * size
    last = min(first + size, layers) - 1
    return f"layer {first}" if first == last else f"layers {first} to {last}"
