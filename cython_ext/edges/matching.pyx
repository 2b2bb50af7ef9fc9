"""A largest matching of a bipartite graph."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from cython_ext.common.checks cimport need
from cython_ext.common.ranges cimport rises, within32


def largest_matching(const int64_t[::1] start, const int32_t[::1] target, int64_t n_targets):
    """Return int32[n]: a target for each source, no target twice, for as many sources as can have one; -1: none.

    start: int64[n + 1], target: int32[W], the targets of each source, CSR-style. Augmenting paths (Kuhn 1955), in
    rounds in which each target is visited once, until a round finds none: O(W) a round, few rounds in practice.
    """
    cdef int64_t n = start.shape[0] - 1, top, s, k, end
    cdef int32_t t, before, round = 0
    cdef bint found = True
    need(n >= 0 and rises(start, target.shape[0]) and within32(target, 0, n_targets), "known targets of each source")
    need(max(n, n_targets) < 2**31 - 1, "fewer than 2^31 - 1 sources and targets")
    matched = np.full(n, -1, np.int32)
    cdef int32_t[::1] target_of = matched, source_of = np.full(n_targets, -1, np.int32)
    cdef int32_t[::1] visited = np.full(n_targets, -1, np.int32), stack = np.empty(n + 1, np.int32)
    cdef int64_t[::1] free = np.array(start), at = np.array(start)  # next target to look at: a free one, any
    with nogil:
        while found:
            found = False
            for k in range(n):
                at[k] = start[k]
            for s in range(n):
                if target_of[s] >= 0:
                    continue
                stack[0], top = <int32_t> s, 0
                while top >= 0:
                    k, end = stack[top], start[stack[top] + 1]
                    while free[k] < end and source_of[target[free[k]]] >= 0:
                        free[k] += 1
                    if free[k] < end:  # each source on the path takes the target of the next one
                        t = target[free[k]]
                        while top >= 0:
                            k = stack[top]
                            before = target_of[k]
                            target_of[k], source_of[t] = t, <int32_t> k
                            t, top = before, top - 1
                        found = True
                        break
                    while at[k] < end and visited[target[at[k]]] == round:
                        at[k] += 1
                    if at[k] == end:
                        top -= 1
                        continue
                    t = target[at[k]]
                    visited[t] = round
                    top += 1
                    stack[top] = source_of[t]
            round += 1
    return matched
