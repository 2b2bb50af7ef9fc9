"""Our models against reference numbers made by other programs (the folder named by EDGEWATT_REFERENCE)."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from edgewatt.validate.checks import Check, equal, within
from traces.base.archive import read_npz
from traces.networks.network import Network

# Names of the encoders in the reference vectors -> ours.
VECTOR_NAMES = {
    "raw": "raw",
    "dbi_dc": "dbi-dc",
    "dbi_ac": "dbi-ac",
    "bx": "base-xor",
    "bx_dbi_dc": "base-xor+dbi-dc",
    "bx_zdr": "base-xor-zdr",
    "ubx": "universal-xor",
    "transition": "transition",
}


def reference_checks(folder: Path) -> Iterator[Check]:
    """Yield a Check per reference table that is present in the folder."""
    tables: tuple[tuple[str, Callable[[Path], Iterator[Check]]], ...] = (
        ("iomodel/results.csv", io_model_rows),
        ("cache/results.csv", cache_rows),
        ("encoders/vectors.json", encoder_vectors),
        ("dram/dramsim3_results.csv", dram_traces),
    )
    for file, check in tables:
        if (folder / file).is_file():
            yield from check(folder)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a header."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def io_model_rows(folder: Path) -> Iterator[Check]:
    """Reads and writes of the I/O model: each row of results.csv."""
    from hwmodel.fastmemory.iomodel import count_io

    networks: dict[tuple[str, str], Network] = {}
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for row in read_rows(folder / "iomodel" / "results.csv"):
        key = row["instance"], row["order"]
        if key not in networks:
            networks[key] = _io_model_instance(folder / "iomodel" / f"{key[0]}.npz", key[1])
        policy = row["policy"].lower()
        counts = count_io(networks[key], memory=int(row["M"]), policy=policy, pinning=row["pinning"])
        wanted = ("reads_neurons", "writes_live", "writes_outputs", "total")
        total[policy] += 1
        right[policy] += all(getattr(counts, name) == int(row[name]) for name in wanted)
    for policy in sorted(total):
        yield equal(f"I/O model, {policy}: rows of results.csv that agree", total[policy], right[policy])


def _io_model_instance(path: Path, order: str) -> Network:
    data = read_npz(path)
    return Network(
        data[f"src_{order}"],
        data[f"dst_{order}"],
        n_neurons=int(data["n_neurons"]),
        inputs=np.arange(int(data["n_inputs"])),
        outputs=data["outputs"].astype(np.int64),
    )


def cache_rows(folder: Path) -> Iterator[Check]:
    """Line caches: the main columns of each row of results.csv."""
    from hwmodel.caches.cache import simulate_cache

    columns = (
        *("load_line_hits", "load_line_misses", "store_line_hits", "store_line_misses"),
        *("evictions", "writebacks", "resident_at_end", "dirty_at_end"),
    )
    traces: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    rows = read_rows(folder / "cache" / "results.csv")
    right = 0
    for row in rows:
        name = row["trace"]
        if name not in traces:
            data = read_npz(folder / "cache" / f"{name}.npz")
            address = np.cumsum(data["addr_delta"].astype(np.int64)).astype(np.uint64)
            traces[name] = data["op"], address, data["size"]
        geometry = {key: int(row[key]) for key in ("size_bytes", "line_bytes", "ways")}
        counts = simulate_cache(*traces[name], **geometry, policy=row["policy"].lower())  # type: ignore[arg-type]
        right += all(getattr(counts, column) == int(row[column]) for column in columns)
    yield equal("line caches: rows of results.csv that agree", len(rows), right)


def encoder_vectors(folder: Path) -> Iterator[Check]:
    """Encoded bytes, ones and toggles of each vector."""
    from hwmodel.encoders import encode

    cases = json.loads((folder / "encoders" / "vectors.json").read_text())
    for theirs, ours in VECTOR_NAMES.items():
        present = [case for case in cases if theirs in case["enc"]]
        right = 0
        for case in present:
            wanted = case["enc"][theirs]
            encoded = encode(
                bytes.fromhex(case["hex"]), ours, element_bytes=case["elem_bytes"], bus_bytes=case["bus_bytes"]
            )
            same_bytes = "hex" not in wanted or bytes(encoded.data).hex() == wanted["hex"]
            same_ones = "ones" not in wanted or encoded.ones == wanted["ones"]
            right += same_bytes and same_ones and encoded.toggles == wanted["toggles"]
        yield equal(f"encoder {ours}: vectors that agree", len(present), right)


# Largest accepted deviation of the total cycles from DRAMsim3 (docs/concepts/dram.md).
CYCLE_TOLERANCE = {"single_bank": 0.15, "pingpong_a": 0.25}


def dram_traces(folder: Path) -> Iterator[Check]:
    """Total cycles of each trace run on the LPDDR4-3200 configuration of the reference."""
    from hwmodel.dram.engine import simulate_dram

    for row in read_rows(folder / "dram" / "dramsim3_results.csv"):
        if row["config"] != "jedec3200x16":
            continue
        requests = read_rows(folder / "dram" / f"dramsim3_{row['trace']}.csv")
        run = simulate_dram(
            np.array([int(request["addr_hex"], 16) for request in requests], np.uint64),
            np.array([request["op"] == "WRITE" for request in requests]),
            np.array([int(request["arrival_cycle"]) for request in requests]),
            part="lpddr4-3200",
        )
        tolerance = next((limit for name, limit in CYCLE_TOLERANCE.items() if row["trace"].startswith(name)), 0.05)
        yield within(
            f"DRAM, {row['trace']}: total cycles against DRAMsim3 (within {100 * tolerance:.0f} %)",
            int(row["last_completion_cycle"]),
            run.total_cycles,
            tolerance,
        )
