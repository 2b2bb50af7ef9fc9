/* Annealing where sources have few targets; included by residency.h with EW_AVX2 (0 or 1) defined. No include guard: it
 * is meant to be included again.
 *
 * The opens and finishes of 16 targets of a source lie in one cache line (a block); a source has as many blocks as it
 * needs. A proposal is put in place, block by block, and its sources are counted anew from their blocks: with a few
 * targets that takes less time than to keep points and to find out which of them change. */

#if EW_AVX2
#define EW_FEW_NAME(x) x##_avx2
#define EW_TARGET EDGEWATT_AVX2
#else
#define EW_FEW_NAME(x) x##_plain
#define EW_TARGET
#endif

#if EW_AVX2
/* The finishes of a block's targets that open behind p, in their lanes. */
EW_TARGET static inline __m256i EW_FEW_NAME(ew_left)(__m256i open, __m256i finish, __m256i p) {
    return _mm256_or_si256(finish, _mm256_cmpeq_epi16(_mm256_max_epu16(open, p), p));
}

/* The least one, in all lanes. */
EW_TARGET static inline __m256i EW_FEW_NAME(ew_least)(__m256i left) {
    const __m128i half = _mm_min_epu16(_mm256_castsi256_si128(left), _mm256_extracti128_si256(left, 1));
    return _mm256_broadcastw_epi16(_mm_minpos_epu16(half));
}

#define EW_POINTS 4   /* looked for without a branch: few sources have more */

/* Points behind `release`. */
EW_TARGET static inline int32_t EW_FEW_NAME(ew_count)(__m256i open, __m256i finish, uint16_t release) {
    const __m256i never = _mm256_set1_epi16(-1);
    __m256i p = _mm256_set1_epi16((short)release), none = _mm256_setzero_si256();
    for (int k = 0; k < EW_POINTS; k++) {
        p = EW_FEW_NAME(ew_least)(EW_FEW_NAME(ew_left)(open, finish, p));
        none = _mm256_add_epi16(none, _mm256_cmpeq_epi16(p, never));
    }
    int32_t count = EW_POINTS + (int16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(none));
    if (__builtin_expect(count == EW_POINTS, 0))
        for (;; count++) {
            p = EW_FEW_NAME(ew_least)(EW_FEW_NAME(ew_left)(open, finish, p));
            if ((uint16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(p)) == EW_NEVER) break;
        }
    return count;
}
#endif

/* Loads and writes of source t->source if it stayed until t->release and the interval at t->at were another. */
EW_TARGET static inline int32_t EW_FEW_NAME(ew_loads)(const ew_residency *r, const ew_trial *t) {
    const ew_source *const source = r->source + t->source;
    const int32_t first = source->block, end = source[1].block;
    int32_t count = 0;
#if EW_AVX2
    const __m256i lanes = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i new_open = _mm256_set1_epi16((short)t->open), new_finish = _mm256_set1_epi16((short)t->finish);
    if (__builtin_expect(end - first == 1, 1)) {
        const __m256i here = _mm256_cmpeq_epi16(lanes, _mm256_set1_epi16((short)(t->at - first * (2 * EW_BLOCK))));
        const __m256i open = _mm256_load_si256((const __m256i *)r->blocks[first].open);
        const __m256i finish = _mm256_load_si256((const __m256i *)r->blocks[first].finish);
        count = EW_FEW_NAME(ew_count)(_mm256_blendv_epi8(open, new_open, here),
                                      _mm256_blendv_epi8(finish, new_finish, here), t->release);
        return count + ew_written(r, t->source, count);
    }
    for (__m256i p = _mm256_set1_epi16((short)t->release);; count++) {
        __m256i left = _mm256_set1_epi16(-1);
        for (int32_t b = first; b < end; b++) {
            const __m256i here = _mm256_cmpeq_epi16(lanes, _mm256_set1_epi16((short)(t->at - b * (2 * EW_BLOCK))));
            const __m256i open = _mm256_load_si256((const __m256i *)r->blocks[b].open);
            const __m256i finish = _mm256_load_si256((const __m256i *)r->blocks[b].finish);
            left = _mm256_min_epu16(left, EW_FEW_NAME(ew_left)(_mm256_blendv_epi8(open, new_open, here),
                                                               _mm256_blendv_epi8(finish, new_finish, here), p));
        }
        p = EW_FEW_NAME(ew_least)(left);
        if ((uint16_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(p)) == EW_NEVER) break;
    }
#else
    uint16_t point = t->release;
    for (;; count++) {
        uint16_t least = EW_NEVER;
        for (int32_t b = first; b < end; b++)
            for (int k = 0; k < EW_BLOCK; k++) {
                const int is_other = b * (2 * EW_BLOCK) + k == t->at;
                const uint16_t open = is_other ? t->open : r->blocks[b].open[k];
                const uint16_t finish = is_other ? t->finish : r->blocks[b].finish[k];
                const uint16_t left = open > point ? finish : (uint16_t)EW_NEVER;
                least = left < least ? left : least;
            }
        if (least == EW_NEVER) break;
        point = least;
    }
#endif
    return count + ew_written(r, t->source, count);
}

/* Count a proposal; take it if it costs at most `limit`. */
EW_TARGET static inline void EW_FEW_NAME(ew_judge_few)(ew_residency *r, const ew_proposal *p, int64_t limit) {
    if (!ew_put_few(r, p)) return;
    int64_t n_listed = 0, delta = 0;
    if (p->opens) {
        ew_list_sources(r, p->v, &n_listed);
        ew_list_sources(r, p->w, &n_listed);
    }
    if (p->drops) {
        ew_list_source(r, r->own[p->v], &n_listed);
        ew_list_source(r, r->own[p->w], &n_listed);
    }
    for (int64_t i = 0; i < r->n_moved; i++) ew_list_sources(r, r->moved[i], &n_listed);
    for (int64_t i = 0; i < n_listed; i++) {
        const ew_trial as_is = {r->list[i], -1, 0, 0, (uint16_t)r->source[r->list[i]].release, 0};
        r->gain[i] = EW_FEW_NAME(ew_loads)(r, &as_is);
        delta += r->gain[i] - r->source[r->list[i]].loads;
    }
    r->searches += n_listed;
    if (delta > limit) {
        ew_put_back_few(r, p);
        return;
    }
    for (int64_t i = 0; i < n_listed; i++) r->source[r->list[i]].loads = r->gain[i];
    r->cost += delta;
    ew_keep_ranks(r, p);
}

/* Add what the trials of some proposals cost more, each alone. */
EW_TARGET static inline void EW_FEW_NAME(ew_try)(ew_residency *r, int64_t n_trials) {
    for (int64_t i = 0; i < n_trials; i++) {
        const ew_trial *const t = &r->trials[i];
        r->drawn[t->proposal].estimate += EW_FEW_NAME(ew_loads)(r, t) - r->source[t->source].loads;
    }
    r->checks += n_trials;
}

/* Proposals are drawn some at a time, and estimated together: first what the one item costs in the place of the other,
 * then the other, each all else being as it is. So the loops are long, and one proposal does not wait for another. Those that
 * seem to pay are counted one after the other, in the state that the ones before have left. */
EW_TARGET static void EW_FEW_NAME(ew_anneal_few)(ew_residency *r, int64_t moves) {
    for (int64_t k = 0; k < moves; k += EW_DRAWN) {
        int64_t n_drawn = 0, n_left = 0, n_trials = 0;
        for (int64_t i = k; i < moves && i < k + EW_DRAWN; i++) {
            ew_drawn *const d = &r->drawn[n_drawn];
            if (!ew_propose(r, &d->proposal) || !ew_may_put(r, &d->proposal)) continue;
            d->limit = (int32_t)ew_limit(r, d->proposal.random32);
            d->estimate = 0;
            n_drawn++;
        }
        for (int64_t i = 0; i < n_drawn; i++) n_trials = ew_add_trials(r, &r->drawn[i].proposal, 0, i, n_trials);
        EW_FEW_NAME(ew_try)(r, n_trials);
        n_trials = 0;
        for (int64_t i = 0; i < n_drawn; i++) {
            if (r->drawn[i].estimate > r->drawn[i].limit + r->doubt + EW_PARTNER_SAVES) continue;
            r->drawn[n_left++] = r->drawn[i];
        }
        for (int64_t i = 0; i < n_left; i++) n_trials = ew_add_trials(r, &r->drawn[i].proposal, 1, i, n_trials);
        EW_FEW_NAME(ew_try)(r, n_trials);
        for (int64_t i = 0; i < n_left; i++) {
            ew_drawn *const d = &r->drawn[i];
            if (d->estimate > d->limit + r->doubt) continue;
            if (d->proposal.drops && r->drop_rank[d->proposal.v] > r->drop_rank[d->proposal.w]) { /* since it was drawn */
                const int64_t v = d->proposal.v;
                d->proposal.v = d->proposal.w;
                d->proposal.w = v;
            }
            EW_FEW_NAME(ew_judge_few)(r, &d->proposal, d->limit);
        }
    }
}

/* Fill the blocks from opens, finishes and releases. */
EW_TARGET static void EW_FEW_NAME(ew_fill_blocks)(ew_residency *r) {
    for (int64_t b = 0; b < r->source[r->n_sources].block; b++) {
        memset(r->blocks[b].open, 0, sizeof r->blocks[b].open);
        memset(r->blocks[b].finish, 0xff, sizeof r->blocks[b].finish);
    }
    for (int64_t v = 0; v < r->n; v++) {
        ew_place_open(r, v);
        ew_place_finish(r, v);
    }
    for (int64_t s = 0; s < r->n_sources; s++) {
        const ew_trial as_is = {(int32_t)s, -1, 0, 0, (uint16_t)r->source[s].release, 0};
        r->source[s].loads = EW_FEW_NAME(ew_loads)(r, &as_is);
    }
}

#undef EW_FEW_NAME
#undef EW_TARGET
#undef EW_AVX2
#undef EW_POINTS
