"""Whatever is asked of it, the engine loses nothing, its commands are legal, and block sizes change nothing."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from dram_parts import PARTS, variant, with_channels
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_ext.dram.engine import DONE, first_bad_request
from hwmodel.dram.checker import check_trace
from hwmodel.dram.command_table import command_wires, count_commands, from_trace
from hwmodel.dram.controller import SPACINGS, controller_spec, effective_part
from hwmodel.dram.engine import ControllerSpec, DramEngine, simulate_dram
from hwmodel.dram.tables import address_map
from hwmodel.parts.part import COMMANDS
from traces.base.errors import InputError

controllers = st.builds(
    ControllerSpec,
    scheduler=st.sampled_from(("fr-fcfs", "fr-fcfs", "fcfs")),
    hit_cap=st.sampled_from((1, 4, 100)),
    hit_cap_strict=st.booleans(),
    page_policy=st.sampled_from(("open", "closed", "closed-strict", "adaptive")),
    page_idle_cycles=st.sampled_from((5, 200)),
    read_queue_entries=st.sampled_from((1, 4, 32)),
    bank_queue_entries=st.sampled_from((1, 8)),
    write_queue_entries=st.just(32),
    write_high=st.sampled_from((1, 16, 32)),
    write_idle=st.sampled_from((0, 8)),
    controller_latency_cycles=st.sampled_from((1, 2, 30)),
    refresh=st.sampled_from(("all-bank", "per-bank", "none")),
    refresh_precharge=st.sampled_from(("each", "all")),
    read_dbi=st.booleans(),
    power_down_cycles=st.sampled_from((0, 20, 300)),
    command_occupancy=st.booleans(),
    full_timing=st.booleans(),
    masked_writes=st.booleans(),
    refresh_postpone=st.sampled_from((0, 3, 8)),
    refresh_pull_in=st.sampled_from((0, 3, 8)),
    refresh_management=st.booleans(),
    posted_writes=st.booleans(),
    self_refresh_cycles=st.sampled_from((0, 0, 700, 9000)),
    age_cap_cycles=st.sampled_from((0, 300)),
    temperature_c=st.sampled_from((25, 95)),
    hazard_ends_drain=st.booleans(),
    spacing=st.sampled_from(SPACINGS),
    refresh_together=st.booleans(),
    dual_in_turn=st.booleans(),
    shared_pseudo_channels=st.booleans(),
    requests_per_clock=st.sampled_from((None, 1, 2, 3)),
).map(
    # by bank refreshes of the warm parts take longer than the time between them: test_dram_bad_input
    lambda made: dataclasses.replace(made, temperature_c=25) if made.refresh == "per-bank" else made
)


def violations(table, part, controller):
    """What a run's commands break of the rules that its controller obeys."""
    return check_trace(
        table,
        part=effective_part(part, controller),
        read_dbi=controller.read_dbi,
        command_occupancy=controller.command_occupancy,
        refresh=controller.refresh,
        pull_in=controller.refresh_pull_in,
        management=controller.refresh_management,
        spacing=controller.spacing,
    )


@st.composite
def streams(draw, part):
    """Bursts of random, sequential, row-conflict and repeated addresses, dense or spaced."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(0, 400))
    o = part.organisation
    size = o.burst_bytes
    kind = draw(st.sampled_from(("random", "sequential", "conflict", "repeated")))
    total = o.capacity_bytes // size
    burst = {
        "random": rng.integers(0, total, n),
        "sequential": np.arange(n) % total,
        "conflict": (rng.integers(0, 4, n) * (total // 16) + rng.integers(0, 8, n)) % total,
        "repeated": rng.integers(0, 6, n),
    }[kind]
    gap = draw(st.sampled_from((0, 1, 30, 1500)))
    arrival = np.cumsum(rng.integers(0, 2 * gap + 1, n))
    write = rng.random(n) < draw(st.sampled_from((0, 0.3, 1)))
    masked = write * (1 + (rng.random(n) < draw(st.sampled_from((0, 0.5)))))
    return burst.astype(np.uint64) * np.uint64(size), masked.astype(np.uint8), arrival


@settings(max_examples=120, deadline=None)
@given(st.data(), st.sampled_from(sorted(PARTS)), controllers)
def test_any_stream_gives_a_legal_trace_and_loses_nothing(data, name, controller):
    part = PARTS[name]()
    address, write, arrival = data.draw(streams(part))
    result = simulate_dram(address, write, arrival, part=part, controller=controller, trace=True)
    counts, n = result.counts, result.commands
    assert counts.reads + counts.writes == len(address)
    assert n["RD"] + n["RDA"] + counts.forwarded_reads + counts.merged_reads == counts.reads
    assert n["WR"] + n["WRA"] + n["MWR"] + counts.merged_writes == counts.writes
    closed = int(counts.bank_commands[..., [COMMANDS.index(name) for name in ("PRE", "PREA", "RDA", "WRA")]].sum())
    assert 0 <= n["ACT"] - closed <= part.organisation.channels * part.organisation.ranks * part.organisation.banks
    assert (result.done_cycle >= result.accept_cycle).all() and (result.accept_cycle >= arrival).all()
    assert (counts.background_cycles.sum(axis=2) == result.end_cycle).all()
    for channel, trace in enumerate(result.command_trace):
        table = from_trace(trace, part=part, end_cycle=result.end_cycle)
        wrong = violations(table, part, controller)
        assert not wrong, wrong[0]
        again = count_commands(table, part=effective_part(part, controller))
        assert np.array_equal(again.bank_commands[0], counts.bank_commands[channel])
        assert np.array_equal(again.rank_commands[0], counts.rank_commands[channel])
        if controller.spacing != "last-clocks":  # by which a bank closes itself some clocks later
            assert np.array_equal(again.background_cycles[0], counts.background_cycles[channel])
        if not controller.shared_pseudo_channels or part.organisation.pseudo_channels == 1:
            ones, rising, _ = command_wires(table, part=part)
            assert np.array_equal(ones, counts.ca_ones[channel]) and np.array_equal(rising, counts.ca_rising[channel])


@settings(max_examples=30, deadline=None)
@given(st.data(), st.sampled_from(sorted(PARTS)), controllers, st.integers(1, 150))
def test_blocks_of_any_size_give_the_same(data, name, controller, block):
    part = PARTS[name]()
    address, write, arrival = data.draw(streams(part))
    whole = simulate_dram(address, write, arrival, part=part, controller=controller)
    engine = DramEngine(part, controller)
    done = np.full(len(address), -1, np.int64)
    parts = [
        engine.feed(address[i : i + block], write[i : i + block], arrival[i : i + block])
        for i in range(0, len(address), block)
    ]
    for completions in (*parts, engine.finish()):
        done[completions.request] = completions.done_cycle
    assert np.array_equal(done, whole.done_cycle)
    result = engine.result(done)
    assert result.commands == whole.commands and result.energy_pj == whole.energy_pj


@pytest.mark.parametrize("preset", ["dramsim3", "ramulator2", "jedec"])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_lose_no_request_that_a_wide_front_end_accepts(preset, block):
    """The last requests of a block wait for those that enter in one clock with them."""
    rng, n = np.random.default_rng(0), 3000
    address, write = rng.integers(0, 1 << 14, n).astype(np.uint64) * 32, rng.random(n) < 0.3
    arrival, controller = np.arange(n) // 5, controller_spec({"preset": preset, "requests_per_clock": 4})
    whole = simulate_dram(address, write, arrival, part="hbm2", controller=controller)
    engine = DramEngine("hbm2", controller)
    accepted = np.full(n, -1, np.int64)
    blocks = [slice(k, k + block) for k in range(0, n, block)]
    for completions in (*(engine.feed(address[b], write[b], arrival[b]) for b in blocks), engine.finish()):
        accepted[completions.request] = completions.accept_cycle
    assert np.array_equal(accepted, whole.accept_cycle)


@settings(max_examples=60, deadline=None)
@given(st.data(), controllers)
def test_a_read_never_overtakes_a_write_to_its_burst(data, controller):
    """Served bursts, forwarded and merged requests together keep the order of each address's reads and writes."""
    part = PARTS["shipped"]()
    address, write, arrival = data.draw(streams(part))
    result = simulate_dram(address, write, arrival, part=part, controller=controller, trace=True)
    assert_bursts_in_order(address, write, result.command_trace[0])


def assert_bursts_in_order(address, write, trace):
    served = {int(r): k for k, r in enumerate(trace["request"]) if r >= 0}
    for where in np.unique(address):
        mine = [i for i in np.flatnonzero(address == where).tolist() if i in served]
        for before, after in pairwise(mine):
            if write[before] or write[after]:
                assert served[before] < served[after]


# ---- one cycle early is refused, on time is accepted ----

BANK_B, OTHER_GROUP, OTHER_RANK = (0, 0, 1), (0, 1, 0), (1, 0, 0)  # rank, group, bank; A is (0, 0, 0)
A = (0, 0, 0)
BURST = 8
SEQUENCES = {  # rule: (commands before, (the command in question, place)); the clocks are those after the last before
    "tRCD": ([("ACT", A)], ("RD", A), lambda t: t.tRCD),
    "tRCD_write": ([("ACT", A)], ("WR", A), lambda t: t.tRCD_write),
    "tRAS": ([("ACT", A)], ("PRE", A), lambda t: t.tRAS),
    "tRP": ([("ACT", A), (110, "PRE", A)], ("ACT", A), lambda t: t.tRP),
    "tRC": ([("ACT", A), (70, "PRE", A)], ("ACT", A), lambda t: t.tRC - 70),
    "tRPab": ([("ACT", A), (110, "PREA", A)], ("ACT", A), lambda t: t.tRPab),
    "tRTP": ([("ACT", A), (70, "RD", A)], ("PRE", A), lambda t: t.tRTP),
    "tWR": ([("ACT", A), (70, "WR", A)], ("PRE", A), lambda t: t.WL + BURST + t.tWR),
    "tRRD": ([("ACT", A)], ("ACT", OTHER_GROUP), lambda t: t.tRRD),
    "tRRD_L": ([("ACT", A)], ("ACT", BANK_B), lambda t: t.tRRD_L),
    "tCCD": ([("ACT", A), (30, "ACT", OTHER_GROUP), (60, "RD", A)], ("RD", OTHER_GROUP), lambda t: t.tCCD),
    "tCCD_L": ([("ACT", A), (60, "RD", A)], ("RD", A), lambda t: t.tCCD_L),
    "tWTR": ([("ACT", A), (30, "ACT", OTHER_GROUP), (60, "WR", A)], ("RD", OTHER_GROUP), lambda t: 22 + t.tWTR),
    "tWTR_L": ([("ACT", A), (60, "WR", A)], ("RD", A), lambda t: 22 + t.tWTR_L),
    "tRTW": ([("ACT", A), (60, "RD", A)], ("WR", A), lambda t: t.RL + BURST - t.WL + t.turnaround),
    "tPPD": ([("ACT", A), (30, "ACT", BANK_B), (200, "PRE", A)], ("PRE", BANK_B), lambda t: t.tPPD),
    "tRFCab": ([("REFab", A)], ("ACT", A), lambda t: t.tRFCab),
    "tRFCpb": ([("REFpb", A)], ("ACT", A), lambda t: t.tRFCpb),
    "tREFpb_gap": ([("REFpb", A)], ("REFpb", BANK_B), lambda t: t.tREFpb_gap),
    "tRRD_refresh": ([("REFpb", A)], ("ACT", BANK_B), lambda t: t.tRRD),
    "tRTRS": ([("ACT", A), (1, "ACT", OTHER_RANK), (60, "RD", A)], ("RD", OTHER_RANK), lambda t: BURST + t.tRTRS),
    "tXP": ([("PDE", A), (50, "PDX", A)], ("ACT", A), lambda t: t.tXP),
    "tCKE": ([("PDE", A)], ("PDX", A), lambda t: t.tCKE),
    "read_to_PDE": ([("ACT", A), (90, "RDA", A)], ("PDE", A), lambda t: t.RL + BURST + 1),
    "write_to_PDE": ([("ACT", A), (90, "WR", A)], ("PDE", A), lambda t: t.WL + BURST + t.tWR),
    "command_to_PDE": ([("ACT", A)], ("PDE", A), lambda t: 4),
    "tFAW": (
        [("ACT", A), (24, "ACT", BANK_B), (48, "ACT", (0, 0, 2)), (72, "ACT", (0, 0, 3))],
        ("ACT", OTHER_GROUP),
        lambda t: t.tFAW - 72,
    ),
}
# tRC and tFAW must bind for themselves, not behind tRP, tRAS or tRRD
BOUNDARY_PART = {"tRC": 130, "tFAW": 120, "tREFpb_gap": 300, "tRCD_write": 35, "tRTP": 20}


def boundary_part():
    timing = {"tCCD_L": 12, "tRRD_L": 24, "tWTR_L": 30, "tRTRS": 3, **BOUNDARY_PART}
    return variant(
        timing,
        {"ranks": 2, "bank_groups": 2, "banks_per_group": 4},
        "offset:5 column:2 bank_group:1 rank:1 column:4 bank:2 row:16",
    )


def rows_of(before, last, gap):
    rows, at = [], 0
    for step in before:
        at, name, place = step if len(step) == 3 else (0, *step)
        rows.append((at, name, place))
    rows.append((at + gap, *last))
    keys = ("rank", "bank_group", "bank")
    return [{"timestamp_cycles": c, "command": n, **dict(zip(keys, p, strict=True))} for c, n, p in rows]


@pytest.mark.parametrize("rule", sorted(SEQUENCES))
def test_checker_refuses_one_cycle_early_and_accepts_on_time(rule):
    part = boundary_part()
    before, last, clocks = SEQUENCES[rule]
    gap = clocks(part.timing)
    on_time = check_trace(rows_of(before, last, gap), part=part, refresh="none")
    early = check_trace(rows_of(before, last, gap - 1), part=part, refresh="none")
    assert [v.rule for v in on_time] == []
    assert rule in [v.rule for v in early]


@pytest.mark.parametrize(
    "rows, rule",
    [
        ([("RD", A)], "state"),
        ([("ACT", A), (200, "ACT", A)], "state"),
        ([("ACT", A), (200, "REFab", A)], "state"),
        ([("PDE", A), (200, "ACT", A)], "power-down"),
        ([("PDX", A)], "power-down"),
        ([("ACT", A), (0, "ACT", OTHER_RANK)], "command wires"),
        ([("ACT", A), (30, "ACT", OTHER_RANK), (80, "RD", A), (81, "RD", OTHER_RANK)], "data wires"),
        ([("ACT", A), (500_000, "PRE", A)], "tREFI"),
    ],
)
def test_checker_refuses_wrong_states(rows, rule):
    *before, last = rows
    at = last[0] if len(last) == 3 else 0
    start = before[-1][0] if before and len(before[-1]) == 3 else 0
    found = check_trace(rows_of(before, last[-2:], at - start), part=boundary_part())
    assert rule in [v.rule for v in found]


# Scenarios whose shortest spacing in the engine must be the constraint itself: raised, it is obeyed, and no more.
@pytest.mark.parametrize(
    "name, raised, before, then, write",
    [
        ("tRCD", 60, ("ACT",), ("RD",), 0), ("tRCD_write", 60, ("ACT",), ("WR",), 1),
        ("tRAS", 90, ("ACT",), ("PRE",), 0),
        ("tRP", 60, ("PRE",), ("ACT",), 0), ("tRC", 250, ("ACT",), ("ACT",), 0), ("tRTP", 60, ("RD",), ("PRE",), 0),
        ("tRRD", 40, ("ACT",), ("ACT",), 0), ("tCCD", 13, ("RD",), ("RD",), 0),
        ("tCCD", 13, ("WR",), ("WR",), 1),
        ("tPPD", 30, ("PRE",), ("PRE",), 0), ("tRFCab", 800, ("REFab",), ("ACT",), 0),
    ],
)  # fmt: skip
def test_engine_issues_on_time_and_not_earlier(name, raised, before, then, write):
    more = {"tRC": raised + 70} if name in ("tRAS", "tRP") else {}
    more |= {"tFAW": 4 * raised} if name == "tRRD" else {}
    more |= {"tRPab": 60} if name == "tRP" else {}
    more |= {"tRAS": 80} if name in ("tRCD", "tRCD_write") else {}
    more |= {"tRC": 109} if name in ("tRCD", "tRCD_write") else {}
    part = variant({name: raised, **more})
    rng = np.random.default_rng(0)
    n = 3000
    address = rng.integers(0, 2**12, n).astype(np.uint64) * np.uint64(32 * 8)
    result = simulate_dram(address, np.full(n, bool(write)), np.zeros(n, np.int64), part=part, trace=True)
    trace = result.command_trace[0]
    assert not check_trace(trace, part=part)
    same_bank = name not in ("tRRD", "tCCD", "tPPD", "tRFCab")
    last, gaps = {}, []
    for row in trace:
        command, bank = COMMANDS[row["command"]], int(row["bank"]) if same_bank else 0
        if command in then and bank in last:
            gaps.append(int(row["cycle"]) - last[bank])
        if command in before:
            for b in range(8) if command == "REFab" else [bank]:
                last[b] = int(row["cycle"])
    assert min(gaps) == raised


def test_four_activates_in_a_window():
    part = variant({"tFAW": 150})
    address = np.arange(200, dtype=np.uint64) % 8 * 2048 + np.arange(200, dtype=np.uint64) // 8 * 2**14
    trace = simulate_dram(address, np.zeros(200, bool), np.zeros(200, int), part=part, trace=True).command_trace[0]
    acts = trace["cycle"][trace["command"] == COMMANDS.index("ACT")]
    assert min(acts[4:] - acts[:-4]) == 150


@pytest.mark.parametrize("dbi", [False, True])
def test_unloaded_latencies_are_the_parts_sums_and_the_controllers(dbi):
    for part in (PARTS["shipped"](), variant({"RL": 20, "tRCD": 25, "tRP": 31, "tRC": 99}), PARTS["grouped"]()):
        t, latency = part.timing, 5
        controller = ControllerSpec(read_dbi=dbi, controller_latency_cycles=latency)
        row = 1 << (part.organisation.capacity_bytes.bit_length() - 3)
        address = np.array([0, 32, row], np.uint64)
        result = simulate_dram(address, [0, 0, 0], [0, 1000, 2000], part=part, controller=controller)
        hit = latency + (t.RL_dbi if dbi else t.RL) + part.organisation.burst_cycles
        found = (result.done_cycle - result.accept_cycle).tolist()
        assert found == [hit + t.tRCD, hit, hit + t.tRP + t.tRCD]


def test_shipped_part_has_the_references_unloaded_latencies():
    part = PARTS["shipped"]()
    result = simulate_dram([0, 32, 1 << 20], [0, 0, 0], [0, 1000, 2000], part=part)
    assert (result.done_cycle - result.accept_cycle).tolist() == [67, 38, 96]


@pytest.mark.parametrize("replaced_at", [40, 50])
def test_a_masked_write_that_a_whole_one_replaces_no_longer_waits_for_masked_writes(replaced_at):
    masked = {"masked_writes": True, "write_high": 1, "posted_writes": False, "refresh": "none"}
    write = [2, 2, 1]  # the second may follow the first, at 30, after tCCDMW, 32 clocks; a whole write after 8
    result = simulate_dram([0, 32, 32], write, [0, 0, replaced_at], part="lpddr4-3200", controller=masked)
    assert result.done_cycle.tolist() == [30, replaced_at + 2, replaced_at]


def test_policies_do_what_they_are_for():
    rng = np.random.default_rng(1)
    n, part = 3000, PARTS["shipped"]()
    near = rng.integers(0, 64, n).astype(np.uint64) * 32 + rng.integers(0, 2, n).astype(np.uint64) * 2**14
    far = rng.integers(0, 2**25, n).astype(np.uint64) * 32
    zeros, spaced = np.zeros(n, bool), np.arange(n) * 200

    def run(address, arrival, **controller):
        return simulate_dram(address, zeros, arrival, part=part, controller=controller)

    at_once = np.zeros(n, int)
    assert run(near, at_once).total_cycles < 0.5 * run(near, at_once, scheduler="fcfs").total_cycles
    assert (
        run(far, spaced, page_policy="closed").mean_read_latency_cycles
        < 0.8 * run(far, spaced).mean_read_latency_cycles
    )
    adaptive = run(far, spaced, page_policy="adaptive", page_idle_cycles=50)
    assert adaptive.mean_read_latency_cycles < 0.85 * run(far, spaced).mean_read_latency_cycles
    down = run(far, spaced, page_policy="closed", power_down_cycles=20)
    assert down.commands["PDE"] > n // 2 and down.core_energy_pj < 0.85 * run(far, spaced).core_energy_pj
    acts = [run(near, at_once, hit_cap=cap, hit_cap_strict=True).commands["ACT"] for cap in (1, 4, 100)]
    assert acts[0] > 2 * acts[1] > 2 * acts[2]


def test_strictly_closed_pages_activate_for_every_burst():
    """`closed` keeps a row for the hits it knows of; `closed-strict` for none."""
    address = np.arange(64, dtype=np.uint64) * np.uint64(32)
    runs = {
        policy: simulate_dram(
            address, np.zeros(64, bool), np.zeros(64, int), part="lpddr4-3200", controller={"page_policy": policy}
        )
        for policy in ("closed", "closed-strict")
    }
    assert runs["closed"].commands["ACT"] < 20
    assert runs["closed-strict"].commands["ACT"] == runs["closed-strict"].commands["RDA"] == 64


def test_pseudo_channels_share_command_wires_where_they_are_told_to():
    """Two channels' requests at once: a clock apart on common wires, and both listed as channels."""
    part = PARTS["pseudo_channels"]()
    other = 1 << next(f.source for f in address_map(part, None).fields if f.name == "channel")
    address = np.array([0, other], np.uint64)
    for shared in (False, True):
        controller = {"shared_pseudo_channels": shared, "requests_per_clock": 2}
        run = simulate_dram(address, [0, 0], [0, 0], part=part, controller=controller, trace=True)
        assert [len(commands) for commands in run.command_trace] == [2, 2, 0, 0]
        assert run.counts.bank_commands.shape[0] == 4
        assert (run.done_cycle[0] == run.done_cycle[1]) != shared


def test_per_bank_refresh_keeps_other_banks_working():
    rng = np.random.default_rng(2)
    n, part = 5000, PARTS["shipped"]()
    address = rng.integers(0, 2**25, n).astype(np.uint64) * 32
    runs = {
        mode: simulate_dram(address, np.zeros(n, bool), np.zeros(n, int), part=part, controller={"refresh": mode})
        for mode in ("all-bank", "per-bank", "none")
    }
    assert runs["none"].total_cycles < runs["per-bank"].total_cycles < runs["all-bank"].total_cycles
    intervals = runs["per-bank"].end_cycle / part.timing.tREFI
    assert abs(runs["per-bank"].commands["REFpb"] - 8 * intervals) <= 1


def test_a_postponed_refresh_goes_as_soon_as_nothing_is_queued():
    """It falls due while a read is queued; it waited for the next clock at which something else was to be done."""
    part = PARTS["shipped"]()
    t = part.timing
    engine = DramEngine(part, ControllerSpec(refresh_postpone=8), trace=True)
    when = np.array([t.tREFI - 3, 4 * t.tREFI])
    outs = [engine.feed(np.zeros(2, np.uint64), np.zeros(2, np.uint8), when), engine.finish()]
    rows = np.concatenate([out.commands[0] for out in outs])
    first = {name: rows["cycle"][rows["command"] == COMMANDS.index(name)][0] for name in ("ACT", "RD", "PRE", "REFab")}
    assert first["ACT"] < t.tREFI < first["RD"]
    assert first["PRE"] == max(first["RD"] + t.tRTP, first["ACT"] + t.tRAS)
    assert first["REFab"] == first["PRE"] + t.tRP


def test_fields_of_the_controller_spec_reach_the_engine():
    for field in dataclasses.fields(ControllerSpec):
        assert field.name in ControllerSpec.__doc__


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(PARTS)), controllers)
def test_idle_stretches_are_counted_as_if_they_were_played(data, name, controller):
    """Long pauses, before the first request too: without a trace the refreshes of a pause are not played one by one."""
    part = PARTS[name]()
    address, write, arrival = data.draw(streams(part))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pauses = (rng.random(len(arrival)) < 0.02) * rng.integers(0, 40 * part.timing.tREFI, len(arrival))
    pauses[:1] = rng.integers(0, 60 * part.timing.tREFI)
    arrival = arrival + np.cumsum(pauses)
    counted = simulate_dram(address, write, arrival, part=part, controller=controller)
    played = simulate_dram(address, write, arrival, part=part, controller=controller, trace=True)
    assert np.array_equal(counted.done_cycle, played.done_cycle)
    assert counted.commands == played.commands and counted.commands_at_completion == played.commands_at_completion
    for field in ("bank_commands", "rank_commands", "background_cycles", "ca_ones", "ca_rising"):
        assert np.array_equal(getattr(counted.counts, field), getattr(played.counts, field)), field
    for trace in played.command_trace:
        assert not violations(from_trace(trace, part=part, end_cycle=played.end_cycle), part, controller)


@pytest.mark.parametrize("first", [10**6, 10**9, 2**60 - 20_000])
@pytest.mark.parametrize("channels", [1, 8])
def test_a_first_request_that_comes_late_is_unloaded(first, channels):
    """Refresh runs from clock 0; 38, 67 and 96 clocks are the unloaded latencies."""
    first += -first % 6246 + 1000  # well after a refresh
    part = with_channels(channels)
    row = 1 << (5 + 6 + 3 + channels.bit_length() - 1)
    result = simulate_dram([0, 32 * channels, row], [0, 0, 0], [first, first + 200, first + 400], part=part)
    assert (result.done_cycle - result.accept_cycle).tolist() == [67, 38, 96]
    assert result.commands["REFab"] == channels * (result.end_cycle // 6246)


def test_channels_without_work_are_refreshed_as_long_as_they_are_charged():
    """Background is charged to all channels up to the end, so all of them refresh up to there."""
    result = simulate_dram(np.arange(4000) * 32 * 8, np.zeros(4000, bool), np.arange(4000) * 3, part=with_channels(8))
    refreshes = result.counts.rank_commands[:, 0, COMMANDS.index("REFab")]
    assert refreshes.tolist() == [result.end_cycle // 6246] * 8


@pytest.mark.parametrize("writes", [1, 8])
def test_writes_that_are_done_by_their_command_are_all_done(writes):
    # as many as wait at an idle bus, with nothing behind them that would fill the queue
    controller = ControllerSpec(posted_writes=False, write_idle=8)
    memory = DramEngine("lpddr4-3200", controller, trace=False).memory
    bursts = np.arange(writes, dtype=np.uint64) << np.uint64(20)
    memory.feed(0, np.arange(writes), bursts, np.ones(writes, np.uint8), np.zeros(writes, np.int64))
    memory.close(0)
    assert memory.run(100_000) == DONE
    ids, _, done = memory.take_done()[:3]
    assert sorted(ids) == list(range(writes)) and max(done) < 10_000


@pytest.mark.parametrize("controller", [ControllerSpec(preset="ramulator2"), ControllerSpec(posted_writes=False)])
def test_a_write_is_done_when_a_later_one_replaces_it(controller):
    result = simulate_dram([0, 0, 64, 0], [1] * 4, [0, 1, 2, 3], part="lpddr4-3200", controller=controller)
    assert result.accept_cycle.tolist() == [0, 1, 2, 3]
    first, second, other, last = result.done_cycle
    assert 1 <= first < second < min(other, last) and second == first + 2


@pytest.mark.parametrize("refresh", ["all-bank", "none"])
@pytest.mark.parametrize("apart", [64, 1 << 16])
@pytest.mark.parametrize("writes", [26, 200])
def test_a_drain_of_writes_that_all_wait_for_reads_lets_them_go(refresh, apart, writes):
    # each burst is read, then written, so a full write queue waits for reads that wait for its drain
    controller = ControllerSpec(preset="ramulator2", refresh=refresh)
    address = np.arange(200) * apart
    address, write = np.append(address, address[-writes:]), np.repeat((0, 1), (200, writes))
    result = simulate_dram(address, write, np.zeros(len(write), int), part="lpddr4-3200", controller=controller)
    assert result.commands["RD"] == 200 and result.commands["WR"] == writes
    assert result.total_cycles < (200 + writes) * 140  # a row opened for each: tRC, turnaround


def test_writes_behind_one_that_waits_for_a_read_let_it_go():
    # the first write waits for a read of the open row; those to other rows of the bank keep that row open for it, and
    # no refresh closes it
    controller = ControllerSpec(preset="ramulator2", refresh="none", write_high=8, write_low=6)
    address, write = [0, 64, 64, *(k << 16 for k in range(1, 9))], [0, 0, *[1] * 9]
    result = simulate_dram(address, write, [0] * 11, part="lpddr4-3200", controller=controller)
    assert result.commands["RD"] == 2 and result.commands["WR"] == 9


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 12), st.sampled_from((1, 4, 32)), st.sampled_from(("all-bank", "none")),
    st.booleans(), st.data(),
)  # fmt: skip
def test_pooled_queues_serve_every_stream(seed, bursts, entries, refresh, posted, data):
    """Few bursts, in two rows of two banks, read and written again and again."""
    high = data.draw(st.integers(1, entries))
    controller = ControllerSpec(
        queues="pooled", refresh=refresh, posted_writes=posted, read_queue_entries=entries, write_queue_entries=entries,
        write_high=high, write_low=data.draw(st.integers(0, high - 1)),
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 300))
    places = np.array([32 * k + (b << 11) + (r << 14) for k in range(bursts) for b in (0, 1) for r in (0, 1)])
    address, write = rng.choice(places, n), (rng.random(n) < rng.choice((0.2, 0.5, 0.9))).astype(np.uint8)
    result = simulate_dram(address, write, np.zeros(n, int), part="lpddr4-3200", controller=controller, trace=True)
    assert result.commands["RD"] + result.counts.forwarded_reads + result.counts.merged_reads == n - write.sum()
    assert result.commands["WR"] + result.counts.merged_writes == write.sum()
    assert (result.done_cycle >= result.accept_cycle).all()
    assert_bursts_in_order(address, write, result.command_trace[0])


def test_a_refused_request_holds_up_all_behind_it():
    """A hundred requests for one bank of channel 0, then one for channel 1, which waits if they enter in order."""
    rows = np.arange(100) * (1 << 15)
    address = np.append(rows, 32).astype(np.uint64)
    both = [
        simulate_dram(
            address, np.zeros(101, bool), np.zeros(101, int), part=with_channels(2), controller={"front_end": kind}
        )
        for kind in ("in-order", "independent")
    ]
    assert both[0].accept_cycle[-1] > both[0].accept_cycle[-2] > 3000 and both[1].accept_cycle[-1] == 0


@settings(max_examples=30)
@given(seed=st.integers(0, 999), spread=st.sampled_from((1, 2, 40)), cuts=st.lists(st.integers(0, 300), max_size=4))
def test_independent_channels_may_be_fed_in_blocks(seed, spread, cuts):
    """However far some channels are ahead of others when a block ends, nothing else happens than in one array."""
    rng = np.random.default_rng(seed)
    part, spec = with_channels(4), {"front_end": "independent"}
    address = (rng.integers(0, 1 << 9, 300) // spread * spread * 32).astype(np.uint64)
    write, arrival = rng.random(300) < 0.3, np.cumsum(rng.integers(0, 9, 300))
    whole = simulate_dram(address, write, arrival, part=part, controller=spec)
    engine, done = DramEngine(part, spec), np.full(300, -1)
    edges = [0, *sorted(cuts), 300]
    blocks = [engine.feed(address[start:end], write[start:end], arrival[start:end]) for start, end in pairwise(edges)]
    for block in (*blocks, engine.finish()):
        done[block.request] = block.done_cycle
    np.testing.assert_array_equal(done, whole.done_cycle)
    for name, counted in vars(engine.result(done).counts).items():
        np.testing.assert_array_equal(counted, getattr(whole.counts, name), name)


def test_a_command_trace_of_endless_refreshes_is_refused():
    with pytest.raises(InputError, match="too many for a command trace"):
        simulate_dram([0], [0], [2**50], part="lpddr4-3200", trace=True)


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(-1, 6)), max_size=12),
    after=st.integers(0, 2),
)
def test_the_first_bad_request_is_found(rows, after):
    address, write, arrival = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    bad = [
        a % 2 != 0 or a >= 8 or w > 2 or at < before or at > 5
        for a, w, at, before in zip(address, write, arrival, [after, *arrival], strict=False)
    ]
    found = first_bad_request(
        np.array(address, np.uint64), np.array(write, np.uint8), np.array(arrival, np.int64), 2, 8, after, 5
    )
    assert found == (bad.index(True) if any(bad) else -1)


def test_a_request_at_fault_is_named_by_its_number_in_the_whole_stream():
    n = DramEngine.BLOCK + 3
    address, write, arrival = np.zeros(n, np.uint64), np.zeros(n, np.uint8), np.full(n, 7, np.int64)
    arrival[-1] = -1
    with pytest.raises(InputError, match=f"request {n - 1}: arrival_cycle -1 is out of range.*negative"):
        simulate_dram(address, write, arrival, part="lpddr4-3200")
