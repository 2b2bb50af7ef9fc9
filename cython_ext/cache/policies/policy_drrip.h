/* drrip: dynamic re-reference interval prediction (cache/rrip.h). Leader sets, 32 for each, are always static or always
 * bimodal; a counter of ten bits goes up with each fill of a static leader and down with each of a bimodal one, and the
 * other sets follow the one that misses less. OUR CHOICES: a constituency is max(2, sets / 32) sets, its first set leads
 * for static and its second for bimodal; the counter starts in the middle, where followers are static. */
#pragma once

#include "cache/policies/rrip.h"

enum { EDGEWATT_DRRIP_LEADERS = 32, EDGEWATT_DRRIP_MIDDLE = 512 };

static void edgewatt_drrip_fill(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    int64_t *counter = (int64_t *)sets->shared, size = sets->sets / EDGEWATT_DRRIP_LEADERS;
    const uint64_t place = set % (uint64_t)(size < 2 ? 2 : size);
    (void)next;
    if (place == 0 && *counter < EDGEWATT_DRRIP_MIDDLE - 1) ++*counter;
    if (place == 1 && *counter > -EDGEWATT_DRRIP_MIDDLE) --*counter;
    edgewatt_rrip_insert(sets, set, way, place == 1 || (place > 1 && *counter > 0));
}

EDGEWATT_RRIP_POLICY(drrip, 8)
