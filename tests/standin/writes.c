/* Calls that change a GPU. An agent must never make one: the process ends, and says which it was. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>

#define WRITES(X) \
    X(nvmlDeviceSetPersistenceMode) X(nvmlDeviceSetComputeMode) X(nvmlDeviceSetEccMode) \
    X(nvmlDeviceClearEccErrorCounts) X(nvmlDeviceSetAutoBoostedClocksEnabled) \
    X(nvmlDeviceSetDefaultAutoBoostedClocksEnabled) X(nvmlDeviceSetGpuLockedClocks) \
    X(nvmlDeviceResetGpuLockedClocks) X(nvmlDeviceSetMemoryLockedClocks) X(nvmlDeviceResetMemoryLockedClocks) \
    X(nvmlDeviceSetApplicationsClocks) X(nvmlDeviceResetApplicationsClocks) \
    X(nvmlDeviceSetPowerManagementLimit) X(nvmlDeviceSetPowerManagementLimit_v2) \
    X(nvmlDeviceSetGpuOperationMode) X(nvmlDeviceSetAccountingMode) X(nvmlDeviceClearAccountingPids) \
    X(nvmlDeviceSetAPIRestriction) X(nvmlDeviceFreezeNvLinkUtilizationCounter) \
    X(nvmlDeviceResetNvLinkUtilizationCounter) X(nvmlDeviceSetNvLinkUtilizationControl) \
    X(nvmlDeviceResetNvLinkErrorCounters) X(nvmlDeviceModifyDrainState) X(nvmlDeviceRemoveGpu) \
    X(nvmlDeviceDiscoverGpus) X(nvmlDeviceClearFieldValues) X(nvmlDeviceSetVirtualizationMode) \
    X(nvmlDeviceSetVgpuHeterogeneousMode) X(nvmlDeviceSetVgpuCapabilities) X(nvmlDeviceSetVgpuSchedulerState) \
    X(nvmlDeviceSetMigMode) X(nvmlDeviceCreateGpuInstance) X(nvmlDeviceCreateGpuInstanceWithPlacement) \
    X(nvmlGpuInstanceDestroy) X(nvmlGpuInstanceCreateComputeInstanceWithPlacement) \
    X(nvmlDeviceSetDriverModel) X(nvmlDeviceSetPowerMizerMode_v1) X(nvmlGpuInstanceCreateComputeInstance) X(nvmlComputeInstanceDestroy) \
    X(nvmlDeviceSetFanSpeed_v2) X(nvmlDeviceSetDefaultFanSpeed_v2) X(nvmlDeviceSetFanControlPolicy) \
    X(nvmlDeviceSetTemperatureThreshold) X(nvmlDeviceSetClockOffsets) X(nvmlDeviceSetGpcClkVfOffset) \
    X(nvmlDeviceSetMemClkVfOffset) X(nvmlDeviceSetCpuAffinity) X(nvmlDeviceClearCpuAffinity) \
    X(nvmlSystemSetConfComputeGpusReadyState) X(nvmlDeviceSetConfComputeUnprotectedMemSize) \
    X(nvmlSystemSetConfComputeKeyRotationThresholdInfo) X(nvmlGpmSetStreamingEnabled) \
    X(nvmlDeviceSetNvLinkDeviceLowPowerThreshold) X(nvmlSystemSetNvlinkBwMode) X(nvmlDeviceSetNvlinkBwMode) \
    X(nvmlDevicePowerSmoothingSetState) X(nvmlDeviceSetDramEncryptionMode) X(nvmlDeviceSetHostname_v1)

#define AS_WRITE(name) \
    API int name(void) { \
        fputs("stand-in libnvidia-ml: " #name " changes a GPU; an agent only reads\n", stderr); \
        abort(); \
    }

WRITES(AS_WRITE)
