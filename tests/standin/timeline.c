/* Reading a scenario in memory: the value of a key at a time, and its integral up to a time. */
#include "standin.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const struct point *at(const struct series *s, int64_t t_ns) {
    int low = 0, high = s->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->p[middle].t_ns <= t_ns) low = middle + 1;
        else high = middle;
    }
    return low ? &s->p[low - 1] : NULL;
}

const struct series *named_at(const struct gpu *g, enum indexed kind, int id, int gi) {
    const struct named *n = g->named + g->first_of[kind];
    for (int i = 0; i < g->count_of[kind]; i++)
        if (n[i].id == id && n[i].gi == gi) return &n[i].at;
    return NULL;
}

bool number(const struct call *c, enum key key, double *out) {
    const struct point *p = at(&c->g->key[key], c->t_ns);
    if (!p || p->none || !p->count) return false;
    *out = p->v[0];
    return true;
}

bool whole(const struct call *c, enum key key, uint64_t *out) {
    double value;
    if (!number(c, key, &value)) return false;
    *out = value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    return true;
}

double number_or(const struct call *c, enum key key, double otherwise) {
    double value;
    return number(c, key, &value) ? value : otherwise;
}

const char *text_or(const struct gpu *g, enum key key, int64_t t_ns, const char *otherwise) {
    const struct point *p = at(&g->key[key], t_ns);
    return !p ? otherwise : p->none ? NULL : p->text;
}

__int128 integral(const struct series *s, int64_t t_ns) {
    const struct point *p = at(s, t_ns);
    if (!p) return 0;
    __int128 rate = p->none ? 0 : (__int128)llround(p->v[0] * 1000);
    return p->before + rate * (t_ns - p->t_ns);
}

uint64_t total_of(const struct series *s, int64_t t_ns) {
    return (uint64_t)(integral(s, t_ns) / 1000000000000);
}

/* `integrate [base mJ]`: since t=0; `restart`: since that line; `value <mJ>`: stands still. */
bool energy_mj(const struct call *c, uint64_t *out) {
    const struct point *p = at(&c->g->key[K_energy], c->t_ns);
    if (!p || p->none) return false;
    const struct series *power = &c->g->key[K_power_mw];
    if (!strncmp(p->text, "value", 5)) *out = (uint64_t)p->v[0];
    else if (!strncmp(p->text, "restart", 7))
        *out = (uint64_t)((integral(power, c->t_ns) - integral(power, p->t_ns)) / 1000000000000);
    else *out = (uint64_t)p->v[0] + total_of(power, c->t_ns);
    return true;
}

int instance_slots(const struct gpu *g) { return g->count_of[I_instance]; }

/* Slots keep their place when an instance goes, so that a hole stays a hole. */
const struct point *instance(const struct call *c, int slot, int *gi) {
    if (slot < 0 || slot >= instance_slots(c->g) || number_or(c, K_mig, 0) != 1) return NULL;
    const struct named *n = &c->g->named[c->g->first_of[I_instance] + slot];
    const struct point *p = at(&n->at, c->t_ns);
    if (!p || p->none) return NULL;
    if (gi) *gi = n->id;
    return p;
}
