/* Memory of a card or of a MIG instance, and its health: ECC, row remapping, retired pages. */
#include "standin.h"

struct memory { uint64_t total, free, used; };
struct memory_v2 { unsigned version; uint64_t total, reserved, free, used; };
struct amount { uint64_t total, reserved, used; };

/* An instance's memory in use is what its processes hold. */
static int amounts(const struct call *c, struct amount *out) {
    int gi;
    const struct point *part = instance(c, c->device->instance, &gi);
    *out = (struct amount){0};
    if (!part) {
        if (!whole(c, K_memory_total, &out->total) || !whole(c, K_memory_used, &out->used)) return NOT_SUPPORTED;
        whole(c, K_memory_reserved, &out->reserved);
        return OK;
    }
    out->total = (uint64_t)part->v[0] << 20;
    const struct point *list = at(&c->g->key[K_processes], c->t_ns);
    for (int i = 0; list && i < list->count; i++) {
        const struct process *one = (const struct process *)list->list + i;
        if (one->gi == (uint32_t)gi && one->bytes != NOT_AVAILABLE) out->used += one->bytes;
    }
    return OK;
}

API int nvmlDeviceGetMemoryInfo(Handle h, struct memory *out) {
    OPEN(nvmlDeviceGetMemoryInfo, h, ANY)
    struct amount a;
    if (!out) return INVALID_ARGUMENT;
    int failed = amounts(&c, &a);
    if (failed) return failed;
    *out = (struct memory){a.total, a.total - a.used - a.reserved, a.used + a.reserved};
    return OK;
}

API int nvmlDeviceGetMemoryInfo_v2(Handle h, struct memory_v2 *out) {
    OPEN(nvmlDeviceGetMemoryInfo_v2, h, ANY)
    struct amount a;
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 0x2000028) return ARGUMENT_VERSION_MISMATCH;
    int failed = amounts(&c, &a);
    if (failed) return failed;
    *out = (struct memory_v2){out->version, a.total, a.reserved, a.total - a.used - a.reserved, a.used};
    return OK;
}

API int nvmlDeviceGetBAR1MemoryInfo(Handle h, struct memory *out) {
    OPEN(nvmlDeviceGetBAR1MemoryInfo, h, ANY)
    uint64_t total, used = 0;
    if (!out) return INVALID_ARGUMENT;
    if (!whole(&c, K_bar1_total, &total)) return NOT_SUPPORTED;
    whole(&c, K_bar1_used, &used);
    *out = (struct memory){total, total - used, used};
    return OK;
}

API int nvmlDeviceGetConfComputeMemSizeInfo(Handle h, uint64_t out[2]) {
    OPEN(nvmlDeviceGetConfComputeMemSizeInfo, h, PHYSICAL)
    uint64_t total;
    if (!out) return INVALID_ARGUMENT;
    if (!whole(&c, K_memory_total, &total)) return NOT_SUPPORTED;
    out[0] = 0; /* protected */
    out[1] = total >> 10;
    return OK;
}

API int nvmlDeviceGetEccMode(Handle h, unsigned *now, unsigned *pending) {
    OPEN(nvmlDeviceGetEccMode, h, PHYSICAL)
    const struct point *p = at(&c.g->key[K_ecc_mode], c.t_ns);
    if (!now || !pending) return INVALID_ARGUMENT;
    if (!p || p->none) return NOT_SUPPORTED;
    *now = (unsigned)p->v[0];
    *pending = (unsigned)p->v[p->count > 1];
    return OK;
}

/* Two numbers a line: volatile, then aggregate (the same where it is left out). */
static int ecc(const struct call *c, unsigned uncorrected, unsigned aggregate, uint64_t *out) {
    if (!out || uncorrected > 1 || aggregate > 1) return INVALID_ARGUMENT;
    const struct point *p = at(&c->g->key[uncorrected ? K_ecc_uncorrected : K_ecc_corrected], c->t_ns);
    if (!p || p->none) return NOT_SUPPORTED;
    *out = (uint64_t)p->v[aggregate && p->count > 1];
    return OK;
}

API int nvmlDeviceGetTotalEccErrors(Handle h, unsigned uncorrected, unsigned aggregate, uint64_t *out) {
    OPEN(nvmlDeviceGetTotalEccErrors, h, PHYSICAL)
    return ecc(&c, uncorrected, aggregate, out);
}

/* A MIG instance answers only for uncorrectable volatile errors outside DRAM; all counted errors are DRAM's here. */
API int nvmlDeviceGetMemoryErrorCounter(Handle h, unsigned uncorrected, unsigned aggregate, unsigned location, uint64_t *out) {
    OPEN(nvmlDeviceGetMemoryErrorCounter, h, ANY)
    if (h->instance >= 0 && (!uncorrected || aggregate || location == 2)) return NOT_SUPPORTED;
    int failed = ecc(&c, uncorrected, aggregate, out);
    if (!failed && location != 2) *out = 0;
    return failed;
}

API int nvmlDeviceGetRemappedRows(Handle h, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failure) {
    OPEN(nvmlDeviceGetRemappedRows, h, PHYSICAL)
    const struct point *p = at(&c.g->key[K_remapped], c.t_ns);
    if (!corrected || !uncorrected || !pending || !failure) return INVALID_ARGUMENT;
    for (int slot = 0; slot < instance_slots(c.g); slot++)
        if (instance(&c, slot, NULL)) return NOT_SUPPORTED;
    if (!p || p->none) return NOT_SUPPORTED;
    *corrected = (unsigned)p->v[0];
    *uncorrected = (unsigned)p->v[1];
    *pending = (unsigned)p->v[2];
    *failure = (unsigned)p->v[3];
    return OK;
}

/* `retired_pages <single bit> <double bit> [pending]`; addresses are made up, one page apart. */
static int retired(const struct call *c, unsigned cause, unsigned *count, uint64_t *pages, uint64_t *stamps) {
    const struct point *p = at(&c->g->key[K_retired_pages], c->t_ns);
    if (!count || cause > 1) return INVALID_ARGUMENT;
    if (!p || p->none) return NOT_SUPPORTED;
    unsigned n = (unsigned)p->v[cause], room = *count;
    *count = n;
    if (!n) return OK;
    if (!pages || room < n) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        pages[i] = ((uint64_t)cause << 32) + i * 4096;
        if (stamps) stamps[i] = (uint64_t)(wall_of(p->t_ns) / 1000000000);
    }
    return OK;
}

API int nvmlDeviceGetRetiredPages(Handle h, unsigned cause, unsigned *count, uint64_t *pages) {
    OPEN(nvmlDeviceGetRetiredPages, h, PHYSICAL)
    return retired(&c, cause, count, pages, NULL);
}

API int nvmlDeviceGetRetiredPages_v2(Handle h, unsigned cause, unsigned *count, uint64_t *pages, uint64_t *stamps) {
    OPEN(nvmlDeviceGetRetiredPages_v2, h, PHYSICAL)
    return retired(&c, cause, count, pages, stamps);
}

API int nvmlDeviceGetRetiredPagesPendingStatus(Handle h, unsigned *pending) {
    OPEN(nvmlDeviceGetRetiredPagesPendingStatus, h, PHYSICAL)
    const struct point *p = at(&c.g->key[K_retired_pages], c.t_ns);
    if (!pending) return INVALID_ARGUMENT;
    return p && !p->none ? (*pending = (unsigned)p->v[2], OK) : NOT_SUPPORTED;
}
