"""Memory specifications of DRAMSys and Ramulator 2 become part files; what is wrong in them is named with its place."""

import copy
import json

import pytest
import yaml
from typer.testing import CliRunner

from edgewatt.cli import app
from hwmodel.dram.energy import core_constants_pj
from hwmodel.dram.engine import load_part, simulate_dram
from hwmodel.part_readers.reader import PART_READERS, import_part
from traces.base.errors import InputError

LPDDR4 = {
    "memspec": {
        "memoryId": "ours-lpddr4",
        "memoryType": "LPDDR4",
        "memarchitecturespec": {
            "burstLength": 16, "dataRate": 2, "nbrOfBanks": 8, "nbrOfColumns": 1024, "nbrOfRanks": 2,
            "nbrOfRows": 32768,
            "width": 16, "nbrOfDevices": 1, "nbrOfChannels": 1, "nbrOfBankGroups": 1,
        },
        "mempowerspec": {
            "vdd1": 1.8, "vdd2": 1.1, "vddq": 1.1,
            **{
                f"idd{name}{rail}": value / 1e3
                for name, values in {
                    "0": (3, 40), "2n": (2, 25), "2p": (1, 3), "3n": (2.2, 29), "3p": (1.1, 9), "4r": (2.2, 260),
                    "4w": (2.2, 200), "5": (9, 85), "6": (0.4, 0.9),
                }.items()
                for rail, value in zip("12", values, strict=True)
            },
        },
        "memtimingspec": {
            "RL": 20, "WL": 10, "RCD": 20, "RPpb": 20, "RPab": 24, "RAS": 46, "RC": 66, "RRD": 11, "FAW": 43, "CCD": 8,
            "RTP": 9, "WR": 20, "WTR": 11, "PPD": 4, "RFCab": 300, "RFCpb": 150, "REFI": 4166, "XP": 9, "CKE": 9,
            "CCDMW": 32, "DQSCK": 4, "WPRE": 2, "DQSS": 1, "XSR": 308, "RTRS": 1, "REFIpb": 520, "tCK": 937.5e-12,
        },
    }
}  # fmt: skip
DDR5 = {
    "MemorySystem": {
        "DRAM": {
            "impl": "DDR5",
            "org": {
                "preset": "ours", "density": 16384, "dq": 8, "channel_width": 32, "rank": 1, "bankgroup": 8, "bank": 4,
                "row": 65536, "column": 1024,
            },
            "timing": {
                "preset": "ours", "rate": 5600, "nBL": 8, "nCL": 46, "nRCD": 46, "nRP": 46, "nRAS": 90, "nRC": 136,
                "nWR": 84, "nRTP": 21, "nCWL": 44, "nPPD": 2, "nCCDS": 8, "nCCDL": 14, "nCCDS_WR": 8, "nCCDL_WR": 56,
                "nRRDS": 8, "nRRDL": 14, "nWTRS": 7, "nWTRL": 28, "nFAW": 40, "nRFC": 827, "nREFI": 10924, "nCS": 2,
                "tCK_ps": 357,
            },
        }
    }
}  # fmt: skip


def changed(specification, *keys, value=None):
    """Return a copy with one value set, or taken away."""
    data = copy.deepcopy(specification)
    node = data
    for key in keys[:-1]:
        node = node[key]
    if value is None:
        del node[keys[-1]]
    else:
        node[keys[-1]] = value
    return data


def written(folder, specification):
    file = folder / ("spec.json" if "memspec" in specification else "spec.yaml")
    file.write_text(json.dumps(specification, indent="\t") if "memspec" in specification else yaml.dump(specification))
    return file


def test_a_dramsys_file(tmp_path):
    part = import_part(written(tmp_path, LPDDR4)).part
    o, t = part.organisation, part.timing
    assert (part.name, part.standard, part.tck_ns) == ("ours-lpddr4", "LPDDR4", pytest.approx(0.9375))
    assert (o.ranks, o.banks, o.rows, o.capacity_bytes) == (2, 8, 32768, 1 << 30)
    assert (t.RL, t.tRPab, t.tRC, t.tRFCpb, t.tCCDMW, t.tXSR, t.tDQSCK) == (20, 24, 66, 150, 32, 308, 4)
    assert part.currents.idd_ma["IDD4R"] == (2.2, 260) and part.currents.idd_ma["IDD6"] == (0.4, 0.9)
    assert part.constants["timing.RL_cycles"].source == "imported from spec.json"
    assert not part.constants["currents.IDD0_mA.vdd1"].estimate and "currents.IDD0_mA" not in part.ranges
    assert part.constants["currents.IDD5PB_mA.vdd1"].estimate  # not in the file
    assert simulate_dram([0, 32], [0, 1], [0, 100], part=part).commands["RD"] == 1


def test_a_ramulator_file(tmp_path):
    found = import_part(written(tmp_path, DDR5))
    o, t = found.part.organisation, found.part.timing
    assert found.part.data_rate_mts == pytest.approx(5602, abs=1) and found.data["extends"] == "ddr5-4800-x8"
    assert (o.dq_bits, o.burst_bytes, o.bank_groups, o.banks) == (32, 64, 8, 32)
    assert (t.RL, t.WL, t.tCCD_L_WR, t.tFAW, t.tRFCab, t.tRTRS) == (46, 44, 56, 40, 827, 2)
    assert found.unused == ("nCCDS_WR",)
    for keys in (("DRAM",), ()):  # the section alone
        inner = DDR5["MemorySystem"]["DRAM"]
        assert import_part(written(tmp_path, {"DRAM": inner} if keys else inner)).part.timing == t


EXPORT = """
memory_system:
  controllers:
    - impl: LPDDR5
      dram:
        impl: LPDDR5
        org:
          dq: 16
          count: [1, 2, 4, 4, 32768, 1024]
        timing: [6400, 2, 4, 17, 15, 15, 17, 34, 49, 28, 8, 9, 2, 2, 4, 2, 4, 4, 4, 5, 10, 16, 168, 96, 3125, 391, 1, 0,
          8, 2, 1250, 72, 6]
        command_cycles: [1, 1]
        channel_width: 16
"""


def test_an_export_of_ramulator_gives_sizes_and_times_as_lists(tmp_path):
    (tmp_path / "export.yaml").write_text(EXPORT)
    part = import_part(tmp_path / "export.yaml").part
    o, t = part.organisation, part.timing
    assert (o.channels, o.ranks, o.bank_groups, o.banks_per_group, o.rows, o.columns) == (1, 2, 4, 4, 32768, 1024)
    assert (t.RL, t.WL, t.tRCD, t.tRPab, t.tRC, t.tRFCab, t.tREFI, t.tPBR2ACT) == (17, 9, 15, 17, 49, 168, 3125, 6)
    (tmp_path / "export.yaml").write_text(EXPORT + EXPORT.split("controllers:\n")[1])  # a controller a channel
    assert import_part(tmp_path / "export.yaml").part.organisation.channels == 2
    for text, message in (
        (EXPORT.replace(", 72, 6]", "]"), r"export.yaml:10:9: timing: has 31 numbers, the export of LPDDR5 33"),
        (EXPORT.replace("4, 4, 32768", "4, 32768"), "org.count: has 5 numbers"),
        (EXPORT.replace("    impl: LPDDR5\n        org", "    impl: LPDDR9\n        org"), "'LPDDR9' is not known"),
        (EXPORT.replace("32768", "many"), "org.row: expected a whole number, not the text 'many'"),
    ):
        (tmp_path / "export.yaml").write_text(text)
        with pytest.raises(InputError, match=message):
            import_part(tmp_path / "export.yaml")


INI = """[dram_structure] ; a comment
protocol = DDR4
bankgroups = 2
banks_per_group = 4
rows = 65536
columns = 1024
device_width = 16
BL = 8
[timing]
tCK = 0.68
CL = 21
CWL = 16
tRCD = 21
tRP = 21
tRAS = 47
tRFC = 514
tREFI = 11439
tRRD_S = 8
tRRD_L = 10
tWTR_S = 4
tWTR_L = 11
tFAW = 44
tWR = 22
tRTP = 11
tCCD_S = 4
tCCD_L = 8
tRTRS = 1
[power]
VDD = 1.2
IDD0 = 90
IDD2N = 36
IDD3N = 53
IDD4R = 283
[system]
channel_size = 8192
bus_width = 64
address_mapping = rorabgbachco
"""


def test_a_dramsim3_file(tmp_path):
    (tmp_path / "ours.ini").write_text(INI)
    part = import_part(tmp_path / "ours.ini").part
    o, t = part.organisation, part.timing
    assert (part.name, part.standard, part.tck_ns) == ("DDR4-2941", "DDR4", 0.68)
    assert (o.ranks, o.banks, o.devices_per_rank, o.capacity_bytes) == (2, 8, 4, 8 << 30)  # 4 GiB a rank
    assert (t.RL, t.WL, t.tRC, t.tRRD_L, t.turnaround, t.tCKE) == (21, 16, 68, 10, 1, 6)  # tCKE is the tool's default
    assert part.currents.idd_ma["IDD4R"] == (283, 0) and part.currents.idd_ma["IDD4W"] == (123, 0)
    assert part.address_map == "offset:6 column:7 bank:2 bank_group:1 rank:1 row:16"
    for text, message in (
        (INI.replace("tCK = 0.68", "tCK = fast"), r"ours.ini:10:3: timing.tCK: expected a number, not the text 'fast'"),
        (INI.replace("tCK = 0.68", ""), "timing: tCK is missing"),
        (INI.replace("rorabgbachco", "rorabgba"), "address_mapping: must order ch ra bg ba ro co"),
        (INI.replace("bus_width = 64", "bus_width = 24"), "bus_width: 24 is not a multiple of device_width 16"),
        (INI.replace("= DDR4", "= DDR3"), "no shipped part is of standard 'DDR3'"),
    ):
        (tmp_path / "ours.ini").write_text(text)
        with pytest.raises(InputError, match=message):
            import_part(tmp_path / "ours.ini")


def test_devices_of_dramsim3_runs(reference, tmp_path):
    """What is read of an .ini is the device that the run with it was compared with."""
    later = {"RL_dbi", "tXSR", "tRFCpb", "tREFpb_gap", "tDQSCK", "tCCD_L"}  # not in that comparison
    for file in sorted((reference / "dram3" / "dramsim3").glob("*.json")):
        given = json.loads(file.read_text())
        sections = ([f"[{name}]", *(f"{k} = {v}" for k, v in d.items())] for name, d in given["ini"].items())
        ini = tmp_path / f"{file.stem}.ini"
        ini.write_text("\n".join(line for section in sections for line in section))
        part = import_part(ini, base=given["edgewatt_part"]["extends"]).part
        wanted = load_part(given["edgewatt_part"])
        assert part.organisation == wanted.organisation and part.address_map == wanted.address_map
        for name in vars(wanted.timing).keys() - later:
            assert getattr(part.timing, name) == getattr(wanted.timing, name), (file.stem, name)
        for key in given["edgewatt_part"]["currents"]:
            name = key.removesuffix("_mA")
            assert name == key or part.currents.idd_ma[name] == wanted.currents.idd_ma[name], (file.stem, name)


def test_exports_of_ramulator_runs(reference, tmp_path):
    for file in sorted((reference / "dram3" / "ramulator2").glob("*.json")):
        given = json.loads(file.read_text())
        (tmp_path / "export.yaml").write_text(given["ramulator"])
        (tmp_path / "section.yaml").write_text(yaml.dump(given["section"]))
        export, section = (import_part(tmp_path / f"{name}.yaml").part for name in ("export", "section"))
        assert export.timing == section.timing and export.currents == section.currents
        assert export.organisation.banks == section.organisation.banks


def test_rows_need_not_be_a_power_of_two(tmp_path):
    """A die of 6 Gb: three quarters of the addresses that the row bits reach."""
    part = import_part(written(tmp_path, changed(LPDDR4, *ARCHITECTURE, "nbrOfRows", value=49152))).part
    assert part.organisation.capacity_bytes == 3 << 29 and part.address_map.endswith("row:16")
    last = part.organisation.capacity_bytes - 32
    run = simulate_dram([0, last], [0, 0], [0, 0], part=part, trace=True)
    assert run.command_trace[0]["row"].max() == 49151
    with pytest.raises(InputError, match="is beyond the 1610612736 bytes"):
        simulate_dram([last + 32], [0], [0], part=part)
    rows = {"rows": {"value": 49152, "source": "test"}}
    below = {"value": "offset:5 column:6 row:16 bank:3", "source": "test"}
    with pytest.raises(InputError, match="field 'row' has 16 bits, but the part has 49152"):
        load_part({"extends": "lpddr4-3200", "organisation": rows, "address_map": below})


def test_without_currents_events_take_the_energy_of_the_base(tmp_path):
    """At a sixth of the clock a bit read, an activate and a refresh cost what they cost at 3200 MT/s."""
    slow = copy.deepcopy(LPDDR4)
    del slow["memspec"]["mempowerspec"]
    slow["memspec"]["memtimingspec"]["tCK"] = 3.75e-9
    found = import_part(written(tmp_path, slow))
    ours, base = core_constants_pj(found.part), core_constants_pj(load_part("lpddr4-3200"))
    for term in ("read", "write", "refresh"):
        assert ours[term][1] == pytest.approx(base[term][1], rel=1e-4), term
    opened = ours["activate"][1] + ours["precharge"][1]
    assert opened == pytest.approx(base["activate"][1] + base["precharge"][1], rel=1e-3)
    assert "IDD4R" in found.inherited and "energy an event" in found.data["note"]
    assert found.part.constants["currents.IDD4R_mA.vdd2"].estimate
    assert load_part(found.data).currents == found.part.currents


def test_the_command_writes_a_part_file(tmp_path):
    file = tmp_path / "part.yaml"
    shown = CliRunner().invoke(app, ["part", "import", str(written(tmp_path, LPDDR4)), "-o", str(file)])
    assert shown.exit_code == 0 and "ours-lpddr4, LPDDR4, 2133 MT/s, 1 GiB, wires of lpddr4-3200" in shown.output
    assert "not used: REFIpb" in shown.output
    assert load_part(file).timing == import_part(written(tmp_path, LPDDR4)).part.timing
    assert load_part(file).currents == import_part(written(tmp_path, LPDDR4)).part.currents


ARCHITECTURE, TIMES = ("memspec", "memarchitecturespec"), ("memspec", "memtimingspec")
DRAM = ("MemorySystem", "DRAM")


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        (changed(LPDDR4, *TIMES, "RL"), "memspec.memtimingspec: RL is missing .or CL"),
        (
            changed(LPDDR4, *TIMES, "RL", value="20"),
            r"spec.json:\d+:\d+: memspec.memtimingspec.RL: .*remove the quotes",
        ),
        (changed(LPDDR4, *TIMES, "RL", value=-3), "RL: must be at least 0"),
        (changed(LPDDR4, *TIMES, "RL", value=20.5), "RL: expected a whole number, not 20.5"),
        (changed(LPDDR4, *TIMES, "tCK"), "tCK is missing"),
        (changed(LPDDR4, *TIMES, "tCK", value=0), "the clock must be above 0"),
        (changed(LPDDR4, *TIMES, "RTP"), "RTP is missing .or RBTP"),
        (changed(LPDDR4, *TIMES), "memspec.memtimingspec: this section is missing"),
        (changed(LPDDR4, *ARCHITECTURE, "nbrOfColumns", value=768), "columns: must be a power of two, not 768"),
        (changed(LPDDR4, *ARCHITECTURE, "nbrOfRows", value=10**30), "nbrOfRows: must be at most 281474976710656"),
        (changed(LPDDR4, *ARCHITECTURE, "nbrOfBankGroups", value=3), "8 banks do not divide into 3 groups"),
        (changed(LPDDR4, *ARCHITECTURE, "width", value=0), "width: must be at least 1"),
        (changed(LPDDR4, "memspec", "memoryType", value="LPDDR3"), "no shipped part is of standard 'LPDDR3'"),
        (changed(LPDDR4, *TIMES, "RC", value=3), "tRC 3 is shorter than tRAS"),
        (changed(DDR5, *DRAM, "timing", value={"preset": "DDR5_4800B"}), "names the preset 'DDR5_4800B' alone"),
        (changed(DDR5, *DRAM, "timing", "nRFC", value=-1), "nRFC: is -1, which Ramulator fills in"),
        (changed(DDR5, *DRAM, "timing", "rate", value=480), "give 0 beats in a clock"),
        (changed(DDR5, *DRAM, "org", "dq", value=7), "32 is not a multiple of dq 7"),
        (changed(DDR5, *DRAM, "org", "column"), "column is missing"),
        ({"nothing": {}}, "no memory specification of a known format .dramsim3, dramsys, ramulator2"),
        ({"memspec": 5}, "no memory specification of a known format"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, specification, message):
    with pytest.raises(InputError, match=message):
        import_part(written(tmp_path, specification))


def test_hostile_files(tmp_path):
    for text, message in (
        ("[" * 10000, "levels deep"),
        ('{"memspec": {"memspec": {}', "not YAML"),
        ("a: &x [1]\nb: *x\n", "known format"),
        ('{"memspec": {"memarchitecturespec": {"nbrOfRows": 1, "nbrOfRows": 2}}}', "appears twice"),
        ("", "empty"),
    ):
        file = tmp_path / "bad.json"
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            import_part(file)
    with pytest.raises(InputError, match="part reader"):
        import_part(written(tmp_path, LPDDR4), format="drmsys")
    assert set(PART_READERS) >= {"dramsim3", "dramsys", "ramulator2"}


def test_a_standard_without_bank_groups_on_a_base_with_them(tmp_path):
    """DDR3 on DDR4's wires: what holds within a group is what holds between banks; a page is not a name."""
    data = copy.deepcopy(LPDDR4)
    data["memspec"] |= {"memoryType": "DDR3", "memoryId": "https://example.org/data-sheet"}
    data["memspec"]["memarchitecturespec"] |= {"burstLength": 8, "width": 8, "nbrOfDevices": 8}
    data["memspec"]["memtimingspec"] |= {"RRD": 5, "CCD": 4, "WTR": 6, "RL": 11, "WL": 8}
    file = tmp_path / "ddr3.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"standard 'DDR3'.*--base on the command line"):
        import_part(file)
    part = import_part(file, base="ddr4-3200-x8").part
    t = part.timing
    assert (part.name, t.tRRD_L, t.tCCD_L, t.tWTR_L) == ("ddr3", t.tRRD, t.tCCD, t.tWTR)
    assert part.organisation.bank_groups == 1


@pytest.mark.parametrize("value", ["!17", "!!int x", "!!bool x", "!!timestamp x", "!!python/name:os x", "9" * 5000])
def test_values_that_yaml_cannot_make(tmp_path, value):
    """A tag in a specification is refused with its place; it was a traceback."""
    path = tmp_path / "p.json"
    path.write_text(f'{{"memspec":\n {{"memoryId": {value} }}}}')
    for read in (import_part, load_part):
        with pytest.raises(InputError, match=r"p.json:2:15: (tags|the number) .* (not used here|too long)") as found:
            read(path)
        assert len(str(found.value)) < 600
