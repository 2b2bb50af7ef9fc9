"""Small valid files of machines and runs: specifications, systems, banks, counts, figures, traces of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.config.loading import read_with_paths
from edgewatt.operators.arena import read_banks
from edgewatt.runs.plan import load_sweep
from fuzz.other_samples import Sample
from hwmodel.part_readers.reader import import_part
from traces.accelerators.scalesim import read_counts
from traces.base.resources import shipped_path
from traces.trace_files import open_trace

COUNTS = """layer,tensor,dram_reads,dram_writes,access_bits,passes,layer_cycles
0,ifmap,9,0,8,1,12
0,W,4,0,8,,5
0,ofmap,0,4,8,,
"""
BANKS = "banks:\n- {name: sram, mb_per_s: 4000, size_bytes: 4096}\n- {name: dram, mb_per_s: 400, source: ours}\n"
DRAMSYS = {
    "memspec": {
        "memoryId": "ours", "memoryType": "DDR4",
        "memarchitecturespec": {
            "burstLength": 8, "dataRate": 2, "nbrOfBanks": 16, "nbrOfBankGroups": 4, "nbrOfColumns": 1024,
            "nbrOfRanks": 1, "nbrOfRows": 32768, "width": 8, "nbrOfDevices": 8, "nbrOfChannels": 1,
        },
        "mempowerspec": {
            "vdd": 1.2, "idd0": 56.25, "idd2n": 33.75, "idd2p0": 17, "idd2p1": 17, "idd3n": 39.5, "idd3p0": 22.5,
            "idd3p1": 22.5, "idd4r": 157.5, "idd4w": 135, "idd5": 118, "idd6": 20.25, "vpp": 2.5, "ipp0": 4.05,
        },
        "memtimingspec": {
            "RL": 22, "WL": 16, "RCD": 22, "RP": 22, "RAS": 52, "RC": 74, "RRD_S": 4, "RRD_L": 8, "FAW": 34,
            "CCD_S": 4, "CCD_L": 8, "RTP": 12, "WR": 24, "WTR_S": 4, "WTR_L": 12, "RFC": 560, "REFI": 12480, "XP": 10,
            "CKE": 8, "XS": 576, "AL": 0, "tCK": 625e-12,
        },
    }
}  # fmt: skip
RAMULATOR = """MemorySystem:
  DRAM:
    impl: DDR5
    org: {preset: ours, density: 16384, dq: 8, channel_width: 32, rank: 1, bankgroup: 8, bank: 4, row: 65536,
          column: 1024}
    timing: {preset: ours, rate: 5600, nBL: 8, nCL: 46, nRCD: 46, nRP: 46, nRAS: 90, nRC: 136, nWR: 84, nRTP: 21,
             nCWL: 44, nPPD: 2, nCCDS: 8, nCCDL: 14, nCCDS_WR: 8, nCCDL_WR: 56, nRRDS: 8, nRRDL: 14, nWTRS: 7,
             nWTRL: 28, nFAW: 40, nRFC: 827, nREFI: 10924, nCS: 2, tCK_ps: 357}
"""
RUN = """network: {generate: {kind: random-layered, n_layers: 3, width: 20, density: 0.3}}
machine: scratchpad-8k
"""
OTHER_TRACES = {
    "lackey": b"==1== x\nI  04000c30,3\n L 1ffeffe7e8,8\n S 1ffeffe7e0,8\n M 0421c7cc,4\n",
    "dinero": b"r 1000 4\nw 1004 4\ni 2000 4\nm 30 1\n",
}


def machine_samples(folder: Path) -> dict[str, Sample]:
    """Return name -> sample; `folder` is for files on the way."""
    found: dict[str, Sample] = {}

    def add(name: str, file: str, data: bytes, read: Callable[[Path], Any]) -> None:
        found[name] = (file, data, read)

    tensors = {"layer0_ifmap": np.ones((3, 3, 1), np.int8), "layer0_filter": np.ones((1, 2, 2, 1), np.int8)}
    tensors["layer0_ofmap"] = np.ones((2, 2, 1), np.int8)
    add("counts", "c.csv", COUNTS.encode(), lambda path: read_counts(path, tensors))
    add("banks", "b.yaml", BANKS.encode(), read_banks)
    add("dramsys part", "p.json", json.dumps(DRAMSYS, indent=1).encode(), import_part)
    add("ramulator part", "p.yaml", RAMULATOR.encode(), import_part)
    (folder / "run.yaml").write_text(RUN)
    add("system", "s.yaml", shipped_path("systems", "scratchpad-8k").read_bytes(), _run_on)
    add("paths", "r.yaml", RUN.encode(), read_with_paths)
    for name, data in OTHER_TRACES.items():
        add(f"trace {name}, other", "t", data, lambda path, name=name: _walk(path, name))
    return found


def _run_on(path: Path) -> Any:
    config = {"network": {"generate": {"kind": "random-layered", "n_layers": 2, "width": 6, "density": 0.5}}}
    return load_sweep({**config, "system": str(path)})


def _walk(path: Path, name: str) -> list[int]:
    return [len(chunk) for chunk in open_trace(path, name)]
