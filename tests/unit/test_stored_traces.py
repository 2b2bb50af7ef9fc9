"""Stored traces that are damaged or hostile: what meta.json says is checked against the chunks."""

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from oracles.trace_oracle import small_network

from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.engine import load_part
from hwmodel.energy.total import run_energy
from hwmodel.machine import Machine
from hwmodel.system.simulation import simulate
from traces.base.errors import InputError
from traces.trace.build import build_trace
from traces.trace.chunks import Chunk, Memory, Trace
from traces.trace_files import export_trace, open_trace
from traces.trace_files.npz import load_trace, save_trace


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def changed(
    path: Path, trace: Trace, *, text: bytes | None = None, members: dict | None = None, **meta: object
) -> Path:
    """Save a trace with another meta.json and other members."""
    save_trace(trace, path)
    with zipfile.ZipFile(path) as archive:
        held = {info.filename: archive.read(info) for info in archive.infolist()}
    said = json.loads(np.load(io.BytesIO(held["meta.json.npy"])).tobytes())
    raw = json.dumps({**said, **meta}).encode() if text is None else text
    held["meta.json.npy"] = npy(np.frombuffer(raw, np.uint8))
    for name, values in (members or {}).items():
        held[name] = values if isinstance(values, bytes) else npy(values)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in held.items():
            archive.writestr(name, data)
    return path


def addresses_only() -> Trace:
    chunk = Chunk(
        np.array([64, 128], np.uint64), np.array([4, 4], np.uint8), np.array([0, 1], np.uint8), np.zeros(2, np.uint8)
    )
    return Trace.from_chunks([chunk], Memory(64, 68, None))


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (dict(accesses=10**6), "accesses in its chunks, 1000000 announced: the file is damaged"),
        (dict(accesses=1), "2 accesses in its chunks, 1 announced: the file is damaged"),
        (dict(accesses=3), "2 accesses in its chunks, 3 announced: the file is damaged"),
        (dict(chunks=0), "1 chunks in it, 0 announced: the file is damaged"),
        (dict(base_address=2**63 - 1), "meta.json is damaged .the footprint ends beyond 2.63"),
        (dict(regions=[["a", 64, 69]]), "meta.json is damaged .a region lies outside the footprint"),
        (dict(regions=[["a", 0, 1]]), "meta.json is damaged .a region lies outside the footprint"),
        (dict(regions=[["a", 64, -1]]), "meta.json is damaged .a region lies outside the footprint"),
        (dict(base_address=0), "an access lies outside the footprint"),
        (dict(total_bytes=10), "an access lies outside the footprint"),
        (dict(total_bytes=-1), "meta.json is damaged"),
        (dict(accesses=True), "meta.json is damaged|announced"),
        (dict(chunks=2), "00000001/address.npy is missing"),
        (dict(regions=[["a", 1.5, 2]]), "meta.json is damaged"),
        (dict(regions=[["a"]]), "meta.json is damaged"),
        (dict(multiply_adds=-1), "meta.json is damaged"),
        (dict(multiply_adds=1.5), "meta.json is damaged"),
        (dict(multiply_adds=5), "meta.json is damaged"),
        (dict(multiply_adds=5, description={"layout": {"value_format": 3}}), "multiply-adds have no format"),
        (dict(text=b"[" * 50_000), "meta.json is damaged"),
        (dict(text=b'{"format": "edgewatt-trace"}'), "meta.json is damaged"),
        (dict(text=b"\xff"), "meta.json is damaged"),
        (dict(members={"00000000/op.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'shape': ("}), "op.npy"),
    ],
)
def test_what_meta_says_is_checked(tmp_path: Path, meta: dict, message: str) -> None:
    path = changed(tmp_path / "t.npz", addresses_only(), **meta)
    with pytest.raises(InputError, match=f"t.npz.*({message})"):
        list(open_trace(path))


def test_a_saved_trace_costs_what_the_trace_costs(tmp_path: Path) -> None:
    built = build_trace(small_network(), layout="tuples", lanes=4, batch=8)
    export_trace(built, tmp_path / "t.npz", "npz")
    saved = load_trace(tmp_path / "t.npz")
    assert saved.multiply_adds == built.multiply_adds > 0
    machine = Machine(caches=(CacheSpec(8192, 64, 4),), part=load_part("lpddr4-3200"), technology="lop-45nm")
    first, second = simulate(built, machine), simulate(saved, machine)
    assert first.run_time == second.run_time and second.run_time.roofline_ns["engine"] > 0
    assert run_energy(first.counts, machine, first.time_ns) == run_energy(second.counts, machine, second.time_ns)


def test_files_of_before_have_no_multiply_adds(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    save_trace(build_trace(small_network()), path)
    with zipfile.ZipFile(path) as archive:
        said = json.loads(np.load(io.BytesIO(archive.read("meta.json.npy"))).tobytes())
    del said["multiply_adds"]
    changed(path, build_trace(small_network()), text=json.dumps(said).encode())
    assert load_trace(path).multiply_adds == 0


def test_a_trace_without_accesses_is_no_trace(tmp_path: Path) -> None:
    path = changed(tmp_path / "t.npz", Trace.from_chunks([], Memory(64, 68, None)))
    with pytest.raises(InputError, match=r"t.npz: no accesses in it"):
        open_trace(path)


def test_a_bomb_is_refused_before_it_unfolds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1M")
    bomb = np.zeros(1 << 22, np.uint8)
    path = changed(tmp_path / "t.npz", build_trace(small_network()), members={"image.npy": bomb}, total_bytes=1 << 22)
    assert path.stat().st_size < 1 << 16
    with pytest.raises(InputError, match=r"t.npz: image.npy would take|t.npz: image.npy: it would take"):
        load_trace(path)
    path = changed(tmp_path / "t.npz", addresses_only(), members={"00000000/address.npy": bomb.view(np.uint64)})
    with pytest.raises(
        InputError, match=r"address.npy: it would take 4,194,432 bytes|524288 accesses in its chunks, 2 announced"
    ):
        list(load_trace(path))


def test_what_is_read_is_held_once(tmp_path: Path) -> None:
    n = 1 << 24
    held = Chunk(np.zeros(1, np.uint64), np.ones(1, np.uint8), np.zeros(1, np.uint8), np.zeros(1, np.uint8),
                 np.array([0, 1]), np.zeros(1, np.uint8))  # fmt: skip
    save_trace(Trace.from_chunks([held], Memory(0, n, np.arange(n, dtype=np.uint8))), tmp_path / "t.npz")
    tracemalloc.start()
    try:
        trace = load_trace(tmp_path / "t.npz")
        assert tracemalloc.get_traced_memory()[1] < 1.5 * n
    finally:
        tracemalloc.stop()
    assert trace.memory.image is not None and (trace.memory.image == np.arange(n, dtype=np.uint8)).all()
