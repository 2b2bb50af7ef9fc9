/* Fast memory of C = M - 1 neuron values under LRU, RR and MIN (Gleinig et al. 2023, section II, Algorithm 1).
 *
 * Position 2i is the access of connection i's source a, position 2i + 1 that of its target b. Positions are kept in 31
 * bits, so W < 2^30. Each policy has a state and a function that plays connections [from, to), whose ends are given, so
 * that a caller can stop between slices. A value that is dirty when it dies is written only if it is an output, once,
 * whenever that happens; so the dirty flags left at the end give writes_outputs, and evictions count only the live
 * writes. */
#pragma once

#include "common/inline.h"
#include "common/processing.h"

/* No later use, of an output and of any other neuron; positions are smaller. */
#define EW_NEVER_OUTPUT (INT32_MAX - 1)
#define EW_NEVER INT32_MAX

enum { EW_LOAD = 0, EW_STORE_LIVE = 1, EW_STORE_OUTPUT = 2 };

/* What moves, in the order it happens. The caller has counted first, so there is room for all of it. */
typedef struct {
    int32_t *step;   /* the connection at which it happens, before that connection's update */
    int32_t *neuron;
    uint8_t *kind;   /* EW_LOAD, ... */
    int64_t n;
} ew_moves;

typedef struct {
    int64_t capacity; /* C */
    int64_t used;     /* LRU: values resident */
    int64_t reads_neurons, writes_live, writes_outputs, skips; /* all reads beyond the first C evict */
    const uint8_t *is_output; /* [N] */
    const uint32_t *final;    /* [N] position of each neuron's very last access; asked for only where moves are noted */
    ew_moves *moves;          /* NULL: count only */
    const int32_t *ends;      /* of all connections as stored; used where LRU or RR ask for some */
    const int64_t *coming;    /* [to - from] connections that are played later: their ends are asked for meanwhile, one
                               * at each connection, so that a miss waits beside a branch not foreseen; NULL: none */
} ew_fast_memory;

EW_INLINE void ew_note(ew_fast_memory *m, int64_t step, int32_t neuron, uint8_t kind) {
    ew_moves *moves = m->moves;
    moves->step[moves->n] = (int32_t)step;
    moves->neuron[moves->n] = neuron;
    moves->kind[moves->n++] = kind;
}

/* ---- LRU and RR
 * An eviction of a dirty value is a live write unless it is the value's last one and no use follows, which only the end
 * shows: such a value is still known as written then, and its write is taken back (ew_lru_end, ew_rr_end). A move is
 * noted as what it is, so noting needs to know the final uses. */

static void ew_note_final_uses(uint32_t *final, const int32_t *sources, const int32_t *targets, int64_t from,
                               int64_t to) {
    for (int64_t i = from; i < to; i++) {
        final[sources[i]] = (uint32_t)(2 * i);
        final[targets[i]] = (uint32_t)(2 * i + 1);
    }
}

/* Note the eviction of a dirty x at `position` and return whether it is written to be used again. */
EW_INLINE int ew_note_eviction(ew_fast_memory *m, int32_t x, int64_t position) {
    const int live = m->final[x] > (uint32_t)position;
    if (live || m->is_output[x]) ew_note(m, position >> 1, x, live ? EW_STORE_LIVE : EW_STORE_OUTPUT);
    m->writes_outputs += !live && m->is_output[x];
    return live;
}

/* ---- LRU
 * The recency list is the access stream itself, the last part of it: entry p stands for its neuron iff that neuron's
 * last access is p, and a value is resident iff its last access is not behind `tail`. Finding the victim moves `tail`
 * over stale entries, which costs one step per access in all. Where hits leave `tail` so far behind that the list is
 * full, its entries that stand for something move to its end: at most 4/3 steps per access, as it has room for 4 C. */

typedef struct {
    ew_fast_memory m;
    uint32_t *value; /* [N] twice the last access, 0 before the first, plus 1 while dirty or since it left dirty */
    int32_t *recent; /* [room] access p at p modulo room */
    int64_t room;    /* a power of two: 4 C or more, or more than all accesses */
    int64_t now, tail; /* accesses count from 1 */
} ew_lru;

EW_INLINE int64_t ew_oldest(const ew_lru *s, int64_t p) {
    while (s->value[s->recent[p & (s->room - 1)]] >> 1 != (uint32_t)p) p++;
    return p;
}

/* Move the entries that stand for something to the end of the list; return the new tail. It takes no ew_lru: one whose
 * address is never taken stays in registers. */
static int64_t ew_pack_recent(uint32_t *value, int32_t *recent, int64_t room, int64_t tail, int64_t now) {
    int64_t to = now;
    for (int64_t p = now - 1; p >= tail; p--) {
        const int32_t x = recent[p & (room - 1)];
        if (value[x] >> 1 != (uint32_t)p) continue;
        recent[--to & (room - 1)] = x;
        value[x] = (uint32_t)to << 1 | (value[x] & 1);
    }
    return to;
}

EW_INLINE void ew_lru_evict(ew_lru *s, int64_t p, int64_t position, const int note) {
    const int32_t x = s->recent[p & (s->room - 1)];
    s->tail = p + 1;
    if (!note)
        s->m.writes_live += s->value[x] & 1;
    else if (s->value[x] & 1) {
        s->m.writes_live += ew_note_eviction(&s->m, x, position);
        s->value[x] -= 1;
    }
}

EW_INLINE void ew_lru_touch(ew_lru *s, int32_t x, uint32_t dirty) {
    s->value[x] = (uint32_t)s->now << 1 | dirty;
    s->recent[s->now++ & (s->room - 1)] = x;
}

EW_INLINE void ew_lru_play(ew_lru *state, const int32_t *source, const int32_t *target, int64_t from, int64_t to,
                           const int pin_both, const int note, const int fetch_ahead) {
    ew_lru s = *state;
    const int32_t *const ends = s.m.ends;
    const int64_t *const coming = s.m.coming;
    for (int64_t i = from; i < to; i++) {
        if (fetch_ahead) ew_fetch_ends(ends, coming[i - from]);
        const int32_t a = source[i - from], b = target[i - from];
        if (s.now + 2 - s.tail > s.room) s.tail = ew_pack_recent(s.value, s.recent, s.room, s.tail, s.now);
        uint32_t dirty = s.value[a] & 1;
        int b_kept = 0;
        if (s.value[a] >> 1 < (uint32_t)s.tail) {
            s.m.reads_neurons++;
            dirty = 0;
            if (s.m.used == s.m.capacity) {
                int64_t p = ew_oldest(&s, s.tail);
                if (pin_both && s.recent[p & (s.room - 1)] == b) { /* b stays: it is about to become the most recent */
                    b_kept = 1;
                    p = ew_oldest(&s, p + 1);
                }
                ew_lru_evict(&s, p, 2 * i, note);
            } else
                s.m.used++;
            if (note) ew_note(&s.m, i, a, EW_LOAD);
        }
        ew_lru_touch(&s, a, dirty);
        if (s.value[b] >> 1 < (uint32_t)s.tail && !(pin_both && b_kept)) {
            s.m.reads_neurons++;
            if (s.m.used == s.m.capacity) /* a is the most recent of at least two: never the victim */
                ew_lru_evict(&s, ew_oldest(&s, s.tail), 2 * i + 1, note);
            else
                s.m.used++;
            if (note) ew_note(&s.m, i, b, EW_LOAD);
        }
        ew_lru_touch(&s, b, 1);
    }
    *state = s;
}

/* Play connections by one of the bodies of a policy: noting moves, or asking for ends to come, or neither. */
#define EW_PLAY(play, s) \
    if ((s)->m.moves) \
        play(s, source, target, from, to, pin_both, 1, 0); \
    else if ((s)->m.coming) \
        pin_both ? play(s, source, target, from, to, 1, 0, 1) : play(s, source, target, from, to, 0, 0, 1); \
    else \
        pin_both ? play(s, source, target, from, to, 1, 0, 0) : play(s, source, target, from, to, 0, 0, 0)

static void ew_lru_run(void *state, const int32_t *source, const int32_t *target, int64_t from, int64_t to,
                       int pin_both) {
    ew_lru *const s = (ew_lru *)state;
    EW_PLAY(ew_lru_play, s);
}

/* Take back the live writes of what was not used again, and write the outputs that are left, at step `w`. */
static void ew_lru_end(ew_lru *s, int64_t n, int64_t w) {
    for (int64_t x = 0; x < n; x++) {
        if (!(s->value[x] & 1)) continue;
        if (!s->m.moves) s->m.writes_live -= s->value[x] >> 1 < (uint32_t)s->tail;
        s->m.writes_outputs += s->m.is_output[x] != 0;
        if (s->m.moves && s->m.is_output[x]) ew_note(&s->m, w, (int32_t)x, EW_STORE_OUTPUT);
    }
}

/* ---- RR
 * Slots in a ring; the pointer passes over pinned values and moves on by one after each eviction. An empty slot holds
 * neuron N, which is clean and never pinned: filling the slots in turn is evicting those, and ends at slot 0 again. */

enum { EW_RESIDENT = 1, EW_DIRTY = 2, EW_LEFT_DIRTY = 4 };

typedef struct {
    ew_fast_memory m;
    uint8_t *value; /* [N + 1] what is true of a value; left dirty: it left so and was not read again */
    int32_t *slot;  /* [C], all N at first */
    int64_t pointer;
} ew_rr;

EW_INLINE void ew_rr_load(ew_rr *s, int32_t x, int32_t pinned, int64_t position, const int note) {
    const int64_t last = s->m.capacity - 1;
    int64_t p = s->pointer;
    s->m.reads_neurons++;
    s->value[x] = EW_RESIDENT;
    if (s->slot[p] == pinned) { /* one value at most is pinned */
        s->m.skips++;
        p = p == last ? 0 : p + 1;
    }
    const int32_t victim = s->slot[p];
    const uint8_t dirty = s->value[victim] & EW_DIRTY;
    if (note) {
        s->m.writes_live += dirty && ew_note_eviction(&s->m, victim, position);
        s->value[victim] = 0;
        ew_note(&s->m, position >> 1, x, EW_LOAD);
    } else {
        s->m.writes_live += dirty >> 1;
        s->value[victim] = (uint8_t)(dirty << 1);
    }
    s->slot[p] = x;
    s->pointer = p == last ? 0 : p + 1;
}

EW_INLINE void ew_rr_play(ew_rr *state, const int32_t *source, const int32_t *target, int64_t from, int64_t to,
                          const int pin_both, const int note, const int fetch_ahead) {
    ew_rr s = *state;
    const int32_t *const ends = s.m.ends;
    const int64_t *const coming = s.m.coming;
    for (int64_t i = from; i < to; i++) {
        if (fetch_ahead) ew_fetch_ends(ends, coming[i - from]);
        const int32_t a = source[i - from], b = target[i - from];
        if (!(s.value[a] & EW_RESIDENT)) ew_rr_load(&s, a, pin_both ? b : -1, 2 * i, note);
        if (!(s.value[b] & EW_RESIDENT)) ew_rr_load(&s, b, a, 2 * i + 1, note);
        s.value[b] |= EW_DIRTY;
    }
    *state = s;
}

static void ew_rr_run(void *state, const int32_t *source, const int32_t *target, int64_t from, int64_t to, int pin_both) {
    ew_rr *const s = (ew_rr *)state;
    EW_PLAY(ew_rr_play, s);
}

/* As ew_lru_end. */
static void ew_rr_end(ew_rr *s, int64_t n, int64_t w) {
    for (int64_t x = 0; x < n; x++) {
        if (!(s->value[x] & (EW_DIRTY | EW_LEFT_DIRTY))) continue;
        s->m.writes_live -= (s->value[x] & EW_LEFT_DIRTY) != 0;
        s->m.writes_outputs += s->m.is_output[x] != 0;
        if (s->m.moves && s->m.is_output[x]) ew_note(&s->m, w, (int32_t)x, EW_STORE_OUTPUT);
    }
}

/* ---- MIN
 * Next uses are distinct integers below 2W, so the resident values are a set of bits, one at each value's next use: the
 * stream itself says which value a bit stands for, an access hits iff its own bit is set, and the victim is the highest
 * bit, found through summaries of 64 words per level. The bit above it says whether the value is dirty. Bits behind
 * the present are left: they are never the highest. The few highest stand in a row besides. Values without a later use carry no bit; they are evicted first, at
 * no cost (a dirty output's write is charged when it dies), so a number of them is enough.
 * `literal` and `pin_both` agree: while a is loaded, this step's b has the nearest use of all. */

enum { EW_MAX_LEVELS = 4, EW_HIGHEST = 3 };

typedef struct {
    ew_fast_memory m;
    const int32_t *side[2];         /* sources and targets in processing order; asked for only where moves are noted */
    const int32_t *next_use;        /* [2W] position of the next access of the same neuron, or EW_NEVER, EW_NEVER_OUTPUT */
    uint64_t *level[EW_MAX_LEVELS]; /* level[0]: two bits per position, the lower one for resident, the upper one for
                                     * dirty; level[k]: a bit per word of level[k - 1] that is not zero */
    int64_t levels;                 /* in use: the last has few words, which are searched from `top` downwards */
    int64_t top;                    /* no word of the last level above this one is non-zero */
    int64_t highest[EW_HIGHEST];    /* the highest next uses, falling; -1 where there is none */
    int64_t ceiling;                /* below all of `highest`, above every bit that the summaries know */
    int64_t room;                   /* slots that are empty or hold a value without a later use */
} ew_min;

/* `seen` is EW_NEVER_OUTPUT or EW_NEVER at first; call for descending ranges. */
static void ew_find_next_uses(int32_t *next_use, int32_t *seen, const int32_t *source, const int32_t *target,
                              int64_t from, int64_t to) {
    for (int64_t i = to - 1; i >= from; i--) {
        const int32_t a = source[i - from], b = target[i - from];
        next_use[2 * i + 1] = seen[b];
        seen[b] = (int32_t)(2 * i + 1);
        next_use[2 * i] = seen[a];
        seen[a] = (int32_t)(2 * i);
    }
}

/* Let the summaries know of the bit at p. */
EW_INLINE void ew_summarise(ew_min *s, uint64_t p, const int levels) {
    p >>= 5;
#pragma GCC unroll 4
    for (int k = 1; k < levels; k++) {
        const uint64_t word = p >> 6, summary = s->level[k][word];
        s->level[k][word] = summary | (uint64_t)1 << (p & 63);
        if (k == levels - 1) {
            if ((int64_t)word > s->top) s->top = (int64_t)word;
        } else if (summary)
            return;
        p = word;
    }
}

EW_INLINE void ew_set_bit(ew_min *s, int64_t p, uint64_t dirty, const int levels) {
    s->level[0][p >> 5] |= (1 | dirty << 1) << (2 * p & 63);
    if (p > s->ceiling) { /* the lowest of the row and p leaves it, if the row was full */
#pragma GCC unroll 4
        for (int k = 0; k < EW_HIGHEST; k++) {
            const int64_t high = s->highest[k];
            s->highest[k] = high > p ? high : p;
            p = high > p ? p : high;
        }
        if (p < 0) return;
        s->ceiling = p;
    }
    ew_summarise(s, (uint64_t)p, levels);
}

/* Clear the highest bit and return whether its value is dirty; `taken` is its position. The set must not be empty. */
EW_INLINE uint64_t ew_take_highest(ew_min *s, const int levels, int64_t *taken) {
    if (s->highest[0] >= 0) {
        const int64_t p = *taken = s->highest[0];
#pragma GCC unroll 4
        for (int k = 1; k < EW_HIGHEST; k++) s->highest[k - 1] = s->highest[k];
        s->highest[EW_HIGHEST - 1] = -1;
        const uint64_t both = s->level[0][p >> 5] & (uint64_t)3 << (2 * p & 63);
        s->level[0][p >> 5] ^= both;
        return both >> (2 * p & 63) >> 1;
    }
    uint64_t p, word[EW_MAX_LEVELS];
    while (!(word[levels - 1] = s->level[levels - 1][s->top])) s->top--;
    p = (uint64_t)s->top << 6 | (uint64_t)(63 ^ __builtin_clzll(word[levels - 1]));
#pragma GCC unroll 4
    for (int k = levels - 2; k >= 0; k--) {
        word[k] = s->level[k][p];
        p = p << 6 | (uint64_t)(63 ^ __builtin_clzll(word[k]));
    }
    const uint64_t at = p & 62, both = word[0] & (uint64_t)3 << at;
    *taken = s->ceiling = (int64_t)(p >> 1);
    p >>= 6;
    s->level[0][p] = word[0] ^= both;
    if (!word[0]) {
#pragma GCC unroll 4
        for (int k = 1; k < levels; k++) {
            word[k] ^= (uint64_t)1 << (p & 63);
            s->level[k][p >> 6] = word[k];
            if (word[k]) break;
            p >>= 6;
        }
    }
    return both >> at >> 1;
}

EW_INLINE int32_t ew_neuron_at(const ew_min *s, int64_t position) { return s->side[position & 1][position >> 1]; }

EW_INLINE void ew_min_load(ew_min *s, int64_t position, const int levels, const int note) {
    s->m.reads_neurons++;
    if (s->room)
        s->room--;
    else {
        int64_t victim;
        const uint64_t dirty = ew_take_highest(s, levels, &victim);
        s->m.writes_live += (int64_t)dirty;
        if (note && dirty) ew_note(&s->m, position >> 1, ew_neuron_at(s, victim), EW_STORE_LIVE);
    }
    if (note) ew_note(&s->m, position >> 1, ew_neuron_at(s, position), EW_LOAD);
}

/* An output's final write is due once it has no later use, and is noted at the step after its last one. */
EW_INLINE void ew_keep(ew_min *s, int64_t position, uint64_t dirty, const int levels, const int note) {
    const int32_t next_use = s->next_use[position];
    if (next_use >= EW_NEVER_OUTPUT) {
        const uint64_t final_write = dirty & (next_use == EW_NEVER_OUTPUT);
        s->room++;
        s->m.writes_outputs += (int64_t)final_write;
        if (note && final_write) ew_note(&s->m, (position >> 1) + 1, ew_neuron_at(s, position), EW_STORE_OUTPUT);
    } else
        ew_set_bit(s, next_use, dirty, levels);
}

EW_INLINE void ew_min_play(ew_min *state, int64_t from, int64_t to, const int levels, const int note) {
    ew_min s = *state;
    for (int64_t i = from; i < to; i++) {
        /* a gets its bit only after b is in, so it cannot be b's victim, dead or not: it is pinned */
        const uint64_t now = s.level[0][i >> 4] >> (4 * i & 63); /* a resident, a dirty, b resident */
        if (!(now & 1)) ew_min_load(&s, 2 * i, levels, note);
        if (!(now & 4)) ew_min_load(&s, 2 * i + 1, levels, note); /* a's load left b: its next use is the nearest */
        ew_keep(&s, 2 * i, now >> 1 & 1, levels, note);
        ew_keep(&s, 2 * i + 1, 1, levels, note);
    }
    *state = s;
}

static void ew_min_run(void *state, const int32_t *source, const int32_t *target, int64_t from, int64_t to,
                       int pin_both) {
    ew_min *const s = (ew_min *)state;
    (void)source, (void)target, (void)pin_both;
    if (s->m.moves)
        ew_min_play(s, from, to, 4, 1);
    else if (s->levels == 3)
        ew_min_play(s, from, to, 3, 0);
    else
        ew_min_play(s, from, to, 4, 0);
}
