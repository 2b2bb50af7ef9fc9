"""What a token reads of a checkpoint, by name and configuration; GGUF files; formats, chunk by chunk."""

import json
import math
import struct
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from checkpoints import LLAMA, gguf, llama, text, weights
from safetensors.numpy import save_file

from traces.base.errors import InputError
from traces.checkpoints import TensorStream, plan_token, read_checkpoint
from traces.checkpoints import stream as streams
from traces.checkpoints.checkpoint import Checkpoint
from traces.checkpoints.stream import StreamFormat, converted
from traces.checkpoints.token_plan import TokenPlan, kind_of_tensor, layer_group
from traces.readers.parts.weights import StoredTensor


def by_kind(folder: Path, **options: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for read in plan_token(read_checkpoint(folder), **options).reads:
        sums[read.kind] = sums.get(read.kind, 0) + read.stored_bytes
    return sums


@pytest.mark.parametrize("options", [{"context": 10}, {"batch": 2}, {"kv_bits": 8}])
def test_without_a_configuration_all_tensors_are_one_pass(tmp_path, options):
    save_file({"w": np.zeros((4, 8), np.float32)}, tmp_path / "model.safetensors")
    plan = plan_token(read_checkpoint(tmp_path))
    assert plan.tokens == 1 and sum(read.stored_bytes for read in plan.reads) == 128
    with pytest.raises(InputError, match=r"put its config\.json beside the tensors"):
        plan_token(read_checkpoint(tmp_path), **options)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.layers.3.self_attn.q_proj.weight", "attention q"),
        ("model.layers.3.self_attn.qkv_proj.weight_packed", "attention qkv"),
        ("model.layers.3.mlp.gate_up_proj.weight", "mlp gate+up"),
        ("model.layers.3.block_sparse_moe.gate.weight", "router"),
        ("model.layers.3.block_sparse_moe.experts.7.w2.weight", "expert"),
        ("model.layers.3.mlp.shared_expert.down_proj.weight", "mlp down"),
        ("model.layers.3.mlp.shared_experts.gate_proj.weight", "mlp gate"),
        ("model.layers.3.post_attention_layernorm.weight", "norm"),
        ("transformer.h.0.attn.c_attn.weight", "attention qkv"),
        ("h.0.attn.c_proj.bias", "attention o"),
        ("h.0.attn.bias", "unread"),
        ("h.0.mlp.c_proj.weight", "mlp down"),
        ("gpt_neox.layers.1.attention.dense.weight", "attention o"),
        ("gpt_neox.layers.1.mlp.dense_4h_to_h.weight", "mlp down"),
        ("encoder.layer.0.attention.self.value.weight", "attention v"),
        ("encoder.layer.0.attention.output.dense.weight", "attention o"),
        ("encoder.layer.0.output.dense.weight", "mlp down"),
        ("encoder.layer.0.attention.output.LayerNorm.bias", "norm"),
        ("blk.0.attn_k.weight", "attention k"),
        ("blk.0.ffn_down_exps.weight", "expert"),
        ("blk.0.ffn_gate_inp.weight", "router"),
        ("token_embd.weight", "embedding"),
        ("output.weight", "lm_head"),
        ("output_norm.weight", "norm"),
        ("model.layers.0.self_attn.dense.weight", "attention o"),
        ("backbone.embeddings.weight", "embedding"),
        ("head.weight", "lm_head"),
        ("strange", "other"),
    ],
)
def test_kind_of_a_tensor_is_in_its_name(name: str, kind: str) -> None:
    assert kind_of_tensor(name) == kind


def test_a_token_reads_all_layers_and_one_row(tmp_path: Path) -> None:
    sums = by_kind(llama(tmp_path / "m"), context=10)
    assert sums["embedding"] == 32
    assert sums["lm_head"] == 32 * 16 * 2
    assert sums["attention q"] == 2 * 16 * 16 * 2
    assert sums["mlp gate"] == 2 * 24 * 16 * 2
    assert (
        sums["kv cache"] == 2 * (10 + 1) * 2 * 2 * 4 * 2
    )  # layers, context and the new one, K and V, heads, width, bytes


@pytest.mark.parametrize(
    ("key", "value", "note"),
    [
        (
            "hidden_size",
            32,
            "layer 0 makes 16 keys and values of a token; by its configuration, as counted, they",
        ),
        ("num_key_value_heads", 4, "layer 0 makes 16 keys"),
        ("num_hidden_layers", 7, "the configuration has 7 layers, the tensors are of 2"),
        ("num_hidden_layers", 2, ""),
    ],
)
def test_a_configuration_that_tensors_contradict_is_noted(tmp_path: Path, key: str, value: int, note: str) -> None:
    """A part of the shards alone, or the configuration of another model, was counted in silence."""
    plan = plan_token(read_checkpoint(llama(tmp_path / "m", {**LLAMA, key: value})), context=10)
    assert any(each.startswith(note) for each in plan.notes) if note else not plan.notes


def test_tied_embedding_is_read_whole_once(tmp_path: Path) -> None:
    plan = plan_token(read_checkpoint(llama(tmp_path / "m", head=False)), batch=4)
    heads = [read for read in plan.reads if read.kind == "lm_head"]
    assert [read.stored_bytes for read in heads] == [32 * 16 * 2]
    assert [read.kind for read in plan.reads[-3:]] == ["lm_head", "kv cache", "kv cache"]
    assert sum(read.stored_bytes for read in plan.reads if read.kind == "embedding") == 4 * 32
    assert any("output layer" in note for note in plan.notes)


def test_experts_follow_the_configuration_or_a_count(tmp_path: Path) -> None:
    config = {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 1}
    more = {f"model.layers.0.block_sparse_moe.experts.{k}.w1.weight": weights(8, 16) for k in range(4)}
    more["model.layers.1.mlp.experts.gate_up_proj"] = weights(4, 6, 16)
    folder = llama(tmp_path / "m", config, **more)
    one = 8 * 16 * 2 + 6 * 16 * 2
    assert by_kind(folder)["expert"] == one
    assert by_kind(folder, experts=3)["expert"] == 3 * one
    assert by_kind(folder, batch=2)["expert"] == 2 * one  # 4 (1 - (3/4)^2) = 1.75
    with pytest.raises(InputError, match="1 to 4"):
        by_kind(folder, experts=5)


def test_sliding_layers_look_at_their_window(tmp_path: Path) -> None:
    config = {**LLAMA, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
    assert by_kind(llama(tmp_path / "m", config), context=10)["kv cache"] == (3 + 1 + 10 + 1) * 32


@pytest.mark.parametrize(
    ("layers", "of_family", "read"),  # at a context of 100, a window of 50, this token in it: the sums of both, by hand
    [
        (4, {"model_type": "gemma2"}, 2 * 100 + 2 * 49),
        (6, {"model_type": "gemma3_text", "sliding_window_pattern": 6}, 100 + 5 * 49),
        (6, {"model_type": "gemma3"}, 100 + 5 * 49),
        (5, {"model_type": "gemma3n_text"}, 100 + 4 * 49),
        (4, {"model_type": "cohere2", "sliding_window_pattern": 4}, 100 + 3 * 49),
        (4, {"model_type": "cohere2", "sliding_window_pattern": 2}, 2 * 100 + 2 * 49),
        (4, {"model_type": "gpt_oss"}, 2 * 100 + 2 * 49),
        (4, {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 3}, 3 * 100 + 49),
        (4, {"model_type": "qwen2", "use_sliding_window": False, "max_window_layers": 3}, 4 * 100),
        (4, {"model_type": "qwen2", "max_window_layers": 3}, 4 * 100),
        (4, {"model_type": "mistral"}, 4 * 49),
        (4, {"model_type": "phi3"}, 4 * 49),
        (4, {"model_type": "gemma2", "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}, 3 * 100 + 49),
        (4, {"model_type": "gemma2", "sliding_window": None}, 4 * 100),
    ],
)
def test_layers_slide_as_their_family_has_it(layers: int, of_family: dict[str, Any], read: int) -> None:
    """Without `layer_types` every layer was counted at the window, of all families."""
    assert kv_bytes(layers, of_family) == 128 * (read + layers)


def kv_bytes(layers: int, of_family: dict[str, Any], note: str = "") -> int:
    """Return the bytes of keys and values at a context of 100: 2 heads of 16 values of 2 bytes of each, 128 a token."""
    config = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 50, **of_family}
    names = [f"model.layers.{k}.self_attn.qkv_proj.weight" for k in range(layers)]
    tensors = {name: StoredTensor(Path("m"), name, "F16", (64, 64), 0, 8192) for name in names}
    plan = plan_token(Checkpoint(Path("m"), tensors, config), context=100)
    assert any(each.startswith(note) for each in plan.notes) if note else not plan.notes
    return sum(read.kv_read + read.kv_written for read in plan.reads)


@pytest.mark.parametrize(
    "of_family", [{}, {"model_type": "new"}, {"model_type": "exaone4", "sliding_window_pattern": "LG"}]
)
def test_a_window_of_an_unknown_family_is_noted(of_family: dict[str, Any]) -> None:
    assert kv_bytes(4, of_family, "which layers slide over the window of 50 tokens is not known") == 128 * 4 * 101


@pytest.mark.parametrize(
    ("of_family", "heads"),
    [
        ({"multi_query": True}, 1),
        ({"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 2}, 2),
        ({"multi_query": True, "new_decoder_architecture": True}, 4),
        ({"multi_query": False, "num_kv_heads": 2}, 2),
    ],
)
def test_falcon_has_one_head_of_keys_and_values_or_says_how_many(of_family: dict[str, Any], heads: int) -> None:
    """Those of Falcon 40B were counted as one."""
    given = {"num_key_value_heads": None, "sliding_window": None, "model_type": "falcon", **of_family}
    assert kv_bytes(2, given) == 2 * 101 * heads * 2 * 16 * 2


def test_chatglm_says_how_many_groups_share_keys_and_values() -> None:
    config = {"num_key_value_heads": None, "sliding_window": None, "multi_query_attention": True}
    assert kv_bytes(2, config | {"multi_query_group_num": 2}) == 2 * 101 * 2 * 2 * 16 * 2


@pytest.mark.parametrize(
    ("config", "read"),  # at a context of 100
    [
        ({"layer_types": ["chunked_attention"] * 3 + ["full_attention"]}, 3 * 36 + 100),
        ({"no_rope_layers": [1, 0, 1, 1]}, 3 * 36 + 100),
        ({}, 3 * 36 + 100),
    ],
)
def test_a_chunked_layer_looks_at_its_chunk(config: dict[str, Any], read: int) -> None:
    """Llama 4's: 64 tokens are in the chunk before."""
    assert kv_bytes(4, {"sliding_window": None, "attention_chunk_size": 64, **config}) == 128 * (read + 4)


def planned(names: dict[str, tuple[int, ...]], **config: Any) -> TokenPlan:
    tensors = {n: StoredTensor(Path("m"), n, "F16", shape, 0, 2 * math.prod(shape)) for n, shape in names.items()}
    config = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2} | config
    return plan_token(Checkpoint(Path("m"), tensors, config), context=100)


def of_kind(plan: TokenPlan, kind: str) -> int:
    return sum(read.stored_bytes for read in plan.reads if read.kind == kind)


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.mamba.in_proj.weight",
        "backbone.layers.0.mixer.out_proj.weight",
        "model.layers.0.linear_attn.in_proj_qkvz.weight",
        "model.layers.0.conv.in_proj.weight",
        "blk.0.ssm_in.weight",
        "blk.0.shortconv.in_proj.weight",
        "rwkv.blocks.0.attention.key.weight",
    ],
)
def test_recurrent_layers_have_no_keys_and_values(name: str) -> None:
    """Jamba, Mamba 2, Qwen 3 Next, LFM 2, RWKV; every layer was given keys and values."""
    layer = "blk.1.attn_k.weight" if name.startswith("blk") else "model.layers.1.self_attn.k_proj.weight"
    plan = planned({name: (64, 64), layer: (64, 64)})
    assert of_kind(plan, "kv cache") == 101 * 128 and of_kind(plan, "recurrent") == 2 * 64 * 64
    assert "the state that 1 recurrent layer(s) read and write is not counted" in plan.notes
    assert of_kind(planned({name: (64, 64)}, num_attention_heads=None), "kv cache") == 0


def test_layers_that_share_keys_and_values_write_none() -> None:
    """Gemma 3n's last layers; its table of embeddings a layer is no output layer either."""
    names = {f"model.layers.{k}.self_attn.qkv_proj.weight": (64, 64) for k in range(4)}
    tables = {"model.embed_tokens.weight": (50, 64), "model.embed_tokens_per_layer.weight": (50, 256)}
    plan = planned(names | tables, num_hidden_layers=4, num_kv_shared_layers=2)
    assert of_kind(plan, "kv cache") == 128 * (4 * 100 + 2)
    assert of_kind(plan, "lm_head") == 50 * 64 * 2 and of_kind(plan, "embedding") == 2 * (64 + 256)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"model_type": "mt5"}, "a step of mt5 is not known: it encodes and decodes"),
        ({"model_type": "new", "is_encoder_decoder": True}, "a step of new is not known: it encodes and decodes"),
        ({"model_type": "albert"}, "a step of albert is not known: its layers share their tensors"),
    ],
)
def test_a_model_whose_step_is_not_known_is_refused(config: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        planned({"encoder.layers.0.self_attn.k_proj.weight": (64, 64)}, **config)


def test_experts_of_old_files_are_experts() -> None:
    """Mixtral's first GGUFs have a tensor for each; all eight were read. Granite stacks its experts."""
    shapes = {f"blk.0.ffn_{n}.{e}.weight": (32, 64) for n in ("gate", "up", "down") for e in range(8)}
    assert of_kind(planned(shapes, num_experts_per_tok=2), "expert") == 2 * 3 * 32 * 64 * 2
    stacked = {f"model.layers.0.block_sparse_moe.{n}put_linear.weight": (8, 32, 64) for n in ("in", "out")}
    assert of_kind(planned(stacked, num_local_experts=8, num_experts_per_tok=2), "expert") == 2 * 2 * 32 * 64 * 2


def test_latent_keys_of_a_gguf_are_those_of_its_configuration(tmp_path: Path) -> None:
    numbers = {"attention.kv_lora_rank": 512, "rope.dimension_count": 64, "attention.key_length": 576}
    numbers |= {"attention.value_length": 512, "attention.head_count": 4, "attention.head_count_kv": 1}
    metadata = {"general.architecture": struct.pack("<I", 8) + text("deepseek2")}
    metadata |= {f"deepseek2.{key}": struct.pack("<II", 4, value) for key, value in numbers.items()}
    metadata["deepseek2.embedding_length"] = struct.pack("<II", 4, 64)
    tensors = {"blk.0.attn_kv_a_mqa.weight": (1, (576, 64), bytes(2 * 576 * 64))}
    (tmp_path / "m.gguf").write_bytes(gguf(tensors, metadata))
    plan = plan_token(read_checkpoint(tmp_path / "m.gguf"), context=9)
    assert of_kind(plan, "kv cache") == 10 * 576 * 2


def test_packed_and_joined_keys_say_nothing_about_their_number() -> None:
    names = {f"model.layers.0.self_attn.{n}_proj.weight": (16, 64) for n in "kv"}
    tensors = {n: StoredTensor(Path("m"), n, "U8", shape, 0, math.prod(shape)) for n, shape in names.items()}
    config = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    assert not plan_token(Checkpoint(Path("m"), tensors, config)).notes
    assert not planned({"model.layers.0.self_attn.qkv_proj.weight": (128, 64)}).notes


def test_a_context_beyond_the_positions_of_a_model_is_noted() -> None:
    names = {"model.layers.0.self_attn.qkv_proj.weight": (64, 64)}
    assert not planned(names, max_position_embeddings=101).notes
    assert planned(names, max_position_embeddings=100).notes == (
        "a context of 100 tokens: the configuration has 100 positions",
    )
    table = {"model.decoder.embed_positions.weight": (102, 64)}
    with pytest.raises(InputError, match="the model has 100 positions"):
        planned(names | table, model_type="opt")


def test_what_a_text_does_not_read_is_told() -> None:
    """Layers that predict further tokens, encoders of pictures and sounds."""
    names = ("mtp.layers.0.self_attn.q_proj.weight", "vision_encoder.layers.0.wq.weight", "vpm.layers.0.fc1.weight")
    plan = planned(dict.fromkeys(names, (64, 64)))
    assert not plan.reads and plan.notes[0].startswith("3 tensors not read by a token")


def test_an_encoder_reads_its_rows_in_one_pass(tmp_path: Path) -> None:
    tensors = {
        "embeddings.word_embeddings.weight": weights(50, 8),
        "embeddings.position_embeddings.weight": weights(12, 8),
        "encoder.layer.0.attention.self.query.weight": weights(8, 8),
        "embeddings.position_ids": np.arange(12)[None],
    }
    (tmp_path / "m").mkdir()
    save_file(tensors, tmp_path / "m" / "model.safetensors")
    (tmp_path / "m" / "config.json").write_text('{"architectures": ["BertModel"], "model_type": "bert"}')
    assert by_kind(tmp_path / "m", context=5) == {"embedding": (5 + 5) * 16, "attention q": 128}
    with pytest.raises(InputError, match="12 positions"):
        by_kind(tmp_path / "m", context=13)


def test_unknown_tensors_are_streamed_whole_and_told(tmp_path: Path) -> None:
    plan = plan_token(read_checkpoint(llama(tmp_path / "m", strange=weights(3, 5))))
    assert [read.stored_bytes for read in plan.reads if read.kind == "other"] == [30]
    assert any("strange" in note for note in plan.notes)


@pytest.mark.parametrize(
    "config",
    [
        {**LLAMA, "num_attention_heads": "four"}, {**LLAMA, "hidden_size": -1}, {**LLAMA, "num_hidden_layers": 1e3},
        {**LLAMA, "num_experts": 2**31 - 1, "num_experts_per_tok": 2**31 - 1},
        {**LLAMA, "num_key_value_heads": [1]}, {**LLAMA, "torch_dtype": "strange"}, {**LLAMA, "hidden_size": 2**70},
    ],
)  # fmt: skip
def test_a_configuration_that_lies_is_named(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"config|experts"):
        by_kind(llama(tmp_path / "m", config), context=1)


@pytest.mark.parametrize("text", ["[]", "{", '{"a":' * 100_000, "\xff"])
def test_a_damaged_configuration_is_one_message(tmp_path: Path, text: str) -> None:
    folder = llama(tmp_path / "m")
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"config\.json"):
        read_checkpoint(folder)


def test_layer_groups_are_few() -> None:
    assert len({layer_group(layer, 32) for layer in range(32)}) == 8
    assert layer_group(2, 3) == "layer 2"


# ---- GGUF


def flags(*values: bool) -> bytes:
    return struct.pack("<IIQ", 9, 7, len(values)) + bytes(values)


def number(value: int) -> bytes:
    return struct.pack("<II", 4, value)


METADATA = {
    "general.architecture": struct.pack("<I", 8) + text("llama"),
    "tokenizer.ggml.tokens": struct.pack("<IIQ", 9, 8, 3) + text("a") + text("b") + text("c"),
    "llama.block_count": number(1), "llama.embedding_length": number(64), "llama.attention.head_count": number(4),
    "llama.attention.head_count_kv": number(2),
}  # fmt: skip
BLOCKS = bytes(range(36)) * 64  # 64 rows of two blocks of Q4_0


def test_gguf_is_streamed_as_stored(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf({"token_embd.weight": (2, (64, 64), BLOCKS), "blk.0.attn_q.weight": (2, (64, 64), BLOCKS),
                           "blk.0.attn_norm.weight": (0, (64,), bytes(256))}, METADATA))  # fmt: skip
    checkpoint = read_checkpoint(file)
    assert checkpoint.config["num_key_value_heads"] == 2
    sums = by_kind(file, context=2)
    assert sums == {"embedding": 36, "attention q": 2304, "norm": 256, "lm_head": 2304, "kv cache": 3 * 2 * 2 * 16 * 2}
    read = next(r for r in plan_token(checkpoint).reads if r.kind == "attention q")
    for name in ("as-stored", "int4"):  # quantised blocks stay what they are
        assert b"".join(bytes(c) for c in TensorStream(name).chunks(read)) == BLOCKS


@pytest.mark.parametrize(
    ("family", "pattern", "read"),
    [
        ("gemma2", {}, 2 * 100 + 2 * 49),
        ("gemma3", {"gemma3.attention.sliding_window_pattern": number(4)}, 100 + 3 * 49),
        ("new", {"new.attention.sliding_window_pattern": flags(True, True, False, False)}, 2 * 100 + 2 * 49),
        ("new", {}, 4 * 100),
    ],
)
def test_layers_of_a_gguf_slide_as_its_family(
    tmp_path: Path, family: str, pattern: dict[str, bytes], read: int
) -> None:
    own = {key.replace("llama", family): value for key, value in METADATA.items()} | pattern
    own["general.architecture"] = struct.pack("<I", 8) + text(family)
    own[f"{family}.attention.sliding_window"] = number(50)
    tensors = {f"blk.{k}.attn_q.weight": (2, (64, 64), BLOCKS) for k in range(4)}
    (tmp_path / "m.gguf").write_bytes(gguf(tensors, own | {f"{family}.block_count": number(4)}))
    assert by_kind(tmp_path / "m.gguf", context=100)["kv cache"] == 128 * (read + 4)


def test_gguf_equals_the_package(tmp_path: Path) -> None:
    package = pytest.importorskip("gguf", reason="needs gguf")
    writer = package.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_block_count(1)
    writer.add_head_count(4)
    stored = weights(8, 64, dtype=np.float16)
    quantised = package.quants.quantize(weights(8, 64, dtype=np.float32), package.GGMLQuantizationType.Q4_0)
    writer.add_tensor("blk.0.attn_q.weight", stored)
    writer.add_tensor("blk.0.attn_k.weight", quantised, raw_dtype=package.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ours = read_checkpoint(tmp_path / "m.gguf")
    assert ours.config == {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 4}
    for tensor in package.GGUFReader(tmp_path / "m.gguf").tensors:
        own = ours.tensors[tensor.name]
        assert own.shape == tuple(map(int, tensor.shape))[::-1]
        assert own.read(0, own.stop - own.start) == tensor.data.tobytes()


def test_types_of_gguf_are_those_of_the_package() -> None:
    constants = pytest.importorskip("gguf.constants", reason="needs gguf")
    from traces.checkpoints.gguf import _TYPES

    theirs = {int(kind): (kind.name, *size) for kind, size in constants.GGML_QUANT_SIZES.items()}
    assert {number: theirs[number] for number in _TYPES if number in theirs} == _TYPES


GOOD = gguf({"a": (0, (2, 4), bytes(32)), "b": (2, (2, 32), bytes(36))}, METADATA)


def test_every_truncation_of_a_gguf_file_is_an_input_error(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    for cut in range(0, len(GOOD) - 32, 7):
        file.write_bytes(GOOD[:cut])
        with pytest.raises(InputError):
            read_checkpoint(file)


def test_no_flipped_byte_of_a_gguf_file_is_more_than_an_input_error(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    for at in range(len(GOOD) - 96):
        damaged = bytearray(GOOD)
        damaged[at] ^= 0xFF
        file.write_bytes(damaged)
        try:
            plan_token(read_checkpoint(file), context=3)
        except InputError:
            continue


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "header"), (b"GGML" + bytes(40), "no GGUF"), (gguf({}, version=1), "version"),
        (gguf({"a": (99, (2,), bytes(8))}), "unknown type"), (gguf({"a": (2, (3, 31), bytes(8))}), "whole blocks"),
        (gguf({"a": (0, (2**40, 2**40), bytes(8))}), "does not fit"), (gguf({"a": (0, (1 << 20,), bytes(8))}), "fit"),
        (gguf({"a": (0, (1,) * 9, bytes(8))}), "dimensions"),
        (gguf({}, {"general.alignment": number(7)}), "alignment"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), "tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 + 2**16), "65537 values"),
        (gguf({}, {"k": struct.pack("<IIQ", 9, 8, 1 + 2**22)}), "list of 4194305 texts"),
        (gguf({}, {"k": struct.pack("<I", 77)}), "unknown type 77"),
    ],
)  # fmt: skip
def test_a_gguf_file_that_lies_is_named(tmp_path: Path, data: bytes, match: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(data)
    with pytest.raises(InputError, match=match):
        read_checkpoint(file)


# ---- formats


def tensor_read(folder: Path, values: np.ndarray, name: str = "w") -> Any:
    folder.mkdir(exist_ok=True)
    save_file({name: values}, folder / "m.safetensors")
    return plan_token(read_checkpoint(folder)).reads[0]


def streamed(read: Any, *options: str) -> bytes:
    return b"".join(bytes(chunk) for chunk in TensorStream(*options).chunks(read))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("columns", [64, 33, 1])
@pytest.mark.parametrize("format", ["as-stored", "bf16", "fp8", "int8", "int4"])
def test_chunks_are_the_whole_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: Any, columns: int, format: str
) -> None:
    monkeypatch.setattr(streams, "CHUNK_BYTES", 150)
    values = weights(7, columns, dtype=dtype)
    data = streamed(tensor_read(tmp_path / "m", values), format)
    single = values.astype(np.float32)
    if format == "as-stored":
        assert data == values.tobytes()
    elif format in ("bf16", "fp8"):
        to = ml_dtypes.bfloat16 if format == "bf16" else ml_dtypes.float8_e4m3fn
        assert data == single.astype(to).tobytes()
    else:
        assert data == b"".join(by_groups(row, format) for row in single)


def by_groups(row: np.ndarray, format: str) -> bytes:
    """Convert a row value by value: a scale, then the codes behind it."""
    size, most, kind = (len(row), 127, np.float32) if format == "int8" else (32, 7, np.float16)
    out = b""
    for at in range(0, len(row), size):
        group = row[at : at + size]
        scale = kind(np.float32(np.abs(group).max()) / np.float32(most))
        codes = [round(float(v / np.float32(scale))) if scale else 0 for v in group]
        codes = [max(-most, min(most, code)) for code in codes]
        out += scale.tobytes()
        if format == "int8":
            out += bytes(code & 255 for code in codes)
        else:
            codes += [0] * (len(codes) % 2)
            out += bytes((low & 15) | (high & 15) << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))
    return out


def test_vectors_become_bf16_and_packed_tensors_stay(tmp_path: Path) -> None:
    vector, scales = weights(9, dtype=np.float32), weights(4, 4, dtype=np.float32)
    assert streamed(tensor_read(tmp_path / "v", vector), "int4") == vector.astype(ml_dtypes.bfloat16).tobytes()
    assert streamed(tensor_read(tmp_path / "s", scales, "a.weight_scale"), "int4") == scales.tobytes()
    codes = np.arange(16, dtype=np.int32).reshape(4, 4)
    assert streamed(tensor_read(tmp_path / "c", codes, "a.weight_packed"), "bf16") == codes.tobytes()


def test_quantised_and_sparse_layouts_are_streamed_with_all_their_parts(tmp_path: Path) -> None:
    """Names, types and axes as compressed-tensors .20 and .9.4 (sparse) and torchao .18 write them."""
    at = "model.layers.0.self_attn.q_proj"
    parts = {
        f"{at}.weight_packed": np.arange(32, dtype=np.int32).reshape(16, 2), f"{at}.weight_shape": np.array([16, 16]),
        f"{at}.weight_scale": weights(16, 1), f"{at}.weight_zero_point": np.zeros((2, 1), np.int32),
        "model.layers.1.self_attn.q_proj._weight_qdata": np.ones((16, 16), np.int8),
        "model.layers.1.self_attn.q_proj._weight_scale": weights(16, 1, dtype=np.float32),
        "model.layers.1.self_attn.q_proj._weight_zero_point": np.zeros((16, 1), np.int8),
        "model.layers.1.mlp.down_proj.compressed": weights(16, 12),
        "model.layers.1.mlp.down_proj.shape": np.array([[16], [24]]),
        "model.layers.1.mlp.down_proj.bitmask": np.ones((16, 3), np.uint8),
        "model.layers.0.mlp.down_proj.weight.compressed": weights(40),
        "model.layers.0.mlp.down_proj.weight.row_offsets": np.arange(8),
        "model.layers.0.mlp.down_proj.weight.bitmask": np.ones((16, 3), np.uint8),
    }  # fmt: skip
    (tmp_path / "m").mkdir()
    save_file(parts, tmp_path / "m" / "model.safetensors")
    (tmp_path / "m" / "config.json").write_text(json.dumps(LLAMA))
    plan = plan_token(read_checkpoint(tmp_path / "m"))
    sent = {
        read.name: b"".join(bytes(c) for c in TensorStream("int4").chunks(read)) for read in plan.reads if read.tensor
    }
    assert sent == {name: value.tobytes() for name, value in parts.items()}
    assert {read.kind for read in plan.reads} == {"attention q", "mlp down", "kv cache"}


@pytest.mark.parametrize("format", ["int8", "int4"])
def test_a_convolution_has_a_row_for_each_output(tmp_path: Path, format: str) -> None:
    kernels = weights(4, 8, 3)
    rows = streamed(tensor_read(tmp_path / "r", kernels.reshape(4, 24)), format)
    assert streamed(tensor_read(tmp_path / "c", kernels, "conv1.weight"), format) == rows


def test_keys_and_values_are_read_behind_all_tensors_and_written_last(tmp_path: Path) -> None:
    """One run of reads and one of writes, which are short to play."""
    reads = plan_token(read_checkpoint(llama(tmp_path / "m")), context=3).reads
    assert [(r.layer, r.kv_read, r.kv_written) for r in reads[-4:]] == [(0, 96, 0), (1, 96, 0), (0, 0, 32), (1, 0, 32)]
    assert all(read.tensor is not None for read in reads[:-4])


def test_byte_planes_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PLANE", 8)
    values = weights(3, 7)
    data = streamed(tensor_read(tmp_path / "m", values), "as-stored", "byte-planes")
    raw = values.tobytes()
    expected = b"".join(raw[at + 1 : at + 16 : 2] + raw[at : at + 16 : 2] for at in range(0, len(raw), 16))
    assert data == expected


def test_bit_planes_are_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PLANE", 16)
    values = weights(5, 9)  # two blocks, and 13 values left
    data = streamed(tensor_read(tmp_path / "m", values), "as-stored", "bit-planes")
    words = values.view(np.uint16).reshape(-1)
    planes = [words[at : at + 16] >> place & 1 for at in (0, 16) for place in range(15, -1, -1)]
    left = np.concatenate((words[32:] >> 8, words[32:] & 255)).astype(np.uint8)
    assert data == np.packbits(np.concatenate(planes).astype(np.uint8), bitorder="little").tobytes() + left.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_what_no_scale_holds_is_named(value: float) -> None:
    with pytest.raises(InputError, match="int4"):
        converted(np.array([[1, value]], np.float32), StreamFormat("int4", "<f2", 32))


def test_unknown_names_are_told() -> None:
    with pytest.raises(InputError, match="int4"):
        TensorStream("int44")
    with pytest.raises(InputError, match="byte-planes"):
        TensorStream("bf16", "byteplanes")


def test_many_experts_are_chosen_once() -> None:
    """65,535 of 65,536 were chosen anew for each of the tensors: 3,000 of them took 16 s."""
    names = [f"model.layers.0.mlp.experts.{k}.w1.weight" for k in range(0, 65536, 32)]
    tensors = {name: StoredTensor(Path("m"), name, "U8", (4, 4), 0, 16) for name in names}
    config = {"model_type": "mixtral", "num_experts": 65536, "num_experts_per_tok": 65535}
    before = time.process_time()
    reads = plan_token(Checkpoint(Path("m"), tensors, config), kv_bits=8).reads
    assert time.process_time() - before < 2 and len(reads) == len(names)


def test_metadata_of_a_gguf_is_kept_where_it_is_used(tmp_path: Path) -> None:
    """Each key took memory: 98 MB of them six times a bound of 64 MB."""
    keys = b"".join(text(f"m{k}.expert_count") + struct.pack("<IB", 0, 1) for k in range(40))
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 40) + keys)
    with pytest.raises(InputError, match="several models"):
        read_checkpoint(tmp_path)
    long = text("n" * 257) + struct.pack("<IQIQ", 1, 1, 24, 0)
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + long)
    with pytest.raises(InputError, match="a text of 257 bytes"):
        read_checkpoint(tmp_path)
