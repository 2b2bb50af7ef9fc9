"""Parts built from the parameter files of the DRAMPower reference runs (their own key names, SI units)."""

from dram_parts import made

from hwmodel.parts.part_file import load_part

TIMING = {  # ours: theirs, the first that a file has
    "RL": ("RL",), "WL": ("WL",), "tRCD": ("tRCD",), "tRP": ("tRPpb", "tRP"), "tRPab": ("tRPab", "tRP"),
    "tRAS": ("tRAS",), "tWR": ("tWR",), "tWTR": ("tWTR",), "tRRD": ("tRRD",), "tXP": ("tXP",),
    "tRFCab": ("tRFCab", "tRFC"),
    "tRFCpb": ("tRFCpb", "tRFCdb", "tRFCsb"), "tREFI": ("tREFI",),
}  # fmt: skip
CURRENTS = {
    "IDD5AB": ("IDD5AB", "IDD5B"), "IDD5PB": ("IDD5PB", "IDD5DB", "IDD5C"), "IDD6": ("IDD6", "IDD6N"),
}  # fmt: skip
BANK5, NO_BANK = "BA0 BA1 BG0 BG1", "0 0 0 0"
LEVELS5 = {
    "ACT": ["1 1 1 R14 R15 R16 R17", f"{BANK5} R11 R12 R13", "1 1 0 R7 R8 R9 R10", "R0 R1 R2 R3 R4 R5 R6"],
    **{
        name: [f"{start} C0 C3 C4 C5", f"{BANK5} C1 C2 {own}"]
        for name, start, own in (("RD", "1 0 0", 0), ("RDA", "1 0 0", 1), ("WR", "0 1 1", 0), ("WRA", "0 1 1", 1))
    },
    "PRE": ["0 0 0 1 1 1 1", f"{BANK5} 0 0 0"], "PREA": ["0 0 0 1 1 1 1", "0 0 BG0 BG1 0 0 1"],
    "REFpb": ["0 0 0 1 1 1 0", "BA0 BA1 BG0 0 0 0 0"], "REF2b": ["0 0 0 1 1 1 0", "BA0 BA1 BG0 0 0 0 0"],
    "REFab": ["0 0 0 1 1 1 0", "0 0 BG0 0 0 0 1"], "SRE": ["0 0 0 1 0 1 1", "0 0 0 0 0 0 0"],
    "SRX": ["0 0 0 1 0 1 0", "0 0 0 0 0 0 0"], "PDX": ["0 0 0 1 0 1 0", "0 0 0 0 0 0 0"],
    "PDE": ["0 0 0 1 0 1 1", "0 0 0 0 0 0 1"],
}  # fmt: skip
LEVELS6 = {
    "ACT": ["1 1 1 0", "1 R15 R16 0", "R11 R12 R13 R14", BANK5, "1 1 1 0", "0 R8 R9 R10", "R4 R5 R6 R7", "R0 R1 R2 R3"],
    **{
        name: [f"1 {start} 0", f"C0 C1 {own} 0", "C2 C3 C4 C5", BANK5]
        for name, start, own in (("RD", "1 0", 0), ("RDA", "1 0", 1), ("WR", "0 1", 0), ("WRA", "0 1", 1))
    },
    "PRE": [NO_BANK, "1 1 0 0", NO_BANK, BANK5], "PREA": [NO_BANK, "1 1 0 0", "0 0 0 1", NO_BANK],
    "REFab": [NO_BANK, "1 0 0 0", "0 0 0 1", NO_BANK], "REF2b": [NO_BANK, "1 0 0 0", "BG0 1 0 0", BANK5],
    "PDE": [NO_BANK, "0 1 0 0", NO_BANK, NO_BANK], "PDX": [NO_BANK] * 4,
    "SRE": [NO_BANK, "0 0 1 1", NO_BANK, NO_BANK], "SRX": [NO_BANK, "0 1 1 0", NO_BANK, NO_BANK],
}  # fmt: skip
BANK_D = "BA0 BA1 BG0 BG1 BG2"
LEVELS_D = {
    "ACT": [f"0 0 R0 R1 R2 R3 {BANK_D} 1 1 1", " ".join(f"R{k}" for k in range(4, 17)) + " 1"],
    **{
        name: [f"1 0 1 1 {read} 1 {BANK_D} 1 1 1", f"{second} C4 C5 C6 C7 C8 C9 C10 1 {own} 1 1 1"]
        for name, read, second, own in (
            ("RD", 1, "0 0", 1), ("RDA", 1, "0 0", 0), ("WR", 0, "1 1", 1), ("WRA", 0, "1 1", 0),
        )
    },
    "PRE": [f"1 1 0 1 1 1 {BANK_D} 1 1 1"], "PREA": ["1 1 0 1 0 1 1 1 1 1 0 1 1 1"],
    "REFab": ["1 1 0 0 1 1 1 1 1 1 0 1 1 1"], "REFpb": ["1 1 0 0 1 1 BA0 BA1 1 1 1 1 1 1"],
    "PDE": ["1 1 1 0 1 1 1 1 1 1 1 0 1 1"], "PDX": ["1 " * 14],
}  # fmt: skip
CELLS6 = ["D " * 12] * 2 + ["D D D D M M D D D D M M"] + ["D " * 12] * 2 + ["D D D D I I D D D D I I"]


def drampower_part(given, burst_beats=None):
    """Return the part of one parameter file; burst_beats: another burst length than the file's."""
    o, t, standard = given["organisation"], given["timing_cycles"], given["standard"]
    double = burst_beats is not None and burst_beats != o["burst_length"]
    beats = burst_beats or o["burst_length"]
    clocks = beats // o["beats_per_tCK"]
    banks = o["banks"] // o["bank_groups"]
    step = {"LPDDR5": 1, "LPDDR6": 1, "DDR5": beats}[standard]
    overhead = 32 * beats // 24 if standard == "LPDDR6" else 0
    timing = {name: next((t[key] for key in keys if key in t), None) for name, keys in TIMING.items()}
    timing["tRTP"] = clocks + t["tRBTP"] if "tRBTP" in t else t["tRTP"]
    timing["tDQSS"] = 1
    timing |= {"tFAW": 4 * t["tRRD"], "tCCD": clocks, "tREFpb_gap": t["tRRD"]}
    if standard == "DDR5":  # not in its file, and not in its energies
        timing |= {"RL": t["WL"] + 2, "tREFI": 9360}
    levels = {"LPDDR5": LEVELS5, "LPDDR6": LEVELS6, "DDR5": LEVELS_D}[standard]
    if double:  # a bit that says so stands where C0 is, or before it
        changes = {"LPDDR5": [("C0", "0")], "LPDDR6": [("1 1 0 0", "0 1 0 0"), ("1 0 1 0", "0 0 1 0"), ("C0", "0")]}
        levels = dict(levels)
        for name in ("RD", "RDA", "WR", "WRA"):
            rows = levels[name]
            for old, new in changes[standard]:
                rows = [row.replace(old, new, 1) for row in rows]
            levels[name] = rows
    wires = {
        "dq": wire(given, o["dq_width_bits"], "rdq", "wdq"),
        "ck": {**wire(given, 2, None, "ck"), "periods_per_clock": made(1)},
        "ca": {
            **wire(given, len(levels["ACT"][0].split()), None, "ca"),
            "beats_per_clock": made(1 if standard == "DDR5" else 2), "idle_level": made(int(standard == "DDR5")),
        },
        "dqs": {
            **wire(given, 2, "rdqs", "wdqs" if standard == "DDR5" else None),
            "periods_per_clock": made(o["beats_per_tCK"] // 2),
        },
    }  # fmt: skip
    if standard != "DDR5":
        wires["wck"] = {
            **wire(given, 2, None, "wck"), "periods_per_clock": made(o["wck_to_ck"]),
            "runs": "always" if o["wck_always_on"] else "bursts",
        }  # fmt: skip
    if standard == "LPDDR5":
        wires["dbi"] = wire(given, 2, "rdbi", "wdbi")
    rails = [key[:-2] for key in given if key.endswith("_V") and key != "vddq_V"]
    per_bank = {"LPDDR5": 8, "LPDDR6": 8, "DDR5": 0}[standard]
    names = ("IDD0", "IDD2N", "IDD2P", "IDD3N", "IDD3P", "IDD4R", "IDD4W", "IDD5AB", "IDD5PB", "IDD6", "I_beta")
    currents = {
        **{f"{rail}_V": made(given[f"{rail}_V"]) for rail in rails},
        **{
            f"{name}_mA": {
                **{rail: 1e3 * current(given["idd_A"][rail], name) for rail in rails},
                "source": "test",
            }
            for name in names
        },
        "IDD5PB_refreshes_per_tREFI": made(per_bank),
    }  # fmt: skip
    sizes = {"bank": banks, "bank_group": o["bank_groups"], "column": o["columns"] // step, "row": o["rows"]}
    bits = {name: (size - 1).bit_length() for name, size in sizes.items()}
    burst_bytes = (o["dq_width_bits"] * beats - overhead) // 8
    interface = {
        "termination": "vddq" if standard == "DDR5" else "vssq", "dbi": "none" if standard == "DDR5" else "ones",
        "vddq_V": made(given["vddq_V"]), "vddq_per_voh": made(2), "wires": wires,
        "command_levels": {"source": "test", **levels},
    }  # fmt: skip
    if standard == "LPDDR6":
        interface["cells"] = {"source": "test", "beats": CELLS6}
    return load_part(
        {
            "name": f"drampower-{standard}", "standard": standard, "clock": {"tCK_ns": made(1e9 * given["tCK_s"])},
            "organisation": {
                key: made(value) for key, value in (
                    ("channels", 1), ("ranks", 1), ("bank_groups", o["bank_groups"]), ("banks_per_group", banks),
                    ("rows", o["rows"]), ("columns", o["columns"]), ("device_dq_bits", o["dq_width_bits"]),
                    ("devices_per_rank", 1), ("burst_beats", beats), ("beats_per_clock", o["beats_per_tCK"]),
                    ("column_step", step), ("overhead_bits", overhead),
                    ("refresh_banks", {"LPDDR5": 1, "LPDDR6": 2, "DDR5": o["bank_groups"]}[standard]),
                )
            },
            "timing": {f"{name}_cycles": made(value) for name, value in timing.items()},
            "commands": {f"{name}_cycles": made(1) for name in ("ACT", "RD", "WR", "PRE", "REF")},
            "currents": currents, "interface": interface,
            "address_map": made(
                f"offset:{(burst_bytes - 1).bit_length()} column:{bits['column']} bank:{bits['bank']} "
                f"bank_group:{bits['bank_group']} row:{bits['row']}"
            ),
        }
    )  # fmt: skip


def current(rail, name):
    return next(rail[key] for key in CURRENTS.get(name, (name,)) if key in rail)


def wire(given, count, read, write):
    found = {"count": made(count)}
    for way, key in (("read", read), ("write", write)):
        if key is not None:
            found[f"{way}_r_eq_ohm"] = made(given["R_eq_ohm"][key])
            found[f"{way}_rise_pJ"] = made(1e12 * given["E_0to1_J"][key])
    return found
