"""`order_weights`: a model's matrices reordered, shard by shard, in memory that does not grow with them."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import reorder.tuples.groups as groups
from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.cost import field_ones
from reorder.tuples.shards.output import JOURNAL, SENT, Finished, Shard, TensorSpec, csr_specs, make_folder, write_index
from reorder.tuples.shards.stream import TupleGroup, TupleRange, read_groups, read_tuples
from reorder.tuples.tuple_order import Storage, TupleRequest, WireRequest
from reorder.tuples.tuple_problem import TuplesBefore
from traces.base.checks import check_seed
from traces.base.errors import InputError, did_you_mean
from traces.base.journal import Journal
from traces.base.progress import Progress
from traces.base.workers import Workers
from traces.readers.parts.weights import ModelWeights, RowMatrix


@dataclass(frozen=True)
class MatrixOrder:
    """What one matrix sends. ones_values, ones_ids: in the order found; original_*: as stored; wires of DBI counted."""

    name: str
    shard: str
    shape: tuple[int, int]
    tuples: int
    value_format: str
    id_bits: int
    ones_values: int
    ones_ids: int
    original_ones_values: int
    original_ones_ids: int


def order_weights(
    folder: str | Path,
    output: str | Path,
    *,
    include: Sequence[str] = ("*",),
    exclude: Sequence[str] = (),
    stride: int | str = 128,
    id_bits: int | None = None,
    encoder: str = "base-xor+dbi-dc",
    block_bytes: int = 32,
    base_interval: int | str | None = None,
    objective: str = "joint",
    method: str = "local-search",
    effort: float | str = "fast",
    seed: int = 0,
    workers: int = 1,
    executor: str | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> list[MatrixOrder]:
    """Order the tuples of a model's matrices inside strides, and write them as shards of CSR matrices.

    folder: with model.safetensors.index.json or .safetensors files (traces.readers.parts.weights says which matrices it
        may hold), or one such file. output: a folder, made where it is not there; the same call goes on there after a
        kill. include, exclude: names of matrices, or patterns; everything else is taken over as it is.
    Values keep their format; id_bits None: 16, or 32 where a matrix has more than 65,536 columns. Each group of strides
    is ordered as `order_tuples` with these parameters orders it, without its guards.

    Returns what each matrix sends. Raises InputError naming file and tensor.
    """
    check_seed(seed)
    storage = Storage("csr", "fp16", id_bits or 16, stride, "row")
    wires = WireRequest(encoder, block_bytes, base_interval, objective, "ones", None, None)
    request = TupleRequest(storage, wires, method, effort, parameters)
    weights, target = ModelWeights(folder), Path(output)
    if os.path.realpath(target) == os.path.realpath(weights.folder):
        raise InputError(f"{target}: the shards that are read: name another folder")
    chosen = selected(weights, include, exclude)
    make_folder(target, weights.folder)
    facts = [repr(request.storage), repr(wires), method, repr(request.own), seed, groups.GROUP_TUPLES, chosen]
    if origin := TUPLE_ORDERS[method].origin:  # another author's: what has changed since orders again
        facts.append(repr(origin))
    journal = Journal(target / JOURNAL, _key(weights, facts))
    try:
        with Workers(workers, executor or request.member.workers, scheduler, request.member.workers) as team:
            run = _Run(weights, target, chosen, request, id_bits, seed, team, Finished(journal), progress)
            return run()
    finally:
        journal.close()


def selected(weights: ModelWeights, include: Sequence[str], exclude: Sequence[str] = ()) -> list[str]:
    """Return the names of the matrices that fit a pattern of `include` and none of `exclude`, in natural order."""
    known = weights.names()
    for pattern in (*include, *exclude):
        if not fnmatch.filter(known, pattern) and pattern not in known:
            raise InputError(f"{weights.folder}: no matrix fits {pattern!r}{did_you_mean(pattern, known)}")

    def fits(name: str, patterns: Sequence[str]) -> bool:
        return any(name == p or fnmatch.fnmatchcase(name, p) for p in patterns)

    chosen = [name for name in known if fits(name, include) and not fits(name, exclude)]
    if not chosen:
        raise InputError(f"{weights.folder}: no matrix is left to order")
    return chosen


def _key(weights: ModelWeights, facts: Sequence[Any]) -> str:
    """Return what tells this work from other work in the same folder: the request, and the files by size and time."""
    files = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in weights.files]
    return hashlib.sha256(json.dumps([files, list(facts)]).encode()).hexdigest()


@dataclass
class _Run:
    weights: ModelWeights
    target: Path
    chosen: list[str]
    request: TupleRequest
    id_bits: int | None
    seed: int
    team: Workers
    finished: Finished
    progress: Progress | None
    done: int = 0
    total: int = 0

    def __call__(self) -> list[MatrixOrder]:
        by_file: dict[Path, list[RowMatrix]] = {}
        for name in self.chosen:
            matrix = self.weights.matrix(name)
            by_file.setdefault(matrix.values.file, []).append(matrix)
        inside = {part for name in self.chosen for part in self.weights.parts(name)}
        self.total = sum(int(matrix.pointers[-1]) for matrices in by_file.values() for matrix in matrices)
        others = {
            file: [t for n, t in self.weights.tensors.items() if t.file == file and n not in inside]
            for file in self.weights.files
        }
        weight_map: dict[str, str] = {}
        shards: dict[Path, Shard] = {}
        for file in self.weights.files:
            specs = [
                (name, spec)
                for matrix in by_file.get(file, [])
                for name, spec in csr_specs(matrix, self._id_bits(matrix)).items()
            ]
            specs += [(t.name, TensorSpec(t.kind, t.shape, t.stop - t.start)) for t in others[file]]
            for name, _ in specs:
                if name in weight_map:
                    raise InputError(f"{file}: a matrix written as CSR takes the name of tensor {name!r}: exclude it")
                weight_map[name] = file.name
            shards[file] = Shard(self.target / file.name, dict(specs))
        results = []
        for file, shard in shards.items():
            matrices = by_file.get(file, [])
            whole = file.name in self.finished.shards and shard.is_whole(self.finished.shards[file.name])
            if whole and all(matrix.name in self.finished.matrices for matrix in matrices):
                self.done += sum(int(matrix.pointers[-1]) for matrix in matrices)
            else:
                if not shard.resumes():
                    self.finished.forget([matrix.name for matrix in matrices])
                with shard.opened():
                    for matrix in matrices:
                        self._order(matrix, shard)
                    for tensor in others[file]:
                        shard.copy(tensor)
                self.finished.put(shard=file.name, crc=shard.finish())
            results += [self._result(matrix, file.name) for matrix in matrices]
        size = sum(spec.n_bytes for shard in shards.values() for spec in shard.tensors.values())
        write_index(self.target, weight_map, size, {"ordered": self.chosen})
        return results

    def _id_bits(self, matrix: RowMatrix) -> int:
        return self.id_bits or (16 if matrix.shape[1] <= 1 << 16 else 32)

    def _result(self, matrix: RowMatrix, shard: str) -> MatrixOrder:
        sent = self.finished.matrices[matrix.name]
        bits, count = self._id_bits(matrix), int(matrix.pointers[-1])
        return MatrixOrder(matrix.name, shard, matrix.shape, count, matrix.value_format, bits, **sent)

    def _order(self, matrix: RowMatrix, shard: Shard) -> None:
        """Order what the journal lacks of a matrix, and count what the whole of it sends."""
        bits, wires = self._id_bits(matrix), self.request.wires
        storage = Storage("csr", matrix.value_format, bits, self.request.storage.stride, "row")
        written = self.finished.groups.get(matrix.name, {})
        names = [f"{matrix.name}.{part}" for part in ("data", "indices", "indptr", "shape")]
        ids = np.dtype(f"<u{bits // 8}")
        under_way: dict[int, TupleGroup] = {}

        def is_finished(group: TupleGroup) -> bool:
            """Whether the shard holds what was written of a group, and not what else may have become of it."""
            if (crc := written.get(group.start)) is None:
                return False
            n, word = len(group.words), group.words.itemsize
            data = shard.read(names[0], group.start * word, n * word)
            return crc == crc32(shard.read(names[1], group.start * ids.itemsize, n * ids.itemsize), crc32(data))

        def calls() -> Iterator[tuple[int, tuple[Any, ...]]]:
            for group in read_groups(matrix, storage, wires):
                if is_finished(group):
                    self._report(len(group.words))
                    continue
                under_way[group.start] = group
                yield group.start, (group.piece, self.request.method, self.seed, self.request.own)

        for start, local in self.team.map(groups.order_piece, calls()):
            group = under_way.pop(start)
            data = group.words[local].tobytes()
            columns = group.columns[local].astype(ids).tobytes()
            shard.write(names[0], start * group.words.itemsize, data)
            shard.write(names[1], start * ids.itemsize, columns)
            shard.flush()
            self.finished.put(matrix=matrix.name, start=start, crc=crc32(columns, crc32(data)))
            self._report(len(local))
        shard.write(names[2], 0, matrix.pointers.astype("<i8").tobytes())
        shard.write(names[3], 0, np.array(matrix.shape, "<i8").tobytes())
        if matrix.name not in self.finished.matrices:
            self.finished.put(matrix=matrix.name, sent=count_sent(matrix, shard, bits, wires))

    def _report(self, count: int) -> None:
        self.done += count
        if self.progress:
            self.progress(self.done, self.total, "tuples")


def count_sent(matrix: RowMatrix, shard: Shard, id_bits: int, wires: WireRequest) -> Mapping[str, int]:
    """Return the ones of a matrix as it is stored and as it lies in the shard, both read once."""
    sums = np.zeros((2, 2), np.int64)  # before and after, values and ids
    ids = np.dtype(f"<u{id_bits // 8}")
    last: list[TupleRange | None] = [None, None]
    at = 0
    for stored in read_tuples(matrix):
        word = stored.words.itemsize
        columns = np.frombuffer(
            shard.read(f"{matrix.name}.indices", at * ids.itemsize, len(stored) * ids.itemsize), ids
        )
        words = np.frombuffer(shard.read(f"{matrix.name}.data", at * word, len(stored) * word), stored.words.dtype)
        both = stored, TupleRange(columns.astype(np.int64), words, stored.rows)
        for k, tuples in enumerate(both):
            lead = last[k]
            held = tuples if lead is None else lead.then(tuples)
            n = len(held) - len(tuples)
            before = TuplesBefore(at - n, 0 if at > n else -1)
            bounds = np.array([0, len(held)], np.int64)
            problem = held.problem(bounds, matrix.value_format, id_bits, wires, before)
            here = np.arange(len(held))
            sums[k] += [field_ones(problem, f, here, skip=n) for f in problem.fields]
            last[k] = tuples.since(len(tuples) - 1) if len(tuples) else lead
        at += len(stored)
    return dict(zip(SENT, sums.ravel().tolist(), strict=True))
