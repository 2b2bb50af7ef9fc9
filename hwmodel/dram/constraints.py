"""From a part's timing to the engine's table: after command A, command B may follow after so many clocks.

The rules are those of the JEDEC command timing tables, in the form of reference tools where the two differ
(docs/concepts/dram.md lists each difference and its cost).
"""

from __future__ import annotations

from itertools import product

import numpy as np

from hwmodel.parts.commands import COMMANDS
from hwmodel.parts.part import Part

SCOPES = ("bank", "group", "rank", "other_rank")
READS, WRITES = ("RD", "RDA"), ("WR", "WRA", "MWR")
COLUMNS = READS + WRITES
REFRESHES = ("REFab", "REFpb", "RFM")


def gap_table(part: Part, *, read_dbi: bool = False) -> np.ndarray:
    """Return int64[scope, from, to] clocks; 0 means no constraint. Scopes: same bank, group, rank, another rank."""
    t, burst = part.timing, part.organisation.burst_cycles
    rl = t.RL_dbi if read_dbi else t.RL
    table = np.zeros((len(SCOPES), len(COMMANDS), len(COMMANDS)), np.int64)

    def after(scope: str, before: str | tuple[str, ...], then: str | tuple[str, ...], clocks: int) -> None:
        befores = (before,) if isinstance(before, str) else before
        thens = (then,) if isinstance(then, str) else then
        for a, b in product(befores, thens):
            at = SCOPES.index(scope), COMMANDS.index(a), COMMANDS.index(b)
            table[at] = max(table[at], clocks)

    # one bank: a row is opened, used and closed
    start = "ACT2" if t.tAAD and t.tRCD_ACT2 else "ACT"
    after("bank", start, READS, t.tRCD)
    after("bank", start, WRITES, t.tRCD_write)
    if t.tAAD:  # the row is only known with the second command
        after("bank", "ACT", COLUMNS, t.tAAD + 1)
    after("bank", "ACT", ("PRE", "PREA"), t.tRAS)
    after("bank", "ACT", ("ACT", *REFRESHES), t.tRC)
    after("bank", "RD", ("PRE", "PREA"), t.tRTP)
    after("bank", ("WR", "MWR"), ("PRE", "PREA"), t.WL + burst + t.tDQSS + t.tWR)
    after("bank", "PRE", ("ACT", *REFRESHES), t.tRP)
    after("bank", "REFpb", ("ACT", *REFRESHES), t.tRFCpb)
    after("bank", "RFM", ("ACT", *REFRESHES), t.tRFM)
    after("bank", ("WR", "MWR"), "MWR", t.tCCDMW)

    # the data wires, within a bank group (L) and between groups, and the write-to-read path in the DRAM
    for scope, ccd, ccd_write, rrd, wtr, length in (
        ("group", t.tCCD_L, t.tCCD_L_WR or t.tCCD_L, t.tRRD_L, t.tWTR_L, max(burst, t.BL_L)),
        ("rank", t.tCCD, t.tCCD, t.tRRD, t.tWTR, burst),
    ):
        after(scope, READS, READS, max(burst, ccd))
        after(scope, WRITES, WRITES, max(burst, ccd_write))
        after(scope, READS, WRITES, max(rl + burst - t.WL + t.turnaround, burst))
        after(scope, WRITES, READS, t.WL + length + wtr)
        after(scope, "ACT", "ACT", rrd)
        after(scope, "ACT", ("REFpb", "RFM"), rrd)
        after(scope, ("REFpb", "RFM"), "ACT", max(t.tPBR2ACT or t.tRRD, rrd if scope == "group" else 0))

    # one rank: precharge to precharge, refresh, power-down
    after("rank", ("PRE", "PREA"), ("PRE", "PREA"), t.tPPD)
    after("rank", "PREA", ("ACT", *REFRESHES), t.tRPab)
    after("rank", "REFab", ("ACT", *REFRESHES, "PDE"), t.tRFCab)
    after("rank", ("REFpb", "RFM"), REFRESHES, t.tREFpb_gap)
    after("rank", "REFpb", "PDE", t.tRFCpb)
    after("rank", "RFM", "PDE", t.tRFM)
    after("rank", "SRE", "SRX", max(t.tCKE, 1))
    after("rank", "SRX", tuple(c for c in COMMANDS if c != "SRX"), t.tXSR)
    after("rank", ("ACT", "PRE", "PREA"), "PDE", max(part.command_cycles.values()))
    after("rank", READS, "PDE", rl + burst + 1)
    after("rank", WRITES, "PDE", t.WL + burst + t.tDQSS + t.tWR)
    after("rank", "PDE", "PDX", t.tCKE)
    after("rank", "PDX", "PDE", t.tCKE)
    after("rank", "PDX", tuple(c for c in COMMANDS if c not in ("PDE", "PDX")), t.tXP)

    # ranks share the data wires
    after("other_rank", READS, READS, burst + t.tRTRS)
    after("other_rank", WRITES, WRITES, burst + t.tRTRS)
    after("other_rank", READS, WRITES, max(rl + burst + t.tRTRS - t.WL, 1))
    after("other_rank", WRITES, READS, max(t.WL + burst + t.tRTRS - rl, 1))
    if part.organisation.bank_groups == 1:  # one group is the rank
        table[SCOPES.index("rank")] = np.maximum(table[SCOPES.index("rank")], table[SCOPES.index("group")])
    return table
