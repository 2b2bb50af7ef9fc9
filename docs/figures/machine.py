"""Figures of the pages about the machine."""

from __future__ import annotations

import numpy as np
from drawing import WIDTH, Picture, bars, lines
from work import tiny

import edgewatt as ew
from traces.trace.chunks import STREAMS


def traces() -> str:
    """Draw the accesses of one inference of the example, stream by stream."""
    network = tiny()
    trace = ew.build_trace(network, ew.order(network, "two-optimal", memory=4), layout="csr", sample=0)
    (chunk,) = list(trace)
    names = ("values", "ids", "row pointers", "inputs", "partial sums", "outputs")
    picture = Picture("Every load and store of one inference: address over time", 330)
    left, right, top, bottom = 60, WIDTH - 30, 80, 286
    picture.legend(names[:5], 16, 58)
    picture.text(16, 58 + 16, "open dots: stores", size=11)
    highest = int(chunk.address.max())
    for region in trace.memory.regions:
        y = bottom - region.base_address / highest * (bottom - top)
        picture.line([(left, y), (right, y)], "g")
        picture.text(right, y - 4, region.name.replace("_", " "), size=11, anchor="end")
        picture.text(left - 8, y + 4, region.base_address, size=11, anchor="end")
    stream = {"values": 0, "ids": 1, "row_pointers": 2, "inputs": 3, "partial_sums": 4, "outputs": 4}

    for i, (address, kind, op) in enumerate(zip(chunk.address, chunk.stream, chunk.op, strict=True)):
        x, y = left + 10 + i * (right - left - 20) / len(chunk), bottom - int(address) / highest * (bottom - top)
        picture.dot(x, y, f"c{stream[STREAMS[int(kind)]]}", 4)
        if op:
            picture.dot(x, y, "w", 2)
    picture.text((left + right) / 2, bottom + 30, "access after access", anchor="middle")
    return str(picture)


def caches() -> str:
    """Draw misses over the size of a cache for four policies; the order is random, so that something misses."""
    network = ew.load("configs/examples/networks/digits_small.npz")
    trace = ew.build_trace(network, ew.order(network, "random-topological", memory=113), layout="coo", sample=0)
    chunks = list(trace)
    op, address, size = (np.concatenate([getattr(c, name) for c in chunks]) for name in ("op", "address", "size"))
    series: dict[str, list[tuple[float, float]]] = {"min": [], "lru": [], "fifo": [], "srrip": []}
    for policy, points in series.items():
        for ways in (1, 2, 3, 4, 5, 6, 8, 10, 12):
            level = {"size_bytes": 512 * ways, "line_bytes": 64, "ways": ways, "policy": policy}
            counts = ew.simulate_cache(op, address, size, **level)
            points.append((ways / 2, counts.load_line_misses + counts.store_line_misses))
    return lines("Misses of an inference in a random order: 8 sets of 64-byte lines", series, "cache, KiB", "misses")


def encoders() -> str:
    """Draw the bits of 16 numbers as three encoders send them."""
    data = np.linspace(-1, 1, 16).astype(np.float16).view(np.uint8)
    picture = Picture("16 numbers from -1 to 1 (fp16) on the wires: a dark square is a one", 300)
    for n, encoder in enumerate(("raw", "base-xor", "base-xor+dbi-dc")):
        sent = ew.encode(data, encoder, element_bytes=2)
        left, side = 24 + 228 * n, 10
        picture.text(left, 60, encoder, "t")
        bits = np.unpackbits(np.asarray(sent.data).reshape(16, 2)[:, ::-1], axis=1)
        picture.bits(bits.tolist(), left, 72, side)
        if sent.flags is not None and encoder.endswith("dc"):
            flags = np.unpackbits(np.asarray(sent.flags, np.uint8), bitorder="little")[:32].reshape(-1, 2)[:, ::-1]
            picture.bits(flags.tolist(), left + 16.5 * (side + 1), 72, side, "c1")
        picture.text(left, 276, f"{sent.ones} ones, {sent.toggles} toggles")
    picture.text(WIDTH - 16, 294, "right of the data: the inversion flags, counted as well", size=12, anchor="end")
    return str(picture)


def dram() -> str:
    """Draw the commands of six reads, two of which need another row."""
    address = np.array([0, 64, 128, 65536, 65600, 192])
    run = ew.simulate_dram(address, np.zeros(6, bool), 4 * np.arange(6), part="lpddr4-3200", trace=True)
    names = {0: "ACT", 1: "RD", 5: "PRE"}
    picture = Picture("Six reads on lpddr4-3200: requests, commands of bank 0, data", 250)
    left, right = 90, WIDTH - 30
    last = int(run.total_cycles) + 4
    at = lambda cycle: left + cycle * (right - left) / last  # noqa: E731
    for y, words in ((84, "accepted"), (134, "commands"), (184, "data sent")):
        picture.text(left - 10, y + 4, words, "t", 13, "end")
        picture.line([(left, y), (right, y)], "g")
    for i, (start, end) in enumerate(zip(run.accept_cycle, run.done_cycle, strict=True)):
        row = f"c{int(address[i] >= 65536)}"
        picture.dot(at(int(start)), 84, row, 4)
        picture.rect(at(int(end) - 8), 174, at(8) - at(0) - 1, 20, row, 2)
        picture.text(at(int(end) - 4), 188, i, "w", 12, "middle")
    (trace,) = run.command_trace
    for command in trace:
        x = at(int(command["cycle"]))
        picture.rect(x - 1.5, 122, 3, 24, f"c{int(command['row'] != 0)}")
        picture.text(x, 116, names[int(command["command"])], size=11, anchor="middle")
    for cycle in range(0, last, 20):
        picture.text(at(cycle), 222, cycle, size=12, anchor="middle")
    picture.text((left + right) / 2, 242, "clock cycles; colours are the two rows of the bank", anchor="middle")
    return str(picture)


def dram_parts() -> str:
    """Draw the energy of a bit inside some of the shipped parts, reading 64 KiB in sequence."""
    found = {}
    for name in ("lpddr4-3200", "lpddr5-6400", "lpddr6-10667", "ddr4-3200-x8", "ddr5-4800-x8", "hbm2", "hbm3"):
        part = ew.dram.load_part(name)
        address = np.arange(0, 65536, part.organisation.burst_bytes, dtype=np.int64)
        run = ew.simulate_dram(address, np.zeros(len(address), bool), np.zeros(len(address), np.int64), part=part)
        found[name] = round(float(run.core_pj_per_bit), 2)
    return bars(
        "Reading 64 KiB in sequence: energy inside the part", found, "pJ for each bit, without the wires", unit=" pJ"
    )


def records() -> str:
    """Draw where the energy of a point goes: groups of a record's terms."""
    (record,) = ew.run({"network": {"file": "configs/examples/networks/digits_small.npz"}, "system": "edge"})
    energy = record.results["energy_pj"]
    parts = {
        "data and DBI wires": energy["io"],
        "strobes, clock, commands": energy["interface"] - energy["io"],
        "inside the DRAM": energy["dram"],
        "cache (estimate)": energy["onchip"],
        "multiply-adds (estimate)": energy["compute"],
    }
    assert abs(sum(parts.values()) / energy["total"] - 1) < 1e-9
    shown = {name: float(f"{pj / 1e3:.4g}") for name, pj in parts.items()}
    return bars(
        "energy_pj of one record: digits_small on the system edge",
        shown,
        "nJ an inference; counts times sourced constants",
        unit=" nJ",
    )


def engine() -> str:
    """Draw what bounds the time of two systems on the same work."""
    picture: dict[str, float] = {}
    for system in ("scratchpad-8k", "application-core"):
        (record,) = ew.run({"network": {"file": "configs/examples/networks/digits_small.npz"}, "system": system})
        shares = record.results["bound_by"]
        assert abs(sum(shares.values()) - 1) < 1e-9
        picture |= {f"{system}: {name}": float(f"{100 * share:.3g}") for name, share in shares.items() if share > 0.001}
    return bars(
        "What bounds the time: digits_small row by row, 16 inputs at a time", picture, "% of the time", unit=" %"
    )


def verdicts() -> str:
    """Draw the three orders that a verdict compares on one machine."""
    orders = ["two-optimal", "tiles", {"kind": "residency", "moves": 200_000}]
    network = {"file": "configs/examples/networks/digits_small.npz"}
    records = ew.run({"network": network, "system": "scratchpad-8k", "orderings": orders})
    names = ("row by row", "simple blocking", "found")
    energies = {
        name: float(f"{record.results['energy_pj']['total'] / record.config['layout']['lanes'] / 1e3:.4g}")
        for name, record in zip(names, records, strict=True)
    }
    return bars("digits_small on scratchpad-8k: energy by order", energies, "nJ an inference, 16 at a time", unit=" nJ")


FIGURES = {
    "engine": engine,
    "verdicts": verdicts,
    "traces": traces,
    "caches": caches,
    "encoders": encoders,
    "dram": dram,
    "dram-parts": dram_parts,
    "records": records,
}
