"""Making, checking, storing, reading and running a network: a RadiX-Net of 786,432 connections."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import edgewatt as ew
from bench.harness import Case


def cases() -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        files = []
        for k in range(4):
            layer = sp.random(2048, 2048, 0.05, "csr", np.float32, rng)
            files.append(Path(folder, f"{k}.npz"))
            sp.save_npz(files[-1], layer)
        network = ew.load(files)
        fields = {"n_neurons": network.n_neurons, "inputs": network.inputs, "outputs": network.outputs}
        sources, targets = np.array(network.sources), np.array(network.targets)
        shuffled = rng.permutation(network.n_connections)
        n = network.n_connections
        yield Case("load four SciPy files", lambda: ew.load(files), n, "connection")
        yield Case("make from arrays", lambda: ew.Network(sources, targets, **fields), n, "connection")
        yield Case("in another order", lambda: network.in_order(shuffled), n, "connection")
        run = ew.compile_inference(network, lanes=16)
        inputs = rng.normal(0, 1, (16, len(network.inputs))).astype(np.float32)
        yield Case("compile inference", lambda: ew.compile_inference(network, lanes=16), n, "connection")
        yield Case("inference, 16 vectors", lambda: run.run(inputs), 16 * n, "multiply-add")
