"""The memory controller as a frozen dataclass of policies and queue sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from hwmodel.coding.chain import ChainFacts
from hwmodel.dram.policy import DRAM_SCHEDULERS, PAGE_POLICIES, REFRESH_POLICIES
from hwmodel.parts.part import Part, added_field
from traces.base.arguments import check_fields
from traces.base.checks import whole_number
from traces.base.errors import InputError, did_you_mean, shown, unknown_name

REFRESH_PRECHARGES = ("each", "all")
FRONT_ENDS = ("in-order", "independent")
QUEUES = ("per-bank", "pooled")
SPACINGS = ("jedec", "first-clocks", "last-clocks")
# Named behaviours: what differs from the defaults, which are those of DRAMsim3.
PRESETS: dict[str, dict[str, Any]] = {
    "dramsim3": {},
    # Ramulator 2.1's generic controller, from its published defaults: writes start above 0.8 of the queue and end below
    # 0.2 of it. Its HBM controllers serve two pseudo-channels.
    "ramulator2": {
        "queues": "pooled", "posted_writes": False, "controller_latency_cycles": 1, "refresh_precharge": "all",
        "write_high": 26, "write_low": 6, "spacing": "last-clocks", "command_occupancy": True, "refresh_together": True,
        "shared_pseudo_channels": True,
    },
    # What the JEDEC command tables demand beyond the tools. A row that was hit often enough is given up in any case; a
    # request that waited as long as a refresh may (some 9 tREFI of LPDDR4-3200) goes first.
    "jedec": {
        "command_occupancy": True, "refresh_precharge": "all", "hit_cap_strict": True, "full_timing": True,
        "masked_writes": True, "refresh_postpone": 8, "refresh_pull_in": 8, "refresh_management": True,
        "self_refresh_cycles": 200_000, "age_cap_cycles": 50_000, "spacing": "jedec", "hazard_ends_drain": False,
        "dual_in_turn": False,
    },
}  # fmt: skip
POOLED = {
    "scheduler": "fr-fcfs", "page_policy": "open", "power_down_cycles": 0, "masked_writes": False,
    "refresh_postpone": 0, "refresh_pull_in": 0, "refresh_management": False, "self_refresh_cycles": 0,
    "age_cap_cycles": 0,
}  # fmt: skip
"""What pooled queues are served with."""


@dataclass(frozen=True)
class ControllerSpec:
    """Policies and queues of one channel's controller. The defaults are those of the reference cases.

    scheduler, page_policy, refresh: members of DRAM_SCHEDULERS, PAGE_POLICIES and REFRESH_POLICIES (`policies/`).
    hit_cap: row hits in turn while the oldest request of a bank waits for another row. hit_cap_strict: hits beyond the
    cap are held back; else the row is given up as soon as it may be precharged, and hits that are ready before go on
    (reads every tCCD < tRTP keep it open), as in the reference tool.
    page_idle_cycles: after which the adaptive page policy first closes a row.
    read_queue_entries, write_queue_entries: requests waiting for a place in the `bank_queue_entries` of their bank.
    write_high, write_low: a full-enough write queue (write_high) is drained down to write_low; write_idle: as soon as
    more writes than this wait and no command is queued, they are drained too.
    controller_latency_cycles: clocks a read spends in the controller, one of them before its first command.
    refresh_precharge: before an all-bank refresh, precharge each open bank as soon as it may be (each), or all with one
    command when the last of them may (all, tRPab).
    read_dbi: reads use data bus inversion, which lengthens the read latency to the part's RL_dbi.
    power_down_cycles: a rank without requests for so long is powered down (0: never).
    address_map: bit fields, least significant first; None takes the part's own.
    front_end: in-order (requests enter in order over all channels; one that is refused holds up all behind it) or
    independent (each channel has its own source; only where requests come as one array, as in replay).
    requests_per_clock: accepted over all channels, one per channel. None: of a trace of requests one, as the reference
    tool's front end, of a machine's engine one for each channel.
    queues: per-bank (read and write queue before a queue per bank, served in turn) or pooled (one queue for reads, one
    for writes; of the commands that may go, the oldest request's goes; writes also while no read waits).
    posted_writes: a write is done when accepted; else in the clock of its WR command.
    preset: a named behaviour (PRESETS), whose values stand for every parameter left at its default.
    command_occupancy: a command holds the command wires for its clocks of the part (else for one clock, as in the
    reference tools).
    full_timing: the rules that reference tools leave out: tDQSCK, tRPST and tWPRE between read and write, tDQSS_max
    after writes, tDQSCK in the read latency. masked_writes: requests with is_write 2 are masked writes (tCCDMW).
    refresh_postpone, refresh_pull_in: refreshes (intervals tREFI) that may wait while a rank has requests, and go ahead
    of their time while it has none (after tRFCab without a command). refresh_management: a bank that was activated
    RAAIMT times gets an RFM before its next activate, if the part asks for it. self_refresh_cycles: a rank without
    requests for so long refreshes itself, if the part can (0: never). age_cap_cycles: the oldest request of a bank that
    waited so long goes before all row hits (0: no cap). temperature_c: of the case; parts are derated above a limit.
    hazard_ends_drain: a write that would be drained while a read of its burst is pending ends the drain; else it is
    passed over. spacing: whose distances between commands hold, where they differ (hwmodel.dram.tables.gap_table).
    refresh_together: all ranks fall due for a refresh in the same clock; else they take turns. dual_in_turn: with two
    command buses the banks take turns for both (the second command of a clock is that of the next bank, if it uses the
    other bus); else each bus goes to the next bank that can use it. shared_pseudo_channels: the pseudo-channels of a
    part (`pseudo_channels`) share queues and command wires as one channel, if they have at most 64 banks together; data
    wires and ranks are their own.
    """

    scheduler: str = "fr-fcfs"
    hit_cap: int = 4
    hit_cap_strict: bool = False
    page_policy: str = "open"
    page_idle_cycles: int = 200
    read_queue_entries: int = 32
    write_queue_entries: int = 32
    bank_queue_entries: int = 8
    write_high: int = 32
    write_low: int = 0
    write_idle: int = 8
    controller_latency_cycles: int = 2
    refresh: str = "all-bank"
    refresh_precharge: str = "each"
    read_dbi: bool = False
    power_down_cycles: int = 0
    address_map: str | None = None
    command_occupancy: bool = False
    front_end: str = added_field("in-order")
    requests_per_clock: int | None = added_field(None)
    queues: str = added_field("per-bank")
    posted_writes: bool = added_field(True)
    preset: str = added_field("dramsim3")
    full_timing: bool = added_field(False)
    masked_writes: bool = added_field(False)
    refresh_postpone: int = added_field(0)
    refresh_pull_in: int = added_field(0)
    refresh_management: bool = added_field(False)
    self_refresh_cycles: int = added_field(0)
    age_cap_cycles: int = added_field(0)
    temperature_c: int = added_field(25)
    hazard_ends_drain: bool = added_field(True)
    spacing: str = added_field("first-clocks")
    refresh_together: bool = added_field(False)
    dual_in_turn: bool = added_field(True)
    shared_pseudo_channels: bool = added_field(False)

    def __post_init__(self) -> None:
        from cython_ext.dram.engine import SETTINGS

        check_fields(self)
        if self.preset not in PRESETS:
            raise unknown_name("controller preset", self.preset, PRESETS)
        for each in fields(self):
            if each.name in PRESETS[self.preset] and getattr(self, each.name) == each.default:
                object.__setattr__(self, each.name, PRESETS[self.preset][each.name])
        for what, name, known in (
            ("DRAM scheduler", "scheduler", DRAM_SCHEDULERS),
            ("page policy", "page_policy", PAGE_POLICIES),
            ("refresh policy", "refresh", REFRESH_POLICIES),
            ("refresh precharge", "refresh_precharge", REFRESH_PRECHARGES),
            ("front end", "front_end", FRONT_ENDS),
            ("queues", "queues", QUEUES),
            ("spacing", "spacing", SPACINGS),
        ):
            if getattr(self, name) not in known:
                raise unknown_name(what, getattr(self, name), known)
        limits = {
            **SETTINGS,
            "write_high": (1, self.write_queue_entries),
            "write_low": (0, self.write_high - 1),
            "temperature_c": (-40, 125),
        }
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(each.default, int) and not isinstance(each.default, bool):
                whole_number(value, f"controller {each.name}", *limits[each.name])
        if self.requests_per_clock is not None:
            whole_number(self.requests_per_clock, "controller requests_per_clock", 1, 64)
        for name, only in POOLED.items():
            if self.queues == "pooled" and getattr(self, name) != only:
                raise InputError(f"pooled queues are served with {name} {only!r}, not {getattr(self, name)!r}")

    @property
    def engine_settings(self) -> dict[str, int | str]:
        """What the compiled engine does for the policies: values of settings by name, before those of the fields."""
        policies = DRAM_SCHEDULERS[self.scheduler], PAGE_POLICIES[self.page_policy], REFRESH_POLICIES[self.refresh]
        usual: dict[str, int | str] = {"strict_order": 0, "page": "open", "refresh": "all-bank"}
        return usual | {name: value for policy in policies for name, value in policy.item.settings.items()}


_DEFAULT = ControllerSpec()


def controller_spec(controller: ControllerSpec | Mapping[str, Any] | None) -> ControllerSpec:
    """Return a ControllerSpec from itself, from a mapping of its fields, or the default."""
    if controller is None:
        return _DEFAULT
    if isinstance(controller, ControllerSpec):
        return controller
    if not isinstance(controller, Mapping):
        raise InputError(f"a controller is a ControllerSpec or a mapping of its parameters, not {shown(controller)}")
    known = [f.name for f in fields(ControllerSpec)]
    for key in controller:
        if key not in known:
            raise InputError(f"the controller has no parameter {key!r}{did_you_mean(key, known)}")
    return ControllerSpec(**controller)


def effective_part(part: Part, controller: ControllerSpec) -> Part:
    """Return the part whose rules a controller obeys: at its temperature, with the full JEDEC timing if it says so."""
    warm = part.at_temperature(controller.temperature_c)
    if controller.spacing == "last-clocks":  # has no tDQSS
        warm = replace(warm, timing=replace(warm.timing, tDQSS=0))
    return warm.fully_timed() if controller.full_timing else warm


@lru_cache(maxsize=256)
def decoding(controller: ControllerSpec, facts: ChainFacts) -> ControllerSpec:
    """Return a controller that decodes what a chain of encoders sends."""
    if facts.inverts:
        controller = replace(controller, read_dbi=True)
    if facts.latency_cycles:
        latency = controller.controller_latency_cycles + facts.latency_cycles
        controller = replace(controller, controller_latency_cycles=latency)
    return controller


@lru_cache(maxsize=256)
def as_wide(controller: ControllerSpec, channels: int) -> ControllerSpec:
    """Return a controller that takes a request a clock for each channel, unless it says how many."""
    return controller if controller.requests_per_clock else replace(controller, requests_per_clock=channels)
