"""What drivers of an age lack: symbols and field ids, with the first release that has them.

Source: the tables of the binding's releases and of the header; the agent must live with each absence.
"""

from typing import Final

SYMBOL_SINCE: Final = {
    "nvmlDeviceGetMemoryInfo_v2": "510",
    "nvmlDeviceGetComputeRunningProcesses_v3": "510",
    "nvmlDeviceGetGraphicsRunningProcesses_v3": "510",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": "510",
    "nvmlGpmQueryDeviceSupport": "525",
    "nvmlGpmSampleAlloc": "525",
    "nvmlGpmSampleFree": "525",
    "nvmlGpmSampleGet": "525",
    "nvmlGpmMigSampleGet": "525",
    "nvmlGpmMetricsGet": "525",
    "nvmlDeviceGetCurrentClocksEventReasons": "535",
    "nvmlDeviceGetJpgUtilization": "535",
    "nvmlDeviceGetOfaUtilization": "535",
    "nvmlDeviceGetConfComputeMemSizeInfo": "535",
    "nvmlDeviceGetRunningProcessDetailList": "535.104",
    "nvmlDeviceGetProcessesUtilizationInfo": "550",
    "nvmlDeviceGetTemperatureV": "570",
    "nvmlDeviceGetMarginTemperature": "570",
    "nvmlDeviceGetAddressingMode": "580",
}
FIELD_SINCE: Final = {
    **dict.fromkeys(range(185, 197), "525"),
    **dict.fromkeys((197, 198), "555"),
    **dict.fromkeys(range(201, 206), "560"),
    230: "570",
    **dict.fromkeys((269, 270, 271), "575"),
}


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def missing_symbols(driver: str) -> tuple[str, ...]:
    """Name the functions a library of this driver does not export; 535.98 had dropped the v3 process lists."""
    own = _number(driver)
    missing = [name for name, since in SYMBOL_SINCE.items() if own < _number(since)]
    if (535, 98) <= own < (535, 104):
        missing += [name for name in SYMBOL_SINCE if name.endswith("RunningProcesses_v3")]
    return tuple(missing)


def missing_fields(driver: str) -> tuple[int, ...]:
    """Name the field ids this driver does not know: their entries fail, the others are answered."""
    own = _number(driver)
    return tuple(field for field, since in FIELD_SINCE.items() if own < _number(since))


def has_wide_process_rows(driver: str) -> bool:
    """Whether the v3 process lists have a fifth member (32 bytes a row): 535.43 up to 535.86."""
    return (535, 43) <= _number(driver) < (535, 98)
