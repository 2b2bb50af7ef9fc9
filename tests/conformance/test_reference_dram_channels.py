"""DRAMsim3 runs of one to eight channels behind an in-order front end; late first requests; long idle stretches."""

import csv

import numpy as np
import pytest
from dram_parts import with_channels

from hwmodel.dram.engine import simulate_dram

TRACES = (
    "copy", "hot_rows_bursty", "idle_in_the_middle", "late_first", "one_channel_of_them", "random_mixed_gap2",
    "random_read_spaced40", "seq_read",
)  # fmt: skip


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("channels", [1, 2, 4, 8])
def test_every_request_is_done_in_the_tools_clock(reference, channels, trace):
    folder = reference / "dram" / "channels"
    with (folder / "results.csv").open() as file:
        rows = {(int(row["channels"]), row["trace"]): row for row in csv.DictReader(file)}
    if (channels, trace) not in rows:
        pytest.skip("the reference has no such run")
    wanted, given = rows[channels, trace], np.load(folder / f"{channels}ch_{trace}.npz")
    result = simulate_dram(
        given["addr"].astype(np.uint64), given["op"], given["arrival"].astype(np.int64), part=with_channels(channels)
    )
    assert np.array_equal(result.done_cycle, given["done"]) and np.array_equal(result.accept_cycle, given["accept"])
    assert result.total_cycles == int(wanted["last_completion_cycle"])
    assert result.mean_read_latency_cycles == pytest.approx(float(wanted["mean_read_latency_from_accept"]), abs=1e-3)
    commands = result.commands_at_completion  # the tool leaves writes that still wait
    columns = {"ACT": "act_cmds", "PRE": "pre_cmds", "RD": "read_cmds", "WR": "write_cmds", "REFab": "ref_cmds"}
    assert {name: commands[name] for name in columns} == {name: int(wanted[c]) for name, c in columns.items()}
