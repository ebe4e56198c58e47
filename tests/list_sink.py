"""A sink that keeps everything in lists."""

import json
import zlib

from core.delivery import Delivery, from_object
from core.readings import EngineIdentity, GpuHealth, GpuIdentity
from core.samples import EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample


class ListSink:
    def __init__(self) -> None:
        self.gpu_rows: list[GpuSample] = []
        self.process_rows: list[ProcessSample] = []
        self.engine_rows: list[EngineSample] = []
        self.host_rows: list[HostSample] = []
        self.gpu_ids: dict[str, GpuIdentity] = {}
        self.engine_ids: dict[str, EngineIdentity] = {}
        self.event_rows: list[GpuEvent] = []
        self.health: list[GpuHealth] = []
        self.deliveries = 0
        self.numbers: list[tuple[str, int]] = []
        self.closed = False

    def deliver(self, delivery: Delivery) -> int:
        self.gpu_ids.update({identity.gpu_uuid: identity for identity in delivery.gpus})
        self.engine_ids.update({identity.engine: identity for identity in delivery.engines})
        self.gpu_rows += delivery.gpu_samples
        self.process_rows += delivery.process_samples
        self.engine_rows += delivery.engine_samples
        self.host_rows += delivery.host_samples
        self.event_rows += delivery.events
        self.health += delivery.health
        self.deliveries += 1
        return delivery.row_count

    def deliver_body(self, body: bytes, *, agent_id: str, sequence: int) -> None:
        self.deliver(from_object(json.loads(zlib.decompress(body, 31))))
        self.numbers.append((agent_id, sequence))

    def close(self) -> None:
        self.closed = True

    def energy_j(self, gpu_uuid: str) -> float:
        return sum(s.values.get("energy_j", 0.0) for s in self.gpu_rows if s.gpu_uuid == gpu_uuid)
