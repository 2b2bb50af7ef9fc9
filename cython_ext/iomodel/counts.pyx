"""I/O counts of an order of connections under LRU, RR and MIN; the semantics are those of hwmodel.fastmemory.iomodel.

Arrays are in processing order unless it says otherwise. Ids, lengths, memory >= 3 and W <= MAX_CONNECTIONS are checked.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.processing cimport EW_AHEAD, EW_BLOCK, ew_processing, ew_take_asked, ew_take_backwards

cdef extern from "iomodel/fast_memory.h" nogil:
    enum: EW_NEVER, EW_NEVER_OUTPUT, EW_MAX_LEVELS, EW_HIGHEST
    ctypedef struct ew_moves:
        int32_t *step, *neuron
        uint8_t *kind
        int64_t n
    ctypedef struct ew_fast_memory:
        int64_t capacity, used, reads_neurons, writes_live, writes_outputs, skips
        const uint8_t *is_output
        const uint32_t *final
        ew_moves *moves
        const int32_t *ends
        const int64_t *coming
    ctypedef struct ew_lru:
        ew_fast_memory m
        uint32_t *value
        int32_t *recent
        int64_t room, now, tail
    ctypedef struct ew_rr:
        ew_fast_memory m
        uint8_t *value
        int32_t *slot
        int64_t pointer
    ctypedef struct ew_min:
        ew_fast_memory m
        const int32_t *side[2]
        const int32_t *next_use
        uint64_t *level[4]
        int64_t levels, top, room, ceiling
        int64_t highest[3]
    void ew_note_final_uses(uint32_t *, const int32_t *, const int32_t *, int64_t, int64_t)
    void ew_lru_run(void *, const int32_t *, const int32_t *, int64_t, int64_t, int)
    void ew_lru_end(ew_lru *, int64_t, int64_t)
    void ew_rr_run(void *, const int32_t *, const int32_t *, int64_t, int64_t, int)
    void ew_rr_end(ew_rr *, int64_t, int64_t)
    void ew_find_next_uses(int32_t *, int32_t *, const int32_t *, const int32_t *, int64_t, int64_t)
    void ew_min_run(void *, const int32_t *, const int32_t *, int64_t, int64_t, int)

cdef extern from "iomodel/lru_stack.h" nogil:
    ctypedef struct ew_stack:
        int64_t n, n_slots, n_words, now, marks, cold
        int64_t *slot, *owner
        uint64_t *mark
        int64_t *fenwick, *longest, *reads, *writes
    void ew_stack_run(ew_stack *, const int32_t *, const int32_t *, int64_t, int64_t, int)

LRU, RR, MIN = 0, 1, 2  # policy codes
LITERAL, PIN_BOTH = 0, 1  # pinning codes
POLICY_CODES = {"lru": LRU, "rr": RR, "min": MIN}
PINNING_CODES = {"literal": LITERAL, "pin_both": PIN_BOTH}
LOAD, STORE_LIVE, STORE_OUTPUT = 0, 1, 2  # kinds of moves
MAX_CONNECTIONS = 2**30 - 1  # positions of the two accesses per connection are kept in 31 bits

cdef int64_t SLICE = 1 << 20  # connections between two looks at Ctrl-C


cdef struct played:  # what is played, and how
    const int32_t *source  # in processing order, with target; NULL: not there
    const int32_t *target
    ew_processing *order  # to take them from, or NULL
    int64_t w
    int pin_both
    uint8_t *loads  # [W] or NULL: how many values each connection reads
    ew_moves *moves  # NULL: count only


def count(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
          int64_t memory, int policy, int pinning):
    """Return int64[5]: reads_neurons, writes_live, writes_outputs, evictions, skips of RR's pointer. O(W + N)."""
    _check(sources, targets, is_output.shape[0])
    need(memory >= 3, "a memory of at least 3")
    next_use = find_next_uses(sources, targets, is_output) if policy == MIN else None
    return _count_many(sources, targets, is_output, np.array([memory], np.int64), policy, pinning, next_use)[0]


def _count_many(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output,
                const int64_t[::1] memories, int policy, int pinning, next_use):
    """Return int64[K, 5], the counts of `count` for each of K memory sizes, of arrays that were checked. O(K (W + N)).

    next_use: of `find_next_uses`; None but for MIN.
    """
    result = np.zeros((memories.shape[0], 5), np.int64)
    cdef int64_t[:, ::1] rows = result
    cdef played work = _arrays(sources, targets, pinning)
    cdef int64_t k
    for k in range(memories.shape[0]):
        _run(&work, is_output, memories[k], policy, next_use, rows[k])
    return result


def _count_in_order(const int32_t[:, ::1] ends, const int64_t[::1] order, const uint8_t[::1] is_output, int64_t memory,
                    int policy, int pinning):
    """Return (what `count` returns, runs, whether the order is a valid one); it is checked while it is played.

    ends: int32[W, 2], source and target of each connection as stored, checked before. order: int64[W], any values. Valid: a permutation
    in which no connection out of a neuron stands before one into it; the counts of another one mean nothing. runs:
    stretches of consecutive connections with one target. O(W + N) time; memory W / 8 + O(N), and 9 W more for MIN.
    """
    cdef int64_t w = ends.shape[0], start
    cdef uint64_t[::1] met = np.zeros((w + 63) // 64, np.uint64)
    cdef uint8_t[::1] closed = np.zeros(is_output.shape[0], np.uint8)
    cdef ew_processing given
    cdef played work
    cdef int32_t[::1] later, seen
    cdef bint valid = True
    counts, next_use = np.zeros(5, np.int64), None
    need(0 < w <= MAX_CONNECTIONS and order.shape[0] == w, "an order has a place for each connection")
    need(memory >= 3 and ends.shape[1] == 2, "a memory of at least 3, two ends")
    given.ends, given.order, given.w = &ends[0, 0], &order[0], w
    given.met, given.closed, given.previous_target, given.runs = &met[0], &closed[0], -1, 0
    work.source = work.target = NULL
    work.order, work.w, work.pin_both, work.loads, work.moves = &given, w, pinning, NULL, NULL
    if policy != MIN:
        valid = _run(&work, is_output, memory, policy, None, counts)
        return counts, given.runs, valid
    next_use = np.empty(2 * w, np.int32)
    later, seen = next_use, _never(is_output)
    for start in range((w - 1) // SLICE * SLICE, -1, -SLICE):
        with nogil:
            valid = valid and _take_next_uses(&given, start, min(start + SLICE, w), &later[0], &seen[0])
        PyErr_CheckSignals()
    if valid:
        work.order = NULL  # next uses are all that is played
        _run(&work, is_output, memory, policy, next_use, counts)
    return counts, given.runs, valid


cdef bint _take_next_uses(ew_processing *given, int64_t start, int64_t end, int32_t *later, int32_t *seen) noexcept nogil:
    """Find the next uses of the connections at the places from start to end; return whether they may stand there."""
    cdef int32_t source[EW_BLOCK]
    cdef int32_t target[EW_BLOCK]
    cdef int64_t begin
    while end > start:
        begin = max(start, end - EW_BLOCK)
        if not ew_take_backwards(given, begin, end, source, target):
            return False
        ew_find_next_uses(later, seen, source, target, begin, end)
        end = begin
    return True


def neuron_loads(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
                 int64_t memory, int policy, int pinning):
    """Return uint8[W]: how many neuron values (0, 1 or 2) each connection has to read. O(W + N)."""
    _check(sources, targets, is_output.shape[0])
    need(memory >= 3, "a memory of at least 3")
    loads = np.zeros(sources.shape[0], np.uint8)
    cdef uint8_t[::1] view = loads
    cdef played work = _arrays(sources, targets, pinning)
    work.loads = &view[0]
    next_use = find_next_uses(sources, targets, is_output) if policy == MIN else None
    _run(&work, is_output, memory, policy, next_use, np.zeros(5, np.int64))
    return loads


def moves(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
          int64_t memory, int policy, int pinning):
    """Return what `count` counts, move by move: (int32[E] step, int32[E] neuron, uint8[E] kind). O(W + N).

    kind: LOAD, STORE_LIVE, STORE_OUTPUT. Moves are in the order they happen; those of step i come before connection
    i's update, those of step W after the last one. A store always precedes the load it makes room for. MIN writes an
    output once it has no later use, LRU and RR when it is evicted or at the end.
    """
    counts = count(sources, targets, n_neurons, is_output, memory, policy, pinning)
    cdef int64_t n = counts[0] + counts[1] + counts[2]
    step, neuron, kind = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32), np.empty(n + 1, np.uint8)
    cdef int32_t[::1] step_view = step
    cdef int32_t[::1] neuron_view = neuron
    cdef uint8_t[::1] kind_view = kind
    cdef ew_moves noted
    cdef played work = _arrays(sources, targets, pinning)
    noted.step, noted.neuron, noted.kind, noted.n = &step_view[0], &neuron_view[0], &kind_view[0], 0
    work.moves = &noted
    next_use = find_next_uses(sources, targets, is_output) if policy == MIN else None
    row = np.zeros(5, np.int64)
    _run(&work, is_output, memory, policy, next_use, row)
    if noted.n != n or not np.array_equal(row, counts):
        raise AssertionError(f"{noted.n} moves noted, {n} counted")
    return step[:n], neuron[:n], kind[:n]


cdef int _check(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n) except -1:
    cdef int64_t k, w = sources.shape[0]
    cdef uint32_t wrong = 0, most = <uint32_t> n
    need(0 < w <= MAX_CONNECTIONS and targets.shape[0] == w, "as many sources as targets, at least one")
    need(0 < n < 2**31, "neurons that are there")
    for k in range(w):  # without branches
        wrong |= <uint32_t> (<uint32_t> sources[k] >= most) | <uint32_t> (<uint32_t> targets[k] >= most)
        wrong |= <uint32_t> (sources[k] == targets[k]) << 1
    need(not wrong & 1, "neurons that are there")
    need(not wrong, "no connection from a neuron to itself")
    return 0


cdef played _arrays(const int32_t[::1] sources, const int32_t[::1] targets, int pin_both):
    cdef played work
    work.source, work.target, work.w = &sources[0], &targets[0], sources.shape[0]
    work.order, work.loads, work.moves, work.pin_both = NULL, NULL, NULL, pin_both
    return work


cdef bint _run(played *work, const uint8_t[::1] is_output, int64_t memory, int policy, next_use,
               int64_t[::1] row) except -1:
    """Write the counts into row; return whether the order is valid."""
    if policy == LRU:
        return _lru(work, is_output, memory, row)
    if policy == RR:
        return _rr(work, is_output, memory, row)
    if policy == MIN:
        return _min(work, is_output, memory, next_use, row)
    raise ValueError(f"policy code {policy}")


cdef object _begin(ew_fast_memory *m, played *work, int64_t memory, const uint8_t[::1] is_output):
    """Fill what all policies have; the array returned holds the final uses and must live as long."""
    cdef uint32_t[::1] final = np.zeros(is_output.shape[0] if work.moves else 0, np.uint32)
    m.is_output, m.moves, m.final = &is_output[0], work.moves, NULL
    m.ends, m.coming = work.order.ends if work.order else NULL, NULL
    m.capacity = min(memory - 1, is_output.shape[0])  # more room than neurons is never filled
    m.used = m.reads_neurons = m.writes_live = m.writes_outputs = m.skips = 0
    if work.moves:
        ew_note_final_uses(&final[0], work.source, work.target, 0, work.w)
        m.final = &final[0]
    return final


cdef void _report(const ew_fast_memory *m, int64_t[::1] row) noexcept:
    row[0], row[1], row[2] = m.reads_neurons, m.writes_live, m.writes_outputs
    row[3], row[4] = max(m.reads_neurons - m.capacity, 0), m.skips


ctypedef void (*connections)(void *, const int32_t *, const int32_t *, int64_t, int64_t, int) noexcept nogil


cdef bint _slice(played *work, ew_fast_memory *m, void *state, connections run, int64_t start,
                 int64_t end) noexcept nogil:
    """Process the connections at the places from start to end; return whether they may stand there."""
    cdef int32_t source[EW_AHEAD]
    cdef int32_t target[EW_AHEAD]
    cdef int64_t i, before
    if work.loads:
        for i in range(start, end):
            before = m.reads_neurons
            run(state, work.source + i, work.target + i, i, i + 1, work.pin_both)
            work.loads[i] = <uint8_t>(m.reads_neurons - before)
    elif not work.order:
        run(state, work.source + start if work.source else NULL, work.target + start if work.source else NULL, start,
            end, work.pin_both)
    else:
        while start < end:
            i = min(start + EW_AHEAD, end)
            if not ew_take_asked(work.order, start, i, source, target):
                return False
            m.coming = work.order.order + i if i + EW_AHEAD <= work.w else NULL
            run(state, source, target, start, i, work.pin_both)
            start = i
    return True


cdef bint _walk(played *work, ew_fast_memory *m, void *state, connections run) except -1:
    """Process all connections; return whether their order is valid."""
    cdef int64_t start
    cdef bint valid = True
    for start in range(0, work.w, SLICE):
        with nogil:
            valid = _slice(work, m, state, run, start, min(start + SLICE, work.w))
        if not valid:
            return False
        PyErr_CheckSignals()
    return True


cdef bint _lru(played *work, const uint8_t[::1] is_output, int64_t memory, int64_t[::1] row) except -1:
    cdef ew_lru state
    owners = _begin(&state.m, work, memory, is_output)
    state.room = 4096  # of 4 bytes: half of the smallest first-level cache
    while state.room < min(4 * state.m.capacity, 2 * work.w + 2):
        state.room *= 2
    cdef uint32_t[::1] values = np.zeros(is_output.shape[0], np.uint32)
    cdef int32_t[::1] recent = np.empty(state.room, np.int32)
    state.value, state.recent = &values[0], &recent[0]
    state.now = state.tail = 1
    valid = _walk(work, &state.m, &state, ew_lru_run)
    ew_lru_end(&state, is_output.shape[0], work.w)
    _report(&state.m, row)
    return valid


cdef bint _rr(played *work, const uint8_t[::1] is_output, int64_t memory, int64_t[::1] row) except -1:
    cdef ew_rr state
    cdef int64_t n = is_output.shape[0]
    cdef uint8_t[::1] values = np.zeros(n + 1, np.uint8)
    cdef int32_t[::1] slot = np.full(min(memory - 1, n), n, np.int32)
    owners = _begin(&state.m, work, memory, is_output)
    state.value, state.slot, state.pointer = &values[0], &slot[0], 0
    valid = _walk(work, &state.m, &state, ew_rr_run)
    ew_rr_end(&state, n, work.w)
    _report(&state.m, row)
    return valid


cdef bint _min(played *work, const uint8_t[::1] is_output, int64_t memory, const int32_t[::1] next_use,
               int64_t[::1] row) except -1:
    cdef int64_t w = work.w, size = 4 * w, k
    cdef ew_min state
    cdef uint64_t[::1] level
    levels = []
    state.levels = 3 if 2 * w <= 64**4 else EW_MAX_LEVELS  # then the last level has at most 128 words
    for k in range(EW_MAX_LEVELS):
        size = (size + 63) // 64
        level = np.zeros(size, np.uint64)
        levels.append(level)
        state.level[k] = &level[0]
    owners = _begin(&state.m, work, memory, is_output)
    state.side[0], state.side[1], state.next_use = work.source, work.target, &next_use[0]
    state.top = 0
    state.ceiling = -1
    for k in range(EW_HIGHEST):
        state.highest[k] = -1
    state.room = state.m.capacity
    valid = _walk(work, &state.m, &state, ew_min_run)
    _report(&state.m, row)
    return valid


cdef object _never(const uint8_t[::1] is_output):
    """int32[N]: the next use of each neuron behind the last connection."""
    return np.where(np.asarray(is_output) != 0, np.int32(EW_NEVER_OUTPUT), np.int32(EW_NEVER))


def find_next_uses(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output):
    """Return int32[2W]: for position 2i (source of connection i) and 2i + 1 (its target), the position of the same
    neuron's next access, or more than any position: 2^31 - 2 for an output, 2^31 - 1 for any other neuron."""
    cdef int64_t w = sources.shape[0], start
    _check(sources, targets, is_output.shape[0])
    next_use = np.empty(2 * w, np.int32)
    cdef int32_t[::1] next_view = next_use
    cdef int32_t[::1] seen = _never(is_output)
    for start in range((w - 1) // SLICE * SLICE, -1, -SLICE):
        with nogil:
            ew_find_next_uses(&next_view[0], &seen[0], &sources[start], &targets[start], start, min(start + SLICE, w))
        PyErr_CheckSignals()
    return next_use


def lru_curve(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
              int pinning):
    """Return int64[N + 1, 3]: row C has reads_neurons, writes_live, writes_outputs of LRU with C values. O(W log N).

    Rows 0 and 1 are no valid memory sizes. More than N values change nothing.
    """
    cdef int64_t w = sources.shape[0], n = n_neurons, start, x
    need(is_output.shape[0] == n, "whether each neuron is an output")
    _check(sources, targets, n)
    cdef ew_stack state
    state.n = n
    state.n_words = (2 * n + 63) // 64 + 1
    state.n_slots = 64 * state.n_words
    state.now = state.marks = state.cold = 0
    cdef int64_t[::1] slot = np.full(n, -1, np.int64)
    cdef int64_t[::1] owner = np.zeros(state.n_slots, np.int64)
    cdef uint64_t[::1] mark = np.zeros(state.n_words, np.uint64)
    cdef int64_t[::1] fenwick = np.zeros(state.n_words + 1, np.int64)
    longest = np.full(n, -1, np.int64)
    cdef int64_t[::1] longest_view = longest
    reads, writes = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    cdef int64_t[::1] reads_view = reads
    cdef int64_t[::1] writes_view = writes
    state.slot, state.owner, state.mark, state.fenwick = &slot[0], &owner[0], &mark[0], &fenwick[0]
    state.longest, state.reads, state.writes = &longest_view[0], &reads_view[0], &writes_view[0]
    for start in range(0, w, SLICE):
        with nogil:
            ew_stack_run(&state, &sources[0], &targets[0], start, min(start + SLICE, w), pinning)
        PyErr_CheckSignals()
    updated = longest[longest >= 0]
    still_dirty = longest[(longest >= 0) & (np.asarray(is_output) != 0)]
    writes += np.bincount(updated, minlength=n + 1)  # the span after the last update
    above = lambda histogram: histogram.sum() - np.cumsum(histogram)  # noqa: E731
    return np.stack(
        (state.cold + above(reads), above(writes), np.cumsum(np.bincount(still_dirty, minlength=n + 1))), axis=1
    )
