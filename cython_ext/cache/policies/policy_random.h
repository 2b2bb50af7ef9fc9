/* random: a seeded random way goes. */
#pragma once

static int64_t edgewatt_random_victim(edgewatt_sets *sets, uint64_t set) {
    (void)set;
    return (int64_t)edgewatt_draw(sets, (uint64_t)sets->ways);
}

static const edgewatt_policy edgewatt_policy_random = {.version = EDGEWATT_POLICY_VERSION,
                                                       .victim = edgewatt_random_victim};
