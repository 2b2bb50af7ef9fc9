/* Residency-interval annealing: the state, and one body for two widths of lanes, plain C or AVX-512 (body.h). Other
 * levels gain less than a tenth of a search.
 *
 * Every neuron with connections into it (an "item") is resident once, from its open to its drop; P items at most are
 * resident at once. A state is two permutations of the items: the stage of drop k is k, and open i comes as soon as a
 * slot is free, at stage max(1, i - P + 1). With A[v] the stage at which v opens, D[v] the one at which it drops and
 * F[v] <= D[v] the one at which its sum is finished:
 *   a target v of s that opens while the finished s is resident (A[v] <= D[s]) uses it for nothing;
 *   the others need s again, loaded at the fewest stages that pierce their intervals [A, F], after one write.
 * Piercing greedily at the smallest right end is exact (interval graphs), and point k + 1 depends on point k alone, so
 * a move repeats the search only from the first point it changes until, past the last, new points meet old ones.
 *
 * Lanes: the intervals of each source's targets side by side, A and F apart. */
#pragma once

#include <math.h>
#include <stdint.h>
#include "common/random.h"
#include "common/simd.h"

#define EW_SLACK 32   /* lanes behind the last that a vector may read: one of 64 bytes with 16-bit lanes */
#define EW_FEW_POINTS 128 /* of a source: up to so many are compared with all of its lanes (measured) */
#define EW_DISTANCES 1024
#define EW_CHANCES 64
#define EW_SPREAD 256 /* a move that would change more finishes than this is refused */

enum { EW_MOVE_OPEN = 0, EW_MOVE_DROP = 1, EW_MOVE_BOTH = 2, EW_MOVES = 3 };

/* What a check of one source needs, in half a cache line. */
typedef struct {
    int64_t listed;  /* move << 32 | place in the list, of the last move that listed it */
    int64_t points;  /* the first of its points: out_start + s */
    int32_t release; /* the stage until which it is resident for nothing: its drop; an input never stays, 0 */
    int32_t n_points;
} ew_source;

typedef struct {
    int64_t item;
    int32_t open, finish, old_open, old_finish;
} ew_change;

typedef struct {
    int64_t v, w;
    int opens, drops;
    uint32_t random32;
} ew_proposal;

typedef struct {
    int64_t n, n_sources, slots;
    /* the network, by item and by source; fixed */
    const int32_t *in_start, *in_source, *in_lane; /* [n + 1], [edges], [edges]: connections into each item */
    ew_source *source;                             /* [n_sources] */
    const int32_t *own;                            /* [n]: the source that item is, or -1 */
    const int32_t *item;                           /* [n_sources]: the item that source is, or -1 (an input) */
    const int64_t *out_start;                      /* [n_sources + 1] */
    const int32_t *out_target;                     /* [edges]: the items each source feeds */
    /* the state */
    int32_t *open_at, *drop_at;     /* [n]: the item at each rank (from 0) */
    int32_t *open_rank, *drop_rank; /* [n]: from 1; drop_rank is the stage D */
    int32_t *finish;                /* [n]: F */
    const int32_t *depth;           /* [n]: items of one depth may take each other's place */
    void *rank_drop, *rank_depth;   /* [n], lanes: stage of the drop and depth of the item at each open rank */
    void *lane_open, *lane_finish;  /* A and F of the target in each lane */
    const void *lane_item;          /* that target */
    void *points;                   /* per source s, at out_start[s] + s: points 1, 2, ... ascending, then a sentinel */
    void *early;                    /* the same: the earliest stage of each point in any choice of so few */
    void *lines;                    /* per source a cache line: its release, its first points, sentinels; another: 0 and
                                     * its first early points (AVX-512) */
    int64_t has_early;              /* the early points are known: annealing asks for them, counting does not */
    int64_t cost;                   /* sum over sources of their loads, plus one write if a hidden one has any */
    /* scratch of a move */
    int64_t move;
    int32_t *list;      /* [n_sources]: sources whose points change */
    int32_t *first, *last; /* [n_sources]: the first and last point that changes by itself */
    int32_t *gain;      /* [n_sources]: by how many points at most its loads fall */
    ew_change changes[EW_SPREAD + 2];
    int64_t n_changes;
    int64_t *seen;      /* [n]: move << 32 | the item's place in `changes`, of the last move that changed it */
    int32_t *old_end, *new_end; /* [n_sources]: old points up to here give way to new ones up to there */
    void *fresh;        /* new points of all listed sources, one after another */
    void *by_stage;     /* [n + 2], lanes: a table of one source with very many points */
    int32_t *opened;    /* [n]: A */
    int32_t moved[EW_SPREAD], old_finish[EW_SPREAD]; /* items whose finish the move changed, and from what */
    int64_t n_moved;
    /* proposals */
    uint64_t random[2];
    int32_t distance[EW_DISTANCES];
    double chance[EW_CHANCES];
    double share[EW_MOVES]; /* cumulative shares of the kinds of move */
    double guided;          /* share of swaps with a partner where the network suggests one (ew_good_rank) */
    double scans;           /* share of moves that are scans (body.h) */
} ew_residency;

static inline uint32_t ew_below(uint64_t random, uint32_t n) { return (uint32_t)(((random & 0xffffffffu) * n) >> 32); }

/* chance[d] = exp(-d / temperature). Distances: log-uniform from 1 to `longest`. */
static void ew_residency_tune(ew_residency *r, double temperature, int64_t longest) {
    for (int d = 0; d < EW_CHANCES; d++) r->chance[d] = temperature > 0 ? exp(-d / temperature) : d == 0;
    for (int k = 0; k < EW_DISTANCES; k++)
        r->distance[k] = (int32_t)exp(log((double)longest + 0.999) * (k + 0.5) / EW_DISTANCES);
}

/* A rank (from 0) where v's open or drop may pay: beside an item that shares a source with v; for an open, before one
 * of its hidden sources drops; for a drop, after one of its targets opens. */
static inline int64_t ew_good_rank(const ew_residency *r, int64_t v, int opens, int both, uint64_t random) {
    const int64_t begin = r->in_start[v];
    const int64_t s = r->in_source[begin + ew_below(random, (uint32_t)(r->in_start[v + 1] - begin))];
    const int direct = random >> 62 == 0;
    if (direct && opens && r->item[s] >= 0) return r->drop_rank[r->item[s]] + r->slots - 2;
    if (direct && !opens && !both && r->own[v] >= 0) {
        const int64_t first = r->out_start[r->own[v]], count = r->out_start[r->own[v] + 1] - first;
        const int64_t rank = r->open_rank[r->out_target[first + ew_below(random >> 30, (uint32_t)count)]];
        return (rank <= r->slots ? 1 : rank - r->slots + 1) - 1;
    }
    const int64_t first = r->out_start[s];
    const int64_t near = r->out_target[first + ew_below(random >> 30, (uint32_t)(r->out_start[s + 1] - first))];
    return (opens ? r->open_rank[near] : r->drop_rank[near]) - 1;
}

/* Draw a move; of two drops, v has the earlier one. Returns 0 if the draw leads nowhere. */
static inline int ew_propose(ew_residency *r, ew_proposal *p) {
    const int64_t n = r->n;
    const uint64_t a = ew_xoroshiro128(r->random), b = ew_xoroshiro128(r->random);
    const double kind = (a & 0xffff) * 0x1p-16;
    const int opens = kind < r->share[EW_MOVE_OPEN], both = kind >= r->share[EW_MOVE_DROP];
    const int64_t i = ew_below(a >> 32, (uint32_t)n);
    int64_t step = (a >> 16) & (EW_DISTANCES - 1), centre = i;
    if ((int)(b >> 56) < (int)(r->guided * 256)) {
        centre = ew_good_rank(r, opens ? r->open_at[i] : r->drop_at[i], opens, both, ew_xoroshiro128(r->random));
        step >>= 1; /* the square root of the distance */
    }
    step = r->distance[step];
    const int64_t j = (a >> 26) & 1 ? centre + step : centre - step;
    if (j < 0 || j >= n || j == i) return 0;
    if (opens && i < r->slots && j < r->slots) return 0; /* all of these open at stage 1 */
    const int64_t first = i < j || opens ? i : j, second = first == i ? j : i;
    p->v = opens ? r->open_at[first] : r->drop_at[first];
    p->w = opens ? r->open_at[second] : r->drop_at[second];
    p->opens = opens || both;
    p->drops = !opens;
    p->random32 = (uint32_t)b;
    return 1;
}

/* The most I/Os more that are accepted for this draw. */
static inline int64_t ew_limit(const ew_residency *r, uint32_t random32) {
    const double drawn = random32 * 0x1p-32;
    int64_t limit = 0;
    while (limit + 1 < EW_CHANCES && drawn < r->chance[limit + 1]) limit++;
    return limit;
}

/* ---- the exchange of two items' opens and/or drops, in place, and the way back ------------------------------------
 *
 * Finishes follow. F[v] is the latest stage at which the sum of v may be finished: its drop, and no later than any of
 * its targets finishes (a later finish never costs more). An item that finishes earlier pulls its sources along, one
 * that finishes later may let them go. */

static inline int32_t ew_latest(const ew_residency *r, int64_t v) {
    int32_t latest = r->drop_rank[v];
    if (r->own[v] >= 0)
        for (int64_t k = r->out_start[r->own[v]]; k < r->out_start[r->own[v] + 1]; k++) {
            const int32_t finish = r->finish[r->out_target[k]];
            latest = finish < latest ? finish : latest;
        }
    return latest;
}

static inline int ew_note(ew_residency *r, int64_t v, int32_t finish) {
    if (r->n_moved == EW_SPREAD || finish < r->opened[v]) return 0;
    r->moved[r->n_moved] = (int32_t)v;
    r->old_finish[r->n_moved++] = r->finish[v];
    r->finish[v] = finish;
    return 1;
}

/* Give item v its latest finish and let the finishes of the sources before it follow. Returns 0 if one of them would
 * finish before it opens, or if too many follow. */
static int ew_finish(ew_residency *r, int64_t v) {
    const int32_t latest = ew_latest(r, v);
    if (latest == r->finish[v]) return latest >= r->opened[v];
    int64_t next = r->n_moved;
    if (!ew_note(r, v, latest)) return 0;
    for (; next < r->n_moved; next++) {
        const int64_t t = r->moved[next];
        const int32_t before = r->old_finish[next], now = r->finish[t];
        for (int32_t e = r->in_start[t]; e < r->in_start[t + 1]; e++) {
            const int64_t u = r->item[r->in_source[e]];
            if (u < 0) continue;
            if (r->finish[u] > now) {
                if (!ew_note(r, u, now)) return 0;
            } else if (r->finish[u] == before && before < now) { /* t may have been what held u back */
                const int32_t freed = ew_latest(r, u);
                if (freed != before && !ew_note(r, u, freed)) return 0;
            }
        }
    }
    return 1;
}

static inline void ew_swap(int32_t *a, int32_t *b) {
    const int32_t c = *a;
    *a = *b;
    *b = c;
}

static inline void ew_swap_drops(ew_residency *r, int64_t v, int64_t w) {
    ew_swap(&r->drop_rank[v], &r->drop_rank[w]);
    if (r->own[v] >= 0) r->source[r->own[v]].release = r->drop_rank[v];
    if (r->own[w] >= 0) r->source[r->own[w]].release = r->drop_rank[w];
}

static inline void ew_put_back(ew_residency *r, const ew_proposal *p) {
    while (r->n_moved > 0) { /* latest first: an item may have been moved twice */
        r->n_moved--;
        r->finish[r->moved[r->n_moved]] = r->old_finish[r->n_moved];
    }
    if (p->opens) ew_swap(&r->opened[p->v], &r->opened[p->w]);
    if (p->drops) ew_swap_drops(r, p->v, p->w);
}

/* Whether no item of a proposal would end before it opens, but for finishes that follow. */
static inline int ew_may_put(const ew_residency *r, const ew_proposal *p) {
    const int64_t v = p->v, w = p->w;
    const int32_t a_v = r->opened[p->opens ? w : v], a_w = r->opened[p->opens ? v : w];
    return p->drops ? a_v <= r->drop_rank[w] && a_w <= r->drop_rank[v] : a_v <= r->finish[v] && a_w <= r->finish[w];
}

/* Put the stages of a proposal in place: `opened`, `drop_rank`, `finish`, with the finishes before in `old_finish`.
 * Returns 0, with nothing changed, if it is not legal. */
static int ew_put(ew_residency *r, const ew_proposal *p) {
    const int64_t v = p->v, w = p->w;
    if (!ew_may_put(r, p)) return 0;
    r->move++;
    r->n_moved = 0;
    if (p->opens) ew_swap(&r->opened[v], &r->opened[w]);
    if (!p->drops) return 1;
    ew_swap_drops(r, v, w);
    if (ew_finish(r, w) && ew_finish(r, v)) return 1; /* w goes earlier: first */
    ew_put_back(r, p);
    return 0;
}

/* Let the ranks follow the stages of an accepted proposal. */
static inline void ew_keep_ranks(ew_residency *r, const ew_proposal *p) {
    if (p->opens) {
        ew_swap(&r->open_rank[p->v], &r->open_rank[p->w]);
        r->open_at[r->open_rank[p->v] - 1] = (int32_t)p->v;
        r->open_at[r->open_rank[p->w] - 1] = (int32_t)p->w;
    }
    if (p->drops) {
        r->drop_at[r->drop_rank[p->v] - 1] = (int32_t)p->v;
        r->drop_at[r->drop_rank[p->w] - 1] = (int32_t)p->w;
    }
}

/* ---- body.h: what depends on the width of lanes and on the instructions ------------------------------------------ */

#define EW_GLUED(a, b, c) a##b##c
#define EW_GLUE(a, b, c) EW_GLUED(a, b, c)
#define EW_OF_BITS(begin, end) EW_GLUE(begin, EW_BITS, end)
#define EW_NAME(x) EW_GLUE(EW_OF_BITS(x##_, _masks), EW_MASKS, )
#define EW_TARGET EW_GLUE(EW_TARGET_, EW_MASKS, )
#define EW_TARGET_0
#define EW_TARGET_1 EDGEWATT_MASKS
#define EW_LANE EW_OF_BITS(uint, _t)
#define EW_NEVER_POINT (EW_BITS == 16 ? 0xffffu : 0x7fffffffu)

/* Vectors of lanes. EW_BELOW: the lanes before the k-th. EW_HELD: whether the line of a source holds all its points. */
#define EW_LINE (512 / EW_BITS) /* lanes of a cache line */
#define EW_SET1(x) EW_OF_BITS(_mm512_set1_epi, )((EW_OF_BITS(int, _t))(x))
#define EW_MASK(op) EW_OF_BITS(_mm512_cmp##op##_epu, _mask)
#define EW_MASKED(op) EW_OF_BITS(_mm512_mask_cmp##op##_epu, _mask)
#define EW_COUNT(x, lanes) EW_OF_BITS(_mm512_mask_sub_epi, )(x, lanes, x, EW_SET1(-1))
#define EW_MASKED_MIN EW_OF_BITS(_mm512_mask_min_epu, )
#define EW_MASKED_MAX EW_OF_BITS(_mm512_mask_max_epu, )
#define EW_MASKED_LOAD EW_OF_BITS(_mm512_mask_loadu_epi, )
#define EW_MIN EW_OF_BITS(EW_MIN_, )
#define EW_MAX EW_OF_BITS(EW_MAX_, )
#define EW_MIN_16(x) _mm_extract_epi16(_mm_minpos_epu16(EW_QUARTER(x)), 0)
#define EW_MAX_16(x) (0xffff & ~EW_MIN_16(_mm512_xor_si512(x, _mm512_set1_epi16(-1))))
#define EW_HALF(x) _mm256_min_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1))
#define EW_QUARTER(x) _mm_min_epu16(_mm256_castsi256_si128(EW_HALF(x)), _mm256_extracti128_si256(EW_HALF(x), 1))
#define EW_MIN_32 _mm512_reduce_min_epu32
#define EW_MAX_32 _mm512_reduce_max_epu32
#define EW_BELOW(k) ((k) <= 0 ? 0u : (k) >= EW_LINE ? (uint32_t)((1ull << EW_LINE) - 1) : (1u << (k)) - 1)
#define EW_HELD(line) ((line)[EW_LINE - 1] == (EW_LANE)EW_NEVER_POINT)

/* Whether so many points of a source are found sooner in a table by stage than by a look at all targets for each. */
#define EW_TABLED(r, lanes, count) ((count) * (lanes) > 32 * ((r)->n + (lanes)))

#define EW_SCAN 128 /* items */
#define EW_SCAN_VECTORS (EW_SCAN / EW_LINE)
#define EW_TRIES 8  /* partners looked at in a scan */
#define EW_LEEWAY 1 /* by how many I/Os more than is accepted v alone may seem to cost */
#define EW_BY_RELEASE 2 /* I/Os that other drops may save v's and the partner's own targets */

#define EW_BITS 16
#define EW_MASKS 0
#include "residency/body.h"
#define EW_BITS 32
#define EW_MASKS 0
#include "residency/body.h"
#if EDGEWATT_X86
#define EW_BITS 16
#define EW_MASKS 1
#include "residency/body.h"
#define EW_BITS 32
#define EW_MASKS 1
#include "residency/body.h"
#define EW_BODY(f, bits) \
    (ew_has_masks() ? ((bits) == 32 ? f##_32_masks1 : f##_16_masks1) : ((bits) == 32 ? f##_32_masks0 : f##_16_masks0))
#else
#define EW_BODY(f, bits) ((bits) == 32 ? f##_32_masks0 : f##_16_masks0)
#endif

static void ew_residency_run(ew_residency *r, int bits, int64_t moves) { EW_BODY(ew_anneal, bits)(r, moves); }

static void ew_residency_refresh(ew_residency *r, int bits) { EW_BODY(ew_refresh, bits)(r); }

static void ew_residency_stages(const ew_residency *r, int bits, int32_t *stage) { EW_BODY(ew_stages, bits)(r, stage); }
