"""Ones, toggles and rising edges of every wire of a bus that streams share (rules: hwmodel.bus, loops: wires.h)."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from cython_ext.common.checks cimport need

cdef extern from "wires/wires.h" nogil:
    ctypedef struct ew_bus:
        uint8_t past[64]
        uint64_t past_flags
        int64_t lanes
        int64_t place
    ctypedef struct ew_tally:
        int64_t bytes
    void ew_send(ew_bus *bus, const uint8_t *src, const uint8_t *flags, int64_t flag_bytes, const int64_t *ends,
                 const int64_t *streams, const uint8_t *idles, int64_t segments, uint8_t rest, ew_tally *tallies,
                 int64_t *counts)
    void ew_settle(ew_tally *tally, int64_t lanes, int64_t *counts)


def new_tallies(int64_t streams):
    """Return uint8, zeros: counters of this many streams, to be given to `count_wires` and `settle`."""
    room = np.zeros(streams * sizeof(ew_tally) + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][: streams * sizeof(ew_tally)]


def first_bad_segment(const int64_t[::1] ends, const int64_t[::1] streams, int64_t n, int64_t n_streams):
    """Return the first segment that ends before it starts or beyond n, or is of no stream; -1 if there is none."""
    cdef int64_t k, start = 0
    cdef bint bad = False
    need(streams.shape[0] == ends.shape[0], "a stream for each segment")
    with nogil:
        for k in range(ends.shape[0]):
            bad |= (ends[k] < start) | (ends[k] > n) | (streams[k] < 0) | (streams[k] >= n_streams)
            start = ends[k]
    if not bad:
        return -1
    start = 0
    for k in range(ends.shape[0]):
        if ends[k] < start or ends[k] > n or streams[k] < 0 or streams[k] >= n_streams:
            return k
        start = ends[k]


def count_wires(const uint8_t[::1] data, flags, const int64_t[::1] ends, const int64_t[::1] streams, idles,
                bint idle_level, uint8_t[::1] level, uint8_t[::1] flag_level, int64_t lane, uint8_t[::1] tallies,
                int64_t[:, :, ::1] counts):
    """Send `data` over the bus and count, in tallies and, where those are full, in counts[stream, (ones, toggles,
    rising), wire]; return the next byte's lane.

    Segment k is the bytes up to ends[k] and belongs to streams[k] (checked: `first_bad_segment`); where idles[k], all
    wires first return to `idle_level` (those edges belong to segment k). flags: packed uint8 or None. idles: uint8 or
    None. level, flag_level: uint8[lanes], updated.
    """
    cdef int64_t lanes = level.shape[0], j, segments = ends.shape[0], n = data.shape[0]
    cdef ew_bus bus
    cdef const uint8_t[::1] flag_view, idle_view
    cdef const uint8_t *flag_bytes = NULL
    cdef const uint8_t *idle_marks = NULL
    cdef const uint8_t *bytes_ = NULL
    need(1 <= lanes <= 64 and 0 <= lane < lanes and flag_level.shape[0] == lanes, "1 to 64 lanes, a level for each")
    need(counts.shape[1] == 3 and counts.shape[2] == 9 * lanes, "three counts of every wire")
    need(tallies.shape[0] >= counts.shape[0] * <int64_t>sizeof(ew_tally), "a tally for each stream")
    need(streams.shape[0] == segments, "a stream for each segment")
    if segments == 0:
        return lane
    if flags is not None and n:
        flag_view = flags
        need(flag_view.shape[0] >= (n + 7) // 8, "a flag for each byte")
        flag_bytes = &flag_view[0]
    if idles is not None:
        idle_view = idles
        need(idle_view.shape[0] == segments, "a mark for each segment")
        idle_marks = &idle_view[0]
    if n:
        bytes_ = &data[0]
    bus.lanes = lanes
    bus.place = lane
    bus.past_flags = 0
    for j in range(lanes):
        bus.past[j] = level[(lane + j) % lanes]
        bus.past_flags |= <uint64_t>(flag_level[(lane + j) % lanes] & 1) << j
    with nogil:
        ew_send(&bus, bytes_, flag_bytes, (n + 7) // 8, &ends[0], &streams[0], idle_marks, segments,
                0xff if idle_level else 0, <ew_tally *>&tallies[0], &counts[0, 0, 0])
    lane = bus.place % lanes
    for j in range(lanes):
        level[(lane + j) % lanes] = bus.past[j]
        flag_level[(lane + j) % lanes] = bus.past_flags >> j & 1
    return lane


def settle(uint8_t[::1] tallies, int64_t[:, :, ::1] counts):
    """Add the tallies to the counts and empty them."""
    cdef int64_t k, lanes = counts.shape[2] // 9
    cdef ew_tally *each
    need(tallies.shape[0] >= counts.shape[0] * <int64_t>sizeof(ew_tally), "a tally for each stream")
    if counts.shape[0] == 0:
        return
    each = <ew_tally *>&tallies[0]
    with nogil:
        for k in range(counts.shape[0]):
            ew_settle(each + k, lanes, &counts[k, 0, 0])
