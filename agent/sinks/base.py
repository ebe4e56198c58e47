"""What a sink is: where identities, samples and events go, durable after ``commit``."""

from collections.abc import Sequence
from typing import Protocol

from core.readings import EngineIdentity, GpuIdentity
from core.samples import EngineSample, GpuEvent, GpuSample, ProcessSample


class Sink(Protocol):
    """Keeps samples exactly once, however often they are given. Counts are rows newly stored."""

    def gpus(self, identities: Sequence[GpuIdentity]) -> None:
        """Register GPUs or complete what is known of them."""

    def engines(self, identities: Sequence[EngineIdentity]) -> None:
        """Register engines or complete what is known of them."""

    def gpu_samples(self, samples: Sequence[GpuSample]) -> int:
        """Store samples of GPUs."""

    def process_samples(self, samples: Sequence[ProcessSample]) -> int:
        """Store samples of workloads."""

    def engine_samples(self, samples: Sequence[EngineSample]) -> int:
        """Store samples of engines."""

    def events(self, events: Sequence[GpuEvent]) -> int:
        """Store events."""

    def commit(self) -> None:
        """Make what was given durable."""

    def close(self) -> None:
        """Let go of what the sink holds; what was not committed is lost."""
