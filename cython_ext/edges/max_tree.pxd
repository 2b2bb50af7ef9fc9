"""The highest of n keys, any of which may change: a complete binary tree of maxima. O(log n) per change at worst; a
change that does not reach the maximum of a pair stops there. A key holds a priority and an index: ties go to the
smallest.
"""

from libc.stdint cimport int64_t

cdef extern from * nogil:
    """
    #include <stdint.h>

    typedef struct {
        int64_t leaves; /* a power of two, at least n */
        int64_t *key;   /* [2 * leaves]; key[1] is the highest, leaf k is key[leaves + k] */
    } ew_max_tree;

    static inline int64_t ew_tree_leaves(int64_t n) {
        int64_t leaves = 1;
        while (leaves < n) leaves *= 2;
        return leaves;
    }

    static inline void ew_tree_set(ew_max_tree *t, int64_t k, int64_t key) {
        int64_t at = t->leaves + k;
        if (t->key[at] == key) return;
        t->key[at] = key;
        while (at > 1) {
            const int64_t left = t->key[at & ~(int64_t)1], right = t->key[at | 1];
            const int64_t highest = left > right ? left : right;
            at /= 2;
            if (t->key[at] == highest) return;
            t->key[at] = highest;
        }
    }

    static inline int64_t ew_tree_key(const ew_max_tree *t, int64_t k) { return t->key[t->leaves + k]; }

    /* A leaf that holds the highest key. */
    static inline int64_t ew_tree_top(const ew_max_tree *t) {
        int64_t at = 1;
        while (at < t->leaves) at = 2 * at + (t->key[2 * at] != t->key[1]);
        return at - t->leaves;
    }
    """
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
