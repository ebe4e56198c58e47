"""A sink that keeps everything in lists."""

from collections.abc import Sequence

from core.readings import EngineIdentity, GpuIdentity
from core.samples import EngineSample, GpuEvent, GpuSample, ProcessSample


class ListSink:
    def __init__(self) -> None:
        self.gpu_rows: list[GpuSample] = []
        self.process_rows: list[ProcessSample] = []
        self.engine_rows: list[EngineSample] = []
        self.gpu_ids: dict[str, GpuIdentity] = {}
        self.engine_ids: dict[str, EngineIdentity] = {}
        self.event_rows: list[GpuEvent] = []
        self.commits = 0
        self.closed = False

    def gpus(self, identities: Sequence[GpuIdentity]) -> None:
        self.gpu_ids.update({identity.gpu_uuid: identity for identity in identities})

    def engines(self, identities: Sequence[EngineIdentity]) -> None:
        self.engine_ids.update({identity.engine: identity for identity in identities})

    def gpu_samples(self, samples: Sequence[GpuSample]) -> int:
        self.gpu_rows += samples
        return len(samples)

    def process_samples(self, samples: Sequence[ProcessSample]) -> int:
        self.process_rows += samples
        return len(samples)

    def engine_samples(self, samples: Sequence[EngineSample]) -> int:
        self.engine_rows += samples
        return len(samples)

    def events(self, events: Sequence[GpuEvent]) -> int:
        self.event_rows += events
        return len(events)

    def commit(self) -> None:
        self.commits += 1

    def close(self) -> None:
        self.closed = True

    def energy_j(self, gpu_uuid: str) -> float:
        return sum(s.values.get("energy_j", 0.0) for s in self.gpu_rows if s.gpu_uuid == gpu_uuid)
