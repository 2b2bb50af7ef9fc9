/* I/Os of a changed order from those of the order before it, for LRU and RR (MIN: recount_min.h).
 *
 * In a topological order a neuron is first updated (as target), then used (as source). A miss at an update other than
 * the first costs a read and the write before it; of the misses at uses only the first one needs a write before it, and
 * none if the neuron has no inputs. With one more write for each output that was not written as a live value,
 *   total = W + misses at uses + 2 misses at updates - computed neurons
 *         + computed neurons that are outputs or have a miss at a use,
 * so it is enough to know which accesses miss. One flag byte per access is kept; after a change only accesses near
 * changed places are played again, until the fast memory holds what it held in the old course. A search that will not
 * keep a change which costs much more gives it up as soon as what has been played does: few recover. */
#pragma once

#include "annealing/connection_moves.h"

enum { EW_MISS = 1, EW_SKIP = 2, EW_DEAD = 4 };
enum { EW_SPARE = 4 }; /* pushes of one connection */

typedef struct {
    int64_t access; /* 2 * connection + side */
    int32_t victim; /* MIN only */
    uint8_t flags;
} ew_change;

typedef struct {
    int64_t total;             /* I/Os of the current order */
    int64_t most;              /* a change with which the total comes above this is given up; it can only be undone */
    int given_up;
    int64_t capacity;          /* C, at most N */
    int pin_both;
    uint8_t *flags;            /* [2W] of the current order (during an evaluation: of the new one, as far as played) */
    int32_t *use_misses;       /* [N] misses at uses */
    const uint8_t *free_write; /* [N] 1: a miss at a use never adds a write (not computed, or an output) */
    ew_change *journal;        /* [2W] what the current evaluation has overwritten */
    int64_t n_journal;
    uint8_t *moved_flags;      /* [2 * window] old flags of the moves, by old place */
    int64_t n_old;             /* moves whose old place has been passed */
    int64_t *stamp;            /* [N] */
    int64_t now, mark;         /* never reset, so that stamps need no clearing */
    int64_t *last;             /* [N + 1] LRU: time of the last access; RR: segment in which the value is resident */
    int32_t *log, *old_log;    /* LRU: access stream; RR: pushes, new and old, after EW_SPARE unused places */
    int64_t played;            /* accesses played in all */
} ew_counter;

/* The miss of access 2e + side appears (+1) or disappears (-1). */
static inline void ew_charge(ew_counter *c, const ew_order *o, int64_t access, int sign) {
    if (access & 1) {
        c->total += 2 * sign;
        return;
    }
    const int32_t a = o->links[access >> 1].source;
    const int had = c->use_misses[a] > 0;
    c->use_misses[a] += sign;
    c->total += sign + (c->free_write[a] ? 0 : (c->use_misses[a] > 0) - had);
}

static inline void ew_set_flags(ew_counter *c, const ew_order *o, int64_t access, uint8_t flags) {
    const uint8_t old = c->flags[access];
    if (old == flags) return;
    ew_change *j = &c->journal[c->n_journal++];
    j->access = access;
    j->flags = old;
    c->flags[access] = flags;
    if ((old ^ flags) & EW_MISS) ew_charge(c, o, access, flags & EW_MISS ? 1 : -1);
}

/* Put back what the last evaluation changed. */
static void ew_restore(ew_counter *c, const ew_order *o) {
    while (c->n_journal) {
        const ew_change *j = &c->journal[--c->n_journal];
        if ((c->flags[j->access] ^ j->flags) & EW_MISS) ew_charge(c, o, j->access, j->flags & EW_MISS ? 1 : -1);
        c->flags[j->access] = j->flags;
    }
}

/* Note the flags of the moves by their old places, and begin. */
static void ew_note_moved(ew_counter *c, const ew_order *o) {
    c->n_journal = 0;
    c->n_old = 0;
    c->given_up = 0;
    for (int64_t k = 0; k < o->n_moves; k++)
        memcpy(c->moved_flags + 2 * k, c->flags + 2 * (int64_t)ew_by_old_place(o, k)->edge, 2);
}

/* Number the records anew, as the connections have been. What is in `scratch` is lost. */
static void ew_renumber_records(const ew_order *o, void *records, void *scratch, int64_t size) {
    for (int64_t e = 0; e < o->w; e++)
        memcpy((char *)scratch + size * o->renamed[e], (const char *)records + size * e, (size_t)size);
    memcpy(records, scratch, (size_t)(size * o->w));
}

/* ---- LRU: the state is the last C distinct values touched, so a change is forgotten after C distinct values ------ */

/* The first entry from `at` that stands for its neuron: the neuron's last access is that entry's time. */
static inline int64_t ew_oldest_entry(const int32_t *log, const int64_t *last, int64_t base, int64_t at) {
    while (last[log[at]] != base + at) at++;
    return at;
}

/* Play what follows and return the last connection played (W: none). What the loop reads is held apart from *c: a flag
 * is a byte, and writing one may change any field of *c for all the compiler knows. */
static inline int32_t ew_lru_play(ew_counter *c, const ew_order *o, int32_t e, const int pin_both) {
    const int64_t capacity = c->capacity, base = c->now; /* times below base are before this segment */
    const int32_t w = (int32_t)o->w;
    const int64_t most = c->most;
    const ew_link *const links = o->links;
    const uint8_t *const mark_of = o->mark;
    int32_t *const log = c->log; /* access at time base + k */
    int64_t *const last = c->last, *const stamp = c->stamp;
    uint8_t *const flags = c->flags;
    int64_t used = 0, now = capacity, fresh = 0, mark = ++c->mark;
    int32_t end = w;
    for (int32_t p = links[e].prev; p != w && used < capacity; p = links[p].prev) {
        const int32_t sides[2] = {links[p].target, links[p].source};
        for (int k = 0; k < 2 && used < capacity; k++) {
            if (stamp[sides[k]] == mark) continue;
            stamp[sides[k]] = mark;
            used++;
            last[sides[k]] = base + capacity - used;
            log[capacity - used] = sides[k];
        }
    }
    int64_t tail = now - used;
    while (e != w && !c->given_up) {
        const ew_link *const link = &links[e];
        if (mark_of[e] & EW_POINT) {
            fresh = 0;
            mark++;
        } else if (fresh >= capacity)
            break;
        int b_kept = 0;
        const int32_t b = link->target;
#pragma GCC unroll 2
        for (int side = 0; side < 2; side++) {
            const int32_t x = side ? b : link->source;
            const int miss = last[x] < base + tail && !(side && b_kept);
            if (miss && used < capacity)
                used++;
            else if (miss) {
                tail = ew_oldest_entry(log, last, base, tail);
                if (pin_both && !side && log[tail] == b) { /* b stays: it is about to become the most recent */
                    b_kept = 1;
                    tail = ew_oldest_entry(log, last, base, tail + 1);
                }
                tail++;
            }
            last[x] = base + now;
            log[now++] = x;
            const int64_t access = 2 * (int64_t)e + side;
            if (flags[access] != miss) {
                ew_set_flags(c, o, access, (uint8_t)miss);
                c->given_up = c->total > most;
            }
            fresh += stamp[x] != mark;
            stamp[x] = mark;
        }
        if (mark_of[e] & EW_MOVED) { /* its own values were not touched here in the old course */
            fresh = 0;
            mark++;
        }
        end = e;
        e = link->next;
    }
    c->mark = mark;
    c->now = base + now;
    c->played += now - capacity;
    return end;
}

static void ew_lru_segment(ew_counter *c, const ew_order *o, int32_t e, int64_t *end_label) {
    const int32_t end = c->pin_both ? ew_lru_play(c, o, e, 1) : ew_lru_play(c, o, e, 0);
    if (end != o->w) *end_label = o->edges[end].label;
}

/* ---- RR: a queue in which a pinned head goes to the back; it holds the last C values pushed -------------------- */

typedef struct {
    int32_t *log; /* C values that were there before this segment, then its pushes; the queue is the last C of them */
    int64_t size;
} ew_queue;

static inline void ew_push(ew_queue *q, int32_t x) { q->log[q->size++] = x; }

static inline int32_t ew_head(const ew_queue *q, int64_t capacity) { return q->log[q->size - capacity]; }

/* Let the queue hold x and return the flags of that access. Whether it misses is not branched on: no predictor knows. */
static inline int ew_rr_access(ew_queue *q, int64_t *last, int32_t x, int32_t pinned, int64_t segment,
                               int64_t capacity) {
    const int miss = last[x] != segment;
    int flags = miss;
    if (miss & (ew_head(q, capacity) == pinned)) {
        flags |= EW_SKIP;
        ew_push(q, pinned);
    }
    last[ew_head(q, capacity)] = miss ? 0 : segment;
    last[x] = segment;
    q->log[q->size] = x;
    q->size += miss;
    return flags;
}

/* Push what the accesses of connection (a, b) pushed, given their flags. */
static inline void ew_rr_replay(ew_queue *q, int32_t a, int32_t b, int a_flags, int b_flags) {
    if (a_flags & EW_SKIP) ew_push(q, b);
    q->log[q->size] = a;
    q->size += a_flags & EW_MISS;
    if (b_flags & EW_SKIP) ew_push(q, a);
    q->log[q->size] = b;
    q->size += b_flags & EW_MISS;
}

/* How far two logs agree, read backwards from their ends. */
typedef struct {
    int64_t old_size, shift; /* of the logs when that was found; shift: how much longer the new one was */
    int64_t same;
} ew_agreement;

/* How far the logs agree now, given how far they agreed at two earlier times: where the shift is one of those, only
 * what has been pushed since needs to be compared. */
static inline ew_agreement ew_agree(const ew_queue *new, const ew_queue *old, int64_t capacity,
                                    const ew_agreement *before, const ew_agreement *earlier) {
    const int64_t shift = new->size - old->size;
    const ew_agreement *known = shift == before->shift ? before : shift == earlier->shift ? earlier : NULL;
    const int64_t most = known ? old->size - known->old_size : capacity; /* more than C need not be known */
    int64_t same = 0;
    while (same < most && new->log[new->size - 1 - same] == old->log[old->size - 1 - same]) same++;
    return (ew_agreement){old->size, shift, same == most && known ? same + known->same : same};
}

/* Fill the two queues with what is in fast memory before e, and, where that is less, with a neuron N that is never asked
 * for. */
__attribute__((noinline)) static void ew_rr_fill(const ew_counter *c, const ew_order *o, int32_t e, int64_t segment) {
    const ew_link *const links = o->links;
    const int64_t capacity = c->capacity;
    const int32_t w = (int32_t)o->w;
    const uint8_t *const flags = c->flags;
    int32_t *const log = c->log, *at = log + capacity; /* EW_SPARE before log: the last may push more than is wanted */
    for (int32_t p = links[e].prev; p != w && at > log; p = links[p].prev) {
        const uint8_t a_flags = flags[2 * (int64_t)p], b_flags = flags[2 * (int64_t)p + 1];
        const int32_t a = links[p].source, b = links[p].target;
        at[-1] = b; /* not branched on, as in ew_rr_access */
        at -= b_flags & EW_MISS;
        if (b_flags & EW_SKIP) *--at = a;
        at[-1] = a;
        at -= a_flags & EW_MISS;
        if (a_flags & EW_SKIP) *--at = b;
    }
    const int64_t empty = at > log ? at - log : 0;
    for (int64_t k = 0; k < empty; k++) log[k] = (int32_t)o->n;
    for (int64_t k = empty; k < capacity; k++) c->last[log[k]] = segment;
    memcpy(c->old_log, log, (size_t)capacity * sizeof *c->log);
}

/* What the loop reads is held apart from *c, as in ew_lru_play. */
static void ew_rr_segment(ew_counter *c, const ew_order *o, int32_t e, int64_t *end_label) {
    const ew_link *const links = o->links;
    const uint8_t *const mark_of = o->mark;
    const int32_t w = (int32_t)o->w;
    const int64_t segment = ++c->mark, capacity = c->capacity, n_moves = o->n_moves;
    const int pin_both = c->pin_both;
    int64_t *const last = c->last;
    uint8_t *const flags = c->flags;
    ew_queue new = {c->log, capacity}, old = {c->old_log, capacity};
    ew_agreement now = {capacity, 0, capacity}, earlier = now;
    int64_t n_old = c->n_old, played = 0;
    int32_t end = w;
    ew_rr_fill(c, o, e, segment);
    for (; e != w && !c->given_up; e = links[e].next) {
        if (!(mark_of[e] & EW_POINT) && now.same >= capacity) break;
        const int32_t a = links[e].source, b = links[e].target;
        const int64_t access = 2 * (int64_t)e;
        const int a_before = flags[access], b_before = flags[access + 1];
        int alike = !(mark_of[e] & EW_MOVED);
        if (n_old < n_moves) {
            const int64_t label = o->edges[e].label;
            for (; n_old < n_moves; n_old++) {
                const ew_move *m = ew_by_old_place(o, n_old);
                if (m->label > label) break;
                const uint8_t *moved = c->moved_flags + 2 * n_old;
                ew_rr_replay(&old, links[m->edge].source, links[m->edge].target, moved[0], moved[1]);
                alike = 0;
            }
        }
        if (!(mark_of[e] & EW_MOVED)) ew_rr_replay(&old, a, b, a_before, b_before);
        const int64_t size = new.size;
        const int a_flags = ew_rr_access(&new, last, a, pin_both ? b : -1, segment, capacity);
        const int b_flags = ew_rr_access(&new, last, b, a, segment, capacity);
        if (alike && a_flags == a_before && b_flags == b_before) {
            now.same += new.size - size;
            now.old_size = old.size;
        } else {
            const ew_agreement before = now;
            now = ew_agree(&new, &old, capacity, &before, &earlier);
            if (now.shift != before.shift) earlier = before;
            if (a_flags != a_before) ew_set_flags(c, o, access, (uint8_t)a_flags);
            if (b_flags != b_before) ew_set_flags(c, o, access + 1, (uint8_t)b_flags);
            c->given_up = c->total > c->most;
        }
        end = e;
        played += 2;
    }
    if (end != w) *end_label = o->edges[end].label;
    c->n_old = n_old;
    c->played += played;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

static void ew_count_changes(ew_counter *c, const ew_order *o, int is_lru) {
    ew_note_moved(c, o);
    int64_t end_label = INT64_MIN;
    for (int64_t k = 0; k < o->n_points && !c->given_up; k++) {
        const int32_t e = o->points[k];
        if (o->edges[e].label <= end_label) continue;
        if (is_lru)
            ew_lru_segment(c, o, e, &end_label);
        else
            ew_rr_segment(c, o, e, &end_label);
    }
}
