/* Scans for one lane type and SIMD level; included by body.h, whose macros it uses.
 *
 * A scan takes an item v and looks at once at EW_SCAN items that open one after the other: what would v miss in the
 * interval of each? Points of a source cut the opens into runs: who opens after point j - 1 and not after point j hits
 * the source if it drops no earlier than point j. So each source costs a comparison per run and vector of items, in
 * place of one per item. Only items of v's depth where v seems no worse off are looked at themselves. */

#define EW_SCAN 128 /* items */
#define EW_TRIES 8  /* partners looked at in a scan */
#define EW_LEEWAY 1 /* by how many I/Os more than is accepted v alone may seem to cost */
#define EW_BY_RELEASE 2 /* I/Os that other drops may save v's and the partner's own targets */

#if EW_SIMD == 2
#define EW_SCAN_VECTORS (EW_SCAN / EW_LINE)
#else
#define EW_SCAN_VECTORS 1
#endif

/* miss[k]: sources of v without a point in the interval of the item of open rank first + k (from 0). Returns the points
 * that are there for v where it is. */
EW_TARGET static int EW_NAME(ew_misses)(const ew_residency *r, int64_t v, int64_t first, EW_LANE *miss) {
    const EW_LANE a = (EW_LANE)r->opened[v], f = (EW_LANE)r->finish[v];
    const EW_LANE *const drop = (const EW_LANE *)r->rank_drop + first;
    const int64_t base = first + 2 - r->slots; /* stage at which k = 0 opens, but for those that open at 1 */
    const EW_LANE from = (EW_LANE)(base > 1 ? base : 1);
    int gain = 0;
#if EW_SIMD == 2
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
#if EW_SIMD == 2
        const int32_t n = 0; /* nobody asks */
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
#if EW_SIMD == 2
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
#if EW_SIMD == 2
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
    const int64_t most = gain + limit + r->doubt + EW_LEEWAY;
    int64_t n_found = 0;
    r->tried++;
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
        if (estimate > limit + r->doubt + EW_BY_RELEASE) continue;
        estimate += EW_NAME(ew_estimate_release)(r, v, r->drop_rank[w]) + EW_NAME(ew_estimate_release)(r, w, r->drop_rank[v]);
        if (estimate > limit + r->doubt) continue;
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
