"""Hours of an idle GPU with only what tells parking: read for many GPUs, so the rest stays where it is."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from core.hour_columns import column_of
from core.hours import GpuHour
from core.series import HourSeries


class ParkedHour(NamedTuple):
    """The columns of ``core.hours.GpuHour`` by the same names; ``parked_s`` is its parked time."""

    hour_ms: int
    covered_s: float
    parked_s: float
    memory_used_bytes: float | None
    parked_power_w: float | None
    power_w: float | None
    busy_ratio: float | None
    sm_active_ratio: float | None


_as_hour: Final = partial(tuple.__new__, ParkedHour)
"""Of a row with just these columns; a fleet has too many to look at the length of each, as ``_make`` does."""


def parked_hours(hours: Sequence[GpuHour]) -> Sequence[ParkedHour]:
    """All of ``hours``; of stored ones only these columns are read."""
    names = ParkedHour._fields
    if isinstance(hours, HourSeries):
        return hours.columns(names, _as_hour)
    return [ParkedHour(*(column_of(hour, name) for name in names)) for hour in hours]


def read_together(of_each: Sequence[Sequence[GpuHour]]) -> None:
    """Have the hours of several GPUs read at once, where they are stored: ``parked_hours`` then finds them."""
    stored = [hours for hours in of_each if isinstance(hours, HourSeries)]
    if stored:
        stored[0].read_columns(stored, ParkedHour._fields, _as_hour)
