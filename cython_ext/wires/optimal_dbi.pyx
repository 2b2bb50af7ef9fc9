"""Data bus inversion of least cost over a burst: which bytes to invert, by dynamic programming per lane."""

from libc.stdint cimport int64_t, uint8_t

from cython_ext.common.checks cimport need


cdef extern from *:
    """
    static inline int ew_bits(unsigned x) { return __builtin_popcount(x); }
    """
    int ew_bits(unsigned x) noexcept nogil


cdef enum:
    MOST_BEATS = 4096


cdef inline double _cost(unsigned before, unsigned sent, double one, double zero, double edge) noexcept nogil:
    """Of nine wires for one beat: eight data wires and the flag wire in bit 8."""
    cdef int ones = ew_bits(sent)
    return one * ones + zero * (9 - ones) + edge * ew_bits(sent ^ before)


def encode_optimal_dbi(const uint8_t[::1] data, uint8_t[::1] out, uint8_t[::1] flags, uint8_t[:, ::1] level,
                       int64_t lane, int64_t block_bytes, double one, double zero, double edge, bint low_active):
    """Invert bytes so that each block (burst) costs least on each lane, given what the lane carried before it.

    data, out: uint8[n]; the first byte starts a block and travels on `lane`. flags: uint8[ceil(n / 8)], zero at first,
    bit i is set where byte i is inverted (low_active: where it is not). level: uint8[2, lanes], data and flag each lane carries; updated. one, zero:
    cost of a wire's unit interval at 1 and at 0; edge: of an edge in either direction. Ties are sent plain. Blocks have at most 4096
    beats. O(n).
    """
    cdef int64_t n = data.shape[0], lanes = level.shape[1], start, end, first, i, beats, k, at
    cdef unsigned word[2]
    cdef unsigned before[2]
    cdef double cost[2]
    cdef double now[2]
    cdef double plain, turned
    cdef uint8_t came[2][MOST_BEATS]
    cdef int choice, was
    need(out.shape[0] >= n and flags.shape[0] >= (n + 7) // 8 and block_bytes <= MOST_BEATS * lanes,
         "room for data and flags, blocks of the most beats")
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
