"""The reference cases of public simulators: requests against DRAMsim3, commands with data against DRAMPower."""

import csv
import json

import numpy as np
import pytest
from dram_parts import made, of_reference_runs

from hwmodel.dram.checker import check_trace
from hwmodel.dram.energy import core_energy, interface_energy, wire_constants_pj
from hwmodel.dram.engine import load_part, simulate_dram

# trace: allowed deviation of run length, activates, mean read latency (None: not compared), all relative
TOLERANCES = {
    "seq_read_a": (0.05, 0.15, None),
    "random_read_a": (0.05, 0.07, None),
    "mixed_rw_a": (0.05, 0.07, None),
    "random_read_spaced_a": (0.05, 0.07, 0.15),
    "pingpong_spaced_a": (0.05, 0.07, 0.15),
    "single_bank_a": (0.15, None, None),
    "pingpong_a": (0.25, None, None),
}


def requests_of(reference, trace):
    with open(reference / "dram" / f"dramsim3_{trace}.csv") as file:
        rows = list(csv.DictReader(file))
    address = np.array([int(row["addr_hex"], 16) for row in rows], np.uint64)
    write = np.array([row["op"] == "WRITE" for row in rows])
    arrival = np.array([int(row["arrival_cycle"]) for row in rows])
    return address, write, arrival, np.array([int(row["done_cycle"]) for row in rows])


def results_of(reference, name):
    with open(reference / "dram" / name) as file:
        return list(csv.DictReader(file))


def close(found, wanted, tolerance):
    return abs(float(found) / float(wanted) - 1) <= tolerance


@pytest.mark.parametrize("trace", sorted(TOLERANCES))
def test_dramsim3_traces(reference, trace):
    wanted = next(r for r in results_of(reference, "dramsim3_results.csv") if r["trace"] == trace)
    address, write, arrival, done = requests_of(reference, trace)
    result = simulate_dram(address, write, arrival, part="lpddr4-3200", trace=True)
    cycles, acts, latency = TOLERANCES[trace]
    assert close(result.total_cycles, wanted["last_completion_cycle"], cycles)
    assert abs(result.commands["REFab"] - int(wanted["ref_cmds"])) <= 1
    if acts is not None:
        assert close(result.commands["ACT"], wanted["act_cmds"], acts)
    if latency is not None:
        assert close(result.mean_read_latency_cycles, wanted["avg_read_latency_cycles"], latency)
    assert not check_trace(result.command_trace[0], part=load_part("lpddr4-3200"))
    # The mechanisms are those of the tool, so far more than the tolerances holds: every request is done in its cycle.
    assert np.mean(result.done_cycle == done) > 0.999


@pytest.mark.parametrize("trace", ["seq_read_a", "mixed_rw_a", "random_read_spaced_a"])
def test_dramsim3_energy_given_the_counts(reference, trace):
    """Tool's counts x our constants = tool's energies; refreshing ranks count as idle there, as active here."""
    from hwmodel.dram.energy import core_constants_pj

    row = next(r for r in results_of(reference, "dramsim3_results.csv") if r["trace"] == trace)
    pj = {term: constant for term, (_, constant) in core_constants_pj(of_reference_runs(reference)).items()}
    pairs = [
        (int(row["act_cmds"]) * (pj["activate"] + pj["precharge"]), row["act_energy_pJ"]),
        (int(row["read_cmds"]) * pj["read"], row["read_energy_pJ"]),
        (int(row["ref_cmds"]) * pj["refresh"], row["ref_energy_pJ"]),
        (int(row["rank_active_cycles"]) * pj["background_active"], row["act_stb_energy_pJ"]),
        (int(row["all_bank_idle_cycles"]) * pj["background_precharged"], row["pre_stb_energy_pJ"]),
    ]
    if int(row["write_cmds"]):
        pairs.append((int(row["write_cmds"]) * pj["write"], row["write_energy_pJ"]))
    for found, wanted in pairs:
        assert close(found, wanted, 1e-3)


# The second configuration, described as a part. Its file is not part of the reference data; the constants below are
# deduced from the reference trace (first latency, gaps, energies) or plain guesses that the trace does not see.
STOCK = {
    "extends": "lpddr4-3200",
    "name": "stock2400x64",
    "clock": {"tCK_ns": made(0.83)},
    "organisation": {
        "device_dq_bits": made(16),
        "devices_per_rank": made(4),
        "ranks": made(2),
        "bank_groups": made(2),
        "banks_per_group": made(4),
    },
    "timing": {
        f"{name}_cycles": made(value)
        for name, value in {
            "RL": 16, "RL_dbi": 16, "WL": 12, "tRCD": 16, "tRP": 16, "tRAS": 39, "tRC": 55, "tRRD": 8, "tFAW": 32,
            "tCCD": 8, "tRTP": 9, "tWR": 18, "tWTR": 9, "tPPD": 1, "tRFCab": 314, "tRFCpb": 150, "tREFI": 8674,
            "tXP": 8, "tCKE": 6,
        }.items()
    },
    "address_map": made("offset:7 column:6 bank_group:1 bank:2 rank:1 row:16"),
}  # fmt: skip


def test_another_configuration_is_followed(reference):
    address, write, arrival, done = requests_of(reference, "stock_seq_read_a")
    wanted = next(r for r in results_of(reference, "dramsim3_results.csv") if r["trace"] == "stock_seq_read_a")
    result = simulate_dram(address, write, arrival, part=STOCK)
    assert done[0] == result.done_cycle[0] == 42
    assert close(result.total_cycles, wanted["last_completion_cycle"], 0.05)
    assert close(result.commands["ACT"], wanted["act_cmds"], 0.15)
    assert abs(result.commands["REFab"] - int(wanted["ref_cmds"])) <= 1


def power_cases():
    return [
        f"{case}_dbi{dbi}"
        for case, dbis in (
            ("rd_random_a", "01"), ("rd_zeros_a", "0"), ("rd_ones_a", "01"), ("rd_altbeat_a", "0"),
            ("wr_random_a", "0"),
            ("rd_walk5_a", "1"), ("rd_random_gap_a", "01"), ("mixed_core_a", "0"),
        )
        for dbi in dbis
    ]  # fmt: skip


@pytest.mark.parametrize("case", power_cases())
def test_drampower_cases(reference, case):
    name, dbi = case.rsplit("_dbi", 1)
    row = next(r for r in results_of(reference, "drampower_results.csv") if r["case"] == case)
    commands = reference / "dram" / f"drampower_{name}_commands.csv"
    ours = interface_energy(commands, part="lpddr4-3200", dbi=dbi == "1")
    group = ours.counts.group
    for way in ("read", "write"):
        assert group("dq", way).ones == int(row[f"{way}_dq_ones"])
        assert group("dq", way).rising == int(row[f"fwd_{way}_dq_0to1"])
        assert group("dbi", way).ones == int(row[f"{way}_dbi_ones"])
        assert group("dbi", way).rising == int(row[f"{way}_dbi_0to1"])
        assert group("dqs", way).ones == group("dqs", way).rising == int(row[f"{way}_dqs_ones"])
    assert group("ck").ones == group("ck").rising == int(row["ck_ones"])
    reversed_beats = interface_energy(commands, part="lpddr4-3200", dbi=dbi == "1", beat_order="last-to-first").counts
    for way in ("read", "write"):
        assert reversed_beats.group("dq", way).rising == int(row[f"{way}_dq_0to1"])
        assert reversed_beats.group("dq", way).toggles == int(row[f"{way}_dq_toggles"])
    # CA roughly: the tool leaves two 1s of ACTIVATE-2 out
    assert close(group("ca").ones, row["ca_ones"], 0.15) and close(group("ca").rising, row["ca_0to1"], 0.05)
    assert sum(g.ones for g in ours.counts.groups if g.group == "dbi") == ours.counts.inverted_bytes
    energy = ours.energy_pj
    for wires in ("dq", "dbi", "dqs", "ck"):
        assert energy[wires]["static"] == pytest.approx(float(row[f"E_{wires}_static_J"]) * 1e12, rel=1e-9)
        if wires != "dq":
            assert energy[wires]["dynamic"] == pytest.approx(float(row[f"E_{wires}_dynamic_J"]) * 1e12, rel=1e-9)
    their_edges = interface_energy(commands, part="lpddr4-3200", dbi=dbi == "1", beat_order="last-to-first").energy_pj
    assert their_edges["dq"]["dynamic"] == pytest.approx(float(row["E_dq_dynamic_J"]) * 1e12, rel=1e-9)
    core = core_energy(commands, part=of_reference_runs(reference))
    assert sum(r.energy_pj for r in core) == pytest.approx(float(row["E_core_total_J"]) * 1e12, rel=1e-9)
    detail = json.loads((reference / "dram" / f"drampower_{case}.json").read_text())["core_energy_J"]
    terms = {r.term: r.energy_pj for r in core}
    for term, theirs in (
        ("activate", "E_act"), ("precharge", "E_pre"), ("read", "E_RD"), ("write", "E_WR"), ("refresh", "E_ref_AB"),
        ("refresh_per_bank", "E_ref_PB"), ("background_active", "E_bg_act_plus_shared"),
        ("background_precharged", "E_bg_pre"),
    ):  # fmt: skip
        assert terms[term] == pytest.approx(detail[theirs] * 1e12, rel=1e-9, abs=1e-9)


def test_interface_energy_per_bit(reference):
    for row in results_of(reference, "interface_energy_per_bit.csv"):
        divisor = float(row["voh_rule"].split("/")[1])
        wire = {
            "count": made(16),
            "read_termination_ohm": made(float(row["odt_ohm"])),
            "write_termination_ohm": made(float(row["odt_ohm"])),
            "read_capacitance_pF": made(float(row["C_total_pF"])),
            "write_capacitance_pF": made(float(row["C_total_pF"])),
        }
        part = load_part(
            {
                "extends": "lpddr4-3200",
                "clock": {"tCK_ns": made(2000 / float(row["data_rate_MTps"]))},
                "timing": {"tRC_cycles": made(200)},
                "interface": {
                    "vddq_V": made(float(row["vddq_V"])), "vddq_per_voh": made(divisor), "wires": {"dq": wire},
                },
            }
        )  # fmt: skip
        one, rise = wire_constants_pj(part, "dq", "read", part.beat_ns)
        assert part.interface.wires["dq"].read_r_eq_ohm == pytest.approx(float(row["R_eq_ohm"]), rel=1e-6)
        assert one == pytest.approx(float(row["E_one_pJ"]), rel=1e-6)
        assert rise == pytest.approx(float(row["E_0to1_pJ"]), rel=1e-6)


def test_dbi_saves_what_random_bytes_let_it():
    """DBI-DC on uniform bytes: 2.90625 ones on DQ and 0.36328 on DBI per byte instead of 4."""
    rng = np.random.default_rng(0)
    n = 20_000
    rows = {
        "timestamp_cycles": np.arange(n) * 8,
        "command": np.full(n, "RD"),
        "data_hex": [bytes(b).hex() for b in rng.integers(0, 256, (n, 32)).astype(np.uint8)],
    }
    counts = interface_energy(rows, part="lpddr4-3200", dbi=True).counts
    assert counts.group("dq", "read").ones / (32 * n) == pytest.approx(2.90625, rel=3e-3)
    assert counts.group("dbi", "read").ones / (32 * n) == pytest.approx(0.36328, rel=1e-2)
