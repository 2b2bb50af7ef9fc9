"""Inversion whose flags travel inside the burst (LPDDR6): one flag for a share of the data bits, spread over wires.

A burst is described beat by beat and wire by wire: `source` int32[beats, wires] is k >= 0 for data bit k of the burst,
-1 for a bit that is given (`given` uint8[beats, wires]: metadata, or a wire that is not there), -2 - c for the flag of
share c. Share c are the data bits from c * share_bits on.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32


cdef inline int _bit(const uint8_t[::1] data, int64_t k) noexcept nogil:
    return data[k >> 3] >> (k & 7) & 1


cdef inline int _on_wire(const uint8_t[::1] data, const uint8_t[::1] flags, int32_t source, uint8_t given,
                         int share_bits) noexcept nogil:
    """What a wire carries, with the flags decided so far."""
    if source >= 0:
        return _bit(data, source) ^ flags[source // share_bits]
    return given if source == -1 else flags[-2 - source]


cdef int _check(const uint8_t[:, ::1] data, const uint8_t[:, ::1] flags, const int32_t[:, ::1] source,
                const uint8_t[:, ::1] given, int share_bits, const uint8_t[::1] level) except -1:
    cdef int64_t b, bits = min(8 * data.shape[1], <int64_t> share_bits * flags.shape[1])
    need(share_bits > 0 and flags.shape[0] == data.shape[0] and flags.shape[1] < 32 and source.shape[0] > 0
         and given.shape[0] == source.shape[0] and given.shape[1] == source.shape[1] == level.shape[0],
         "flags for each burst, what is given and a level for each wire")
    for b in range(source.shape[0]):
        need(within32(source[b], -1 - <int64_t> flags.shape[1], bits), "bits and flags of a burst")
    return 0


def invert_far_shares(const uint8_t[:, ::1] data, uint8_t[:, ::1] flags, const int32_t[:, ::1] source,
                      const uint8_t[:, ::1] given, int share_bits, const int32_t[::1] entry_start,
                      const int32_t[:, ::1] entries, uint8_t[::1] level):
    """Flag each share, in order, that more than half of its wires would flip to when its bits begin.

    data: uint8[n, burst_bytes]. flags: uint8[n, shares], zero; written. entries: int32[m, 2] (beat, wire) at which bits
    of a share begin on a wire, those of share c from entry_start[c] to entry_start[c + 1]. level: uint8[wires], what
    each carries before; updated. A flag that is on a wire before its share is decided counts as 0. O(n).
    """
    cdef int64_t n = data.shape[0], i, w, last = source.shape[0] - 1
    cdef int shares = flags.shape[1], c, e, far, beat, wire, before
    _check(data, flags, source, given, share_bits, level)
    need(entry_start.shape[0] == shares + 1 and rises(entry_start, entries.shape[0]) and entries.shape[1] == 2,
         "entries of each share")
    for e in range(entries.shape[0]):
        beat, wire = entries[e, 0], entries[e, 1]
        need(0 <= beat <= last and 0 <= wire < source.shape[1] and source[beat, wire] >= 0, "beats and wires of data")
    with nogil:
        for i in range(n):
            for c in range(shares):
                far = 0
                for e in range(entry_start[c], entry_start[c + 1]):
                    beat, wire = entries[e, 0], entries[e, 1]
                    if beat == 0:
                        before = level[wire]
                    else:
                        before = _on_wire(data[i], flags[i], source[beat - 1, wire], given[beat - 1, wire], share_bits)
                    far += before != _bit(data[i], source[beat, wire])
                flags[i, c] = 2 * far > entry_start[c + 1] - entry_start[c]
            for w in range(source.shape[1]):
                level[w] = <uint8_t>_on_wire(data[i], flags[i], source[last, w], given[last, w], share_bits)


def cheapest_shares(const uint8_t[:, ::1] data, uint8_t[:, ::1] flags, const int32_t[:, ::1] source,
                    const uint8_t[:, ::1] given, int share_bits, uint8_t[::1] level, int64_t one, int64_t zero,
                    int64_t edge, const int32_t[:, ::1] pair, const int32_t[:, ::1] step,
                    const int32_t[::1] scope, const int32_t[:, ::1] term, const int32_t[::1] row,
                    int64_t[::1] weight, int64_t[::1] table, uint8_t[::1] choice):
    """Flag the shares so that each burst costs least on all wires, flags included, given what they carried before.

    data, flags, source, given, share_bits, level: as in `invert_far_shares`. one, zero, edge: cost of a unit interval
    at 1 and at 0 and of an edge, whole numbers. Of equal costs the flags that are the lowest number (flag 0 the highest
    bit) are taken, so that any exact method finds the same.

    The cost is a constant, a weight for each flag and a weight for each two flags that meet on a wire (or whose shares
    do): pair int32[beats, wires] is the number of the two at the edge into a bit, -1 where there are no two. Flags are
    eliminated one after the other (bucket elimination): step int32[k, 5] = (flag, scope from, scope to, term from, term
    to); its table has a row for each setting of the flags in scope[from:to], lowest bit first; the tables follow each
    other in the order of the steps. term int32[m, 3] = (0, pair, bit of the other flag in the row) or (1, where an
    earlier step's table starts, where its row numbers start in `row`: one for each setting and value of the flag).
    weight: int64[shares + pairs], table: int64, choice: uint8 as long as table, all scratch.
    """
    cdef int64_t n = data.shape[0], i, cost, at, a, rows, unit = <int64_t>1 << flags.shape[1]
    cdef int shares = flags.shape[1], beats = source.shape[0], wires = source.shape[1]
    cdef int b, w, c, p, before, now, k, t, x, s, was
    cdef int64_t[2] found
    _check(data, flags, source, given, share_bits, level)
    need(pair.shape[0] == beats and pair.shape[1] == wires and weight.shape[0] >= shares
         and choice.shape[0] == table.shape[0], "a pair for each bit, a weight for each flag, as many choices as costs")
    for b in range(beats):
        need(within32(pair[b], -1, weight.shape[0] - shares), "a weight for each pair")
    need(step.shape[1] == 5 and term.shape[1] == 3 and within32(scope, 0, shares) and within32(row, 0, 1 << 30),
         "steps, terms, flags and rows")
    at = 0
    for k in range(step.shape[0]):
        need(0 <= step[k, 0] < shares and 0 <= step[k, 1] <= step[k, 2] <= scope.shape[0]
             and step[k, 2] - step[k, 1] < 30 and 0 <= step[k, 3] <= step[k, 4] <= term.shape[0], "steps of flags")
        rows = <int64_t>1 << (step[k, 2] - step[k, 1])
        for t in range(step[k, 3], step[k, 4]):
            p, x = term[t, 1], term[t, 2]
            need(p >= 0 and x >= 0 and (term[t, 0] or (p < weight.shape[0] - shares and x < 30))
                 and (not term[t, 0] or x + 2 * rows <= row.shape[0]), "terms of weights and tables")
            for a in range(2 * rows if term[t, 0] else 0):
                need(p + row[x + a] < table.shape[0], "rows of tables")
        at += rows
        need(at <= table.shape[0], "a table for each step")
    with nogil:
        for i in range(n):
            for p in range(weight.shape[0]):
                weight[p] = 0
            for c in range(shares):  # the number of the flags, below any cost
                weight[c] = <int64_t>1 << (shares - 1 - c)
            for w in range(wires):
                before, was = level[w], -1
                for b in range(beats):
                    if source[b, w] >= 0:
                        now, c = _bit(data[i], source[b, w]), source[b, w] // share_bits
                    elif source[b, w] == -1:
                        now, c = given[b, w], -1
                    else:
                        now, c = 0, -2 - source[b, w]
                    if c >= 0:
                        weight[c] += ((zero - one) if now else (one - zero)) * unit
                    if c != was:
                        cost = (-edge if now != before else edge) * unit
                        p = pair[b, w]
                        if p >= 0:  # paid where the two differ
                            weight[shares + p] += cost
                        elif c >= 0:
                            weight[c] += cost
                        else:
                            weight[was] += cost
                    before, was = now, c
            at = 0
            for k in range(step.shape[0]):
                rows = <int64_t>1 << (step[k, 2] - step[k, 1])
                for a in range(rows):
                    found[0], found[1] = 0, weight[step[k, 0]]
                    for t in range(step[k, 3], step[k, 4]):
                        if term[t, 0] == 0:
                            found[1 - (a >> term[t, 2] & 1)] += weight[shares + term[t, 1]]
                        else:
                            found[0] += table[term[t, 1] + row[term[t, 2] + 2 * a]]
                            found[1] += table[term[t, 1] + row[term[t, 2] + 2 * a + 1]]
                    choice[at + a] = found[1] < found[0]
                    table[at + a] = found[1] if found[1] < found[0] else found[0]
                at += rows
            for k in range(step.shape[0] - 1, -1, -1):
                rows = <int64_t>1 << (step[k, 2] - step[k, 1])
                at -= rows
                a = 0
                for s in range(step[k, 1], step[k, 2]):
                    a |= <int64_t>(flags[i, scope[s]] & 1) << (s - step[k, 1])
                flags[i, step[k, 0]] = choice[at + a]
            for w in range(wires):
                level[w] = <uint8_t>_on_wire(data[i], flags[i], source[beats - 1, w], given[beats - 1, w], share_bits)
