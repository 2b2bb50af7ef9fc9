/* min: Belady's MIN, the line looked up latest again goes; ties go to the lowest way. State: int64 next use per way. */
#pragma once

static inline void edgewatt_min_note(edgewatt_sets *sets, uint64_t set, int64_t way, int64_t next) {
    ((int64_t *)edgewatt_set_state(sets, set))[way] = next;
}

static inline int64_t edgewatt_min_victim(edgewatt_sets *sets, uint64_t set) {
    const int64_t *next = edgewatt_set_state(sets, set);
    int64_t farthest = 0;
    for (int64_t way = 1; way < sets->ways; way++)
        if (next[way] > next[farthest]) farthest = way;
    return farthest;
}

static const edgewatt_policy edgewatt_policy_min = {.version = EDGEWATT_POLICY_VERSION,
                                                    .flags = EDGEWATT_EVERY_LOOKUP,
                                                    .bytes_per_way = 8,
                                                    .hit = edgewatt_min_note,
                                                    .fill = edgewatt_min_note,
                                                    .victim = edgewatt_min_victim};
