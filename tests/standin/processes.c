/* Process lists in the layouts drivers have had, and the processes' use of a card. */
#include "standin.h"

#include <string.h>

struct info { uint32_t pid; uint64_t bytes; uint32_t gi, ci; };
/* 535.43 to 535.86 had a fifth member in the v3 list: 32 bytes a row where later readers expect 24. */
struct info_535 { struct info four; uint64_t protected_bytes; };
struct info_40 { struct info_535 five; uint64_t unknown; };

struct row { uint32_t pid; uint64_t bytes; uint32_t gi, ci; uint64_t protected_bytes; };
struct details { unsigned version, mode, count; struct row *rows; };

static bool listed(const struct call *c, const struct process *one, char list) {
    int gi;
    if (one->list != list) return false;
    if (c->device->instance < 0) return true;
    return instance(c, c->device->instance, &gi) && one->gi == (uint32_t)gi;
}

static const struct process *all(const struct call *c, int *n) {
    const struct point *p = at(&c->g->key[K_processes], c->t_ns);
    *n = p && !p->none ? p->count : 0;
    return *n ? p->list : NULL;
}

static int list(const struct call *c, char kind, unsigned stride, unsigned *count, char *out) {
    int total;
    const struct process *p = all(c, &total);
    if (!count) return INVALID_ARGUMENT;
    unsigned n = 0, room = *count;
    for (int i = 0; i < total; i++) n += listed(c, &p[i], kind);
    *count = n;
    if (!n) return OK;
    if (!out || room < n) return INSUFFICIENT_SIZE;
    for (int i = 0; i < total; i++) {
        if (!listed(c, &p[i], kind)) continue;
        struct info_40 row = {0};
        row.five.four = (struct info){p[i].pid, p[i].bytes, p[i].gi, p[i].gi == NO_INSTANCE ? NO_INSTANCE : 0};
        memcpy(out, &row, stride);
        out += stride;
    }
    return OK;
}

/* `layout 535`: five members, 32 bytes. `layout 40`: another stride that was seen. */
static unsigned stride_of(const struct call *c) {
    double layout = number_or(c, K_layout, 0);
    return layout == 535 ? sizeof(struct info_535) : layout == 40 ? sizeof(struct info_40) : sizeof(struct info);
}

#define LIST(function, kind, stride) \
    API int function(Handle h, unsigned *count, char *out) { \
        OPEN(function, h, ANY) \
        return list(&c, kind, stride, count, out); \
    }

LIST(nvmlDeviceGetComputeRunningProcesses_v2, 'c', sizeof(struct info))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g', sizeof(struct info))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'm', sizeof(struct info))
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'c', stride_of(&c))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g', stride_of(&c))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm', stride_of(&c))

API int nvmlDeviceGetRunningProcessDetailList(Handle h, struct details *out) {
    OPEN(nvmlDeviceGetRunningProcessDetailList, h, ANY)
    if (!out || out->mode > 2) return INVALID_ARGUMENT;
    if (out->version != 0x1000018) return ARGUMENT_VERSION_MISMATCH;
    if (number_or(&c, K_arch, 0) < 9) return NOT_SUPPORTED;
    int total;
    const struct process *p = all(&c, &total);
    unsigned n = 0, room = out->count;
    for (int i = 0; i < total; i++) n += listed(&c, &p[i], "cgm"[out->mode]);
    out->count = n;
    if (!n) return OK;
    if (!out->rows || room < n) return INSUFFICIENT_SIZE;
    struct row *row = out->rows;
    for (int i = 0; i < total; i++)
        if (listed(&c, &p[i], "cgm"[out->mode]))
            *row++ = (struct row){p[i].pid, p[i].bytes, p[i].gi, p[i].gi == NO_INSTANCE ? NO_INSTANCE : 0, 0};
    return OK;
}

struct use_row { uint32_t pid; uint64_t stamp_us; uint32_t share[4]; };
struct use_info { uint64_t stamp_us; uint32_t pid, share[6]; };
struct use_list { unsigned version, count; uint64_t last_seen_us; struct use_info *rows; };

#define ANNOUNCED 100 /* the size query says this whatever there is, as drivers do */

/* Rows newer than `last_seen_us`. Junk has a stale stamp and passes all the same, as it does in the field. */
static int rows(const struct call *c, uint64_t last_seen_us, struct use_info *out, unsigned room, unsigned *n) {
    const struct point *p = at(&c->g->key[K_process_util], c->t_ns);
    if (p && p->none) return NOT_SUPPORTED;
    *n = 0;
    if (p && p->text && !strcmp(p->text, "empty")) return OK;
    int64_t now_us = wall_ns() / 1000;
    for (int i = 0; p && i < p->count; i++) {
        const struct use *one = (const struct use *)p->list + i;
        uint64_t stamp_us = one->junk ? 1 : (uint64_t)(now_us - (int64_t)(one->age_s * 1e6));
        if (!one->junk && stamp_us <= last_seen_us) continue;
        if (*n == room) return INSUFFICIENT_SIZE;
        out[*n] = (struct use_info){.stamp_us = stamp_us, .pid = one->pid};
        memcpy(out[(*n)++].share, one->share, sizeof one->share);
    }
    return *n ? OK : NOT_FOUND;
}

API int nvmlDeviceGetProcessUtilization(Handle h, struct use_row *out, unsigned *count, uint64_t last_seen_us) {
    OPEN(nvmlDeviceGetProcessUtilization, h, WITHOUT_MIG)
    struct use_info found[ANNOUNCED];
    unsigned n = 0;
    if (!count) return INVALID_ARGUMENT;
    int failed = rows(&c, last_seen_us, found, ANNOUNCED, &n);
    if (failed || !n) return *count = 0, failed;
    if (!out) return *count = ANNOUNCED, INSUFFICIENT_SIZE;
    if (*count < n) return *count = n, INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        out[i] = (struct use_row){.pid = found[i].pid, .stamp_us = found[i].stamp_us};
        memcpy(out[i].share, found[i].share, sizeof out[i].share);
    }
    *count = n;
    return OK;
}

API int nvmlDeviceGetProcessesUtilizationInfo(Handle h, struct use_list *out) {
    OPEN(nvmlDeviceGetProcessesUtilizationInfo, h, WITHOUT_MIG)
    struct use_info found[ANNOUNCED];
    unsigned n = 0;
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 0x1000018) return ARGUMENT_VERSION_MISMATCH;
    int failed = rows(&c, out->last_seen_us, found, ANNOUNCED, &n);
    if (failed || !n) return out->count = 0, failed;
    if (!out->rows) return out->count = ANNOUNCED, INSUFFICIENT_SIZE;
    if (out->count < n) return out->count = n, INSUFFICIENT_SIZE;
    memcpy(out->rows, found, n * sizeof *found);
    out->count = n;
    return OK;
}
