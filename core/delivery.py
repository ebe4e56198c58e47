"""Everything an agent has to say about one interval, and its JSON: the spool's rows and the body of ``POST /api/v1/ingest``.

One object, each list may be absent or empty. Field names are those of the dataclasses in ``core.readings`` and
``core.samples``; ``values`` are by metric name; unknown is absent, never 0 and never null inside ``values``::

    {"version": 1, "agent_id": "9f…", "sequence": 12, "host": {"name": "gpu-node-01", "cpu_count": 96},
     "gpus": [{"gpu_uuid": "GPU-…", "model": "NVIDIA H200", …}],
     "engines": [{"engine": "gpu-node-01:8000/0", "kind": "vllm", "settings": {…}, "gpu_uuids": ["GPU-…"], …}],
     "gpu_samples": [{"gpu_uuid": "GPU-…", "ts_ms": 1763700000000, "span_ms": 10000, "covered_ms": 10000,
                      "energy_method": "counter", "activity": "memory_bound", "values": {"busy_ratio": 0.98, …}}],
     "process_samples": [{"gpu_uuid": …, "ts_ms": …, "span_ms": …, "process_count": 1, "memory_used_bytes": 6.8e10,
                          "workload": {"kind": "pod", "key": "…", "name": "…", "attributes": [["namespace", "ml"]]}}],
     "engine_samples": [{"engine": …, "ts_ms": …, "span_ms": …, "covered_ms": …, "busy_ms": …, "values": {…}}],
     "host_samples": [{"host": …, "ts_ms": …, "span_ms": …, "values": {…}}],
     "events": [{"gpu_uuid": …, "ts_ms": …, "kind": "xid", "message": …, "code": 79}],
     "health": [{"gpu_uuid": …, "ts_ms": …, "facts": {…}}]}

``agent_id`` and ``sequence`` number the deliveries of one spool; storing one twice changes nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.activity import Activity
from core.readings import EngineIdentity, GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import EnergyMethod, EngineSample, GpuEvent, GpuSample, HostSample, ProcessSample

VERSION: Final = 1


@dataclass(slots=True)
class Delivery:
    """Identities, samples, events and states that belong together; stored in one transaction.

    Attributes:
        host: the machine that says so; None for an import.
    """

    host: HostIdentity | None = None
    gpus: list[GpuIdentity] = field(default_factory=list)
    engines: list[EngineIdentity] = field(default_factory=list)
    gpu_samples: list[GpuSample] = field(default_factory=list)
    process_samples: list[ProcessSample] = field(default_factory=list)
    engine_samples: list[EngineSample] = field(default_factory=list)
    host_samples: list[HostSample] = field(default_factory=list)
    events: list[GpuEvent] = field(default_factory=list)
    health: list[GpuHealth] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        """Samples and events; identities and states alone are not worth a delivery."""
        samples = len(self.gpu_samples) + len(self.process_samples) + len(self.engine_samples)
        return samples + len(self.host_samples) + len(self.events)

    @property
    def empty(self) -> bool:
        """Nothing to say at all."""
        return not (self.row_count or self.gpus or self.engines or self.health)


def encode(delivery: Delivery, *, agent_id: str, sequence: int) -> bytes:
    """The delivery as compact JSON in UTF-8."""
    body: dict[str, Any] = {"version": VERSION, "agent_id": agent_id, "sequence": sequence}
    if delivery.host is not None:
        body["host"] = dict(_known(delivery.host))
    for name in _PARTS:
        rows = getattr(delivery, name)
        if rows:
            body[name] = [dict(_known(row)) for row in rows]
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def decode(body: bytes | str) -> Delivery:
    """A delivery from its JSON, as ``encode`` wrote it: trusted, not checked.

    Raises:
        ValueError, KeyError, TypeError: not a delivery.
    """
    return from_object(json.loads(body))


def from_object(body: Mapping[str, Any]) -> Delivery:
    """A delivery from its parsed JSON; types must be right, unknown fields are refused by the dataclasses."""
    if body.get("version") != VERSION:
        raise ValueError(f"deliveries of version {body.get('version')} are not known")
    host = body.get("host")
    delivery = Delivery(None if host is None else HostIdentity(**host))
    for name, make in _PARTS.items():
        getattr(delivery, name).extend(make(row) for row in body.get(name, ()))
    return delivery


def _known(row: Any) -> Iterator[tuple[str, Any]]:
    """Fields that say something, as JSON knows them."""
    for name in row.__slots__:
        value = getattr(row, name)
        if value is None:
            continue
        yield name, dict(_known(value)) if isinstance(value, WorkloadKey) else value


def _engine(row: Mapping[str, Any]) -> EngineIdentity:
    known = {"host": None, **row, "gpu_uuids": tuple(row.get("gpu_uuids", ()))}
    return EngineIdentity(**known)


def _gpu_sample(row: Mapping[str, Any]) -> GpuSample:
    method = row.get("energy_method")
    return GpuSample(
        **{
            **row,
            "energy_method": None if method is None else EnergyMethod(method),
            "activity": Activity(row["activity"]),
        }
    )


def _process_sample(row: Mapping[str, Any]) -> ProcessSample:
    workload = row["workload"]
    pairs = tuple((name, value) for name, value in workload.get("attributes", ()))
    key = WorkloadKey(**{**workload, "attributes": pairs})
    return ProcessSample(**{"memory_used_bytes": None, "busy_ratio": None, **row, "workload": key})


def _engine_sample(row: Mapping[str, Any]) -> EngineSample:
    return EngineSample(**{"busy_running_requests": None, **row})


_PARTS: Final[dict[str, Callable[[Mapping[str, Any]], object]]] = {
    "gpus": lambda row: GpuIdentity(**row),
    "engines": _engine,
    "gpu_samples": _gpu_sample,
    "process_samples": _process_sample,
    "engine_samples": _engine_sample,
    "host_samples": lambda row: HostSample(**row),
    "events": lambda row: GpuEvent(**row),
    "health": lambda row: GpuHealth(**row),
}
"""Lists of a delivery and how a row of each is made from its JSON."""
