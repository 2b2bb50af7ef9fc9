"""The memory energy of one token of a checkpoint: its tensors and its context through encoder, bus and DRAM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewatt._version import COUNTS_VERSION
from edgewatt.config.kinds import origins_of
from edgewatt.pages.token import token_page
from edgewatt.results.record import hash_of_text
from hwmodel.coding.chain import parse_chain
from hwmodel.dram.stream import MOST_CHANNELS, StreamCounts, StreamPlayer, StreamResult
from hwmodel.parts.part_file import load_part
from reorder.channels import order_channels
from traces.base.errors import InputError
from traces.base.journal import Journal
from traces.base.progress import Progress
from traces.base.units import duration, energy, significant
from traces.base.workers import Workers
from traces.checkpoints import TensorStream, TokenPlan, TokenRead, plan_token, read_checkpoint
from traces.checkpoints.stream import AS_STORED, LAYOUTS, PIECE_BYTES
from traces.checkpoints.token_plan import KV_CACHE, layer_group

FLAT_PJ = {
    "hbm": (3.92, 3.92, "HBM2, O'Connor et al., MICRO 2017"),
    "": (20.3, 40.6, "1.3 to 2.6 nJ for 64 bits of DRAM, Horowitz, ISSCC 2014"),
}
"""Beginning of a part's name -> pJ a bit that people multiply by, at least and at most, and whose figure it is."""
_COMMANDS = {"ACT": ("ACT",), "RD": ("RD", "RDA"), "WR": ("WR", "WRA", "MWR"), "PRE": ("PRE", "PREA"),
             "REF": ("REFab", "REFpb", "REF2b")}  # fmt: skip
_SHARES = ("given", "found", "random", "lower_bound")
MOST_TENSORS = 2000
"""Rows of a page's table of tensors; of more, those with most energy."""


@dataclass(frozen=True)
class TensorEnergy:
    """One read of a step: bytes sent; ones and toggles of data wires and of DBI wires, of the bytes that are known."""

    name: str
    kind: str
    layer: int | None
    bytes: int
    known_bytes: int
    ones: int
    toggles: int
    dbi_ones: int
    dbi_toggles: int
    energy_pj: float


class Sums(NamedTuple):
    bytes: int
    known_bytes: int
    ones: int
    energy_pj: float


@dataclass(frozen=True)
class FlatAnswer:
    """Bits times a constant, at least; most_pj_per_bit: the end of its range. error: what the energy is above the
    stream's, as a share."""

    pj_per_bit: float
    most_pj_per_bit: float
    source: str
    energy_pj: float
    error: float


@dataclass(frozen=True, eq=False)
class TokenEnergy:
    """A step that ends with `plan.tokens` tokens. tensors: in the order of the stream; their sums are the totals."""

    part: str
    channels: int
    encoder: str
    format: str
    layout: str
    plan: TokenPlan
    stream: StreamResult
    tensors: tuple[TensorEnergy, ...]
    flat: FlatAnswer

    @property
    def memory(self) -> str:
        return f"{self.part} x {self.channels} channel{'s' * (self.channels > 1)}"

    @property
    def weight_bytes(self) -> int:
        return self.stream.counts.bytes - self.kv_bytes

    @property
    def kv_bytes(self) -> int:
        return sum(each.bytes for each in self.tensors if each.kind == KV_CACHE)

    @property
    def energy_pj(self) -> dict[str, float]:
        return self.stream.energy_pj()

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second where the memory never waits for the processor."""
        return 1e9 * self.plan.tokens / self.stream.time_ns if self.stream.time_ns else 0.0

    @property
    def pj_per_bit(self) -> float:
        return self.energy_pj["total"] / (8 * self.stream.counts.bytes) if self.stream.counts.bytes else 0.0

    def by_kind(self) -> dict[str, Sums]:
        sums = _sums((each.kind, each) for each in self.tensors)
        return dict(sorted(sums.items(), key=lambda pair: -pair[1].energy_pj))

    def by_layers(self) -> dict[str, Sums]:
        layers = 1 + max((each.layer for each in self.tensors if each.layer is not None), default=-1)
        sums = _sums((layer_group(each.layer, layers), each) for each in self.tensors)
        return dict(sorted(sums.items(), key=lambda pair: pair[0] == layer_group(None, layers)))

    def as_dict(self) -> dict[str, Any]:
        c, issued = self.stream.counts, self.stream.commands
        least, most = self.stream.range_pj
        return {
            "part": self.part, "channels": self.channels, "encoder": self.encoder, "format": self.format,
            "layout": self.layout, "tokens": self.plan.tokens, "batch": self.plan.batch, "context": self.plan.context,
            "weight_bytes": self.weight_bytes, "kv_bytes": self.kv_bytes, "known_bytes": c.known_bytes,
            "ones": c.ones, "toggles": c.toggles, "dbi_ones": c.dbi_ones, "dbi_toggles": c.dbi_toggles,
            "commands": {name: sum(issued.get(each, 0) for each in names) for name, names in _COMMANDS.items()},
            "cycles": self.stream.cycles, "time_ns": self.stream.time_ns, "energy_pj": self.energy_pj,
            "energy_range_pj": [least, most], "pj_per_bit": self.pj_per_bit,
            "energy_per_token_pj": self.energy_pj["total"] / self.plan.tokens, "tokens_per_s": self.tokens_per_s,
            "flat": asdict(self.flat), "tensors": [asdict(each) for each in self.tensors],
            "notes": list(self.plan.notes),
        }  # fmt: skip

    def table(self, sums: Mapping[str, Sums], what: str) -> tuple[tuple[str, ...], list[list[str]]]:
        total = self.energy_pj["total"] or 1.0
        rows = [
            [name, f"{each.bytes:,}", f"{100 * each.ones / (8 * each.known_bytes):.1f}" if each.known_bytes else "-",
             energy(each.energy_pj), f"{100 * each.energy_pj / total:.1f}"]
            for name, each in sums.items()
        ]  # fmt: skip
        return (what, "bytes", "ones %", "energy", "energy %"), rows

    def page(self, name: str) -> str:
        tensors = sorted(self.tensors, key=lambda each: -each.energy_pj)[:MOST_TENSORS]
        rows = [
            (each.name, each.kind, "" if each.layer is None else each.layer, f"{each.bytes:,}",
             *(f"{count:,}" if each.known_bytes else "-" for count in (each.ones, each.toggles)),
             energy(each.energy_pj))
            for each in tensors
        ]  # fmt: skip
        kinds, layers = self.by_kind(), self.by_layers()
        return token_page(
            f"A token of {name} in joules",
            f"{self.memory}, {self.format}, {self.layout}, encoder {self.encoder}",
            self.describe(),
            [("By kind of tensor", *self.table(kinds, "kind"), [each.energy_pj for each in kinds.values()]),
             ("By layers", *self.table(layers, "layers"), [each.energy_pj for each in layers.values()])],
            (("tensor", "kind", "layer", "bytes", "ones", "toggles", "energy"), rows),
            len(self.tensors) - len(rows),
        )  # fmt: skip

    def describe(self) -> list[str]:
        pj, tokens, c = self.energy_pj, self.plan.tokens, self.stream.counts
        least, most = self.stream.range_pj
        step = f"a {'step' if self.plan.decoder else 'pass'} of {tokens:,} token{'s' * (tokens > 1)}"
        one = "a token" if tokens == 1 and self.plan.decoder else step
        flat, ranged = self.flat, self.flat.most_pj_per_bit > self.flat.pj_per_bit
        at_most = f" to {flat.most_pj_per_bit:g}" if ranged else ""
        rate = f"{self.tokens_per_s:,.0f}" if self.tokens_per_s >= 1000 else significant(self.tokens_per_s)
        above = f"{abs(100 * flat.error):.0f} % too {'much' if flat.error > 0 else 'little'}"
        lines = [
            f"{one}: {energy(pj['total'])} ({energy(pj['dynamic'])} dynamic, {energy(pj['static'])} static; "
            f"{energy(least)} to {energy(most)} over the ranges of the part's estimates) "
            f"in {duration(self.stream.time_ns)}"
        ]
        if tokens > 1:
            lines.append(f"each token: {energy(pj['total'] / tokens)}, {duration(self.stream.time_ns / tokens)}")
        lines += [
            f"{rate} tokens a second at most: the memory streams without a pause, "
            f"{significant(c.bytes / max(self.stream.time_ns, 1e-9))} GB/s",
            f"{self.pj_per_bit:.2f} pJ a bit; {flat.pj_per_bit:g}{at_most} pJ a bit ({flat.source}) would be "
            f"{energy(flat.energy_pj)}{' at least' if ranged else ''}, {above}",
        ]
        if c.known_bytes < c.bytes:
            lines.append(f"{c.bytes - c.known_bytes:,} bytes of keys and values: data not known, random bits assumed")
        return lines + list(self.plan.notes)


def _sums(named: Iterable[tuple[str, TensorEnergy]]) -> dict[str, Sums]:
    sums: dict[str, Sums] = {}
    for name, each in named:
        so_far = sums.get(name, Sums(0, 0, 0, 0.0))
        sums[name] = Sums(*(was + getattr(each, field) for field, was in so_far._asdict().items()))
    return sums


def token_energy(
    folder: str | Path,
    *,
    part: str | Path | Mapping[str, Any],
    channels: int | None = None,
    format: str | None = None,
    encoder: str = "raw",
    context: int = 0,
    batch: int = 1,
    layout: str = "plain",
    experts: int | None = None,
    kv_bits: int | None = None,
    flat_pj_per_bit: float | None = None,
    controller: Mapping[str, Any] | None = None,
    workers: int = 1,
    executor: str = "processes",
    scheduler: str | None = None,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> TokenEnergy:
    """Return what a memory spends on one token of a checkpoint, layer by layer.

    folder: safetensors shards with config.json, GGUF files, or one such file. part, channels: so many channels of a
    part side by side (None: 8, or as many as the part allows); controller: fields of ControllerSpec. format: as-stored
    (None), bf16, fp8, int8 or int4, as `edgewatt token`; layout: plain, byte-planes, bit-planes
    (traces.checkpoints.stream). encoder: of hwmodel.encoders.
    context, batch, experts, kv_bits: traces.checkpoints.plan_token. flat_pj_per_bit: the constant beside the answer.
    workers, executor, scheduler: who counts the wires of the tensors, as of `order_weights`; with the same result, for
    encoders that code each burst by itself and the plain layout. journal: file that lets a killed run continue.
    The memory streams one tensor after the other, each from a burst of its own. Raises InputError for a damaged file,
    or a model larger than the memory.
    """
    if flat_pj_per_bit is not None and not 0 < flat_pj_per_bit < float("inf"):
        raise InputError(f"flat_pj_per_bit is {flat_pj_per_bit}: a number of pJ above 0")
    if channels is None:
        most = MOST_CHANNELS // load_part(part).organisation.channels
        channels = min(8, 1 << most.bit_length() - 1)
    form = TensorStream(format or AS_STORED, layout)
    plan = plan_token(read_checkpoint(folder), context=context, batch=batch, experts=experts, kv_bits=kv_bits)
    if not any(read.stored_bytes for read in plan.reads):
        raise InputError(f"{folder}: holds no tensor that a token reads a byte of")
    memory: dict[str, Any] = {"part": part, "channels": channels, "encoder": encoder, "controller": controller,
              "element_bytes": form.element_bytes(plan.reads)}  # fmt: skip
    player = StreamPlayer(**memory)
    shared = workers > 1 or scheduler is not None
    if shared and layout != LAYOUTS[0]:
        raise InputError(f"layout {layout!r} is streamed by one worker: its blocks run on through a tensor")
    noted = None if journal is None else _opened_journal(Path(journal), plan, form, memory, player)
    try:
        with Workers(workers, executor, scheduler) as team:
            pieces = _pieces_of(plan, form, memory, player, team if shared else None, noted)
            counted = _in_order(plan, player, pieces, progress or (lambda done, total, text: None))
    finally:
        if noted is not None:
            noted.close()
    result = player.finish()
    tensors = tuple(
        TensorEnergy(read.name, read.kind, read.layer, c.bytes, c.known_bytes, c.ones, c.toggles, c.dbi_ones,
                     c.dbi_toggles, result.energy_pj(c)["total"])
        for read, c in counted
    )  # fmt: skip
    own = player.part.name.lower()
    known = next(flat for start, flat in FLAT_PJ.items() if own.startswith(start))
    each, at_most, source = known if flat_pj_per_bit is None else (flat_pj_per_bit, flat_pj_per_bit, "given")
    flat_pj, spent = each * 8 * result.counts.bytes, result.energy_pj()["total"]
    flat = FlatAnswer(each, at_most, source, flat_pj, flat_pj / spent - 1 if spent else 0.0)
    return TokenEnergy(str(part) if isinstance(part, str | Path) else player.part.name, channels, encoder, form.format,
                       layout, plan, result, tensors, flat)  # fmt: skip


def _opened_journal(
    path: Path, plan: TokenPlan, form: TensorStream, memory: Mapping[str, Any], player: StreamPlayer
) -> Journal:
    if not player.is_plain_state:
        raise InputError(f"encoder {memory['encoder']!r} keeps what cannot be noted in a journal: leave it out")
    files = sorted({read.tensor.file for read in plan.reads if read.tensor is not None})
    seen = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    reads = [(read.name, read.rows, read.kv_read, read.kv_written) for read in plan.reads]
    origins = origins_of({"encoders": parse_chain(memory["encoder"])})
    work = (COUNTS_VERSION, seen, reads, form, player.part, player.controller, memory["encoder"], origins)
    return Journal(path, hash_of_text(repr(work)))


def _pieces_of(
    plan: TokenPlan, form: TensorStream, memory: dict[str, Any], player: StreamPlayer, team: Workers | None,
    journal: Journal | None,
) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    """Yield (number of a read, state of a player that streamed it) as they are done; those of a journal first."""
    size, at_once = player.part.organisation.burst_bytes, player.tile_bytes
    sent = [(r.kv_read, r.kv_written) if r.tensor is None else (form.sent_bytes(r),) for r in plan.reads]
    starts = list(accumulate((sum(-(-n // size) * size for n in each) for each in sent), initial=0))
    known: dict[int, dict[str, Any]] = {}
    for line in () if journal is None else journal.lines:
        with suppress(InputError, LookupError, TypeError, ValueError, AttributeError):  # what does not fit is not ours
            k, state = line["read"], line["state"]
            if k in range(len(sent)) and StreamPlayer(**memory, start=starts[k]).add(state).bytes == sum(sent[k]):
                known[k] = state
    yield from known.items()

    def calls() -> Iterator[tuple[int, tuple[Any, ...]]]:
        before = b""
        for k, read in enumerate(plan.reads):
            if k not in known:
                yield k, (read, form, memory, starts[k], before)
            if team is not None and read.tensor is not None:
                end = form.end(read, at_once) + bytes(-sent[k][0] % size)
                before = (before + end[len(end) % size :])[-at_once:]

    def in_turn() -> Iterator[tuple[int, dict[str, Any]]]:
        last: Any = b""
        for k, (read, _, _, start, _) in calls():
            last = count_read(read, form, memory, start, known.get(k - 1, last))  # a journal's may have gaps
            yield k, last

    done = in_turn() if team is None else team.map(count_read, calls(), len(plan.reads) - len(known))
    for k, state in done:
        if journal is not None:
            journal.put(read=k, state=state)
        yield k, state


def _in_order(
    plan: TokenPlan, player: StreamPlayer, pieces: Iterator[tuple[int, dict[str, Any]]], tell: Progress
) -> list[tuple[TokenRead, StreamCounts]]:
    total, done = sum(read.stored_bytes for read in plan.reads), 0
    waiting: dict[int, dict[str, Any]] = {}
    counted: list[tuple[TokenRead, StreamCounts]] = []
    for k, state in pieces:
        waiting[k] = state
        while (n := len(counted)) in waiting:
            counted.append((plan.reads[n], player.add(waiting.pop(n))))
        done += plan.reads[k].stored_bytes
        tell(done, total, plan.reads[k].name)
    return counted


def count_read(
    read: TokenRead, form: TensorStream, memory: dict[str, Any], start: int, before: bytes | Mapping[str, Any]
) -> dict[str, Any]:
    player = StreamPlayer(**memory, start=start, before=before)
    if read.tensor is None:
        player.read(read.kv_read)
        player.read(read.kv_written, write=True)
    for data in _pieces(form.chunks(read)):
        player.read(data)
    return player.state()


def order_and_compare(
    folder: str | Path, output: str | Path, before: TokenEnergy, options: Mapping[str, Any], progress: Progress
) -> tuple[TokenEnergy, dict[str, Any]]:
    """Order a checkpoint's channels into a folder; return what its token takes, and what that saves as plain data."""
    found = order_channels(folder, output, progress=progress)
    after = token_energy(output, **options)
    edges = [sum(each.toggles for each in answer.tensors) for answer in (before, after)]
    spent = [answer.energy_pj["total"] for answer in (before, after)]
    change, saved = (100 * now / was - 100 if was else 0.0 for was, now in (edges, spent))
    lines = [f"{output}: {len(found)} groups of channels ordered: edges {change:+.2f} %, energy {saved:+.2f} %"]
    for what in dict.fromkeys(each.name.rpartition(": ")[2].rstrip("0123456789 ") for each in found):
        of = [each for each in found if what in each.name]
        mean = {key: 100 * sum(getattr(each, key) for each in of) / len(of) for key in _SHARES}
        lines.append(
            f"{what} ({len(of)}): neighbours differ in {mean['found']:.2f} % of their bits, {mean['given']:.2f} as "
            f"given, {mean['random']:.2f} in random orders, in none below {mean['lower_bound']:.2f}"
        )
    groups = [{"name": each.name, "rows": each.rows, **{k: getattr(each, k) for k in _SHARES}} for each in found]
    return after, {
        "channel_orders": groups, "before": {"toggles": edges[0], "energy_pj": before.energy_pj}, "describe": lines
    }  # fmt: skip


def _pieces(chunks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    kept = np.zeros(0, np.uint8)
    for chunk in chunks:
        data = np.concatenate((kept, chunk)) if len(kept) else chunk
        whole = len(data) // PIECE_BYTES * PIECE_BYTES
        if whole:
            yield data[:whole]
        kept = data[whole:]
    if len(kept):
        yield kept
