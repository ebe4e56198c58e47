"""Profiling counters of Hopper and newer: means over the time between two samples, per GPU or MIG instance.

Whether they are there is found out by taking two samples: the driver's support flag is not enough (vGPU guests,
containers). A failure after that is not for ever either: it is tried again after ten minutes.
"""

from __future__ import annotations

import threading
import time
from struct import Struct

from agent.driver.library import GPU_IS_LOST, GpuLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agent.driver.device import Device

NS = 1_000_000_000
REFRESH_NS = 120_000_000
"""The driver renews the counters every 100 ms; samples closer together say nothing."""
AGAIN_NS = 600 * NS
PERCENT, MIB_PER_S = 0.01, float(1 << 20)
METRICS: tuple[tuple[int, str, float], ...] = (
    (2, "sm_active_ratio", PERCENT),
    (3, "sm_occupancy_ratio", PERCENT),
    (5, "tensor_active_ratio", PERCENT),
    (6, "tensor_dfma_active_ratio", PERCENT),
    (7, "tensor_hmma_active_ratio", PERCENT),
    (9, "tensor_imma_active_ratio", PERCENT),
    (10, "dram_active_ratio", PERCENT),
    (11, "fp64_active_ratio", PERCENT),
    (12, "fp32_active_ratio", PERCENT),
    (13, "fp16_active_ratio", PERCENT),
    (20, "pcie_tx_bytes_per_s", MIB_PER_S),
    (21, "pcie_rx_bytes_per_s", MIB_PER_S),
    (60, "nvlink_rx_bytes_per_s", MIB_PER_S),
    (61, "nvlink_tx_bytes_per_s", MIB_PER_S),
)
NOT_ASKED = 999
_METRIC = Struct("=IId24x")  # metricId, nvmlReturn, value, three names: nvmlGpmMetric_t
_QUERY = "gpm query"


class Gpm:
    """Two sample buffers of one GPU or MIG instance.

    Args:
        device: a GPU or MIG instance.
        mig_instance: a MIG instance of ``device``, instead of passing it as ``device``.
        clock: monotonic nanoseconds, for the probe.
    """

    __slots__ = (
        "_again_ns",
        "_at_ns",
        "_clock",
        "_device",
        "_flag",
        "_lock",
        "_newer",
        "_older",
        "_seeded",
        "_uuid",
        "_works",
    )

    def __init__(
        self,
        device: Device,
        *,
        mig_instance: Device | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._device = device if mig_instance is None else mig_instance
        self._clock = clock
        self._lock = threading.Lock()
        self._older: Any = None
        self._newer: Any = None
        self._seeded = False
        self._at_ns = 0
        self._uuid = self._device.uuid
        self._flag: bool | None = None
        self._works = False
        self._again_ns: int | None = None

    def supported(self) -> bool:
        """Whether pairs give figures. Does not wait: the first call takes a sample, a later one decides.

        Raises:
            GpuLost: the card stopped answering.
        """
        if not self._works:
            self._pair(self._clock())
        return self._works

    def pair(self, now_ns: int) -> dict[str, float] | None:
        """Means since the last sample by reading name: ratios and bytes per second; each metric's own code decides.

        None while there is no earlier sample, when the last one is less than 120 ms old, and where it is unsupported.

        Args:
            now_ns: monotonic time.

        Raises:
            GpuLost: the card stopped answering.
        """
        return self._pair(now_ns)

    def close(self) -> None:
        """Free the samples, unless a call that uses them has not returned."""
        if self._lock.acquire(blocking=False):
            try:
                self._free()
            finally:
                self._lock.release()

    def _pair(self, now_ns: int) -> dict[str, float] | None:
        if self._again_ns is not None and now_ns < self._again_ns:
            return None
        with self._lock:
            device = self._device
            if device.shares_instance or not self._flagged():
                return None  # the counters are the GPU instance's, not those of one of several parts of it
            if self._uuid != device.uuid:  # instance ids are given again to others
                self._uuid, self._seeded = device.uuid, False
            if self._seeded and now_ns - self._at_ns < REFRESH_NS:
                return None
            if not self._sample():
                self._fail(now_ns)
                return None
            self._again_ns = None
            seeded, self._seeded, self._at_ns = self._seeded, True, now_ns
            self._older, self._newer = self._newer, self._older
            if not seeded:
                return None
            values = self._metrics()
            if not values:
                self._fail(now_ns)
                return None
            self._works = True
            device.elsewhere = frozenset(values)
            return values

    def _flagged(self) -> bool:
        """The driver's own word; False is final, True is not. A driver without the call has no GPM."""
        if self._flag is None:
            physical = self._device.parent or self._device
            support = physical.call("nvmlGpmQueryDeviceSupport")
            if support is None:
                self._flag = False if "nvmlGpmQueryDeviceSupport" in physical.absent else None
                return False
            self._flag = bool(support.isSupportedDevice)
        return self._flag

    def _sample(self) -> bool:
        """Fill the older buffer; whether it was filled."""
        nvml = self._device.library.nvml
        try:
            if self._older is None:
                self._older = nvml.nvmlGpmSampleAlloc()
            if self._newer is None:
                self._newer = nvml.nvmlGpmSampleAlloc()
            device = self._device
            if device.parent is None:
                nvml.nvmlGpmSampleGet(device.handle, self._older)
            else:
                nvml.nvmlGpmMigSampleGet(device.parent.handle, device.gpu_instance, self._older)
        except self._device.library.error as error:
            return self._judged(error.value)
        except AttributeError:  # a binding older than GPM
            return False
        return True

    def _metrics(self) -> dict[str, float]:
        """Figures over the two samples; none when the driver refuses."""
        library = self._device.library
        query = library.shared.get(_QUERY)
        if query is None:
            query = library.shared[_QUERY] = library.nvml.c_nvmlGpmMetricsGet_t()
        offset = type(query).metrics.offset
        for at, (metric, _name, _scale) in enumerate(METRICS):
            _METRIC.pack_into(query, offset + at * _METRIC.size, metric, NOT_ASKED, 0.0)
        query.version = library.nvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(METRICS)
        query.sample1, query.sample2 = self._older, self._newer
        try:
            library.nvml.nvmlGpmMetricsGet(query)
        except library.error as error:
            self._judged(error.value)
            return {}
        values = {}
        for at, (metric, name, scale) in enumerate(METRICS):
            told, code, value = _METRIC.unpack_from(query, offset + at * _METRIC.size)
            if code == 0 and told == metric and 0.0 <= value < float("inf"):
                values[name] = value * scale
        return values

    def _judged(self, code: int) -> bool:
        """Not every failure here is the card's: guests answer "unknown error" and go on well otherwise."""
        if code == GPU_IS_LOST:
            self._seeded = self._works = False
            raise GpuLost(code)
        return False

    def _fail(self, now_ns: int) -> None:
        self._works = self._seeded = False
        self._device.elsewhere = frozenset()
        self._again_ns = now_ns + AGAIN_NS

    def _free(self) -> None:
        nvml = self._device.library.nvml
        self._seeded = self._works = False
        self._device.elsewhere = frozenset()
        for sample in (self._older, self._newer):
            if sample is not None:
                try:
                    nvml.nvmlGpmSampleFree(sample)
                except self._device.library.error:
                    continue
        self._older = self._newer = None
