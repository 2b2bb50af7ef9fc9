"""Topological orders of connections: target by target, and those that no sort key gives: random, depth-first, and by
connected components of ranges of depths.

Connections are grouped by source (`out_start`, `out_edges`) and by target (`in_start`, `in_edges`), CSR-style.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport ends_within, rises, within32, within64

cdef int64_t SLICE = 1 << 18

ctypedef struct pair:  # a connection that was sorted by source
    int32_t edge
    int32_t place  # of its target


def goes_down(const int32_t[:, ::1] ends, const int64_t[::1] depth):
    """Return (whether every connection ends one deeper than it starts, whether every one ends at a higher id). O(W).

    ends: int32[W, 2], source and target of each connection. depth: int64[N].
    """
    cdef int64_t w = ends.shape[0], k, begin
    cdef int64_t level = 0
    cdef int32_t lower = 0
    need(ends_within(ends, depth.shape[0]), "connections between neurons that are there")
    for begin in range(0, w, SLICE):
        with nogil:
            for k in range(begin, min(begin + SLICE, w)):  # without a branch
                level |= (depth[ends[k, 1]] - depth[ends[k, 0]]) ^ 1
                lower |= ends[k, 0] >= ends[k, 1]
        if level and lower:
            break
    return level == 0, lower == 0


def by_target(const int32_t[:, ::1] ends, const int32_t[::1] place):
    """Return int64[W]: the connections by the place of their targets, those into one target by source. O(W + N).

    ends: int32[W, 2], source and target of each connection. place: int32[N], a permutation. Sorts by counting, first by
    source, then by place; what is in this order already is seen in one pass. 8 W bytes besides the result.
    """
    cdef int64_t w = ends.shape[0], n = place.shape[0], k, at
    cdef int32_t last_place = -1, last_source = -1, here
    cdef bint sorted = True
    need(ends_within(ends, n) and within32(place, 0, n), "connections between neurons that have a place")
    with nogil:
        for k in range(w):
            here = place[ends[k, 1]]
            if here < last_place or (here == last_place and ends[k, 0] < last_source):
                sorted = False
                break
            last_place, last_source = here, ends[k, 0]
    if sorted:
        return np.arange(w)
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order
    cdef int64_t[::1] of_source = np.zeros(n + 1, np.int64), of_place = np.zeros(n + 1, np.int64)
    cdef pair[::1] pairs = np.empty(w, [("edge", np.int32), ("place", np.int32)])
    with nogil:
        for k in range(w):
            of_source[ends[k, 0] + 1] += 1
            of_place[place[ends[k, 1]] + 1] += 1
        for k in range(n):
            of_source[k + 1] += of_source[k]
            of_place[k + 1] += of_place[k]
        for k in range(w):
            at = of_source[ends[k, 0]]
            of_source[ends[k, 0]] = at + 1
            pairs[at].edge, pairs[at].place = <int32_t> k, place[ends[k, 1]]
        for k in range(w):
            here = pairs[k].place
            order_view[of_place[here]] = pairs[k].edge
            of_place[here] += 1
    return order


def early_outputs(const int32_t[:, ::1] ends, const int64_t[::1] base, const uint8_t[::1] moved):
    """Return int64[W]: the connections in the order of `base`, those into moved neurons as soon as their source is
    free.

    ends: int32[W, 2]. base: int64[W], a topological order. moved: uint8[N], 0 or 1; what feeds nothing. Free: after the
    last connection into the source, and the last one out of it that is not moved. O(W + N), 8 W bytes besides.
    """
    cdef int64_t w = base.shape[0], k, edge, place, total
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order
    cdef int64_t[::1] free = np.zeros(moved.shape[0], np.int64)  # k + 1: after place k
    cdef int64_t[::1] at = np.zeros(w + 1, np.int64)  # what becomes free there; then where the next one of these goes
    cdef int32_t s, t
    need(ends.shape[0] == w and ends_within(ends, moved.shape[0]), "a place for each connection of known neurons")
    need(within64(base, 0, w), "connections that are there")
    with nogil:
        for k in range(w):
            s, t = ends[base[k], 0], ends[base[k], 1]
            free[t] = k + 1
            if not moved[t]:
                free[s] = k + 1
        for k in range(w):
            if moved[ends[base[k], 1]]:
                at[free[ends[base[k], 0]]] += 1
        total = 0
        for k in range(w + 1):
            if k > 0 and not moved[ends[base[k - 1], 1]]:
                order_view[total] = base[k - 1]
                total += 1
            place = total
            total += at[k]
            at[k] = place
        for k in range(w):
            edge = base[k]
            if moved[ends[edge, 1]]:
                place = free[ends[edge, 0]]
                order_view[at[place]] = edge
                at[place] += 1
    return order


def random_topological(const int64_t[::1] targets, const int64_t[::1] in_degree, const int64_t[::1] out_start,
                       const int64_t[::1] out_edges, rng):
    """Return int64[W]: again and again one connection, uniform among those whose source is done. O(W + N).

    rng: numpy Generator; one double per connection is drawn.
    """
    cdef int64_t w = targets.shape[0], n = in_degree.shape[0], n_ready = 0, k, j, x, edge, start
    order, ready = np.empty(w, np.int64), np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order, ready_view = ready
    cdef int64_t[::1] waiting = np.array(in_degree, np.int64)
    cdef const double[::1] draw
    need(rises(out_start, w) and out_start.shape[0] == n + 1 and out_edges.shape[0] == w
         and within64(out_edges, 0, w) and within64(targets, 0, n), "connections by source, between known neurons")
    for x in range(n):
        if waiting[x] == 0:
            for j in range(out_start[x], out_start[x + 1]):
                ready_view[n_ready] = out_edges[j]
                n_ready += 1
    for start in range(0, w, SLICE):
        draw = rng.random(min(SLICE, w - start))
        with nogil:
            for k in range(draw.shape[0]):
                if n_ready == 0:
                    break
                j = <int64_t> (draw[k] * n_ready)
                edge = ready_view[j]
                n_ready -= 1
                ready_view[j] = ready_view[n_ready]
                order_view[start + k] = edge
                x = targets[edge]
                waiting[x] -= 1
                if waiting[x] == 0:
                    for j in range(out_start[x], out_start[x + 1]):
                        ready_view[n_ready] = out_edges[j]
                        n_ready += 1
        need(n_ready > 0 or start + draw.shape[0] >= w, "sources that come to be done")
        PyErr_CheckSignals()
    return order


def depth_first(const int64_t[::1] sources, const int64_t[::1] roots, const int64_t[::1] in_start,
                const int64_t[::1] in_edges):
    """Return int64[W]: for each root, each of its incoming connections in turn, its source computed first. O(W + N).

    A connection is processed as soon as its source is done, so the partial sums on the path to the root stay open.
    roots: neurons from which every connection is reached backwards.
    """
    cdef int64_t n = in_start.shape[0] - 1, w = sources.shape[0], k, top, x, edge, done = 0
    cdef bint ends = True
    need(rises(in_start, w) and in_edges.shape[0] == w and within64(in_edges, 0, w) and within64(sources, 0, n)
         and within64(roots, 0, n), "connections by target, between known neurons")
    order = np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order
    cdef int64_t[::1] at = np.array(in_start[:n], np.int64)  # next incoming connection of each neuron
    cdef int64_t[::1] stack = np.empty(n + 1, np.int64)
    for k in range(roots.shape[0]):
        with nogil:
            stack[0] = roots[k]
            top = 0
            while top >= 0:
                x = stack[top]
                if at[x] == in_start[x + 1]:
                    top -= 1
                    continue
                edge = in_edges[at[x]]
                if at[sources[edge]] < in_start[sources[edge] + 1]:
                    top += 1
                    if top > n:
                        ends = False
                        break
                    stack[top] = sources[edge]
                    continue
                order_view[done] = edge
                done += 1
                at[x] += 1
        need(ends, "connections without a cycle")
        if k % 256 == 0:
            PyErr_CheckSignals()
    return order[:done]


def registers(const int64_t[::1] sources, const int64_t[::1] by_depth, const int64_t[::1] in_start,
              const int64_t[::1] in_edges):
    """Return int32[N]: values that computing each neuron holds at once, if it were a tree. O(W + N).

    Sethi and Ullman 1970 (Strahler numbers): the source that needs most comes first, while nothing else is held, each
    other one beside the partial sum. by_depth: int64[N], neurons in topological order.
    """
    cdef int64_t k, v, e
    cdef int32_t most, second, x
    need(in_start.shape[0] == by_depth.shape[0] + 1 and rises(in_start, in_edges.shape[0])
         and within64(in_edges, 0, sources.shape[0]) and within64(sources, 0, by_depth.shape[0])
         and within64(by_depth, 0, by_depth.shape[0]), "connections by target, between known neurons")
    needs = np.ones(by_depth.shape[0], np.int32)
    cdef int32_t[::1] view = needs
    with nogil:
        for k in range(by_depth.shape[0]):
            v = by_depth[k]
            if in_start[v] == in_start[v + 1]:
                continue
            most, second = 0, 0
            for e in range(in_start[v], in_start[v + 1]):
                x = view[sources[in_edges[e]]]
                if x > most:
                    most, second = x, most
                elif x > second:
                    second = x
            view[v] = max(2, most, second + 1)
    return needs


def least_live(const int32_t[:, ::1] ends, const int64_t[::1] in_degree, const int64_t[::1] out_start,
               const int64_t[::1] out_edges):
    """Return int32[N]: neurons in an order of computation that keeps few values live. O(W + N).

    Next comes, of those whose sources are done, the neuron that uses up most of them for good; of these the one that
    came to this last. Where every step of some order uses up a value (compact growth, Gleinig et al. 2023, Appendix B),
    every step of this one does. ends: int32[W, 2].
    """
    cdef int64_t w = ends.shape[0], n = in_degree.shape[0], k, j, edge, entries = 0, done = 0
    cdef int32_t v, s, t, most = 0
    need(ends_within(ends, n) and out_edges.shape[0] == w and within64(out_edges, 0, w)
         and np.array_equal(in_degree, np.bincount(np.asarray(ends)[:, 1], minlength=n))
         and np.array_equal(np.diff(out_start), np.bincount(np.asarray(ends)[:, 0], minlength=n))
         and rises(out_start, w), "connections by source, between neurons of these degrees")
    order = np.empty(n, np.int32)
    cdef int32_t[::1] order_view = order
    cdef int64_t[::1] waiting = np.array(in_degree, np.int64), left = np.diff(out_start)
    cdef int64_t[::1] users = np.zeros(n, np.int64)  # the targets to come of each source, combined by exclusive or
    cdef int32_t[::1] gain = np.zeros(n, np.int32), neuron = np.empty(w + n, np.int32)
    cdef int64_t[::1] top = np.full(int(np.max(in_degree, initial=0)) + 1, -1, np.int64)  # by gain: the last entry
    cdef int64_t[::1] below = np.empty(w + n, np.int64)
    cdef uint8_t[::1] taken = np.zeros(n, np.uint8)
    cdef const int64_t[::1] in_start = np.concatenate(([0], np.cumsum(in_degree)))
    cdef const int32_t[::1] source = np.asarray(ends)[np.argsort(np.asarray(ends)[:, 1], kind="stable"), 0].copy()
    with nogil:
        for k in range(w):
            users[ends[k, 0]] ^= ends[k, 1]
        for k in range(w):
            if left[ends[k, 0]] == 1:
                gain[ends[k, 1]] += 1
        for k in range(n - 1, -1, -1):  # what nothing computes is there from the start
            if waiting[k] == 0:
                order_view[done] = <int32_t> k
                done += 1
        for k in range(done):
            for j in range(out_start[order_view[k]], out_start[order_view[k] + 1]):
                t = ends[out_edges[j], 1]
                waiting[t] -= 1
                if waiting[t] == 0:
                    neuron[entries], below[entries] = t, top[gain[t]]
                    top[gain[t]] = entries
                    entries += 1
                    most = max(most, gain[t])
        while most >= 0:
            if top[most] < 0:
                most -= 1
                continue
            v = neuron[top[most]]
            top[most] = below[top[most]]
            if taken[v] or gain[v] != most:
                continue
            taken[v] = True
            order_view[done] = v
            done += 1
            for k in range(in_start[v], in_start[v + 1]):
                s = source[k]
                left[s] -= 1
                users[s] ^= v
                t = <int32_t> users[s]
                if left[s] == 1:
                    gain[t] += 1
                    if waiting[t] == 0:
                        neuron[entries], below[entries] = t, top[gain[t]]
                        top[gain[t]] = entries
                        entries += 1
                        most = max(most, gain[t])
            for j in range(out_start[v], out_start[v + 1]):
                t = ends[out_edges[j], 1]
                waiting[t] -= 1
                if waiting[t] == 0:
                    neuron[entries], below[entries] = t, top[gain[t]]
                    top[gain[t]] = entries
                    entries += 1
                    most = max(most, gain[t])
    return order


cdef inline int32_t root_of(int32_t[::1] parent, int32_t v) noexcept nogil:
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


def components(const int32_t[:, ::1] ends, const int64_t[::1] depth, const int64_t[::1] base, double split,
               int64_t narrow):
    """Return (int64[W], int64[W]): connections component by component, and the group that each one's place is in.

    A range of depths (of targets) is cut into its connected components, which come one after another, the one that
    `base` meets first before the others; each is cut at the share `split` of its depths, and so on down to components
    with at most `narrow` targets in each depth. A group is what such a component has of one depth; its number is its
    first place. base: int64[W], connections by depth of target, then by target; every cut keeps its order.
    ends: int32[W, 2]. O(W log(depths)) for splits near a half.
    """
    cdef int64_t w = base.shape[0], n = depth.shape[0], begin, end, k, at, low, high, cut, top = 0, found
    cdef int64_t wide, widest
    cdef int32_t a, b, x
    need(ends.shape[0] == w and ends_within(ends, n) and within64(base, 0, w) and within64(depth, 0, n),
         "a place for each connection of known neurons")
    need(np.all(np.diff(np.asarray(depth)[np.asarray(ends)[np.asarray(base), 1]]) >= 0), "connections by depth of target")
    order, group = np.array(base, np.int64), np.empty(w, np.int64)
    cdef int64_t[::1] order_view = order, group_view = group, spare = np.empty(w, np.int64)
    cdef int64_t[::1] count = np.empty(n + 2, np.int64), first = np.empty(w + 2, np.int64)  # first: stack of ends
    cdef int64_t[::1] last = np.empty(w + 2, np.int64)
    cdef int32_t[::1] parent = np.empty(n, np.int32), number = np.full(n, -1, np.int32)
    cdef bint whole
    first[0], last[0], top = 0, w, 1 if w else 0
    while top:
        with nogil:
            top -= 1
            begin, end = first[top], last[top]
            for k in range(begin, end):
                parent[ends[order_view[k], 0]] = ends[order_view[k], 0]
                parent[ends[order_view[k], 1]] = ends[order_view[k], 1]
            for k in range(begin, end):
                a, b = root_of(parent, ends[order_view[k], 0]), root_of(parent, ends[order_view[k], 1])
                if a != b:
                    parent[b] = a
            found = 0
            for k in range(begin, end):  # number components as they are met, count their connections
                a = root_of(parent, ends[order_view[k], 0])
                if number[a] < 0:
                    number[a] = <int32_t> found
                    count[found] = 0
                    found += 1
                count[number[a]] += 1
                spare[k] = order_view[k]
            at = begin
            for k in range(found):
                at, count[k] = at + count[k], at
            for k in range(begin, end):
                x = number[root_of(parent, ends[spare[k], 0])]
                order_view[count[x]] = spare[k]
                count[x] += 1
            for k in range(begin, end):
                number[root_of(parent, ends[spare[k], 0])] = -1
            for x in range(<int32_t> found - 1, -1, -1):  # the first component on top of the stack
                at, end = count[x - 1] if x else begin, count[x]
                low, high = depth[ends[order_view[at], 1]], depth[ends[order_view[end - 1], 1]]
                group_view[at], wide, widest = at, 1, 1
                for k in range(at + 1, end):
                    a, b = ends[order_view[k - 1], 1], ends[order_view[k], 1]
                    group_view[k] = group_view[k - 1] if depth[a] == depth[b] else k
                    wide = wide + (a != b) if depth[a] == depth[b] else 1
                    widest = max(widest, wide)
                if low < high and widest > narrow:
                    cut = low + max(1, min(high - low, <int64_t> ((high - low + 1) * split + 0.5)))
                    k = at
                    while k < end and depth[ends[order_view[k], 1]] < cut:
                        k += 1
                    first[top], last[top] = k, end
                    first[top + 1], last[top + 1] = at, k
                    top += 2
        PyErr_CheckSignals()
    return order, group
