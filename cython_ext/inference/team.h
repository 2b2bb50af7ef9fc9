/* Threads that wait for calls of the same work: awake for some ten microseconds, since waking one that sleeps takes as
 * long as a small network; then asleep, so that others have the core. */
#ifndef EDGEWATT_INFERENCE_TEAM_H
#define EDGEWATT_INFERENCE_TEAM_H

#include <pthread.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t called, finished;
    int64_t calls, done; /* calls so far; how many of the others are done with the last one */
    int64_t asleep, caller_asleep, closed;
} ew_team;

enum { EW_TEAM_SPINS = 2000 }; /* looks before sleeping */

static inline void ew_team_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void ew_team_make(ew_team *team) {
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->called, NULL);
    pthread_cond_init(&team->finished, NULL);
    team->calls = team->done = team->asleep = team->caller_asleep = team->closed = 0;
}

/* Waits for a call after the `seen` first ones; returns how many there are now. */
static int64_t ew_team_wait(ew_team *team, int64_t seen) {
    int64_t calls = seen;
    for (int64_t spins = 0; spins < EW_TEAM_SPINS && calls == seen; spins++) {
        calls = __atomic_load_n(&team->calls, __ATOMIC_SEQ_CST);
        if (calls == seen) ew_team_pause();
    }
    if (calls != seen) return calls;
    pthread_mutex_lock(&team->mutex);
    __atomic_add_fetch(&team->asleep, 1, __ATOMIC_SEQ_CST); /* before the look at calls, as a caller looks after it adds */
    while ((calls = __atomic_load_n(&team->calls, __ATOMIC_SEQ_CST)) == seen)
        pthread_cond_wait(&team->called, &team->mutex);
    __atomic_sub_fetch(&team->asleep, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&team->mutex);
    return calls;
}

static void ew_team_call(ew_team *team) {
    __atomic_store_n(&team->done, 0, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&team->calls, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&team->asleep, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_broadcast(&team->called);
        pthread_mutex_unlock(&team->mutex);
    }
}

static void ew_team_finish(ew_team *team) {
    __atomic_add_fetch(&team->done, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&team->caller_asleep, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_signal(&team->finished);
        pthread_mutex_unlock(&team->mutex);
    }
}

/* Waits until so many others are done with the last call. */
static void ew_team_join(ew_team *team, int64_t others) {
    for (int64_t spins = 0; spins < EW_TEAM_SPINS; spins++) {
        if (__atomic_load_n(&team->done, __ATOMIC_SEQ_CST) == others) return;
        ew_team_pause();
    }
    pthread_mutex_lock(&team->mutex);
    __atomic_store_n(&team->caller_asleep, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&team->done, __ATOMIC_SEQ_CST) < others) pthread_cond_wait(&team->finished, &team->mutex);
    __atomic_store_n(&team->caller_asleep, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&team->mutex);
}

static void ew_team_close(ew_team *team) {
    __atomic_store_n(&team->closed, 1, __ATOMIC_SEQ_CST);
    ew_team_call(team);
}

#endif
