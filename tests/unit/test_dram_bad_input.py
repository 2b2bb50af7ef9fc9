"""What cannot be right is refused, with where, what and how to mend; nothing hangs."""

import numpy as np
import pytest
from dram_parts import made, variant

from hwmodel.dram.energy import interface_energy
from hwmodel.dram.engine import StuckError, simulate_dram
from hwmodel.parts.part_file import load_part, part_names
from traces.base.errors import InputError
from traces.base.resources import shipped_path


def shipped_text():
    return shipped_path("dram", "lpddr4-3200").read_text()


@pytest.mark.parametrize("name", part_names())
def test_shipped_parts_load_and_say_what_is_estimated(name):
    part = load_part(name)
    assert part.name == name and part.note
    assert all(constant.source for constant in part.constants.values())
    assert any("IDD0" in key for key in part.estimates)


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            "tRC_cycles: {value: 97",
            "tRC_cycles: {value: 96",
            ":30:3: timing.tRC_cycles: tRC 96 is shorter than tRAS + tRP",
        ),
        ("tREFI_cycles: {value: 6246", "tREFI_cycles: {value: 448", "refresh interval 448 is not longer"),
        (
            "  tRTP_cycles:",
            "  tRTPP_cycles:",
            ":36:3: timing: unknown key 'tRTPP_cycles' (did you mean 'tRTP_cycles'?)",
        ),
        ("tFAW_ns: {value: 40, source:", "tFAW_ns: {value: 40, sauce:", "has no source"),
        ("tFAW_ns: {value: 40,", "tFAW_ns: {value: '40',", "remove the quotes"),
        ("tFAW_ns: {value: 40,", "tFAW_ns: {value: -1,", "must be at least 0"),
        ("tFAW_ns: {value: 40,", "tFAW_ns: {value: 1e999,", "finite"),
        ("columns: {value: 1024", "columns: {value: 1023", "power of two"),
        ("row:16", "row:15", "field 'row' has 15 bits, but the part has 65536"),
        (
            "termination: vssq",
            "termination: vsq",
            ":77:16: interface: 'termination' cannot be 'vsq' (did you mean 'vssq'?)",
        ),
        ("IDD0_mA: {vdd1: 1.75, vdd2: 22.5", "IDD0_mA: {vdd1: 1.75, vdd2: 2", "draws less power than the background"),
        ("name: lpddr4-3200", "name: a\nname: b", "appears twice"),
        ("name: lpddr4-3200", "name: [", "not YAML"),
        ('"BA0 BA1 BA2 V V V"', '"BA0 BA1 BA2 V V"', "names 5 levels"),
    ],
)
def test_part_files_with_a_mistake(tmp_path, old, new, message):
    assert old in shipped_text()
    file = tmp_path / "part.yaml"
    file.write_text(shipped_text().replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_part(file)
    assert message in str(caught.value) and str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("wires", "name"), [("ca", "beats_per_clock"), ("dqs", "periods_per_clock"), ("ck", "count"), ("dqs", "count")]
)
def test_wires_and_their_beats_have_a_most(tmp_path, wires, name):
    """The engine has no room for so many beats, and the counts none for so many wires."""
    file = tmp_path / "part.yaml"
    file.write_text(f"extends: hbm3\ninterface: {{wires: {{{wires}: {{{name}: {{value: 2147483647, source: x}}}}}}}}\n")
    with pytest.raises(InputError) as caught:
        load_part(file)
    column = len(f"interface: {{wires: {{{wires}: {{{name}: {{value: ") + 1
    said = f"part.yaml:2:{column}: interface.wires.{wires}.{name}: must be at most 4096, not 2147483647"
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize(("ranks", "pseudo_channels"), [(16, 1), (8, 2)])
def test_ranks_have_a_most(ranks, pseudo_channels):
    sizes = {"ranks": ranks, "pseudo_channels": pseudo_channels, "bank_groups": 1, "banks_per_group": 2}
    organisation = {name: {"value": value, "source": "x"} for name, value in sizes.items()}
    with pytest.raises(InputError, match=r"organisation\.ranks: at most 8 ranks"):
        load_part({"extends": "hbm3", "organisation": organisation})


def test_per_bank_refreshes_must_leave_time_between_them():
    with pytest.raises(InputError, match=r"tRFCpb 1500 is not shorter than the interval of per-bank refreshes.* = 780"):
        variant({"tRFCpb": 1500, "tRFCab": 2000})


def test_all_problems_at_once_and_from_a_mapping():
    with pytest.raises(InputError) as caught:
        load_part({"extends": "lpddr4-3200", "timming": {}, "timing": {"tRP_ns": made("18"), "tRAS_ns": {"value": 1}}})
    lines = str(caught.value).splitlines()
    assert len(lines) == 3 and "unknown key 'timming' (did you mean 'timing'?)" in lines[2]


def test_mistakes_in_two_files_are_each_told_of_where_they_are(tmp_path):
    base, mine = tmp_path / "base.yaml", tmp_path / "mine.yaml"
    base.write_text(shipped_text().replace("tFAW_ns: {value: 40,", "tFAW_ns: {value: '40',"))
    mine.write_text("extends: base.yaml\nwith: [slow]\noptions:\n  slow: {clock: {tCK_ns: {value: 0, source: x}}}\n")
    with pytest.raises(InputError) as caught:
        load_part(mine)
    line = 1 + next(k for k, text in enumerate(base.read_text().splitlines()) if "tFAW_ns" in text)
    assert str(caught.value).splitlines() == [
        f"{base}:{line}:20: timing.tFAW_ns: expected a number, not the text '40' (remove the quotes)",
        f"{mine}:4:34: clock.tCK_ns: must be at least 0.001, not 0",
    ]


def test_what_contradicts_the_base_is_told_of_in_the_own_file(tmp_path):
    (tmp_path / "mine.yaml").write_text("extends: lpddr4-3200\ntiming:\n  tRAS_ns: {value: 60, source: x}\n")
    with pytest.raises(InputError, match=r"mine.yaml:2:1: timing.tRC_cycles: tRC 97 is shorter than tRAS"):
        load_part(tmp_path / "mine.yaml")


@pytest.mark.parametrize(
    ("key", "section", "message"),
    [
        ("timing", {"tFAW_ns": made(10**400)}, "timing.tFAW_ns: expected a number"),
        ("timing", {"tFAW_cycles": made(10**400)}, "timing.tFAW_cycles: must be at most"),
        ("timing", {"tFAW_cycles": made(True)}, "timing.tFAW_cycles: expected a whole number, not true"),
        ("timing", {"tFAW_cycles": made(40.5)}, "timing.tFAW_cycles: expected a whole number, not 40.5"),
        ("timing", {"tFAW_ns": 40}, "timing.tFAW_ns: write {value: NUMBER, source: WHERE IT COMES FROM}"),
        ("currents", {"IDD0_mA": 5}, "currents.IDD0_mA: write {vdd1: NUMBER, vdd2: NUMBER, source: WHERE"),
        ("currents", {f"rail{k}_V": made(1) for k in range(7)}, "currents: unknown key 'rail6_V'"),
        ("currents", {"IDD2N_mA": None}, "currents: missing key 'IDD2N_mA'"),
        (
            "interface",
            {"cells": {"beats": [], "source": "x"}},
            "interface.cells.beats: List should have",
        ),
        ("interface", {"wires": {"dq": {"runs": "often"}}}, "interface.wires.dq: 'runs' cannot be 'often'"),
    ],
)
def test_sections_with_a_mistake(key, section, message):
    with pytest.raises(InputError) as caught:
        load_part({"extends": "lpddr4-3200", "name": "mine", key: section})
    assert any(text.startswith(message) for _, text in caught.value.problems)


@pytest.mark.parametrize(
    "part, message",
    [
        ("lpddr4-320", "did you mean 'lpddr4-3200'"),
        ("nowhere/part.yaml", "no such part file"),
        ({"extends": "lpddr4-3200", "address_map": made("offset:5 column:6 bank:3 row:17")}, "row"),
        ({"name": "empty"}, "missing key 'clock'"),
    ],
)
def test_parts_that_are_none(part, message):
    with pytest.raises(InputError, match=message):
        load_part(part)


def test_yaml_bombs_are_refused(tmp_path):
    file = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [1, 1]", *(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 12))]
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="aliases expand to more than"):
        load_part(file)


@pytest.mark.parametrize(
    "address, write, arrival, message",
    [
        ([0, 33], [0, 0], [0, 0], "request 1: address 0x21 is not a multiple of the 32-byte burst"),
        ([0, 1 << 30], [0, 0], [0, 0], "request 1: address 0x40000000 is beyond"),
        ([0, 0], [0, 0], [5, 4], "request 1: arrival cycle 4 goes back behind 5"),
        ([0, 0], [0], [0, 0], "differ in length"),
        ([-32], [0], [0], "negative"),
        ([0], [0], [-1], "negative"),
        ([0.5], [0], [0], "whole numbers"),
        ([0], [3], [0], "true/false"),
        ([0], [0], [1 << 61], "2\\^60"),
    ],
)
def test_requests_that_cannot_be(address, write, arrival, message):
    with pytest.raises(InputError, match=message):
        simulate_dram(address, write, arrival, part="lpddr4-3200")


@pytest.mark.parametrize(
    "controller, message",
    [
        ({"read_queue_entries": 0}, "read_queue_entries must be a whole number from 1"),
        ({"write_queue_entries": 0}, "write_queue_entries must be"),
        ({"bank_queue_entries": 0}, "bank_queue_entries must be"),
        ({"write_high": 40}, "write_high must be"),
        ({"write_low": 32}, "write_low must be"),
        ({"scheduler": "frfcfs"}, "did you mean 'fr-fcfs'"),
        ({"page_policy": "opne"}, "did you mean 'open'"),
        ({"reed_dbi": True}, "did you mean 'read_dbi'"),
        ({"refresh": "never"}, "refresh policy"),
        ({"hit_cap": True}, "hit_cap: True is a bool"),
        ({"address_map": "offset:5 colum:6"}, "is not a field"),
    ],
)
def test_controllers_that_cannot_be(controller, message):
    with pytest.raises(InputError, match=message):
        simulate_dram([0], [0], [0], part="lpddr4-3200", controller=controller)


def test_a_part_without_per_bank_refresh_says_so():
    with pytest.raises(InputError, match="no per-bank refresh"):
        simulate_dram([0], [0], [0], part="hbm2", controller={"refresh": "per-bank"})


def test_watchdog_ends_a_run_that_refreshes_only():
    part = variant({"tREFI": 449, "tRFCpb": 10})
    with pytest.raises(StuckError, match=r"no progress.*bank 0 queue holds"):
        simulate_dram([0, 32], [0, 0], [447, 900], part=part)


def test_a_long_pause_is_no_lack_of_progress():
    result = simulate_dram([0, 32], [0, 1], [0, 10**8], part="lpddr4-3200")
    assert result.total_cycles == 10**8 + 2
    assert abs(result.commands["REFab"] - 10**8 // 6246) <= 1


def test_empty_streams():
    result = simulate_dram(np.zeros(0, np.uint64), np.zeros(0, bool), np.zeros(0, int), part="lpddr4-3200", trace=True)
    assert result.total_cycles == 0 and result.core_energy_pj == 0 and len(result.command_trace[0]) == 0


HEAD = "timestamp_cycles,command,rank,bank_group,bank,row,column,data_hex\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("time,command\n", "commands.csv:1: the column 'timestamp_cycles' is missing"),
        (HEAD + "0,ACT,0,0,0,1,0,\nx,RD,0,0,0,1,0,00\n", "commands.csv:3: not a command row"),
        (HEAD + "1_0,ACT,0,0,0,1,0,\n", "commands.csv:2: not a command row .*'1_0' is not a plain number"),
        (HEAD + "0,ATC,0,0,0,1,0,\n", "commands.csv:2: unknown command 'ATC' \\(did you mean 'ACT'"),
        (HEAD + "9,ACT,0,0,0,1,0,\n3,PRE,0,0,0,1,0,\n", "commands.csv:3: cycle 3 goes back behind 9"),
        (HEAD + "0,ACT,0,0,8,1,0,\n", "commands.csv:2: bank 8 is not from 0 to 7"),
        (HEAD + "0,RD,0,0,0,1,0,zz\n", "commands.csv:2: data_hex is not hexadecimal"),
        (HEAD + "0,RD,0,0,0,1,0,0011\n", "commands.csv:2: 2 bytes of data, but a burst has 32"),
        (HEAD + f"0,RD,0,0,0,1,0,{'00' * 32}\n4,RD,0,0,0,1,0,{'00' * 32}\n", "overlaps"),
        (HEAD + "0,RD,0,0,0,1,0,\n", "has no data"),
    ],
)
def test_command_tables_that_do_not_parse(tmp_path, text, message):
    file = tmp_path / "commands.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        interface_energy(file, part="lpddr4-3200", dbi=False)


def test_refresh_by_bank_that_no_controller_keeps_up_with_is_refused():
    """At 95 C the time between refreshes is a quarter: eight of 224 clocks do not fit in 1,561."""
    hot = {"refresh": "per-bank", "temperature_c": 95}
    with pytest.raises(
        InputError, match="8 refreshes by bank of 224 clocks take longer than tREFI, 1561 clocks at 95 C"
    ):
        simulate_dram([0], [0], [0], part="lpddr4-3200", controller=hot)
    assert simulate_dram([0], [0], [0], part="lpddr4-3200", controller={**hot, "temperature_c": 25}).counts.reads == 1
