/* Included once per SIMD level by wires/tallies/places.h, which defines EP_NAME, EP_TARGET, EP_AT, ep_add and ep_singles. */

#define EP_TAKEN EP_AT(EW_FLAGS, 3) /* the counter of EW_TAKEN: how many words a place took */

/* Adds a stream's counters to its counts and empties them. */
EP_TARGET static void EP_NAME(ep_spill)(const ep_sums *to, int64_t stream) {
    const int64_t lanes = to->lanes;
    uint8_t *from = to->tally->row + 8 * to->stride * (uint64_t)stream;
    int64_t *counts = to->counts + stream * 27 * lanes;
    for (int64_t lane = 0; lane < lanes; lane++) {
        uint16_t sum[EP_COUNTERS] = {0};
        for (int64_t place = lane; place < to->row; place += lanes)
            for (int j = 0; j < EP_COUNTERS; j++) sum[j] = (uint16_t)(sum[j] + from[EP_COUNTERS * place + j]);
        for (int kind = 0; kind < 3; kind++) {
            for (int bit = 0; bit < 8; bit++) counts[9 * lanes * kind + 8 * lane + bit] += sum[EP_AT(kind, bit)];
            counts[9 * lanes * kind + 8 * lanes + lane] += sum[EP_AT(EW_FLAGS, kind)];
        }
    }
    memset(from, 0, 8 * to->stride);
}

/* What a stream's counters are together, one of a place beside the other. */
EP_INLINE(ep_bytes, ep_any)(const ep_sums *to, int64_t stream) {
    const ep_bytes *from = (const ep_bytes *)(to->tally->row + 8 * to->stride * (uint64_t)stream);
    ep_bytes any = from[0];
    for (int64_t place = 1; place < to->row; place++) any |= from[place];
    return any;
}

/* Makes room for EP_ROWS in the counters: where one has more than 127 words, those of streams that have half as many are
 * emptied. */
EP_TARGET static void EP_NAME(ep_make_room)(const ep_sums *to) {
    ep_bytes any = {0};
    for (int64_t stream = 0; stream < to->n_streams; stream++) any |= EP_NAME(ep_any)(to, stream);
    for (int64_t stream = 0; stream < to->n_streams && any[EP_TAKEN] > 127; stream++)
        if (EP_NAME(ep_any)(to, stream)[EP_TAKEN] > 63) EP_NAME(ep_spill)(to, stream);
    to->tally->rows = 0;
}

/* Notes that n places from p on, and up to EP_STEP more, are of that stream. */
EP_INLINE(void, ep_own)(ep_window *w, const ep_sums *to, int64_t p, int64_t n, uint64_t stream) {
    const ep_near number = (ep_near){0} + (uint16_t)(stream * to->stride);
    do {
        *(ep_near *)(w->of + p) = number;
        p += EP_STEP;
        n -= EP_STEP;
    } while (n > 0);
}

/* Notes whose bytes segments from *k on, before `next`, are, in places from p to `full` at most; returns the place reached,
 * or -1 where a segment is none. run: the place of byte 0. */
EP_TARGET static __attribute__((noinline)) int64_t EP_NAME(ep_note)(ep_window *w, const ep_sums *to, const ew_sent *sent,
                                                                   int64_t *k, int64_t next, int64_t p, int64_t full,
                                                                   int64_t run) {
    const int64_t *ends = sent->ends, *streams = sent->streams, bound = full < sent->n + run ? full : sent->n + run;
    const int64_t last = to->n_streams - 1;
    int64_t at = *k;
    while (at < next && p < full) {
        ep_fetch(ends + at, streams + at);
        const int64_t some = at + EP_STEP < next ? at + EP_STEP : next;
        while (at + EP_STEP <= next && p + EP_STEP <= bound && ends[at] == p - run + 1 &&
               EP_NAME(ep_singles)(w->of + p, ends + at, streams + at, p - run + 1, last, to->stride)) {
            ep_fetch(ends + at, streams + at);
            at += EP_STEP, p += EP_STEP;
        }
        for (; at < some; at++) {
            const uint64_t n = (uint64_t)ends[at] + (uint64_t)run - (uint64_t)p, stream = (uint64_t)streams[at];
            if (stream > (uint64_t)last) return -1;
            if (n > (uint64_t)(bound - p)) { /* it goes on in the next window, or is none */
                if (n > (uint64_t)(sent->n + run - p)) return -1;
                EP_NAME(ep_own)(w, to, p, full - p, stream);
                *k = at;
                return full;
            }
            EP_NAME(ep_own)(w, to, p, (int64_t)n, stream);
            p += (int64_t)n;
        }
    }
    *k = at;
    return p;
}

/* Adds the words of a window, rows of them, to the counters of those whose they are. row: of `to`. */
EP_INLINE(void, ep_add_rows)(const ep_sums *to, const ep_window *w, int64_t rows, const int64_t row) {
    uint8_t *sums = to->tally->row;
    for (int64_t start = 0; start < rows * row; start += row)
#pragma GCC unroll 8
        for (int64_t j = 0; j < row; j++)
            EP_NAME(ep_add)((ep_bytes *)(sums + 8 * (int64_t)w->of[start + j] + EP_COUNTERS * j), w->word + 4 * (start + j));
}

/* Counts a window, whose places up to the next row are nobody's behind the last. */
EP_TARGET static void EP_NAME(ep_count_window)(const ep_sums *to, ep_window *w) {
    const int64_t rows = (w->in.places + to->row - 1) / to->row;
    EP_NAME(ew_look)(&w->in, w->word, rows * to->row, to->lanes);
    if (to->tally->rows + rows > EP_ROWS + 1) EP_NAME(ep_make_room)(to);
    to->tally->rows += rows;
    if (to->row == EP_LEAST_ROW)
        EP_NAME(ep_add_rows)(to, w, rows, EP_LEAST_ROW);
    else
        EP_NAME(ep_add_rows)(to, w, rows, to->row);
}

/* Returns 0 where a segment is none: then some before it are sent, and the bus is of no use. */
EP_TARGET static int EP_NAME(ep_send)(ew_bus *bus, const ew_sent *sent, ep_tally *tally, int64_t *counts) {
    const ep_sums sums = ep_sums_of(tally, counts, sent->n_streams, bus->lanes), *to = &sums;
    const int64_t lanes = bus->lanes, full = EP_PLACES / to->row * to->row;
    const uint64_t nobody = (uint64_t)sent->n_streams;
    int64_t i = 0, k = 0, next = ew_next_rest(sent, 0); /* byte, segment */
    ep_window w;
    ew_start(&w.in, bus, sent->flags != NULL);
    while (k < sent->segments) {
        int64_t p = w.in.places, from = p, run = p - i; /* run: the place of byte 0 */
        EP_NAME(ep_own)(&w, to, 0, p, nobody);
        while (k < sent->segments && p < full) {
            if (k == next) {
                const uint64_t stream = (uint64_t)sent->streams[k];
                if (stream >= nobody) return 0;
                if (p + 2 * lanes > full) break;
                ew_take_bytes(&w.in, sent, from - run, from, p - from);
                w.in.places = p;
                from = ew_return_to_idle(&w.in, lanes, sent->rest, counts + (int64_t)stream * 27 * lanes);
                EP_NAME(ep_own)(&w, to, p, from - p, nobody);
                EP_NAME(ep_own)(&w, to, from, lanes, stream);
                from += lanes;
                run += from - p;
                w.in.places = p = from;
                next = ew_next_rest(sent, k + 1);
            }
            p = EP_NAME(ep_note)(&w, to, sent, &k, next, p, full, run);
            if (p < 0) return 0;
        }
        EP_NAME(ep_own)(&w, to, p, to->row, nobody);
        ew_take_bytes(&w.in, sent, from - run, from, p - from);
        w.in.places = p;
        i = p - run;
        EP_NAME(ep_count_window)(to, &w);
        ew_next_window(&w.in, lanes);
    }
    ew_stop(&w.in, bus);
    return 1;
}

/* Adds to the counts what waits in the counters. */
EP_TARGET static void EP_NAME(ep_settle)(ep_tally *tally, int64_t n_streams, int64_t lanes, int64_t *counts) {
    const ep_sums to = ep_sums_of(tally, counts, n_streams, lanes);
    for (int64_t stream = 0; stream < n_streams; stream++)
        if (EP_NAME(ep_any)(&to, stream)[EP_TAKEN]) EP_NAME(ep_spill)(&to, stream);
    tally->rows = 0;
}

#undef EP_NAME
#undef EP_TARGET
#undef EP_AT
#undef EP_TAKEN
