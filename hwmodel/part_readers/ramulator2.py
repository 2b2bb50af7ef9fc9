"""Ramulator 2: the DRAM section of a configuration, as YAML, with its preset tables written out.

    MemorySystem:            # or the DRAM section alone, or its content
      DRAM:
        impl: DDR5
        org: {dq: 8, channel_width: 32, rank: 1, bankgroup: 8, bank: 4, row: 65536, column: 1024}
        timing: {rate: 4800, nBL: 8, nCL: 40, nRCD: 39, ..., tCK_ps: 416}

A preset that is named only (`preset: DDR5_4800B`) lies in Ramulator's own code and must be exported; such an export
gives sizes and times as lists, in the order of Ramulator 2.1, one controller a channel.
"""

from __future__ import annotations

from typing import Any

from hwmodel.part_readers.reader import PART_READERS, NumberSection, PartReader, Specification
from traces.base.document import Document, Loc

TIMING = {
    "RL": ("nCL", "nRL"), "WL": ("nCWL", "nWL"), "tRCD": ("nRCD", "nRCDRD", "nRCDr"), "tRCD_write": ("nRCDWR", "nRCDw"),
    "tRP": ("nRP", "nRPpb"), "tRPab": ("nRPab",), "tRAS": ("nRAS",), "tRC": ("nRC",), "tRRD": ("nRRDS", "nRRD"),
    "tRRD_L": ("nRRDL",), "tFAW": ("nFAW",), "tCCD": ("nCCDS", "nCCD"), "tCCD_L": ("nCCDL",),
    "tCCD_L_WR": ("nCCDL_WR",),
    "tRTP": ("nRTP", "nRTPS", "nRTPL"), "tWR": ("nWR", "nWTP"), "tWTR": ("nWTRS", "nWTR"), "tWTR_L": ("nWTRL",),
    "tPPD": ("nPPD",), "tRFCab": ("nRFC", "nRFCab", "nRFC1"), "tRFCpb": ("nRFCpb", "nRFCsb"), "tREFI": ("nREFI",),
    "tREFpb_gap": ("nPBR2PBR", "nRREFD"), "tPBR2ACT": ("nPBR2ACT",), "tAAD": ("nAAD",), "BL_L": ("nBL_max",),
    "tWCKPST": ("nWCKPST",), "tRTRS": ("nCS",),
}  # fmt: skip
NEEDED = ("RL", "WL", "tRCD", "tRP", "tRAS", "tRRD", "tFAW", "tCCD", "tRTP", "tWR", "tWTR", "tRFCab", "tREFI")


# Names of an export's lists: levels but the first (channel, the same in all), times but the first and last.
_STACK = "bankgroup bank row column"
_HBM = "nBL nCL nRCDRD nRCDWR nRP nRAS nRC nWR nRTPL nCWL nCCDS nCCDL nRRDS nRRDL nWTRS nWTRL nFAW nRFC nRFCpb nRREFD "
_HBM3 = (
    "nBL nCL nRCDRD nRCDWR nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nCCDR nRRDS nRRDL nWTRS nWTRL nRTW nFAW nPPD nRFC "
    "nRFCpb nRFMab nRFMpb nRREFD nREFI nREFIpb tCK_ps"
)
_LPDDR6 = (
    "nBL_min nBL_max nBL_min_L nBL_max_L nRL nWL nACU nRCDr nRCDw nRP nRPab nRAS nRC nWTP nRTP nRTP_L nPPD nCCDS nCCDL "
    "nCCDL_L nCCDS_WR nCCDL_WR nCCDL_WR_L nRRD nWTRS nWTRL nRTW_S nRTW_L nRTW_S_L nRTW_L_L nWCK2DQO nRPST nODTLon "
    "nODTon_min nFAW nRFC nREFI nWCKPST nCAS nAAD nCS tCK_ps"
)
EXPORTED = {
    "DDR4": (
        f"rank {_STACK}",
        "nBL nCL nRCD nRP nRAS nRC nWR nRTP nCWL nCCDS nCCDL nRRDS nRRDL nWTRS nWTRL nFAW nRFC nREFI nCS tCK_ps",
    ),
    "DDR5": (
        f"rank {_STACK}",
        "nBL nCL nRCD nRP nRAS nRC nWR nRTP nCWL nPPD nCCDS nCCDL nCCDS_WR nCCDL_WR nRRDS nRRDL nWTRS nWTRL nFAW nRFC "
        "nREFI nCS tCK_ps",
    ),
    "LPDDR5": (
        f"rank {_STACK}",
        "nBL_min nBL_max nCL nRCD nRP nRPab nRAS nRC nWR nRTP nCWL nPPD nCCDS nCCDL nCCDS_WR nCCDL_WR nRRDS nRRDL "
        "nWTRS nWTRL nFAW nRFC nRFCpb nREFI nREFIpb nWCKPST nCAS nAAD nCS tCK_ps nPBR2PBR nPBR2ACT",
    ),
    "LPDDR6": (f"rank {_STACK}", _LPDDR6),
    "HBM1": (_STACK, f"{_HBM}nREFI nREFIpb tCK_ps"),
    "HBM2": (f"pseudochannel {_STACK}", f"{_HBM}nREFI nREFIpb tCK_ps"),
    "HBM3": (f"pseudochannel sid {_STACK}", _HBM3),
}


def _place(data: Any, depth: int = 0) -> Loc | None:
    """Return where the first DRAM section is."""
    if isinstance(data, dict) and {"impl", "org", "timing"} <= set(data):
        return ()
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, node in inside if depth < 5 else ():
        if (found := _place(node, depth + 1)) is not None:
            return (key, *found)
    return None


def _recognises(data: Any) -> bool:
    return _place(data) is not None


def _named(document: Document) -> Document | None:
    """Return the DRAM section as a document of its own, with an export's lists as names and numbers."""
    loc = _place(document.data)
    if loc is None:
        document.complain((), "no DRAM section with impl, org and timing")
        return None
    channels = max([1, *(len(node) for k in range(len(loc)) if isinstance(node := document.get(loc[:k]), list))])
    part = document.at(loc)
    own = Document(dict(part.data), part.keys, part.values, problems=document.problems)
    node = part.data
    org, timing = node["org"], node["timing"]
    if isinstance(timing, list) and isinstance(org, dict) and isinstance(org.get("count"), list):
        if node["impl"] not in EXPORTED:
            own.complain(("impl",), f"the export of {node['impl']!r} is not known: it is of {', '.join(EXPORTED)}")
            return None
        levels, times = (names.split() for names in EXPORTED[node["impl"]])
        for loc, names, numbers in (
            (("org", "count"), ["channel", *levels], org["count"]), (("timing",), ["rate", *times], timing),
        ):  # fmt: skip
            if len(names) != len(numbers):
                own.complain(loc, f"has {len(numbers)} numbers, the export of {node['impl']} {len(names)}")
                return None
        sizes = dict(zip(("channel", *levels), org["count"], strict=True))
        sizes["channel"] = sizes["channel"] * channels if type(sizes["channel"]) is int else sizes["channel"]
        width = {"channel_width": node["channel_width"]} if "channel_width" in node else {}
        own.data |= {
            "org": {key: value for key, value in org.items() if key != "count"} | sizes | width,
            "timing": dict(zip(("rate", *times), timing, strict=True)),
        }
    return own


def _read(document: Document) -> Specification | None:
    own = _named(document)
    if own is None:
        return None
    document = own
    standard = NumberSection(document).text("impl")
    org, timing = (_written_out(document, name) for name in ("org", "timing"))
    if org is None or timing is None:
        return None
    clock_ps, rate = timing.number("tCK_ps", whole=False, least=1), timing.number("rate", least=1)
    for name in [key for key, value in timing.data.items() if value == -1]:
        document.complain((*timing.keys, name), "is -1, which Ramulator fills in from its tables: export the number")
    beats_per_clock = round(rate * clock_ps / 1e6) if clock_ps and rate else 0
    burst_clocks = timing.whole("nBL", "nBL_min")
    times = timing.timing(TIMING, NEEDED)
    dq, width = org.whole("dq"), org.whole("channel_width", default=0, least=0)
    sizes = {name: org.whole(key, default=1) for name, key in (
        ("ranks", "rank"), ("channels", "channel"), ("pseudo", "pseudochannel"), ("stacks", "sid"),
        ("bank_groups", "bankgroup"),
    )}  # fmt: skip
    rest = {name: org.whole(key) for name, key in (("banks_per_group", "bank"), ("rows", "row"), ("columns", "column"))}
    if document.problems or not (dq and clock_ps and burst_clocks) or None in (*sizes.values(), *rest.values()):
        return None
    if beats_per_clock not in (1, 2, 4, 8, 16):
        document.complain(timing.keys, f"rate {rate:g} and tCK_ps {clock_ps:g} give {beats_per_clock} beats in a clock")
        return None
    if width and width % dq:
        document.complain((*org.keys, "channel_width"), f"{width} is not a multiple of dq {dq}")
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


def _written_out(document: Document, *keys: str) -> NumberSection | None:
    """Return a section that holds numbers; one that only names a preset is refused."""
    section = NumberSection(document, *keys)
    if set(section.data) == {"preset"}:
        document.complain(
            keys, f"names the preset {section.data['preset']!r} alone, which is a table inside Ramulator: write it out"
        )
        return None
    return section if section.data else None


PART_READERS.register("ramulator2", summary="Ramulator 2 DRAM section (YAML), presets written out")(
    PartReader(_recognises, _read)
)
