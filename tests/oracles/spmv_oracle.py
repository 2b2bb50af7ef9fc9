"""A sparse product spelled out: a core row by row, and a GPU lane by lane with plain caches."""

from __future__ import annotations

from collections import Counter

import numpy as np

from cython_ext.trace.walk import neuron_bits
from oracles.cache_oracle import PlainCache
from traces.trace.chunks import STREAMS, Chunk, Trace

REGION_STREAMS = {"row_pointers": "row_pointers", "column_ids": "ids", "values": "values"}
REGION_STREAMS |= {"x": "inputs", "y": "outputs"}


def row_wise(problem):
    """Yield (region, element, is_store) of every access of one core."""
    for p in range(len(problem.x_shift)):
        yield "row_pointers", 0, 0
        for r in range(problem.n_rows):
            yield "row_pointers", r + 1, 0
            for k in range(int(problem.start[r]), int(problem.start[r + 1])):
                yield "column_ids", k, 0
                yield "values", k, 0
                yield "x", int(problem.column[k] + problem.x_shift[p]), 0
            yield "y", int(r * problem.y_stride + problem.y_shift[p]), 1


def element_bytes(problem):
    """Bytes of an element of each region."""
    ids, values = problem.id_bytes, max(problem.value_bits // 8, 1)
    pointers = problem.memory.region("row_pointers").n_bytes // len(problem.start)
    vector = problem.vector_bytes
    return {"row_pointers": pointers, "column_ids": ids, "values": values, "x": vector, "y": vector}


def row_wise_trace(problem):
    """The trace of one core: sums stay in a register and start at zero."""
    sizes, base, y = element_bytes(problem), problem.memory.base_address, []
    for p in range(len(problem.x_shift)):
        y.append(neuron_bits(problem.products(p), problem.vector_format).reshape(-1, problem.vector_bytes))
    rows, payload, stores = [], [], iter(np.concatenate(y))
    for region, element, store in row_wise(problem):
        size = sizes[region]
        at = problem.address(region) + (element * problem.value_bits // 8 if region == "values" else element * size)
        rows.append((at, size, store, STREAMS.index(REGION_STREAMS[region])))
        payload.append(next(stores) if store else problem.memory.image[at - base : at - base + size])
    address, size, op, stream = np.array(rows, np.uint64).T
    columns = (address.copy(), *(column.astype(np.uint8) for column in (size, op, stream)))
    offset = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
    elements = {stream: sizes[region] for region, stream in REGION_STREAMS.items()}
    chunk = Chunk(*columns, offset, np.concatenate(payload))
    return Trace.from_chunks([chunk], problem.memory, element_bytes=elements | {"partial_sums": problem.vector_bytes})


def gpu(problem, spec, sizes):
    """Return (L1 accesses by region, L1 counts, L2 counts, memory traffic, clocks). sizes: bytes of an element."""
    made, busy = Counter(), 0
    l1 = [plain(spec.l1) for _ in range(spec.sms)]
    l2 = plain(spec.l2)
    traffic = []
    for p in range(len(problem.x_shift)):
        requests = []  # (step, sm, number, transaction)
        clocks = [0] * spec.sms
        for sm in range(spec.sms):
            waiting = [r for r in range(problem.n_rows) if r // spec.warps_per_block % spec.sms == sm]
            places = [[row, 0] for row in waiting[: spec.warps_per_sm]]
            waiting = waiting[spec.warps_per_sm :]
            step = number = 0
            while places:
                for place in places:
                    row, part = place
                    low, high = int(problem.start[row]), int(problem.start[row + 1])
                    lanes = range(low + part * spec.warp_lanes, min(low + (part + 1) * spec.warp_lanes, high))
                    last = low + (part + 1) * spec.warp_lanes >= high
                    instructions = []
                    if part == 0:
                        instructions += [("row_pointers", [row], 0), ("row_pointers", [row + 1], 0)]
                    instructions += [("column_ids", lanes, 0), ("values", lanes, 0)]
                    instructions += [("x", [int(problem.column[k] + problem.x_shift[p]) for k in lanes], 0)]
                    if last:
                        instructions += [("y", [int(row * problem.y_stride + problem.y_shift[p])], 1)]
                    for region, elements, store in instructions:
                        sectors = set()
                        for e in elements:
                            first = problem.address(region) + e * sizes[region]
                            for byte in range(first, first + sizes[region]):
                                sectors.add(byte // spec.sector_bytes)
                        clocks[sm] += len({s * spec.sector_bytes // spec.l1_bytes_per_clock for s in sectors})
                        for sector in sorted(sectors):
                            made[region] += 1
                            for out in l1[sm].access(store, sector * spec.sector_bytes, spec.sector_bytes):
                                requests.append((step, sm, number, out))
                                number += 1
                    place[1] += 1
                    if last:
                        place[0] = None
                kept = []
                for place in places:
                    if place[0] is not None:
                        kept.append(place)
                    elif waiting:
                        kept.append([waiting.pop(0), 0])
                places = kept
                step += 1
        for _, _, _, (address, size, is_write) in sorted(requests, key=lambda r: r[:3]):
            traffic += l2.access(is_write, address, size)
        busy += max(clocks)
    return made, sum((one.counts for one in l1), Counter()), l2.counts, traffic, busy


def plain(spec):
    return PlainCache(spec.sets, spec.ways, spec.line_bytes, spec.policy, spec.write, spec.allocate)
