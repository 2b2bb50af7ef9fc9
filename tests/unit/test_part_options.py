"""Options of a part: named pieces of its file, chosen by name; they show in commands, wires and time."""

import time

import numpy as np
import pytest

from hwmodel.dram.energy import interface_energy
from hwmodel.dram.engine import load_part, simulate_dram
from traces.base.errors import InputError

OPTIONS = ("wck-sync", "two-act", "two-act-late", "no-rdqs", "write-link-ecc")


def unloaded(part):
    """Latency of reads to a closed row of an idle memory."""
    result = simulate_dram([0, 1 << 20], [0, 0], [1000, 3000], part=part)
    return (result.done_cycle - result.accept_cycle).tolist()[1]


@pytest.mark.parametrize("base", ["lpddr5-6400", "lpddr5x-8533"])
@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_makes_a_part(base, option):
    part = load_part(f"{base}+{option}")
    assert part.name == f"{base}+{option}"
    same = load_part({"extends": base, "name": part.name, "with": [option]})
    assert same.timing == part.timing and same.interface.wires == part.interface.wires


def test_a_stopped_data_clock_costs_a_command_and_saves_energy():
    sync, always = load_part("lpddr5-6400+wck-sync"), load_part("lpddr5-6400")
    assert unloaded(sync) == unloaded(always) + 1
    spaced = simulate_dram(np.arange(50) * 32, np.zeros(50, int), np.arange(50) * 500, part=sync)
    together = simulate_dram(np.arange(50) * 32, np.zeros(50, int), np.zeros(50, int), part=sync)
    assert spaced.commands["CAS"] == 50 and together.commands["CAS"] < 10
    rows = {"timestamp_cycles": np.arange(50) * 500, "command": ["RD"] * 50, "data_hex": ["00" * 32] * 50}
    wck = [interface_energy(rows, part=p, dbi=False).counts.group("wck").rising for p in (sync, always)]
    assert wck[0] == 50 * (2 + 1) * 4 * 4 and wck[1] == (49 * 500 + 2) * 4 * 4  # burst and postamble; all the time


def test_trcd_counts_from_the_activate_that_the_part_names():
    early, late, one = (unloaded(load_part(f"lpddr5-6400{o}")) for o in ("+two-act", "+two-act-late", ""))
    assert early == one and late == one + 1  # ACT-2 follows in the next clock


def test_strobes_and_link_ecc():
    rows = {"timestamp_cycles": [0, 10], "command": ["RD", "WR"], "data_hex": ["00" * 32] * 2}
    groups = {(g.group, g.way) for g in interface_energy(rows, part="lpddr5-6400", dbi=False).counts.groups}
    assert ("dqs", "read") in groups and ("dqs", "write") not in groups
    none = interface_energy(rows, part="lpddr5-6400+no-rdqs", dbi=False).counts.groups
    assert not [g for g in none if g.group == "dqs"]
    plain, ecc = (load_part(f"lpddr5-6400{o}").timing for o in ("", "+write-link-ecc"))
    assert ecc.tWR - plain.tWR == 3 and ecc.tWTR_L > plain.tWTR_L and ecc.tWTR > plain.tWTR


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("lpddr5-6400+wck-snyc", "the part has no option 'wck-snyc' .did you mean 'wck-sync'"),
        ("lpddr4-3200+wck-sync", "the part has no option 'wck-sync'"),
        ({"extends": "lpddr5-6400", "with": "wck-sync"}, "must be a list of options"),
        (
            {"extends": "lpddr5-6400", "with": ["x"], "options": {"x": {"extends": "hbm2"}}},
            "an option changes constants, not extends",
        ),
    ],
)
def test_wrong_options_are_named(part, message):
    with pytest.raises(InputError, match=message):
        load_part(part)


def test_many_wrong_options_are_named_once():
    """60,000 took 13 s to compare, and as many lines to read."""
    before = time.process_time()
    with pytest.raises(InputError) as caught:
        load_part({"extends": "lpddr4-3200", "with": ["x" * 10] * 30_000})
    lines = str(caught.value).splitlines()
    assert [line.partition("with: ")[2] for line in lines] == [
        "the part has no option 'xxxxxxxxxx'", "option 'xxxxxxxxxx' is given twice",
    ]  # fmt: skip
    assert time.process_time() - before < 2


def test_an_option_with_a_question_mark_is_taken_where_the_part_has_it():
    for part, sync in (("lpddr5-6400", 1), ("lpddr4-3200", 0)):
        loaded = load_part({"extends": part, "name": part, "with": ["wck-sync?"]})
        assert loaded.timing.tCAS_WCK == sync
        assert sync or loaded == load_part(part)
