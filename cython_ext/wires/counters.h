/* Ones, toggles and rising edges on every wire of a byte-lane bus, apart for each stream that shares it.
 *
 * Wire 8 * lane + bit carries that bit of the lane's bytes; wire 8 * lanes + lane is the lane's flag (DBI) wire. Counts are
 * int64[3][9 * lanes] for a stream: ones, toggles, rising edges.
 *
 * What the wires do does not depend on whose bytes they are, so it is found for a window of bytes at once: four bytes for
 * each, which bits are one, flip and rise, and those three of the flag. Those of a segment are copied behind those of its
 * stream, each kind apart. When a stream has eight rows of them, they are added up in vertical counters: plane k holds bit k
 * of a sum for each bit of a row, and a carry-save adder takes two more rows into a plane in one step. A row is whole beats, so
 * that a byte of it is always of the same lane: a segment that starts on another lane than is next leaves zeros. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "common/simd.h"

enum { EW_ONES = 0, EW_TOGGLES = 1, EW_RISING = 2, EW_FLAGS = 3, EW_KINDS = 4 }; /* of bytes; of a flag byte's bits, the first three */
enum { EW_LANES = 64, EW_WINDOW = 2048, EW_SEGMENTS = 256 }; /* at most: of a bus, bytes and segments of a window */
enum { EW_VECTOR = 32, EW_ROWS = 16, EW_ROW_PLANES = 4, EW_CARRY_PLANES = 12, EW_BATCHES = (1 << EW_CARRY_PLANES) - 1 };

typedef struct {
    uint8_t level[EW_LANES], flag[EW_LANES]; /* what each lane carries */
    int64_t lanes, place;                    /* lane of the next byte */
} ew_bus;

/* Bytes in segments: segment k is the bytes up to ends[k] and belongs to streams[k]; where idles[k] (NULL: nowhere) all wires
 * first go back to `rest` (0 or 255). flags: packed, lowest bit first, or NULL. */
typedef struct {
    const uint8_t *src, *flags, *idles;
    const int64_t *ends, *streams;
    int64_t segments;
    uint8_t rest;
} ew_sent;

/* Place p of a window is on lane p modulo lanes. Of what it carries, each kind is byte EW_LANES + p: a beat of what was before
 * lies in front. Vectors may go on behind the positions. */
typedef struct {
    uint8_t kind[EW_KINDS][EW_LANES + EW_WINDOW + EW_VECTOR], flag[EW_LANES + EW_WINDOW + EW_VECTOR];
    int64_t positions; /* filled */
} ew_window;

/* What a stream has sent and is not in its counts yet; all zeros at first. Behind this, for each kind: a batch of bytes, the
 * planes of a row, and for each carry plane (eights, twos of those, ...) its sum and a carry that waits for a second one where
 * that bit of `batches` is set. */
typedef struct {
    int64_t filled, batches; /* positions that wait; batches in the planes */
} ew_counters;

typedef struct {
    int64_t lanes, step, batch; /* positions of a row, of a batch */
    int64_t row, room, size;    /* bytes of a plane; of a batch; of a stream's counters */
} ew_layout;

static inline ew_layout ew_layout_of(int64_t lanes) {
    const int64_t step = lanes < EW_VECTOR ? EW_VECTOR / lanes * lanes : lanes, batch = EW_ROWS * step;
    const int64_t row = (step + EW_VECTOR - 1) / EW_VECTOR * EW_VECTOR, room = batch + 2 * EW_VECTOR; /* vectors go on into these */
    const int64_t size = (int64_t)sizeof(ew_counters) + EW_KINDS * (room + row * (EW_ROW_PLANES + 2 * EW_CARRY_PLANES));
    return (ew_layout){lanes, step, batch, row, room, (size + 63) / 64 * 64 | 64}; /* odd: streams in different sets of a cache */
}

static inline int64_t ew_lane(int64_t place, int64_t lanes) { /* most buses are powers of two */
    return lanes & (lanes - 1) ? place % lanes : place & (lanes - 1);
}

static inline int64_t ew_counters_bytes(int64_t n_streams, int64_t lanes) { return n_streams * ew_layout_of(lanes).size; }

/* Whether no more waits in the counters of so many streams than they have room for. */
static inline int ew_counters_hold(const uint8_t *counters, int64_t n_streams, int64_t lanes) {
    const ew_layout of = ew_layout_of(lanes);
    int good = 1;
    for (int64_t stream = 0; stream < n_streams; stream++, counters += of.size) {
        const ew_counters *c = (const ew_counters *)counters;
        good &= c->filled >= 0 && c->filled < of.batch && c->batches >= 0 && c->batches <= EW_BATCHES;
    }
    return good;
}

/* ---- counters ---- */

typedef uint64_t ew_vector __attribute__((vector_size(EW_VECTOR), may_alias));
typedef uint32_t ew_words __attribute__((vector_size(EW_VECTOR)));
typedef uint64_t ew_unaligned __attribute__((vector_size(EW_VECTOR), aligned(1), may_alias));

static inline ew_vector ew_load(const uint8_t *from) { return *(const ew_unaligned *)from; }
static inline void ew_store(uint8_t *to, ew_vector x) { *(ew_unaligned *)to = x; }

/* Finds the other kinds where the bytes (EW_ONES) and their flags (0 or 1) are there. */
static void ew_find_kinds(ew_window *w, int64_t lanes) {
    for (int64_t p = EW_LANES; p < EW_LANES + w->positions; p += EW_VECTOR) {
        const ew_vector now = ew_load(w->kind[EW_ONES] + p), before = ew_load(w->kind[EW_ONES] + p - lanes);
        const ew_vector flag = ew_load(w->flag + p), flag_before = ew_load(w->flag + p - lanes);
        ew_store(w->kind[EW_TOGGLES] + p, now ^ before);
        ew_store(w->kind[EW_RISING] + p, now & ~before);
        ew_store(w->kind[EW_FLAGS] + p, flag | (flag ^ flag_before) << EW_TOGGLES | (flag & ~flag_before) << EW_RISING);
    }
}

/* Full adders side by side: returns the carries. */
static inline ew_vector ew_add(ew_vector *sum, ew_vector a, ew_vector b) {
    const ew_vector carry = (*sum & a) | ((*sum ^ a) & b);
    *sum ^= a ^ b;
    return carry;
}

/* Adds eight rows, step bytes apart, to the planes of ones, twos and fours: returns the eights. */
static inline ew_vector ew_add_eight(ew_vector *ones, ew_vector *twos, ew_vector *fours, const uint8_t *x, int64_t step) {
    const ew_vector first = ew_add(ones, ew_load(x), ew_load(x + step));
    const ew_vector second = ew_add(ones, ew_load(x + 2 * step), ew_load(x + 3 * step));
    const ew_vector third = ew_add(ones, ew_load(x + 4 * step), ew_load(x + 5 * step));
    const ew_vector last = ew_add(ones, ew_load(x + 6 * step), ew_load(x + 7 * step));
    const ew_vector of_four = ew_add(twos, first, second), of_others = ew_add(twos, third, last);
    return ew_add(fours, of_four, of_others);
}

static inline uint8_t *ew_bytes_of(const ew_layout *of, ew_counters *c, int kind) {
    return (uint8_t *)(c + 1) + kind * of->room;
}
static inline uint8_t *ew_planes_of(const ew_layout *of, ew_counters *c, int kind) {
    return ew_bytes_of(of, c, EW_KINDS) + kind * of->row * (EW_ROW_PLANES + 2 * EW_CARRY_PLANES);
}

/* Puts one plane's bits with their weight into sums of each bit. */
static inline void ew_weigh(const uint8_t *plane, int level, int64_t row, uint16_t sum[8][EW_LANES]) {
    for (int bit = 0; bit < 8; bit++)
        for (int64_t j = 0; j < row; j++) sum[bit][j] = (uint16_t)(sum[bit][j] + ((plane[j] >> bit & 1) << level));
}

/* Adds what is in the planes of a stream to its counts, int64[3][9 * lanes]. */
static void ew_empty_planes(const ew_layout *of, ew_counters *c, int64_t *counts) {
    const int64_t lanes = of->lanes;
    if (!c->batches) return;
    for (int kind = 0; kind < EW_KINDS; kind++) {
        uint16_t sum[8][EW_LANES] = {{0}};
        uint8_t *const planes = ew_planes_of(of, c, kind), *carry = planes + EW_ROW_PLANES * of->row;
        for (int level = 0; level < EW_ROW_PLANES; level++) ew_weigh(planes + level * of->row, level, of->row, sum);
        for (int level = 0; c->batches >> level; level++, carry += 2 * of->row) {
            ew_weigh(carry, EW_ROW_PLANES + level, of->row, sum);
            if (c->batches >> level & 1) ew_weigh(carry + of->row, EW_ROW_PLANES + level, of->row, sum);
        }
        for (int64_t place = 0; place < of->step; place++)
            for (int bit = 0; bit < (kind == EW_FLAGS ? 3 : 8); bit++) {
                const int64_t of_flag = 9 * lanes * bit + 8 * lanes + place % lanes;
                counts[kind == EW_FLAGS ? of_flag : 9 * lanes * kind + 8 * (place % lanes) + bit] += sum[bit][place];
            }
        memset(planes, 0, (size_t)(of->row * (EW_ROW_PLANES + 2 * EW_CARRY_PLANES)));
    }
    c->batches = 0;
}

/* Adds a batch to the planes. pitch: from one kind of its bytes to the next. */
static void ew_add_batch(const ew_layout *of, ew_counters *c, const uint8_t *bytes, int64_t pitch, int64_t *counts) {
    if (c->batches == EW_BATCHES) ew_empty_planes(of, c, counts);
    const int64_t step = of->step, row = of->row;
    for (int kind = 0; kind < EW_KINDS; kind++)
        for (int64_t part = 0; part < row; part += EW_VECTOR) {
            const uint8_t *x = bytes + kind * pitch + part;
            uint8_t *const plane = ew_planes_of(of, c, kind) + part, *carry = plane + EW_ROW_PLANES * row;
            ew_vector ones = ew_load(plane), twos = ew_load(plane + row), fours = ew_load(plane + 2 * row);
            ew_vector eights = ew_load(plane + 3 * row), sum;
            const ew_vector first = ew_add_eight(&ones, &twos, &fours, x, step);
            const ew_vector second = ew_add_eight(&ones, &twos, &fours, x + 8 * step, step);
            ew_vector carried = ew_add(&eights, first, second);
            ew_store(plane, ones);
            ew_store(plane + row, twos);
            ew_store(plane + 2 * row, fours);
            ew_store(plane + 3 * row, eights);
            for (int64_t wait = c->batches; wait & 1; wait >>= 1, carry += 2 * row) {
                sum = ew_load(carry);
                carried = ew_add(&sum, ew_load(carry + row), carried);
                ew_store(carry, sum);
            }
            ew_store(carry + row, carried);
        }
    c->batches++;
}

/* Adds the batch that waits. */
static void ew_add_waiting(const ew_layout *of, ew_counters *c, int64_t *counts) {
    ew_add_batch(of, c, (uint8_t *)(c + 1), of->room, counts);
    c->filled = 0;
}

/* Adds zeros to what waits, at most to the end of the batch. */
static void ew_append_zeros(const ew_layout *of, ew_counters *c, int64_t n) {
    for (int kind = 0; kind < EW_KINDS; kind++) memset(ew_bytes_of(of, c, kind) + c->filled, 0, (size_t)n);
    c->filled += n;
}

/* Puts n positions of a window, from `place` on, behind those of a stream. */
static void ew_append(const ew_layout *of, ew_counters *c, const ew_window *w, int64_t place, int64_t n, int64_t *counts) {
    const int64_t batch = of->batch, room = of->room, pitch = sizeof w->kind[0];
    int64_t zeros = ew_lane(place + batch - c->filled, of->lanes); /* to the lane of the first */
    if (c->filled + zeros >= batch) {
        zeros -= batch - c->filled;
        ew_append_zeros(of, c, batch - c->filled);
        ew_add_waiting(of, c, counts);
    }
    if (zeros) ew_append_zeros(of, c, zeros);
    const uint8_t *from = w->kind[0] + EW_LANES + place;
    while (n > 0) {
        if (c->filled == 0 && n >= batch) {
            ew_add_batch(of, c, from, pitch, counts);
            from += batch;
            n -= batch;
            continue;
        }
        const int64_t some = n < batch - c->filled ? n : batch - c->filled;
        uint8_t *to = (uint8_t *)(c + 1) + c->filled;
        for (int64_t k = 0; k < some; k += EW_VECTOR) /* and up to a vector more */
            for (int kind = 0; kind < EW_KINDS; kind++) ew_store(to + kind * room + k, ew_load(from + kind * pitch + k));
        c->filled += some;
        from += some;
        n -= some;
        if (c->filled == batch) ew_add_waiting(of, c, counts);
    }
}

/* Adds what waits in the counters of so many streams to their counts, int64[n_streams][3][9 * lanes]. */
static void ew_empty(uint8_t *counters, int64_t n_streams, int64_t lanes, int64_t *counts) {
    const ew_layout of = ew_layout_of(lanes);
    for (int64_t stream = 0; stream < n_streams; stream++, counters += of.size, counts += 27 * lanes) {
        ew_counters *c = (ew_counters *)counters;
        if (c->filled) {
            ew_append_zeros(&of, c, of.batch - c->filled);
            ew_add_waiting(&of, c, counts);
        }
        ew_empty_planes(&of, c, counts);
    }
}

/* ---- sending ---- */

/* Takes the n bytes from i on, and their flags, to positions from `start` on. */
static void ew_take_bytes(ew_window *w, const ew_sent *sent, int64_t i, int64_t start, int64_t n) {
    if (n <= 0) return;
    uint8_t *flag = w->flag + EW_LANES + start;
    memcpy(w->kind[EW_ONES] + EW_LANES + start, sent->src + i, (size_t)n);
    if (!sent->flags) {
        memset(flag, 0, (size_t)n);
        return;
    }
    int64_t j = 0;
    for (; j < n && (i + j) % 8; j++) flag[j] = sent->flags[(i + j) / 8] >> (i + j) % 8 & 1;
    for (; j < n; j += 32) { /* four bits to the four bytes of a word; and up to a vector more */
        const uint8_t *packed = sent->flags + (i + j) / 8;
        uint32_t bits = 0;
        if (j + 25 <= n)
            memcpy(&bits, packed, 4);
        else
            memcpy(&bits, packed, (size_t)(n - j + 7) / 8);
        const ew_words each = (bits + (ew_words){0}) >> (ew_words){0, 4, 8, 12, 16, 20, 24, 28} & 15;
        ew_store(flag + j, (ew_vector)(each * 0x00204081 & 0x01010101));
    }
}

/* All wires go back to the level `rest` in a beat of its own behind place p; returns the first place behind it. Lanes that
 * get no byte in the last beat keep their level. */
static int64_t ew_return_to_idle(ew_window *w, int64_t lanes, uint8_t rest, int64_t p) {
    for (; p % lanes; p++) {
        w->kind[EW_ONES][EW_LANES + p] = w->kind[EW_ONES][EW_LANES + p - lanes];
        w->flag[EW_LANES + p] = w->flag[EW_LANES + p - lanes];
    }
    memset(w->kind[EW_ONES] + EW_LANES + p, rest, (size_t)lanes);
    memset(w->flag + EW_LANES + p, rest & 1, (size_t)lanes);
    return p + lanes;
}

/* Sends segments, which the caller has checked, over the bus. counters: ew_counters_bytes at a multiple of 64 bytes, what is
 * not in the counts yet; zeros at first. counts: int64[n_streams][3][9 * lanes]. */
static inline void ew_send_baseline(ew_bus *bus, const ew_sent *sent, uint8_t *counters, int64_t *counts) {
    const int64_t lanes = bus->lanes;
    const ew_layout of = ew_layout_of(lanes);
    int64_t i = 0, k = 0; /* byte, segment */
    int rested = 0;       /* before this segment, already */
    ew_window w;
    memset(w.flag, 0, EW_LANES); /* 0 or 1, also where nothing is read: they are shifted eight at a time */
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t at = EW_LANES + lane - (lane < bus->place ? 0 : lanes);
        w.kind[EW_ONES][at] = bus->level[lane];
        w.flag[at] = bus->flag[lane];
    }
    w.positions = bus->place;
    while (k < sent->segments) {
        struct {
            int64_t start, end, stream;
        } piece[EW_SEGMENTS];
        int64_t p = w.positions, from = p, pieces = 0; /* bytes of positions before `from` are in the window */
        while (k < sent->segments && p + 2 * lanes <= EW_WINDOW && pieces < EW_SEGMENTS) {
            const int64_t stream = sent->streams[k];
            int64_t start = p;
            if (sent->idles && sent->idles[k] && !rested) {
                ew_take_bytes(&w, sent, i - (p - from), from, p - from);
                from = p = ew_return_to_idle(&w, lanes, sent->rest, p);
                start = p - lanes;
                rested = 1;
                /* the ones of an idle bus do not count, for no unit interval is sent: what the beat counts of them is
                 * taken off */
                for (int64_t wire = 0; sent->rest && wire < 9 * lanes; wire++) counts[27 * lanes * stream + wire]--;
            }
            const int64_t left = sent->ends[k] - i, some = left < EW_WINDOW - p ? left : EW_WINDOW - p;
            p += some;
            i += some;
            piece[pieces].start = start, piece[pieces].end = p, piece[pieces++].stream = stream;
            if (some == left) k++, rested = 0;
        }
        ew_take_bytes(&w, sent, i - (p - from), from, p - from);
        w.positions = p;
        ew_find_kinds(&w, lanes);
        for (int64_t s = 0; s < pieces; s++) {
            const int64_t stream = piece[s].stream;
            ew_append(&of, (ew_counters *)(counters + stream * of.size), &w, piece[s].start, piece[s].end - piece[s].start,
                      counts + 27 * lanes * stream);
        }
        w.positions = p % lanes; /* the next window goes on behind the last beat, on the lane that is next */
        memmove(w.kind[EW_ONES] + EW_LANES + w.positions - lanes, w.kind[EW_ONES] + EW_LANES + p - lanes, (size_t)lanes);
        memmove(w.flag + EW_LANES + w.positions - lanes, w.flag + EW_LANES + p - lanes, (size_t)lanes);
    }
    for (int64_t lane = 0; lane < lanes; lane++) {
        const int64_t at = EW_LANES + lane - (lane < w.positions ? 0 : lanes);
        bus->level[lane] = w.kind[EW_ONES][at];
        bus->flag[lane] = w.flag[at];
    }
    bus->place = w.positions;
}

#if EDGEWATT_X86
EDGEWATT_AVX2 __attribute__((flatten)) static void ew_send_avx2(ew_bus *bus, const ew_sent *sent, uint8_t *counters, int64_t *counts) {
    ew_send_baseline(bus, sent, counters, counts);
}
#endif
