"""Our models against theory, tried on random inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgewatt.checks.check import Check, equal, holds
from reorder.base import POLICIES
from traces.networks.network import Network


def theory_checks(*, seed: int = 0, cases: int = 20) -> Iterator[Check]:
    """Yield one Check for each statement, each tried on `cases` seeded random inputs."""
    rng = np.random.default_rng(seed)
    networks = [random_network(rng) for _ in range(cases)]
    yield from io_model_checks(networks)
    yield from cache_checks(rng, cases)
    yield from encoder_checks(rng, cases)
    yield from dram_checks()


def random_network(rng: np.random.Generator) -> Network:
    """Return a small random layered network in the 2-optimal order (sorted by target, then source)."""
    widths = rng.integers(2, 14, rng.integers(2, 5))
    starts = np.concatenate(([0], np.cumsum(widths)))
    pairs = []
    for layer in range(len(widths) - 1):
        present = rng.random((widths[layer + 1], widths[layer])) < rng.uniform(0.1, 0.9)
        present[np.arange(widths[layer + 1]), rng.integers(0, widths[layer], widths[layer + 1])] = True
        targets, sources = np.nonzero(present)
        pairs.append((sources + starts[layer], targets + starts[layer + 1]))
    return Network(
        np.concatenate([s for s, _ in pairs]),
        np.concatenate([t for _, t in pairs]),
        n_neurons=int(starts[-1]),
        inputs=np.arange(starts[1]),
        outputs=np.arange(starts[-2], starts[-1]),
    )


def io_model_checks(networks: list[Network]) -> Iterator[Check]:
    """Theorem 1, Compact Growth (Theorem 2), Belady's optimality and inclusion (Gleinig et al. 2023)."""
    from hwmodel.fastmemory.iomodel import compact_growth_memory, count_io, io_bounds, io_curve

    memories = (3, 4, 6, 9, 14, 25)
    outside, not_minimal, early, belady, inclusion = [], [], [], [], []
    for case, network in enumerate(networks):
        bounds, n = io_bounds(network), network.n_neurons
        curves = {policy: io_curve(network, None, memories, policy) for policy in POLICIES}
        for m, counts in zip(memories, curves["min"], strict=True):
            if not bounds.lower_total <= counts.total <= bounds.upper_total:
                outside.append(f"network {case}, M = {m}: {counts.total}")
        for i, m in enumerate(memories):
            if any(curves["min"][i].reads > curves[policy][i].reads for policy in POLICIES):
                belady.append(f"network {case}, M = {m}")
        for policy in ("lru", "min"):
            reads = [counts.reads for counts in curves[policy]]
            if reads != sorted(reads, reverse=True):
                inclusion.append(f"network {case}, {policy}")
        for policy in POLICIES:
            if count_io(network, memory=n + 1, policy=policy).total != bounds.lower_total:
                not_minimal.append(f"network {case}, {policy}")
        enough = max(3, compact_growth_memory(network))
        if count_io(network, memory=enough).total != bounds.lower_total:
            early.append(f"network {case}: M = {enough} is not enough")
        if enough > 3 and count_io(network, memory=enough - 1).total == bounds.lower_total:
            early.append(f"network {case}: M = {enough - 1} is enough already")
    yield holds("I/O model: Theorem 1", "W+N+S <= 2-optimal order under MIN <= 2(W+N-I)", outside)
    yield holds("I/O model: room for all", "M = N+1 gives W+N+S, every policy", not_minimal)
    yield holds("I/O model: Theorem 2", "W+N+S exactly from the Compact Growth memory on", early)
    yield holds("I/O model: Belady", "reads(MIN) <= reads(any policy)", belady)
    yield holds("I/O model: inclusion", "reads fall with M (LRU, MIN)", inclusion)


def cache_checks(rng: np.random.Generator, cases: int) -> Iterator[Check]:
    """Conservation, Belady and inclusion for line caches."""
    from hwmodel.caches.cache import simulate_cache

    conservation, belady, inclusion = [], [], []
    for case in range(cases):
        n = 400
        op = rng.integers(0, 2, n)
        address = (rng.integers(0, 64, n) * 16 + rng.integers(0, 16, n)).astype(np.uint64)
        size = rng.integers(1, 9, n)
        missed = {}
        for policy in ("lru", "fifo", "rr", "random", "plru", "min"):
            counts = simulate_cache(op, address, size, size_bytes=256, line_bytes=16, ways=4, policy=policy)
            lines = int((((address + size.astype(np.uint64) - 1) >> 4) - (address >> 4) + 1).sum())
            if counts.hits + counts.misses != lines or counts.misses != counts.evictions + counts.resident_at_end:
                conservation.append(f"trace {case}, {policy}")
            missed[policy] = counts.misses
        if any(missed["min"] > misses for misses in missed.values()):
            belady.append(f"trace {case}")
        sizes = [
            simulate_cache(op, address, size, size_bytes=ways * 16, line_bytes=16, ways=ways).misses
            for ways in (1, 2, 4, 8, 16)
        ]
        if sizes != sorted(sizes, reverse=True):
            inclusion.append(f"trace {case}")
    yield holds("cache: conservation", "hits + misses = line look-ups; misses = evictions + resident", conservation)
    yield holds("cache: Belady", "misses(MIN) <= misses(any policy)", belady)
    yield holds("cache: inclusion", "a larger fully associative LRU never misses more", inclusion)


def encoder_checks(rng: np.random.Generator, cases: int) -> Iterator[Check]:
    """Every encoder decodes to what it was given; DBI costs what it must on all 256 bytes."""
    from hwmodel.encoders import ENCODERS, decode, encode

    for name in ENCODERS:
        wrong = []
        for case in range(cases):
            data = rng.integers(0, 256, 32 * int(rng.integers(1, 20)), dtype=np.uint8)
            data[rng.random(len(data)) < 0.3] = 0
            encoded = encode(data, name, element_bytes=2)
            if not np.array_equal(decode(encoded, name, element_bytes=2), data):
                wrong.append(f"input {case}")
        yield holds(f"encoder {name}", "decode(encode(x)) = x", wrong)
    ones = [min(weight, 9 - weight) for weight in (value.bit_count() for value in range(256))]
    dbi = encode(np.arange(256, dtype=np.uint8), "dbi-dc", element_bytes=1)
    yield equal("dbi-dc: ones on every byte once (3.26953 a byte, DBI wire counted)", sum(ones), dbi.ones)


def dram_checks() -> Iterator[Check]:
    """Unloaded read latencies of each shipped part are the sums its timing says."""
    from hwmodel.dram.controller import ControllerSpec
    from hwmodel.dram.engine import simulate_dram
    from hwmodel.parts.part import AddressMap
    from hwmodel.parts.part_file import load_part, part_names

    for name in part_names():
        part = load_part(name)
        t, burst = part.timing, part.organisation.burst_cycles
        named = ControllerSpec().controller_latency_cycles
        fields = AddressMap.parse(part.address_map, part.organisation).fields
        next_row = 1 << next(field.source for field in fields if field.name == "row" and field.target == 0)
        apart = 4 * (t.tRC + t.RL + burst)  # far enough apart that only the state of the bank matters
        arrival = np.array([0, apart, 2 * apart])
        run = simulate_dram([0, 0, next_row], [0, 0, 0], arrival, part=part)
        sums = {"closed bank": t.tRCD + t.RL, "row hit": t.RL, "row conflict": t.tRP + t.tRCD + t.RL}
        for (state, total), latency in zip(sums.items(), run.done_cycle - arrival, strict=True):
            yield equal(f"{name}: unloaded read, {state} (cycles)", named + total + burst, int(latency))
