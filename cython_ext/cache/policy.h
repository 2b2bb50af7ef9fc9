/* What a replacement policy is to a cache level: the C signature of compiled policies, ours and those of others.
 *
 * A policy of this package is a file policies/policy_NAME.h that defines `static const edgewatt_policy
 * edgewatt_policy_NAME` (the build finds the file). One of another distribution is an object of
 * the same type in a library of its own: include this header, hand the address over as a PyCapsule named
 * "edgewatt.cache_policy" (or as an int), and see hwmodel.caches.policy.
 *
 * Sets and ways are counted from 0. A policy's state is `set_bytes` bytes per set and `shared_bytes` for the level, all
 * zero at first. Only `victim` decides; it is asked where every way of the set holds a line, else the first empty way is
 * filled. Functions may be null where there is nothing to do. They must not call Python.
 */
#ifndef EDGEWATT_CACHE_POLICY_H
#define EDGEWATT_CACHE_POLICY_H

#include <stdint.h>

#include "common/random.h"

#define EDGEWATT_POLICY_VERSION 1

enum {
    EDGEWATT_IN_ORDER = 1,     /* the lines of a set are kept in order of recency, the victim is the last: LRU */
    EDGEWATT_IN_TURN = 2,      /* the ways of a set are filled in turn */
    EDGEWATT_EVERY_LOOKUP = 4, /* `hit` is called even if the look-up before was of the same line */
};

typedef struct {
    int64_t sets, ways;
    uint8_t *state;    /* set_bytes for each set, aligned to 8 bytes where set_bytes is a multiple of 8 */
    int64_t set_bytes;
    uint8_t *shared;   /* shared_bytes, aligned to 8 bytes */
    uint64_t random;   /* state of the generator, the level's seed at first */
    void *owner;       /* of the policies written in Python */
    int failed;        /* set by the level if a victim is no way of its set */
} edgewatt_sets;

typedef struct {
    int32_t version;             /* EDGEWATT_POLICY_VERSION */
    int32_t flags;
    int64_t bytes_per_way;       /* set_bytes is bytes_per_set + ways * bytes_per_way */
    int64_t bytes_per_set, shared_bytes;
    /* next: position of the next look-up of the same line in the run, or a large number; only known to policies that
     * declare so in Python, else 0 */
    void (*hit)(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next);
    void (*fill)(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next);
    int64_t (*victim)(edgewatt_sets *sets, uint64_t set);
} edgewatt_policy;

static inline void *edgewatt_set_state(edgewatt_sets *sets, uint64_t set) {
    return sets->state + (int64_t)set * sets->set_bytes;
}

/* A number below n, by multiplication. */
static inline uint64_t edgewatt_draw(edgewatt_sets *sets, uint64_t n) {
    return ((ew_splitmix64(&sets->random) >> 32) * n) >> 32;
}

#endif
