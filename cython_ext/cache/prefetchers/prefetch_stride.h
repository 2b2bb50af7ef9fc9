/* stride: the reference prediction table of Chen & Baer, "Effective hardware-based data prefetching for
 * high-performance processors" (IEEE Trans. Computers 44(5), 1995), on lines: entry = last line, stride and a state of
 * two bits. The stream number stands for the address of the load instruction. */
#ifndef EDGEWATT_PREFETCH_STRIDE_H
#define EDGEWATT_PREFETCH_STRIDE_H

enum { EDGEWATT_INITIAL = 0, EDGEWATT_TRANSIENT = 1, EDGEWATT_STEADY = 2, EDGEWATT_NO_PREDICTION = 3 };

typedef struct {
    int64_t last, stride;
    int32_t stream; /* -1: unused */
    int32_t state;
} edgewatt_prediction;

/* Train the entry of a stream with a line; return the stride to follow, or 0. A look-up of the line the stream was at
 * is no step. */
static int64_t edgewatt_predict(void *table, int64_t entries, int32_t stream, int64_t line, int missed, int first_use) {
    edgewatt_prediction *entry = (edgewatt_prediction *)table + stream % entries;
    (void)missed, (void)first_use;
    if (entry->stream != stream) {
        entry->stream = stream;
        entry->last = line;
        entry->stride = 0;
        entry->state = EDGEWATT_INITIAL;
        return 0;
    }
    if (entry->last == line) return 0;
    const int64_t step = line - entry->last; /* lines are below 2^63: no overflow */
    entry->last = line;
    if (step == entry->stride) {
        entry->state = entry->state == EDGEWATT_NO_PREDICTION ? EDGEWATT_TRANSIENT : EDGEWATT_STEADY;
    } else if (entry->state == EDGEWATT_STEADY) {
        entry->state = EDGEWATT_INITIAL; /* one odd step does not forget the stride */
    } else {
        entry->stride = step;
        entry->state = entry->state == EDGEWATT_INITIAL ? EDGEWATT_TRANSIENT : EDGEWATT_NO_PREDICTION;
    }
    return entry->state == EDGEWATT_STEADY ? entry->stride : 0;
}

static const edgewatt_prefetcher edgewatt_prefetcher_stride = {sizeof(edgewatt_prediction), edgewatt_predict};

#endif
