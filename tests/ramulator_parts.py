"""Parts with the timing that the Ramulator 2.1 reference runs used, from the configs.json beside them."""

from dram_parts import made

from hwmodel.dram.engine import load_part


def _part(base, name, timing, organisation, address_map, tck_ns, command_cycles=None):
    data = {
        "extends": base,
        "name": name,
        "clock": {"tCK_ns": made(tck_ns)},
        "timing": {f"{key}_cycles": made(value) for key, value in timing.items()},
        "organisation": {key: made(value) for key, value in organisation.items()},
        "address_map": made(" ".join(address_map)),
    }
    if command_cycles:
        data["commands"] = {f"{key}_cycles": made(value) for key, value in command_cycles.items()}
    return load_part(data)


def lpddr5(config):
    t, rules = config["timing_clocks"], config["rules_clocks"]
    per_bank = config["controller"]["refresh"] != "all-bank"
    timing = {
        "RL": t["nCL"], "RL_dbi": t["nCL"], "WL": t["nCWL"], "tRCD": t["nRCD"], "tRP": t["nRP"],
        "tRPab": t["nRP"],  # the tool counts tRP from PRE-all to a refresh
        "tRAS": t["nRAS"], "tRC": t["nRC"], "tRRD": t["nRRDS"], "tFAW": t["nFAW"], "tCCD": t["nCCDS"],
        "tCCD_L": t["nCCDL"], "tRTP": t["nRTP"], "tWR": t["nWR"], "tWTR": t["nWTRS"], "tWTR_L": t["nWTRL"],
        "tPPD": t["nPPD"], "tRFCab": t["nRFC"], "tRFCpb": t["nRFCpb"], "tREFpb_gap": t["nPBR2PBR"],
        "tREFI": 16 * t["nREFIpb"] if per_bank else t["nREFI"],  # one bank of 16 per command
        "tPBR2ACT": t["nPBR2ACT"], "BL_L": t["nBL_max"], "tDQSS": 0, "turnaround": 2, "tAAD": t["nAAD"],
        "tCAS_WCK": rules["CAS_sync_to_RD_or_WR"] or 0, "tWCKPST": t["nWCKPST"],
    }  # fmt: skip
    one = {"refresh_banks": 1}  # the tool refreshes one bank where the part refreshes two
    return _part("lpddr5-6400", "tool", timing, one, config["address_fields_least_significant_first"], config["tCK_ns"])


def ddr(config):
    t, o = config["timing_clocks"], config["organisation"]
    burst = t["nBL"]
    timing = {
        "RL": t["nCL"], "RL_dbi": t["nCL"], "WL": t["nCWL"], "tRCD": t["nRCD"], "tRP": t["nRP"],
        "tRPab": t["nRP"], "tRAS": t["nRAS"], "tRC": t["nRC"], "tRRD": t["nRRDS"], "tRRD_L": t["nRRDL"],
        "tFAW": t["nFAW"], "tCCD": t["nCCDS"], "tCCD_L": t["nCCDL"], "tCCD_L_WR": t.get("nCCDL_WR", t["nCCDL"]),
        "tRTP": t["nRTP"], "tWR": t["nWR"], "tWTR": t["nWTRS"], "tWTR_L": t["nWTRL"],
        "tPPD": t.get("nPPD", 0), "tRFCab": t["nRFC"], "tREFI": t["nREFI"],
        "turnaround": config["rules_clocks"]["RD_to_WR"] - (t["nCL"] + burst - t["nCWL"]),
    }  # fmt: skip
    organisation = {
        "bank_groups": o["bank_groups"], "banks_per_group": o["banks_per_group"], "rows": o["rows"],
        "columns": o["columns"], "device_dq_bits": o["dq_bits"], "devices_per_rank": o["channel_bits"] // o["dq_bits"],
        "burst_beats": 2 * burst,
    }  # fmt: skip
    wires = config["clocks_on_the_command_wires"]
    clocks = {"ACT": wires["ACT"], "RD": wires["RD"], "WR": wires["WR"], "PRE": wires["PREpb"], "REF": wires["REFab"]}
    fields = config["address_fields_least_significant_first"]
    return _part("ddr4-3200-x8", "tool", timing, organisation, fields, config["tCK_ns"], clocks)
