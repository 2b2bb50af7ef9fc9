/* A growing list of line transactions, kept from call to call. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    uint64_t *address;
    uint16_t *size;
    uint8_t *is_write;
    int64_t *access;
    int64_t n, capacity;
} ew_transactions;

static int ew_grow(void **array, int64_t bytes) {
    void *grown = realloc(*array, (size_t)bytes);
    if (grown) *array = grown;
    return grown ? 0 : -1;
}

/* Make room for `extra` more; return 0, or -1 without memory. */
static int ew_reserve(ew_transactions *out, int64_t extra) {
    int64_t capacity = out->capacity;
    if (out->n + extra <= capacity) return 0;
    while (capacity < out->n + extra) capacity = 2 * capacity + 4096;
    if (ew_grow((void **)&out->address, capacity * 8) || ew_grow((void **)&out->size, capacity * 2) ||
        ew_grow((void **)&out->is_write, capacity) || ew_grow((void **)&out->access, capacity * 8))
        return -1;
    out->capacity = capacity;
    return 0;
}

static void ew_release(ew_transactions *out) {
    free(out->address);
    free(out->size);
    free(out->is_write);
    free(out->access);
}

static inline void edgewatt_put(ew_transactions *out, uint64_t address, int64_t size, int is_write,
                                int64_t access) {
    out->address[out->n] = address;
    out->size[out->n] = (uint16_t)size;
    out->is_write[out->n] = (uint8_t)is_write;
    out->access[out->n] = access;
    out->n += 1;
}
