/* Which GPUs there are, and what each of them is. */
#include "standin.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };

static const char *pci_of(const struct call *c, int gpu, char room[32]) {
    const char *text = text_or(&c->s->gpu[gpu], K_pci, c->t_ns, NULL);
    if (text) return text;
    snprintf(room, 32, "00000000:%02X:00.0", gpu + 1);
    return room;
}

static const char *uuid_of(const struct call *c, int gpu, char room[48]) {
    const char *text = text_or(&c->s->gpu[gpu], K_uuid, c->t_ns, NULL);
    if (text) return text;
    snprintf(room, 48, "GPU-00000000-0000-4000-8000-%012d", gpu);
    return room;
}

/* A lookup fails like any other call of that GPU: on a lost card it is the first that does. */
static int found(struct call *c, int fn, int gpu, int slot, Handle *out) {
    c->index = gpu;
    c->g = &c->s->gpu[gpu];
    int failed = fault(c, fn);
    if (failed) return failed;
    *out = handle_of(gpu, slot);
    return OK;
}

API int nvmlDeviceGetCount_v2(unsigned *count) {
    OPEN_SYSTEM(nvmlDeviceGetCount_v2)
    return count ? (*count = (unsigned)present_count(&c), OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle *out) {
    OPEN_SYSTEM(nvmlDeviceGetHandleByIndex_v2)
    if (!out || index >= (unsigned)c.s->gpus) return INVALID_ARGUMENT;
    int gpu = position_of(&c, index);
    return gpu < 0 ? NOT_FOUND : found(&c, F_nvmlDeviceGetHandleByIndex_v2, gpu, -1, out);
}

API int nvmlDeviceGetHandleByUUID(const char *uuid, Handle *out) {
    OPEN_SYSTEM(nvmlDeviceGetHandleByUUID)
    if (!uuid || !out) return INVALID_ARGUMENT;
    char room[48];
    for (int gpu = 0; gpu < c.s->gpus; gpu++) {
        if (!is_present(c.s, gpu, c.t_ns)) continue;
        if (!strcmp(uuid_of(&c, gpu, room), uuid)) return found(&c, F_nvmlDeviceGetHandleByUUID, gpu, -1, out);
        c.g = &c.s->gpu[gpu];
        for (int slot = 0; slot < instance_slots(c.g); slot++) {
            const struct point *p = instance(&c, slot, NULL);
            if (p && !strcmp(p->text, uuid)) return found(&c, F_nvmlDeviceGetHandleByUUID, gpu, slot, out);
        }
    }
    return NOT_FOUND;
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Handle *out) {
    OPEN_SYSTEM(nvmlDeviceGetHandleByPciBusId_v2)
    if (!bus_id || !out) return INVALID_ARGUMENT;
    char room[32];
    for (int gpu = 0; gpu < c.s->gpus; gpu++) {
        const char *own = pci_of(&c, gpu, room);
        bool same = !strcasecmp(own, bus_id) || (strlen(own) > 4 && !strcasecmp(own + 4, bus_id));
        if (same && is_present(c.s, gpu, c.t_ns)) return found(&c, F_nvmlDeviceGetHandleByPciBusId_v2, gpu, -1, out);
    }
    return NOT_FOUND;
}

API int nvmlDeviceGetName(Handle h, char *to, unsigned room) {
    OPEN(nvmlDeviceGetName, h, ANY)
    const char *name = text_or(c.g, K_name, c.t_ns, "NVIDIA H100 80GB HBM3");
    const struct point *part = name ? instance(&c, h->instance, NULL) : NULL;
    if (!part) return copy_text(to, room, name);
    char whole[128];
    snprintf(whole, sizeof whole, "%.96s MIG %dgb", name, (int)(part->v[0] / 1024 + 0.5));
    return copy_text(to, room, whole);
}

API int nvmlDeviceGetUUID(Handle h, char *to, unsigned room) {
    OPEN(nvmlDeviceGetUUID, h, ANY)
    char own[48];
    const struct point *part = instance(&c, h->instance, NULL);
    return copy_text(to, room, part ? part->text : uuid_of(&c, c.index, own));
}

API int nvmlDeviceGetSerial(Handle h, char *to, unsigned room) {
    OPEN(nvmlDeviceGetSerial, h, PHYSICAL)
    return copy_text(to, room, text_or(c.g, K_serial, c.t_ns, NULL));
}

API int nvmlDeviceGetPciInfo_v3(Handle h, struct pci *out) {
    OPEN(nvmlDeviceGetPciInfo_v3, h, PHYSICAL)
    if (!out) return INVALID_ARGUMENT;
    char room[32];
    *out = (struct pci){.id = (unsigned)number_or(&c, K_pci_device_id, 0x233010DE), .subsystem = 0x16C110DE};
    snprintf(out->bus_id, sizeof out->bus_id, "%s", pci_of(&c, c.index, room));
    sscanf(out->bus_id, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff, out->device & 0xff);
    return OK;
}

API int nvmlDeviceGetIndex(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetIndex, h, PHYSICAL)
    for (int i = 0; out && i < c.s->gpus; i++)
        if (position_of(&c, (unsigned)i) == c.index) return *out = (unsigned)i, OK;
    return INVALID_ARGUMENT;
}

API int nvmlDeviceGetMinorNumber(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetMinorNumber, h, PHYSICAL)
    return out ? (*out = (unsigned)number_or(&c, K_minor, c.index), OK) : INVALID_ARGUMENT;
}
