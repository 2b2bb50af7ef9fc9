"""Small files that made gigabytes, or minutes of silence: refused by what would be made, in one message."""

import os
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import edgewatt as ew
from edgewatt import InputError
from edgewatt.results.store import Store, open_records
from edgewatt.runs.plan import load_sweep
from hwmodel.dram.command_table import command_table
from hwmodel.parts.part_file import load_part
from hwmodel.replay.profile import parse_level, profile_caches
from reorder.tuples.files import read_matrix
from tests.hostile_sizes import npz, one, opgraph, tflite
from traces.accelerators.scalesim import count_tensor, read_counts
from traces.base.journal import Journal
from traces.base.memory import read_within
from traces.operators.opgraph import Operator, OpGraph, Tensor
from traces.readers.parts.weights import ModelWeights
from traces.trace.chunks import SLICE_BYTES, Chunk, Memory, Trace, slices
from traces.trace_files import export_trace, open_trace

pytestmark = pytest.mark.application

FEW = dict(format=b"coo", data=np.ones(2, np.float32), row=np.array([0, 1]), col=np.array([0, 1]))


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "256M")


@pytest.mark.parametrize("shape", [[5 * 10**8, 4], [2**40, 4]])
@pytest.mark.parametrize("read", [ew.load, read_matrix], ids=["load", "read_matrix"])
def test_a_matrix_of_many_rows(read, shape: list[int], tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "m.npz").write_bytes(npz(shape=shape, **FEW))
    with pytest.raises(InputError, match=r"m\.npz: .*(bytes of memory|too large)"):
        read(tmp_path / "m.npz")


def test_a_member_that_unpacks_without_bound(tmp_path: Path) -> None:
    (tmp_path / "m.npz").write_bytes(npz(zipfile.ZIP_BZIP2, shape=[4, 4], **FEW))
    with pytest.raises(InputError, match=r"m\.npz: array .* is packed in a way that NumPy does not write"):
        ew.load(tmp_path / "m.npz")


def test_many_writers_and_readers_of_one_storage(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_bytes(one(opgraph(), "8000 writers and readers"))
    graph = ew.load(tmp_path / "g.json")  # which is linear
    with pytest.raises(InputError, match=r"wait for others 64000000 times"):
        _ = graph.predecessors


def test_who_waits_for_whom_is_told_once_where_many_write_and_read_one_storage(tmp_path: Path) -> None:
    """8,000 writers and as many readers took 1.5 GB and 19 s."""
    (tmp_path / "g.json").write_bytes(one(opgraph(), "2000 writers and readers"))
    graph = ew.load(tmp_path / "g.json")
    assert graph.predecessors[2000] == tuple(range(2000)) and graph.successors[0] == tuple(range(2000, 4000))
    assert len(set(map(id, graph.predecessors))) == len(set(map(id, graph.successors))) == 2


def test_an_operator_with_many_inputs_and_outputs() -> None:
    """Whether it updates one of its inputs: 40,000 of either took 14 s where each was held against each."""
    made, read = ([Tensor(f"{name}{i}", (2,), 8, f"{name}{i}") for i in range(40_000)] for name in "ab")
    nodes = Operator("a", "SPLIT", (), tuple(made)), Operator("b", "X", tuple(t.name for t in made), tuple(read))
    before = time.process_time()
    assert OpGraph("g", nodes, ("b0",)).predecessors == ((), (0,))
    assert time.process_time() - before < 3


def test_a_name_that_many_tensors_share(tmp_path: Path) -> None:
    pytest.importorskip("tflite")
    (tmp_path / "m.tflite").write_bytes(one(tflite(), "12000 tensors, 60000 characters, 1 sides"))
    before = time.process_time()
    with pytest.raises(InputError, match=r"m\.tflite"):
        ew.load(tmp_path / "m.tflite")
    assert time.process_time() - before < 20


def test_memory_that_runs_out_is_one_message() -> None:
    code = (
        "import edgewatt.cli as cli, typer\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def go():\n    raise MemoryError\n"
        "cli.main(app)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "edgewatt: there is not as much memory as this takes\n"


def test_an_index_of_shards_that_is_larger_than_the_bound(tmp_path: Path) -> None:
    """It was read whole, twice."""
    with (tmp_path / "model.safetensors.index.json").open("wb") as stream:
        stream.truncate(64 << 20)
    with pytest.raises(InputError, match=r"index\.json: .*bytes of memory"):
        ModelWeights(tmp_path)


def test_a_plan_and_a_failure_that_are_larger_than_the_bound(tmp_path: Path) -> None:
    store = Store(tmp_path / "results").open()
    for path in (store.plans / "p.json", store.failures / "f.json"):
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as stream:
            stream.write(b'{"name": "x", "points": [], "error": "y"}')
            stream.seek((64 << 20) - 1)
            stream.write(b" ")
    tracemalloc.start()
    assert store.plan() == ("", []) and "damaged" in store.failure("f")["error"]
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


@pytest.mark.parametrize("lines", [1, 100])
def test_a_journal_of_many_values(lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of 60 MB made 1.5 GB; the orders of a real one, which are text, make no more than they are."""
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "8M")
    for name, value in (("text", "A" * (1_000_000 // lines)), ("lists", [[]] * (200_000 // lines))):
        journal = Journal(tmp_path / name, "key")
        for _ in range(lines):
            journal.put(value=value)
        journal.close()
    assert len(Journal(tmp_path / "text", "key").lines) == lines
    with pytest.raises(InputError, match=r"lists: its first \d+ lines would take .* bytes of memory"):
        Journal(tmp_path / "lists", "key")


def test_a_record_of_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "8M")
    store = Store(tmp_path / "results").open()
    path = store.path("0" * 24)
    path.write_text(f"[{'{},' * 100_000}0]")  # 24 times as much when parsed
    for read in (lambda: store.get("0" * 24), lambda: open_records(path)):
        with pytest.raises(InputError, match="bytes of memory"):
            read()


def test_a_grid_of_more_points_than_the_bound_has_room_for() -> None:
    """536 bytes took 798 MB."""
    network = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 8, "density": 0.5}}
    numbers = list(range(1, 101))
    grid = {"seed": numbers, "batch": numbers, "fast_memory.size": numbers[:10]}
    with pytest.raises(InputError, match=r"config\['grid'\]: the grid of 100000 points would take .* bytes of memory"):
        load_sweep({"base": {"network": network}, "grid": grid})


def test_lists_of_a_run_of_more_points_than_the_bound_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are multiplied, too: 1,000 orderings at 2,000 strides were 2,000,000 configurations."""
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "8M")
    network = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 8, "density": 0.5}}
    orderings = [{"kind": "ego", "window": 2 + i} for i in range(30)]
    run = {"network": network, "orderings": orderings, "strides": list(range(1, 41)), "measure": "all"}
    with pytest.raises(InputError, match=r"config: a run of 1200 points would take .* bytes of memory"):
        load_sweep(run)
    base = {**run, "strides": list(range(1, 21))}
    with pytest.raises(InputError, match=r"config: a sweep of 1200 points would take .* bytes of memory"):
        load_sweep({"base": base, "grid": {"seed": [1, 2, 3]}})


def test_a_device_that_never_ends_is_read_to_the_bound() -> None:
    """Its size is 0: all memory was taken."""
    with pytest.raises(InputError, match=r"/dev/zero: it would take"):
        read_within(Path("/dev/zero"))


def test_the_ones_of_a_tensor_are_counted_in_pieces() -> None:
    """Its bits were unpacked: eight times the tensor."""
    tensor = np.full(10**7, 3, np.uint8)
    tracemalloc.start()
    assert count_tensor(tensor, 10**7, 8).ones == 2 * 10**7
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_the_columns_that_a_table_names_and_no_line_has(tmp_path: Path) -> None:
    """A field was kept for each of them in every line: 300 kB of counts took 2 GB."""
    more = ",".join(map(str, range(3000)))
    (tmp_path / "c.csv").write_text(
        f"layer,tensor,dram_reads,dram_writes,access_bits,{more}\n" + 1000 * "0,ifmap,0,0,8\n"
    )
    (tmp_path / "t.csv").write_text(
        f"timestamp_cycles,command,rank,bank_group,bank,row,column,{more}\n" + 1000 * "0,PREA\n"
    )
    part = load_part("lpddr4-3200")
    tracemalloc.start()
    assert read_counts(tmp_path / "c.csv", {"layer0_ifmap": np.ones(3, np.int8)}) == []
    assert len(command_table(tmp_path / "t.csv", part=part)) == 1000
    assert tracemalloc.get_traced_memory()[1] < 1 << 23
    tracemalloc.stop()


@pytest.mark.parametrize("policy", ["lru", "min"])
def test_accesses_of_many_lines(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accesses of 65,535 bytes were cut into lines all at once: 476 kB of them took up to 5.7 GB."""
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "32M")
    (tmp_path / "t.din").write_text("".join(f"w {k << 16:x} ffff\n" for k in range(2000)))
    trace = open_trace(tmp_path / "t.din")
    tracemalloc.start()
    with pytest.raises(InputError, match=r"line look-ups.* would take .* bytes of memory"):
        profile_caches(trace, [parse_level(f"4KiB:8:1:{policy}")])
    with pytest.raises(InputError, match=r"line look-ups held at once would take .* bytes of memory"):
        export_trace(trace, tmp_path / "o.bin", "libcachesim", line_bytes=8)
    assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()


def test_slices_of_few_bytes_are_the_trace() -> None:
    size = np.random.default_rng(0).integers(1, 2**16, 1000).astype(np.uint16)
    chunk = Chunk(np.arange(1000, dtype=np.uint64), size, np.zeros(1000, np.uint8), np.zeros(1000, np.uint8))
    parts = list(slices(Trace.from_chunks([chunk], Memory(0, 2**17, None))))
    assert [*np.concatenate([part.address for part in parts])] == list(range(1000)) and len(parts) > 3
    assert max(part.size.sum(dtype=np.int64) for part in parts) < SLICE_BYTES + 2**16


@pytest.mark.parametrize("what", ["device", "pipe"])
def test_what_is_no_file_in_a_folder_of_results(tmp_path: Path, what: str) -> None:
    """A record that was a pipe kept who read it for ever."""
    store = Store(tmp_path / "results").open()
    for path in (store.path("0" * 24), store.plans / "p.json", store.failures / "f.json"):
        path.parent.mkdir(exist_ok=True)
        path.symlink_to("/dev/zero") if what == "device" else os.mkfifo(path)
    assert store.plan() == ("", []) and "damaged" in store.failure("f")["error"]
    with pytest.raises(InputError, match="a pipe or a device, not a file"):
        store.get("0" * 24)
