"""Check any command trace against a part's constraints, each rule written from the part's timing by name as the JEDEC
command timing tables state it, apart from the tables of the compiled engine that made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hwmodel.dram.command_table import CommandTable, command_table, from_trace, spans
from hwmodel.dram.controller import ControllerSpec, effective_part
from hwmodel.dram.result import DramResult
from hwmodel.parts.part import COMMANDS, Part

READ, WRITE = ("RD", "RDA"), ("WR", "WRA", "MWR")
COLUMN = READ + WRITE
CLOSE = ("PRE", "PREA")
REFRESH = ("REFab", "REFpb", "RFM")
WHOLE_RANK = ("PREA", "REFab", "PDE", "PDX", "SRE", "SRX")
Broken = Iterable[tuple[str, str]]  # rule and message of each
# A refresh may be postponed: JEDEC allows eight intervals, and a ninth is the one that is due.
POSTPONED_REFRESHES = 8


@dataclass(frozen=True)
class Rule:
    """`then` may follow `before`, where both concern the same `scope`, only after `clocks`."""

    name: str
    scope: str  # bank, group (same bank group), rank, other (another rank of the channel)
    before: tuple[str, ...]
    then: tuple[str, ...]
    clocks: int


@dataclass(frozen=True)
class Violation:
    """A command that broke a rule: its index in the trace, its cycle, the rule and what would have been right."""

    index: int
    cycle: int
    rule: str
    message: str


def rules(part: Part, *, read_dbi: bool = False, spacing: str = "first-clocks") -> tuple[Rule, ...]:
    """Return the spacing rules of a part. spacing: whose, where they differ (ControllerSpec.spacing)."""
    t, burst = part.timing, part.organisation.burst_cycles
    rl, wl = (t.RL_dbi if read_dbi else t.RL), t.WL
    ramulator = spacing == "last-clocks"
    lead = wl - rl if ramulator and part.standard.startswith("LPDDR") else rl - wl
    longest = max(part.command_cycles.values())
    opens = ("ACT2",) if t.tAAD and t.tRCD_ACT2 else ("ACT",)
    return (
        Rule("tRCD", "bank", opens, READ, t.tRCD),
        Rule("tRCD_write", "bank", opens, WRITE, t.tRCD_write),
        Rule("tRAS", "bank", ("ACT",), CLOSE, t.tRAS),
        Rule("tRC", "bank", ("ACT",), ("ACT", *REFRESH, "SRE"), t.tRC),
        Rule("tRP", "bank", ("PRE",), ("ACT", *REFRESH, "SRE"), t.tRP),
        Rule("tRPab", "rank", ("PREA",), ("ACT",), t.tRPab),
        Rule("tRPab", "rank", ("PREA",), (*REFRESH, "SRE"), t.tRP if ramulator else t.tRPab),
        Rule("tRTP", "bank", ("RD",), CLOSE, t.tRTP),
        Rule("tWR", "bank", ("WR", "MWR"), CLOSE, wl + burst + t.tDQSS + t.tWR),
        Rule("tRRD", "rank", ("ACT",), ("ACT",), t.tRRD),
        Rule("tRRD_L", "group", ("ACT",), ("ACT",), t.tRRD_L),
        Rule("tRRD_refresh", "rank", ("ACT",), ("REFpb", "RFM"), t.tRRD),
        Rule("tRRD_refresh", "rank", ("REFpb", "RFM"), ("ACT",), t.tPBR2ACT or t.tRRD),
        Rule("tCCD", "rank", READ, READ, t.tCCD),
        Rule("tCCD", "rank", WRITE, WRITE, t.tCCD),
        Rule("tCCD_L", "group", READ, READ, t.tCCD_L),
        Rule("tCCD_L_WR", "group", WRITE, WRITE, t.tCCD_L_WR or t.tCCD_L),
        Rule("tWTR", "rank", WRITE, READ, wl + burst + t.tWTR),
        Rule("tWTR_L", "group", WRITE, READ, wl + max(burst, t.BL_L) + t.tWTR_L),
        Rule("tRTW", "rank", READ, WRITE, rl + burst - wl + t.turnaround),
        Rule("tPPD", "rank", CLOSE, CLOSE, t.tPPD),
        Rule("tRFCab", "rank", ("REFab",), ("ACT", *REFRESH, "PDE", "SRE"), t.tRFCab),
        Rule("tRFCpb", "bank", ("REFpb",), ("ACT", *REFRESH, "SRE"), t.tRFCpb),
        Rule("tRFM", "bank", ("RFM",), ("ACT", *REFRESH, "SRE"), t.tRFM),
        Rule("tCCDMW", "bank", ("WR", "MWR"), ("MWR",), t.tCCDMW),
        Rule("tREFpb_gap", "rank", ("REFpb", "RFM"), REFRESH, t.tREFpb_gap),
        Rule("tRTRS", "other", READ, READ, burst + t.tRTRS),
        Rule("tRTRS", "other", WRITE, WRITE, burst + (t.tRTRS if spacing == "jedec" else 0)),
        Rule("tRTRS_turn", "other", READ, WRITE, burst + t.tRTRS + (0 if ramulator else rl - wl)),
        Rule("tRTRS_turn", "other", WRITE, READ, burst + t.tRTRS - lead),
        Rule("tXP", "rank", ("PDX",), ("ACT", *COLUMN, *CLOSE, *REFRESH, "SRE"), t.tXP),
        Rule("tXSR", "rank", ("SRX",), ("ACT", *COLUMN, *CLOSE, *REFRESH, "PDE", "SRE"), t.tXSR),
        Rule("tSR", "rank", ("SRE",), ("SRX",), t.tCKE),
        Rule("tCAS_WCK", "rank", ("CAS",), COLUMN, t.tCAS_WCK),
        Rule("tCKE", "rank", ("PDE",), ("PDX",), t.tCKE),
        Rule("tCKE", "rank", ("PDX",), ("PDE",), t.tCKE),
        Rule("read_to_PDE", "rank", READ, ("PDE",), rl + burst + 1),
        Rule("write_to_PDE", "rank", WRITE, ("PDE",), wl + burst + t.tDQSS + t.tWR),
        Rule("command_to_PDE", "rank", ("ACT", *CLOSE), ("PDE",), longest),
    )


class _Bank:
    def __init__(self) -> None:
        self.row: int | None = None
        self.recovered = -(10**9)  # first cycle at which tRAS, tRTP and tWR allow the row to be closed
        self.closed_by_itself = -(10**9)  # cycle of an auto-precharge
        self.activates = 0  # that no refresh made good for


def check_trace(
    commands: Any,
    *,
    part: Part,
    read_dbi: bool = False,
    command_occupancy: bool = False,
    refresh: str = "all-bank",
    pull_in: int = 0,
    management: bool = False,
    spacing: str = "first-clocks",
    limit: int = 20,
) -> list[Violation]:
    """Return what a command trace breaks, at most `limit` violations, in order of time; an empty list if it is legal.

    commands: anything hwmodel.dram.command_table takes, of one channel. refresh: 'all-bank' or 'per-bank' also
    demands that no refresh is postponed by more than 8 intervals, nor more than `pull_in` pulled in; 'none' does not.
    management: no bank is activated more than RAAIMT times without refresh management. spacing: whose distances between
    commands hold. O(commands x rules).
    """
    table = command_table(commands, part=part)
    checker = _Checker(part, read_dbi, command_occupancy, management, spacing)
    violations: list[Violation] = []
    for index in range(len(table)):
        for rule, message in checker.step(table, index):
            cycle = int(table.cycle[index])
            violations.append(
                Violation(index, cycle, rule, f"cycle {cycle}, {COMMANDS[table.command[index]]}: {message}")
            )  # fmt: skip
            if len(violations) >= limit:
                return violations
    violations += _refresh_gaps(table, part, refresh)
    if refresh == "all-bank":
        violations += _refresh_counts(table, part, pull_in)
    return violations[:limit]


def broken_rules(result: DramResult, part: Part, controller: ControllerSpec) -> list[str]:
    """Return the violations in a run whose commands were kept, under all that its controller promises."""
    engine = controller.engine_settings
    return [
        violation.message
        for channel in result.command_trace or ()
        for violation in check_trace(
            from_trace(channel, part=part, end_cycle=result.end_cycle),
            part=effective_part(part, controller),
            read_dbi=controller.read_dbi,
            command_occupancy=controller.command_occupancy,
            refresh=str(engine["refresh"]),
            pull_in=int(engine.get("refresh_pull_in", controller.refresh_pull_in)),
            management=controller.refresh_management,
            spacing=controller.spacing,
        )
    ]


class _Checker:
    """State of one channel, command by command."""

    def __init__(self, part: Part, read_dbi: bool, occupancy: bool, management: bool, spacing: str) -> None:
        self.part, self.occupancy, self.management = part, occupancy, management
        self.rules = rules(part, read_dbi=read_dbi, spacing=spacing)
        # Ramulator's distances lie between the last clocks of commands; its bursts of two ranks may meet.
        self.from_ends = spacing == "last-clocks"
        self.read_latency = part.timing.RL_dbi if read_dbi else part.timing.RL
        o = part.organisation
        self.banks = [[_Bank() for _ in range(o.banks)] for _ in range(o.ranks)]
        self.last: dict[tuple[Any, ...], int] = {}  # (scope, scope_id, command) -> cycle
        self.acts: list[list[int]] = [[] for _ in range(o.ranks)]
        self.wires_until = [-1, -1]
        self.data_until, self.data_rank = (-1, -1), 0
        self.down, self.asleep = [False] * o.ranks, [False] * o.ranks
        self.half_open: tuple[int, int, int] | None = None  # rank, bank and cycle of an ACT that waits for its ACT-2
        self.clock_until = -1  # last cycle at which a column command finds the data clock running
        self.now = -1

    def step(self, table: CommandTable, index: int) -> Broken:
        o, t = self.part.organisation, self.part.timing
        name, cycle = COMMANDS[table.command[index]], int(table.cycle[index])
        rank, group = int(table.rank[index]), int(table.bank_group[index])
        in_group = int(table.bank[index])
        flat = in_group if o.bank_groups == 1 else group * o.banks_per_group + in_group % o.banks_per_group
        group = flat // o.banks_per_group
        if cycle < self.now:
            yield "order", f"comes after cycle {self.now}"
        self.now = cycle
        concerned = [flat]
        if name in WHOLE_RANK:
            concerned = list(range(o.banks))
        elif name == "REFpb":
            concerned = list(range(flat % o.refresh_sets, o.banks, o.refresh_sets))
        yield from self._spacing(name, cycle, rank, group, flat, concerned)
        yield from self._state(name, cycle, rank, flat, int(table.row[index]), concerned)
        yield from self._second_act(name, cycle, rank, flat)
        yield from self._data_clock(name, cycle)
        yield from self._wires(name, cycle)
        if name in COLUMN:
            yield from self._data(name, cycle, rank)
        if name == "ACT":
            recent = self.acts[rank]
            if len(recent) == 4 and cycle < recent[0] + t.tFAW:
                yield "tFAW", f"fifth activate within {t.tFAW} clocks of cycle {recent[0]}"
            self.acts[rank] = [*recent[-3:], cycle]
        for bank in concerned if name == "REFpb" else ():
            for scope, scope_id in (("bank", bank), ("group", bank // o.banks_per_group)):
                self.last[(scope, (rank, scope_id), name)] = cycle
        for scope, key in self._scope_keys(rank, group, flat).items():
            if scope == "rank" or name not in (*WHOLE_RANK, "CAS"):
                self.last[(scope, key, name)] = cycle

    def _scope_keys(self, rank: int, group: int, flat: int) -> dict[str, tuple[int, ...]]:
        return {"bank": (rank, flat), "group": (rank, group), "rank": (rank,)}

    def _spacing(self, name: str, cycle: int, rank: int, group: int, flat: int, concerned: list[int]) -> Broken:
        keys = self._scope_keys(rank, group, flat)
        for rule in self.rules:
            if name not in rule.then:
                continue
            for before in rule.before:
                clocks = rule.clocks
                if clocks and self.from_ends:
                    clocks += (self.part.wire_cycles(before) or 1) - (self.part.wire_cycles(name) or 1)
                if rule.scope == "other":
                    at = [self.last.get(("rank", (r,), before)) for r in range(len(self.banks)) if r != rank]
                elif rule.scope == "bank":
                    at = [
                        self.last.get(("bank", (rank, b), before))
                        for b in concerned
                        if name != "PREA" or self.banks[rank][b].row is not None
                    ]
                elif rule.scope == "group" and name in WHOLE_RANK:
                    at = []
                else:
                    at = [self.last.get((rule.scope, keys[rule.scope], before))]
                for earlier in at:
                    if earlier is not None and cycle < earlier + clocks:
                        broken = f"{rule.name} after {before} at cycle {earlier} is {clocks} clocks"
                        yield rule.name, f"{broken}: not before cycle {earlier + clocks}"
        t = self.part.timing
        if name in ("ACT", *REFRESH, "SRE"):
            ready = max(self.banks[rank][b].closed_by_itself for b in concerned) + t.tRP
            if cycle < ready:
                yield "tRP", f"a bank precharges itself, ready at cycle {ready}"

    def _state(self, name: str, cycle: int, rank: int, flat: int, row: int, concerned: list[int]) -> Broken:
        t, burst = self.part.timing, self.part.organisation.burst_cycles
        bank, banks = self.banks[rank][flat], [self.banks[rank][b] for b in concerned]
        if self.down[rank] and name != "PDX":
            yield "power-down", "the rank is powered down"
        if self.asleep[rank] and name != "SRX":
            yield "self-refresh", "the rank refreshes itself"
        if name == "ACT":
            if bank.row is not None:
                yield "state", f"the bank has row {bank.row} open"
            bank.row, bank.recovered = row, cycle + t.tRAS
            bank.activates += 1
            if self.management and t.RAAIMT and bank.activates > t.RAAIMT:
                yield "RAAIMT", f"activate number {bank.activates} without refresh management, at most {t.RAAIMT}"
        elif name in COLUMN:
            if bank.row != row:
                yield "state", f"row {row} is not open (open: {bank.row})"
            recovery = t.tRTP if name in READ else t.WL + burst + t.tDQSS + t.tWR
            bank.recovered = max(bank.recovered, cycle + recovery)
            if name in ("RDA", "WRA"):
                bank.closed_by_itself, bank.row = bank.recovered, None
        elif name in CLOSE:
            for each in banks:
                each.row = None
        elif name in (*REFRESH, "SRE") and any(each.row is not None for each in banks):
            yield "state", f"{'all banks' if name in WHOLE_RANK else 'the bank'} must be closed"
        elif name == "SRX":
            if not self.asleep[rank]:
                yield "self-refresh", "the rank does not refresh itself"
            self.asleep[rank] = False
        elif name == "PDE":
            self.down[rank] = True
        elif name == "PDX":
            if not self.down[rank]:
                yield "power-down", "the rank is not powered down"
            self.down[rank] = False
        if name == "SRE":
            self.asleep[rank] = True
        for each in banks if name in REFRESH else ():
            each.activates = max(0, each.activates - t.RAAIMT)

    def _second_act(self, name: str, cycle: int, rank: int, flat: int) -> Broken:
        if not self.part.timing.tAAD:
            return
        if self.half_open is not None and cycle > self.half_open[2] + self.part.timing.tAAD:
            yield "tAAD", f"ACT-2 of the activate at cycle {self.half_open[2]} is late or missing"
            self.half_open = None
        if name == "ACT":
            if self.half_open is not None:
                yield "tAAD", "an activate between ACT-1 and ACT-2 of another"
            self.half_open = rank, flat, cycle
        elif name == "ACT2":
            if self.half_open is None or self.half_open[:2] != (rank, flat):
                yield "tAAD", "ACT-2 without the ACT-1 of its bank"
            self.half_open = None
        elif name in COLUMN and self.half_open is not None and self.half_open[:2] == (rank, flat):
            yield "tAAD", "a column command before ACT-2"

    def _data_clock(self, name: str, cycle: int) -> Broken:
        t, burst = self.part.timing, self.part.organisation.burst_cycles
        if not t.tCAS_WCK or name not in ("CAS", *COLUMN):
            return
        if name == "CAS":  # runs as long as after the burst it is for, a read or a write: the longer of the two
            self.clock_until = cycle + t.tCAS_WCK + max(self.read_latency, t.WL) + burst + t.tWCKPST
            return
        if cycle > self.clock_until:
            yield "CAS", f"the data clock stopped after cycle {self.clock_until}"
        latency = self.read_latency if name in READ else t.WL
        self.clock_until = max(self.clock_until, cycle + latency + burst + t.tWCKPST)

    def _wires(self, name: str, cycle: int) -> Broken:
        if not self.part.wire_cycles(name):
            return  # it uses CKE
        cycles = self.part.wire_cycles(name)
        bus = 1 if self.part.organisation.command_buses == 2 and name in COLUMN else 0
        if cycle < self.wires_until[bus]:
            yield "command wires", f"another command holds them until cycle {self.wires_until[bus]}"
        self.wires_until[bus] = cycle + (cycles if self.occupancy else min(cycles, 1))

    def _data(self, name: str, cycle: int, rank: int) -> Broken:
        start = cycle + (self.read_latency if name in READ else self.part.timing.WL)
        meet = start < self.data_until[1] and start + self.part.organisation.burst_cycles > self.data_until[0]
        if meet and not (self.from_ends and rank != self.data_rank):
            yield "data wires", f"data from cycle {start} on collide with those of {self.data_until}"
        self.data_until, self.data_rank = (start, start + self.part.organisation.burst_cycles), rank


def _refresh_counts(table: CommandTable, part: Part, pull_in: int) -> list[Violation]:
    """Per rank: no more refreshes than intervals and `pull_in`; at most 16 in two intervals where some are."""
    ranks = part.organisation.ranks
    violations, interval = [], part.timing.tREFI // ranks * ranks  # ranks in turn, every tREFI / ranks whole clocks
    for rank in range(ranks):
        at = table.cycle[(table.rank == rank) & (table.command == COMMANDS.index("REFab"))].tolist()
        asleep, done, since = spans(table, rank, "SRE", "SRX"), 0, 0
        for k, cycle in enumerate(at):
            while asleep and asleep[0][1] <= cycle:
                since, done = asleep.pop(0)[1], -1  # one more is due after self-refresh
            done += 1
            if done > (cycle - since) // interval + 1 + pull_in:
                message = f"rank {rank}: refresh {done} at cycle {cycle}, {pull_in} may be pulled in"
                violations.append(Violation(len(table) - 1, cycle, "pull-in", message))
            if pull_in and k >= 16 and cycle < at[k - 16] + 2 * interval:
                message = f"rank {rank}: 17 refreshes from cycle {at[k - 16]} to {cycle}"
                violations.append(Violation(len(table) - 1, cycle, "refreshes in 2 tREFI", message))
    return violations


def _refresh_gaps(table: CommandTable, part: Part, refresh: str) -> list[Violation]:
    """No rank (all-bank) or bank (per-bank) may wait longer for its refresh than postponing allows."""
    if refresh == "none" or not len(table):
        return []
    o, code = part.organisation, COMMANDS.index("REFab" if refresh == "all-bank" else "REFpb")
    allowed = (POSTPONED_REFRESHES + 1) * part.timing.tREFI
    violations = []
    for rank in range(o.ranks):
        mine = (table.rank == rank) & (table.command == code)
        flat = table.bank if o.bank_groups == 1 else table.bank_group * o.banks_per_group + table.bank
        for bank in range(o.banks) if refresh == "per-bank" else (None,):
            sets = o.refresh_sets
            at = table.cycle[mine if bank is None else mine & (flat % sets == bank % sets)].tolist()
            asleep = spans(table, rank, "SRE", "SRX")
            at = sorted(at + [cycle for span in asleep for cycle in span])
            for before, after in zip([0, *at], [*at, table.end_cycle], strict=True):
                if after - before > allowed and not any(a <= before and after <= b for a, b in asleep):
                    scope_id = f"rank {rank}" + ("" if bank is None else f", bank {bank}")
                    message = f"{scope_id}: no refresh from cycle {before} to {after}, allowed are {allowed} clocks"
                    violations.append(Violation(len(table) - 1, after, "tREFI", message))
    return violations
