/* GPM: a sample is a moment; a metric is the mean of its timeline between two of them. */
#include "standin.h"

#include <stdlib.h>

#define WHOLE_CARD (-1)
#define APART_NS 100000000 /* the driver's own refresh: closer samples hold the same counters */

struct sample { int gpu, gi; int64_t t_ns; bool taken; };
struct metric { unsigned id; int ret; double value; const char *names[3]; };
struct request { unsigned version, count; struct sample *first, *second; struct metric metrics[]; };
struct support { unsigned version, supported; };

API int nvmlGpmQueryDeviceSupport(Handle h, struct support *out) {
    OPEN(nvmlGpmQueryDeviceSupport, h, PHYSICAL)
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 1) return ARGUMENT_VERSION_MISMATCH;
    out->supported = number_or(&c, K_gpm_supported, 0) != 0;
    return OK;
}

API int nvmlGpmSampleAlloc(struct sample **out) {
    OPEN_SYSTEM(nvmlGpmSampleAlloc)
    if (!out) return INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    return *out ? OK : MEMORY;
}

API int nvmlGpmSampleFree(struct sample *sample) {
    OPEN_SYSTEM(nvmlGpmSampleFree)
    if (!sample) return INVALID_ARGUMENT;
    free(sample);
    return OK;
}

static int take(const struct call *c, int gi, struct sample *sample) {
    if (!sample) return INVALID_ARGUMENT;
    if (number_or(c, K_gpm_supported, 0) == 0) return NOT_SUPPORTED;
    *sample = (struct sample){c->index, gi, c->t_ns, true};
    return OK;
}

API int nvmlGpmSampleGet(Handle h, struct sample *sample) {
    OPEN(nvmlGpmSampleGet, h, ANY)
    int gi = WHOLE_CARD;
    instance(&c, h->instance, &gi);
    return take(&c, gi, sample);
}

API int nvmlGpmMigSampleGet(Handle h, unsigned gi, struct sample *sample) {
    OPEN(nvmlGpmMigSampleGet, h, PHYSICAL)
    int other;
    for (int slot = 0; slot < instance_slots(c.g); slot++)
        if (instance(&c, slot, &other) && (unsigned)other == gi) return take(&c, (int)gi, sample);
    return INVALID_ARGUMENT;
}

static int mean(const struct gpu *g, const struct sample *from, const struct sample *to, struct metric *m) {
    const struct series *s = named_at(g, I_gpm, (int)m->id, from->gi);
    const struct point *first = s ? at(s, from->t_ns) : NULL;
    if (!first) return NOT_SUPPORTED;
    for (const struct point *p = first; p < s->p + s->n && p->t_ns <= to->t_ns; p++)
        if (p->none) return NOT_SUPPORTED;
    __int128 area = integral(s, to->t_ns) - integral(s, from->t_ns); /* 1e-12 units x s */
    m->value = (double)area / 1e3 / (double)(to->t_ns - from->t_ns);
    return OK;
}

API int nvmlGpmMetricsGet(struct request *r) {
    OPEN_SYSTEM(nvmlGpmMetricsGet)
    if (!r || !r->first || !r->second) return INVALID_ARGUMENT;
    if (r->version != 1) return ARGUMENT_VERSION_MISMATCH;
    const struct sample *from = r->first, *to = r->second;
    if (!from->taken || !to->taken || from->gpu != to->gpu || from->gi != to->gi) return INVALID_ARGUMENT;
    bool apart = to->t_ns - from->t_ns > APART_NS;
    c.index = from->gpu; /* the metrics of a card fail with the card's own lines */
    c.g = &c.s->gpu[c.index];
    int failed = fault(&c, F_nvmlGpmMetricsGet);
    if (failed) return failed;
    for (unsigned i = 0; i < r->count; i++) {
        struct metric *m = &r->metrics[i];
        m->value = 0;
        m->ret = apart ? mean(c.g, from, to, m) : NO_DATA;
    }
    return OK;
}
