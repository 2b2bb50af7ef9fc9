/* Included once per SIMD level by wires/tallies/rows.h, which defines ER_NAME, ER_TARGET and vectors of ER_WIDTH bytes. */

#define ER_INLINE ER_TARGET static inline __attribute__((always_inline))

/* Puts one plane's bits with their weight into sums of each bit. */
ER_TARGET static void ER_NAME(er_weigh)(const uint8_t plane[ER_ROW_BYTES], int level, uint16_t sum[8][ER_ROW_BYTES]) {
    for (int bit = 0; bit < 8; bit++)
        for (int j = 0; j < ER_ROW_BYTES; j++)
            sum[bit][j] = (uint16_t)(sum[bit][j] + ((plane[j] >> bit & 1) << level));
}

/* Adds the counters of the tally of that number to its counts and empties them. */
ER_TARGET static void ER_NAME(er_spill)(const er_sums *to, int64_t number) {
    const int64_t lanes = to->lanes, first = number % to->groups * ER_ROW;
    int64_t *counts = to->counts + number / to->groups * 27 * lanes;
    er_tally *t = to->tallies + number;
    uint16_t sum[8][ER_ROW_BYTES];
    if (!t->batches) return;
    memset(sum, 0, sizeof sum);
    for (int level = 0; level < ER_ROW_PLANES; level++) ER_NAME(er_weigh)(t->row[level], level, sum);
    for (int level = 0; t->batches >> level; level++) {
        ER_NAME(er_weigh)(t->carry[level][0], ER_ROW_PLANES + level, sum);
        if (t->batches >> level & 1) ER_NAME(er_weigh)(t->carry[level][1], ER_ROW_PLANES + level, sum);
    }
    for (int64_t place = 0; place < to->step; place++) {
        const int64_t lane = first + place % to->inside;
        if (lane >= lanes) break;
        for (int kind = 0; kind < 3; kind++) {
            for (int bit = 0; bit < 8; bit++) counts[9 * lanes * kind + 8 * lane + bit] += sum[bit][4 * place + kind];
            counts[9 * lanes * kind + 8 * lanes + lane] += sum[kind][4 * place + EW_FLAGS];
        }
    }
    memset(t->row, 0, sizeof t->row);
    memset(t->carry, 0, sizeof t->carry);
    t->batches = 0;
}

#define ER_ADD(sum, carry, a, b, c)                   \
    do {                                              \
        const ER_VECTOR x_ = (a), y_ = (b), z_ = (c); \
        carry = ER_MAJORITY(x_, y_, z_);              \
        sum = ER_PARITY(x_, y_, z_);                  \
    } while (0)

/* Takes a batch of rows into the counters. */
ER_TARGET static __attribute__((noinline)) void ER_NAME(er_add_batch)(const er_sums *to, er_tally *t, const uint8_t *rows) {
    if (t->batches == ER_MOST_BATCHES) ER_NAME(er_spill)(to, t - to->tallies);
    for (int part = 0; part < ER_ROW_BYTES; part += ER_WIDTH) {
        const uint8_t *from = rows + part;
        const int64_t row = 4 * to->step;
        ER_VECTOR ones = ER_LOAD(t->row[0] + part), twos = ER_LOAD(t->row[1] + part), fours = ER_LOAD(t->row[2] + part);
        ER_VECTOR a, b, c, d, eights;
        ER_ADD(ones, a, ones, ER_LOAD(from), ER_LOAD(from + row));
        ER_ADD(ones, b, ones, ER_LOAD(from + 2 * row), ER_LOAD(from + 3 * row));
        ER_ADD(twos, c, twos, a, b);
        ER_ADD(ones, a, ones, ER_LOAD(from + 4 * row), ER_LOAD(from + 5 * row));
        ER_ADD(ones, b, ones, ER_LOAD(from + 6 * row), ER_LOAD(from + 7 * row));
        ER_ADD(twos, d, twos, a, b);
        ER_ADD(fours, eights, fours, c, d);
        ER_STORE(t->row[0] + part, ones);
        ER_STORE(t->row[1] + part, twos);
        ER_STORE(t->row[2] + part, fours);
        int level = 0;
        for (int64_t wait = t->batches; wait & 1; wait >>= 1, level++) {
            ER_VECTOR sum;
            ER_ADD(sum, eights, ER_LOAD(t->carry[level][0] + part), ER_LOAD(t->carry[level][1] + part), eights);
            ER_STORE(t->carry[level][0] + part, sum);
        }
        ER_STORE(t->carry[level][1] + part, eights);
    }
    t->batches++;
}

/* Adds up the batch that waits; what is behind it moves to the front. */
ER_INLINE void ER_NAME(er_turn)(const er_sums *to, er_tally *t) {
    ER_NAME(er_add_batch)(to, t, t->word);
    t->filled -= to->batch;
    memcpy(t->word, t->word + 4 * to->batch, 4 * ER_LEFT);
}

/* Adds to the counts what waits in all tallies. */
ER_TARGET static void ER_NAME(er_settle)(const er_sums *to, int64_t n_streams) {
    for (int64_t number = 0; number < n_streams * to->groups; number++) {
        er_tally *t = to->tallies + number;
        if (t->filled) {
            memset(t->word + 4 * t->filled, 0, sizeof t->word - 4 * (size_t)t->filled);
            ER_NAME(er_add_batch)(to, t, t->word);
            t->filled = 0;
        }
        ER_NAME(er_spill)(to, number);
    }
}

ER_INLINE void ER_NAME(er_copy_row)(uint8_t *to, const uint8_t *from) {
    for (int part = 0; part < ER_ROW_BYTES; part += ER_WIDTH) ER_STORE(to + part, ER_LOAD(from + part));
}

/* Puts n words, some batches, behind those of a tally, and adds them up where they lie; returns how many, all but less than
 * a batch. */
ER_TARGET static __attribute__((noinline)) int64_t ER_NAME(er_append_batches)(const er_sums *to, er_tally *t,
                                                                              const uint8_t *word, int64_t n) {
    int64_t done = to->batch - t->filled;
    for (int64_t k = 0; k < done; k += ER_ROW) ER_NAME(er_copy_row)(t->word + 4 * (t->filled + k), word + 4 * k);
    ER_NAME(er_add_batch)(to, t, t->word);
    for (; n - done >= to->batch; done += to->batch) ER_NAME(er_add_batch)(to, t, word + 4 * done);
    t->filled = 0;
    return done;
}

/* Puts n words behind those of a tally, the first of them on that lane of its group. */
ER_INLINE void ER_NAME(er_append)(const er_sums *to, er_tally *t, const uint8_t *word, int64_t lane, int64_t n) {
    const int64_t ahead = lane + to->batch - t->filled; /* at least 1 */
    const ER_VECTOR zero = {0};
    int64_t at = t->filled;
    for (int part = 0; part < ER_ROW_BYTES; part += ER_WIDTH) ER_STORE(t->word + 4 * at + part, zero);
    at += ahead - to->inside * ((ahead * to->inverse) >> 22);
    if (n > ER_ROW) {
        t->filled = at;
        if (n >= 2 * to->batch && at < to->batch) {
            const int64_t done = ER_NAME(er_append_batches)(to, t, word, n);
            word += 4 * done;
            n -= done;
        }
        at = t->filled;
        for (; n > ER_ROW; n -= ER_ROW, word += ER_ROW_BYTES) {
            ER_NAME(er_copy_row)(t->word + 4 * at, word);
            at += ER_ROW;
            if (at < to->batch) continue;
            t->filled = at;
            ER_NAME(er_turn)(to, t);
            at = t->filled;
        }
    }
    ER_NAME(er_copy_row)(t->word + 4 * at, word);
    t->filled = at + n;
    if (t->filled >= to->batch) ER_NAME(er_turn)(to, t);
}

/* Gives the streams of segments from k on, before `next`, the words of their bytes from *i on, as long as they are at
 * most a row and end by `stop`, on a bus that is er_narrow; returns the first that it leaves. run: the place of byte
 * 0. */
ER_TARGET static __attribute__((noinline)) int64_t ER_NAME(er_walk_short)(const er_sums *to, const er_window *w,
                                                                          const ew_sent *sent, int64_t k, int64_t next,
                                                                          int64_t *i, int64_t stop, int64_t run) {
    const int64_t *ends = sent->ends, *streams = sent->streams;
    const uint64_t n_streams = (uint64_t)sent->n_streams, lanes = (uint64_t)to->lanes;
    er_tally *tallies = to->tallies;
    int64_t from = *i;
    for (; k < next; k++) {
        const uint64_t n = (uint64_t)ends[k] - (uint64_t)from, stream = (uint64_t)streams[k];
        if (n > ER_ROW || stream >= n_streams || ends[k] > stop) break;
        er_tally *t = tallies + stream;
        const uint64_t place = (uint64_t)(from + run), at = (uint64_t)t->filled, to_lane = at + ((place - at) & (lanes - 1));
        memset(t->word + 4 * at, 0, 4 * ER_NARROW);
        ER_NAME(er_copy_row)(t->word + 4 * to_lane, w->word + 4 * place);
        t->filled = (int64_t)(to_lane + n);
        if (t->filled >= ER_ROWS * ER_ROW) ER_NAME(er_turn)(to, t);
        from += (int64_t)n;
    }
    *i = from;
    return k;
}

/* Gives a stream the words of places from `start` on, to `end`. grouped: whether the bus has more than one group. */
ER_INLINE void ER_NAME(er_give)(const er_sums *to, const er_window *w, int64_t stream, int64_t start, int64_t end,
                                const int grouped) {
    const int64_t lanes = to->lanes;
    if (!grouped) {
        ER_NAME(er_append)(to, to->tallies + stream, w->word + 4 * start, start, end - start);
        return;
    }
    for (int64_t lane = start % lanes, n; start < end; start += n, lane = lane + n == lanes ? 0 : lane + n) {
        const int64_t inside = lane % ER_ROW, room = lanes - lane < ER_ROW - inside ? lanes - lane : ER_ROW - inside;
        n = end - start < room ? end - start : room;
        ER_NAME(er_append)(to, to->tallies + stream * to->groups + lane / ER_ROW, w->word + 4 * start, inside, n);
    }
}

/* Gives the streams of segments from k on, before `next`, the words of bytes i to `stop`, the first of the window; returns
 * the segment that goes on, or -1 where one is none. grouped: as of er_give. */
ER_INLINE int64_t ER_NAME(er_walk)(const er_sums *to, const er_window *w, const ew_sent *sent, int64_t k, int64_t next,
                                   int64_t i, int64_t stop, const int grouped) {
    const int64_t run = w->in.places - i, last = sent->ends[next - 1];
    const int narrow = !grouped && er_narrow(to->lanes);
    for (; k < next; k++) {
        if (narrow && (uint64_t)sent->ends[k] - (uint64_t)i <= ER_ROW)
            k = ER_NAME(er_walk_short)(to, w, sent, k, next, &i, stop, run);
        if (k == next) break;
        const uint64_t n = (uint64_t)sent->ends[k] - (uint64_t)i, stream = (uint64_t)sent->streams[k];
        if (stream >= (uint64_t)sent->n_streams || n > (uint64_t)(last - i)) return -1;
        const int64_t end = n < (uint64_t)(stop - i) ? i + (int64_t)n : stop;
        ER_NAME(er_give)(to, w, (int64_t)stream, i + run, end + run, grouped);
        i = end;
        if (sent->ends[k] > end) break;
    }
    return k;
}

/* Returns 0 where a segment is none: then some before it are sent, and the bus is of no use. */
ER_TARGET static int ER_NAME(er_send)(ew_bus *bus, const ew_sent *sent, er_tally *tallies, int64_t *counts) {
    const int64_t lanes = bus->lanes;
    const er_sums to = er_sums_of(tallies, counts, lanes);
    int64_t i = 0, k = 0, next = ew_next_rest(sent, 0); /* byte, segment */
    er_window w;
    ew_start(&w.in, bus, sent->flags != NULL);
    while (k >= 0 && k < sent->segments) {
        if (k == next) {
            const int64_t stream = sent->streams[k];
            if ((uint64_t)stream >= (uint64_t)sent->n_streams) return 0;
            const int64_t start = ew_return_to_idle(&w.in, lanes, sent->rest, counts + stream * 27 * lanes);
            w.in.places = start + lanes;
            ER_NAME(ew_look)(&w.in, w.word, w.in.places, lanes);
            ER_NAME(er_give)(&to, &w, stream, start, w.in.places, 1);
            ew_next_window(&w.in, lanes);
            next = ew_next_rest(sent, k + 1);
        }
        const int64_t end = sent->ends[next - 1];
        if (end < i || end > sent->n) return 0;
        const int64_t n = end - i < ER_BYTES ? end - i : ER_BYTES;
        ew_take_bytes(&w.in, sent, i, w.in.places, n);
        ER_NAME(ew_look)(&w.in, w.word, w.in.places + n, lanes);
        if (to.groups == 1)
            k = ER_NAME(er_walk)(&to, &w, sent, k, next, i, i + n, 0);
        else
            k = ER_NAME(er_walk)(&to, &w, sent, k, next, i, i + n, 1);
        i += n;
        w.in.places += n;
        ew_next_window(&w.in, lanes);
    }
    ew_stop(&w.in, bus);
    return k >= 0;
}

#undef ER_NAME
#undef ER_TARGET
#undef ER_INLINE
#undef ER_WIDTH
#undef ER_VECTOR
#undef ER_LOAD
#undef ER_STORE
#undef ER_PARITY
#undef ER_MAJORITY
#undef ER_ADD
