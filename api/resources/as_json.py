"""Rows as JSON-ready values: money as decimal text, times as ISO 8601 UTC, unknown as null."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from math import isclose, isfinite
from typing import Any, Final

from core.clock import iso
from core.evidence import Window
from core.histogram import Histogram
from core.money import text

COUNTS: Final = frozenset({"tokens_generated", "tokens_prompt", "finished_requests"})
COUNT_ENDS: Final = ("_bytes", "_tokens", "_count")
NOISE_RATIO: Final = 1e-6


def to_json(value: Any) -> Any:
    """``value`` in the types JSON has.

    Dataclasses become objects with their own field names, ``Decimal`` money text, aware times ISO 8601 with
    ``Z``, a window ``{"from", "to"}``, histograms seconds by level. A figure that is not finite is null: JSON
    has no word for it.
    """
    match value:
        case None | bool() | int():
            return value.value if isinstance(value, Enum) else value
        case Enum():
            return value.value
        case str():
            return str(value)
        case float():
            return value if isfinite(value) else None
        case Decimal():
            return text(value)
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case Window():
            return {"from": iso(value.from_ms), "to": iso(value.to_ms)}
        case Histogram():
            return {f"{level:g}": seconds for level, seconds in sorted(value.seconds.items())}
        case Mapping():
            return {_key(key): to_json(_whole(_key(key), item)) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_json(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {
                field.name: to_json(_whole(field.name, getattr(value, field.name))) for field in fields(value)
            }
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _whole(name: str, value: Any) -> Any:
    """Counts and bytes without the noise of added floats: whole where they nearly are."""
    if not isinstance(value, float) or not isfinite(value):
        return value
    is_count = name in COUNTS or name.endswith(COUNT_ENDS)
    return round(value) if is_count and isclose(value, round(value), rel_tol=NOISE_RATIO) else value


def _key(key: Any) -> str:
    return str(key.value) if isinstance(key, Enum) else str(key)
