/* The annealing loop; included by residency.h with EW_BITS (16 or 32: of a lane) and EW_MASKS (1: AVX-512) defined. No
 * include guard: it is meant to be included again and again. */

#include "residency/points.h"

EW_TARGET static inline int64_t EW_NAME(ew_loads_cost)(const ew_residency *r, int64_t s, int64_t n_points) {
    return n_points + (n_points > 0 && r->item[s] >= 0);
}

/* Whether no point of source s changes when a target's interval [A, F] becomes [A2, F2]. Point j is the least F among
 * A > point j - 1, so an interval matters only at the first point not below its A: if that is its own F, or past it;
 * and not at all if the source is still resident when it opens. */
EW_TARGET static inline int EW_NAME(ew_untouched)(const ew_residency *r, int64_t s, EW_LANE a, EW_LANE f, EW_LANE a2,
                                                  EW_LANE f2) {
#if EW_MASKS
    const __m512i x = _mm512_load_si512((const EW_LANE *)r->lines + 2 * s * EW_LINE);
    const uint32_t from = EW_MASK(ge)(x, EW_SET1(a)), from2 = EW_MASK(ge)(x, EW_SET1(a2));
    if (from && from2) { /* else the points go on */
        const int before = (from & (EW_MASK(lt)(x, EW_SET1(f)) | 1)) != 0;
        const int within2 = (from2 & (EW_MASK(le)(x, EW_SET1(f2)) | 1)) != 0;
        return before & within2;
    }
#endif
    const EW_LANE *const points = (const EW_LANE *)r->points + r->source[s].points;
    const EW_LANE release = (EW_LANE)r->source[s].release;
    const int32_t n = r->source[s].n_points;
    const int before = points[EW_NAME(ew_first_not_below)(points, n, a)] < f;
    const int within2 = points[EW_NAME(ew_first_not_below)(points, n, a2)] <= f2;
    return (before | (a <= release)) & (within2 | (a2 <= release));
}

/* Put source s on the list of those to search again: points first to last change, the others follow from them. */
static inline void EW_NAME(ew_list)(ew_residency *r, int64_t *n_listed, int64_t s, int32_t first, int32_t last,
                                    int32_t gain) {
    const int64_t place = (*n_listed)++;
    r->list[place] = (int32_t)s;
    r->first[place] = first;
    r->last[place] = last;
    r->gain[place] = gain;
    r->source[s].listed = r->move << 32 | place;
#if EW_MASKS /* what the search will read */
    const int64_t begin = r->out_start[s], end = r->out_start[s + 1];
    for (int64_t k = begin; k < end; k += EW_LINE) {
        __builtin_prefetch((const EW_LANE *)r->lane_item + k);
        __builtin_prefetch((const EW_LANE *)r->lane_open + k);
        __builtin_prefetch((const EW_LANE *)r->lane_finish + k);
    }
#endif
}

/* Change c touches source s: list it, with the points (from 0) that change by themselves. One interval less or wider
 * saves one point at most, and only if a point was there for it. */
EW_TARGET static void EW_NAME(ew_touch)(ew_residency *r, int64_t s, const ew_change *c, int64_t *n_listed) {
    const ew_source *const source = &r->source[s];
    const EW_LANE *const points = EW_NAME(ew_points)(r, s);
    const EW_LANE a = (EW_LANE)c->old_open, f = (EW_LANE)c->old_finish, a2 = (EW_LANE)c->open, f2 = (EW_LANE)c->finish;
    const EW_LANE release = (EW_LANE)source->release;
    const int is_listed = source->listed >> 32 == r->move;
    const int64_t place = source->listed & 0xffffffff;
    if (is_listed && r->last[place] == INT32_MAX) return; /* its release changes too: it is searched to the end */
    const int32_t j = a > release ? EW_NAME(ew_first_not_below)(points, source->n_points, a) : -1;
    const int32_t j2 = a2 > release ? EW_NAME(ew_first_not_below)(points, source->n_points, a2) : -1;
    const int old = j >= 0 && points[j] == f && (f2 != f || j2 != j), new = j2 >= 0 && f2 < points[j2];
    if (!old && !new) return;
    const int32_t first = !old || (new && j2 < j) ? j2 : j, last = !new || (old && j > j2) ? j : j2;
    const int32_t gain = old && (a2 < a || f2 > f);
    if (!is_listed) EW_NAME(ew_list)(r, n_listed, s, first, last, gain);
    else {
        if (first < r->first[place]) r->first[place] = first;
        if (last > r->last[place]) r->last[place] = last;
        r->gain[place] += gain;
    }
}

/* List the sources that change c touches. */
EW_TARGET static inline void EW_NAME(ew_check)(ew_residency *r, const ew_change *c, int64_t *n_listed) {
    const EW_LANE a = (EW_LANE)c->old_open, f = (EW_LANE)c->old_finish, a2 = (EW_LANE)c->open, f2 = (EW_LANE)c->finish;
    const int32_t *const in_source = r->in_source, begin = r->in_start[c->item], end = r->in_start[c->item + 1];
    if (a == a2 && f == f2) return;
    for (int32_t e = begin; e < end; e++)
        if (!EW_NAME(ew_untouched)(r, in_source[e], a, f, a2, f2)) EW_NAME(ew_touch)(r, in_source[e], c, n_listed);
}

/* Search the listed sources again, as long as what is left to gain leaves a chance. Returns 1 if the new cost is
 * accepted; the new points are then in `fresh`. */
EW_TARGET static int EW_NAME(ew_evaluate)(ew_residency *r, int64_t n_listed, int64_t limit) {
    EW_LANE *const fresh = (EW_LANE *)r->fresh;
    int64_t delta = 0, hope = 0, fresh_end = 0;
    for (int64_t k = 0; k < n_listed; k++) {
        const int64_t s = r->list[k], gain = r->gain[k] < r->source[s].n_points ? r->gain[k] : r->source[s].n_points;
        r->gain[k] = (int32_t)(EW_NAME(ew_loads_cost)(r, s, r->source[s].n_points) -
                               EW_NAME(ew_loads_cost)(r, s, r->source[s].n_points - gain));
        hope += r->gain[k];
    }
    for (int64_t k = 0; k < n_listed; k++) {
        const int64_t s = r->list[k], before = r->source[s].n_points, from = r->first[k];
        const int64_t last = r->last[k] < before ? r->last[k] : before;
        int64_t met;
        const int64_t count = EW_NAME(ew_search)(r, s, from, last, fresh + fresh_end, &met);
        const int64_t after = before + count - (met - from);
        fresh_end += count;
        r->old_end[k] = (int32_t)met;
        r->new_end[k] = (int32_t)fresh_end;
        delta += EW_NAME(ew_loads_cost)(r, s, after) - EW_NAME(ew_loads_cost)(r, s, before);
        hope -= r->gain[k];
        if (delta - hope > limit) return 0;
    }
    r->cost += delta;
    return 1;
}

/* Whether an early point of source s may change with a target whose interval becomes [A2, F2] from one that began at A:
 * one begins there, or none is in [A2, F2]. */
EW_TARGET static inline int EW_NAME(ew_moves_early)(const ew_residency *r, int64_t s, EW_LANE a, EW_LANE a2, EW_LANE f2) {
#if EW_MASKS
    const EW_LANE *const line = (const EW_LANE *)r->lines + 2 * s * EW_LINE;
    if (EW_HELD(line)) {
        const __m512i y = _mm512_load_si512(line + EW_LINE);
        const uint32_t within2 = EW_MASKED(le)(EW_MASK(ge)(y, EW_SET1(a2)), y, EW_SET1(f2));
        return (EW_MASK(eq)(y, EW_SET1(a)) != 0) | ((within2 == 0) & (a2 > line[0]));
    }
#endif
    const int32_t n = r->source[s].n_points;
    const EW_LANE release = (EW_LANE)r->source[s].release;
    const EW_LANE *const early = (const EW_LANE *)r->early + r->source[s].points;
    const int was_early = early[EW_NAME(ew_first_not_below)(early, n, a)] == a;
    const int beyond2 = early[EW_NAME(ew_first_not_below)(early, n, a2)] > f2;
    return was_early | (beyond2 & (a2 > release));
}

/* Put the new points and intervals of an accepted move in place. */
EW_TARGET static void EW_NAME(ew_accept)(ew_residency *r, int64_t n_listed) {
    EW_LANE *const lane_open = (EW_LANE *)r->lane_open, *const lane_finish = (EW_LANE *)r->lane_finish;
    EW_LANE *const points = (EW_LANE *)r->points, *const fresh = (EW_LANE *)r->fresh;
    int64_t fresh_end = 0;
    for (int64_t k = 0; k < n_listed; k++) {
        const int64_t s = r->list[k], from = r->first[k], old_end = r->old_end[k], added = r->new_end[k] - fresh_end;
        EW_LANE *const old = points + r->source[s].points;
        const int64_t rest = r->source[s].n_points + 1 - old_end; /* with the sentinel */
        if (added != old_end - from) memmove(old + from + added, old + old_end, (size_t)rest * sizeof(EW_LANE));
        memcpy(old + from, fresh + fresh_end, (size_t)added * sizeof(EW_LANE));
        r->source[s].n_points = (int32_t)(from + added + rest - 1);
        fresh_end = r->new_end[k];
    }
    for (int64_t c = 0; c < r->n_changes; c++)
        for (int32_t e = r->in_start[r->changes[c].item]; e < r->in_start[r->changes[c].item + 1]; e++) {
            lane_open[r->in_lane[e]] = (EW_LANE)r->changes[c].open;
            lane_finish[r->in_lane[e]] = (EW_LANE)r->changes[c].finish;
        }
    for (int64_t k = 0; k < n_listed; k++) {
        const int64_t s = r->list[k], added = r->new_end[k] - (k ? r->new_end[k - 1] : 0);
        if (r->last[k] == INT32_MAX) /* its release changed */
            EW_NAME(ew_find_early)(r, s);
        else
            EW_NAME(ew_follow_early)(r, s, (int32_t)(r->source[s].n_points - added + r->old_end[k] - r->first[k]));
    }
    for (int64_t c = 0; c < r->n_changes; c++) {
        const ew_change *const change = &r->changes[c];
        if (change->open == change->old_open && change->finish == change->old_finish) continue;
        for (int32_t e = r->in_start[change->item]; e < r->in_start[change->item + 1]; e++) {
            const int64_t s = r->in_source[e];
            if (EW_NAME(ew_moves_early)(r, s, (EW_LANE)change->old_open, (EW_LANE)change->open, (EW_LANE)change->finish) &&
                r->source[s].listed >> 32 != r->move)
                EW_NAME(ew_follow_early)(r, s, r->source[s].n_points);
        }
    }
}

/* Count what a proposal costs, its stages being in place. Returns 1 if that is at most `limit`: it is accepted. */
EW_TARGET static int EW_NAME(ew_weigh)(ew_residency *r, const ew_proposal *p, int64_t limit) {
    const int64_t v = p->v, w = p->w;
    const ew_change of_v = {v, r->opened[v], r->finish[v], r->opened[p->opens ? w : v], r->finish[v]};
    const ew_change of_w = {w, r->opened[w], r->finish[w], r->opened[p->opens ? v : w], r->finish[w]};
    int64_t n_listed = 0;
    r->changes[0] = of_v;
    r->changes[1] = of_w;
    r->n_changes = 2;
    r->seen[v] = r->move << 32;
    r->seen[w] = r->move << 32 | 1;
    for (int64_t k = r->n_moved - 1; k >= 0; k--) { /* the first note of an item says where it was */
        const int64_t t = r->moved[k];
        if (r->seen[t] >> 32 != r->move) {
            const ew_change of_t = {t, r->opened[t], r->finish[t], r->opened[t], r->finish[t]};
            r->seen[t] = r->move << 32 | r->n_changes;
            r->changes[r->n_changes++] = of_t;
        }
        r->changes[r->seen[t] & 0xffffffff].old_finish = r->old_finish[k];
    }
    if (p->drops) { /* as sources, both get another release: v a later one, w an earlier one */
        const int64_t s = r->own[v], t = r->own[w];
        if (s >= 0) {
            const EW_LANE *const own = (const EW_LANE *)r->points + r->source[s].points;
            const EW_LANE later = (EW_LANE)(r->drop_rank[v] + 1);
            const int32_t saved = EW_NAME(ew_first_not_below)(own, r->source[s].n_points, later) + 2;
            EW_NAME(ew_list)(r, &n_listed, s, 0, INT32_MAX, saved);
        }
        if (t >= 0) EW_NAME(ew_list)(r, &n_listed, t, 0, INT32_MAX, 0);
    }
    for (int64_t k = 0; k < r->n_changes; k++) EW_NAME(ew_check)(r, &r->changes[k], &n_listed);
    if (!EW_NAME(ew_evaluate)(r, n_listed, limit)) return 0;
    EW_NAME(ew_accept)(r, n_listed);
    return 1;
}

/* By how many points source s changes when a target's interval [A, F] becomes [A2, F2], all else being as it is.
 * In some choice of the fewest points the j-th is at any stage from early point j to point j, and nowhere else. So one
 * more is needed if [A2, F2] meets none of these ranges; one less only if [A, F] is one of them: then the point is
 * there for it, and it alone but for wider intervals. Exact where it says there is nothing to gain. */
EW_TARGET static inline int EW_NAME(ew_seems)(const ew_residency *r, int64_t s, EW_LANE a, EW_LANE f, EW_LANE a2,
                                              EW_LANE f2) {
#if EW_MASKS
    const EW_LANE *const line = (const EW_LANE *)r->lines + 2 * s * EW_LINE;
    if (EW_HELD(line)) {
        const __m512i x = _mm512_load_si512(line), y = _mm512_load_si512(line + EW_LINE);
        const uint32_t hit2 = EW_MASKED(le)(EW_MASK(ge)(x, EW_SET1(a2)), y, EW_SET1(f2));
        const uint32_t at = EW_MASKED(eq)(EW_MASK(eq)(x, EW_SET1(f)), y, EW_SET1(a));
        return (hit2 == 0) - (at != 0);
    }
#endif
    const EW_LANE *const points = (const EW_LANE *)r->points + r->source[s].points;
    const EW_LANE *const early = (const EW_LANE *)r->early + r->source[s].points;
    const EW_LANE release = (EW_LANE)r->source[s].release;
    const int32_t n = r->source[s].n_points;
    const int32_t j = EW_NAME(ew_first_not_below)(points, n, f);
    return ((early[EW_NAME(ew_first_not_below)(points, n, a2)] > f2) & (a2 > release)) -
           ((points[j] == f) & (early[j] == a));
}

/* What an item's interval being [A2, F2] seems to cost its sources. */
EW_TARGET static inline int EW_NAME(ew_estimate_one)(const ew_residency *r, int64_t v, EW_LANE a2, EW_LANE f2) {
    const EW_LANE a = (EW_LANE)r->opened[v], f = (EW_LANE)r->finish[v];
    int estimate = 0;
    for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++)
        estimate += EW_NAME(ew_seems)(r, r->in_source[e], a, f, a2, f2);
    return estimate;
}

/* What a swap of two whole intervals seems to cost for the sources of its items, in a fraction of the time of counting
 * it. Other points would move, and the items are sources too. */
EW_TARGET static inline int EW_NAME(ew_estimate)(const ew_residency *r, int64_t v, int64_t w) {
    return EW_NAME(ew_estimate_one)(r, v, (EW_LANE)r->opened[w], (EW_LANE)r->drop_rank[w]) +
           EW_NAME(ew_estimate_one)(r, w, (EW_LANE)r->opened[v], (EW_LANE)r->drop_rank[v]);
}

/* What it costs item v's targets that v drops at another stage, all else being as it is. */
EW_TARGET static inline int EW_NAME(ew_estimate_release)(ew_residency *r, int64_t v, int32_t release) {
    const int64_t s = r->own[v];
    if (s < 0) return 0;
    const int32_t before = r->source[s].release;
    const int64_t n = r->source[s].n_points;
    int64_t met;
    r->n_changes = 0;
    r->source[s].release = release;
    const int64_t count = EW_NAME(ew_search)(r, s, 0, 0, (EW_LANE *)r->fresh, &met);
    r->source[s].release = before;
    return (int)(EW_NAME(ew_loads_cost)(r, s, n + count - met) - EW_NAME(ew_loads_cost)(r, s, n));
}

/* Let the ranks follow the stages of an accepted proposal. */
EW_TARGET static inline void EW_NAME(ew_keep)(ew_residency *r, const ew_proposal *p) {
    ew_keep_ranks(r, p);
    const int64_t both[2] = {p->v, p->w};
    for (int k = 0; k < 2; k++) {
        ((EW_LANE *)r->rank_drop)[r->open_rank[both[k]] - 1] = (EW_LANE)r->drop_rank[both[k]];
        ((EW_LANE *)r->rank_depth)[r->open_rank[both[k]] - 1] = (EW_LANE)r->depth[both[k]];
    }
}

/* ---- scans -----------------------------------------------------------------------------------------------------
 * A scan takes an item v and looks at once at EW_SCAN items that open one after the other: what would v miss in the
 * interval of each? Points of a source cut the opens into runs: who opens after point j - 1 and not after point j hits
 * the source if it drops no earlier than point j. So each source costs a comparison per run and vector of items, in
 * place of one per item. Only items of v's depth where v seems no worse off are looked at themselves. */

/* miss[k]: sources of v without a point in the interval of the item of open rank first + k (from 0). Returns the points
 * that are there for v where it is. */
EW_TARGET static int EW_NAME(ew_misses)(const ew_residency *r, int64_t v, int64_t first, EW_LANE *miss) {
    const EW_LANE a = (EW_LANE)r->opened[v], f = (EW_LANE)r->finish[v];
    const EW_LANE *const drop = (const EW_LANE *)r->rank_drop + first;
    const int64_t base = first + 2 - r->slots; /* stage at which k = 0 opens, but for those that open at 1 */
    const EW_LANE from = (EW_LANE)(base > 1 ? base : 1);
    int gain = 0;
#if EW_MASKS
    __m512i count[EW_SCAN_VECTORS], ends[EW_SCAN_VECTORS];
    for (int x = 0; x < EW_SCAN_VECTORS; x++) {
        count[x] = _mm512_setzero_si512();
        ends[x] = _mm512_loadu_si512(drop + x * EW_LINE);
    }
#else
    memset(miss, 0, EW_SCAN * sizeof *miss);
#endif
    for (int32_t e = r->in_start[v]; e < r->in_start[v + 1]; e++) {
        const int64_t s = r->in_source[e];
#if EW_MASKS
        const int32_t n = 0; /* unused */
        const EW_LANE *const line = (const EW_LANE *)r->lines + 2 * s * EW_LINE, release = line[0];
#else
        const int32_t n = r->source[s].n_points;
        const EW_LANE release = (EW_LANE)r->source[s].release;
#endif
        const EW_LANE *const points = EW_NAME(ew_points)(r, s), *const early = EW_NAME(ew_early_points)(r, s);
        const int32_t own = EW_NAME(ew_first_not_below)(points, n, f);
        gain += (points[own] == f) & (early[own] == a);
        int64_t k = 0;
        EW_LANE open = from;
        if (release >= from) {
            k = release - base + 1;
            open = (EW_LANE)(release + 1);
        }
        for (int32_t j = k < EW_SCAN ? EW_NAME(ew_first_not_below)(points, n, open) : 0; k < EW_SCAN; j++) {
            const EW_LANE point = points[j];
            const int64_t end = point == (EW_LANE)EW_NEVER_POINT || point - base + 1 > EW_SCAN ? EW_SCAN : point - base + 1;
#if EW_MASKS
            const __m512i p = EW_SET1(early[j]);
            for (int x = 0; x < EW_SCAN_VECTORS; x++) {
                const int64_t low = k - x * EW_LINE, high = end - x * EW_LINE;
                const uint32_t lanes = (uint32_t)(EW_BELOW(high) & ~EW_BELOW(low));
                count[x] = EW_COUNT(count[x], EW_MASKED(lt)(lanes, ends[x], p));
            }
#else
            for (int64_t i = k; i < end; i++) miss[i] = (EW_LANE)(miss[i] + (drop[i] < early[j]));
#endif
            k = end;
        }
    }
#if EW_MASKS
    for (int x = 0; x < EW_SCAN_VECTORS; x++) _mm512_store_si512(miss + x * EW_LINE, count[x]);
#endif
    return gain;
}

/* Take one item, look for partners near some distance, and swap whole intervals with the first that is accepted. */
EW_TARGET static void EW_NAME(ew_scan)(ew_residency *r) {
    EW_LANE miss[EW_SCAN] __attribute__((aligned(64)));
    int16_t found[EW_SCAN];
    const int64_t n = r->n;
    const uint64_t a = ew_xoroshiro128(r->random), b = ew_xoroshiro128(r->random);
    const int64_t i = ew_below(a >> 32, (uint32_t)n), v = r->open_at[i];
    const int64_t step = r->distance[(a >> 16) & (EW_DISTANCES - 1)];
    int64_t first = ((a >> 26) & 1 ? i + step : i - step) - (int64_t)(b >> 32) % EW_SCAN;
    if (first > n - EW_SCAN) first = n - EW_SCAN;
    if (first < 0) first = 0;
    const int64_t limit = ew_limit(r, (uint32_t)b), items = n - first < EW_SCAN ? n - first : EW_SCAN;
    const int gain = EW_NAME(ew_misses)(r, v, first, miss);
    const EW_LANE *const kin = (const EW_LANE *)r->rank_depth + first, depth = ((const EW_LANE *)r->rank_depth)[i];
    const int64_t most = gain + limit + EW_LEEWAY;
    int64_t n_found = 0;
    for (int64_t k = 0; k < items; k++)
        if (kin[k] == depth && miss[k] <= most && first + k != i) found[n_found++] = (int16_t)k;
    uint64_t random = ew_xoroshiro128(r->random);
    for (int64_t tries = EW_TRIES; tries > 0 && n_found > 0; tries--) {
        const int64_t at = ew_below(random & 0xffffffff, (uint32_t)n_found);
        const int64_t k = found[at], w = r->open_at[first + k];
        found[at] = found[--n_found];
        random = random * 6364136223846793005u + 1442695040888963407u;
        random ^= random >> 29;
        int64_t estimate = (int64_t)miss[k] - gain +
            EW_NAME(ew_estimate_one)(r, w, (EW_LANE)r->opened[v], (EW_LANE)r->drop_rank[v]);
        if (estimate > limit + EW_BY_RELEASE) continue;
        estimate += EW_NAME(ew_estimate_release)(r, v, r->drop_rank[w]) + EW_NAME(ew_estimate_release)(r, w, r->drop_rank[v]);
        if (estimate > limit) continue;
        const int swapped = r->drop_rank[w] < r->drop_rank[v];
        const ew_proposal p = {swapped ? w : v, swapped ? v : w, 1, 1, 0};
        if (!ew_put(r, &p)) continue;
        if (!EW_NAME(ew_weigh)(r, &p, limit)) {
            ew_put_back(r, &p);
            continue;
        }
        EW_NAME(ew_keep)(r, &p);
        return;
    }
}

EW_TARGET static void EW_NAME(ew_anneal)(ew_residency *r, int64_t moves) {
    ew_proposal p;
    for (int64_t s = 0; s < r->n_sources && !r->has_early; s++) EW_NAME(ew_find_early)(r, s);
    r->has_early = 1;
    for (int64_t k = 0; k < moves; k++) {
        if (r->scans > 0 && (ew_xoroshiro128(r->random) >> 11) * 0x1p-53 < r->scans) {
            EW_NAME(ew_scan)(r);
            continue;
        }
        if (!ew_propose(r, &p)) continue;
        const int64_t limit = ew_limit(r, p.random32);
        if (p.opens && p.drops && EW_NAME(ew_estimate)(r, p.v, p.w) > limit) continue;
        if (!ew_put(r, &p)) continue;
        if (EW_NAME(ew_weigh)(r, &p, limit)) EW_NAME(ew_keep)(r, &p); else ew_put_back(r, &p);
    }
}

/* Give the lanes of a source the stages of its targets. */
EW_TARGET static inline void EW_NAME(ew_fill_lanes)(ew_residency *r, int64_t s) {
    EW_LANE *const lane_open = (EW_LANE *)r->lane_open, *const lane_finish = (EW_LANE *)r->lane_finish;
    for (int64_t k = r->out_start[s]; k < r->out_start[s + 1]; k++) {
        lane_open[k] = (EW_LANE)r->opened[r->out_target[k]];
        lane_finish[k] = (EW_LANE)r->finish[r->out_target[k]];
    }
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
            const int64_t base = r->out_start[s];
            EW_NAME(ew_fill_lanes)(r, s);
            const int64_t target = EW_NAME(ew_next_point)(lane_open + base, lane_finish + base,
                                                          r->out_start[s + 1] - base, 0);
            if (target < finish) finish = target;
        }
        r->finish[v] = (int32_t)finish;
        const EW_LANE open = (EW_LANE)(rank <= p ? 1 : rank - p + 1);
        r->opened[v] = (int32_t)open;
        ((EW_LANE *)r->rank_drop)[rank - 1] = (EW_LANE)r->drop_rank[v];
        ((EW_LANE *)r->rank_depth)[rank - 1] = (EW_LANE)r->depth[v];
    }
    r->cost = r->move = r->has_early = 0;
    memset(r->seen, 0, (size_t)r->n * sizeof *r->seen);
    for (int64_t s = 0; s < r->n_sources; s++) {
        const int64_t base = r->out_start[s];
        if (r->item[s] < 0) EW_NAME(ew_fill_lanes)(r, s); /* inputs of the network come last */
        EW_LANE *const own = points + base + s;
        r->source[s].listed = 0;
        r->source[s].points = base + s;
        r->source[s].release = r->item[s] < 0 ? 0 : r->drop_rank[r->item[s]];
        EW_LANE point = (EW_LANE)r->source[s].release;
        int64_t count = 0;
        const int64_t lanes = r->out_start[s + 1] - base;
        for (; !EW_TABLED(r, lanes, count); count++) {
            point = EW_NAME(ew_next_point)(lane_open + base, lane_finish + base, lanes, point);
            own[count] = point;
            if (point == (EW_LANE)EW_NEVER_POINT) break;
        }
        if (point != (EW_LANE)EW_NEVER_POINT) count = EW_NAME(ew_points_by_table)(r, s, count, point);
        r->source[s].n_points = (int32_t)count;
        r->cost += EW_NAME(ew_loads_cost)(r, s, count);
    }
}

/* The last of n > 0 ascending points that is not after `stage`; the first is not. */
EW_TARGET static inline EW_LANE EW_NAME(ew_last_not_after)(const EW_LANE *points, int64_t n, EW_LANE stage) {
    for (int64_t half = n >> 1; n > 1; n -= half, half = n >> 1) points += points[half] <= stage ? half : 0;
    return *points;
}

/* Write the stage of every lane, as late as the points of its source allow: where the target opened before the source
 * was dropped, the end of both; else the last point before the target's finish. Few points pass by many lanes at once. */
EW_TARGET static void EW_NAME(ew_stages)(const ew_residency *r, int32_t *stage) {
    const EW_LANE *const lane_open = (const EW_LANE *)r->lane_open, *const lane_finish = (const EW_LANE *)r->lane_finish;
    for (int64_t s = 0; s < r->n_sources; s++) {
        const EW_LANE *const own = (const EW_LANE *)r->points + r->out_start[s] + s;
        const EW_LANE drop = (EW_LANE)(r->item[s] >= 0 ? r->drop_rank[r->item[s]] : 0);
        const int64_t n_points = r->source[s].n_points, end = r->out_start[s + 1];
        for (int64_t base = r->out_start[s]; base < end; base += EW_SLACK) { /* lanes past the last are read as well */
            const EW_LANE *const open = lane_open + base, *const finish = lane_finish + base;
            const int64_t n = end - base < EW_SLACK ? end - base : EW_SLACK;
            EW_LANE at[EW_SLACK];
            for (int k = 0; k < EW_SLACK; k++) at[k] = drop < finish[k] ? drop : finish[k];
            if (n_points > EW_FEW_POINTS) {
                for (int64_t k = 0; k < n; k++)
                    if (open[k] > drop) at[k] = EW_NAME(ew_last_not_after)(own, n_points, finish[k]);
            } else {
                for (int64_t p = 0; p < n_points; p++)
                    for (int k = 0; k < EW_SLACK; k++)
                        at[k] = ((open[k] > drop) & (finish[k] >= own[p])) ? own[p] : at[k];
            }
            for (int64_t k = 0; k < n; k++) stage[base + k] = (int32_t)at[k];
        }
    }
}

#undef EW_BITS
#undef EW_MASKS
