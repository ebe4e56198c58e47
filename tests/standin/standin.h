/* The shared types of the stand-in for libnvidia-ml.so.1: a scenario in memory, and how a call enters. */
#ifndef GPUWISE_STANDIN_H
#define GPUWISE_STANDIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))
#define MAX_GPUS 64
#define MAX_INSTANCES 16
#define EVERYTHING MAX_GPUS /* the slot of calls that name no GPU */
#define NOT_AVAILABLE UINT64_MAX
#define NO_INSTANCE UINT32_MAX

enum { /* nvmlReturn_t */
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, MEMORY = 20, NO_DATA = 21,
    ARGUMENT_VERSION_MISMATCH = 25
};

/* Keys with up to four numbers. A key without a line is NOT_SUPPORTED, as on a card that lacks it. */
#define NUMBER_KEYS(X) \
    X(accounting) X(addressing) X(arch) X(bar1_total) X(bar1_used) X(cc_major) X(cc_minor) X(compute_mode) \
    X(decoder) X(ecc_corrected) X(ecc_mode) X(ecc_uncorrected) X(encoder) X(fan) X(gpm_supported) X(jpg) \
    X(layout) X(max_mem_clock) X(max_mig) X(max_sm_clock) X(mem_clock) X(memory_power_mw) X(memory_reserved) \
    X(memory_temperature) X(memory_total) X(memory_used) X(memory_utilization) X(mig) X(minor) \
    X(module_power_mw) X(nvlink_gen) X(nvlink_links) X(nvlink_rx) X(nvlink_tx) X(ofa) X(pci_device_id) \
    X(pcie_counter_rx) X(pcie_counter_tx) X(pcie_gen) X(pcie_max_gen) X(pcie_max_width) X(pcie_replay) \
    X(pcie_rx) X(pcie_tx) X(pcie_width) X(persistence) X(power_average_mw) X(power_default_mw) \
    X(power_enforced_mw) X(power_limit_mw) X(power_max_mw) X(power_min_mw) X(power_mw) X(present) X(pstate) \
    X(reasons) X(recovery_action) X(remapped) X(retired_pages) X(sm_clock) X(temperature) \
    X(temperature_margin) X(utilization) X(video_clock) X(virtualization)
#define TEXT_KEYS(X) X(energy) X(name) X(pci) X(process_util) X(processes) X(serial) X(uuid)

#define AS_ENUM(key) K_##key,
enum key { NUMBER_KEYS(AS_ENUM) K_numbers, K_before_text = K_numbers - 1, TEXT_KEYS(AS_ENUM) K_count };

/* Keys that carry an index after a colon, and for GPM an instance after an at sign. */
enum indexed { I_fail, I_hang, I_slow, I_field, I_reason_ns, I_gpm, I_instance, I_kinds };

struct process { uint32_t pid, gi; uint64_t bytes; char list; /* c, g, m */ };
struct use { uint32_t pid, share[6]; double age_s; bool junk; };

struct point {
    int64_t t_ns;
    int order; /* line in the file: at the same time the later line wins */
    int count;
    bool none;
    double v[4];
    const char *text;
    void *list; /* processes or uses, `count` of them */
    __int128 before; /* integral of v[0] from the first point, in 1e-12 units */
};
struct series { int n, room; struct point *p; };
struct named { enum indexed kind; int id, gi; struct series at; };

struct gpu {
    struct series key[K_count];
    struct series events; /* v[0] type mask, v[1] data */
    struct named *named;
    int nnamed, room;
    int first_of[I_kinds], count_of[I_kinds];
    bool scripted; /* any fail, hang or slow line */
};

struct scenario {
    int gpus, order;
    bool global_lock, enumerate_at_init;
    int64_t start_ns; /* wall clock; INT64_MIN: the first nvmlInit of this process */
    char driver[80], nvml[80];
    int cuda;
    struct gpu gpu[MAX_GPUS + 1];
    char **owned; /* copies of lines that texts point into */
    int nowned, room;
};

struct device { int index, instance; /* slot, or -1 */ };
typedef struct device *Handle;

/* One call under way. Its cleanup gives the driver lock back. */
struct call {
    struct scenario *s;
    struct gpu *g;
    Handle device;
    int64_t t_ns; /* on the scenario's clock */
    int index; /* GPU, or EVERYTHING */
    bool locked;
};

/* What a handle may be for a call. */
enum accepts { ANY, PHYSICAL, WITHOUT_MIG, INSTANCE_ONLY };

struct scenario *scenario_load(const char *path);
void scenario_free(struct scenario *s);
const struct point *at(const struct series *s, int64_t t_ns);
const struct series *named_at(const struct gpu *g, enum indexed kind, int id, int gi);
bool number(const struct call *c, enum key key, double *out);
bool whole(const struct call *c, enum key key, uint64_t *out);
double number_or(const struct call *c, enum key key, double otherwise);
const char *text_or(const struct gpu *g, enum key key, int64_t t_ns, const char *otherwise);
__int128 integral(const struct series *s, int64_t t_ns); /* of v[0] over seconds, in 1e-12 units */
bool energy_mj(const struct call *c, uint64_t *out);
uint64_t total_of(const struct series *s, int64_t t_ns); /* integral as a whole number */
int instance_slots(const struct gpu *g);
const struct point *instance(const struct call *c, int slot, int *gi);

struct scenario *tick(int64_t *t_ns);
int64_t wall_ns(void);
int64_t wall_of(int64_t t_ns);
int fault(struct call *c, int fn);
bool is_present(const struct scenario *s, int gpu, int64_t t_ns);
int enter(struct call *c, int fn, Handle h, enum accepts accepts);
int enter_for(struct call *c, int fn, int gpu);
void leave(struct call *c);
Handle handle_of(int gpu, int slot);
int position_of(const struct call *c, unsigned position);
int present_count(const struct call *c);
int copy_text(char *to, unsigned room, const char *text);
const char *function_name(int fn);
int function_id(const char *name);

#define OPEN(name, handle, accepts) \
    struct call c __attribute__((cleanup(leave))) = {0}; \
    { int refused = enter(&c, F_##name, handle, accepts); if (refused) return refused; }
#define OPEN_SYSTEM(name) \
    struct call c __attribute__((cleanup(leave))) = {0}; \
    { int refused = enter_for(&c, F_##name, EVERYTHING); if (refused) return refused; }

#include "functions.h"
#endif
