"""Some fields of many hours at once: of stored hours without a look at each field on its own."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from core.activity import Activity
from core.hours import EngineHour, GpuHour

SECONDS_OF: Final = {activity: f"{activity.value}_s" for activity in Activity}
"""Columns of the hour's table with the seconds of each activity (``parked_s``)."""
_ACTIVITY_OF: Final = {name: activity for activity, name in SECONDS_OF.items()}


def rows_of(hours: Sequence[GpuHour | EngineHour], *names: str) -> list[tuple[Any, ...]]:
    """Two columns or more of hours, a tuple for each; of stored ones straight from their rows.

    An hour's class may have ``rows`` of its own: hours of that class and names → tuples.
    """
    kinds = set(map(type, hours))
    rows = getattr(kinds.pop(), "rows", None) if len(kinds) == 1 else None
    if rows is not None:
        return rows(hours, names)  # type: ignore[no-any-return]
    if _ACTIVITY_OF.keys().isdisjoint(names) or not any(isinstance(hour, GpuHour) for hour in hours):
        return list(map(attrgetter(*names), hours))
    return [tuple([column_of(hour, name) for name in names]) for hour in hours]


def column_of(hour: Any, name: str) -> Any:
    """A column of the hour's table: an attribute, or of a GPU the seconds of an activity (``parked_s``)."""
    activity = _ACTIVITY_OF.get(name) if isinstance(hour, GpuHour) else None
    return getattr(hour, name) if activity is None else hour.seconds.get(activity, 0.0)
