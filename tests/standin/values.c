/* Calls that give one, two or a few numbers of one GPU. */
#include "standin.h"

static int give(const struct call *c, enum key key, unsigned *out) {
    uint64_t value;
    if (!out) return INVALID_ARGUMENT;
    if (!whole(c, key, &value)) return NOT_SUPPORTED;
    *out = (unsigned)value;
    return OK;
}

#define ONE(function, key, accepts) \
    API int function(Handle h, unsigned *out) { \
        OPEN(function, h, accepts) \
        return give(&c, K_##key, out); \
    }

ONE(nvmlDeviceGetArchitecture, arch, ANY)
ONE(nvmlDeviceGetPowerUsage, power_mw, PHYSICAL)
ONE(nvmlDeviceGetPowerManagementLimit, power_limit_mw, PHYSICAL)
ONE(nvmlDeviceGetPowerManagementDefaultLimit, power_default_mw, PHYSICAL)
ONE(nvmlDeviceGetPerformanceState, pstate, PHYSICAL)
ONE(nvmlDeviceGetPcieReplayCounter, pcie_replay, PHYSICAL)
ONE(nvmlDeviceGetCurrPcieLinkGeneration, pcie_gen, PHYSICAL)
ONE(nvmlDeviceGetCurrPcieLinkWidth, pcie_width, PHYSICAL)
ONE(nvmlDeviceGetMaxPcieLinkGeneration, pcie_max_gen, PHYSICAL)
ONE(nvmlDeviceGetMaxPcieLinkWidth, pcie_max_width, PHYSICAL)
ONE(nvmlDeviceGetPersistenceMode, persistence, PHYSICAL)
ONE(nvmlDeviceGetComputeMode, compute_mode, PHYSICAL)
ONE(nvmlDeviceGetAccountingMode, accounting, WITHOUT_MIG)
ONE(nvmlDeviceGetVirtualizationMode, virtualization, PHYSICAL)

API int nvmlDeviceGetEnforcedPowerLimit(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetEnforcedPowerLimit, h, PHYSICAL)
    return give(&c, c.g->key[K_power_enforced_mw].n ? K_power_enforced_mw : K_power_limit_mw, out);
}

API int nvmlDeviceGetCudaComputeCapability(Handle h, int *major, int *minor) {
    OPEN(nvmlDeviceGetCudaComputeCapability, h, ANY)
    int failed = give(&c, K_cc_major, (unsigned *)major);
    return failed ? failed : give(&c, K_cc_minor, (unsigned *)minor);
}

API int nvmlDeviceGetPowerManagementLimitConstraints(Handle h, unsigned *least, unsigned *most) {
    OPEN(nvmlDeviceGetPowerManagementLimitConstraints, h, PHYSICAL)
    int failed = give(&c, K_power_min_mw, least);
    return failed ? failed : give(&c, K_power_max_mw, most);
}

API int nvmlDeviceGetTotalEnergyConsumption(Handle h, uint64_t *out) {
    OPEN(nvmlDeviceGetTotalEnergyConsumption, h, PHYSICAL)
    if (!out) return INVALID_ARGUMENT;
    return energy_mj(&c, out) ? OK : NOT_SUPPORTED;
}

struct rates { unsigned gpu, memory; };

API int nvmlDeviceGetUtilizationRates(Handle h, struct rates *out) {
    OPEN(nvmlDeviceGetUtilizationRates, h, WITHOUT_MIG)
    if (!out) return INVALID_ARGUMENT;
    int failed = give(&c, K_utilization, &out->gpu);
    return failed ? failed : give(&c, K_memory_utilization, &out->memory);
}

static int engine(const struct call *c, enum key key, unsigned *percent, unsigned *period_us) {
    if (!period_us) return INVALID_ARGUMENT;
    *period_us = 167000;
    return give(c, key, percent);
}

#define ENGINE(function, key) \
    API int function(Handle h, unsigned *percent, unsigned *period_us) { \
        OPEN(function, h, WITHOUT_MIG) \
        return engine(&c, K_##key, percent, period_us); \
    }

ENGINE(nvmlDeviceGetEncoderUtilization, encoder)
ENGINE(nvmlDeviceGetDecoderUtilization, decoder)
ENGINE(nvmlDeviceGetJpgUtilization, jpg)
ENGINE(nvmlDeviceGetOfaUtilization, ofa)

/* graphics, SM, memory, video */
static int clock_mhz(const struct call *c, unsigned type, unsigned *out) {
    static const enum key NOW[] = {K_sm_clock, K_sm_clock, K_mem_clock, K_video_clock};
    return type < 4 ? give(c, NOW[type], out) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetClockInfo(Handle h, unsigned type, unsigned *out) {
    OPEN(nvmlDeviceGetClockInfo, h, PHYSICAL)
    return clock_mhz(&c, type, out);
}

API int nvmlDeviceGetClock(Handle h, unsigned type, unsigned id, unsigned *out) {
    OPEN(nvmlDeviceGetClock, h, PHYSICAL)
    return id == 0 ? clock_mhz(&c, type, out) : NOT_SUPPORTED;
}

API int nvmlDeviceGetMaxClockInfo(Handle h, unsigned type, unsigned *out) {
    OPEN(nvmlDeviceGetMaxClockInfo, h, PHYSICAL)
    static const enum key MOST[] = {K_max_sm_clock, K_max_sm_clock, K_max_mem_clock, K_video_clock};
    return type < 4 ? give(&c, MOST[type], out) : INVALID_ARGUMENT;
}

static int reasons(const struct call *c, uint64_t *out) {
    if (!out) return INVALID_ARGUMENT;
    return whole(c, K_reasons, out) ? OK : NOT_SUPPORTED;
}

API int nvmlDeviceGetCurrentClocksEventReasons(Handle h, uint64_t *out) {
    OPEN(nvmlDeviceGetCurrentClocksEventReasons, h, PHYSICAL)
    return reasons(&c, out);
}

API int nvmlDeviceGetCurrentClocksThrottleReasons(Handle h, uint64_t *out) {
    OPEN(nvmlDeviceGetCurrentClocksThrottleReasons, h, PHYSICAL)
    return reasons(&c, out);
}

struct versioned { unsigned version; int value; };
struct thermometer { unsigned version, sensor; int degrees_c; };

API int nvmlDeviceGetTemperatureV(Handle h, struct thermometer *out) {
    OPEN(nvmlDeviceGetTemperatureV, h, PHYSICAL)
    if (!out || out->sensor != 0) return INVALID_ARGUMENT;
    if (out->version != 0x100000C) return ARGUMENT_VERSION_MISMATCH;
    return give(&c, K_temperature, (unsigned *)&out->degrees_c);
}

API int nvmlDeviceGetTemperature(Handle h, unsigned sensor, unsigned *out) {
    OPEN(nvmlDeviceGetTemperature, h, PHYSICAL)
    return sensor == 0 ? give(&c, K_temperature, out) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetMarginTemperature(Handle h, struct versioned *out) {
    OPEN(nvmlDeviceGetMarginTemperature, h, PHYSICAL)
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 0x1000008) return ARGUMENT_VERSION_MISMATCH;
    return give(&c, K_temperature_margin, (unsigned *)&out->value);
}

API int nvmlDeviceGetAddressingMode(Handle h, struct versioned *out) {
    OPEN(nvmlDeviceGetAddressingMode, h, PHYSICAL)
    if (!out) return INVALID_ARGUMENT;
    if (out->version != 0x1000008) return ARGUMENT_VERSION_MISMATCH;
    return give(&c, K_addressing, (unsigned *)&out->value);
}

/* `fan` has one percentage a fan; a passive board has no line. */
static int fans(const struct call *c, const struct point **p) {
    *p = at(&c->g->key[K_fan], c->t_ns);
    return *p && !(*p)->none ? (*p)->count : 0;
}

API int nvmlDeviceGetNumFans(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetNumFans, h, PHYSICAL)
    const struct point *p;
    return out ? (*out = (unsigned)fans(&c, &p), OK) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetFanSpeed_v2(Handle h, unsigned fan, unsigned *out) {
    OPEN(nvmlDeviceGetFanSpeed_v2, h, PHYSICAL)
    const struct point *p;
    int n = fans(&c, &p);
    if (!out || (n && fan >= (unsigned)n)) return INVALID_ARGUMENT;
    return n ? (*out = (unsigned)p->v[fan], OK) : NOT_SUPPORTED;
}

API int nvmlDeviceGetFanSpeed(Handle h, unsigned *out) {
    OPEN(nvmlDeviceGetFanSpeed, h, PHYSICAL)
    return give(&c, K_fan, out);
}

API int nvmlDeviceGetPcieThroughput(Handle h, unsigned counter, unsigned *out) {
    OPEN(nvmlDeviceGetPcieThroughput, h, PHYSICAL)
    return counter < 2 ? give(&c, counter ? K_pcie_rx : K_pcie_tx, out) : INVALID_ARGUMENT;
}

API int nvmlDeviceGetNvLinkState(Handle h, unsigned link, unsigned *out) {
    OPEN(nvmlDeviceGetNvLinkState, h, PHYSICAL)
    double links;
    if (!number(&c, K_nvlink_links, &links)) return NOT_SUPPORTED;
    return out && link < links ? (*out = 1, OK) : INVALID_ARGUMENT;
}
