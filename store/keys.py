"""Keys at the edge that more than one part of the store must build alike."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from core.readings import WorkloadKey

DAY_SUMS_LOCK: Final = 0x6770_7579
"""PostgreSQL's advisory lock of whoever writes sums of days (``store.day_sums``)."""


def workload_key(workload: WorkloadKey) -> str:
    """Host, kind and key of a workload in one text; unique in the fleet."""
    return "\x1f".join((workload.host or "", workload.kind, workload.key))


def attributes_text(attributes: Mapping[str, str]) -> str:
    """Attributes of a workload as the JSON text that is stored."""
    return json.dumps(dict(attributes), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=4_096)
def attributes_of(text: str) -> tuple[tuple[str, str], ...]:
    """Attributes of a workload from the JSON text that is stored: sorted pairs."""
    return tuple(sorted(json.loads(text).items())) if text != "{}" else ()
