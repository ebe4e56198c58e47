/* Event sets: each event of the timeline reaches each set once, if it came after the registration. */
#include "standin.h"

#include <stdlib.h>
#include <time.h>

#define SLICE_NS 200000000LL /* how late a changed scenario file is noticed while waiting */

struct event_set { uint64_t mask[MAX_GPUS]; int64_t seen_ns[MAX_GPUS]; int at_seen[MAX_GPUS]; };
struct event { Handle device; uint64_t type, data; uint32_t gi, ci; };

API int nvmlEventSetCreate(struct event_set **out) {
    OPEN_SYSTEM(nvmlEventSetCreate)
    if (!out) return INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    return *out ? OK : MEMORY;
}

API int nvmlEventSetFree(struct event_set *set) {
    OPEN_SYSTEM(nvmlEventSetFree)
    if (!set) return INVALID_ARGUMENT;
    free(set);
    return OK;
}

API int nvmlDeviceGetSupportedEventTypes(Handle h, uint64_t *out) {
    OPEN(nvmlDeviceGetSupportedEventTypes, h, PHYSICAL)
    return out ? (*out = 0xFD9F, OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceRegisterEvents(Handle h, uint64_t types, struct event_set *set) {
    OPEN(nvmlDeviceRegisterEvents, h, PHYSICAL)
    if (!set) return INVALID_ARGUMENT;
    if (types & ~0xFD9FULL) return NOT_SUPPORTED;
    set->mask[c.index] |= types;
    set->seen_ns[c.index] = c.t_ns;
    set->at_seen[c.index] = 1 << 30; /* nothing of this very moment either */
    return OK;
}

/* The earliest event a set has not had; how long until the next one otherwise. */
static bool due(const struct call *c, struct event_set *set, struct event *out, int64_t *wait_ns) {
    int best = -1, best_nth = 0;
    const struct point *found = NULL;
    for (int i = 0; i < c->s->gpus; i++) {
        const struct series *s = &c->s->gpu[i].events;
        int same = 0;
        for (int k = 0; set->mask[i] && k < s->n; k++) {
            const struct point *p = &s->p[k];
            if (p->none || p->t_ns < set->seen_ns[i] || !(set->mask[i] & (uint64_t)p->v[0])) continue;
            if (p->t_ns == set->seen_ns[i] && same++ < set->at_seen[i]) continue;
            if (p->t_ns > c->t_ns) {
                if (p->t_ns - c->t_ns < *wait_ns) *wait_ns = p->t_ns - c->t_ns;
            } else if (!found || p->t_ns < found->t_ns) {
                found = p;
                best = i;
                best_nth = p->t_ns == set->seen_ns[i] ? same : 1;
            }
            break;
        }
    }
    if (!found) return false;
    set->seen_ns[best] = found->t_ns;
    set->at_seen[best] = best_nth;
    *out = (struct event){handle_of(best, -1), (uint64_t)found->v[0], (uint64_t)found->v[1], NO_INSTANCE, NO_INSTANCE};
    return true;
}

/* Waits without the driver lock, as the driver does; sleeps up to the next event, so that waiting costs nothing. */
static int wait_for(int fn, struct event_set *set, struct event *out, unsigned timeout_ms) {
    struct call c __attribute__((cleanup(leave))) = {0};
    int failed = enter_for(&c, fn, EVERYTHING);
    leave(&c);
    if (failed) return failed;
    if (!set || !out) return INVALID_ARGUMENT;
    int64_t end_ns = c.t_ns + timeout_ms * 1000000LL;
    for (;;) {
        int64_t wait_ns = SLICE_NS;
        if (due(&c, set, out, &wait_ns)) return OK;
        if (c.t_ns >= end_ns) return TIMEOUT;
        if (end_ns - c.t_ns < wait_ns) wait_ns = end_ns - c.t_ns;
        struct timespec span = {wait_ns / 1000000000, wait_ns % 1000000000};
        nanosleep(&span, NULL);
        c.s = tick(&c.t_ns);
        c.g = &c.s->gpu[EVERYTHING];
        failed = fault(&c, fn);
        if (failed) return failed;
    }
}

API int nvmlEventSetWait_v2(struct event_set *set, struct event *out, unsigned timeout_ms) {
    return wait_for(F_nvmlEventSetWait_v2, set, out, timeout_ms);
}

API int nvmlEventSetWait(struct event_set *set, struct event *out, unsigned timeout_ms) {
    return wait_for(F_nvmlEventSetWait, set, out, timeout_ms);
}
