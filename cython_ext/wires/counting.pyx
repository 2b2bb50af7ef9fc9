"""Ones, toggles and rising edges of every wire of a bus that streams share (rules: hwmodel.bus, loops: counters.h)."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from cython_ext.common.checks cimport need

cdef extern from "wires/counters.h" nogil:
    enum: EW_LANES
    ctypedef struct ew_bus:
        uint8_t level[64], flag[64]
        int64_t lanes, place
    ctypedef struct ew_sent:
        const uint8_t *src, *flags, *idles
        const int64_t *ends, *streams
        int64_t segments
        uint8_t rest
    void send "EDGEWATT_WITH_AVX2(ew_send)"(ew_bus *, const ew_sent *, uint8_t *, int64_t *)
    bint ew_counters_hold(const uint8_t *counters, int64_t n_streams, int64_t lanes)
    int64_t ew_counters_bytes(int64_t n_streams, int64_t lanes)
    void ew_empty(uint8_t *counters, int64_t n_streams, int64_t lanes, int64_t *counts)


def new_counters(int64_t streams, int64_t lanes):
    """Return uint8, zeros: counters of this many streams, to be given to `count_wires` and `empty_counters`."""
    need(streams >= 0 and 1 <= lanes <= EW_LANES, "streams, and lanes of the bus")
    cdef int64_t size = ew_counters_bytes(streams, lanes)
    room = np.zeros(size + 63, np.uint8)
    return room[-room.ctypes.data & 63 :][:size]


cdef int _check_counters(uint8_t[::1] counters, int64_t[:, :, ::1] counts, int64_t lanes) except -1:
    cdef int64_t n = counts.shape[0]
    need(counts.shape[1] == 3 and counts.shape[2] == 9 * lanes, "three counts of every wire")
    need(counters.shape[0] == ew_counters_bytes(n, lanes), "counters for each stream")
    return need(n == 0 or (<size_t>&counters[0] % 64 == 0 and ew_counters_hold(&counters[0], n, lanes)),
                "counters of new_counters")


cdef bint _are_segments(const int64_t[::1] ends, const int64_t[::1] streams, int64_t n, int64_t n_streams) noexcept:
    """Whether the segments, at least one, follow each other in the n bytes and are of streams that there are."""
    cdef int64_t k, segments = ends.shape[0]
    cdef uint64_t signs, last = <uint64_t>(n_streams - 1)
    with nogil:  # where a segment is bad, one of these has its highest bit; without branches, for it is a pass over all
        signs = <uint64_t>ends[0] | <uint64_t>(ends[segments - 1] > n) << 63
        for k in range(segments):
            signs |= <uint64_t>streams[k] | (last - <uint64_t>streams[k])
        for k in range(1, segments):
            signs |= <uint64_t>ends[k] | (<uint64_t>ends[k] - <uint64_t>ends[k - 1])
    return not signs >> 63


def count_wires(const uint8_t[::1] data, flags, const int64_t[::1] ends, const int64_t[::1] streams, idles,
                bint idle_level, uint8_t[::1] level, uint8_t[::1] flag_level, int64_t lane, uint8_t[::1] counters,
                int64_t[:, :, ::1] counts):
    """Send `data` over the bus and count, in the counters and, where those are full, in counts[stream, (ones, toggles,
    rising), wire]; return the next byte's lane, or -1 where a segment ends before it starts or beyond the data, or is
    of no stream: then nothing is counted.

    Segment k is the bytes up to ends[k] and belongs to streams[k]; where idles[k], all wires first return to
    `idle_level` (those edges belong to segment k). flags: packed uint8 or None. idles: uint8 or None. level,
    flag_level: uint8[lanes], updated.
    """
    cdef int64_t lanes = level.shape[0], j, segments = ends.shape[0], n = data.shape[0]
    cdef ew_bus bus
    cdef ew_sent sent
    cdef const uint8_t[::1] flag_view, idle_view
    need(1 <= lanes <= EW_LANES and 0 <= lane < lanes and flag_level.shape[0] == lanes, "1 to 64 lanes, a level for each")
    need(counts.shape[0] > 0, "streams")
    _check_counters(counters, counts, lanes)
    need(streams.shape[0] == segments, "a stream for each segment")
    if segments == 0:
        return lane
    sent.src = sent.flags = sent.idles = NULL
    if flags is not None and n:
        flag_view = flags
        need(flag_view.shape[0] >= (n + 7) // 8, "a flag for each byte")
        sent.flags = &flag_view[0]
    if idles is not None:
        idle_view = idles
        need(idle_view.shape[0] == segments, "a mark for each segment")
        sent.idles = &idle_view[0]
    if n:
        sent.src = &data[0]
    if not _are_segments(ends, streams, n, counts.shape[0]):
        return -1
    sent.ends, sent.streams, sent.segments = &ends[0], &streams[0], segments
    sent.rest = 0xff if idle_level else 0
    bus.lanes = lanes
    bus.place = lane
    for j in range(lanes):
        bus.level[j] = level[j]
        bus.flag[j] = flag_level[j] & 1
    with nogil:
        send(&bus, &sent, &counters[0], &counts[0, 0, 0])
    for j in range(lanes):
        level[j] = bus.level[j]
        flag_level[j] = bus.flag[j]
    return bus.place


def empty_counters(uint8_t[::1] counters, int64_t[:, :, ::1] counts):
    """Add the counters to the counts and set them to zero."""
    cdef int64_t lanes = counts.shape[2] // 9
    need(1 <= lanes <= EW_LANES, "1 to 64 lanes")
    _check_counters(counters, counts, lanes)
    if counts.shape[0] == 0:
        return
    with nogil:
        ew_empty(&counters[0], counts.shape[0], lanes, &counts[0, 0, 0])


def segments_by_kind(const uint8_t[::1] stream, const uint8_t[::1] is_write, which_set, int64_t n_streams, int64_t block_bytes):
    """Return (int64[k] ends in bytes, int64[k] kinds) of the runs of blocks of one kind.

    The kind of a block is stream + n_streams * (is_write + 2 * which_set); which_set: uint8[n], or one number for all.
    """
    cdef int64_t k, m = 0, kind, n = stream.shape[0], everyone = 0
    cdef const uint8_t[::1] sets = stream
    cdef bint apart = isinstance(which_set, np.ndarray)
    if apart:
        sets = which_set
    else:
        everyone = which_set
    need(is_write.shape[0] == n and sets.shape[0] == n, "a direction and a set for each block")
    out_ends, out_kinds = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] ends = out_ends, kinds = out_kinds
    with nogil:
        for k in range(n):
            kind = stream[k] + n_streams * (is_write[k] + 2 * (sets[k] if apart else everyone))
            if m == 0 or kinds[m - 1] != kind:
                kinds[m] = kind
                m += 1
            ends[m - 1] = (k + 1) * block_bytes
    return out_ends[:m], out_kinds[:m]
