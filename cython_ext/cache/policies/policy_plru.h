/* plru: tree pseudo-LRU. A set has ways - 1 nodes, bytes in heap order from index 1; 1 points right. */
#pragma once

static inline void edgewatt_plru_touch(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    uint8_t *tree = edgewatt_set_state(sets, set);
    (void)next;
    for (int64_t node = way + sets->ways; node > 1; node >>= 1) tree[node >> 1] = !(node & 1); /* point away from it */
}

static inline int64_t edgewatt_plru_victim(edgewatt_sets *sets, uint64_t set) {
    const uint8_t *tree = edgewatt_set_state(sets, set);
    int64_t node = 1;
    while (node < sets->ways) node = 2 * node + tree[node];
    return node - sets->ways;
}

static const edgewatt_policy edgewatt_policy_plru = {.version = EDGEWATT_POLICY_VERSION,
                                                     .bytes_per_way = 1,
                                                     .hit = edgewatt_plru_touch,
                                                     .fill = edgewatt_plru_touch,
                                                     .victim = edgewatt_plru_victim};
