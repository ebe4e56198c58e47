/* The batch door (nvmlDeviceGetFieldValues) and the driver's sample buffers. */
#include "standin.h"

#include <string.h>

enum { DOUBLE, UINT, ULONG, ULONGLONG, LONGLONG, INT, USHORT }; /* nvmlValueType_t */
union value { double d; unsigned u; uint64_t ull; int64_t sll; int i; unsigned short us; };
struct entry { uint32_t id, scope; int64_t stamp_us, latency_us; int type, ret; union value value; };

#define ALL_LINKS UINT32_MAX

static int put(struct entry *e, int type, double value) {
    e->type = type;
    e->value.ull = 0;
    switch (type) {
    case DOUBLE: e->value.d = value; break;
    case UINT: e->value.u = (unsigned)value; break;
    case LONGLONG: e->value.sll = (int64_t)value; break;
    case INT: e->value.i = (int)value; break;
    case USHORT: e->value.us = (unsigned short)value; break;
    default: e->value.ull = (uint64_t)value;
    }
    return OK;
}

static int put_ull(struct entry *e, uint64_t value) {
    e->type = ULONGLONG;
    e->value.ull = value;
    return OK;
}

static int plain(const struct call *c, struct entry *e, enum key key) {
    double value;
    return number(c, key, &value) ? put(e, value < 0 ? INT : UINT, value) : NOT_SUPPORTED;
}

/* One of the numbers of a line, as one count. */
static int part(const struct call *c, struct entry *e, enum key key, int which) {
    const struct point *p = at(&c->g->key[key], c->t_ns);
    if (!p || p->none) return NOT_SUPPORTED;
    return put_ull(e, (uint64_t)p->v[which < p->count ? which : which < 2 ? 0 : 3]);
}

/* Up to NVLink 4 a sum over links exists (KiB, fields 138-141); from 5 on bytes, link by link (202, 204). */
static int nvlink(const struct call *c, struct entry *e, enum key key, bool per_link_bytes) {
    const struct series *rate = &c->g->key[key];
    const struct point *p = at(rate, c->t_ns);
    unsigned links = (unsigned)number_or(c, K_nvlink_links, 0);
    if (!p || p->none || !links || per_link_bytes != (number_or(c, K_nvlink_gen, 4) >= 5)) return NOT_SUPPORTED;
    uint64_t kib = total_of(rate, c->t_ns);
    if (e->scope != ALL_LINKS && e->scope >= links) return INVALID_ARGUMENT;
    if (per_link_bytes) return e->scope == ALL_LINKS ? INVALID_ARGUMENT : put_ull(e, (kib << 10) / links);
    return put_ull(e, e->scope == ALL_LINKS ? kib : kib / links);
}

/* Documented as wrapping; the values seen fit in 32 bits. */
static int pcie_bytes(const struct call *c, struct entry *e, enum key key) {
    const struct point *p = at(&c->g->key[key], c->t_ns);
    return p && !p->none ? put_ull(e, total_of(&c->g->key[key], c->t_ns) & UINT32_MAX) : NOT_SUPPORTED;
}

static int power(const struct call *c, struct entry *e, bool average) {
    if (e->scope == 1) return plain(c, e, K_module_power_mw);
    if (e->scope == 2) return average ? plain(c, e, K_memory_power_mw) : NOT_SUPPORTED;
    return plain(c, e, average && c->g->key[K_power_average_mw].n ? K_power_average_mw : K_power_mw);
}

static int energy(const struct call *c, struct entry *e) {
    uint64_t mj;
    return e->scope == 0 && energy_mj(c, &mj) ? put_ull(e, mj) : NOT_SUPPORTED;
}

static int overridden(struct entry *e, const struct point *p) {
    if (p->text[0] == 'r') return (int)p->v[0];
    double value = p->v[0];
    if (p->count == 2) return put(e, (int)p->v[1], value);
    if (value != (double)(int64_t)value) return put(e, DOUBLE, value);
    return put(e, value < 0 ? INT : value > UINT32_MAX ? ULONGLONG : UINT, value);
}

static int fill(const struct call *c, struct entry *e) {
    const struct series *own = named_at(c->g, I_field, (int)e->id, -1);
    const struct point *p = own ? at(own, c->t_ns) : NULL;
    if (p && !p->none) return overridden(e, p);
    own = named_at(c->g, I_reason_ns, (int)e->id, -1);
    p = own ? at(own, c->t_ns) : NULL;
    if (p) return p->none ? NOT_SUPPORTED : put_ull(e, total_of(own, c->t_ns));
    switch (e->id) {
    case 1: return part(c, e, K_ecc_mode, 0);
    case 2: return part(c, e, K_ecc_mode, 1);
    case 3: return part(c, e, K_ecc_corrected, 0);
    case 4: return part(c, e, K_ecc_uncorrected, 0);
    case 5: return part(c, e, K_ecc_corrected, 1);
    case 6: return part(c, e, K_ecc_uncorrected, 1);
    case 29: return part(c, e, K_retired_pages, 0);
    case 30: return part(c, e, K_retired_pages, 1);
    case 31: return part(c, e, K_retired_pages, 2);
    case 82: return plain(c, e, K_memory_temperature);
    case 83: case 191: return energy(c, e);
    case 91: return plain(c, e, K_nvlink_links);
    case 94: return plain(c, e, K_pcie_replay);
    case 138: case 140: return nvlink(c, e, K_nvlink_tx, false);
    case 139: case 141: return nvlink(c, e, K_nvlink_rx, false);
    case 142: case 143: case 144: case 145: return part(c, e, K_remapped, (int)e->id - 142);
    case 185: return power(c, e, true);
    case 186: return power(c, e, false);
    case 187: return e->scope == 0 ? plain(c, e, K_power_min_mw) : NOT_SUPPORTED;
    case 188: return e->scope == 0 ? plain(c, e, K_power_max_mw) : NOT_SUPPORTED;
    case 189: return e->scope == 0 ? plain(c, e, K_power_default_mw) : NOT_SUPPORTED;
    case 190: case 192: return e->scope == 0 ? plain(c, e, K_power_limit_mw) : NOT_SUPPORTED;
    case 197: return pcie_bytes(c, e, K_pcie_counter_tx);
    case 198: return pcie_bytes(c, e, K_pcie_counter_rx);
    case 202: return nvlink(c, e, K_nvlink_tx, true);
    case 204: return nvlink(c, e, K_nvlink_rx, true);
    case 230: return plain(c, e, K_recovery_action);
    default: return NOT_SUPPORTED;
    }
}

API int nvmlDeviceGetFieldValues(Handle h, int count, struct entry *entries) {
    OPEN(nvmlDeviceGetFieldValues, h, PHYSICAL)
    if (!entries || count <= 0) return INVALID_ARGUMENT;
    int64_t now_us = wall_ns() / 1000;
    bool any = false;
    for (int i = 0; i < count; i++) {
        struct entry *e = &entries[i];
        e->stamp_us = now_us;
        e->latency_us = 1;
        e->type = UINT;
        e->value.ull = 0; /* a failed entry looks like a true 0: only nvmlReturn tells */
        e->ret = fill(&c, e);
        any |= e->ret == OK;
    }
    return any ? OK : entries[0].ret;
}

struct sample { uint64_t stamp_us; union value value; };

#define DEPTH 120
#define PERIOD_NS 100000000

/* A grid of 100 ms on the scenario's clock, 120 deep. The size query announces the depth, the fill has what there is. */
API int nvmlDeviceGetSamples(Handle h, unsigned type, uint64_t last_seen_us, unsigned *value_type, unsigned *count,
                             struct sample *out) {
    static const enum key KEYS[] = {
        K_power_mw, K_utilization, K_memory_utilization, K_encoder, K_decoder, K_sm_clock,
        K_mem_clock, K_module_power_mw, K_jpg, K_ofa,
    };
    OPEN(nvmlDeviceGetSamples, h, PHYSICAL)
    if (type >= sizeof KEYS / sizeof *KEYS || !value_type || !count) return INVALID_ARGUMENT;
    bool usage = (type >= 1 && type <= 4) || type >= 8;
    if (usage && number_or(&c, K_mig, 0) == 1) return NOT_SUPPORTED;
    const struct series *s = &c.g->key[KEYS[type]];
    if (!s->n) return NOT_SUPPORTED;
    *value_type = UINT;
    if (!out) return *count = DEPTH, OK;
    unsigned n = 0, room = *count;
    int64_t newest = c.t_ns / PERIOD_NS;
    for (int64_t i = newest >= DEPTH ? newest - DEPTH + 1 : 0; i <= newest && n < room; i++) {
        const struct point *p = at(s, i * PERIOD_NS);
        uint64_t stamp_us = (uint64_t)(wall_of(i * PERIOD_NS) / 1000);
        if (!p || p->none || stamp_us <= last_seen_us) continue;
        out[n].stamp_us = stamp_us;
        out[n++].value = (union value){.ull = (uint64_t)p->v[0]};
    }
    *count = n;
    return n ? OK : NOT_FOUND;
}
