"""A first configuration for one's own network: every line says what it is for and what else could stand there."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.config.kinds import BLOCKING, DEFAULT_SYSTEM
from edgewatt.config.source import NetworkFiles
from traces.base.document import read_document
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.resources import network_file, shipped_path
from traces.networks.network import Network


def comparison(network: Network, source: NetworkFiles, system: str) -> dict[str, Any]:
    orders = ["two-optimal", BLOCKING, "auto"]
    chosen = {"name": network.name, "network": source.section, "system": system, "orderings": orders}
    # Scratchpads stream a weight with each connection, a convolution's too.
    return chosen if network.weight_ids is None else {**chosen, "layout": {"kind": "tuples"}}


def init(
    files: str | Path | Sequence[str | Path] | NetworkFiles,
    output: str | Path,
    *,
    system: str = DEFAULT_SYSTEM,
    force: bool = False,
) -> Network:
    """Write a commented configuration for a network, and return the network.

    files: a file, a folder, one matrix file a layer, or a `NetworkFiles`, which says how they are read. force:
    replaces `output`. Raises InputError where it is there already, for an unknown system, or where the files hold no
    network.
    """
    given = [files] if isinstance(files, (str, Path)) else files
    source = given if isinstance(given, NetworkFiles) else NetworkFiles(tuple(map(str, given)))
    target = Path(output)
    if target.exists() and any(os.path.exists(file) and os.path.samefile(target, file) for file in source.files):
        raise InputError(f"{output}: is the network that the configuration names: name another file with -o")
    if target.exists() and not force:
        raise InputError(f"{output}: is there already; replace it with --force or name another file with -o")
    network = source.network("init")
    text = starter(network, source, system=system, folder=Path(os.path.realpath(target)).parent)
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))
    return network


def starter(network: Network, source: NetworkFiles, *, system: str, folder: str | Path) -> str:
    """Return YAML that runs a network on a shipped system; its paths are relative to `folder`."""
    from hwmodel.fastmemory.iomodel import io_bounds

    data = read_document(shipped_path("systems", system)).data
    described = str(data.get("description", system)).partition("\n")[0]
    bounds = io_bounds(network)
    for file in source.files:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            raise InputError(f"{file}: a configuration is UTF-8, and this name is not: rename the file first") from None
    named = []
    for file in source.files:
        shipped = network_file(Path(file).stem, folder) == str(file)
        named.append(json.dumps(Path(file).stem if shipped else os.path.relpath(file, folder)))
    files = f"file: {named[0]}" if len(named) == 1 else f"files: [{', '.join(named)}] # one a layer, input first"
    how = "".join(f"\n  {key}: {json.dumps(value)}" for key, value in source.options.items())
    layout = "" if network.weight_ids is None else ", kind: tuples"  # scratchpads stream a weight with each connection
    moves, blocking = 10 * network.n_connections, BLOCKING
    weights = "" if network.weights is not None else "\n# It has no weights: ones and toggles are those of weights 1."
    name = "".join(c if c.isprintable() else " " for c in network.name)
    return f"""\
# {name}: {network.n_connections:,} connections, {network.n_neurons:,} neurons{_layers(network)}.{weights}
# Whatever the order, one inference takes at least {bounds.lower_total:,} I/Os of a fast memory, and the 2-optimal order
# at most {bounds.upper_total:,} (Gleinig et al. 2023, Theorem 1).
#
#   edgewatt run {{this file}}                        one line for each ordering and format below
#   edgewatt run {{this file}} -s formats=[fp16]      with another value
#   edgewatt list orderings                         what else may stand below; also formats, systems, parts, encoders

name: {json.dumps(network.name.encode("utf-8", "replace").decode())}

# The work. Also: one file a layer (files: [a.npz, b.npz]), or a generator (generate: {{kind: random-layered, ...}}).
network:
  {files}{how}
  # prune: {{density: 0.1}}        # keep the largest tenth of the weights
  # names: [fc1.weight, fc2.*]    # tensors of a safetensors file, in order; operators of a model
  # activation: gelu              # instead of what the file says, or of ReLU where it says none

# The machine: {described}
system: {system}                  # edgewatt list systems; or say caches, scratchpad, encoder and dram yourself
# caches: [{{size_bytes: 8 KiB, ways: 4, policy: plru}}]
# encoder: base-xor+dbi-dc        # edgewatt list encoders
# dram: {{part: lpddr4-3200}}       # edgewatt list parts

# Orders of the work; changes are against row by row.
orderings:
  - two-optimal                   # row by row: target after target, as sparse matrix products do
  - {blocking}                         # simple blocking
  - auto                          # constructions, then a search; {{kind: auto, moves: {moves}}} for so many steps
  # - {{kind: connection-reordering, iterations: 20000}} # annealing (Gleinig et al. 2023)
# search: {{objective: energy}}     # what searches lower: energy of the machine (default), time, bytes or io
# fast_memory: {{size: 100}}        # M of the I/O model (default: the rows that the machine's memory holds)

formats: [fp32, int8]             # of weights; fp16, bf16, fp8_e4m3, int4, ...: edgewatt list formats
layout: {{lanes: 16{layout}}}               # input vectors at a time; neuron_format: of activations

# A sweep instead: put this file's name under `base:` of another one and what varies under `grid:`
#   base: this.yaml
#   grid: {{fast_memory.size: [25, 50, 100], encoder: [raw, dbi-dc]}}
"""


def _layers(network: Network) -> str:
    if network.layer is None:
        return ""
    layers = np.unique(network.layer)
    if len(layers) > 11:
        return ""
    targets = [len(np.unique(network.targets[network.layer == layer])) for layer in layers]
    widths = [len(network.inputs), *targets]
    rest = network.n_neurons - len(np.union1d(network.inputs, network.targets))
    fed = f" and {rest:,} that nothing feeds" if rest else ""
    return f", layers of {' -> '.join(f'{width:,}' for width in widths)}{fed}"
