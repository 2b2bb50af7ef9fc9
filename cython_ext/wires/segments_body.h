/* Included once per SIMD level by wires/wires.h, which defines EW_NAME, EW_TARGET and vectors of EW_WIDTH bytes. */

/* Puts one plane's bits of a kind, at 64 places, with their weight, into sums of each bit. */
EW_TARGET static void EW_NAME(ew_weigh)(const uint8_t plane[64], int level, uint16_t sum[8][64]) {
    for (int bit = 0; bit < 8; bit++)
        for (int j = 0; j < 64; j++) sum[bit][j] = (uint16_t)(sum[bit][j] + ((plane[j] >> bit & 1) << level));
}

EW_TARGET static void EW_NAME(ew_empty)(ew_tally *t, int64_t lanes, int64_t *counts) {
    const int64_t step = 64 / lanes * lanes;
    if (!t->batches) return;
    for (int kind = 0; kind < EW_KINDS; kind++) {
        uint16_t sum[8][64];
        memset(sum, 0, sizeof sum);
        for (int level = 0; level < EW_ROW_PLANES; level++) EW_NAME(ew_weigh)(t->row[kind][level], level, sum);
        for (int level = 0; t->batches >> level; level++) {
            EW_NAME(ew_weigh)(t->carry[kind][level][0], EW_ROW_PLANES + level, sum);
            if (t->batches >> level & 1) EW_NAME(ew_weigh)(t->carry[kind][level][1], EW_ROW_PLANES + level, sum);
        }
        for (int64_t first = 0; first < step; first += lanes)
            for (int64_t lane = 0; lane < lanes; lane++) {
                if (kind == EW_FLAGS)
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
EW_TARGET static void EW_NAME(ew_look)(ew_window *w, int64_t lanes) {
    const int64_t blocks = (w->places + w->step - 1) / w->step;
    for (int64_t b = 0; b < blocks; b++) {
        const uint8_t *now = w->byte + 64 + b * w->step, *before = now - lanes, *stream = w->stream + b * w->step;
        uint8_t *kind = w->kind[0] + 64 * b, *owner = w->owner + 64 * b;
        for (int part = 0; part < 64; part += EW_WIDTH) {
            const EW_VECTOR sent = EW_LOAD_ANY(now + part), flips = sent ^ EW_LOAD_ANY(before + part);
            EW_STORE(kind + EW_ONES * EW_STRIDE + part, sent);
            EW_STORE(kind + EW_TOGGLES * EW_STRIDE + part, flips);
            EW_STORE(kind + EW_RISING * EW_STRIDE + part, flips & sent);
            EW_STORE(owner + part, EW_LOAD_ANY(stream + part));
        }
        if (w->step < 64) memset(owner + w->step, EW_NOBODY, (size_t)(64 - w->step));
        if (w->flagged) {
            uint8_t *flags = w->kind[EW_FLAGS] + 64 * b;
            const uint64_t bits = ew_word_at(w->flag, 64 + b * w->step);
            const uint64_t flips = bits ^ ew_word_at(w->flag, 64 + b * w->step - lanes), up = flips & bits;
            EW_SPREAD(flags, bits, flips, up);
        }
        if (w->rests) {
            const uint8_t *rest = w->rest + b * w->step;
            for (int j = 0; j < 64; j++) {
                w->kind[EW_ONES][64 * b + j] &= (uint8_t)~rest[j];
                w->kind[EW_FLAGS][64 * b + j] &= (uint8_t)~(rest[j] & 1);
            }
        }
    }
    memset(w->owner + 64 * blocks, EW_NOBODY, (size_t)(EW_PLACES + 64 - 64 * blocks));
}

#define EW_ADD(sum, carry, a, b, c)                 \
    do {                                            \
        const EW_VECTOR x_ = (a), y_ = (b), z_ = (c); \
        carry = EW_MAJORITY(x_, y_, z_);            \
        sum = EW_PARITY(x_, y_, z_);                \
    } while (0)

/* Adds the first of those blocks, up to eight, where they are those of the stream of that number; returns the blocks left. */
EW_TARGET static uint32_t EW_NAME(ew_add_blocks)(const ew_window *w, uint32_t blocks, int64_t number, ew_tally *t) {
    const int kinds = w->flagged ? EW_KINDS : EW_FLAGS;
    EW_VECTOR eights[EW_KINDS][64 / EW_WIDTH];
    int64_t at[EW_BATCH];
    int n = 0;
    for (; n < EW_BATCH && blocks; n++, blocks &= blocks - 1) at[n] = 64 * __builtin_ctz(blocks);
    for (int b = n; b < EW_BATCH; b++) at[b] = EW_PLACES; /* nobody's */
    for (int part = 0; part < 64; part += EW_WIDTH) {
        EW_MASK mine[EW_BATCH];
        for (int b = 0; b < EW_BATCH; b++) mine[b] = EW_IS(w->owner + at[b] + part, number);
        for (int kind = 0; kind < kinds; kind++) {
            const uint8_t *from = w->kind[kind] + part;
            uint8_t *row = t->row[kind][0] + part;
            EW_VECTOR ones = EW_LOAD(row), twos = EW_LOAD(row + 64), fours = EW_LOAD(row + 128), a, b, c, d;
            EW_ADD(ones, a, ones, EW_PICK(mine[0], from + at[0]), EW_PICK(mine[1], from + at[1]));
            EW_ADD(ones, b, ones, EW_PICK(mine[2], from + at[2]), EW_PICK(mine[3], from + at[3]));
            EW_ADD(twos, c, twos, a, b);
            d = a ^ a;
            if (n > EW_BATCH / 2) {
                EW_ADD(ones, a, ones, EW_PICK(mine[4], from + at[4]), EW_PICK(mine[5], from + at[5]));
                EW_ADD(ones, b, ones, EW_PICK(mine[6], from + at[6]), EW_PICK(mine[7], from + at[7]));
                EW_ADD(twos, d, twos, a, b);
            }
            EW_ADD(fours, eights[kind][part / EW_WIDTH], fours, c, d);
            EW_STORE(row, ones);
            EW_STORE(row + 64, twos);
            EW_STORE(row + 128, fours);
        }
    }
    if (!w->flagged) memset(eights[EW_FLAGS], 0, sizeof eights[EW_FLAGS]);
    int level = 0;
    for (int64_t wait = t->batches; wait & 1; wait >>= 1, level++)
        for (int kind = 0; kind < EW_KINDS; kind++)
            for (int part = 0; part < 64; part += EW_WIDTH) {
                uint8_t *carry = t->carry[kind][level][0] + part;
                EW_VECTOR sum, *up = &eights[kind][part / EW_WIDTH];
                EW_ADD(sum, *up, EW_LOAD(carry), EW_LOAD(carry + 64), *up);
                EW_STORE(carry, sum);
            }
    for (int kind = 0; kind < EW_KINDS; kind++)
        for (int part = 0; part < 64; part += EW_WIDTH)
            EW_STORE(t->carry[kind][level][1] + part, eights[kind][part / EW_WIDTH]);
    t->batches++;
    return blocks;
}

EW_TARGET static void EW_NAME(ew_count_window)(ew_window *w, int64_t lanes, const ew_sent *sent,
                                               ew_tally *tallies, int64_t *counts) {
    EW_NAME(ew_look)(w, lanes);
    for (int64_t number = 0; number < w->names; number++) {
        const int64_t stream = w->name[number];
        ew_tally *t = tallies + stream;
        for (uint32_t left = w->blocks[number]; left;) {
            if (t->batches == EW_MOST_BATCHES) EW_NAME(ew_empty)(t, lanes, counts + stream * 27 * lanes);
            left = EW_NAME(ew_add_blocks)(w, left, number, t);
            for (int line = 0; line < 4 && w->ahead < w->ahead_stop; line++, w->ahead += 8) { /* 64 bytes */
                __builtin_prefetch(sent->ends + w->ahead);
                __builtin_prefetch(sent->streams + w->ahead);
            }
        }
    }
}

EW_TARGET static int EW_NAME(ew_send)(ew_bus *bus, const ew_sent *sent, ew_tally *tallies, int64_t *counts) {
    const int64_t lanes = bus->lanes, segments = sent->segments, *ends = sent->ends, *streams = sent->streams;
    const uint8_t *idles = sent->idles;
    const int few = sent->n_streams <= EW_FEW, many_at_once = few && !idles;
    int64_t i = 0, k = 0;     /* byte, segment */
    int rested = 0, good = 1; /* rested: before this segment, already */
    ew_window w __attribute__((aligned(64)));
    w.step = 64 / lanes * lanes;
    w.rests = 1;
    w.flagged = sent->flags != NULL;
    w.names = 0;
    const int64_t full = EW_BLOCKS * w.step;
    for (int64_t s = 0; few && s < sent->n_streams; s++) ew_number(&w, tallies, s);
    while (k < segments && good) {
        ew_start_window(&w, bus);
        int64_t p = w.places, from = p, run = p - i; /* run: the place of byte 0 */
        while (k < segments && p < full) {
            const int64_t stop = ends[k] + run;
            if (many_at_once && stop <= p + EW_SHORT && k + 8 <= segments) {
                const int64_t before = k, start = p, group = (p / (EW_BATCH * w.step) + 1) * EW_BATCH * w.step; /* its end */
                const int64_t room = segments - k < group - p ? segments - k : group - p;
                uint64_t senders = 0;
                int64_t some = 0;
                if (stop == p + 1) {
                    some = EW_SINGLES(ends + k, streams + k, p + 1 - run, room / 8, sent->n_streams, w.stream + p, &senders);
                    k += some;
                    p += some;
                }
                some = EW_SHORTS(ends + k, streams + k, p - run, group - run < sent->n ? group - run : sent->n,
                                 (segments - k) / 8, sent->n_streams, w.stream + run, &senders);
                k += some;
                if (some) p = ends[k - 1] + run;
                for (; senders; senders &= senders - 1) ew_mark(&w, __builtin_ctzll(senders), start, p);
                if (k > before) continue;
            }
            if (stop < p || stop > sent->n + run || (uint64_t)streams[k] >= (uint64_t)sent->n_streams) {
                good = 0;
                break;
            }
            const int64_t number = few ? streams[k] : ew_number(&w, tallies, streams[k]);
            if (number < 0) break;
            if (idles && idles[k] && !rested) {
                if (p + 2 * lanes > full) break;
                ew_take_bytes(&w, sent, from - run, from, p);
                w.places = p;
                ew_return_to_idle(&w, lanes, sent->rest, (uint8_t)number);
                ew_mark(&w, number, p, w.places);
                run += w.places - p;
                from = p = w.places;
                rested = 1;
                continue;
            }
            const int64_t to = stop < full ? stop : full;
            if (to - p <= EW_SHORT)
                memset(w.stream + p, (int)number, EW_SHORT);
            else
                for (int64_t at = p; at < to; at += 64) memset(w.stream + at, (int)number, 64);
            ew_mark(&w, number, p, to);
            p = to;
            if (p < stop) break;
            k++;
            rested = 0;
        }
        memset(w.stream + p, EW_NOBODY, 64);
        ew_take_bytes(&w, sent, from - run, from, p);
        w.places = p;
        i = p - run;
        w.ahead = k + EW_AHEAD;
        w.ahead_stop = segments < w.ahead + EW_PLACES ? segments : w.ahead + EW_PLACES;
        EW_NAME(ew_count_window)(&w, lanes, sent, tallies, counts);
        ew_stop_window(&w, bus);
        for (; !few && w.names; w.names--) tallies[w.name[w.names - 1]].number = 0;
    }
    for (; w.names; w.names--) tallies[w.name[w.names - 1]].number = 0;
    return good;
}

#undef EW_NAME
#undef EW_TARGET
#undef EW_WIDTH
#undef EW_VECTOR
#undef EW_MASK
#undef EW_LOAD
#undef EW_STORE
#undef EW_IS
#undef EW_PICK
#undef EW_PARITY
#undef EW_MAJORITY
#undef EW_ADD
#undef EW_SPREAD
#undef EW_SINGLES
#undef EW_SHORTS
#undef EW_LOAD_ANY
