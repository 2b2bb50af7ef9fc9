"""Residency intervals: opens nearest to a wish that need so many slots, sources that stay between stages; a sort by
small keys."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32

cdef enum:
    # Places of many groups at once would be written all over memory: above MANY keys, at most DIGIT bits of them are
    # sorted at a time, so that few places are open and those stay in the nearest caches.
    DIGIT = 12
    MANY = 1 << 18
    AHEAD = 32  # keys asked for before they are needed

cdef extern from *:
    void __builtin_prefetch(const void *) nogil


def latest_opens(const int32_t[::1] drops, const int32_t[::1] wish, int64_t slots):
    """Return int32[n]: the items in order of opening. O(n log n).

    drops: items in order of dropping. wish: the rank at which each would like to open. Item v may open at rank k only
    if k < slots + (rank of its drop). Scheduled backwards: each rank goes to the item with the latest wish of those
    that may have it.
    """
    cdef int64_t n = drops.shape[0], rank, next_drop = n - 1, size = 0, at, child
    cdef int32_t item, last
    need(slots > 0 and within32(drops, 0, wish.shape[0]), "slots, and items that have a wish")
    slots = min(slots, n + 1)  # sums with more would leave 64 bits
    opens = np.empty(n, np.int32)
    cdef int32_t[::1] opens_view = opens, heap = np.empty(n + 1, np.int32)  # the latest wish is at heap[1]
    with nogil:
        for rank in range(n - 1, -1, -1):
            while next_drop >= 0 and next_drop + slots - 1 >= rank:
                item = drops[next_drop]
                next_drop -= 1
                size += 1
                at = size
                while at > 1 and wish[heap[at >> 1]] < wish[item]:
                    heap[at] = heap[at >> 1]
                    at >>= 1
                heap[at] = item
            opens_view[rank] = heap[1]
            last = heap[size]
            size -= 1
            at = 1
            while 2 * at <= size:
                child = 2 * at
                if child < size and wish[heap[child + 1]] > wish[heap[child]]:
                    child += 1
                if wish[last] >= wish[heap[child]]:
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = last
    return opens


ctypedef fused place_t:
    int32_t
    int64_t


def grouped(const int32_t[::1] keys, int64_t groups, const int32_t[::1] first=None):
    """Return int32[W], the order of places that sorts keys in [0, groups), stable. O(W + groups).

    first: int32[W], the order in which equal keys follow each other, instead of 0, 1, ... Raises ValueError for a key
    out of range.
    """
    need(first is None or (first.shape[0] == keys.shape[0] and _each_once(first)), "a place for each key")
    order = np.empty(keys.shape[0], np.int32)
    if _ascend(keys, groups) and first is None:
        order[:] = np.arange(len(order), dtype=np.int32)
    else:
        _group[int32_t](keys, groups, first, None, order)
    return order


def carried(const int64_t[::1] start, const int32_t[::1] opened, const int32_t[::1] finish,
            const int32_t[::1] release, int64_t stages):
    """Return int32[W], 4 * stage + place of each connection.

    Sources are loaded at as few stages as pierce the intervals, where one may stay from each stage into the next. O(W).

    start: int64[n + 1], the connections of each source. opened, finish: int32[W], the stages (from 1) between which a
    connection's target is resident. release: int32[n], the stage until which a source itself is resident; 0: never.
    place: 0, the source stayed from the stage before; 1, it is loaded; 2, loaded and stays; 3, resident.
    """
    cdef int64_t n = release.shape[0], w = opened.shape[0]
    cdef int64_t s, k, next, after, end
    cdef int32_t point, place
    cdef bint stays, known
    need(start.shape[0] == n + 1 and rises(start, w), "the connections of each source")
    need(0 <= stages < 1 << 28, "a number of stages")
    known = within32(opened, 1, stages + 1) and within32(finish, 1, stages + 1)
    known &= within32(release, 0, stages + 1) and finish.shape[0] == w
    need(known, "stages of each connection")
    for k in range(w):
        need(opened[k] <= finish[k], "no finish before the open")
    source = np.repeat(np.arange(n, dtype=np.int32), np.diff(start))
    places = np.empty(w, np.int32)
    cdef const int32_t[::1] lane = grouped(source, n, grouped(opened, stages + 1))
    cdef int32_t[::1] found = places
    cdef int32_t[::1] least = np.empty(w + 1, np.int32)  # finish from here on
    cdef int32_t[::1] loads = np.zeros(w + 1, np.int32)  # from here on
    cdef uint8_t[::1] taken = np.zeros(stages + 1, np.uint8)  # one stays beyond it
    taken[0] = True
    with nogil:
        for s in range(n):
            next = end = start[s + 1]
            least[end], loads[end] = <int32_t> stages, 0
            for k in range(end - 1, start[s] - 1, -1):
                least[k] = min(finish[lane[k]], least[k + 1])
                while opened[lane[next - 1]] > least[k]:
                    next -= 1
                loads[k] = loads[next] + 1
            point, place, k = release[s], 3, start[s]
            while k < end:
                next = k
                while next < end and opened[lane[next]] <= point:
                    next += 1
                after = next
                while after < end and opened[lane[after]] == point + 1:
                    after += 1
                stays = loads[after] < loads[next] and not taken[point]
                if stays:
                    taken[point] = True
                    place = min(place + 1, 3)
                for k in range(k, next):
                    found[lane[k]] = 4 * min(point, finish[lane[k]]) + place
                if stays:
                    for k in range(next, after):
                        found[lane[k]] = 4 * (point + 1)
                    next = after
                point, place, k = least[next], 1, next
    return places


def in_groups(const int32_t[::1] values, const int32_t[::1] keys, int64_t groups):
    """Return int64[W], values of at least 0 in the order that sorts their keys in [0, groups), stable. O(W + groups).

    Raises ValueError for a key out of range.
    """
    need(values.shape[0] == keys.shape[0], "one value for each key")
    if _ascend(keys, groups):
        return np.asarray(values).astype(np.int64)
    found = np.empty(keys.shape[0], np.int64)
    _group[int64_t](keys, groups, None, values, found)
    return found


cdef bint _each_once(const int32_t[::1] places):
    """Whether each of 0 to n - 1 is there once."""
    cdef int64_t k, n = places.shape[0]
    cdef uint8_t[::1] seen = np.zeros(n, np.uint8)
    for k in range(n):
        if places[k] < 0 or places[k] >= n or seen[places[k]]:
            return False
        seen[places[k]] = 1
    return True


cdef bint _ascend(const int32_t[::1] keys, int64_t groups) except -1:
    """Check the keys; return whether they ascend."""
    cdef int64_t k
    cdef int32_t least = 0
    cdef bint ascend = True
    for k in range(keys.shape[0]):
        if keys[k] < 0 or keys[k] >= groups:
            raise ValueError(f"key {keys[k]} is not in [0, {groups})")
        ascend = ascend and keys[k] >= least
        least = keys[k]
    return ascend


cdef _group(const int32_t[::1] keys, int64_t groups, const int32_t[::1] first, const int32_t[::1] values,
            place_t[::1] out):
    """Write what `grouped` and `in_groups` return: places in `first`'s order, or values."""
    cdef int64_t w = keys.shape[0], k
    cdef int32_t place
    cdef int64_t[::1] at
    groups = min(groups, <int64_t> 1 << 31)  # of keys of 32 bits
    if w > MANY and groups > <int64_t> 1 << DIGIT:
        _by_digits[place_t](keys, groups, first, values, out)
        return
    at = np.zeros(groups + 1, np.int64)
    with nogil:
        for k in range(w):
            at[keys[k] + 1] += 1
        for k in range(groups):
            at[k + 1] += at[k]
        for k in range(w):
            if first is not None:
                __builtin_prefetch(&keys[first[min(k + AHEAD, w - 1)]])
            place = first[k] if first is not None else <int32_t> k
            out[at[keys[place]]] = place if values is None else values[k]
            at[keys[place]] += 1


cdef _by_digits(const int32_t[::1] keys, int64_t groups, const int32_t[::1] first, const int32_t[::1] values,
                place_t[::1] out):
    """Sort as `_group` does, by the lowest digits of the keys first; a key and its place or value move together."""
    cdef int64_t w = keys.shape[0], k
    cdef int bits = DIGIT, passes, width, done, shift
    cdef int32_t place
    cdef uint32_t mask, digit
    while groups > <int64_t> 1 << bits:
        bits += 1
    passes = (bits + DIGIT - 1) // DIGIT
    width = (bits + passes - 1) // passes
    mask = (<uint32_t> 1 << width) - 1
    cdef uint64_t[::1] after = np.empty(w, np.uint64), before = np.empty(w if passes > 2 else 0, np.uint64)
    cdef int64_t[::1] at
    for done in range(passes):
        shift = done * width
        at = np.zeros(mask + 2, np.int64)
        with nogil:
            for k in range(w):
                at[(<uint32_t> keys[k] >> shift & mask) + 1] += 1
            for k in range(mask):
                at[k + 1] += at[k]
            if done == 0:
                for k in range(w):
                    if first is not None:
                        __builtin_prefetch(&keys[first[min(k + AHEAD, w - 1)]])
                    place = first[k] if first is not None else <int32_t> k
                    digit = <uint32_t> keys[place] & mask
                    after[at[digit]] = <uint64_t> keys[place] << 32 | <uint32_t> (place if values is None else values[k])
                    at[digit] += 1
            elif done < passes - 1:
                for k in range(w):
                    digit = <uint32_t> (before[k] >> (32 + shift)) & mask
                    after[at[digit]] = before[k]
                    at[digit] += 1
            else:
                for k in range(w):
                    digit = <uint32_t> (before[k] >> (32 + shift)) & mask
                    out[at[digit]] = <int32_t> <uint32_t> before[k]
                    at[digit] += 1
        before, after = after, before
