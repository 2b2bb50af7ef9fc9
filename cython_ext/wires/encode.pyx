"""Bus codes over byte streams (rules: hwmodel.encoders).

Every function continues a stream: arrays named `history`, `level` or `flag_level` hold what was sent before and are
updated in place where they say so. See encode.h for the inner loops.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from cython_ext.common.checks cimport need

cdef extern from "wires/encode.h" nogil:
    ctypedef struct ew_pattern:
        int64_t element
    ew_pattern ew_pattern_of(int64_t element, int64_t block)
    void encode_run "EDGEWATT_WITH_AVX2(ew_encode_run)"(
        const ew_pattern *, const uint8_t *, uint8_t *, uint8_t *, int64_t, int64_t, const uint8_t *, int64_t, int)
    int ew_wires_at_1 "__builtin_popcount"(unsigned x)


def aligned_empty(int64_t n):
    """Return uint8[n] that starts on a cache line."""
    need(n >= 0, "no fewer than no bytes")
    room = np.empty(n + 63, np.uint8)
    cdef const uint8_t[::1] view = room
    cdef int64_t first = <int64_t>(-<size_t>&view[0] & 63)
    return room[first : first + n]


cdef int _check_blocks(const uint8_t[::1] data, uint8_t[::1] out, const uint8_t[::1] history, int64_t element_bytes,
                       int64_t block_bytes, int64_t position) except -1:
    return need(out.shape[0] >= data.shape[0] and 0 <= element_bytes <= min(block_bytes, history.shape[0])
                and 0 <= position < block_bytes, "room for data; history of an element; elements and places in a block")


cdef int _check_lanes(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] level, int64_t lane) except -1:
    return need(out.shape[0] >= data.shape[0] and 0 <= lane < level.shape[0], "room for data, a lane of the bus")


def encode_xor_dbi(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] flags, const uint8_t[::1] history,
                   int64_t element_bytes, int64_t block_bytes, int64_t position, bint dbi):
    """Base+XOR (element_bytes > 0) and DBI-DC (dbi) of `data` in one pass.

    out: uint8[n], not overlapping data. flags: uint8[(n + 7) // 8], bit i (LSB first) for byte i, used if dbi.
    history: the element_bytes bytes before data[0]. position: offset of data[0] in its block.
    """
    cdef int64_t n = data.shape[0]
    if n == 0:
        return
    _check_blocks(data, out, history, element_bytes, block_bytes, position)
    need(not dbi or flags.shape[0] >= (n + 7) // 8, "a flag for each byte")
    cdef uint8_t none = 0
    cdef uint8_t *flag_bytes = &flags[0] if dbi else &none
    cdef const uint8_t *before = &history[0] if history.shape[0] else &none
    cdef ew_pattern pattern = ew_pattern_of(element_bytes, block_bytes)
    with nogil:
        encode_run(&pattern, &data[0], &out[0], flag_bytes, 0, n, before, position, dbi)


def encode_xor_dbi_blocks(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] flags, const int64_t[::1] elements,
                          const int64_t[::1] which, const uint8_t[::1] kind, int64_t block_bytes, bint dbi):
    """Encode whole blocks as `encode_xor_dbi` does, block k with elements of elements[which[kind[k]]] bytes.

    elements: at most 64 sizes of 1 to 64 bytes. block_bytes is a multiple of 8.
    """
    cdef int64_t k, first = 0, n = kind.shape[0], m = elements.shape[0]
    cdef ew_pattern pattern[64]
    cdef uint8_t none[64]
    cdef bint bad = False
    need(block_bytes > 0 and block_bytes % 8 == 0 and data.shape[0] % block_bytes == 0
         and data.shape[0] // block_bytes == n and out.shape[0] >= data.shape[0], "whole blocks")
    need(m <= 64 and (not dbi or flags.shape[0] * 8 >= data.shape[0]), "at most 64 sizes, a flag for each byte")
    for k in range(m):
        need(1 <= elements[k] <= min(block_bytes, 64), "elements of 1 to 64 bytes, which a block holds")
        pattern[k] = ew_pattern_of(elements[k], block_bytes)
    for k in range(which.shape[0]):
        bad |= not 0 <= which[k] < m
    for k in range(n):
        bad |= kind[k] >= which.shape[0]
    need(not bad, "a size for each kind")
    if n == 0:
        return
    cdef uint8_t *flag_bytes = &flags[0] if dbi else none
    with nogil:
        for k in range(1, n + 1):
            if k == n or which[kind[k]] != which[kind[first]]:
                encode_run(&pattern[which[kind[first]]], &data[0], &out[0], flag_bytes, first * block_bytes,
                           k * block_bytes, none, 0, dbi)
                first = k


def invert_flagged(const uint8_t[::1] data, const uint8_t[::1] flags or None, uint8_t[::1] out):
    """Undo bus inversion: out[i] = data[i], inverted where its flag is set."""
    cdef int64_t i
    need(out.shape[0] >= data.shape[0] and 8 * flags.shape[0] >= data.shape[0], "room for data, a flag for each byte")
    with nogil:
        for i in range(data.shape[0]):
            out[i] = data[i] ^ <uint8_t>(-(flags[i >> 3] >> (i & 7) & 1))


def encode_dbi_ac(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] flags, uint8_t[::1] last, int64_t lane):
    """Invert where more than 4 of the lane's 8 wires would flip against the byte last sent there; return the next lane.

    last: uint8[lanes], the byte last sent on each lane; updated. The flag wire has no say (reference rule).
    """
    cdef int64_t i, lanes = last.shape[0]
    cdef uint8_t x
    _check_lanes(data, out, last, lane)
    need(8 * flags.shape[0] >= data.shape[0], "a flag for each byte")
    with nogil:
        for i in range(data.shape[0]):
            x = data[i]
            if ew_wires_at_1(x ^ last[lane]) > 4:
                x = ~x
                flags[i >> 3] |= 1 << (i & 7)
            out[i] = x
            last[lane] = x
            lane = lane + 1 if lane + 1 < lanes else 0
    return lane


def encode_transition(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] level, int64_t lane):
    """Flip a wire for every 1 to send: out = level ^= data per lane (uint8[lanes], updated); return the next lane."""
    cdef int64_t i, lanes = level.shape[0]
    _check_lanes(data, out, level, lane)
    with nogil:
        for i in range(data.shape[0]):
            level[lane] ^= data[i]
            out[i] = level[lane]
            lane = lane + 1 if lane + 1 < lanes else 0
    return lane


def decode_transition(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] level, int64_t lane):
    """Inverse of encode_transition."""
    cdef int64_t i, lanes = level.shape[0]
    _check_lanes(data, out, level, lane)
    with nogil:
        for i in range(data.shape[0]):
            out[i] = data[i] ^ level[lane]
            level[lane] = data[i]
            lane = lane + 1 if lane + 1 < lanes else 0
    return lane


def decode_base_xor(const uint8_t[::1] data, uint8_t[::1] out, const uint8_t[::1] history, int64_t element_bytes,
                    int64_t block_bytes, int64_t position):
    """Inverse of Base+XOR: history holds the element_bytes decoded bytes before data[0]."""
    need(element_bytes > 0, "elements of a byte or more")
    _check_blocks(data, out, history, element_bytes, block_bytes, position)
    cdef int64_t i, p = position, whole = block_bytes // element_bytes * element_bytes
    cdef uint8_t x
    with nogil:
        for i in range(data.shape[0]):
            x = data[i]
            if element_bytes <= p < whole:
                x ^= out[i - element_bytes] if i >= element_bytes else history[i]
            out[i] = x
            p = p + 1 if p + 1 < block_bytes else 0


cdef inline unsigned long long _element(const uint8_t *bytes_, int64_t width) noexcept nogil:
    cdef unsigned long long value = 0
    memcpy(&value, bytes_, width)
    return value


def code_zdr(const uint8_t[::1] data, uint8_t[::1] out, const uint8_t[::1] history, int64_t element_bytes,
             int64_t block_bytes, int64_t position, bint decode):
    """Base+XOR with zero data remapping, our reading of Lee et al. 2018; the map is an involution given the
    predecessor.

    K has only the second-highest bit of an element set: 0 sends K, prev ^ K sends prev, any other x sends x ^ prev.
    Elements are little endian (as is the machine this runs on). data is whole elements; position a multiple of them.
    """
    need(0 < element_bytes <= 8, "elements of 1 to 8 bytes")
    _check_blocks(data, out, history, element_bytes, block_bytes, position)
    cdef int64_t i, p = position, whole = block_bytes // element_bytes * element_bytes
    cdef unsigned long long x, y, previous = 0, k = <unsigned long long>1 << (8 * element_bytes - 2)
    cdef int64_t n = data.shape[0]
    if n == 0:
        return
    previous = _element(&history[0], element_bytes)
    with nogil:
        i = 0
        while i < n:
            if p >= whole or n - i < element_bytes:  # bytes after the last whole element
                out[i] = data[i]
                i += 1
                p = p + 1 if p + 1 < block_bytes else 0
                continue
            x = _element(&data[i], element_bytes)
            y = x
            if p:
                if decode:
                    if x == k:
                        y = 0
                    elif x == previous:
                        y = previous ^ k
                    else:
                        y = x ^ previous
                elif x == 0:
                    y = k
                elif x == previous ^ k:
                    y = previous
                else:
                    y = x ^ previous
            previous = y if decode else x
            memcpy(&out[i], &y, element_bytes)
            i += element_bytes
            p = p + element_bytes if p + element_bytes < block_bytes else 0


def code_universal(const uint8_t[::1] data, uint8_t[::1] out, int64_t element_bytes, int64_t block_bytes, bint decode):
    """Universal Base+XOR, our reading of Lee et al. 2018: halve the block, upper ^= lower, repeat on the lower half.

    The halving ends at element_bytes. Whole blocks only; what remains of `data` passes unchanged.
    """
    cdef int64_t n = data.shape[0], start = 0, half, j
    need(out.shape[0] >= n and 0 < element_bytes <= block_bytes, "room for data, elements and blocks of a byte or more")
    if n == 0:
        return
    with nogil:
        memcpy(&out[0], &data[0], n)
        while block_bytes <= n - start:
            if decode:
                half = element_bytes
                while half * 2 <= block_bytes:
                    for j in range(half):
                        out[start + half + j] ^= out[start + j]
                    half *= 2
            else:
                half = block_bytes // 2
                while half >= element_bytes:
                    for j in range(half):
                        out[start + half + j] ^= out[start + j]
                    half //= 2
            start += block_bytes


cdef enum:
    MOST_BEATS = 4096


cdef inline double _cost(unsigned before, unsigned sent, double one, double zero, double edge) noexcept nogil:
    """Of nine wires for one beat: eight data wires and the flag wire in bit 8."""
    cdef int ones = ew_wires_at_1(sent)
    return one * ones + zero * (9 - ones) + edge * ew_wires_at_1(sent ^ before)


def encode_optimal_dbi(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] flags, uint8_t[:, ::1] level,
                       int64_t lane, int64_t block_bytes, double one, double zero, double edge, bint low_active):
    """Invert bytes so that each block (burst) costs least on each lane, given what the lane carried before it.

    data, out: uint8[n]; the first byte starts a block and travels on `lane`. flags: uint8[ceil(n / 8)], zero at first,
    bit i is set where byte i is inverted (low_active: where it is not). level: uint8[2, lanes], data and flag each lane
    carries; updated. one, zero: cost of a wire's unit interval at 1 and at 0; edge: of an edge in either direction.
    Ties are sent plain. Blocks have at most 4096 beats. O(n).
    """
    cdef int64_t n = data.shape[0], lanes = level.shape[1], start, end, first, i, beats, k, at
    cdef unsigned word[2]
    cdef unsigned before[2]
    cdef double cost[2]
    cdef double now[2]
    cdef double plain, turned
    cdef uint8_t came[2][MOST_BEATS]
    cdef int choice, was
    need(out.shape[0] >= n and 8 * flags.shape[0] >= n and 0 < block_bytes <= MOST_BEATS * lanes and lane >= 0
         and level.shape[0] == 2, "room for data and flags, a bus, blocks of the most beats")
    with nogil:
        start = 0
        while start < n:
            end = min(start + block_bytes, n)
            for k in range(lanes):
                first = start + k
                if first >= end:
                    break
                at = (lane + first) % lanes
                before[0] = before[1] = level[0, at] | <unsigned>level[1, at] << 8
                cost[0] = cost[1] = 0.0
                beats = 0
                i = first
                while i < end:
                    word[0] = data[i] | low_active << 8
                    word[1] = (data[i] ^ 0xff) | (not low_active) << 8
                    for choice in range(2):
                        plain = cost[0] + _cost(before[0], word[choice], one, zero, edge)
                        turned = cost[1] + _cost(before[1], word[choice], one, zero, edge)
                        was = turned < plain
                        came[choice][beats] = was
                        now[choice] = turned if was else plain
                    cost[0], cost[1] = now[0], now[1]
                    before[0], before[1] = word[0], word[1]
                    beats += 1
                    i += lanes
                choice = cost[1] < cost[0]
                level[0, at] = <uint8_t>before[choice]
                level[1, at] = <uint8_t>(before[choice] >> 8)
                i = first + (beats - 1) * lanes
                while beats > 0:
                    beats -= 1
                    out[i] = data[i] ^ <uint8_t>(-choice)
                    flags[i >> 3] |= <uint8_t>((choice ^ low_active) << (i & 7))
                    choice = came[choice][beats]
                    i -= lanes
            start = end
