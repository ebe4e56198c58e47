"""Some fields of many hours at once: of stored hours without a look at each field on its own."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from core.hours import EngineHour, GpuHour


def rows_of(hours: Sequence[GpuHour | EngineHour], *names: str) -> list[tuple[Any, ...]]:
    """Two fields or more of hours, a tuple for each; of stored ones straight from their rows.

    An hour's class may have a ``picker`` of its own: names → what takes them out of an hour.
    """
    kinds = set(map(type, hours))
    picker = getattr(kinds.pop(), "picker", None) if len(kinds) == 1 else None
    return list(map(attrgetter(*names) if picker is None else picker(names), hours))
