"""Deliveries as an agent makes them, small."""

import json
import zlib
from typing import Any

from agent.spool import Entry
from core.activity import Activity
from core.delivery import Delivery
from core.readings import GpuIdentity, HostIdentity
from core.samples import EnergyMethod, GpuSample

T0 = 1_791_187_200_000
DAY = 86_400_000


def delivery(number: int, gpus: int = 1, *, padding: int = 0) -> Delivery:
    """One interval; ``padding`` makes its body about so many bytes larger."""
    names = [f"GPU-{index}" for index in range(gpus)]
    models = [noise(1000 * number + index, padding) if padding else None for index in range(gpus)]
    return Delivery(
        HostIdentity("node", cpu_count=8),
        [GpuIdentity(name, host="node", model=model) for name, model in zip(names, models, strict=True)],
        gpu_samples=[
            GpuSample(
                name,
                T0 + 10_000 * number,
                10_000,
                10_000,
                {"power_w": 300.0},
                EnergyMethod.COUNTER,
                Activity.BUSY,
            )
            for name in names
        ],
    )


def noise(seed: int, length: int) -> str:
    """Text that does not compress below about its length in bytes."""
    import random

    return random.Random(seed).randbytes(length).hex()[: 2 * length]


def content(entry: Entry) -> dict[str, Any]:
    body = json.loads(zlib.decompress(entry.body, 31))
    assert isinstance(body, dict)
    return body
