/* brrip: bimodal re-reference interval prediction (cache/rrip.h). */
#ifndef EDGEWATT_POLICY_BRRIP_H
#define EDGEWATT_POLICY_BRRIP_H

#include "cache/policies/rrip.h"

static void edgewatt_brrip_fill(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    (void)next;
    edgewatt_rrip_insert(sets, set, way, 1);
}

static const edgewatt_policy edgewatt_policy_brrip = {.version = EDGEWATT_POLICY_VERSION,
                                                      .flags = EDGEWATT_EVERY_LOOKUP, /* a repeat is the hit after the fill */
                                                      .bytes_per_way = 1,
                                                      .hit = edgewatt_rrip_hit,
                                                      .fill = edgewatt_brrip_fill,
                                                      .victim = edgewatt_rrip_victim};
static edgewatt_loop edgewatt_fast_brrip(int simd, int64_t stride) { return EDGEWATT_NO_FAST(simd, stride); }

#endif
