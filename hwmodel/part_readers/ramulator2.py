"""Ramulator 2: the DRAM section of a configuration, as YAML, with its preset tables written out.

    MemorySystem:            # or the DRAM section alone, or its content
      DRAM:
        impl: DDR5
        org: {dq: 8, channel_width: 32, rank: 1, bankgroup: 8, bank: 4, row: 65536, column: 1024}
        timing: {rate: 4800, nBL: 8, nCL: 40, nRCD: 39, ..., tCK_ps: 416}

A preset that is named only (`preset: DDR5_4800B`) lies in Ramulator's own code: its numbers must be exported.
"""

from __future__ import annotations

from typing import Any

from hwmodel.part_readers.reader import PART_READERS, NumberSection, PartReader, Specification
from hwmodel.parts.part_tree import Tree

TIMING = {
    "RL": ("nCL", "nRL"), "WL": ("nCWL", "nWL"), "tRCD": ("nRCD", "nRCDRD", "nRCDr"), "tRCD_write": ("nRCDWR", "nRCDw"),
    "tRP": ("nRP", "nRPpb"), "tRPab": ("nRPab",), "tRAS": ("nRAS",), "tRC": ("nRC",), "tRRD": ("nRRDS", "nRRD"),
    "tRRD_L": ("nRRDL",), "tFAW": ("nFAW",), "tCCD": ("nCCDS", "nCCD"), "tCCD_L": ("nCCDL",),
    "tCCD_L_WR": ("nCCDL_WR",),
    "tRTP": ("nRTP", "nRTPS", "nRTPL"), "tWR": ("nWR", "nWTP"), "tWTR": ("nWTRS", "nWTR"), "tWTR_L": ("nWTRL",),
    "tPPD": ("nPPD",), "tRFCab": ("nRFC", "nRFCab", "nRFC1"), "tRFCpb": ("nRFCpb", "nRFCsb"), "tREFI": ("nREFI",),
    "tREFpb_gap": ("nPBR2PBR", "nRREFD"), "tPBR2ACT": ("nPBR2ACT",), "tAAD": ("nAAD",), "BL_L": ("nBL_max",), "tWCKPST": ("nWCKPST",),
    "tRTRS": ("nCS",),
}  # fmt: skip
NEEDED = ("RL", "WL", "tRCD", "tRP", "tRAS", "tRRD", "tFAW", "tCCD", "tRTP", "tWR", "tWTR", "tRFCab", "tREFI")


def _place(data: Any) -> tuple[str, ...] | None:
    """Return where the DRAM section is."""
    for keys in (("MemorySystem", "DRAM"), ("memory_system", "dram"), ("DRAM",), ("dram",), ()):
        node = data
        for key in keys:
            node = node.get(key) if isinstance(node, dict) else None
        if isinstance(node, dict) and "impl" in node and "timing" in node:
            return keys
    return None


def _recognises(data: Any) -> bool:
    return _place(data) is not None


def _read(tree: Tree) -> Specification | None:
    keys = _place(tree.data)
    if keys is None:
        tree.complain((), "no DRAM section with impl, org and timing")
        return None
    top = NumberSection(tree, *keys)
    standard = top.text("impl")
    org, timing = (_written_out(tree, *keys, name) for name in ("org", "timing"))
    if org is None or timing is None:
        return None
    clock_ps, rate = timing.number("tCK_ps", whole=False, least=1), timing.number("rate", least=1)
    for name in [key for key, value in timing.data.items() if value == -1]:
        tree.complain((*timing.keys, name), "is -1, which Ramulator fills in from its tables: export the number")
    beats_per_clock = round(rate * clock_ps / 1e6) if clock_ps and rate else 0
    burst_clocks = timing.whole("nBL", "nBL_min")
    times = timing.timing(TIMING, NEEDED)
    dq, width = org.whole("dq"), org.whole("channel_width", default=0, least=0)
    sizes = {name: org.whole(key, default=1) for name, key in (
        ("ranks", "rank"), ("channels", "channel"), ("pseudo", "pseudochannel"), ("stacks", "sid"),
        ("bank_groups", "bankgroup"),
    )}  # fmt: skip
    rest = {name: org.whole(key) for name, key in (("banks_per_group", "bank"), ("rows", "row"), ("columns", "column"))}
    if tree.problems or not (dq and clock_ps and burst_clocks) or None in (*sizes.values(), *rest.values()):
        return None
    if beats_per_clock not in (1, 2, 4, 8, 16):
        tree.complain(timing.keys, f"rate {rate:g} and tCK_ps {clock_ps:g} give {beats_per_clock} beats in a clock")
        return None
    if width and width % dq:
        tree.complain((*org.keys, "channel_width"), f"{width} is no multiple of dq {dq}")
        return None
    number = {name: value or 1 for name, value in (sizes | rest).items()}
    organisation = {
        "channels": number["channels"] * number["pseudo"], "pseudo_channels": number["pseudo"],
        "ranks": number["ranks"] * number["stacks"],
        "bank_groups": number["bank_groups"], "banks_per_group": number["banks_per_group"], "rows": number["rows"],
        "columns": number["columns"], "device_dq_bits": dq, "devices_per_rank": max((width or dq) // dq, 1),
        "burst_beats": burst_clocks * beats_per_clock, "beats_per_clock": beats_per_clock, "column_step": 0,
    }  # fmt: skip
    if standard == "LPDDR6":  # its columns count 16ths of a burst
        organisation["column_step"] = 16
    specification = Specification(f"{standard}-{rate:g}", standard, clock_ps / 1e3, organisation, times)
    specification.unused = sorted((timing.left | org.left) - {"preset", "density"})
    return specification


def _written_out(tree: Tree, *keys: str) -> NumberSection | None:
    """Return a section that holds numbers; one that only names a preset is refused."""
    section = NumberSection(tree, *keys)
    if set(section.data) == {"preset"}:
        tree.complain(
            keys, f"names the preset {section.data['preset']!r} alone, which is a table inside Ramulator: write it out"
        )
        return None
    return section if section.data else None


PART_READERS.register("ramulator2", summary="Ramulator 2 DRAM section (YAML), presets written out")(
    PartReader(_recognises, _read)
)
