"""The store: whole records or none, damage detected, a full disk loses nothing."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.record import NewerRecordError, Record, canonical_json, content_hash
from edgewatt.results.store import Claims, Store, StoreError, open_results
from edgewatt.runs.memo import Memo
from traces.base.errors import InputError
from traces.base.files import create_beside, own_folder, replace_file

pytestmark = pytest.mark.application


def record(number: int, text: str = "x") -> Record:
    config = {"number": number, "text": text}
    return Record(
        {"config": config, "hash": content_hash(config), "seed": 0, "results": {"a": 0.1 + number}}, {"host": "here"}
    )


def test_round_trip(tmp_path: Path) -> None:
    store = Store(tmp_path, fsync=True).open()
    hostile = record(1, "<script>\u202e../../\ud800\u0000" + "y" * 5000)
    for item in (record(0), hostile):
        store.put(item)
    assert store.get(hostile.hash) == hostile
    assert [item.hash for item in store] == store.hashes() == sorted([record(0).hash, hostile.hash])
    assert store.get("absent") is None
    assert not list(tmp_path.rglob(".*"))


def test_canonical_json_is_one_form() -> None:
    assert canonical_json({"b": 1.0, "a": [1e-3, None]}) == '{"a":[0.001,null],"b":1.0}'
    with pytest.raises(ValueError):
        canonical_json({"a": float("nan")})


def test_every_damage_is_detected(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    path = store.put(record(3))
    raw = path.read_bytes()
    for damaged in [
        raw[: len(raw) // 2],
        b"",
        raw.replace(b"3.1", b"3.2"),
        raw.replace(b"here", b"nope"),
        b"[]",
        b"\xff" * 9,
    ]:
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"record.*damaged") as caught:
            store.get(record(3).hash)
        assert str(path) in str(caught.value)
    path.write_bytes(raw.replace(b'"schema":1', b'"schema":99'))
    with pytest.raises(InputError, match="newer than this edgewatt"):
        store.get(record(3).hash)
    store.path("0" * 24).write_bytes(raw)
    with pytest.raises(InputError, match="another point"):
        store.get("0" * 24)


def test_every_byte_flip_is_detected(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    path = store.put(record(7))
    raw = path.read_bytes()
    for position in range(len(raw)):
        changed = bytearray(raw)
        changed[position] ^= 1
        try:
            found = Record.from_bytes(bytes(changed), "f")
        except InputError:
            continue
        assert found == record(7), position  # a change in white space or in a key's escape changes nothing


@pytest.mark.parametrize("version", [COUNTS_VERSION, COUNTS_VERSION - 1, COUNTS_VERSION + 1])
def test_a_record_is_current_as_far_as_it_can_be_read(tmp_path: Path, version: int) -> None:
    """Results as written are not parsed to say so: with any byte changed the answer is that of a whole reading."""
    store, whole = Store(tmp_path).open(), Record(record(7).canonical, {"counts_version": version})
    path = store.put(whole)
    raw = path.read_bytes()
    changes = [raw, raw.replace(b'"config":', b'"confi\\u0067":'), raw.replace(b',"hash"', b' ,"hash"')]
    changes += [raw[:k] + bytes([raw[k] ^ 1]) + raw[k + 1 :] for k in range(len(raw))]
    for changed in changes:
        path.write_bytes(changed)
        answers = []
        for ask in (store.is_current, lambda name: getattr(store.get(name), "counts_version", 0) == COUNTS_VERSION):
            try:
                answers.append(ask(whole.hash))
            except InputError as error:
                answers.append("newer" if isinstance(error, NewerRecordError) else "damaged")
        if version > COUNTS_VERSION and answers[1] is False:
            answers[1] = "newer"
        assert answers[0] == answers[1], changed
    assert not store.is_current("0" * 24)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="choose another folder"):
        Store(tmp_path / "file" / "results").open()
    with pytest.raises(InputError, match="choose another folder"):
        Store("a\0b").open()
    with pytest.raises(InputError, match="no results here"):
        open_results(tmp_path)


def test_failed_write_keeps_what_was_there(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    path = store.put(record(1))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError, match="what is finished is kept"):
            store.put(Record({**record(1).canonical, "more": "z" * 1000}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert os.listdir(store.records) == [path.name]


def test_full_disk(tmp_path: Path) -> None:
    """A tiny file system of its own where that is allowed, else /dev/full stands in for the disk."""
    store = Store(tmp_path).open()
    store.records.rmdir()
    try:
        store.records.symlink_to("/dev/full")
        with pytest.raises(StoreError):
            store.put(record(1))
    finally:
        store.records.unlink()


def test_failures_and_plans(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    store.put_failure(record(1).hash, {"error": "boom", "traceback": "..."})
    assert store.failed()[record(1).hash]["error"] == "boom"
    store.put(record(1))
    assert store.failed() == {}
    store.put_plan("first", ["a"])
    os.utime(next(store.plans.iterdir()), (1, 1))
    store.put_plan("second", ["b"])
    assert store.plan() == ("second", ["b"])


def test_processes_that_share_a_store_create_files_apart(tmp_path: Path) -> None:
    """Two workers that created files in one folder waited for each other, a sixth of their time."""
    alone, shared = Store(tmp_path).open(), Store(tmp_path, shared=True)
    alone.put(record(1))
    assert not [path for path in alone.records.iterdir() if path.is_dir()]
    shared.put(record(2))
    (own,) = (path for path in alone.records.iterdir() if path.is_dir())
    half = own / ".a.json.1"
    half.write_text("half")
    alone.tidy()
    assert half.exists() and alone.hashes() == sorted([record(1).hash, record(2).hash])
    os.utime(half, (1, 1))
    alone.sweep_leftovers()
    assert not own.exists()
    shared.put(record(3))
    alone.tidy()
    assert not own.exists() and len(alone.hashes()) == 3
    shutil.rmtree(tmp_path)
    with pytest.raises(StoreError):
        shared.put(record(4))


def test_leftovers_are_swept(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    old, new = store.records / ".a.json.1", store.records / ".b.json.2"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (1, 1))
    store.sweep_leftovers()
    assert not old.exists() and new.exists()
    assert store.hashes() == []


def test_two_writers_of_one_record(tmp_path: Path) -> None:
    """Readers of a file that two processes keep writing never see a half-written one."""
    Store(tmp_path).open()
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from edgewatt.results.store import Store; from edgewatt.results.record import *\n"
        "c = {'n': 1}; r = Record({'config': c, 'hash': content_hash(c), 'results': {'x': 'x' * 20000}})\n"
        "s = Store(sys.argv[1])\n"
        "for _ in range(300): s.put(r)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *sys.path]) for _ in range(2)]
    store, reads = Store(tmp_path), 0
    while any(writer.poll() is None for writer in writers):
        reads += len(list(store))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert reads > 0 and len(store.hashes()) == 1 and json.loads(store.path(store.hashes()[0]).read_text())


def test_temporary_names_are_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers share folders and may have equal host names and process ids."""
    monkeypatch.setattr("socket.gethostname", lambda: "../a/b")
    monkeypatch.setattr("os.getpid", lambda: 1)
    target = tmp_path / ("x" * 200 + ".json")
    made = [create_beside(target) for _ in range(20)]
    assert len({name for _, name in made}) == 20 == len(list(tmp_path.iterdir()))
    for descriptor, name in made:
        assert Path(name).name.startswith(".") and len(Path(name).name) < 255
        with pytest.raises(FileExistsError):
            os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.close(descriptor)


def test_a_name_that_is_taken_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = iter(["a", "a", "b"])
    monkeypatch.setattr("secrets.token_hex", lambda n: next(digits))
    descriptor, first = create_beside(tmp_path / "r.json")
    os.write(descriptor, b"another host's")
    replace_file(tmp_path / "r.json", b"mine")
    assert (Path(first).read_bytes(), (tmp_path / "r.json").read_bytes()) == (b"another host's", b"mine")
    os.close(descriptor)


def test_a_temporary_file_that_somebody_tidies_away_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another host does whose clock is hours ahead."""
    store, replace, times = Store(tmp_path).open(), os.replace, 0

    def tidied(source: str, target: str) -> None:
        nonlocal times
        times += 1
        if times == 1:
            os.unlink(source)
        replace(source, target)

    monkeypatch.setattr("os.replace", tidied)
    store.put(record(1))
    assert times == 2 and store.get(record(1).hash) == record(1) and len(os.listdir(store.records)) == 1


def test_clocks_that_jump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path).open()
    working = store.records / ".a.json.other-host-1-00"
    working.write_text("half")
    for jump in (1e6, -1e6):
        monkeypatch.setattr("time.time", lambda jump=jump: 1.8e9 + jump)
        store.sweep_leftovers()
        assert working.exists(), "its age is a matter between files"
    store.put_plan("first", ["a"])
    os.utime(next(store.plans.iterdir()), (2**32, 2**32))  # noted before the clock was set back
    store.put_plan("second", ["b"])
    assert store.plan() == ("second", ["b"])
    store.put_plan("first", ["a"])
    assert store.plan() == ("first", ["a"])


def test_leftovers_of_stages_are_swept_too(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    (tmp_path / "stages" / "io").mkdir(parents=True)
    old = [tmp_path / "stages" / "io" / ".k.npz.host-1-0", store.plans / ".p.json.host-1-0"]
    for path in old:
        path.write_text("half")
        os.utime(path, (1, 1))
    store.sweep_leftovers()
    assert not any(path.exists() for path in old) and not list(tmp_path.rglob(".now*"))


@pytest.mark.parametrize("link", ["records", "failures", "sweeps", "stages", "stages/io", "stages/locks", "claims"])
def test_a_link_in_place_of_what_the_store_makes(tmp_path: Path, link: str) -> None:
    """Files of the folder that it leads to were deleted, others were written there."""
    (tmp_path / "results" / "stages").mkdir(parents=True)
    place = tmp_path / "results" / link
    if link == "stages":
        place.rmdir()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=rf"{place}: a link"):
        Store(tmp_path / "results").open()
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_to_the_results_is_followed(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "link").symlink_to("results")
    store = Store(tmp_path / "link").open()
    store.put(record(1))
    store.sweep_leftovers()
    assert Store(tmp_path / "results").get(record(1).hash) == record(1)


def test_nothing_is_deleted_or_made_through_links(tmp_path: Path) -> None:
    store, elsewhere = Store(tmp_path / "results", shared=True).open(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    kept = elsewhere / ".a.json.1"
    kept.write_text("half")
    os.utime(kept, (1, 1))
    own_folder(store.records).symlink_to(elsewhere)
    old = elsewhere.stat().st_mtime_ns
    store.put(record(1))
    store.sweep_leftovers()
    (tmp_path / "stages").mkdir()
    for locks in (tmp_path / "stages" / "locks", tmp_path / "claims" / "points"):
        locks.parent.mkdir(exist_ok=True)
        locks.symlink_to(elsewhere / "made")
    Memo(tmp_path / "stages").arrays("io", "a", dict)
    with Claims(tmp_path / "claims") as claims:
        assert claims.take("a")
    assert os.listdir(elsewhere) == [kept.name] and elsewhere.stat().st_mtime_ns == old
    assert store.get(record(1).hash) == record(1)
