"""Write tests/golden/traces.json, hashes of whole traces by layout and format: python scripts/golden_traces.py

The file was made by commit fbff248, before layouts had files of their own, and again when neurons that nothing feeds
took their activated bias. A change of it is breaking.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from pathlib import Path

import numpy as np

from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.readers import load
from traces.trace.build import build_trace
from traces.trace.chunks import Trace

ROOT = Path(__file__).parents[1]
KINDS = ("auto", "csr", "csc", "coo", "ell", "tuples")
FORMATS = ("fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4")
SAID = ("network", "layout", "inputs", "samples", "zeroed_weights", "padding_elements")  # at that commit
OPTIONS = (
    {},
    {"neuron_format": "bf16", "id_bits": 32, "registers": "none", "base_address": 4097},
    {"neuron_format": "fp16", "id_base": "network", "alignment_bytes": 8, "row_alignment_bytes": 32},
)


def networks() -> dict[str, tuple[Network, np.ndarray]]:
    """Return name -> (network, order of work): layered and not, rows whole, out of order and cut."""
    digits = load(ROOT / "configs/examples/networks/digits_small.npz", kind="network")
    rng = np.random.default_rng(1)
    n = 40
    pairs = np.array([(a, b) for a in range(n) for b in range(max(a + 1, 6), n) if rng.random() < 0.2])
    fed, feeds = np.unique(pairs[:, 1]), np.unique(pairs[:, 0])
    skips = Network(
        pairs[:, 0],
        pairs[:, 1],
        n_neurons=n,
        inputs=np.setdiff1d(np.arange(n), fed),
        outputs=np.setdiff1d(fed, feeds),
        weights=rng.standard_normal(len(pairs)).astype(np.float32),
        biases=rng.standard_normal(n).astype(np.float32),
        activation="clipped-relu",
        name="skips",
    )
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


def hashes() -> dict[str, str]:
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


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    path = ROOT / "tests/golden/traces.json"
    path.write_text(json.dumps(hashes(), indent=1) + "\n")
    print(path)
