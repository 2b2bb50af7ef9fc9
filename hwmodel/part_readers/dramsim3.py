"""DRAMsim3: `.ini` configurations (dram_structure, timing, power, system).

Times are clocks; what the file leaves out has the tool's own default. Its one supply rail becomes the core rail of the
base part, the others draw nothing. Columns are the tool's: of a burst in GDDR, of half a burst in HBM.
"""

from __future__ import annotations

from typing import Any

from hwmodel.part_readers.reader import CORE, PART_READERS, NumberSection, PartReader, Specification
from traces.base.document import Document

STANDARDS = {"HBM": "HBM1"}  # as we call them
BEATS_PER_CLOCK = {"GDDR5": 4, "GDDR5X": 8, "GDDR6": 16}
TIMING = {  # ours: theirs and the tool's default
    "tRP": ("tRP", 10), "tRAS": ("tRAS", 24), "tRRD": ("tRRD_S", 4), "tRRD_L": ("tRRD_L", 4), "tFAW": ("tFAW", 50),
    "tCCD": ("tCCD_S", 4), "tCCD_L": ("tCCD_L", 6), "tRTP": ("tRTP", 5), "tWR": ("tWR", 10), "tWTR": ("tWTR_S", 5),
    "tWTR_L": ("tWTR_L", 5), "tPPD": ("tPPD", 0), "tRFCab": ("tRFC", 74), "tREFI": ("tREFI", 7800),
    "tRTRS": ("tRTRS", 2), "tCKE": ("tCKE", 6), "tXP": ("tXP", 8), "tXSR": ("tXS", 432),
}  # fmt: skip
CURRENTS = {
    "IDD0": 48, "IDD2P": 25, "IDD2N": 34, "IDD3P": 37, "IDD3N": 43, "IDD4W": 123, "IDD4R": 135, "IDD5AB": 250,
}  # fmt: skip
OPENING = {False: (("tRCD", 10), ("tRCD", 10)), True: (("tRCDRD", 24), ("tRCDWR", 20))}  # reads, writes
FIELDS = {"ro": "row", "ch": "channel", "ra": "rank", "bg": "bank_group", "ba": "bank", "co": "column"}


def _recognises(data: Any) -> bool:
    return isinstance(data, dict) and isinstance(data.get("dram_structure"), dict)


def _read(document: Document) -> Specification | None:
    sizes, times, system = (NumberSection(document, name) for name in ("dram_structure", "timing", "system"))
    protocol = sizes.text("protocol")
    wide, stacked = protocol in BEATS_PER_CLOCK, protocol.startswith("HBM")
    groups, banks = sizes.whole("bankgroups", default=2), sizes.whole("banks_per_group", default=2)
    rows, columns = sizes.whole("rows", default=1 << 16), sizes.whole("columns", default=1 << 10)
    width, beats = sizes.whole("device_width", default=8), sizes.whole("BL", default=8)
    megabytes, channels = system.whole("channel_size", default=1024), system.whole("channels", default=1)
    bus = system.whole("bus_width", default=64)
    clock = times.number("tCK", whole=False)
    timing = {ours: times.whole(theirs, default=usual, least=0) for ours, (theirs, usual) in TIMING.items()}
    added = times.whole("AL", default=0, least=0)
    latency, writing = (times.whole(name, default=12, least=0) for name in ("CL", "CWL"))
    opening = [times.whole(name, default=usual) for name, usual in OPENING[wide or stacked]]
    if document.problems or not (groups and banks and rows and columns and width and beats and megabytes and channels):
        return None
    assert bus and clock is not None and added is not None and latency is not None and writing is not None
    if clock == 0 or bus % width:
        if clock == 0:
            document.complain(("timing", "tCK"), "must be above 0")
        else:
            document.complain(("system", "bus_width"), f"{bus} is not a multiple of device_width {width}")
        return None
    if sizes.taken("bankgroup_enable") is False:
        groups, banks = 1, groups * banks
    columns *= beats if wide else 2 if stacked else 1
    per_clock = BEATS_PER_CLOCK.get(protocol, 2)
    of_rank = columns * width // 8 * (rows // 1024) // 1024 * groups * banks * (bus // width)  # MiB, as the tool counts
    organisation = {
        "channels": channels, "ranks": max(megabytes // max(of_rank, 1), 1), "bank_groups": groups,
        "banks_per_group": banks, "rows": rows, "columns": columns, "device_dq_bits": width,
        "devices_per_rank": bus // width, "burst_beats": beats, "beats_per_clock": per_clock, "column_step": 0,
        "refresh_banks": 1, "command_buses": 1 + (stacked and sizes.taken("hbm_dual_cmd") is not False),
    }  # fmt: skip
    clocks = {name: value for name, value in timing.items() if value is not None}
    for name in ("tCCD", "tCCD_L"):
        clocks[name] = max(clocks[name], beats // per_clock)
    reading, storing = opening
    clocks |= {
        "RL": added + latency, "WL": added + writing, "tRCD": reading or 0, "tRCD_write": storing or 0,
        "tRC": clocks["tRAS"] + clocks["tRP"], "tRPab": clocks["tRP"], "turnaround": clocks["tRTRS"],
    }  # fmt: skip
    if per_bank := times.whole("tRFCb", default=0, least=0):
        clocks["tRFCpb"] = per_bank
    specification = Specification(f"{protocol}-{1e3 * per_clock / clock:.0f}", STANDARDS.get(protocol, protocol),
                                  clock, organisation, clocks)  # fmt: skip
    specification.order = _order(document, system)
    _currents(document, specification)
    specification.unused = sorted((sizes.left | times.left) - {"bankgroup_enable", "hbm_dual_cmd", "num_dies"})
    return None if document.problems else specification


def _order(document: Document, system: NumberSection) -> tuple[str, ...]:
    text = str(system.taken("address_mapping") or "chrobabgraco")
    pairs = [text[k : k + 2] for k in range(0, len(text), 2)]
    if sorted(pairs) != sorted(FIELDS):
        document.complain(("system", "address_mapping"), f"must order ch ra bg ba ro co, not {text!r}")
        return ()
    return tuple(FIELDS[pair] for pair in reversed(pairs))


def _currents(document: Document, spec: Specification) -> None:
    """Take the file's currents; without a power section there are none."""
    if "power" not in document.data:
        return
    power = NumberSection(document, "power")
    volts = power.number("VDD", required=False, whole=False)
    for ours, usual in {**CURRENTS, "IDD5PB": None, "IDD6": None}.items():
        value = power.number("IDD6x" if ours == "IDD6" else ours, required=False, whole=False)
        milliamperes = usual if value is None else value
        if milliamperes is not None:
            spec.currents[ours] = {CORE: milliamperes}
    spec.volts = {CORE: 1.2 if volts is None else volts}


PART_READERS.register("dramsim3", summary="DRAMsim3 configuration (.ini)")(PartReader(_recognises, _read))
