/* next-line, tagged: a step of one line after a miss and at the first use of a prefetched line. */
#ifndef EDGEWATT_PREFETCH_NEXT_LINE_H
#define EDGEWATT_PREFETCH_NEXT_LINE_H

static int64_t edgewatt_next_line(void *table, int64_t entries, int32_t stream, int64_t line, int missed, int first_use) {
    (void)table, (void)entries, (void)stream, (void)line;
    return missed || first_use;
}

static const edgewatt_prefetcher edgewatt_prefetcher_next_line = {0, edgewatt_next_line};

#endif
