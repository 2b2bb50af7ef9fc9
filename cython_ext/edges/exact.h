/* The least I/Os of all orders of a tiny network: A* over (connections done, contents of fast memory, what is dirty).

Costs are reads of values and writes; the bound of what is left is one read of each value that is used later and is not
in fast memory, and one write of each output that nothing reads and that is not complete. Under MIN an eviction of x says of the future that all
other values that might have gone are used before x: a state carries these promises, and an order that breaks one is
none. Values never used again are dropped first; they are only counted under MIN (which of them goes changes nothing), and
keep their places under LRU and RR, which drop them when their turn comes. */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EW_EXACT_LRU, EW_EXACT_RR, EW_EXACT_MIN }; /* as cython_ext.iomodel.counts.POLICY_CODES */
enum { EW_MOST_EDGES = 64, EW_MOST_VALUES = 58, EW_PROMISES = 6, EW_PLACES = 8 * EW_PROMISES, EW_DEAD = 255 };

typedef uint64_t ew_word; /* a bit for each connection, or each value */
#define EW_BIT(k) ((ew_word)1 << (k))

typedef struct {
    ew_word done, dirty, held, dead; /* connections; values; held: under MIN, dead: how many */
    union {
        ew_word promise[EW_PROMISES]; /* MIN: value << EW_MOST_VALUES | the values that are used before it; sorted, 0: none */
        uint8_t place[EW_PLACES];      /* LRU: latest first; RR: from the pointer; value + 1, EW_DEAD, 0: empty */
    };
} ew_contents;

typedef struct {
    ew_contents at;
    int32_t parent;
    int16_t cost, edge;
    int32_t next; /* of the same bucket */
    uint8_t closed;
} ew_node;

typedef struct {
    int n, w, room, policy, bound;
    int complete, floor; /* floor: where it is not, no order left out has fewer */
    int a[EW_MOST_EDGES], b[EW_MOST_EDGES];
    ew_word uses[EW_MOST_EDGES], feeds[EW_MOST_EDGES], outputs; /* connections that use, that compute each value */
    ew_node *node;
    int32_t nodes, capacity, *table, slots, *bucket, found;
    int least; /* bucket looked at */
} ew_exact;

static inline uint64_t ew_exact_hash(const ew_contents *c) {
    uint64_t h = 0x9e3779b97f4a7c15u, part;
    for (size_t k = 0; k < sizeof *c / 8; k++) {
        memcpy(&part, (const char *)c + 8 * k, 8);
        h = (h ^ part) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static int ew_exact_insert(ew_exact *x, int32_t id) {
    uint64_t k = ew_exact_hash(&x->node[id].at);
    for (;; k++) {
        int32_t *slot = &x->table[k & (uint64_t)(x->slots - 1)];
        if (*slot < 0) {
            *slot = id;
            return id;
        }
        if (!memcmp(&x->node[*slot].at, &x->node[id].at, sizeof(ew_contents))) return *slot;
    }
}

static int ew_exact_grow(ew_exact *x) { /* room for one more node; 0: no memory */
    if (x->nodes < x->capacity) return 1;
    int32_t capacity = x->capacity ? 2 * x->capacity : 1 << 12;
    ew_node *node = realloc(x->node, (size_t)capacity * sizeof *node);
    if (!node) return 0;
    x->node = node;
    int32_t *table = malloc((size_t)capacity * 2 * sizeof *table);
    if (!table) return 0;
    free(x->table);
    x->table = table, x->slots = 2 * capacity, x->capacity = capacity;
    memset(table, -1, (size_t)capacity * 2 * sizeof *table);
    for (int32_t id = x->nodes - 1; id >= 0; id--) ew_exact_insert(x, id); /* of two with the same contents the cheaper */
    return 1;
}

static inline int ew_live(const ew_exact *x, int v, ew_word done) { return (x->uses[v] & ~done) != 0; }

static int ew_exact_left(const ew_exact *x, ew_word done, ew_word held) {
    int left = 0;
    for (int v = 0; v < x->n; v++) {
        if (!ew_live(x, v, done)) continue;
        left += !(held >> v & 1) + ((x->outputs >> v & 1) && x->uses[v] == x->feeds[v]);
    }
    return left;
}

static void ew_leave_out(ew_exact *x) { /* costs of what follows a state are at least the state's */
    if (x->complete) x->complete = 0, x->floor = x->least;
}

static void ew_exact_push(ew_exact *x, ew_contents at, int cost, ew_word held, int32_t parent, int edge) {
    int total = cost + ew_exact_left(x, at.done, held);
    if (total >= x->bound) return;
    if (!ew_exact_grow(x)) {
        ew_leave_out(x);
        return;
    }
    int32_t id = x->nodes;
    x->node[id].at = at;
    int32_t known = ew_exact_insert(x, id);
    if (known != id && x->node[known].cost <= cost) return;
    x->nodes++;
    if (known != id) { /* it stays in its bucket under the old key; the table points to the cheaper copy */
        x->node[known].closed = 1;
        uint64_t k = ew_exact_hash(&at);
        while (x->table[k & (uint64_t)(x->slots - 1)] != known) k++;
        x->table[k & (uint64_t)(x->slots - 1)] = id;
    }
    ew_node *node = &x->node[id];
    node->parent = parent, node->cost = (int16_t)cost, node->edge = (int16_t)edge, node->closed = 0;
    node->next = x->bucket[total];
    x->bucket[total] = id;
}

/* What the values of a connection that are not used again leave behind; returns the writes of outputs. */
static int ew_exact_finish(const ew_exact *x, ew_contents *c, int edge) {
    int cost = 0, ends[2] = {x->a[edge], x->b[edge]};
    c->done |= EW_BIT(edge);
    c->dirty |= EW_BIT(x->b[edge]);
    for (int side = 0; side < 2; side++) {
        int v = ends[side];
        if (ew_live(x, v, c->done)) continue;
        cost += (c->dirty & x->outputs) >> v & 1;
        c->dirty &= ~(EW_BIT(v));
        if (x->policy == EW_EXACT_MIN) {
            c->held &= ~(EW_BIT(v)), c->dead++;
        } else {
            for (int k = 0; k < x->room; k++)
                if (c->place[k] == v + 1) c->place[k] = EW_DEAD;
        }
    }
    return cost;
}

static inline ew_word ew_promised(const ew_contents *c, int v) {
    for (int k = 0; k < EW_PROMISES && c->promise[k]; k++)
        if (c->promise[k] >> EW_MOST_VALUES == (ew_word)v) return c->promise[k] & (EW_BIT(EW_MOST_VALUES) - 1);
    return 0;
}

/* Set what is used before value v; 0 where there are too many promises. */
static int ew_promise(ew_contents *c, int v, ew_word before) {
    ew_word kept[EW_PROMISES + 1];
    int n = 0;
    for (int k = 0; k < EW_PROMISES && c->promise[k]; k++)
        if (c->promise[k] >> EW_MOST_VALUES != (ew_word)v) kept[n++] = c->promise[k];
    if (before) kept[n++] = (ew_word)v << EW_MOST_VALUES | before;
    if (n > EW_PROMISES) return 0;
    for (int k = n - 1; k > 0 && kept[k] < kept[k - 1]; k--) {
        ew_word t = kept[k];
        kept[k] = kept[k - 1], kept[k - 1] = t;
    }
    memset(c->promise, 0, sizeof c->promise);
    memcpy(c->promise, kept, (size_t)n * sizeof *kept);
    return 1;
}

static void ew_accessed(ew_contents *c, int v) { /* nothing waits for v any more */
    ew_contents old = *c;
    for (int k = 0; k < EW_PROMISES && old.promise[k]; k++)
        if (old.promise[k] >> v & 1)
            ew_promise(c, (int)(old.promise[k] >> EW_MOST_VALUES),
                       old.promise[k] & (EW_BIT(EW_MOST_VALUES) - 1) & ~(EW_BIT(v)));
}

/* All ways in which MIN may access a value, then the next one, then the connection is done. */
static void ew_exact_min(ew_exact *x, ew_contents c, int cost, int edge, int side, int32_t parent) {
    if (side == 2) {
        cost += ew_exact_finish(x, &c, edge);
        for (int k = 0; k < EW_PROMISES && c.promise[k]; k++)
            for (int v = 0; v < x->n; v++)
                if ((c.promise[k] >> v & 1) && !ew_live(x, v, c.done)) return; /* it will not be used before */
        ew_exact_push(x, c, cost, c.held, parent, edge);
        return;
    }
    int v = side ? x->b[edge] : x->a[edge];
    if (ew_promised(&c, v)) return;
    if (!(c.held >> v & 1)) {
        cost++;
        c.dirty &= ~(EW_BIT(v));
        if (__builtin_popcountll(c.held) + (int)c.dead >= x->room) {
            if (c.dead) {
                c.dead--;
            } else {
                ew_word might = side ? c.held & ~(EW_BIT(x->a[edge])) : c.held;
                for (int y = 0; y < x->n; y++) {
                    if (!(might >> y & 1)) continue;
                    ew_contents then = c;
                    then.held = (c.held & ~(EW_BIT(y))) | EW_BIT(v);
                    then.dirty &= ~(EW_BIT(y));
                    if (!ew_promise(&then, y, might & ~(EW_BIT(y)))) {
                        ew_leave_out(x);
                        continue;
                    }
                    ew_accessed(&then, v);
                    ew_exact_min(x, then, cost + (c.dirty >> y & 1), edge, side + 1, parent);
                }
                return;
            }
        }
        c.held |= EW_BIT(v);
    }
    ew_accessed(&c, v);
    ew_exact_min(x, c, cost, edge, side + 1, parent);
}

/* LRU and RR: what goes follows from the past. */
static void ew_exact_past(ew_exact *x, ew_contents c, int cost, int edge, int32_t parent) {
    int ends[2] = {x->a[edge], x->b[edge]}, room = x->room, full;
    for (int side = 0; side < 2; side++) {
        uint8_t v = (uint8_t)(ends[side] + 1);
        int at = 0;
        while (at < room && c.place[at] != v) at++;
        if (at == room) {
            cost++;
            for (full = 0; full < room && c.place[full]; full++) {}
            at = full; /* an empty place, if there is one */
            if (full == room) {
                at = x->policy == EW_EXACT_LRU ? room - 1 : 0;
                while (x->policy == EW_EXACT_RR && side && c.place[at] == ends[0] + 1) at++;
                uint8_t gone = c.place[at];
                if (gone != EW_DEAD && c.dirty >> (gone - 1) & 1) cost++, c.dirty &= ~(EW_BIT(gone - 1));
            }
            c.place[at] = v;
            c.dirty &= ~(EW_BIT(v - 1));
            if (x->policy == EW_EXACT_RR && full == room) { /* the pointer moves on behind it */
                uint8_t turned[EW_PLACES] = {0};
                for (int k = 0; k < room; k++) turned[k] = c.place[(k + at + 1) % room];
                memcpy(c.place, turned, sizeof turned);
            }
        }
        if (x->policy == EW_EXACT_LRU) {
            memmove(c.place + 1, c.place, (size_t)at);
            c.place[0] = v;
        }
    }
    cost += ew_exact_finish(x, &c, edge);
    ew_word held = 0;
    for (int k = 0; k < room; k++)
        if (c.place[k] && c.place[k] != EW_DEAD) held |= EW_BIT(c.place[k] - 1);
    ew_exact_push(x, c, cost, held, parent, edge);
}

/* Expand at most so many states. 0: go on; 1: an order below the bound is found, the best of all; 2: there is none. */
static int ew_exact_run(ew_exact *x, int64_t states) {
    while (states > 0) {
        int32_t id = x->bucket[x->least];
        if (id < 0) {
            if (++x->least >= x->bound) return 2;
            continue;
        }
        x->bucket[x->least] = x->node[id].next;
        if (x->node[id].closed) continue;
        x->node[id].closed = 1;
        ew_contents at = x->node[id].at;
        if (at.done == (~(ew_word)0 >> (64 - x->w))) {
            x->found = id;
            return 1;
        }
        states--;
        for (int e = 0; e < x->w; e++) {
            if ((at.done >> e & 1) || (x->feeds[x->a[e]] & ~at.done)) continue;
            if (x->policy == EW_EXACT_MIN) ew_exact_min(x, at, x->node[id].cost, e, 0, id);
            else ew_exact_past(x, at, x->node[id].cost, e, id);
        }
    }
    return 0;
}
