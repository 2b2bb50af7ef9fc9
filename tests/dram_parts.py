"""Parts derived from the shipped LPDDR4-3200 for tests: other organisations and constants; reads of LPDDR6."""

import json

import numpy as np

from hwmodel.dram.engine import load_part
from traces.trace.chunks import Chunk, Memory, Trace


def made(value, source="test"):
    return {"value": value, "source": source}


def variant(timing=None, organisation=None, address_map=None, base="lpddr4-3200"):
    data = {"extends": base, "name": "variant", "temperature": {"tREFI_factor": made(0.9)}}
    if timing:
        data["timing"] = {f"{name}_cycles": made(value) for name, value in timing.items()}
    if organisation:
        data["organisation"] = {name: made(value) for name, value in organisation.items()}
    if address_map:
        data["address_map"] = made(address_map)
    return load_part(data)


def of_reference_runs(reference):
    """LPDDR4-3200 with the currents of the DRAMsim3 and DRAMPower runs: what a die of two channels draws, on one."""
    given = json.loads((reference / "dram" / "drampower_parameters_A.json").read_text())
    rails = {rail: given[f"idd_{rail}_A"] for rail in ("vdd1", "vdd2")}
    currents = {
        f"{name}_mA": {**{rail: 1e3 * amperes[name] for rail, amperes in rails.items()}, "source": "reference"}
        for name in rails["vdd1"]
    }
    return load_part({"extends": "lpddr4-3200", "name": "reference", "currents": currents})


def shipped():
    return load_part("lpddr4-3200")


def grouped():
    """Two ranks of two bank groups, with their own spacings inside a group."""
    return variant(
        {"tCCD_L": 12, "tRRD_L": 24, "tWTR_L": 30, "tRTRS": 3},
        {"ranks": 2, "bank_groups": 2, "banks_per_group": 4},
        "offset:5 column:2 bank_group:1 rank:1 column:4 bank:2 row:16",
    )


def with_channels(channels):
    """As many channels as asked for, bursts going to them in turn."""
    field = f"channel:{channels.bit_length() - 1} " if channels > 1 else ""
    return variant({}, {"channels": channels}, f"offset:5 {field}column:6 bank:3 row:16")


def two_channels():
    return with_channels(2)


def quick_refresh():
    """A refresh every 700 clocks, so that short runs see many."""
    return variant({"tREFI": 700, "tRFCab": 200, "tRFCpb": 40})


def two_command_buses():
    return variant({"tRRD": 2, "tFAW": 8, "tPPD": 0}, {"command_buses": 2})


def pseudo_channels():
    """Two channels of two ranks and two pseudo-channels each, with two command buses."""
    organisation = {
        "channels": 4, "pseudo_channels": 2, "ranks": 2, "bank_groups": 2, "banks_per_group": 2, "command_buses": 2,
    }  # fmt: skip
    timing = {"tRRD": 2, "tRRD_L": 6, "tFAW": 20, "tPPD": 0, "tCCD_L": 12, "tRTRS": 3, "tREFI": 1501}
    return variant(timing, organisation, "offset:5 channel:1 column:6 rank:1 channel:1 bank_group:1 bank:1 row:16")


def bank_pairs():
    """A per-bank refresh takes two banks of different groups; command wires rest at 1."""
    organisation = {"bank_groups": 2, "banks_per_group": 4, "refresh_banks": 2}
    data = {
        "extends": "lpddr4-3200",
        "name": "pairs",
        "temperature": {"tREFI_factor": made(0.9)},
        "organisation": {name: made(value) for name, value in organisation.items()},
        "timing": {f"{name}_cycles": made(value) for name, value in (("tREFI", 2000), ("tRFCpb", 90), ("tCCD_L", 12))},
        "interface": {"wires": {"ca": {"idle_level": made(1)}}},
        "address_map": made("offset:5 bank_group:1 column:6 bank:2 row:16"),
    }
    return load_part(data)


def busy_rules():
    """All that the preset jedec asks for, in small numbers."""
    timing = {"tREFI": 2500, "tRFCab": 200, "RAAIMT": 3, "tRFM": 70, "tXSR": 210, "tRFCpb": 40}
    data = {
        "extends": "lpddr4-3200",
        "name": "busy",
        "temperature": {"tREFI_factor": made(0.9)},
        "timing": {f"{name}_cycles": made(value) for name, value in timing.items()},
    }
    return load_part(data)


def split_activates():
    """LPDDR5 with ACT-2 as a command of its own, tRCD from there, and a data clock that stops."""
    return load_part("lpddr5-6400+wck-sync+two-act-late")


MADE = (
    busy_rules,
    split_activates,
    shipped,
    grouped,
    pseudo_channels,
    two_channels,
    quick_refresh,
    two_command_buses,
    bank_pairs,
)
PARTS = {part.__name__: part for part in MADE}


def one_channel_reads(data):
    """Return reads of touching bursts of one LPDDR6 sub-channel, with their bytes: uint8[n, 32]."""
    n = len(data)
    image = np.zeros(64 * n, np.uint8)
    image.reshape(n, 2, 32)[:, 0] = data
    chunk = Chunk(
        np.arange(n, dtype=np.uint64) * np.uint64(64), np.full(n, 32, np.uint8), np.zeros(n, np.uint8),
        np.zeros(n, np.uint8), np.arange(n + 1) * 32, data.reshape(-1),
    )  # fmt: skip
    return Trace.from_chunks([chunk], Memory(0, 64 * n, image))
