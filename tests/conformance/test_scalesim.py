"""Accelerator models as front ends: SCALE-Sim's words with their bytes, and what a memory does with them; counts."""

import csv
import json
import zlib

import numpy as np
import pytest
from typer.testing import CliRunner

from edgewatt.cli import app
from hwmodel.energy.accelerator import layer_costs
from hwmodel.energy.total import replay_energy
from hwmodel.machine import Machine
from hwmodel.replay import replay
from traces.accelerators.scalesim import as_trace, base_addresses, count_tensor, read_counts, read_run
from traces.base.errors import InputError

RUNS = ("a_os_calc", "a_ws_calc", "a_os_user")


def run_of(reference, run):
    folder = reference / "accelerators" / "scalesim"
    partials = folder / run / f"{run}_partials.npz"
    given = np.load(partials) if partials.is_file() else None
    return read_run(folder / run, np.load(folder / "net_a_tensors.npz"), partials=given)


def _totals(found):
    """Return what the reference states of each traced tensor."""
    return {
        "op": "W" if found.is_write else "R", "tensor_words": found.tensor_words, "words": len(found.word),
        "distinct": len(np.unique(found.word)), "missing": found.missing, "first_cycle": int(found.cycle[0]),
        "last_cycle": int(found.cycle.max()), "cycles_nondecreasing": int((np.diff(found.cycle) >= 0).all()),
        "byte_sum": int(found.data.sum(dtype=np.int64)), "ones": found.ones,
        "crc32": f"{zlib.crc32(found.data.tobytes()):08x}",
    }  # fmt: skip


def test_every_total_of_the_reference(reference):
    """Each number stated of each of the 36 traced and 12 counted tensors, and the ones of each by a recount.

    490 comparisons: 36 lines of 11 numbers and a recount, 12 lines of 4, and the ones of the 10 whose passes are known.
    """
    folder = reference / "accelerators"
    tensors = np.load(folder / "scalesim" / "net_a_tensors.npz")
    partials = np.load(folder / "scalesim" / "a_ws_calc" / "a_ws_calc_partials.npz")
    runs = {run: {(t.layer, t.tensor): t for t in run_of(reference, run)} for run in RUNS}
    compared = 0
    for row in csv.DictReader((folder / "scalesim" / "expected.csv").open()):
        found = runs[row["run"]].pop((int(row["layer"]), row["tensor"]))
        totals = _totals(found)
        assert {name: str(value) for name, value in totals.items()} == {name: row[name] for name in totals}
        name = f"layer{row['layer']}_{row['tensor']}"
        if found.is_write and row["run"] == "a_ws_calc":  # the n-th write of an output is its n-th partial sum
            sums = partials[f"layer{row['layer']}_partial"]
            sums = sums.reshape(len(sums), -1)
            seen: dict[int, int] = {}
            times: list[int] = []
            for word in found.word.tolist():
                times.append(seen.get(word, 0))
                seen[word] = times[-1] + 1
            moved = sums[times, found.word]
        else:
            moved = tensors[name].reshape(-1)[found.word]
        assert int(np.unpackbits(moved.view(np.uint8)).sum()) == int(row["ones"])
        compared += len(totals) + 1
    assert not any(runs.values()), "a tensor that the reference does not have"
    for row in csv.DictReader((folder / "zigzag" / "net_a_counts.csv").open()):
        tensor = tensors[f"layer{row['layer']}_{row['tensor']}"]
        accesses, passes = int(row["dram_reads"]) + int(row["dram_writes"]), row["passes"]
        found = count_tensor(tensor, accesses, int(row["access_bits"]), passes=int(passes) if passes else None)
        moved = int(row["bytes_read"]) + int(row["bytes_written"])
        assert (found.tensor_bytes, found.moved_bytes) == (int(row["tensor_words"]), moved)
        assert found.ones_per_pass == int(row["ones_per_pass"]) == int(np.unpackbits(tensor.view(np.uint8)).sum())
        compared += 4
        if passes:
            assert found.ones == int(passes) * int(row["ones_per_pass"])
            compared += 1
    assert compared == 36 * 12 + 12 * 4 + 10


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


@pytest.mark.parametrize("run", ["a_os_calc", "a_ws_calc", "a_os_user"])
def test_costs_of_tensors_add_up_to_those_of_their_layer(reference, run):
    found = run_of(reference, run)
    machine = Machine((), "base-xor+dbi-dc", part="lpddr4-3200")
    bases = base_addresses(found)
    for layer in layer_costs(found, machine, bases):
        mine = [each for each in found if each.layer == layer.layer]
        result = replay(as_trace(mine, burst_bytes=32, bases=bases), machine)
        energy = replay_energy(result, machine)
        costs = layer.tensors
        assert sum(each.reads for each in costs) == result.dram.commands["RD"]
        assert sum(each.writes for each in costs) == result.dram.commands["WR"]
        assert sum(each.ones for each in costs) == result.total.ones
        assert sum(each.toggles for each in costs) == result.total.toggles
        assert sum(each.wire_pj for each in costs) == pytest.approx(energy.io_pj, rel=1e-12)
        assert layer.total_pj == pytest.approx(energy.total_pj, rel=1e-12) and layer.shared_pj > 0
        assert [each.moved_bytes for each in costs] == [len(each.word) for each in mine]


def test_a_table_of_counts_moves_what_it_counts(reference, tmp_path):
    folder = reference / "accelerators"
    call = ["accelerator", str(folder / "zigzag" / "net_a_counts.csv"), "--json", "-", "--tensors"]
    shown = CliRunner().invoke(app, [*call, str(folder / "scalesim" / "net_a_tensors.npz")])
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    with (folder / "zigzag" / "net_a_counts.csv").open() as file:
        rows = {(int(row["layer"]), row["tensor"]): row for row in csv.DictReader(file)}
    sent = {(layer["layer"], each["tensor"]): each for layer in report["layers"] for each in layer["tensors"]}
    for exact in report["counted"]:
        row = rows[exact["layer"], exact["tensor"]]
        assert exact["moved_bytes"] == int(row["bytes_read"]) + int(row["bytes_written"])
        if row["passes"]:
            on_wires = sent[exact["layer"], exact["tensor"]]
            assert exact["ones"] == on_wires["ones"] == int(row["passes"]) * int(row["ones_per_pass"])
            bursts = int(row["passes"]) * -(-int(row["tensor_words"]) // 32)
            assert on_wires["reads"] + on_wires["writes"] == bursts
    assert len(report["counted"]) == len(rows) and "linearly" in report["order"]


def test_a_small_table_is_walked_as_it_says(tmp_path):
    table = tmp_path / "counts.csv"
    table.write_text(
        "layer,tensor,dram_reads,dram_writes,access_bits,passes,layer_cycles\n0,W,4,0,32,2,40\n0,O,1,1,64,,\n"
    )
    tensors = {"layer0_filter": np.arange(8, dtype=np.uint8), "layer0_ofmap": np.full(8, 255, np.uint8)}
    (weights, exact), (read, _), (written, _) = read_counts(table, tensors)
    assert weights.word.tolist() == [*range(8), *range(8)] and exact.ones == 2 * 12
    assert weights.cycle.tolist() == [0] * 4 + [10] * 4 + [20] * 4 + [30] * 4
    assert not read.is_write and written.is_write and written.ones == 64 and weights.missing == 0
    for text, words in (
        ("layer,tensor\n", "a header with access_bits"),
        ("layer,tensor,dram_reads,dram_writes,access_bits\n0,W,x,0,32\n", "counts.csv:2: dram_reads is 'x'"),
        ("layer,tensor,dram_reads,dram_writes,access_bits\n0,W,1_0,0,32\n", "counts.csv:2: dram_reads is '1_0'"),
        ("layer,tensor,dram_reads,dram_writes,access_bits\n0,Q,1,0,32\n", "counts.csv:2: tensor 'Q' is none of ifmap"),
        ("layer,tensor,dram_reads,dram_writes,access_bits\n7,W,1,0,32\n", "lack 'layer7_filter'"),
        ("layer,tensor,dram_reads,dram_writes,access_bits\n0,W,1,0,12\n", "counts.csv:2: 1 accesses of 12 bits"),
        ("layer,tensor,dram_reads,dram_writes,access_bits\n0,W,1e12,0,64\n", "a walk of 8000000000000 bytes"),
    ):
        table.write_text(text)
        with pytest.raises(InputError, match=words):
            read_counts(table, tensors)


@pytest.mark.parametrize("cycles", ["", "10000"])
@pytest.mark.parametrize("bits", [8, 64, 96, 512, 1024])
def test_a_pass_over_a_tensor_sends_each_burst_once(tmp_path, bits, cycles):
    """Whatever the width of an access and its clock: 4,608 bytes are 144 bursts of 32, with the ones of the bytes."""
    filters = np.random.default_rng(0).integers(0, 256, 4608, np.uint8)
    (tmp_path / "c.csv").write_text(
        "layer,tensor,dram_reads,dram_writes,access_bits,passes,layer_cycles\n"
        f"0,W,{4608 * 8 // bits},0,{bits},1,{cycles}\n0,O,0,{4608 * 8 // bits},{bits},1,{cycles}\n"
    )
    walked = [each for each, _ in read_counts(tmp_path / "c.csv", {"layer0_filter": filters, "layer0_ofmap": filters})]
    ((weights, outputs),) = (layer.tensors for layer in layer_costs(walked, Machine((), part="lpddr4-3200")))
    ones = int(np.unpackbits(filters).sum())
    assert (weights.reads, weights.writes, weights.ones) == (144, 0, ones)
    assert (outputs.reads, outputs.writes, outputs.ones) == (0, 144, ones)


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
    with pytest.raises(InputError, match="not a number"):
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
