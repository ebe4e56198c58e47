/* Every function that reads, by the name an agent's binding asks for. The number is also its row in the counts. */
#define FUNCTIONS(X) \
    X(nvmlInit_v2) X(nvmlInitWithFlags) X(nvmlShutdown) X(nvmlErrorString) \
    X(nvmlSystemGetDriverVersion) X(nvmlSystemGetNVMLVersion) \
    X(nvmlSystemGetCudaDriverVersion) X(nvmlSystemGetCudaDriverVersion_v2) \
    X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2) X(nvmlDeviceGetHandleByUUID) \
    X(nvmlDeviceGetHandleByPciBusId_v2) X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) X(nvmlDeviceGetSerial) \
    X(nvmlDeviceGetPciInfo_v3) X(nvmlDeviceGetIndex) X(nvmlDeviceGetMinorNumber) X(nvmlDeviceGetArchitecture) \
    X(nvmlDeviceGetCudaComputeCapability) X(nvmlDeviceGetMemoryInfo) X(nvmlDeviceGetMemoryInfo_v2) \
    X(nvmlDeviceGetBAR1MemoryInfo) X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetPowerUsage) \
    X(nvmlDeviceGetTotalEnergyConsumption) X(nvmlDeviceGetEnforcedPowerLimit) \
    X(nvmlDeviceGetPowerManagementLimit) X(nvmlDeviceGetPowerManagementDefaultLimit) \
    X(nvmlDeviceGetPowerManagementLimitConstraints) X(nvmlDeviceGetClockInfo) X(nvmlDeviceGetMaxClockInfo) \
    X(nvmlDeviceGetClock) X(nvmlDeviceGetPerformanceState) X(nvmlDeviceGetCurrentClocksEventReasons) \
    X(nvmlDeviceGetCurrentClocksThrottleReasons) X(nvmlDeviceGetFieldValues) X(nvmlDeviceGetTemperatureV) \
    X(nvmlDeviceGetTemperature) X(nvmlDeviceGetMarginTemperature) X(nvmlDeviceGetNumFans) \
    X(nvmlDeviceGetFanSpeed) X(nvmlDeviceGetFanSpeed_v2) X(nvmlDeviceGetEncoderUtilization) \
    X(nvmlDeviceGetDecoderUtilization) X(nvmlDeviceGetJpgUtilization) X(nvmlDeviceGetOfaUtilization) \
    X(nvmlDeviceGetPcieThroughput) X(nvmlDeviceGetPcieReplayCounter) X(nvmlDeviceGetCurrPcieLinkGeneration) \
    X(nvmlDeviceGetCurrPcieLinkWidth) X(nvmlDeviceGetMaxPcieLinkGeneration) X(nvmlDeviceGetMaxPcieLinkWidth) \
    X(nvmlDeviceGetNvLinkState) X(nvmlDeviceGetEccMode) X(nvmlDeviceGetTotalEccErrors) \
    X(nvmlDeviceGetMemoryErrorCounter) X(nvmlDeviceGetRetiredPages) X(nvmlDeviceGetRetiredPages_v2) \
    X(nvmlDeviceGetRetiredPagesPendingStatus) X(nvmlDeviceGetRemappedRows) X(nvmlDeviceGetPersistenceMode) \
    X(nvmlDeviceGetComputeMode) X(nvmlDeviceGetAccountingMode) X(nvmlDeviceGetVirtualizationMode) \
    X(nvmlDeviceGetAddressingMode) X(nvmlDeviceGetConfComputeMemSizeInfo) X(nvmlDeviceGetMigMode) \
    X(nvmlDeviceGetMaxMigDeviceCount) X(nvmlDeviceGetMigDeviceHandleByIndex) X(nvmlDeviceIsMigDeviceHandle) \
    X(nvmlDeviceGetGpuInstanceId) X(nvmlDeviceGetComputeInstanceId) X(nvmlDeviceGetAttributes_v2) \
    X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) X(nvmlDeviceGetComputeRunningProcesses_v2) \
    X(nvmlDeviceGetComputeRunningProcesses_v3) X(nvmlDeviceGetGraphicsRunningProcesses_v2) \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3) X(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3) X(nvmlDeviceGetRunningProcessDetailList) \
    X(nvmlDeviceGetProcessUtilization) X(nvmlDeviceGetProcessesUtilizationInfo) X(nvmlDeviceGetSamples) \
    X(nvmlEventSetCreate) X(nvmlDeviceRegisterEvents) X(nvmlDeviceGetSupportedEventTypes) \
    X(nvmlEventSetWait) X(nvmlEventSetWait_v2) X(nvmlEventSetFree) X(nvmlGpmQueryDeviceSupport) \
    X(nvmlGpmSampleAlloc) X(nvmlGpmSampleFree) X(nvmlGpmSampleGet) X(nvmlGpmMigSampleGet) \
    X(nvmlGpmMetricsGet)

#define AS_FUNCTION(name) F_##name,
enum function { FUNCTIONS(AS_FUNCTION) F_count, F_every = F_count };
