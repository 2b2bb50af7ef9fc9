"""The tree of max_tree.h, and its keys: a priority, and an index so that ties go to the smallest one."""

from libc.stdint cimport int64_t

cdef extern from "edges/max_tree.h" nogil:
    ctypedef struct ew_max_tree:
        int64_t leaves
        int64_t *key
    int64_t ew_tree_leaves(int64_t)
    void ew_tree_set(ew_max_tree *, int64_t, int64_t)
    int64_t ew_tree_key(const ew_max_tree *, int64_t)
    int64_t ew_tree_top(const ew_max_tree *)

cdef enum:
    INDEX_BITS = 32


cdef inline int64_t key_of(int64_t priority, int64_t index) noexcept nogil:
    return (priority << INDEX_BITS) - index
