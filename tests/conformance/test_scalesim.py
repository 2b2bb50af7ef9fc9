"""Accelerator models as front ends: SCALE-Sim's words with their bytes, and what a memory does with them; counts."""

import csv
import zlib

import numpy as np
import pytest

from hwmodel.machine import Machine
from hwmodel.replay import replay
from traces.accelerators.counts import count_tensor
from traces.accelerators.scalesim import as_trace, base_addresses, read_run
from traces.base.errors import InputError


def run_of(reference, run):
    folder = reference / "accelerators" / "scalesim"
    partials = folder / run / f"{run}_partials.npz"
    given = np.load(partials) if partials.is_file() else None
    return read_run(folder / run, np.load(folder / "net_a_tensors.npz"), partials=given)


@pytest.mark.parametrize("run", ["a_os_calc", "a_ws_calc", "a_os_user"])
def test_words_and_their_bytes(reference, run):
    with (reference / "accelerators" / "scalesim" / "expected.csv").open() as file:
        wanted = {(int(row["layer"]), row["tensor"]): row for row in csv.DictReader(file) if row["run"] == run}
    found = run_of(reference, run)
    assert {(each.layer, each.tensor) for each in found} == set(wanted)
    for each in found:
        row = wanted[each.layer, each.tensor]
        got = {
            "tensor_words": each.tensor_words, "words": len(each.word), "distinct": len(np.unique(each.word)),
            "missing": each.missing, "first_cycle": int(each.cycle[0]), "last_cycle": int(each.cycle.max()),
            "byte_sum": int(each.data.sum(dtype=np.int64)), "ones": each.ones,
        }  # fmt: skip
        assert got == {name: int(row[name]) for name in got}, row
        assert f"{zlib.crc32(each.data.tobytes()):08x}" == row["crc32"]


@pytest.mark.parametrize("run", ["a_os_calc", "a_ws_calc"])
def test_a_memory_moves_these_words(reference, run):
    """Every word is in exactly one access with its byte; replay turns them into commands and ones on wires."""
    found = run_of(reference, run)
    trace = as_trace(found, burst_bytes=32, bases=base_addresses(found))
    loads = sum(len(each.word) for each in found if not each.is_write)
    result = replay(trace, Machine((), part="lpddr4-3200"))
    assert int(result.load_bytes.sum()) == loads
    assert int(result.store_bytes.sum()) == sum(len(each.word) for each in found) - loads
    payload = np.concatenate([chunk.payload for chunk in trace])
    assert int(np.unpackbits(payload).sum()) == sum(each.ones for each in found)
    assert result.total.bursts == sum(result.dram.commands[name] for name in ("RD", "WR")) and result.total.ones > 0


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="configurations"):
        read_run(tmp_path, {})
    (tmp_path / "run.cfg").write_text("[architecture_presets]\nIfmapOffset: 0\nFilterOffset: 100\nOfmapOffset: 200\n")
    with pytest.raises(InputError, match="layer0"):
        read_run(tmp_path, {})
    (tmp_path / "layer0").mkdir()
    with pytest.raises(InputError, match="lack 'layer0_ifmap'"):
        read_run(tmp_path, {})
    tensors = {f"layer0_{name}": np.arange(4, dtype=np.int8) for name in ("ifmap", "filter", "ofmap")}
    with pytest.raises(InputError, match=r"IFMAP_DRAM_TRACE.* is missing"):
        read_run(tmp_path, tensors)
    (tmp_path / "layer0" / "IFMAP_DRAM_TRACE.csv").write_text("0.0,1.0\n1.0\n")
    with pytest.raises(InputError, match=r"IFMAP_DRAM_TRACE.csv:2: 1 columns"):
        read_run(tmp_path, tensors)
    (tmp_path / "layer0" / "IFMAP_DRAM_TRACE.csv").write_text("0.0,x\n")
    with pytest.raises(InputError, match="no number"):
        read_run(tmp_path, tensors)


def test_counts_of_zigzag(reference):
    """Where the loops tell how often a tensor moves, its ones are known; else nothing is claimed unless it divides."""
    folder = reference / "accelerators"
    tensors = np.load(folder / "scalesim" / "net_a_tensors.npz")
    with (folder / "zigzag" / "net_a_counts.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        tensor = tensors[f"layer{row['layer']}_{row['tensor']}"]
        accesses = int(row["dram_reads"]) + int(row["dram_writes"])
        passes = int(row["passes"]) if row["passes"] else None
        found = count_tensor(tensor, accesses, int(row["access_bits"]), passes=passes)
        assert found.tensor_bytes == int(row["tensor_words"]) and found.ones_per_pass == int(row["ones_per_pass"])
        assert found.moved_bytes == int(row["bytes_read"]) + int(row["bytes_written"])
        if passes is not None:
            assert found.ones == passes * int(row["ones_per_pass"]) and found.rounding_bytes >= 0
    first = count_tensor(tensors["layer0_filter"], 576, 64, passes=16)  # tiles of 12 bytes in accesses of 8
    assert (first.moved_bytes, first.rounding_bytes, first.ones) == (4608, 1152, 16 * 869)
    assert count_tensor(tensors["layer0_filter"], 576, 64).ones is None
    with pytest.raises(InputError, match="bits"):
        count_tensor(np.zeros(3, np.uint8), 1, 12)
    with pytest.raises(InputError, match="more than the 8 bytes"):
        count_tensor(np.zeros(8, np.uint8), 1, 64, passes=2)
