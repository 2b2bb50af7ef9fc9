"""What inversion of least cost (dbi-opt) gains over the better of DBI-DC and DBI-AC, on every shipped part.

    python scripts/bench_optimal_dbi.py

Cost: of the data and flag wires of each shipped part, an edge counted as half a rising one. DC is the part's own rule:
against zeros where those cost, with low-active flags.
"""

from __future__ import annotations

import argparse

import numpy as np

from hwmodel.coding import WireCosts, encode
from hwmodel.dram.energy import data_wire_costs
from hwmodel.parts.part_file import load_part, part_names

N = 1 << 20


def streams() -> dict[str, np.ndarray]:
    """A megabyte of each kind of data."""
    rng = np.random.default_rng(1)
    return {
        "random bytes": rng.integers(0, 256, N, dtype=np.uint8),
        "normal fp32": rng.normal(size=N // 4).astype(np.float32).view(np.uint8),
        "normal fp16": rng.normal(size=N // 2).astype(np.float16).view(np.uint8),
        "normal int8": np.clip(rng.normal(0, 30, N), -127, 127).astype(np.int8).view(np.uint8),
    }


def cost_pj(data: np.ndarray, encoder: str, costs: WireCosts, bus_bytes: int, block_bytes: int) -> float:
    """Return the cost of the wires, flags included."""
    turned = encoder == "dbi-dc" and costs.zero_pj > costs.one_pj  # the complement sends what DBI against zeros sends
    sizes = {"element_bytes": 1, "bus_bytes": bus_bytes, "block_bytes": block_bytes}
    got = encode(~data if turned else data, encoder, costs=costs, **sizes)  # type: ignore[arg-type]
    zeros = 9 * len(data) - got.ones
    ones, zeros = (zeros, got.ones) if turned else (got.ones, zeros)
    return costs.one_pj * ones + costs.zero_pj * zeros + costs.rise_pj * got.toggles / 2


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{'part':14} {'data':13} gain over the better of DC and AC")
    for name in part_names():
        part, costs = load_part(name), data_wire_costs(name)
        sizes = part.organisation.dq_bits // 8, part.organisation.burst_bytes
        for kind, data in streams().items():
            dc, ac, best = (cost_pj(data, encoder, costs, *sizes) for encoder in ("dbi-dc", "dbi-ac", "dbi-opt"))
            print(f"{name:14} {kind:13} {100 * (1 - best / min(dc, ac)):.1f} %")


if __name__ == "__main__":
    main()
