"""I/O counts of an order of connections under LRU, RR and MIN; the semantics are those of hwmodel.fastmemory.iomodel.

All arrays are in processing order. The caller has checked them: ids in range, memory >= 3, W < MAX_CONNECTIONS.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "iomodel/fast_memory.h" nogil:
    enum: EW_NEVER, EW_MAX_LEVELS, EW_HIGHEST, EW_STORE_OUTPUT
    ctypedef struct ew_moves:
        int32_t *step
        int32_t *neuron
        uint8_t *kind
        int64_t n
    ctypedef struct ew_fast_memory:
        const int32_t *side[2]
        int64_t capacity, used, reads_neurons, writes_live, skips
        const uint8_t *is_output
        ew_moves *moves
    ctypedef struct ew_value:
        int32_t last
        uint32_t final
    ctypedef struct ew_lru:
        ew_fast_memory m
        ew_value *value
        int64_t tail
    ctypedef struct ew_rr:
        ew_fast_memory m
        ew_value *value
        int32_t *slot
        int64_t pointer
    ctypedef struct ew_min:
        ew_fast_memory m
        const int32_t *next_use
        int64_t writes_outputs
        uint64_t *level[4]
        int64_t levels, top, room, ceiling
        int64_t highest[3]
    void ew_note_final_uses(ew_value *, const int32_t *, const int32_t *, int64_t, int64_t)
    int64_t ew_dirty_outputs(const ew_value *, const uint8_t *, int64_t)
    void ew_lru_run(ew_lru *, int64_t, int64_t, int)
    void ew_rr_run(ew_rr *, int64_t, int64_t, int)
    void ew_find_next_uses(int32_t *, int32_t *, const int32_t *, const int32_t *, int64_t, int64_t)
    void ew_min_run(ew_min *, int64_t, int64_t)

cdef extern from "iomodel/lru_stack.h" nogil:
    ctypedef struct ew_stack:
        int64_t n, n_slots, n_words, now, marks, cold
        int64_t *slot
        int64_t *owner
        uint64_t *mark
        int64_t *fenwick
        int64_t *longest
        int64_t *reads
        int64_t *writes
    void ew_stack_run(ew_stack *, const int32_t *, const int32_t *, int64_t, int64_t, int)

LRU, RR, MIN = 0, 1, 2  # policy codes
LITERAL, PIN_BOTH = 0, 1  # pinning codes
POLICY_CODES = {"lru": LRU, "rr": RR, "min": MIN}
PINNING_CODES = {"literal": LITERAL, "pin_both": PIN_BOTH}
LOAD, STORE_LIVE, STORE_OUTPUT = 0, 1, 2  # kinds of moves
MAX_CONNECTIONS = 2**30 - 1  # positions of the two accesses per connection are kept in 31 bits

cdef int64_t SLICE = 1 << 20  # connections between two looks at Ctrl-C


def count(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
          int64_t memory, int policy, int pinning):
    """Return int64[5]: reads_neurons, writes_live, writes_outputs, evictions, skips of RR's pointer. O(W + N)."""
    return count_many(sources, targets, n_neurons, is_output, np.array([memory], np.int64), policy, pinning)[0]


def count_many(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
               const int64_t[::1] memories, int policy, int pinning, next_use=None):
    """Return int64[K, 5], the counts of `count` for each of K memory sizes. O(K (W + N)).

    next_use: what `find_next_uses` returned for MIN, where it is there already.
    """
    result = np.zeros((memories.shape[0], 5), np.int64)
    cdef int64_t[:, ::1] rows = result
    cdef uint8_t[::1] none = np.zeros(0, np.uint8)
    cdef int64_t k
    if policy == MIN and next_use is None:
        next_use = find_next_uses(sources, targets, n_neurons)
    for k in range(memories.shape[0]):
        _run(sources, targets, is_output, memories[k], policy, pinning, next_use, rows[k], none, NULL)
    return result


def neuron_loads(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
                 int64_t memory, int policy, int pinning):
    """Return uint8[W]: how many neuron values (0, 1 or 2) each connection has to read. O(W + N)."""
    loads = np.zeros(sources.shape[0], np.uint8)
    next_use = find_next_uses(sources, targets, n_neurons) if policy == MIN else None
    _run(sources, targets, is_output, memory, policy, pinning, next_use, np.zeros(5, np.int64), loads, NULL)
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
    step, neuron, kind = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint8)
    cdef int32_t[::1] step_view = step
    cdef int32_t[::1] neuron_view = neuron
    cdef uint8_t[::1] kind_view = kind
    cdef ew_moves noted
    noted.step, noted.neuron, noted.kind, noted.n = &step_view[0], &neuron_view[0], &kind_view[0], 0
    next_use = find_next_uses(sources, targets, n_neurons) if policy == MIN else None
    row = np.zeros(5, np.int64)
    _run(sources, targets, is_output, memory, policy, pinning, next_use, row, np.zeros(0, np.uint8), &noted)
    if noted.n != n or not np.array_equal(row, counts):
        raise AssertionError(f"{noted.n} moves noted, {n} counted")
    return step, neuron, kind


cdef _run(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output, int64_t memory,
          int policy, int pinning, next_use, int64_t[::1] row, uint8_t[::1] loads, ew_moves *moves):
    if policy == LRU:
        _lru(sources, targets, is_output, memory, pinning, row, loads, moves)
    elif policy == RR:
        _rr(sources, targets, is_output, memory, pinning, row, loads, moves)
    elif policy == MIN:
        _min(sources, targets, is_output, memory, next_use, row, loads, moves)
    else:
        raise ValueError(f"policy code {policy}")


cdef void _begin(ew_fast_memory *m, const int32_t[::1] sources, const int32_t[::1] targets, int64_t memory,
                 const uint8_t[::1] is_output, ew_moves *moves) noexcept:
    m.is_output, m.moves = &is_output[0], moves
    m.side[0] = &sources[0]
    m.side[1] = &targets[0]
    m.capacity = min(memory - 1, is_output.shape[0])  # more room than neurons is never filled
    m.used = m.reads_neurons = m.writes_live = m.skips = 0


cdef int64_t _final_writes(ew_value *value, const uint8_t[::1] is_output, int64_t w, ew_moves *moves) noexcept:
    """Return writes_outputs of LRU and RR; note those of values that are still resident."""
    cdef int64_t x, k, count = 0
    if moves == NULL:
        return ew_dirty_outputs(value, &is_output[0], is_output.shape[0])
    for k in range(moves.n):
        count += moves.kind[k] == EW_STORE_OUTPUT
    for x in range(is_output.shape[0]):
        if value[x].final & 1 and is_output[x]:
            moves.step[moves.n], moves.neuron[moves.n], moves.kind[moves.n] = <int32_t>w, <int32_t>x, EW_STORE_OUTPUT
            moves.n += 1
            count += 1
    return count


cdef void _report(const ew_fast_memory *m, int64_t writes_outputs, int64_t[::1] row) noexcept:
    row[0], row[1], row[2] = m.reads_neurons, m.writes_live, writes_outputs
    row[3], row[4] = max(m.reads_neurons - m.capacity, 0), m.skips


cdef object _values(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, int32_t last):
    """The ew_value of every neuron, as int32[N, 2]."""
    values = np.zeros((n_neurons, 2), np.int32)
    values[:, 0] = last
    cdef int32_t[:, ::1] view = values
    cdef int64_t w = sources.shape[0], start
    for start in range(0, w, SLICE):
        with nogil:
            ew_note_final_uses(<ew_value *> &view[0, 0], &sources[0], &targets[0], start, min(start + SLICE, w))
        PyErr_CheckSignals()
    return values


ctypedef void (*connections)(void *, int64_t, int64_t, int) noexcept nogil  # from one to another, under a policy


cdef void _lru_run(void *state, int64_t start, int64_t end, int pin_both) noexcept nogil:
    ew_lru_run(<ew_lru *> state, start, end, pin_both)


cdef void _rr_run(void *state, int64_t start, int64_t end, int pin_both) noexcept nogil:
    ew_rr_run(<ew_rr *> state, start, end, pin_both)


cdef void _min_run(void *state, int64_t start, int64_t end, int pin_both) noexcept nogil:
    ew_min_run(<ew_min *> state, start, end)


cdef _walk(ew_fast_memory *m, void *state, connections run, int pin_both, int64_t w, uint8_t[::1] loads):
    """Process all connections; with loads, note how many values each of them reads."""
    cdef int64_t start, i, before
    for start in range(0, w, SLICE):
        with nogil:
            if loads.shape[0]:
                for i in range(start, min(start + SLICE, w)):
                    before = m.reads_neurons
                    run(state, i, i + 1, pin_both)
                    loads[i] = <uint8_t>(m.reads_neurons - before)
            else:
                run(state, start, min(start + SLICE, w), pin_both)
        PyErr_CheckSignals()


cdef _lru(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output, int64_t memory,
          int pin_both, int64_t[::1] row, uint8_t[::1] loads, ew_moves *moves):
    cdef int64_t w = sources.shape[0], n = is_output.shape[0]
    cdef int32_t[:, ::1] values = _values(sources, targets, n, -1)
    cdef ew_lru state
    _begin(&state.m, sources, targets, memory, is_output, moves)
    state.value = <ew_value *> &values[0, 0]
    state.tail = 0
    _walk(&state.m, &state, _lru_run, pin_both, w, loads)
    _report(&state.m, _final_writes(state.value, is_output, w, moves), row)


cdef _rr(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output, int64_t memory,
         int pin_both, int64_t[::1] row, uint8_t[::1] loads, ew_moves *moves):
    cdef int64_t w = sources.shape[0], n = is_output.shape[0]
    cdef int32_t[:, ::1] values = _values(sources, targets, n + 1, 0)
    cdef int32_t[::1] slot = np.full(min(memory - 1, n), n, np.int32)
    cdef ew_rr state
    _begin(&state.m, sources, targets, memory, is_output, moves)
    state.value = <ew_value *> &values[0, 0]
    state.slot = &slot[0]
    state.pointer = 0
    _walk(&state.m, &state, _rr_run, pin_both, w, loads)
    _report(&state.m, _final_writes(state.value, is_output, w, moves), row)


cdef _min(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] is_output, int64_t memory,
          const int32_t[::1] next_use, int64_t[::1] row, uint8_t[::1] loads, ew_moves *moves):
    cdef int64_t w = sources.shape[0], size = 4 * w, k
    cdef ew_min state
    cdef uint64_t[::1] level
    levels = []
    state.levels = 3 if 2 * w <= 64**4 else EW_MAX_LEVELS  # then the last level has at most 128 words
    for k in range(EW_MAX_LEVELS):
        size = (size + 63) // 64
        level = np.zeros(size, np.uint64)
        levels.append(level)
        state.level[k] = &level[0]
    _begin(&state.m, sources, targets, memory, is_output, moves)
    state.next_use = &next_use[0]
    state.writes_outputs = state.top = 0
    state.ceiling = -1
    for k in range(EW_HIGHEST):
        state.highest[k] = -1
    state.room = state.m.capacity
    _walk(&state.m, &state, _min_run, 0, w, loads)
    _report(&state.m, state.writes_outputs, row)


def find_next_uses(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons):
    """Return int32[2W]: for position 2i (source of connection i) and 2i + 1 (its target), the position of the same
    neuron's next access, or 2^31 - 1."""
    cdef int64_t w = sources.shape[0], end
    next_use = np.empty(2 * w, np.int32)
    cdef int32_t[::1] next_view = next_use
    cdef int32_t[::1] seen = np.full(n_neurons, EW_NEVER, np.int32)
    for end in range(w, 0, -SLICE):
        with nogil:
            ew_find_next_uses(&next_view[0], &seen[0], &sources[0], &targets[0], max(end - SLICE, 0), end)
        PyErr_CheckSignals()
    return next_use


def lru_curve(const int32_t[::1] sources, const int32_t[::1] targets, int64_t n_neurons, const uint8_t[::1] is_output,
              int pinning):
    """Return int64[N + 1, 3]: row C has reads_neurons, writes_live, writes_outputs of LRU with C values. O(W log N).

    Rows 0 and 1 are no valid memory sizes. More than N values change nothing.
    """
    cdef int64_t w = sources.shape[0], n = n_neurons, start, x
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
