"""Readings of this host's GPUs, tick by tick. One GPU that fails stops none of the others."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from agent.attribution import Attribution
from agent.nvml import Driver, Gpu, GpuLostError, Process
from agent.sources.series import Thing
from core.activity import HELD_MEMORY_BYTES
from core.plausible import plausible_values
from core.readings import GpuIdentity, GpuReading, ProcessReading
from core.samples import GpuEvent

log = logging.getLogger(__name__)

SLOW_MS: Final = 5_000
"""Temperatures, limits and process lists: a process list alone takes milliseconds of the driver's lock."""
RESCAN_MS: Final = 60_000
"""GPUs come, go and come back; MIG instances are made anew."""


@dataclass(slots=True)
class _Slow:
    """What was asked at the slow pace, repeated in each reading until it is asked again."""

    at_ms: int
    values: dict[str, float]
    processes: list[Process] | None


class LiveSource:
    """Asks every GPU of the driver once per tick.

    Args:
        driver: an open driver.
        host: name of this host in the store.
        attribution: names processes.
    """

    def __init__(self, driver: Driver, host: str, attribution: Attribution | None = None) -> None:
        self._driver = driver
        self._host = host
        self._attribution = attribution or Attribution(host)
        self._gpus: dict[str, Gpu] = {}
        self._slow: dict[str, _Slow] = {}
        self._told: dict[str, GpuIdentity] = {}
        self._lost: dict[str, int] = {}
        self._scanned_ms: int | None = None

    def tick(self, clock: Callable[[], int]) -> list[Thing | GpuEvent]:
        """Identities that are news, readings, processes and events of one round over all GPUs.

        Args:
            clock: the time in epoch milliseconds; asked once per GPU, because a round takes time.

        Raises:
            NvmlError: the driver itself is gone.
        """
        things: list[Thing | GpuEvent] = []
        now_ms = clock()
        if self._scanned_ms is None or now_ms - self._scanned_ms >= RESCAN_MS or now_ms < self._scanned_ms:
            things += self._scan(now_ms)
        for uuid, gpu in list(self._gpus.items()):
            ts_ms = clock()
            try:
                things += self._read(uuid, gpu, ts_ms)
            except GpuLostError as error:
                things += self._lose(uuid, ts_ms, error.code)
        return things

    @property
    def gpu_count(self) -> int:
        """GPUs and MIG instances that answer."""
        return len(self._gpus)

    def _scan(self, now_ms: int) -> list[Thing | GpuEvent]:
        """Look which GPUs there are; one that was lost and answers again is told as found."""
        self._scanned_ms = now_ms
        found = {gpu.identity.gpu_uuid: gpu for gpu in self._driver.gpus()}
        things: list[Thing | GpuEvent] = []
        for uuid in list(self._gpus):
            if uuid not in found:
                things += self._lose(uuid, now_ms, None)
        for uuid, gpu in found.items():
            self._gpus[uuid] = gpu
            identity = replace(gpu.identity, host=self._host)
            if self._told.get(uuid) != identity:
                self._told[uuid] = identity
                things.append(identity)
            if self._lost.pop(uuid, None) is not None:
                log.info("gpu found again", extra={"gpu_uuid": uuid})
                things.append(GpuEvent(uuid, now_ms, "found", "The GPU answers again."))
        return things

    def _lose(self, uuid: str, ts_ms: int, code: int | None) -> list[Thing | GpuEvent]:
        self._gpus.pop(uuid, None)
        self._slow.pop(uuid, None)
        self._lost[uuid] = ts_ms
        log.warning("gpu lost", extra={"gpu_uuid": uuid, "nvml_code": code})
        message = "The GPU is no longer listed." if code is None else "The GPU stopped answering."
        return [GpuEvent(uuid, ts_ms, "lost", message, code)]

    def _read(self, uuid: str, gpu: Gpu, ts_ms: int) -> list[Thing | GpuEvent]:
        values = gpu.quick()
        slow = self._slow.get(uuid)
        fresh = slow is None or not 0 <= ts_ms - slow.at_ms < SLOW_MS
        if slow is None or fresh:
            slow = self._slow[uuid] = _Slow(ts_ms, gpu.slow(), gpu.processes())
            count = self._process_count(slow.processes, values)
            if count is not None:
                slow.values["process_count"] = float(count)
        things: list[Thing | GpuEvent] = [GpuReading(uuid, ts_ms, plausible_values(values | slow.values))]
        if fresh:
            things += [
                ProcessReading(
                    uuid,
                    ts_ms,
                    process.pid,
                    self._attribution.workload(process.pid),
                    memory_used_bytes=process.memory_used_bytes,
                )
                for process in slow.processes or ()
            ]
            held = {process.pid for one in self._slow.values() for process in one.processes or ()}
            self._attribution.forget_all_but(held)
        return things

    def _process_count(self, processes: list[Process] | None, values: dict[str, float]) -> int | None:
        """Processes that compute; None when the list cannot be believed.

        A display server is listed, but does not hold the GPU for work. No process beside held memory means that
        none may be seen from here (a container without the host's PIDs), not that there is none.
        """
        if processes is None:
            return None
        count = sum(process.computes for process in processes)
        return count if count or values.get("memory_used_bytes", 0.0) < HELD_MEMORY_BYTES else None
