"""Orders that are given, not made: the one that the network's file has, and one from a file of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task, check_order
from reorder.edges.search.base_orders import own_is_topological
from traces.base.archive import read_npy, read_npz
from traces.base.checks import plain_digits
from traces.base.errors import InputError, shown
from traces.base.memory import read_within
from traces.networks.network import Network


@ORDERINGS.register(
    "own",
    summary="the order of the network's own file",
    portfolio=1.5,
    suits=own_is_topological,
    effort=0.02,
)
def own(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the connections as they stand; an error, from the check of every order, if that is not topological."""
    return Ordering(np.arange(network.n_connections), "own")


@dataclass(frozen=True)
class FileParameters:
    """path: npz (array `edges`, as `edgewatt order -o` writes it), npy, or text with one number a line.

    Number k is the index, in the network's own order, of the connection to process k-th.
    """

    path: str = field(metadata={"file": True})

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not self.path:
            raise InputError(f"path must name a file with an order, not {shown(self.path)}")


@ORDERINGS.register("file", summary="an order from a file: npz, npy or text, checked", parameters=FileParameters)
def from_file(network: Network, task: Task, parameters: FileParameters) -> Ordering:
    """Read an order and check it against the network. Raises InputError naming the file."""
    edges = read_order(parameters.path)
    try:
        return Ordering(check_order(network, edges), "file", {"path": parameters.path})
    except InputError as error:
        raise InputError(
            f"{parameters.path}: {error}: an order belongs to one network with its connections as they were numbered"
        ) from None


def read_order(path: str) -> np.ndarray:
    """Return the integers of an order file, unchecked. Raises InputError naming the file."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        arrays = read_npz(path, ["edges"])
        if "edges" not in arrays:
            raise InputError(f"{path}: holds no array 'edges'; `edgewatt order NETWORK -o FILE` writes one")
        return arrays["edges"]
    return read_npy(path) if suffix == ".npy" else _read_text(path)


def _read_text(path: str) -> np.ndarray:
    try:
        lines = read_within(Path(path), 20).decode("utf-8").split()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as text ({error}); an order is npz, npy or text") from error
    try:
        return np.array([plain_digits(word) for word in lines], np.int64) if lines else np.empty(0, np.int64)
    except (ValueError, OverflowError):
        bad = next(k for k, word in enumerate(lines) if not re.fullmatch(r"[-+]?[0-9]{1,18}", word, re.ASCII))
        raise InputError(f"{path}: entry {bad + 1} is {lines[bad][:40]!r}, no index of a connection") from None
