/* Included once per SIMD level by wires/tallies/segments.h, which defines ES_NAME, ES_TARGET and vectors of ES_WIDTH bytes. */

/* Puts one plane's bits of a kind, at 64 places, with their weight, into sums of each bit. */
ES_TARGET static void ES_NAME(es_weigh)(const uint8_t plane[64], int level, uint16_t sum[8][64]) {
    for (int bit = 0; bit < 8; bit++)
        for (int j = 0; j < 64; j++) sum[bit][j] = (uint16_t)(sum[bit][j] + ((plane[j] >> bit & 1) << level));
}

ES_TARGET static void ES_NAME(es_empty)(es_tally *t, int64_t lanes, int64_t *counts) {
    const int64_t step = 64 / lanes * lanes;
    if (!t->batches) return;
    for (int kind = 0; kind < ES_KINDS; kind++) {
        uint16_t sum[8][64];
        memset(sum, 0, sizeof sum);
        for (int level = 0; level < ES_ROW_PLANES; level++) ES_NAME(es_weigh)(t->row[kind][level], level, sum);
        for (int level = 0; t->batches >> level; level++) {
            ES_NAME(es_weigh)(t->carry[kind][level][0], ES_ROW_PLANES + level, sum);
            if (t->batches >> level & 1) ES_NAME(es_weigh)(t->carry[kind][level][1], ES_ROW_PLANES + level, sum);
        }
        for (int64_t first = 0; first < step; first += lanes)
            for (int64_t lane = 0; lane < lanes; lane++) {
                if (kind == ES_FLAGS)
                    for (int k = 0; k < 3; k++) counts[9 * lanes * k + 8 * lanes + lane] += sum[k][first + lane];
                else
                    for (int bit = 0; bit < 8; bit++)
                        counts[9 * lanes * kind + 8 * lane + bit] += sum[bit][first + lane];
            }
    }
    memset(t->row, 0, sizeof t->row);
    memset(t->carry, 0, sizeof t->carry);
    t->batches = 0;
}

/* Adds to the counts what waits in all tallies. */
ES_TARGET static void ES_NAME(es_settle)(es_tally *tallies, int64_t n_streams, int64_t lanes, int64_t *counts) {
    for (int64_t k = 0; k < n_streams; k++) ES_NAME(es_empty)(tallies + k, lanes, counts + 27 * lanes * k);
}

/* What the wires do at each place of the window, and whose that is, 64 places a block. */
ES_TARGET static void ES_NAME(es_look)(es_window *w, int64_t lanes) {
    const int64_t blocks = (w->in.places + w->step - 1) / w->step;
    for (int64_t b = 0; b < blocks; b++) {
        const uint8_t *now = w->in.byte + 64 + b * w->step, *before = now - lanes;
        for (int part = 0; part < 64; part += ES_WIDTH)
            ES_STORE(w->flips + 64 * b + part, ES_LOAD_ANY(now + part) ^ ES_LOAD_ANY(before + part));
        if (w->in.flagged) {
            const uint64_t bits = ew_word_at(w->in.flag, 64 + b * w->step);
            const uint64_t flips = bits ^ ew_word_at(w->in.flag, 64 + b * w->step - lanes), up = flips & bits;
            ES_SPREAD(w->flags + 64 * b, bits, flips, up);
        }
        if (w->step < 64) {
            memcpy(w->owner + 64 * b, w->stream + b * w->step, (size_t)w->step);
            memset(w->owner + 64 * b + w->step, ES_NOBODY, (size_t)(64 - w->step));
        }
    }
}

#define ES_ADD(sum, carry, a, b, c)                   \
    do {                                              \
        const ES_VECTOR x_ = (a), y_ = (b), z_ = (c); \
        carry = ES_MAJORITY(x_, y_, z_);              \
        sum = ES_PARITY(x_, y_, z_);                  \
    } while (0)

/* Two blocks more, where they are those of a stream, into planes of ones; carries: their carries, of each kind. */
#define ES_ADD_TWO(planes, carries, k)                                                                          \
    do {                                                                                                        \
        const ES_VECTOR s0_ = ES_PICK(mine[k], now + at[k] * step), s1_ = ES_PICK(mine[k + 1], now + at[k + 1] * step); \
        const ES_VECTOR f0_ = ES_PICK(mine[k], flips + at[k] * 64), f1_ = ES_PICK(mine[k + 1], flips + at[k + 1] * 64); \
        ES_ADD(planes[EW_ONES], carries[EW_ONES], planes[EW_ONES], s0_, s1_);                                   \
        ES_ADD(planes[EW_TOGGLES], carries[EW_TOGGLES], planes[EW_TOGGLES], f0_, f1_);                          \
        ES_ADD(planes[EW_RISING], carries[EW_RISING], planes[EW_RISING], s0_ & f0_, s1_ & f1_);                 \
        if (kinds > ES_FLAGS)                                                                                   \
            ES_ADD(planes[ES_FLAGS], carries[ES_FLAGS], planes[ES_FLAGS], ES_PICK(mine[k], flags + at[k] * 64), \
                   ES_PICK(mine[k + 1], flags + at[k + 1] * 64));                                               \
    } while (0)
#define ES_ADD_UP(planes, up, a, b) \
    for (int kind_ = 0; kind_ < kinds; kind_++) ES_ADD(planes[kind_], up[kind_], planes[kind_], a[kind_], b[kind_])

/* Adds those blocks of a window (n, followed by seven that are nobody's) where they are those of the stream of that number. */
ES_TARGET static inline __attribute__((always_inline)) void ES_NAME(es_add_kinds)(
    const es_window *w, const int64_t *blocks, int64_t n, int64_t number, es_tally *t, const int kinds) {
    const int64_t step = w->step;
    for (int part = 0; part < 64; part += ES_WIDTH) {
        const uint8_t *owner = (w->step == 64 ? w->stream : w->owner) + part, *now = w->in.byte + 64 + part;
        const uint8_t *flips = w->flips + part, *flags = w->flags + part;
        ES_VECTOR ones[ES_KINDS], twos[ES_KINDS], fours[ES_KINDS];
        int64_t batches = t->batches;
        for (int kind = 0; kind < kinds; kind++) {
            ones[kind] = ES_LOAD(t->row[kind][0] + part);
            twos[kind] = ES_LOAD(t->row[kind][1] + part);
            fours[kind] = ES_LOAD(t->row[kind][2] + part);
        }
        for (int64_t first = 0; first < n; first += ES_BATCH, batches++) {
            const int64_t *at = blocks + first;
            ES_VECTOR a[ES_KINDS], b[ES_KINDS], c[ES_KINDS], d[ES_KINDS], eights[ES_KINDS];
            ES_MASK mine[ES_BATCH];
            for (int k = 0; k < ES_BATCH; k++) mine[k] = ES_IS(owner + at[k] * 64, number);
            ES_ADD_TWO(ones, a, 0);
            ES_ADD_TWO(ones, b, 2);
            ES_ADD_UP(twos, c, a, b);
            if (first + ES_BATCH / 2 < n) {
                ES_ADD_TWO(ones, a, 4);
                ES_ADD_TWO(ones, b, 6);
                ES_ADD_UP(twos, d, a, b);
            } else
                memset(d, 0, sizeof d);
            ES_ADD_UP(fours, eights, c, d);
            if (kinds == ES_FLAGS) eights[ES_FLAGS] = eights[0] ^ eights[0]; /* `batches` holds for flags too */
            int level = 0;
            for (int64_t wait = batches; wait & 1; wait >>= 1, level++)
                for (int kind = 0; kind < ES_KINDS; kind++) {
                    uint8_t *carry = t->carry[kind][level][0] + part;
                    ES_VECTOR sum;
                    ES_ADD(sum, eights[kind], ES_LOAD(carry), ES_LOAD(carry + 64), eights[kind]);
                    ES_STORE(carry, sum);
                }
            for (int kind = 0; kind < ES_KINDS; kind++) ES_STORE(t->carry[kind][level][1] + part, eights[kind]);
        }
        for (int kind = 0; kind < kinds; kind++) {
            ES_STORE(t->row[kind][0] + part, ones[kind]);
            ES_STORE(t->row[kind][1] + part, twos[kind]);
            ES_STORE(t->row[kind][2] + part, fours[kind]);
        }
    }
    t->batches += (n + ES_BATCH - 1) / ES_BATCH;
}

ES_TARGET static void ES_NAME(es_count_window)(es_window *w, int64_t lanes, const ew_sent *sent,
                                               es_tally *tallies, int64_t *counts) {
    ES_NAME(es_look)(w, lanes);
    for (int64_t stream = 0; stream < sent->n_streams; stream++) {
        int64_t at[ES_BLOCKS + ES_BATCH], n = 0;
        es_tally *t = tallies + stream;
        for (uint64_t left = w->blocks[stream]; left; left &= left - 1) at[n++] = __builtin_ctzll(left);
        if (!n) continue;
        w->blocks[stream] = 0;
        for (int k = 0; k < ES_BATCH; k++) at[n + k] = ES_NONE;
        if (t->batches > ES_MOST_BATCHES - ES_BLOCKS / ES_BATCH) ES_NAME(es_empty)(t, lanes, counts + stream * 27 * lanes);
        if (w->in.flagged)
            ES_NAME(es_add_kinds)(w, at, n, stream, t, ES_KINDS);
        else
            ES_NAME(es_add_kinds)(w, at, n, stream, t, ES_FLAGS);
        for (int line = 0; line < 32 && w->ahead < w->ahead_stop; line++, w->ahead += 8) { /* 64 bytes */
            __builtin_prefetch(sent->ends + w->ahead, 0, 2);
            __builtin_prefetch(sent->streams + w->ahead, 0, 2);
        }
    }
}

/* Returns 0 where a segment is none: then some before it are sent, and the bus is of no use. */
ES_TARGET static int ES_NAME(es_send)(ew_bus *bus, const ew_sent *sent, es_tally *tallies, int64_t *counts) {
    const int64_t lanes = bus->lanes, segments = sent->segments, *ends = sent->ends, *streams = sent->streams;
    const uint8_t *idles = sent->idles;
    int64_t i = 0, k = 0;     /* byte, segment */
    int rested = 0, good = 1; /* rested: before this segment, already */
    es_window w __attribute__((aligned(64)));
    w.step = 64 / lanes * lanes;
    w.inverse = ((1 << 22) + w.step - 1) / w.step;
    const int64_t full = ES_BLOCKS * w.step;
    memset(w.blocks, 0, sizeof w.blocks);
    memset(w.stream, ES_NOBODY, 64);
    memset(w.stream + ES_PLACES, ES_NOBODY, sizeof w.stream - ES_PLACES);
    memset(w.owner + ES_PLACES, ES_NOBODY, sizeof w.owner - ES_PLACES);
    ew_start(&w.in, bus, sent->flags != NULL);
    while (k < segments && good) {
        int64_t p = w.in.places, from = p, run = p - i; /* run: the place of byte 0 */
        const int64_t window = k;
        while (k < segments && p < full) {
            if ((uint64_t)ends[k] > (uint64_t)sent->n) {
                good = 0;
                break;
            }
            const int64_t stop = ends[k] + run;
            if (!idles && stop - p <= ES_LONGER && k + 8 <= segments) {
                const int64_t before = k, start = p, group = (es_block(&w, p) / ES_GROUP + 1) * ES_GROUP * w.step; /* its end */
                const int64_t bytes = group < sent->n + run ? group - p : sent->n + run - p; /* there are no more */
                const int64_t room = segments - k < bytes ? segments - k : bytes;
                uint64_t senders = 0;
                int64_t some = 0;
                if (stop == p + 1) {
                    some = ES_SINGLES(ends + k, streams + k, p + 1 - run, room / 8, sent->n_streams, w.stream + p, &senders);
                    k += some;
                    p += some;
                }
                some = ES_SHORTS(&w, ends + k, streams + k, run, p - run, group - run,
                                 full - run < sent->n ? full - run : sent->n, (segments - k) / 8, sent->n_streams, &senders);
                k += some;
                if (some) p = ends[k - 1] + run;
                for (; senders; senders &= senders - 1) es_mark(&w, __builtin_ctzll(senders), start, p < group ? p : group);
                if (k > before) continue;
            }
            if (stop < p || (uint64_t)streams[k] >= (uint64_t)sent->n_streams) {
                good = 0;
                break;
            }
            const int64_t stream = streams[k];
            if (idles && idles[k] && !rested) {
                if (p + 2 * lanes > full) break;
                ew_take_bytes(&w.in, sent, from - run, from, p - from);
                w.in.places = p;
                from = ew_return_to_idle(&w.in, lanes, sent->rest, counts + stream * 27 * lanes);
                memset(w.stream + p, ES_NOBODY, (size_t)(from - p));
                memset(w.stream + from, (int)stream, (size_t)lanes);
                es_mark(&w, stream, from, from + lanes);
                from += lanes;
                run += from - p;
                w.in.places = p = from;
                rested = 1;
                continue;
            }
            const int64_t to = stop < full ? stop : full;
            if (to - p <= ES_SHORT)
                memset(w.stream + p, (int)stream, ES_SHORT);
            else
                for (int64_t at = p; at < to; at += 64) memset(w.stream + at, (int)stream, 64);
            es_mark(&w, stream, p, to);
            p = to;
            if (p < stop) break;
            k++;
            rested = 0;
        }
        memset(w.stream + p, ES_NOBODY, 64);
        ew_take_bytes(&w.in, sent, from - run, from, p - from);
        w.in.places = p;
        i = p - run;
        w.ahead = k + ES_AHEAD; /* as many as there were in this window */
        w.ahead_stop = segments < w.ahead + k - window ? segments : w.ahead + k - window;
        ES_NAME(es_count_window)(&w, lanes, sent, tallies, counts);
        ew_next_window(&w.in, lanes);
        memset(w.stream, ES_NOBODY, 64);
    }
    ew_stop(&w.in, bus);
    return good;
}

#undef ES_NAME
#undef ES_TARGET
#undef ES_WIDTH
#undef ES_VECTOR
#undef ES_MASK
#undef ES_LOAD
#undef ES_STORE
#undef ES_IS
#undef ES_PICK
#undef ES_PARITY
#undef ES_MAJORITY
#undef ES_ADD
#undef ES_ADD_TWO
#undef ES_ADD_UP
#undef ES_SPREAD
#undef ES_SINGLES
#undef ES_SHORTS
#undef ES_LOAD_ANY
