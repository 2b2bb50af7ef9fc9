"""The rolling output-stationary construction: which neuron to finish next, which to open in its place.

Works on the items of reorder.edges.search.intervals: items are neurons with incoming connections, topologically numbered.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int8_t, int32_t, int64_t

cdef int64_t SLICE = 1 << 22  # connections and items looked at between two looks at Ctrl-C and the clock: some 10 ms
cdef int64_t WIDEST = 1 << 13  # targets not open yet of a source that still makes them more likely to open
cdef int64_t LOOKED_UP = 32  # targets of a source for each open one, above which the open ones are looked up

cdef enum:
    WAITING, OPEN, FINISHED, DROPPED  # an item's life; inputs are FINISHED from the start, never resident


cdef struct Rolling:
    int64_t n, slots, window, now
    int64_t work         # connections and items looked at, about
    const int32_t *in_start, *in_source
    const int64_t *out_start
    const int32_t *out_target, *own, *item
    int8_t *life         # [n]
    int8_t *done         # [edges], by item: the connection has been processed
    int32_t *remaining   # [n]: connections into it not processed
    int32_t *unfinished  # [n]: its sources not finished
    int32_t *missing     # [n]: its sources neither finished nor open
    int32_t *overlap     # [n]: its sources that are hot
    int32_t *pending     # [sources]: connections to open targets not processed
    int8_t *resident     # [sources]: open, or finished and kept
    int8_t *heated       # [sources]: hot as `overlap` knows it
    int32_t *unserved    # [sources]: targets not processed
    int32_t *opened      # [n]: stage of opening
    int32_t *open_list, *open_place
    int64_t n_open
    int32_t *kept_list   # finished values that stay for targets to come
    int64_t n_kept
    int32_t *ready       # items that may open
    int32_t *ready_place
    int64_t n_ready
    int32_t *opens, *drops
    int64_t n_opens, n_drops
    double age, degree_weight
    int64_t keep         # most finished values to keep


cdef inline bint hot(const Rolling *r, int64_t s) noexcept nogil:
    return r.pending[s] > 0 or r.resident[s]


cdef void heat(Rolling *r, int64_t s) noexcept nogil:
    """Tell the targets of s whether it is hot; where more wait than WIDEST, it tells none from another."""
    cdef int64_t k
    cdef int32_t *overlap = r.overlap
    cdef const int32_t *out_target = r.out_target
    cdef int32_t change = hot(r, s) - r.heated[s]
    if change == 0 or r.unserved[s] - r.pending[s] > WIDEST:
        return
    for k in range(r.out_start[s], r.out_start[s + 1]):
        overlap[out_target[k]] += change
    r.work += r.out_start[s + 1] - r.out_start[s]
    r.heated[s] += <int8_t> change


cdef void make_ready(Rolling *r, int64_t v) noexcept nogil:
    r.ready_place[v] = <int32_t> r.n_ready
    r.ready[r.n_ready] = <int32_t> v
    r.n_ready += 1


cdef void open_item(Rolling *r, int64_t v) noexcept nogil:
    cdef int64_t e, s, k, t, place = r.ready_place[v]
    r.n_ready -= 1
    r.ready[place] = r.ready[r.n_ready]
    r.ready_place[r.ready[place]] = <int32_t> place
    r.life[v] = OPEN
    r.opened[v] = <int32_t> r.now
    r.opens[r.n_opens] = <int32_t> v
    r.n_opens += 1
    r.open_place[v] = <int32_t> r.n_open
    r.open_list[r.n_open] = <int32_t> v
    r.n_open += 1
    for e in range(r.in_start[v], r.in_start[v + 1]):
        s = r.in_source[e]
        r.pending[s] += 1
        heat(r, s)
    s = r.own[v]
    if s >= 0:
        r.resident[s] = 1
        heat(r, s)
        for k in range(r.out_start[s], r.out_start[s + 1]):
            t = r.out_target[k]
            r.missing[t] -= 1
            if r.missing[t] == 0 and r.life[t] == WAITING:
                make_ready(r, t)


cdef inline int64_t place_of(const Rolling *r, int64_t s, int64_t t) noexcept nogil:
    """The first place among the connections of s, which are sorted by target, whose target is not below t."""
    cdef int64_t low = r.out_start[s], high = r.out_start[s + 1], middle
    while low < high:
        middle = (low + high) >> 1
        if r.out_target[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low


cdef void serve(Rolling *r, int64_t s) noexcept nogil:
    """Process every connection of s into open targets; where s has far more targets, the open ones are looked up."""
    cdef int64_t k, j, start = r.out_start[s], end = r.out_start[s + 1]
    cdef int8_t *done = r.done  # held apart from r: for all the compiler knows, writing a byte may change it
    cdef const int8_t *life = r.life
    cdef int32_t *remaining = r.remaining
    cdef const int32_t *out_target = r.out_target
    cdef int32_t unserved = r.unserved[s]
    if r.pending[s] == 0:
        return
    r.work += min(end - start, LOOKED_UP * r.n_open)
    if end - start > LOOKED_UP * r.n_open:
        for j in range(r.n_open):
            k = place_of(r, s, r.open_list[j])
            if k < end and out_target[k] == r.open_list[j] and not done[k]:
                done[k] = 1
                remaining[out_target[k]] -= 1
                unserved -= 1
    else:
        for k in range(start, end):
            if life[out_target[k]] == OPEN and not done[k]:
                done[k] = 1
                remaining[out_target[k]] -= 1
                unserved -= 1
    r.unserved[s] = unserved
    r.pending[s] = 0
    heat(r, s)


cdef void drop_item(Rolling *r, int64_t v) noexcept nogil:
    cdef int64_t s = r.own[v]
    r.drops[r.n_drops] = <int32_t> v
    r.n_drops += 1
    r.life[v] = DROPPED
    if s >= 0:
        r.resident[s] = 0
        heat(r, s)


cdef void finish_item(Rolling *r, int64_t v) noexcept nogil:
    """All of v's sources are served: v leaves the open ones, serves its open targets, and is dropped or kept."""
    cdef int64_t place = r.open_place[v], s = r.own[v], k, worst, x
    r.n_open -= 1
    r.open_list[place] = r.open_list[r.n_open]
    r.open_place[r.open_list[place]] = <int32_t> place
    r.life[v] = FINISHED
    if s >= 0:
        for k in range(r.out_start[s], r.out_start[s + 1]):
            r.unfinished[r.out_target[k]] -= 1
        serve(r, s)
        if r.unserved[s] > 0:
            r.kept_list[r.n_kept] = <int32_t> v
            r.n_kept += 1
            return
    drop_item(r, v)


cdef void sweep_kept(Rolling *r) noexcept nogil:
    """Serve the open targets of kept values; drop those with none left, then the neediest ones above the limit."""
    cdef int64_t k = 0, s, worst
    while k < r.n_kept:
        s = r.own[r.kept_list[k]]
        serve(r, s)
        if r.unserved[s] == 0:
            drop_item(r, r.kept_list[k])
            r.n_kept -= 1
            r.kept_list[k] = r.kept_list[r.n_kept]
        else:
            k += 1
    while r.n_kept > r.keep:
        worst = 0
        for k in range(1, r.n_kept):
            if r.unserved[r.own[r.kept_list[k]]] > r.unserved[r.own[r.kept_list[worst]]]:
                worst = k
        drop_item(r, r.kept_list[worst])
        r.n_kept -= 1
        r.kept_list[worst] = r.kept_list[r.n_kept]


cdef int64_t best_to_open(Rolling *r) noexcept nogil:
    """The ready item that asks for the fewest loads nobody else needs; first come, first served among equals."""
    cdef int64_t k, v, best = r.ready[0]
    cdef double score, best_score = -1e300
    r.work += min(r.n_ready, r.window)
    for k in range(min(r.n_ready, r.window)):
        v = r.ready[k]
        score = r.overlap[v] - r.degree_weight * (r.in_start[v + 1] - r.in_start[v])
        if score > best_score or (score == best_score and v < best):
            best, best_score = v, score
    return best


cdef int64_t best_to_finish(const Rolling *r) noexcept nogil:
    """The open item with the fewest connections left, less its age; its sources must all be finished."""
    cdef int64_t k, v, best = -1
    cdef double score, best_score = 1e300
    for k in range(r.n_open):
        v = r.open_list[k]
        if r.unfinished[v] > 0:
            continue
        score = r.remaining[v] - r.age * (r.now - r.opened[v])
        if score < best_score or (score == best_score and v < best):
            best, best_score = v, score
    return best


cdef void step(Rolling *r) noexcept nogil:
    """One stage: fill the slots, then finish one item (others may finish with it)."""
    cdef int64_t e, v, k
    while r.n_ready > 0 and r.n_open + r.n_kept < r.slots:
        open_item(r, best_to_open(r))
    if r.n_open == 0:  # only kept values are left in the way
        drop_item(r, r.kept_list[r.n_kept - 1])
        r.n_kept -= 1
        return
    v = best_to_finish(r)
    r.work += r.n_open + r.in_start[v + 1] - r.in_start[v]
    for e in range(r.in_start[v], r.in_start[v + 1]):
        serve(r, r.in_source[e])
    finish_item(r, v)
    k = 0
    while k < r.n_open:
        v = r.open_list[k]
        if r.remaining[v] == 0:
            finish_item(r, v)
            k = 0
        else:
            k += 1
    sweep_kept(r)
    r.now += 1


def rolling(const int32_t[::1] in_start, const int32_t[::1] in_source, const int64_t[::1] out_start,
            const int32_t[::1] out_target, const int32_t[::1] own, const int32_t[::1] item, int64_t slots,
            int64_t keep, double age, double degree_weight, int64_t window, over=None):
    """Return (opens, drops), int32[n] each: a state with at most `slots` residents; its beginning where `over()` ends it.

    keep: most finished values kept resident for targets not open yet (below `slots`). age: weight of the stages since
    opening against connections left. degree_weight: weight of the in-degree against shared sources, when opening.
    window: ready items looked at per opening. Time O(W + n (slots + window)) and the transitions of shared sources.
    """
    cdef int64_t n = own.shape[0], n_sources = item.shape[0], k
    cdef Rolling r
    i4 = lambda size: np.zeros(max(1, size), np.int32)
    remaining_array = np.diff(in_start).astype(np.int32)
    hidden = np.asarray(item)[np.asarray(in_source)] >= 0
    unfinished_array = np.add.reduceat(hidden, np.asarray(in_start)[:n], dtype=np.int32)
    cdef int8_t[::1] life = np.zeros(n, np.int8), done = np.zeros(in_source.shape[0], np.int8)
    cdef int8_t[::1] resident = np.zeros(n_sources, np.int8), heated = np.zeros(n_sources, np.int8)
    cdef int32_t[::1] remaining = remaining_array, unfinished = unfinished_array, missing = unfinished_array.copy()
    cdef int32_t[::1] overlap = i4(n), pending = i4(n_sources), opened = i4(n)
    cdef int32_t[::1] unserved = np.diff(out_start).astype(np.int32)
    cdef int32_t[::1] open_list = i4(n), open_place = i4(n), kept_list = i4(n), ready = i4(n), ready_place = i4(n)
    cdef int32_t[::1] opens = i4(n), drops = i4(n)
    r.n, r.slots, r.window, r.now = n, slots, window, 1
    r.in_start, r.in_source, r.out_start, r.out_target = &in_start[0], &in_source[0], &out_start[0], &out_target[0]
    r.own, r.item, r.life, r.done, r.resident = &own[0], &item[0], &life[0], &done[0], &resident[0]
    r.heated = &heated[0]
    r.remaining, r.unfinished, r.missing = &remaining[0], &unfinished[0], &missing[0]
    r.overlap, r.pending, r.unserved, r.opened = &overlap[0], &pending[0], &unserved[0], &opened[0]
    r.open_list, r.open_place, r.kept_list = &open_list[0], &open_place[0], &kept_list[0]
    r.ready, r.ready_place, r.opens, r.drops = &ready[0], &ready_place[0], &opens[0], &drops[0]
    r.n_open = r.n_kept = r.n_ready = r.n_opens = r.n_drops = 0
    r.age, r.degree_weight, r.keep = age, degree_weight, max(0, min(keep, slots - 1))
    for k in range(n):
        if missing[k] == 0:
            make_ready(&r, k)
    while r.n_drops < n:
        with nogil:
            r.work = 0
            while r.n_drops < n and r.work < SLICE:
                step(&r)
        PyErr_CheckSignals()
        if over is not None and over():
            break
    return opens.base[:r.n_opens], drops.base[:r.n_drops]
