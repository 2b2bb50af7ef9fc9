/* The annealing loop for one lane type and SIMD level; included by residency.h with EW_LANE, EW_BITS, EW_NAME,
 * EW_TARGET, EW_SIMD and EW_NEVER_POINT defined. No include guard: it is meant to be included again and again. */

/* The smallest finish of the targets that open after `point`, or EW_NEVER_POINT. */
EW_TARGET static inline EW_LANE EW_NAME(ew_next_point)(const EW_LANE *open, const EW_LANE *finish, int64_t n,
                                                       EW_LANE point) {
#if EW_SIMD == 2 && EW_BITS == 16
    const __m512i p = _mm512_set1_epi16((short)point);
    __m512i least = _mm512_set1_epi16(-1);
    for (int64_t i = 0; i < n; i += 32) {
        const __mmask32 later = _mm512_cmpgt_epu16_mask(_mm512_loadu_si512(open + i), p);
        least = _mm512_mask_min_epu16(least, later, least, _mm512_loadu_si512(finish + i));
    }
    const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
    const __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return (EW_LANE)_mm_extract_epi16(_mm_minpos_epu16(quarter), 0);
#elif EW_SIMD == 2
    const __m512i p = _mm512_set1_epi32((int)point);
    __m512i least = _mm512_set1_epi32((int)EW_NEVER_POINT);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 later = _mm512_cmpgt_epu32_mask(_mm512_loadu_si512(open + i), p);
        least = _mm512_mask_min_epu32(least, later, least, _mm512_loadu_si512(finish + i));
    }
    return (EW_LANE)_mm512_reduce_min_epu32(least);
#else
    EW_LANE least = EW_NEVER_POINT;
    for (int64_t i = 0; i < n; i++) {
        const EW_LANE f = open[i] > point ? finish[i] : (EW_LANE)EW_NEVER_POINT;
        least = f < least ? f : least;
    }
    return least;
#endif
}

/* The first index whose point is not below `stage`. The sentinel ends the search. */
EW_TARGET static inline int64_t EW_NAME(ew_first_not_below)(const EW_LANE *points, int64_t n, EW_LANE stage) {
    int64_t low = 0;
    while (n - low > 16) {
        const int64_t middle = (low + n) >> 1;
        if (points[middle] < stage) low = middle + 1; else n = middle;
    }
    while (points[low] < stage) low++;
    return low;
}

/* The stage until which source s is resident for nothing: its drop; an input streams past and never stays. */
EW_TARGET static inline EW_LANE EW_NAME(ew_release)(const ew_residency *r, int64_t s) {
    return r->item[s] < 0 ? 0 : (EW_LANE)r->drop_rank[r->item[s]];
}

EW_TARGET static inline int64_t EW_NAME(ew_loads_cost)(const ew_residency *r, int64_t s, int64_t n_points) {
    return n_points + (n_points > 0 && r->item[s] >= 0);
}

/* Which points (indices from 0) of a source change when a target's interval [A, F] becomes [A2, F2]: widen
 * [*first, *last] to hold them. Point j is the least F among A > point j - 1, so an interval matters only at the first
 * point not below its A, and not at all if the source is still resident when it opens. */
EW_TARGET static inline void EW_NAME(ew_change)(const EW_LANE *points, int64_t n, EW_LANE release, EW_LANE a,
                                                EW_LANE f, EW_LANE a2, EW_LANE f2, int64_t *first, int64_t *last) {
    if (a > release) {
        const int64_t j = EW_NAME(ew_first_not_below)(points, n, a);
        if (points[j] == f && !(a2 == a && f2 == f)) {
            if (j < *first) *first = j;
            if (j > *last) *last = j;
        }
    }
    if (a2 > release) {
        const int64_t j = EW_NAME(ew_first_not_below)(points, n, a2);
        if (f2 < points[j]) {
            if (j < *first) *first = j;
            if (j > *last) *last = j;
        }
    }
}

/* Put source s on the list of those to search again: points first to last change, the others follow from them. */
static inline int64_t EW_NAME(ew_list)(ew_residency *r, int64_t *n_listed, int64_t s, int64_t first, int64_t last) {
    const int64_t place = *n_listed;
    r->list[place] = (int32_t)s;
    r->first[place] = (int32_t)first;
    r->last[place] = (int32_t)last;
    r->lane_v[place] = r->lane_w[place] = -1;
    r->listed[s] = r->move << 32 | place;
    ++*n_listed;
    return place;
}

/* Try to exchange opens and/or drops of items v and w. Returns 1 if the move was legal and accepted. */
EW_TARGET static int EW_NAME(ew_try)(ew_residency *r, int64_t v, int64_t w, int opens, int drops, uint32_t random32) {
    EW_LANE *const lane_open = (EW_LANE *)r->lane_open, *const lane_finish = (EW_LANE *)r->lane_finish;
    EW_LANE *const points = (EW_LANE *)r->points, *const fresh = (EW_LANE *)r->fresh;
    const int32_t p = (int32_t)r->slots;
#define EW_STAGE(rank) ((rank) <= p ? 1 : (rank) - p + 1)
    const int32_t a_v = EW_STAGE(r->open_rank[v]), a_w = EW_STAGE(r->open_rank[w]);
    const int32_t d_v = r->drop_rank[v], d_w = r->drop_rank[w];
    const int32_t f_v = r->finish[v], f_w = r->finish[w];
    const int32_t a_v2 = opens ? a_w : a_v, a_w2 = opens ? a_v : a_w;
    const int32_t d_v2 = drops ? d_w : d_v, d_w2 = drops ? d_v : d_w;
    int32_t f_v2 = f_v, f_w2 = f_w;
    if (drops) { /* the caller has seen to d_v < d_w: v moves later, w earlier */
        if (r->own[v] >= 0) {
            const int64_t s = r->own[v], base = r->lane_start[s];
            /* latest finish of v: its drop, and no later than its targets finish (pads open at 0: not looked at) */
            const EW_LANE target = EW_NAME(ew_next_point)(lane_open + base, lane_finish + base,
                                                          r->lane_start[s + 1] - base, 0);
            f_v2 = d_v2 < (int32_t)target ? d_v2 : (int32_t)target;
        } else f_v2 = d_v2;
        f_w2 = f_w < d_w2 ? f_w : d_w2;
        if (a_w2 > f_w2) return 0;
        if (f_w2 < f_w)
            for (int32_t e = r->in_start[w]; e < r->in_start[w + 1]; e++) {
                const int32_t u = r->item[r->in_source[e]];
                if (u >= 0 && (u == v || r->finish[u] > f_w2)) return 0;
            }
        else if (f_v2 > f_v)
            for (int32_t e = r->in_start[w]; e < r->in_start[w + 1]; e++)
                if (r->item[r->in_source[e]] == v) return 0;
    }
    if (a_v2 > f_v2 || a_w2 > f_w2) return 0;

    int64_t n_listed = 0;
    r->move++;
    if (drops) { /* as sources, both get another release */
        if (r->own[v] >= 0) EW_NAME(ew_list)(r, &n_listed, r->own[v], 0, 0);
        if (r->own[w] >= 0) EW_NAME(ew_list)(r, &n_listed, r->own[w], 0, 0);
    }
    for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++) {
        const int64_t s = r->in_source[e];
        int64_t place = -1;
        r->mark[s] = r->move << 32 | e;
        if (r->listed[s] >> 32 == r->move) { /* its release changes too: search to the end */
            place = r->listed[s] & 0xffffffff;
            r->last[place] = r->n_points[s];
        } else {
            int64_t first = INT32_MAX, last = -1;
            EW_NAME(ew_change)(points + r->lane_start[s] + s, r->n_points[s], EW_NAME(ew_release)(r, s), (EW_LANE)a_v,
                               (EW_LANE)f_v, (EW_LANE)a_v2, (EW_LANE)f_v2, &first, &last);
            if (last >= 0) place = EW_NAME(ew_list)(r, &n_listed, s, first, last);
        }
        if (place >= 0) r->lane_v[place] = r->in_lane[e];
    }
    for (int32_t e = r->in_start[w]; e < r->in_start[w + 1]; e++) {
        const int64_t s = r->in_source[e];
        const int is_listed = r->listed[s] >> 32 == r->move;
        int64_t place = is_listed ? r->listed[s] & 0xffffffff : -1;
        if (is_listed && (r->item[s] == v || r->item[s] == w)) r->last[place] = r->n_points[s];
        else {
            int64_t first = is_listed ? r->first[place] : INT32_MAX, last = is_listed ? r->last[place] : -1;
            EW_NAME(ew_change)(points + r->lane_start[s] + s, r->n_points[s], EW_NAME(ew_release)(r, s), (EW_LANE)a_w,
                               (EW_LANE)f_w, (EW_LANE)a_w2, (EW_LANE)f_w2, &first, &last);
            if (is_listed) {
                r->first[place] = (int32_t)first;
                r->last[place] = (int32_t)last;
            } else if (last >= 0) {
                place = EW_NAME(ew_list)(r, &n_listed, s, first, last);
                if (r->mark[s] >> 32 == r->move) r->lane_v[place] = r->in_lane[r->mark[s] & 0xffffffff];
            }
        }
        if (place >= 0) r->lane_w[place] = r->in_lane[e];
    }
    r->checks += r->in_start[v + 1] - r->in_start[v] + r->in_start[w + 1] - r->in_start[w];
    r->searches += n_listed;

    int64_t delta = 0, fresh_end = 0;
    for (int64_t k = 0; k < n_listed; k++) {
        const int64_t s = r->list[k], base = r->lane_start[s], lanes = r->lane_start[s + 1] - base;
        const int64_t lv = r->lane_v[k], lw = r->lane_w[k];
        const EW_LANE *old = points + base + s;
        if (lv >= 0) lane_open[lv] = (EW_LANE)a_v2, lane_finish[lv] = (EW_LANE)f_v2;
        if (lw >= 0) lane_open[lw] = (EW_LANE)a_w2, lane_finish[lw] = (EW_LANE)f_w2;
        const int64_t from = r->first[k], last = r->last[k], fresh_from = fresh_end;
        EW_LANE point;
        if (from > 0) point = old[from - 1];
        else if (drops && r->item[s] == v) point = (EW_LANE)d_v2;
        else if (drops && r->item[s] == w) point = (EW_LANE)d_w2;
        else point = EW_NAME(ew_release)(r, s);
        int64_t i = from;
        for (;;) {
            point = EW_NAME(ew_next_point)(lane_open + base, lane_finish + base, lanes, point);
            while (old[i] < point) i++;
            /* met the old points, with no change to come; or both have ended */
            if (old[i] == point && (i >= last || point == (EW_LANE)EW_NEVER_POINT)) break;
            fresh[fresh_end++] = point;
        }
        r->old_end[k] = (int32_t)i;
        r->new_end[k] = (int32_t)fresh_end;
        const int64_t before = r->n_points[s], after = before + (fresh_end - fresh_from) - (i - from);
        delta += EW_NAME(ew_loads_cost)(r, s, after) - EW_NAME(ew_loads_cost)(r, s, before);
        if (lv >= 0) lane_open[lv] = (EW_LANE)a_v, lane_finish[lv] = (EW_LANE)f_v;
        if (lw >= 0) lane_open[lw] = (EW_LANE)a_w, lane_finish[lw] = (EW_LANE)f_w;
    }
    if (delta > 0 && (delta >= EW_CHANCES || random32 * 0x1p-32 >= r->chance[delta])) return 0;

    r->cost += delta;
    fresh_end = 0;
    for (int64_t k = 0; k < n_listed; k++) { /* splice the new points in */
        const int64_t s = r->list[k], from = r->first[k], old_end = r->old_end[k], added = r->new_end[k] - fresh_end;
        EW_LANE *old = points + r->lane_start[s] + s;
        const int64_t rest = r->n_points[s] + 1 - old_end; /* with the sentinel */
        if (added != old_end - from) memmove(old + from + added, old + old_end, (size_t)rest * sizeof(EW_LANE));
        memcpy(old + from, fresh + fresh_end, (size_t)added * sizeof(EW_LANE));
        r->n_points[s] = (int32_t)(from + added + rest - 1);
        fresh_end = r->new_end[k];
    }
    for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++)
        lane_open[r->in_lane[e]] = (EW_LANE)a_v2, lane_finish[r->in_lane[e]] = (EW_LANE)f_v2;
    for (int32_t e = r->in_start[w]; e < r->in_start[w + 1]; e++)
        lane_open[r->in_lane[e]] = (EW_LANE)a_w2, lane_finish[r->in_lane[e]] = (EW_LANE)f_w2;
    if (opens) {
        const int32_t rank = r->open_rank[v];
        r->open_rank[v] = r->open_rank[w];
        r->open_rank[w] = rank;
        r->open_at[r->open_rank[v] - 1] = (int32_t)v;
        r->open_at[r->open_rank[w] - 1] = (int32_t)w;
    }
    if (drops) {
        r->drop_rank[v] = d_v2;
        r->drop_rank[w] = d_w2;
        r->drop_at[d_v2 - 1] = (int32_t)v;
        r->drop_at[d_w2 - 1] = (int32_t)w;
    }
    r->finish[v] = f_v2;
    r->finish[w] = f_w2;
    return 1;
#undef EW_STAGE
}

EW_TARGET static void EW_NAME(ew_anneal)(ew_residency *r, int64_t moves) {
    ew_proposal p;
    for (int64_t k = 0; k < moves; k++)
        if (ew_propose(r, &p)) r->accepted += EW_NAME(ew_try)(r, p.v, p.w, p.opens, p.drops, p.random32);
}

/* Recompute finishes (as late as drops and targets allow), lanes, points and cost from the two permutations. */
EW_TARGET static void EW_NAME(ew_refresh)(ew_residency *r) {
    EW_LANE *const lane_open = (EW_LANE *)r->lane_open, *const lane_finish = (EW_LANE *)r->lane_finish;
    EW_LANE *const points = (EW_LANE *)r->points;
    const int64_t p = r->slots;
    for (int64_t v = r->n - 1; v >= 0; v--) { /* items are numbered topologically: targets come before sources here */
        int64_t finish = r->drop_rank[v];
        const int64_t rank = r->open_rank[v], s = r->own[v];
        if (s >= 0) {
            const int64_t base = r->lane_start[s];
            const int64_t target = EW_NAME(ew_next_point)(lane_open + base, lane_finish + base,
                                                          r->lane_start[s + 1] - base, 0);
            if (target < finish) finish = target;
        }
        r->finish[v] = (int32_t)finish;
        const EW_LANE open = (EW_LANE)(rank <= p ? 1 : rank - p + 1);
        for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++)
            lane_open[r->in_lane[e]] = open, lane_finish[r->in_lane[e]] = (EW_LANE)finish;
    }
    r->cost = r->move = 0;
    memset(r->mark, 0, (size_t)r->n_sources * sizeof *r->mark);
    memset(r->listed, 0, (size_t)r->n_sources * sizeof *r->listed);
    for (int64_t s = 0; s < r->n_sources; s++) {
        const int64_t base = r->lane_start[s];
        EW_LANE *const own = points + base + s;
        EW_LANE point = EW_NAME(ew_release)(r, s);
        int64_t count = 0;
        for (;; count++) {
            point = EW_NAME(ew_next_point)(lane_open + base, lane_finish + base, r->lane_start[s + 1] - base, point);
            own[count] = point;
            if (point == (EW_LANE)EW_NEVER_POINT) break;
        }
        r->n_points[s] = (int32_t)count;
        r->cost += EW_NAME(ew_loads_cost)(r, s, count);
    }
}

#undef EW_LANE
#undef EW_BITS
#undef EW_NEVER_POINT
#undef EW_NAME
#undef EW_TARGET
#undef EW_SIMD
