"""What an order saves on a scratchpad: bytes and DRAM energy of digits_wide, two-optimal against auto.

    python scripts/bench_scratchpad.py

Tuples, LPDDR4-3200 with DBI, MIN; rows moved are checked against `count_io`. Counts do not depend on the machine.
"""

from __future__ import annotations

import edgewatt as ew
from hwmodel.energy.replay import replay_energy
from traces.base.resources import config_root

CASES = ((128, 65536), (16, 8192))  # lanes, bytes
ORDERS = {"two-optimal": {}, "connection-reordering": {"iterations": 200_000}, "auto": {"moves": 600_000}}


def main() -> None:
    network = ew.load(config_root() / "examples" / "networks" / "digits_wide.npz")
    print("| lanes | bytes | order | MB | DRAM and interface, uJ |\n|---|---|---|---|---|")
    for lanes, size in CASES:
        machine = ew.Machine(scratchpad=ew.ScratchpadSpec(size), part="lpddr4-3200", encoder="dbi-dc")
        memory = machine.scratchpad.memory(4 * lanes)
        for method, parameters in ORDERS.items():
            order = ew.order(network, method, memory=memory, **parameters)
            found = ew.replay(ew.build_trace(network, order, layout="tuples", lanes=lanes), machine)
            moved, counted = found.scratchpad, ew.count_io(network, order, memory=memory)
            for name in ("reads_neurons", "writes_live", "writes_outputs"):
                assert getattr(moved, name) == getattr(counted, name), name
            megabytes = (found.read_bytes + found.written_bytes) / 1e6
            energy = replay_energy(found, machine).total_pj / 1e6
            print(f"| {lanes} | {size} | {method} | {megabytes:.3f} | {energy:.1f} |", flush=True)


if __name__ == "__main__":
    main()
