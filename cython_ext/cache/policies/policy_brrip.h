/* brrip: bimodal re-reference interval prediction (cache/rrip.h). */
#pragma once

#include "cache/policies/rrip.h"

static void edgewatt_brrip_fill(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    (void)next;
    edgewatt_rrip_insert(sets, set, way, 1);
}

EDGEWATT_RRIP_POLICY(brrip, 0)
