"""DRAMSys: JSON memory specifications (`memspec` with memarchitecturespec, memtimingspec, mempowerspec).

Times are clocks; newer files give `tCK` in seconds and currents in amperes, older ones `clkMhz` and milliamperes.
"""

from __future__ import annotations

from typing import Any

from hwmodel.part_readers.reader import BASES, PART_READERS, NumberSection, PartReader, Specification
from hwmodel.parts.part_file import load_part
from traces.base.document import Document

TIMING = {
    "RL": ("RL", "CL"), "WL": ("WL",), "tRCD": ("RCD", "RCDRD", "RCD_L"), "tRCD_write": ("RCDWR",),
    "tRP": ("RP", "RPpb"), "tRPab": ("RPab",), "tRAS": ("RAS",), "tRC": ("RC", "RCpb"),
    "tRRD": ("RRD", "RRD_S", "RRDS"),
    "tRRD_L": ("RRD_L", "RRDL"), "tFAW": ("FAW", "FAW_slr"), "tCCD": ("CCD", "CCD_S", "CCDS", "CCD_S_slr"),
    "tCCD_L": ("CCD_L", "CCDL", "CCD_L_slr"), "tCCD_L_WR": ("CCD_L_WR", "CCD_L_WR_slr"), "tWR": ("WR",),
    "tWTR": ("WTR", "WTR_S", "WTRS"), "tWTR_L": ("WTR_L", "WTRL"), "tPPD": ("PPD",),
    "tRFCab": ("RFCab", "RFC1", "RFC", "RFC1_slr"), "tRFCpb": ("RFCpb", "RFCSB", "RFCsb_slr"),
    "tREFI": ("REFI", "REFI1"), "tXP": ("XP",), "tCKE": ("CKE",), "tRTRS": ("RTRS",), "tCCDMW": ("CCDMW",),
    "tDQSS_max": ("DQSS",), "tRPST": ("RPST",), "tWPRE": ("WPRE",), "tDQSCK": ("DQSCK",), "tXSR": ("XSR", "XS"),
}  # fmt: skip
NEEDED = ("RL", "WL", "tRCD", "tRP", "tRAS", "tRRD", "tFAW", "tCCD", "tWR", "tWTR", "tRFCab", "tREFI")
# Our current names -> stems of theirs; LPDDR4 appends the rail's number, DDR4 writes ipp for the second rail.
CURRENTS = {
    "IDD0": ("0",), "IDD2N": ("2n",), "IDD2P": ("2p", "2p0"), "IDD3N": ("3n",), "IDD3P": ("3p", "3p0"),
    "IDD4R": ("4r",), "IDD4W": ("4w",), "IDD5AB": ("5", "5B", "5b"), "IDD6": ("6", "6n"), "IDD5PB": ("5pb",),
}  # fmt: skip


def _recognises(data: Any) -> bool:
    return isinstance(data, dict) and isinstance(data.get("memspec"), dict)


def _read(document: Document) -> Specification | None:
    top = NumberSection(document, "memspec")
    standard, name = top.text("memoryType"), top.text("memoryId")
    sizes = NumberSection(document, "memspec", "memarchitecturespec")
    times = NumberSection(document, "memspec", "memtimingspec")
    groups, stacks = sizes.whole("nbrOfBankGroups", default=1), sizes.whole("nbrOfStacks", default=1)
    banks, channels = sizes.whole("nbrOfBanks"), sizes.whole("nbrOfChannels", default=1)
    pseudo, ranks = sizes.whole("nbrOfPseudoChannels", default=1), sizes.whole("nbrOfRanks", default=1)
    rest = {
        "rows": sizes.whole("nbrOfRows"), "columns": sizes.whole("nbrOfColumns"),
        "device_dq_bits": sizes.whole("width"),
        "devices_per_rank": sizes.whole("nbrOfDevices", default=1), "burst_beats": sizes.whole("burstLength"),
        "beats_per_clock": sizes.whole("dataRate"),
    }  # fmt: skip
    tck_ns = _clock(times)
    timing = times.timing(TIMING, NEEDED)
    burst = rest["burst_beats"] // rest["beats_per_clock"] if rest["burst_beats"] and rest["beats_per_clock"] else 0
    reading = times.whole("RTP", default=0, least=0)
    after_burst = times.whole("RBTP", default=0, least=0)
    if reading or after_burst:
        timing["tRTP"] = reading or burst + (after_burst or 0)
    else:
        document.complain(("memspec", "memtimingspec"), "RTP is missing (or RBTP, counted from the end of the burst)")
    turn = times.whole("RTW", default=0, least=0)
    if turn and "RL" in timing and "WL" in timing:
        timing["turnaround"] = max(turn - (timing["RL"] + burst - timing["WL"]), 0)
    if document.problems or None in (groups, stacks, banks, channels, pseudo, ranks, *rest.values()):
        return None
    assert groups and stacks and banks and channels and pseudo and ranks and tck_ns
    if banks % groups or groups % stacks:
        document.complain(
            ("memspec", "memarchitecturespec"),
            f"{banks} banks do not divide into {groups} groups in {stacks} stacks",
        )
        return None
    organisation = {key: int(value) for key, value in rest.items() if value is not None}
    organisation |= {
        "channels": channels * pseudo, "ranks": ranks * stacks, "bank_groups": groups // stacks,
        "banks_per_group": banks // groups, "column_step": 0, "refresh_banks": 1,
    }  # fmt: skip
    if stacks > 1 or pseudo > 1:
        organisation["column_step"] = 1  # HBM's column addresses name bursts
    spec = Specification(name or "imported", standard, tck_ns, organisation, timing)
    spec.unused = sorted(times.left | sizes.left)
    if "mempowerspec" in top.data and standard in BASES:
        _currents(document, spec, milliamperes="tCK" not in times.data)
    return spec


def _clock(times: NumberSection) -> float | None:
    seconds = times.number("tCK", required="clkMhz" not in times.data, whole=False)
    mhz = times.number("clkMhz", required=False, whole=False)
    if seconds == 0 or mhz == 0:
        times.document.complain(times.keys, "the clock must be above 0")
        return None
    return 1e9 * seconds if seconds else 1e3 / mhz if mhz else None


def _currents(document: Document, spec: Specification, *, milliamperes: bool) -> None:
    """Take the currents where the file has all of them, on the rails that the base part knows; I/O rails are wires'."""
    power = NumberSection(document, "memspec", "mempowerspec")
    rails = load_part(BASES[spec.standard]).currents.rails
    number_of = {"vdd1": "1", "vdd2": "2", "vdd2h": "2h", "vdd2l": "2l", "vdd": "", "vpp": ""}
    scale = 1.0 if milliamperes else 1e3
    currents: dict[str, dict[str, float]] = {}
    for ours, stems in CURRENTS.items():
        on_rails = {}
        for rail in rails:
            prefix = "ipp" if rail == "vpp" else "idd"
            names = [f"{prefix}{stem}{number_of.get(rail, rail)}" for stem in stems]
            value = power.number(*names, required=False, whole=False)
            if value is not None:
                on_rails[rail] = round(scale * value, 9)
        if len(on_rails) == len(rails):
            currents[ours] = on_rails
    volts = {rail: power.number(rail, required=False, whole=False) for rail in rails}
    needed = set(CURRENTS) - {"IDD5PB", "IDD6"}
    if needed <= set(currents) and all(volts.values()):
        spec.currents, spec.volts = currents, {rail: volt for rail, volt in volts.items() if volt is not None}
    else:
        missing = sorted(needed - set(currents))
        spec.unused.append(f"mempowerspec (without {', '.join(missing) or 'voltages'})")


PART_READERS.register("dramsys", summary="DRAMSys JSON memory specification")(PartReader(_recognises, _read))
