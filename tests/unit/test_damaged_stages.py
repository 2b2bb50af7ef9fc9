"""Stage files: what is damaged, or forged, is set aside and made again; a failed point recovers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgewatt.results.record import canonical_json
from edgewatt.results.store import Store
from edgewatt.runs import memo
from edgewatt.runs.run_state import Results
from edgewatt.runs.sweep import sweep
from hwmodel.replay.cache_pass import KeptPass
from traces.base.errors import InputError

pytestmark = pytest.mark.application

SWEEP: dict[str, Any] = {
    "base": {
        "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.4}},
        "orderings": ["by-source"],
        "fast_memory": {"size": 8},
        "caches": ["buffer-8k"],
        "timing": "replay",
        "strides": [{"kind": "greedy", "stride": 4}],
    },
    "grid": {"dram.part": ["lpddr4-3200", "lpddr4-4266"]},
}


@pytest.fixture(autouse=True)
def every_result_has_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "WORTH_S", 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return canonical(sweep(SWEEP, results=tmp_path_factory.mktemp("whole"), executor="inline").store)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    sweep(SWEEP, results=tmp_path, executor="inline")
    for path in (tmp_path / "records").iterdir():
        path.unlink()
    return tmp_path


def canonical(store: Store) -> dict[str, str]:
    return {record.hash: canonical_json(record.canonical) for record in store}


def again(results: Path) -> Results:
    from edgewatt.runs.compute import process_memo

    process_memo.cache_clear()  # what another process would find
    return sweep(SWEEP, results=results, executor="inline")


def stage_files(results: Path) -> list[Path]:
    return sorted((results / "stages").rglob("*.npz"))


def forged(path: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    """Change a stage file and seal it again, as whoever knows how may do."""
    with np.load(path) as stored:
        arrays = dict(stored)
    change(arrays)
    memo._write(path, path.stem, arrays)


def flipped(raw: bytes) -> bytes:
    return raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 4]) + raw[len(raw) // 2 + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "zeros": lambda raw: bytes(len(raw)),
    "half": lambda raw: raw[: len(raw) // 2],
    "cut": lambda raw: raw[:-3],
    "bit": flipped,
    "text": lambda raw: b"not a zip",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_set_aside_and_made_again(results: Path, whole: dict[str, str], damage: str) -> None:
    files = stage_files(results)
    assert {path.parent.name for path in files} >= {"ordering", "tuple_order", "io", "cache_pass", "replay"}
    for path in files:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    done = again(results)
    assert canonical(done.store) == whole and not done.failed
    unnoticed = {path.name for path in files} - {Path(name).name for name in done.damaged}
    assert len(unnoticed) <= (2 if damage == "bit" else 0), "a bit that nothing depends on, as in a date"
    assert len(list((results / "stages").rglob("*.damaged-*"))) == len(done.damaged)
    assert stage_files(results) == files


FORGED: dict[str, tuple[str, Callable[[dict[str, np.ndarray]], object]]] = {
    "far": ("ordering", lambda a: a.update(edges=a["edges"] + 10**12)),
    "zeros": ("ordering", lambda a: a.update(edges=0 * a["edges"])),
    "short": ("tuple_order", lambda a: a.update(edges=a["edges"][:-1])),
    "floats": ("tuple_order", lambda a: a.update(edges=a["edges"].astype(float))),
    "no edges": ("ordering", lambda a: a.pop("edges")),
    "no meta": ("ordering", lambda a: a.pop("meta")),
    "deep meta": ("ordering", lambda a: a.update(meta=np.frombuffer(b"[" * 50_000, np.uint8))),
    "meta of nothing": ("ordering", lambda a: a.update(meta=np.frombuffer(b"{}", np.uint8))),
    "curve": (
        "ordering",
        lambda a: a.update(meta=np.frombuffer(b'{"curve": 3, "curve_seconds": [], "truncated": false}', np.uint8)),
    ),
    "no json": ("io", lambda a: a.pop("json")),
    "a list": ("replay", lambda a: a.update(json=np.frombuffer(b"[]", np.uint8))),
    "stream": ("cache_pass", lambda a: a.update(stream=a["stream"] | 128)),
    "direction": ("cache_pass", lambda a: a.update(is_write=a["is_write"] + 2)),
    "data": ("cache_pass", lambda a: a.update(data=a["data"][:-1])),
    "columns": ("cache_pass", lambda a: a.update(address=a["address"][:-1])),
    "types": ("cache_pass", lambda a: a.update(address=a["address"].astype(np.int32))),
    "counts": ("cache_pass", lambda a: a.update(asked=a["asked"][0])),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_files_are_made_again(results: Path, whole: dict[str, str], forgery: str) -> None:
    step, change = FORGED[forgery]
    for path in (results / "stages" / "replay").glob("*.npz"):  # so that the pass through the caches is asked for
        if step == "cache_pass":
            path.unlink()
    for path in (results / "stages" / step).glob("*.npz"):
        forged(path, change)
    done = again(results)
    assert canonical(done.store) == whole and not done.failed
    assert done.damaged and all(f"/{step}/" in name for name in done.damaged)


def test_a_changed_value_without_its_seal_is_unnoticed(results: Path, whole: dict[str, str]) -> None:
    for path in (results / "stages" / "io").glob("*.npz"):
        np.savez(path, json=np.frombuffer(json.dumps({"io": {"total": 0}}).encode(), np.uint8))
    assert canonical(again(results).store) == whole


def test_the_file_of_another_key_is_unnoticed(results: Path, whole: dict[str, str]) -> None:
    first, second = sorted((results / "stages" / "replay").glob("*.npz"))
    first.write_bytes(second.read_bytes())
    assert canonical(again(results).store) == whole


def test_retry_failed_recovers(tmp_path: Path, whole: dict[str, str]) -> None:
    store = Store(tmp_path).open()
    for name in whole:
        store.put_failure(name, {"error": "a stage file was damaged", "traceback": ""})
    assert len(sweep(SWEEP, results=tmp_path, executor="inline").failed) == len(whole)
    done = sweep(SWEEP, results=tmp_path, executor="inline", retry_failed=True)
    assert canonical(done.store) == whole and not done.failed


def test_a_kept_pass_of_anything_is_refused() -> None:
    for arrays in ({}, {"meta": np.zeros(3)}, {"meta": np.frombuffer(b"[]", np.uint8)}):
        with pytest.raises(InputError, match="no pass through caches"):
            KeptPass(arrays)
