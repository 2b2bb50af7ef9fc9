"""Runs of new kinds (ranks, HBM, hazards, row-low maps) of DRAMsim3 and Ramulator 2.1, equal request by request."""

import csv
import json

import numpy as np
import pytest
import yaml

from hwmodel.dram.checker import broken_rules
from hwmodel.dram.controller import controller_spec
from hwmodel.dram.engine import load_part, simulate_dram
from hwmodel.part_readers.reader import import_part

RUNS = {
    "dramsim3": {
        "ddr3_1600_2rank": "all_writes chase extreme_gaps matmul poisson raw_hazards stencil",
        "ddr4_x16_2933_rorabgbachco": "raw_hazards write_then_read",
        "gddr6": "chase matmul poisson stencil",
        "hbm1_8ch": "burst_idle matmul poisson raw_hazards stencil write_then_read zipf_rows",
        "lp4_bigq": "raw_hazards",
    },
    "ramulator2": {
        "ddr4_2ch": "poisson",
        "ddr4_4rank": "all_writes burst_idle poisson stencil",
        "hbm2": "burst_idle chase matmul poisson spmv stencil",
        "lpddr5_2rank": "all_writes burst_idle poisson",
    },
}
CASES = [
    (tool, config, trace)
    for tool, configs in RUNS.items()
    for config, traces in configs.items()
    for trace in traces.split()
]


def part_and_controller(folder, config, given, scratch):
    if "edgewatt_part" in given:
        return load_part(given["edgewatt_part"]), controller_spec({"preset": "dramsim3", **given["controller"]})
    (scratch / "section.yaml").write_text(yaml.dump(given["section"]))
    data = import_part(scratch / "section.yaml").data
    data["address_map"]["value"] = given["address_map"]
    if config == "ddr4_2ch":  # a section is that of one controller
        data["organisation"]["channels"]["value"] = 2
    return load_part(data), controller_spec(given["controller"])


@pytest.mark.parametrize(("tool", "config", "trace"), CASES)
def test_every_request(reference, tmp_path, tool, config, trace):
    folder = reference / "dram3" / tool
    given = json.loads((folder / f"{config}.json").read_text())
    part, controller = part_and_controller(folder, config, given, tmp_path)
    with (folder / "results.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if (row["config"], row["trace"]) == (config, trace))
    run = np.load(folder / f"{config}__{trace}.npz")
    address, arrival = run["addr"].astype(np.uint64), run["arrival"].astype(np.int64)
    long = trace == "extreme_gaps"  # its refreshes are not worth a trace
    result = simulate_dram(address, run["op"], arrival, part=part, controller=controller, trace=not long)
    count = result.commands_at_completion
    assert result.total_cycles == float(row["cycles"])
    assert [count[name] for name in ("ACT", "RD", "WR", "REFab")] == [int(row[n]) for n in ("ACT", "RD", "WR", "REF")]
    assert (result.accept_cycle == run["accept"]).all()
    if (config, trace) == ("gddr6", "poisson"):  # its t32AW is not a constant of a part
        assert result.mean_read_latency_cycles == pytest.approx(float(row["lat"]), rel=0.003)
    elif not run["op"].all():
        assert result.mean_read_latency_cycles == pytest.approx(float(row["lat"]), rel=1e-9)
    if "hazards" not in trace and (config, trace) != ("gddr6", "poisson"):  # which of two equal reads is done first
        assert (result.done_cycle == run["done"]).all()
    assert not broken_rules(result, part, controller)
