"""Write the golden files of tests/golden: python tests/golden_files.py (replay | schedule | traces) ...

replay: our own counts on the shipped network. traces: hashes of whole traces by layout and format, made by commit
fbff248, before layouts had files of their own, and again when neurons that nothing feeds took their activated bias.
schedule: numbers of generated operator graphs, from the slow versions in tests/oracles (a few minutes). A golden number
proves that nothing moved, not that it is right: the property tests do that. A change is breaking; review its diff.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.operators.request import load_graph
from hwmodel.caches.spec import CacheSpec
from hwmodel.machine import Machine
from hwmodel.replay import replay
from reorder.operators.rewriting.rewrite import rewrite_graph
from reorder.operators.schedule.operator_problem import OperatorProblem
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.readers import load
from traces.trace.build import build_trace
from traces.trace.chunks import Trace

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "configs/examples/networks/digits_small.npz"
REPLAYS = (
    ("csr-fp32-raw", Layout("csr"), (CacheSpec(1024, 32, 2),), "raw"),
    ("csr-int8-base-xor+dbi-dc", Layout("csr", value_format="int8"), (CacheSpec(1024, 32, 2),), "base-xor+dbi-dc"),
    ("tuples-fp16-dbi-ac", Layout("tuples", "fp16", "fp16"), (CacheSpec(512, 32, 2), CacheSpec(4096, 64, 4)), "dbi-ac"),
)
GRAPHS = {"darts_v1": (), "darts_v2": ("fold-concat",), "nasnet": "all", "randwire-ws16": (), "randwire-er12": ()}
KINDS = ("auto", "csr", "csc", "coo", "ell", "tuples")
FORMATS = ("fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4")
SAID = ("network", "layout", "inputs", "samples", "zeroed_weights", "padding_elements")  # at that commit
OPTIONS = (
    {},
    {"neuron_format": "bf16", "id_bits": 32, "registers": "none", "base_address": 4097},
    {"neuron_format": "fp16", "id_base": "network", "alignment_bytes": 8, "row_alignment_bytes": 32},
)


def replays() -> dict[str, Any]:
    """Return the counts of every case; whole numbers only."""
    network = load(DIGITS, kind="network")
    cases = {}
    for name, layout, caches, encoder in REPLAYS:
        result = replay(build_trace(network, layout=layout, sample=3), Machine(caches, encoder=encoder))
        total = result.total
        cases[name] = {
            "caches": [asdict(level) for level in result.caches],
            "reads": total.reads.tolist(),
            "writes": total.writes.tolist(),
            "ones": total.ones,
            "toggles": total.toggles,
        }
    return cases


def schedules() -> list[dict[str, Any]]:
    """Return everything the oracle says about each graph."""
    from oracles import schedule_oracle as oracle

    found = []
    for model, patterns in GRAPHS.items():
        graph = rewrite_graph(load_graph(model), patterns)
        peak, downsets = oracle.optimal_peak(graph)
        kahn = OperatorProblem(graph).kahn().tolist()
        arenas = ("linear", "size-best-fit", "size-first-fit")
        found.append({
            "model": model,
            "rewrite": patterns if isinstance(patterns, str) else list(patterns),
            "operators": graph.n_nodes,
            "optimal_peak": peak,
            "downsets": downsets,
            "kahn_peak": oracle.peak(graph, kahn),
            "greedy_peak": oracle.peak(graph, oracle.greedy(graph)),
            "kahn_arena": {name: oracle.arena(graph, kahn, name) for name in arenas},
            "kahn_traffic_65536": list(oracle.traffic(graph, kahn, 65536, 1024)),
        })  # fmt: skip
    return found


def networks() -> dict[str, tuple[Network, np.ndarray]]:
    """Return name -> (network, order of work): layered and not, rows whole, out of order and cut."""
    digits = load(DIGITS, kind="network")
    rng = np.random.default_rng(1)
    n = 40
    pairs = np.array([(a, b) for a in range(n) for b in range(max(a + 1, 6), n) if rng.random() < 0.2])
    fed, feeds = np.unique(pairs[:, 1]), np.unique(pairs[:, 0])
    ends = {"inputs": np.setdiff1d(np.arange(n), fed), "outputs": np.setdiff1d(fed, feeds)}
    values = {name: rng.standard_normal(k).astype(np.float32) for name, k in (("weights", len(pairs)), ("biases", n))}
    skips = Network(*pairs.T, n_neurons=n, **ends, **values, activation="clipped-relu", name="skips")
    by_target = np.lexsort((skips.sources, skips.targets))
    by_source = np.lexsort((skips.targets, skips.sources))
    layered = np.lexsort((digits.sources, -digits.targets, digits.layer))
    columns = np.lexsort((digits.targets, digits.sources, digits.layer))
    return {
        "digits": (digits, np.arange(digits.n_connections)),
        "digits-rows-backwards": (digits, layered),
        "digits-columns": (digits, columns),
        "skips-rows": (skips, by_target),
        "skips-cut": (skips, by_source),
    }


def trace_hash(trace: Trace) -> str:
    """Return the start of the SHA-256 of every byte of a trace: accesses, payload, image, regions, description."""
    digest = hashlib.sha256()
    for chunk in trace:
        for column in (chunk.address, chunk.size, chunk.op, chunk.stream, chunk.payload_offset, chunk.payload):
            digest.update(np.ascontiguousarray(column).tobytes())
    memory = trace.memory
    digest.update(memory.image.tobytes())
    regions = [(region.name, region.base_address, region.n_bytes) for region in memory.regions]
    said = [memory.base_address, memory.total_bytes, regions, {key: trace.description[key] for key in SAID}]
    digest.update(json.dumps(said, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def traces() -> dict[str, str]:
    """Return case -> hash, or that of the message where a layout cannot hold the order."""
    hash_of = {}
    for name, (network, order) in networks().items():
        for kind, form, (number, options) in itertools.product(KINDS, FORMATS, enumerate(OPTIONS)):
            case = f"{name} {kind} {form} {number}"
            try:
                layout = Layout(kind=kind, value_format=form, **options)
                hash_of[case] = trace_hash(build_trace(network, order, layout=layout, sample=[0], seed=3))
            except ValueError as error:  # InputError
                hash_of[case] = "refused: " + hashlib.sha256(str(error).encode()).hexdigest()[:16]
    return hash_of


GOLDEN = {"replay": replays, "schedule": schedules, "traces": traces}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=GOLDEN)
    for name in parser.parse_args().names:
        path = ROOT / "tests" / "golden" / f"{name}.json"
        path.write_text(json.dumps(GOLDEN[name](), indent=1) + "\n")
        print(path)
