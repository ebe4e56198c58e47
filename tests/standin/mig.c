/* MIG: the mode of a card, its instances in their slots, and what an instance is made of. */
#include "standin.h"

API int nvmlDeviceGetMigMode(Handle h, unsigned *now, unsigned *pending) {
    OPEN(nvmlDeviceGetMigMode, h, PHYSICAL)
    const struct point *p = at(&c.g->key[K_mig], c.t_ns);
    if (!now || !pending) return INVALID_ARGUMENT;
    if (!p || p->none) return NOT_SUPPORTED;
    *now = (unsigned)p->v[0];
    *pending = (unsigned)p->v[p->count > 1];
    return OK;
}

API int nvmlDeviceGetMaxMigDeviceCount(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetMaxMigDeviceCount, h, PHYSICAL)
    return out ? (*out = (unsigned)number_or(&c, K_max_mig, 7), OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(Handle h, unsigned index, Handle *out) {
    OPEN(nvmlDeviceGetMigDeviceHandleByIndex, h, PHYSICAL)
    if (!out || index >= number_or(&c, K_max_mig, 7)) return INVALID_ARGUMENT;
    if (!c.g->key[K_mig].n) return NOT_SUPPORTED;
    if (!instance(&c, (int)index, NULL)) return NOT_FOUND;
    *out = handle_of(c.index, (int)index);
    return OK;
}

API int nvmlDeviceIsMigDeviceHandle(Handle h, unsigned *out) {
    OPEN(nvmlDeviceIsMigDeviceHandle, h, ANY)
    return out ? (*out = h->instance >= 0, OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetGpuInstanceId(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetGpuInstanceId, h, INSTANCE_ONLY)
    int gi = 0;
    instance(&c, h->instance, &gi);
    return out ? (*out = (unsigned)gi, OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetComputeInstanceId(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetComputeInstanceId, h, INSTANCE_ONLY)
    return out ? (*out = 0, OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle h, Handle *out) {
    OPEN(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, h, INSTANCE_ONLY)
    return out ? (*out = handle_of(c.index, -1), OK) : INVALID_ARGUMENT;
}

struct attributes { unsigned sms, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices; uint64_t memory_mib; };

/* Slices follow from the share of memory: eighths of memory, sevenths of SMs. */
API int nvmlDeviceGetAttributes_v2(Handle h, struct attributes *out) {
    OPEN(nvmlDeviceGetAttributes_v2, h, INSTANCE_ONLY)
    const struct point *p = instance(&c, h->instance, NULL);
    double total = number_or(&c, K_memory_total, 0) / (1 << 20);
    if (!out || !p) return INVALID_ARGUMENT;
    unsigned eighths = total > 0 ? (unsigned)(p->v[0] / total * 8 + 0.5) : 1;
    unsigned slices = eighths < 1 ? 1 : eighths > 7 ? 7 : eighths == 4 && p->v[0] / total > 0.45 ? 3 : eighths;
    *out = (struct attributes){.sms = slices * 16, .copy = slices, .decoders = slices, .jpeg = slices,
                               .gpu_slices = slices, .compute_slices = slices, .memory_mib = (uint64_t)p->v[0]};
    return OK;
}
