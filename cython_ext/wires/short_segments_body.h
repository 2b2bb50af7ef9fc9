/* Included once per SIMD level by wires/short_segments.h, which defines ES_NAME, ES_TARGET and vectors of ES_WIDTH bytes. */

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

/* What the wires do at each place of the window, and whose that is, 64 places a block. */
ES_TARGET static void ES_NAME(es_look)(es_window *w, int64_t lanes) {
    const int64_t blocks = (w->places + w->step - 1) / w->step;
    for (int64_t b = 0; b < blocks; b++) {
        const uint8_t *now = w->byte + 64 + b * w->step, *before = now - lanes, *stream = w->stream + b * w->step;
        uint8_t *kind = w->kind[0] + 64 * b, *owner = w->owner + 64 * b;
        for (int part = 0; part < 64; part += ES_WIDTH) {
            const ES_VECTOR sent = ES_LOAD_ANY(now + part), flips = sent ^ ES_LOAD_ANY(before + part);
            ES_STORE(kind + EW_ONES * ES_STRIDE + part, sent);
            ES_STORE(kind + EW_TOGGLES * ES_STRIDE + part, flips);
            ES_STORE(kind + EW_RISING * ES_STRIDE + part, flips & sent);
            ES_STORE(owner + part, ES_LOAD_ANY(stream + part));
        }
        if (w->step < 64) memset(owner + w->step, ES_NOBODY, (size_t)(64 - w->step));
        if (w->flagged) {
            uint8_t *flags = w->kind[ES_FLAGS] + 64 * b;
            const uint64_t bits = ew_word_at(w->flag, 64 + b * w->step);
            const uint64_t flips = bits ^ ew_word_at(w->flag, 64 + b * w->step - lanes), up = flips & bits;
            ES_SPREAD(flags, bits, flips, up);
        }
        if (w->rests) {
            const uint8_t *rest = w->rest + b * w->step;
            for (int j = 0; j < 64; j++) {
                w->kind[EW_ONES][64 * b + j] &= (uint8_t)~rest[j];
                w->kind[ES_FLAGS][64 * b + j] &= (uint8_t)~(rest[j] & 1);
            }
        }
    }
    memset(w->owner + 64 * blocks, ES_NOBODY, (size_t)(ES_PLACES + 64 - 64 * blocks));
}

#define ES_ADD(sum, carry, a, b, c)                 \
    do {                                            \
        const ES_VECTOR x_ = (a), y_ = (b), z_ = (c); \
        carry = ES_MAJORITY(x_, y_, z_);            \
        sum = ES_PARITY(x_, y_, z_);                \
    } while (0)

/* Adds the first of those blocks, up to eight, where they are those of the stream of that number; returns the blocks left. */
ES_TARGET static uint32_t ES_NAME(es_add_blocks)(const es_window *w, uint32_t blocks, int64_t number, es_tally *t) {
    const int kinds = w->flagged ? ES_KINDS : ES_FLAGS;
    ES_VECTOR eights[ES_KINDS][64 / ES_WIDTH];
    int64_t at[ES_BATCH];
    int n = 0;
    for (; n < ES_BATCH && blocks; n++, blocks &= blocks - 1) at[n] = 64 * __builtin_ctz(blocks);
    for (int b = n; b < ES_BATCH; b++) at[b] = ES_PLACES; /* nobody's */
    for (int part = 0; part < 64; part += ES_WIDTH) {
        ES_MASK mine[ES_BATCH];
        for (int b = 0; b < ES_BATCH; b++) mine[b] = ES_IS(w->owner + at[b] + part, number);
        for (int kind = 0; kind < kinds; kind++) {
            const uint8_t *from = w->kind[kind] + part;
            uint8_t *row = t->row[kind][0] + part;
            ES_VECTOR ones = ES_LOAD(row), twos = ES_LOAD(row + 64), fours = ES_LOAD(row + 128), a, b, c, d;
            ES_ADD(ones, a, ones, ES_PICK(mine[0], from + at[0]), ES_PICK(mine[1], from + at[1]));
            ES_ADD(ones, b, ones, ES_PICK(mine[2], from + at[2]), ES_PICK(mine[3], from + at[3]));
            ES_ADD(twos, c, twos, a, b);
            d = a ^ a;
            if (n > ES_BATCH / 2) {
                ES_ADD(ones, a, ones, ES_PICK(mine[4], from + at[4]), ES_PICK(mine[5], from + at[5]));
                ES_ADD(ones, b, ones, ES_PICK(mine[6], from + at[6]), ES_PICK(mine[7], from + at[7]));
                ES_ADD(twos, d, twos, a, b);
            }
            ES_ADD(fours, eights[kind][part / ES_WIDTH], fours, c, d);
            ES_STORE(row, ones);
            ES_STORE(row + 64, twos);
            ES_STORE(row + 128, fours);
        }
    }
    if (!w->flagged) memset(eights[ES_FLAGS], 0, sizeof eights[ES_FLAGS]);
    int level = 0;
    for (int64_t wait = t->batches; wait & 1; wait >>= 1, level++)
        for (int kind = 0; kind < ES_KINDS; kind++)
            for (int part = 0; part < 64; part += ES_WIDTH) {
                uint8_t *carry = t->carry[kind][level][0] + part;
                ES_VECTOR sum, *up = &eights[kind][part / ES_WIDTH];
                ES_ADD(sum, *up, ES_LOAD(carry), ES_LOAD(carry + 64), *up);
                ES_STORE(carry, sum);
            }
    for (int kind = 0; kind < ES_KINDS; kind++)
        for (int part = 0; part < 64; part += ES_WIDTH)
            ES_STORE(t->carry[kind][level][1] + part, eights[kind][part / ES_WIDTH]);
    t->batches++;
    return blocks;
}

ES_TARGET static void ES_NAME(es_count_window)(es_window *w, int64_t lanes, const ew_sent *sent,
                                               es_tally *tallies, int64_t *counts) {
    ES_NAME(es_look)(w, lanes);
    for (int64_t number = 0; number < w->names; number++) {
        const int64_t stream = w->name[number];
        es_tally *t = tallies + stream;
        for (uint32_t left = w->blocks[number]; left;) {
            if (t->batches == ES_MOST_BATCHES) ES_NAME(es_empty)(t, lanes, counts + stream * 27 * lanes);
            left = ES_NAME(es_add_blocks)(w, left, number, t);
            for (int line = 0; line < 4 && w->ahead < w->ahead_stop; line++, w->ahead += 8) { /* 64 bytes */
                __builtin_prefetch(sent->ends + w->ahead);
                __builtin_prefetch(sent->streams + w->ahead);
            }
        }
    }
}

/* Returns 0 where a segment is none: then some before it are sent, and the bus is of no use. */
ES_TARGET static int ES_NAME(es_send)(ew_bus *bus, const ew_sent *sent, es_tally *tallies, int64_t *counts) {
    const int64_t lanes = bus->lanes, segments = sent->segments, *ends = sent->ends, *streams = sent->streams;
    const uint8_t *idles = sent->idles;
    const int few = sent->n_streams <= ES_FEW, many_at_once = few && !idles;
    int64_t i = 0, k = 0;     /* byte, segment */
    int rested = 0, good = 1; /* rested: before this segment, already */
    es_window w __attribute__((aligned(64)));
    w.step = 64 / lanes * lanes;
    w.rests = 1;
    w.flagged = sent->flags != NULL;
    w.names = 0;
    const int64_t full = ES_BLOCKS * w.step;
    for (int64_t s = 0; few && s < sent->n_streams; s++) es_number(&w, tallies, s);
    while (k < segments && good) {
        es_start_window(&w, bus);
        int64_t p = w.places, from = p, run = p - i; /* run: the place of byte 0 */
        while (k < segments && p < full) {
            const int64_t stop = ends[k] + run;
            if (many_at_once && stop <= p + ES_SHORT && k + 8 <= segments) {
                const int64_t before = k, start = p, group = (p / (ES_BATCH * w.step) + 1) * ES_BATCH * w.step; /* its end */
                const int64_t bytes = group < sent->n + run ? group - p : sent->n + run - p; /* there are no more */
                const int64_t room = segments - k < bytes ? segments - k : bytes;
                uint64_t senders = 0;
                int64_t some = 0;
                if (stop == p + 1) {
                    some = ES_SINGLES(ends + k, streams + k, p + 1 - run, room / 8, sent->n_streams, w.stream + p, &senders);
                    k += some;
                    p += some;
                }
                some = ES_SHORTS(ends + k, streams + k, p - run, group - run < sent->n ? group - run : sent->n,
                                 (segments - k) / 8, sent->n_streams, w.stream + run, &senders);
                k += some;
                if (some) p = ends[k - 1] + run;
                for (; senders; senders &= senders - 1) es_mark(&w, __builtin_ctzll(senders), start, p);
                if (k > before) continue;
            }
            if (stop < p || stop > sent->n + run || (uint64_t)streams[k] >= (uint64_t)sent->n_streams) {
                good = 0;
                break;
            }
            const int64_t number = few ? streams[k] : es_number(&w, tallies, streams[k]);
            if (number < 0) break;
            if (idles && idles[k] && !rested) {
                if (p + 2 * lanes > full) break;
                es_take_bytes(&w, sent, from - run, from, p);
                w.places = p;
                es_return_to_idle(&w, lanes, sent->rest, (uint8_t)number);
                es_mark(&w, number, p, w.places);
                run += w.places - p;
                from = p = w.places;
                rested = 1;
                continue;
            }
            const int64_t to = stop < full ? stop : full;
            if (to - p <= ES_SHORT)
                memset(w.stream + p, (int)number, ES_SHORT);
            else
                for (int64_t at = p; at < to; at += 64) memset(w.stream + at, (int)number, 64);
            es_mark(&w, number, p, to);
            p = to;
            if (p < stop) break;
            k++;
            rested = 0;
        }
        memset(w.stream + p, ES_NOBODY, 64);
        es_take_bytes(&w, sent, from - run, from, p);
        w.places = p;
        i = p - run;
        w.ahead = k + ES_AHEAD;
        w.ahead_stop = segments < w.ahead + ES_PLACES ? segments : w.ahead + ES_PLACES;
        ES_NAME(es_count_window)(&w, lanes, sent, tallies, counts);
        es_stop_window(&w, bus);
        for (; !few && w.names; w.names--) tallies[w.name[w.names - 1]].number = 0;
    }
    for (; w.names; w.names--) tallies[w.name[w.names - 1]].number = 0;
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
#undef ES_SPREAD
#undef ES_SINGLES
#undef ES_SHORTS
#undef ES_LOAD_ANY
