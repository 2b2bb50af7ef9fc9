/* Re-reference interval prediction: Jaleel, Theobald, Steely & Emer, "High performance cache replacement using
 * re-reference interval prediction (RRIP)", ISCA 2010. A way has a prediction value of two bits, 0 (soon) to 3 (far).
 * A hit sets 0 (hit priority); the victim is the first way at 3, all ways ageing until there is one. Static: lines come
 * in at 2. Bimodal: at 3, but for one in 32 on average at 2. */
#pragma once

enum { EDGEWATT_RRIP_FAR = 3, EDGEWATT_RRIP_LONG = 2, EDGEWATT_RRIP_BIMODAL = 32 };

static inline void edgewatt_rrip_hit(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    (void)next;
    ((uint8_t *)edgewatt_set_state(sets, set))[way] = 0;
}

static inline int64_t edgewatt_rrip_victim(edgewatt_sets *sets, uint64_t set) {
    uint8_t *value = edgewatt_set_state(sets, set);
    int64_t oldest = 0;
    for (int64_t way = 1; way < sets->ways; way++)
        if (value[way] > value[oldest]) oldest = way;
    const uint8_t age = EDGEWATT_RRIP_FAR - value[oldest];
    if (age)
        for (int64_t way = 0; way < sets->ways; way++) value[way] += age;
    return oldest;
}

static inline void edgewatt_rrip_insert(edgewatt_sets *sets, uint64_t set, int64_t way, int bimodal) {
    const int far = bimodal && edgewatt_draw(sets, EDGEWATT_RRIP_BIMODAL) != 0;
    ((uint8_t *)edgewatt_set_state(sets, set))[way] = far ? EDGEWATT_RRIP_FAR : EDGEWATT_RRIP_LONG;
}

/* The policy `name`, whose file defines edgewatt_NAME_fill. shared: bytes that all sets share. A repeat is the hit after
 * the fill, so every look-up counts. */
#define EDGEWATT_RRIP_POLICY(name, shared) \
    static const edgewatt_policy edgewatt_policy_##name = {.version = EDGEWATT_POLICY_VERSION, \
                                                           .flags = EDGEWATT_EVERY_LOOKUP, \
                                                           .bytes_per_way = 1, \
                                                           .shared_bytes = shared, \
                                                           .hit = edgewatt_rrip_hit, \
                                                           .fill = edgewatt_##name##_fill, \
                                                           .victim = edgewatt_rrip_victim};
