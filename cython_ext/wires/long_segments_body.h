/* Included once per SIMD level by wires/long_segments.h, which defines EL_NAME, EL_TARGET and how 64 byte counters are loaded,
 * counted up by the bits of a word, and stored. */

/* Counts `steps` times 64 bytes from i on, whose predecessors lie in src; lanes divides 64. */
EL_TARGET static void EL_NAME(el_send_wide)(const uint8_t *src, const uint8_t *flags, int64_t flag_bytes, int64_t i,
                                            int64_t steps, int64_t lanes, el_tally *t, int64_t *counts) {
    while (steps) {
        if (t->steps == EL_MOST) el_empty_wide(t, lanes, counts);
        const int64_t now = steps < EL_MOST - t->steps ? steps : EL_MOST - t->steps;
        EL_NAME(el_count_steps)(src + i, src + i - lanes, now, t->wide);
        if (flags) {
            EL_REGISTER ones = EL_LOAD(t->wide_flags[EW_ONES]);
            EL_REGISTER toggles = EL_LOAD(t->wide_flags[EW_TOGGLES]);
            EL_REGISTER rising = EL_LOAD(t->wide_flags[EW_RISING]);
            for (int64_t at = i; at < i + 64 * now; at += 64) {
                const uint64_t bits = ew_bits_at(flags, flag_bytes, at, 64);
                const uint64_t flips = bits ^ ew_bits_at(flags, flag_bytes, at - lanes, 64);
                EL_ADD(ones, bits);
                EL_ADD(toggles, flips);
                EL_ADD(rising, flips & bits);
            }
            EL_STORE(t->wide_flags[EW_ONES], ones);
            EL_STORE(t->wide_flags[EW_TOGGLES], toggles);
            EL_STORE(t->wide_flags[EW_RISING], rising);
        }
        t->steps += now;
        steps -= now;
        i += 64 * now;
    }
}

EL_TARGET static void EL_NAME(el_empty_units)(el_tally *t, int64_t lanes, int64_t *counts) {
    const int64_t places = el_period(lanes);
    int64_t lane = 0;
    if (!t->bytes) return;
    for (int64_t place = 0; place < places; place++) {
        uint8_t *from = t->unit[place >> 1] + 8 * (place & 1);
        const uint8_t *flags = t->unit[place >> 1] + 16 + (place & 1);
        for (int k = 0; k < 3; k++) {
            int64_t *at = counts + 9 * lanes * k;
            for (int j = 0; j < 8; j++) at[8 * lane + j] += from[EL_UNIT_BITS * k + j];
            at[8 * lanes + lane] += flags[EL_UNIT_BITS * k];
        }
        if (++lane == lanes) lane = 0;
    }
    memset(t->unit, 0, sizeof t->unit[0] * (size_t)(places / 2));
    t->bytes = 0;
}

/* EL_MANY units of bytes from `at` on: two bytes, and their flags in bits 16 and 17. Little endian. */
EL_TARGET static inline EL_WORDS EL_NAME(el_load_units)(const el_window *w, int64_t at) {
    uint64_t bits;
    memcpy(&bits, (const uint8_t *)w->flag + (at >> 3), 8);
    return EL_PAIRS(w->byte + at) | EL_FLAGS(bits >> (at & 7)) << 16;
}

/* Takes the next n bytes (at most EL_WINDOW) from i on: what the wires do, and what they carry then. */
EL_TARGET static void EL_NAME(el_fill_window)(el_window *w, el_bus *bus, const uint8_t *src, const uint8_t *flags,
                                              int64_t flag_bytes, int64_t i, int64_t n) {
    const int64_t lanes = bus->lanes, odd = bus->place & 1, units = (n + odd + 1) / 2;
    uint8_t *byte = w->byte + 1 + lanes;
    int64_t j = 0;
    memcpy(w->byte + 1, bus->past, (size_t)lanes);
    for (; j + 64 <= n; j += 64) memcpy(byte + j, src + i + j, 64);
    if (j < n) memcpy(byte + j, src + i + j, (size_t)(n - j));
    memset(w->flag, 0, sizeof w->flag);
    ew_put_bits(w->flag, 1, bus->past_flags, lanes);
    for (j = 0; flags && j < n; j += 64) {
        const int64_t some = n - j < 64 ? n - j : 64;
        ew_put_bits(w->flag, 1 + lanes + j, ew_bits_at(flags, flag_bytes, i + j, some), some);
    }
    for (int64_t u = 0; u < units; u += EL_MANY) {
        const EL_WORDS now = EL_NAME(el_load_units)(w, 1 + lanes - odd + 2 * u);
        const EL_WORDS flips = now ^ EL_NAME(el_load_units)(w, 1 - odd + 2 * u);
        const EL_WORDS all = now | flips << EL_UNIT_BITS | (flips & now) << 2 * EL_UNIT_BITS;
        memcpy(w->unit + u, &all, sizeof all);
    }
    memcpy(bus->past, w->byte + 1 + n, (size_t)lanes);
    bus->past_flags = ew_word_at(w->flag, 1 + n);
    w->start = i - odd;
    w->stop = i + n;
}

EL_TARGET static inline void EL_NAME(el_add_unit)(uint8_t *counters, uint64_t bits) {
    EL_REGISTER sum = EL_LOAD(counters);
    EL_ADD(sum, bits);
    EL_STORE(counters, sum);
}

/* Counts the segments from byte i on that end in the window, up to the first of `most` bytes or more; returns how many. */
EL_TARGET static int64_t EL_NAME(el_count_run)(const el_window *w, int64_t i, const int64_t *ends, const int64_t *streams,
                                               int64_t segments, int64_t most, el_bus *bus, el_tally *tallies,
                                               int64_t *counts) {
    const int64_t lanes = bus->lanes, period = el_period(lanes), units = period / 2, full = EL_MOST * period;
    const int power = !(period & (period - 1));
    int64_t k, place = bus->place;
    i -= w->start;
    for (k = 0; k < segments; k++) {
        const int64_t stop = ends[k] - w->start, bound = stop - i + place + period - 1; /* period times a counter */
        el_tally *t = tallies + streams[k];
        if (stop - i >= most || ends[k] > w->stop) break;
        if (t->bytes + bound > full) EL_NAME(el_empty_units)(t, lanes, counts + streams[k] * 27 * lanes);
        t->bytes += bound;
        uint8_t *counters = t->unit[place >> 1];
        const uint8_t *end = t->unit[units];
        place += stop - i;
        if (place >= period) place = power ? place & (period - 1) : place % period;
        if (i & 1 && i < stop) {
            EL_NAME(el_add_unit)(counters, w->unit[i++ >> 1] & EL_SECOND);
            if ((counters += 64) == end) counters = t->unit[0];
        }
        const uint64_t *first = w->unit + (i >> 1), *last = first + ((stop - i) >> 1);
        for (int64_t u = 0; u < units && first < last; u++, first++) {
            EL_REGISTER sum = EL_LOAD(counters);
            for (const uint64_t *at = first; at < last; at += units) EL_ADD(sum, *at);
            EL_STORE(counters, sum);
            if ((counters += 64) == end) counters = t->unit[0];
        }
        if (i < stop && (stop - i) & 1) EL_NAME(el_add_unit)(t->unit[place >> 1], *last & EL_FIRST);
        i = stop;
    }
    bus->place = place;
    return k;
}

/* Every segment is one that there can be: this is checked. */
EL_TARGET static void EL_NAME(el_send)(ew_bus *shared, const ew_sent *sent, el_tally *tallies, int64_t *counts) {
    const uint8_t *src = sent->src, *flags = sent->flags, *idles = sent->idles;
    const int64_t *ends = sent->ends, *streams = sent->streams, segments = sent->segments, flag_bytes = (sent->n + 7) / 8;
    el_bus start = el_start(shared), *bus = &start;
    const int64_t lanes = bus->lanes;
    const int wide = 64 % lanes == 0;
    int64_t i = 0, joined = 0; /* all since byte `joined` was sent without a rest */
    el_window w;
    w.byte[0] = 0;
    w.start = w.stop = 0;
    for (int64_t k = 0; k < segments; k++) {
        const int64_t stop = ends[k], end = idles ? stop : ends[segments - 1]; /* a window does not reach over a rest */
        int64_t *mine = counts + streams[k] * 27 * lanes;
        if (idles && idles[k]) {
            el_return_to_idle(bus, sent->rest, mine);
            joined = i;
        }
        while (i < stop) {
            int64_t until = stop;
            if (wide && stop - i >= EL_WIDE_SEGMENT) {
                const int64_t beat = (lanes - bus->place % lanes) % lanes; /* what it lacks */
                if (beat == 0 && i - lanes >= joined) {
                    const int64_t steps = (stop - i) / 64;
                    EL_NAME(el_send_wide)(src, flags, flag_bytes, i, steps, lanes, tallies + streams[k], mine);
                    i += 64 * steps;
                    memcpy(bus->past, src + i - lanes, (size_t)lanes);
                    bus->past_flags = flags ? ew_bits_at(flags, flag_bytes, i - lanes, lanes) : 0;
                    w.stop = i;
                    continue;
                }
                until = i + (beat ? beat : lanes);
            }
            if (i >= w.stop) {
                const int64_t room = until < stop ? until - i : end - i;
                EL_NAME(el_fill_window)(&w, bus, src, flags, flag_bytes, i, room < EL_WINDOW ? room : EL_WINDOW);
            }
            if (until > w.stop) until = w.stop;
            const int whole = until == stop && !idles; /* then others may follow it */
            const int64_t run = EL_NAME(el_count_run)(&w, i, whole ? ends + k : &until, streams + k,
                                                      whole ? segments - k : 1, wide ? EL_WIDE_SEGMENT : EL_WINDOW + 1,
                                                      bus, tallies, counts);
            i = whole ? ends[k + run - 1] : until;
            k += run - 1;
            if (whole) break;
        }
    }
    el_stop(bus, shared);
}

#undef EL_NAME
#undef EL_TARGET
#undef EL_REGISTER
#undef EL_LOAD
#undef EL_STORE
#undef EL_ADD
#undef EL_MANY
#undef EL_WORDS
#undef EL_PAIRS
#undef EL_FLAGS
