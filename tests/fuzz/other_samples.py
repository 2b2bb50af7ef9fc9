"""Small valid files that are neither networks nor traces: orders, matrices, tables, constants, results."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import edgewatt as ew
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from edgewatt.runs.memo import Memo
from hwmodel.dram.command_table import command_table
from hwmodel.energy.technology import load_technology
from hwmodel.parts.part_file import load_part
from reorder.operators.arena.files import read_buffers
from reorder.tuples.files import read_matrix, write_matrix
from traces.accelerators.scalesim import read_run
from traces.base.resources import shipped_path
from traces.networks.network import Network

Sample = tuple[str, bytes, Callable[[Path], Any]]

BUFFERS = b"id,lower,upper,size\na,0,2,64\nb,1,3,32\n"
COMMANDS = b"""timestamp_cycles,command,rank,bank_group,bank,row,column,data_hex
0,ACT,0,0,0,341,0,
29,RD,0,0,0,341,0,0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff
"""
SCALESIM = "[architecture_presets]\nIfmapOffset=0\nFilterOffset=100\nOfmapOffset=200\n[run_presets]\nInterfaceBandwidth=CALC\n"  # fmt: skip # noqa: E501


def other_samples(net: Network, folder: Path) -> dict[str, Sample]:
    """Return name -> sample; `folder` is for files on the way."""
    found: dict[str, Sample] = {}

    def add(name: str, file: str, data: bytes, read: Callable[[Path], Any]) -> None:
        found[name] = (file, data, read)

    matrix = scipy.sparse.random(6, 5, 0.5, "csr", random_state=np.random.default_rng(2)).astype(np.float32)
    for suffix in (".npz", ".safetensors", ".mtx"):
        write_matrix(matrix, folder / f"w{suffix}")
        add(f"matrix {suffix}", f"w{suffix}", (folder / f"w{suffix}").read_bytes(), read_matrix)
    plain = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")} | {"shape": np.array(matrix.shape)}
    add("matrix arrays", "w.npz", _npz(**plain), read_matrix)

    order = ew.order(net, "two-optimal", memory=5).edges
    text = "\n".join(map(str, order)).encode()
    for name, file, data in (("npz", "o.npz", _npz(edges=order)), ("text", "o.txt", text)):
        add(f"order {name}", file, data, lambda path: ew.order(net, "file", memory=5, path=str(path)))
    add("order npy", "o.npy", _npy(order), lambda path: ew.order(net, "file", memory=5, path=str(path)))
    add("buffers", "b.csv", BUFFERS, read_buffers)
    part = load_part("lpddr4-3200")
    add("commands", "d.csv", COMMANDS, lambda path: command_table(path, part=part))
    add("part", "p.yaml", shipped_path("dram", "lpddr4-3200").read_bytes(), load_part)
    add("technology", "t.yaml", shipped_path("onchip", "lop-22nm").read_bytes(), load_technology)

    layer = folder / "run" / "layer0"
    layer.mkdir(parents=True)
    (folder / "run" / "scale.cfg").write_text(SCALESIM)
    rows = {"IFMAP": "0,0,1,2,3\n1,2,3,4,5\n", "FILTER": "0,100,101,102,103\n", "OFMAP": "3,200,201\n4,202,-1\n"}
    for tensor, words in rows.items():
        (layer / f"{tensor}_DRAM_TRACE.csv").write_text(words)
    tensors = {"layer0_ifmap": np.ones((3, 3, 1), np.int8), "layer0_filter": np.ones((1, 2, 2, 1), np.int8)}
    tensors["layer0_ofmap"] = np.ones((2, 2, 1), np.int8)

    def run_with(place: str) -> Callable[[Path], Any]:
        def read(path: Path) -> Any:
            try:
                shutil.copy(path, folder / "run" / place)
                return read_run(folder / "run", tensors)
            finally:
                (folder / "run" / "scale.cfg").write_text(SCALESIM)
                (layer / "IFMAP_DRAM_TRACE.csv").write_text(rows["IFMAP"])
                (layer / "FILTER_DRAM_TRACE.csv").write_text(rows["FILTER"])
                (layer / "FILTER_DRAM_TRACE.csv.gz").unlink(missing_ok=True)

        return read

    def packed(path: Path) -> Any:
        (layer / "FILTER_DRAM_TRACE.csv").unlink()
        return run_with("layer0/FILTER_DRAM_TRACE.csv.gz")(path)

    add("scale-sim trace", "i.csv", rows["IFMAP"].encode(), run_with("layer0/IFMAP_DRAM_TRACE.csv"))
    add("scale-sim trace gzip", "i.gz", gzip.compress(rows["FILTER"].encode()), packed)
    add("scale-sim configuration", "i.cfg", SCALESIM.encode(), run_with("scale.cfg"))

    config = {"network": {"files": [{"name": "n", "sha256": "0"}]}}
    record = Record({"config": config, "hash": content_hash(config), "results": {"io": {"total": 3}}}, {"name": "n"})
    add("record", "r.json", record.to_bytes(), lambda path: Record.from_bytes(path.read_bytes(), str(path)))
    store = Store(folder / "store").open()
    plan = json.dumps({"name": "n", "points": ["a", "b"]}).encode()
    failure = json.dumps({"error": "x", "traceback": "y"}).encode()
    add("plan", "p.json", plan, lambda path: (shutil.copy(path, store.plans / "p.json"), store.plan()))
    add("failure", "f.json", failure, lambda path: (shutil.copy(path, store.failures / "f.json"), store.failed()))
    _add_own_files(add, net, matrix, folder)
    return found


def _add_own_files(add: Callable[..., None], net: Network, matrix: Any, folder: Path) -> None:
    """Checkpoints and stage files: whatever they hold, what comes out is what would have come out without them."""

    def tuples(path: Path | None) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ew.order_tuples(
                matrix, value_format="fp16", stride=4, method="greedy", bound=False, checkpoint=path
            ).positions

    wanted = tuples(None)
    tuples(folder / "c.journal")

    def resume(path: Path) -> bool:
        if not (tuples(path) == wanted).all():  # the file may hold another sound order: then it costs what it costs
            assert sorted(tuples(path)) == sorted(wanted)
        _forget(path)
        return True

    add("checkpoint", "c.journal", (folder / "c.journal").read_bytes(), resume)
    arrays = {"edges": np.arange(12), "meta": np.frombuffer(b'{"a": 1}', np.uint8)}

    def stage(path: Path | None) -> bool:
        memo = Memo(folder / "stages")
        place = folder / "stages" / "step"
        if path is not None:
            shutil.copy(path, next(place.glob("*.npz")))
        found = memo.arrays("step", "identity", lambda: arrays, needed=True)
        assert all((found[name] == arrays[name]).all() for name in arrays), "a damaged stage file was believed"
        for other in place.glob("*.damaged-*"):
            other.unlink()
        return True

    stage(None)
    try:
        from edgewatt.orders.training import train_seeds
        from reorder.eon.checkpoint import read as read_eon
    except ImportError:  # without PyTorch there is no such file to read
        pass
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            train_seeds(net, memory=6, iterations=1, output=folder / "eon.safetensors")
        add("eon", "e.safetensors", (folder / "eon.safetensors").read_bytes(), lambda path: read_eon(path, net))
        add("eon alone", "e.safetensors", (folder / "eon.safetensors").read_bytes(), read_eon)
    add("stage", "s.npz", next((folder / "stages" / "step").glob("*.npz")).read_bytes(), stage)


def _forget(path: Path) -> None:
    for other in path.parent.glob(f"{path.name}.damaged-*"):
        other.unlink()


def _npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
