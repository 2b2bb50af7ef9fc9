"""DRAMPower's LPDDR5, LPDDR6 and DDR5 models: wires and core of the same commands and data.

`fwd_*` columns are those that a correct model gives (the READMEs of the reference list the tool's quirks).
"""

import csv
import json

import pytest
from drampower_parts import drampower_part

from hwmodel.dram.command_table import command_table, count_commands
from hwmodel.dram.energy import core_energy, core_rows, interface_energy

LPDDR5 = [
    f"{case}_dbi{dbi}"
    for case, dbis in (
        ("rd_random_b2b", "01"), ("rd_random_gap", "01"), ("rd_zeros", "0"), ("rd_ones", "01"), ("rd_fp16", "01"),
        ("rd_int8", "01"), ("rd_csr", "01"), ("wr_random", "01"), ("wr_fp16", "01"), ("mix_int8", "01"), ("core", "0"),
        ("rd_fp16_bl32", "01"), ("rd_int8_gap_bl32", "01"), ("mix_csr_bl32", "0"),
    )
    for dbi in dbis
]  # fmt: skip
LPDDR6 = [
    f"{case}_dbi{dbi}{meta}"
    for case, dbis, metas in (
        ("rd_random_b2b", "01", ("",)), ("rd_random_gap", "01", ("_meta00000000", "_meta0000a53c")),
        ("rd_zeros", "0", ("_meta00000000", "_meta0000a53c")), ("rd_ones", "01", ("",)), ("rd_fp16", "01", ("",)),
        ("rd_int8", "01", ("",)), ("rd_csr", "01", ("",)), ("wr_random", "01", ("",)), ("wr_fp16", "01", ("",)),
        ("mix_int8", "01", ("",)), ("core", "0", ("",)), ("rd_fp16_bl48", "01", ("_meta00000000", "_meta5aa5c3f0")),
    )
    for dbi in dbis
    for meta in metas
]  # fmt: skip
DDR5 = ["rd_random_b2b", "rd_zeros", "rd_ones", "rd_fp16", "wr_int8", "mix_csr", "core"]


class Run:
    """One reference run: its row of results, its part, and ours."""

    def __init__(self, folder, name, *, shown="fwd"):
        rows = {row["run"]: row for row in csv.DictReader((folder / "drampower_results.csv").open())}
        self.row = rows[name]
        given = json.loads((folder / f"drampower_parameters_{self.row['parameters']}.json").read_text())
        beats = int(self.row.get("burst_length") or 16)
        self.part = drampower_part(given, beats)
        case = self.row.get("case") or name
        word = int(self.row.get("metadata_hex") or "0", 16)
        commands = folder / f"drampower_{case}_commands.csv"
        self.table = command_table(commands, part=self.part)
        self.ours = interface_energy(
            commands, part=self.part, dbi=self.row.get("dbi") == "1", metadata=(word & 0xFFFF, word >> 16)
        )
        self.raw = json.loads((folder / f"drampower_{name}.json").read_text())
        assert self.table.end_cycle == int(self.row["end_cycle"])

    def count(self, group, way, kind, column):
        found = self.ours.counts.group(group, way)
        assert getattr(found, kind) == int(self.row[column]), column

    def wires(self, pairs, level):
        """pairs: (group, way, column stem) whose level ('ones' or 'zeros') and rising edges must be equal."""
        for group, way, stem in pairs:
            self.count(group, way, level, f"{stem}_{level}")
            self.count(group, way, "rising", f"{stem}_0to1")

    def energy(self, triples):
        """triples: (group, way, column stem) of the energies."""
        pj = {row.term: row.energy_pj for row in self.ours.rows}
        for group, way, stem in triples:
            for kind in ("static", "dynamic"):
                wanted = 1e12 * float(self.row[f"{stem}_{kind}_J"])
                assert pj[f"{group}_{way}_{kind}"] == pytest.approx(wanted, rel=1e-9), (group, way, kind)

    def core(self, terms):
        counts = count_commands(self.table, part=self.part)
        ours = {row.term: row.energy_pj for row in core_rows(counts, self.part)}
        for term, columns in terms.items():
            wanted = 1e12 * sum(float(self.row[f"E_core_{column}_J"]) for column in columns)
            assert ours[term] == pytest.approx(wanted, rel=1e-9, abs=1e-9), term
        total = sum(row.energy_pj for row in core_energy(self.table, part=self.part))
        assert total == pytest.approx(1e12 * float(self.row["E_core_total_J"]), rel=1e-9)
        cycles = self.raw.get("rank_cycles_with_WCK2CK_1") or self.raw["rank_cycles"]
        names = ("act", "pre", "powerDownAct", "powerDownPre", "selfRefresh")
        assert counts.background_cycles[0, 0].tolist() == [cycles[name] for name in names]


CORE = {
    "activate": ("act",), "precharge": ("pre",), "read": ("RD", "RDA"), "write": ("WR", "WRA"), "refresh": ("ref_AB",),
    "background_active": ("bg_act", "bg_act_shared"), "background_precharged": ("bg_pre",),
    "power_down_active": ("PDNA",), "power_down_precharged": ("PDNP",),
}  # fmt: skip
DATA = (("dq", "read", "fwd_read_dq"), ("dq", "write", "fwd_write_dq"))
COMMON = (("ck", "write", "ck"), ("ca", "write", "ca"))
CLOCKS = (("dqs", "read", "read_dqs"), *COMMON, ("wck", "write", "fwd_wck"))
ENERGY = (
    ("dq", "read", "E_fwd_dq_read"), ("dq", "write", "E_fwd_dq_write"), ("dqs", "read", "E_dqs_read"),
    ("ca", "write", "E_ca"), ("ck", "write", "E_ck"), ("wck", "write", "E_fwd_wck"),
)  # fmt: skip


@pytest.mark.parametrize("name", LPDDR5)
def test_lpddr5(reference, name):
    run = Run(reference / "dram" / "power5", name)
    pins = (("dbi", "read", "fwd_read_dbi"), ("dbi", "write", "fwd_write_dbi"))
    run.wires((*DATA, *pins, *CLOCKS), "ones")
    for way in ("read", "write"):
        run.count("dq", way, "toggles", f"fwd_{way}_dq_toggles")
    run.energy((*ENERGY, ("dbi", "read", "E_fwd_dbi_read"), ("dbi", "write", "E_fwd_dbi_write")))
    assert run.ours.total_pj == pytest.approx(1e12 * float(run.row["E_fwd_interface_total_J"]), rel=1e-9)
    run.core(CORE | {"refresh_per_bank": ("ref_PB",), "refresh_two_banks": ("ref_2B",), "self_refresh": ("sref",)})


@pytest.mark.parametrize("name", LPDDR6)
def test_lpddr6(reference, name):
    run = Run(reference / "dram" / "power6", name)
    run.wires((*DATA, *CLOCKS), "ones")
    for way in ("read", "write"):
        group = run.ours.counts.group("dq", way)
        assert group.toggles == int(run.row[f"fwd_{way}_dq_toggles"])
        for kind, column in (("data", "data"), ("metadata", "meta"), ("dbi", "dbi")):
            assert group.ones_of[kind] == int(run.row[f"fwd_{way}_{column}_ones"])
    run.energy(ENERGY)
    assert run.ours.total_pj == pytest.approx(1e12 * float(run.row["E_fwd_interface_total_J"]), rel=1e-9)
    run.core(CORE | {"refresh_two_banks": ("ref_DB",), "self_refresh": ("sref",)})


@pytest.mark.parametrize("name", DDR5)
def test_ddr5(reference, name):
    run = Run(reference / "dram" / "power_ddr5", name)
    strobes = tuple(("dqs", way, f"{way}_dqs") for way in ("read", "write"))
    for group, way, stem in (*DATA, *strobes, *COMMON):
        run.count(group, way, "zeros", f"{stem}_zeros")
        run.count(group, way, "rising", f"{stem}_0to1")
    pj = {row.term: row.energy_pj for row in run.ours.rows}
    for term, column in (
        *((f"dq_{way}_{kind}", f"E_{'fwd_' * (kind == 'dynamic')}dq_{way}_{kind}_J")
          for way in ("read", "write") for kind in ("static", "dynamic")),
        *((f"dqs_{way}_{kind}", f"E_dqs_{way}_{kind}_J")
          for way in ("read", "write") for kind in ("static", "dynamic")),
        *((f"{group}_write_{kind}", f"E_{group}_{kind}_J") for group in ("ca", "ck") for kind in ("static", "dynamic")),
    ):  # fmt: skip
        assert pj[term] == pytest.approx(1e12 * float(run.row[column]), rel=1e-9), term
    assert run.ours.total_pj == pytest.approx(1e12 * float(run.row["E_fwd_interface_total_J"]), rel=1e-9)
    run.core(CORE | {"refresh_per_bank": ("ref_SB",)})
