"""Orders of a dense model's channels that cost no metadata: what a layer writes is permuted, what reads it likewise.

Free of each other are the inner channels of an MLP, the dimensions of a value head, and, in decoders, the residual
stream: one permutation for all that reads or writes it. The model computes what it did, sums in another order.

Neighbouring channels of one row follow each other on the wires. An order is a path through all channels, a step as
long as the bits in which two columns differ, over all rows that read them: edges of a raw bus that is one value wide,
ones of Base+XOR. Of fp32 the high half is compared: the rest is noise. Nearest neighbours, then 2-opt.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.tuples.shards.output import Shard, TensorSpec, make_folder, write_index
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.base.progress import Progress
from traces.checkpoints.checkpoint import Checkpoint, read_checkpoint
from traces.checkpoints.token_plan import EMBEDDING, EXPERT, LM_HEAD, NORM, OTHER, UNREAD, kind_of_tensor, layer_of
from traces.readers.parts.weights import FLOATS, StoredTensor

ROWS = 512
"""Rows of a group's matrices, evenly spread, whose bits are compared: all of small models."""
MOST_CHANNELS = 1 << 14
_ROWS_AT_ONCE = 64
_ROUNDS = 12  # of 2-opt at most, each O(n^2)
_READ_BYTES = 1 << 24
_STREAM_READERS = re.compile(r"attention (q|k|v|kv|qkv)$|mlp (gate|up|gate\+up)$|router")
_STREAM_WRITERS = ("attention o", "mlp down")

Order = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ChannelOrder:
    """The order of one group of channels: new -> old.

    given, found, random: mean share of bits in which neighbouring channels differ, as stored, in the order found, and
    of random orders. lower_bound: no order has less (half of each channel's two nearest). Of `rows` rows compared.
    """

    name: str
    order: tuple[int, ...]
    rows: int
    given: float
    found: float
    random: float
    lower_bound: float


@dataclass(frozen=True)
class _Use:
    """An axis of a tensor that has the group's channels, from index `first` on."""

    tensor: StoredTensor
    axis: int
    first: int = 0


@dataclass(frozen=True)
class _Group:
    name: str
    size: int
    readers: tuple[_Use, ...]
    writers: tuple[_Use, ...]


def order_channels(
    folder: str | Path, output: str | Path, *, stream: bool = True, seed: int = 0, progress: Progress | None = None
) -> list[ChannelOrder]:
    """Write a checkpoint whose channels are ordered for few edges; its function stays. Return the orders found.

    folder: safetensors with config.json, Llama's or BERT's layout (weights [out, in]). output: a new folder of shards
    of the same names. stream: also order the residual stream of decoders. Groups with quantised or packed tensors, and
    those whose shapes do not fit each other, stay as they are. Raises InputError naming file and tensor.
    """
    checkpoint, target = read_checkpoint(folder), Path(output)
    files = sorted({tensor.file for tensor in checkpoint.tensors.values()})
    if any(file.suffix.lower() != ".safetensors" for file in files):
        raise InputError(f"{folder}: channels are ordered in safetensors files")
    if os.path.realpath(target) == os.path.realpath(files[0].parent):
        raise InputError(f"{target}: the shards that are read: name another folder")
    groups = [*_mlps(checkpoint), *_heads(checkpoint), *(_streams(checkpoint) if stream else ())]
    found = []
    moves: dict[str, list[tuple[_Use, Order]]] = {}
    for k, group in enumerate(groups):
        if progress is not None:
            progress(k, len(groups), group.name)
        result = _search(group, seed)
        found.append(result)
        for use in (*group.readers, *group.writers):
            moves.setdefault(use.tensor.name, []).append((use, np.array(result.order)))
    _write(checkpoint, target, files, moves)
    return found


def _search(group: _Group, seed: int) -> ChannelOrder:
    n = group.size
    claim(12 * n * n, group.readers[0].tensor.name, f"distances of {n} channels")
    apart, n_bits, rows = np.zeros((n, n), np.float32), 0, 0
    for bits, n_rows in _columns(group):
        apart -= bits.T @ bits
        n_bits, rows = n_bits + len(bits), rows + n_rows
    apart += np.float32(n_bits)
    apart /= 2
    rng = np.random.default_rng(seed)

    def share(order: Order) -> float:
        return float(apart[order[:-1], order[1:]].sum(dtype=np.float64)) / (n_bits * (n - 1))

    given = np.arange(n)
    random = float(np.mean([share(rng.permutation(n)) for _ in range(5)]))
    np.fill_diagonal(apart, np.inf)
    nearest = np.partition(apart, 1, axis=1)[:, :2]
    ends = np.partition(nearest.max(axis=1), n - 2)[-2:].sum()  # the two ends of a path have one neighbour each
    bound = (float(nearest.sum(dtype=np.float64)) - float(ends)) / 2 / (n_bits * (n - 1))
    order = min((given, two_opt(apart, nearest_neighbours(apart))), key=share)
    return ChannelOrder(
        group.name, tuple(order.tolist()), rows, share(given), share(order), random, min(bound, share(order))
    )


def nearest_neighbours(apart: npt.NDArray[np.float32]) -> Order:
    """Return the path from channel 0 that goes on to the nearest channel left. apart: distances [n, n]. O(n^2)."""
    n = len(apart)
    left, order = np.zeros(n, np.float32), np.zeros(n, np.int64)
    for k in range(1, n):
        left[order[k - 1]] = np.inf
        order[k] = np.argmin(apart[order[k - 1]] + left)
    return order


def two_opt(apart: npt.NDArray[np.float32], order: Order) -> Order:
    """Return the path after reversals of pieces that shorten it, the best one from each place; O(n^2) a round."""
    order = order.copy()
    for _ in range(_ROUNDS):
        gained = False
        for i in range(len(order) - 3):
            a, b, c, d = order[i], order[i + 1], order[i + 2 : -1], order[i + 3 :]
            gain = apart[a, b] + apart[c, d] - apart[a, c] - apart[b, d]
            k = int(np.argmax(gain))
            if gain[k] > 0:
                order[i + 1 : i + 3 + k] = order[i + 1 : i + 3 + k][::-1].copy()
                gained = True
        if not gained:
            break
    return order


def _columns(group: _Group) -> Iterator[tuple[npt.NDArray[np.float32], int]]:
    """Yield bits of rows that read the channels, as -1 and 1, and how many rows: float32[bits, channels]."""
    lines = [(use, row) for use in group.readers for row in range(use.tensor.shape[0])]
    lines = lines[:: max(1, len(lines) // ROWS)]
    for first in range(0, len(lines), _ROWS_AT_ONCE):
        bits = []
        for use, row in lines[first : first + _ROWS_AT_ONCE]:
            word = np.dtype(FLOATS[use.tensor.kind][1])
            at = row * use.tensor.shape[1] + use.first
            words = use.tensor.words(at, at + group.size, word)
            high = (words >> word.type(8 * word.itemsize - 16)).astype(np.uint16)
            bits.append(np.unpackbits(high.view(np.uint8).reshape(-1, 2), axis=1).T)
        yield np.concatenate(bits).astype(np.float32) * 2 - 1, len(bits)


def _mlps(checkpoint: Checkpoint) -> Iterator[_Group]:
    """Yield the inner channels of each MLP; experts of a mixture stay."""
    for layer, of in _by_layer(checkpoint).items():
        down = of.get("mlp down.weight")
        if down is None or not _is_matrix(down):
            continue
        inner = down.shape[1]
        writers, fits = [], True
        for kind in ("mlp gate", "mlp up", "mlp gate+up"):
            for part in ("weight", "bias"):
                if (tensor := of.get(f"{kind}.{part}")) is not None:
                    parts = 2 if "+" in kind else 1
                    fits = fits and tensor.kind in FLOATS and tensor.shape[:1] == (parts * inner,)
                    writers += [_Use(tensor, 0, k * inner) for k in range(parts)]
        if fits and writers and 3 < inner <= MOST_CHANNELS:
            yield _Group(f"layer {layer}: mlp", inner, (_Use(down, 1),), tuple(writers))


def _heads(checkpoint: Checkpoint) -> Iterator[_Group]:
    config = checkpoint.config
    heads = config.get("num_attention_heads")
    groups = config.get("num_key_value_heads") or heads
    if type(heads) is not int or type(groups) is not int or not 0 < groups <= heads or heads % groups:
        return
    for layer, of in _by_layer(checkpoint).items():
        v, o, bias = (of.get(name) for name in ("attention v.weight", "attention o.weight", "attention v.bias"))
        if v is None or o is None or not (_is_matrix(v) and _is_matrix(o)):
            continue
        width = v.shape[0] // groups
        if not 3 < width <= MOST_CHANNELS or v.shape[0] != width * groups or o.shape[1] != width * heads:
            continue
        if bias is not None and (bias.shape != (v.shape[0],) or bias.kind not in FLOATS):
            continue
        for g in range(groups):
            readers = tuple(_Use(o, 1, h * width) for h in range(g * heads // groups, (g + 1) * heads // groups))
            writers = tuple(_Use(t, 0, g * width) for t in (v, bias) if t is not None)
            yield _Group(f"layer {layer}: value head {g}", width, readers, writers)


def _streams(checkpoint: Checkpoint) -> Iterator[_Group]:
    """Yield the residual stream of a decoder, if every tensor that may have its channels is known."""
    hidden = checkpoint.config.get("hidden_size")
    architectures = checkpoint.config.get("architectures")
    if type(hidden) is not int or not 3 < hidden <= MOST_CHANNELS or "CausalLM" not in str(architectures):
        return
    readers, writers = [], []
    for name, tensor in checkpoint.tensors.items():
        kind = kind_of_tensor(name)
        if kind == UNREAD:
            continue
        if kind in (OTHER, EXPERT) or tensor.kind not in FLOATS or len(tensor.shape) > 2:
            return  # unknown: it may read or write the stream
        if kind in (EMBEDDING, LM_HEAD) or _STREAM_READERS.match(kind):
            if len(tensor.shape) == 2:
                if tensor.shape[1] != hidden:
                    return
                readers.append(_Use(tensor, 1))
        elif kind in _STREAM_WRITERS or (kind == NORM and not re.search(r"[qk]_norm|[qk]_layernorm", name)):
            if tensor.shape[:1] != (hidden,):
                return
            writers.append(_Use(tensor, 0))
        elif kind != NORM:
            return
    if readers:
        yield _Group("residual stream", hidden, tuple(readers), tuple(writers))


def _by_layer(checkpoint: Checkpoint) -> dict[int, dict[str, StoredTensor]]:
    """Return the tensors of each layer by kind and last name; those of a kind that has several are left out."""
    layers: dict[int, dict[str, StoredTensor]] = {}
    twice: set[tuple[int, str]] = set()
    for name, tensor in checkpoint.tensors.items():
        layer, kind, last = layer_of(name), kind_of_tensor(name), name.rpartition(".")[2]
        if layer is not None:
            key = f"{kind}.{last}"
            if key in layers.setdefault(layer, {}):
                twice.add((layer, key))
            layers[layer][key] = tensor
    for layer, key in twice:
        del layers[layer][key]
    return layers


def _is_matrix(tensor: StoredTensor) -> bool:
    return len(tensor.shape) == 2 and tensor.kind in FLOATS


def _write(
    checkpoint: Checkpoint, target: Path, files: Sequence[Path], moves: dict[str, list[tuple[_Use, Order]]]
) -> None:
    make_folder(target, files[0].parent)
    where: dict[str, Any] = {}
    for file in files:
        tensors = [tensor for tensor in checkpoint.tensors.values() if tensor.file == file]
        specs = {t.name: TensorSpec(t.kind, t.shape, t.stop - t.start) for t in tensors}
        shard = Shard(target / file.name, specs, {"note": "channels permuted"})
        with shard.opened():
            for tensor in tensors:
                if tensor.name in moves:
                    _permute(tensor, moves[tensor.name], shard)
                else:
                    shard.copy(tensor)
        shard.finish()
        where |= dict.fromkeys(specs, file.name)
    write_index(target, where, sum(t.stop - t.start for t in checkpoint.tensors.values()), {})


def _permute(tensor: StoredTensor, moves: Sequence[tuple[_Use, Order]], shard: Shard) -> None:
    word = np.dtype(FLOATS[tensor.kind][1])
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    at = [np.arange(rows), np.arange(columns)]
    for use, order in moves:
        at[use.axis][use.first : use.first + len(order)] = use.first + order
    whole = bool((at[0] != np.arange(rows)).any())  # rows come from all over
    step = rows if whole else max(1, _READ_BYTES // max(1, columns * word.itemsize))
    for first in range(0, rows, step):
        last = min(first + step, rows)
        data = tensor.words(first * columns, last * columns, word).reshape(last - first, columns)
        data = data[at[0]][:, at[1]] if whole else data[:, at[1]]
        shard.write(tensor.name, first * columns * word.itemsize, data.tobytes())
