/* The points of one source: finding, and searching again; included by body.h, whose macros it uses. */

/* The smallest finish of the targets that open after `point`, or EW_NEVER_POINT. */
EW_TARGET static inline EW_LANE EW_NAME(ew_next_point)(const EW_LANE *open, const EW_LANE *finish, int64_t n,
                                                       EW_LANE point) {
#if EW_MASKS
    const __m512i p = EW_SET1(point);
    __m512i least = EW_SET1(EW_NEVER_POINT);
    for (int64_t i = 0; i < n; i += EW_LINE) { /* the last vector may reach into the lanes of others */
        const uint32_t own = EW_BELOW(n - i), later = EW_MASKED(gt)(own, _mm512_loadu_si512(open + i), p);
        least = EW_MASKED_MIN(least, later, least, _mm512_loadu_si512(finish + i));
    }
    return (EW_LANE)EW_MIN(least);
#else
    EW_LANE least = EW_NEVER_POINT;
    for (int64_t i = 0; i < n; i++) {
        const EW_LANE f = open[i] > point ? finish[i] : (EW_LANE)EW_NEVER_POINT;
        least = f < least ? f : least;
    }
    return least;
#endif
}

/* The first index whose point is not below `stage`. The sentinel, at n, ends the search. */
EW_TARGET static inline int32_t EW_NAME(ew_first_not_below)(const EW_LANE *points, int64_t n, EW_LANE stage) {
#if EW_MASKS
    (void)n;
    for (int32_t i = 0;; i += EW_LINE) { /* may read past the sentinel, where EW_SLACK lanes follow the last points */
        const uint32_t found = EW_MASK(ge)(_mm512_loadu_si512(points + i), EW_SET1(stage));
        if (found) return i + __builtin_ctz(found);
    }
#else
    int64_t i = 0;
    while (n - i > 16) {
        const int64_t middle = (i + n) >> 1;
        if (points[middle] < stage) i = middle + 1; else n = middle;
    }
    while (points[i] < stage) i++;
    return (int32_t)i;
#endif
}

/* The lane of an item among those of a source, or -1. */
EW_TARGET static inline int64_t EW_NAME(ew_lane_of)(const EW_LANE *items, int64_t n, EW_LANE item) {
#if EW_MASKS
    for (int64_t i = 0; i < n; i += EW_LINE) {
        const uint32_t found = EW_MASK(eq)(_mm512_loadu_si512(items + i), EW_SET1(item));
        if (found) return i + __builtin_ctz(found) < n ? i + __builtin_ctz(found) : -1;
    }
#else
    for (int64_t i = 0; i < n; i++)
        if (items[i] == item) return i;
#endif
    return -1;
}

#if EW_MASKS

/* Let the lines of a source follow its release and points. */
EW_TARGET static inline void EW_NAME(ew_line)(ew_residency *r, int64_t s) {
    EW_LANE *const line = (EW_LANE *)r->lines + 2 * s * EW_LINE;
    const uint32_t lanes = EW_BELOW(r->source[s].n_points + 1);
    const __m512i pad = EW_SET1(EW_NEVER_POINT);
    _mm512_store_si512(line, EW_MASKED_LOAD(pad, lanes & ~1u, (const EW_LANE *)r->points + r->source[s].points - 1));
    _mm512_store_si512(line + EW_LINE, EW_MASKED_LOAD(pad, lanes & ~1u, (const EW_LANE *)r->early + r->source[s].points - 1));
    line[0] = (EW_LANE)r->source[s].release;
    line[EW_LINE] = 0;
}
#endif

/* The points of a source, from 0, and a sentinel: those of its line where they fit, for that is at hand. */
EW_TARGET static inline const EW_LANE *EW_NAME(ew_points)(const ew_residency *r, int64_t s) {
#if EW_MASKS
    const EW_LANE *const line = (const EW_LANE *)r->lines + 2 * s * EW_LINE;
    if (EW_HELD(line)) return line + 1;
#endif
    return (const EW_LANE *)r->points + r->source[s].points;
}

EW_TARGET static inline const EW_LANE *EW_NAME(ew_early_points)(const ew_residency *r, int64_t s) {
#if EW_MASKS
    const EW_LANE *const line = (const EW_LANE *)r->lines + 2 * s * EW_LINE;
    if (EW_HELD(line)) return line + EW_LINE + 1;
#endif
    return (const EW_LANE *)r->early + r->source[s].points;
}

/* The largest open of the targets that open after `release` and finish before `point`. */
EW_TARGET static inline EW_LANE EW_NAME(ew_last_open)(const EW_LANE *open, const EW_LANE *finish, int64_t n,
                                                      EW_LANE release, EW_LANE point) {
    EW_LANE most = 0;
#if EW_MASKS
    const __m512i from = EW_SET1(release), to = EW_SET1(point);
    __m512i largest = _mm512_setzero_si512();
    for (int64_t i = 0; i < n; i += EW_LINE) {
        const __m512i a = _mm512_loadu_si512(open + i);
        const uint32_t own = EW_BELOW(n - i), before = EW_MASKED(lt)(own, _mm512_loadu_si512(finish + i), to);
        largest = EW_MASKED_MAX(largest, EW_MASKED(gt)(before, a, from), largest, a);
    }
    most = (EW_LANE)EW_MAX(largest);
#else
    for (int64_t i = 0; i < n; i++) {
        const EW_LANE a = ((open[i] > release) & (finish[i] < point)) ? open[i] : (EW_LANE)0;
        most = a > most ? a : most;
    }
#endif
    return most;
}

/* by_stage[k]: the smallest finish of the targets of source s that open at k or later: the point behind k - 1. */
EW_TARGET static const EW_LANE *EW_NAME(ew_least_by_stage)(const ew_residency *r, int64_t s) {
    const int64_t base = r->out_start[s], lanes = r->out_start[s + 1] - base;
    const EW_LANE *const open = (const EW_LANE *)r->lane_open + base, *const finish = (const EW_LANE *)r->lane_finish + base;
    EW_LANE *const least = (EW_LANE *)r->by_stage;
    for (int64_t k = 0; k <= r->n + 1; k++) least[k] = (EW_LANE)EW_NEVER_POINT;
    for (int64_t i = 0; i < lanes; i++)
        if (finish[i] < least[open[i]]) least[open[i]] = finish[i];
    for (int64_t k = r->n; k > 0; k--)
        if (least[k + 1] < least[k]) least[k] = least[k + 1];
    return least;
}

/* by_stage[k]: the largest open of the targets of source s that open after its release and finish at k or before. */
EW_TARGET static const EW_LANE *EW_NAME(ew_most_by_stage)(const ew_residency *r, int64_t s) {
    const int64_t base = r->out_start[s], lanes = r->out_start[s + 1] - base;
    const EW_LANE *const open = (const EW_LANE *)r->lane_open + base, *const finish = (const EW_LANE *)r->lane_finish + base;
    const EW_LANE release = (EW_LANE)r->source[s].release;
    EW_LANE *const most = (EW_LANE *)r->by_stage;
    for (int64_t k = 0; k <= r->n; k++) most[k] = 0;
    for (int64_t i = 0; i < lanes; i++)
        if (open[i] > release && open[i] > most[finish[i]]) most[finish[i]] = open[i];
    for (int64_t k = 1; k <= r->n; k++)
        if (most[k - 1] > most[k]) most[k] = most[k - 1];
    return most;
}

/* Find the points of a source behind the first `count`, the last of which is `point`; return how many there are. */
EW_TARGET static int64_t EW_NAME(ew_points_by_table)(const ew_residency *r, int64_t s, int64_t count, EW_LANE point) {
    const EW_LANE *const least = EW_NAME(ew_least_by_stage)(r, s);
    EW_LANE *const points = (EW_LANE *)r->points + r->source[s].points;
    while ((points[count] = point = least[(int64_t)point + 1]) != (EW_LANE)EW_NEVER_POINT) count++;
    return count;
}

/* Find the early points of a source, last first, in such a table. */
EW_TARGET static void EW_NAME(ew_early_by_table)(const ew_residency *r, int64_t s) {
    const EW_LANE *const most = EW_NAME(ew_most_by_stage)(r, s);
    EW_LANE *const early = (EW_LANE *)r->early + r->source[s].points;
    int64_t before = r->n;
    for (int32_t j = r->source[s].n_points - 1; j >= 0; j--) {
        early[j] = most[before];
        before = early[j] > 0 ? (int64_t)early[j] - 1 : 0;
    }
}

/* Find the early points of a source, last first: by symmetry there are as many. */
EW_TARGET static void EW_NAME(ew_find_early)(ew_residency *r, int64_t s) {
    const int64_t base = r->out_start[s], lanes = r->out_start[s + 1] - base;
    EW_LANE *const early = (EW_LANE *)r->early + r->source[s].points;
    EW_LANE point = (EW_LANE)EW_NEVER_POINT;
    early[r->source[s].n_points] = point;
    const int tabled = EW_TABLED(r, lanes, r->source[s].n_points);
    if (tabled) EW_NAME(ew_early_by_table)(r, s);
    for (int32_t j = r->source[s].n_points - 1; j >= 0 && !tabled; j--)
        early[j] = point = EW_NAME(ew_last_open)((const EW_LANE *)r->lane_open + base,
                                                 (const EW_LANE *)r->lane_finish + base, lanes,
                                                 (EW_LANE)r->source[s].release, point);
#if EW_MASKS
    EW_NAME(ew_line)(r, s);
#endif
}

/* The same after an accepted move that leaves the source's release, `before` being how many there were. Behind an early
 * point that is where it was, the next one is too, unless a changed target gave it or now gives a later one. */
EW_TARGET static void EW_NAME(ew_follow_early)(ew_residency *r, int64_t s, int32_t before) {
    const int64_t base = r->out_start[s], lanes = r->out_start[s + 1] - base;
    const int32_t n = r->source[s].n_points, kept = before < n ? before : n;
    EW_LANE *const early = (EW_LANE *)r->early + r->source[s].points;
    const EW_LANE *most = NULL; /* the table, once there are many to look for */
    EW_LANE point = (EW_LANE)EW_NEVER_POINT, old_point = point;
    int64_t examined = 0;
    if (lanes <= 128) { /* a few vectors */
        EW_NAME(ew_find_early)(r, s);
        return;
    }
    memmove(early + n - kept, early + before - kept, (size_t)kept * sizeof(EW_LANE)); /* the last ones stay the last */
    early[n] = point;
    for (int32_t j = n - 1; j >= 0; j--) {
        const EW_LANE old = early[j];
        int again = (j < n - kept) | (point != old_point);
        for (int64_t c = 0; c < r->n_changes && !again; c++) {
            const ew_change *const change = &r->changes[c];
            again = (((EW_LANE)change->old_finish < point) & ((EW_LANE)change->old_open == old)) |
                    (((EW_LANE)change->finish < point) & ((EW_LANE)change->open > old));
        }
        if (again && !most && EW_TABLED(r, lanes, ++examined)) most = EW_NAME(ew_most_by_stage)(r, s);
        if (!again)
            point = old;
        else if (most)
            point = most[point > r->n ? r->n : point > 0 ? (int64_t)point - 1 : 0];
        else
            point = EW_NAME(ew_last_open)((const EW_LANE *)r->lane_open + base, (const EW_LANE *)r->lane_finish + base,
                                          lanes, (EW_LANE)r->source[s].release, point);
        early[j] = point;
        old_point = old;
    }
#if EW_MASKS
    EW_NAME(ew_line)(r, s);
#endif
}

#if EW_MASKS && EW_BITS == 16
/* Search a source of at most 32 `vectors` targets again from its point `from` on, the changes put in place in registers:
 * lanes that were just written could not be read as a vector for some 15 cycles. Returns how many points there are now
 * in `fresh`, which give way to the old ones up to *met. */
EW_TARGET static inline __attribute__((always_inline)) int64_t EW_NAME(ew_search_few)(
    const ew_residency *r, int64_t base, int64_t lanes, const EW_LANE *old, int64_t from, int64_t last, EW_LANE point,
    EW_LANE *fresh, int64_t *met, const int vectors) {
    __m512i open[4], finish[4], item[4];
    __mmask32 own[4];
    for (int x = 0; x < vectors; x++) {
        const int64_t left = lanes - 32 * x;
        own[x] = left < 32 ? (1u << left) - 1 : ~0u;
        item[x] = _mm512_loadu_si512((const EW_LANE *)r->lane_item + base + 32 * x);
        open[x] = _mm512_loadu_si512((const EW_LANE *)r->lane_open + base + 32 * x);
        finish[x] = _mm512_loadu_si512((const EW_LANE *)r->lane_finish + base + 32 * x);
    }
    for (int64_t c = 0; c < r->n_changes; c++) {
        const __m512i changed = _mm512_set1_epi16((short)r->changes[c].item);
        for (int x = 0; x < vectors; x++) {
            const __mmask32 here = _mm512_mask_cmpeq_epu16_mask(own[x], item[x], changed);
            open[x] = _mm512_mask_set1_epi16(open[x], here, (short)r->changes[c].open);
            finish[x] = _mm512_mask_set1_epi16(finish[x], here, (short)r->changes[c].finish);
        }
    }
    int64_t i = from, count = 0;
    for (;;) {
        __m512i least = _mm512_set1_epi16(-1);
        const __m512i p = _mm512_set1_epi16((short)point);
        for (int x = 0; x < vectors; x++)
            least = _mm512_mask_min_epu16(least, _mm512_mask_cmpgt_epu16_mask(own[x], open[x], p), least, finish[x]);
        point = (EW_LANE)EW_MIN(least);
        while (old[i] < point) i++;
        /* met the old points, with no change to come; or both have ended */
        if (old[i] == point && (i >= last || point == (EW_LANE)EW_NEVER_POINT)) break;
        fresh[count++] = point;
    }
    *met = i;
    return count;
}
#endif

/* Search source s again from its point `from` on, with the changes in place. Returns how many points there are now in
 * `fresh`, which give way to the old ones up to *met. */
EW_TARGET static int64_t EW_NAME(ew_search)(ew_residency *r, int64_t s, int64_t from, int64_t last, EW_LANE *fresh,
                                            int64_t *met) {
    EW_LANE *const lane_open = (EW_LANE *)r->lane_open, *const lane_finish = (EW_LANE *)r->lane_finish;
    const EW_LANE *const lane_item = (const EW_LANE *)r->lane_item;
    const int64_t base = r->out_start[s], lanes = r->out_start[s + 1] - base;
    const EW_LANE *const old = EW_NAME(ew_points)(r, s);
    EW_LANE point = from > 0 ? old[from - 1] : (EW_LANE)r->source[s].release;
#if EW_MASKS && EW_BITS == 16
    if (lanes <= 32) return EW_NAME(ew_search_few)(r, base, lanes, old, from, last, point, fresh, met, 1);
    if (lanes <= 64) return EW_NAME(ew_search_few)(r, base, lanes, old, from, last, point, fresh, met, 2);
    if (lanes <= 96) return EW_NAME(ew_search_few)(r, base, lanes, old, from, last, point, fresh, met, 3);
    if (lanes <= 128) return EW_NAME(ew_search_few)(r, base, lanes, old, from, last, point, fresh, met, 4);
#endif
    const EW_LANE *least = NULL; /* the table, once there are many to look for */
    int64_t lane[EW_SPREAD + 2], i = from, count = 0;
    for (int64_t c = 0; c < r->n_changes; c++) {
        lane[c] = EW_NAME(ew_lane_of)(lane_item + base, lanes, (EW_LANE)r->changes[c].item);
        if (lane[c] < 0) continue;
        lane_open[base + lane[c]] = (EW_LANE)r->changes[c].open;
        lane_finish[base + lane[c]] = (EW_LANE)r->changes[c].finish;
    }
    for (;;) {
        if (!least && EW_TABLED(r, lanes, count)) least = EW_NAME(ew_least_by_stage)(r, s);
        point = least ? least[(int64_t)point + 1] : EW_NAME(ew_next_point)(lane_open + base, lane_finish + base, lanes, point);
        while (old[i] < point) i++;
        /* met the old points, with no change to come; or both have ended */
        if (old[i] == point && (i >= last || point == (EW_LANE)EW_NEVER_POINT)) break;
        fresh[count++] = point;
    }
    for (int64_t c = 0; c < r->n_changes; c++) {
        if (lane[c] < 0) continue;
        lane_open[base + lane[c]] = (EW_LANE)r->changes[c].old_open;
        lane_finish[base + lane[c]] = (EW_LANE)r->changes[c].old_finish;
    }
    *met = i;
    return count;
}
