/* A barrier for a few threads that work on the same layer: they wait a short while, then let others run. */
#ifndef EDGEWATT_INFERENCE_BARRIER_H
#define EDGEWATT_INFERENCE_BARRIER_H

#include <sched.h>
#include <stdint.h>

/* meeting[0] counts arrivals for ever: the k-th meeting is over when it reaches k * threads. */
static void ew_barrier(int64_t *meeting, int64_t threads) {
    const int64_t ticket = __atomic_add_fetch(&meeting[0], 1, __ATOMIC_ACQ_REL);
    const int64_t until = (ticket + threads - 1) / threads * threads;
    for (int spins = 0; __atomic_load_n(&meeting[0], __ATOMIC_ACQUIRE) < until; spins++)
        if (spins > 1000) sched_yield();
}

#endif
