"""CPU time of making, checking, storing, reading and running a network: python scripts/bench_networks.py

The network is the Graph Challenge's 1024 x 120 (3.9 million connections). Each figure is the median of five calls.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from traces.formats import to_bits
from traces.generators.networks import bert_ffn, radix_net
from traces.readers import load, native
from traces.work.forward import forward
from traces.work.network import Network


def median_cpu_s(work: Callable[[], Any], rounds: int = 5) -> float:
    """Return the median process CPU time of one call."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def write_tsv(network: Network, folder: Path) -> None:
    """Write the network as Graph Challenge layer files."""
    assert network.layer is not None and network.weights is not None
    for k in range(int(network.layer.max()) + 1):
        at = network.layer == k
        columns = (network.sources[at] - 1024 * k + 1, network.targets[at] - 1024 * (k + 1) + 1, network.weights[at])
        np.savetxt(folder / f"n1024-l{k + 1}.tsv", np.stack(columns).T, fmt=["%d", "%d", "%g"], delimiter="\t")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    make = lambda: radix_net([[2] * 6], [16] * 7, blocks=20, batch_rows=60)  # noqa: E731
    network = make()
    shuffled = np.random.default_rng(0).permutation(network.n_connections)
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name) / "tsv", Path(name) / "network.npz"
        folder.mkdir()
        write_tsv(network, folder)
        native.save(network, file)
        figures = {
            "radix_net 1024 x 120": make,
            "check, connections in stored order": network.with_,
            "reorder at random and check": lambda: network.in_order(shuffled),
            "save npz": lambda: native.save(network, file),
            "load npz": lambda: load(file),
            "load tsv folder": lambda: load(folder),
            "forward pass, 60 samples": lambda: forward(network),
            "convert weights to int8 with report": lambda: to_bits(network.weights, "int8"),  # type: ignore[arg-type]
            "bert_ffn 10 % (838,860 connections)": bert_ffn,
        }
        print(f"{network.n_connections} connections, npz of {file.stat().st_size} bytes")
        for text, work in figures.items():
            print(f"{text:40s} {median_cpu_s(work):6.2f} s")


if __name__ == "__main__":
    main()
