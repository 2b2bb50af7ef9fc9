"""A model's shards in every form that a matrix is stored in, and what a killed run of their orders leaves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from safetensors.numpy import save

from reorder.tuples.shards import order_weights
from reorder.tuples.shards.output import JOURNAL
from traces.readers.parts.weights import INDEX

Sample = tuple[str, bytes, Callable[[Path], Any]]
SHARD = "m.safetensors"


def weights_samples(folder: Path) -> dict[str, Sample]:
    """Return name -> sample; `folder` is for files on the way."""
    csr = scipy.sparse.random(6, 8, 0.5, "csr", random_state=np.random.default_rng(3)).astype(np.float32)
    dense, bsr, shape = csr.toarray(), csr.tobsr((2, 4)), np.array(csr.shape)
    forms = {
        "dense": {"w": dense.astype(np.float16), "b": np.ones(3, np.float32)},
        "bitmask": {
            "w.compressed": dense[dense != 0],
            "w.bitmask": np.packbits(dense != 0, axis=1, bitorder="little"),
            "w.shape": shape,
        },
        "csr": {"w.data": csr.data, "w.indices": csr.indices, "w.indptr": csr.indptr, "w.shape": shape},
        "blocks": {
            "w.values": bsr.data, "w.col_indices": bsr.indices, "w.crow_indices": bsr.indptr, "w.shape": shape,
        },
    }  # fmt: skip
    source, output = folder / "weights", folder / "ordered"
    source.mkdir()

    def run() -> Any:
        return order_weights(source, output, stride=4, method="greedy")

    def fresh(path: Path) -> Any:
        shutil.copy(path, source / SHARD)
        try:
            return run()
        finally:
            shutil.rmtree(output, ignore_errors=True)

    found: dict[str, Sample] = {name: (SHARD, save(tensors), fresh) for name, tensors in forms.items()}
    found = {f"shard {name}": sample for name, sample in found.items()}

    def put() -> None:
        (source / SHARD).write_bytes(found["shard dense"][1])
        os.utime(source / SHARD, (1, 1))  # a journal belongs to files of one size and time

    put()
    wanted = run()
    whole = {file.name: file.read_bytes() for file in output.iterdir()}

    def resumed(place: str) -> Callable[[Path], Any]:
        def read(path: Path) -> Any:
            put()
            shutil.rmtree(output, ignore_errors=True)
            output.mkdir()
            for name, data in whole.items():
                (output / name).write_bytes(data)
            if place != JOURNAL:
                (output / SHARD).unlink()
            shutil.copy(path, output / place)
            assert run() == wanted, "other figures"
            assert (output / SHARD).read_bytes() == whole[SHARD], "another shard"
            return True

        return read

    found["journal of shards"] = (JOURNAL, whole[JOURNAL], resumed(JOURNAL))
    found["shard half written"] = (f"{SHARD}.partial", whole[SHARD], resumed(f"{SHARD}.partial"))

    def index(path: Path) -> Any:
        put()
        shutil.copy(path, source / INDEX)
        try:
            return run()
        finally:
            (source / INDEX).unlink()
            shutil.rmtree(output, ignore_errors=True)

    found["index of shards"] = (INDEX, json.dumps({"weight_map": {"w": SHARD, "b": SHARD}}).encode(), index)
    shutil.rmtree(output)
    return found
