"""Hours of an idle GPU with only what tells parking: read for many GPUs, so the rest stays where it is."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import compress
from typing import Final

from core.hour_columns import column_of
from core.hours import GpuHour
from core.series import HourSeries


@dataclass(frozen=True, slots=True)
class ParkedHours:
    """Hours by time, column by column, as in ``core.hours.GpuHour``; ``parked_s`` is their parked time."""

    hour_ms: Sequence[int]
    covered_s: Sequence[float]
    parked_s: Sequence[float]
    memory_used_bytes: Sequence[float | None]
    parked_power_w: Sequence[float | None]
    power_w: Sequence[float | None]
    busy_ratio: Sequence[float | None]
    sm_active_ratio: Sequence[float | None]

    def __len__(self) -> int:
        """How many hours."""
        return len(self.hour_ms)

    def where(self, chosen: Sequence[bool]) -> "ParkedHours":
        """Those of the hours for which it is true."""
        if all(chosen):
            return self
        return ParkedHours(*[tuple(compress(getattr(self, name), chosen)) for name in _NAMES])


_NAMES: Final = tuple(field.name for field in fields(ParkedHours))
NO_HOURS: Final = ParkedHours(*[()] * len(_NAMES))


def parked_hours(hours: Sequence[GpuHour]) -> ParkedHours:
    """All of ``hours``; of stored ones only these columns are read."""
    if isinstance(hours, HourSeries):
        return hours.columns(_NAMES, ParkedHours)
    return ParkedHours(*[tuple([column_of(hour, name) for hour in hours]) for name in _NAMES])


def read_together(of_each: Sequence[Sequence[GpuHour]]) -> None:
    """Have the hours of several GPUs read at once, where they are stored: ``parked_hours`` then finds them."""
    stored = [hours for hours in of_each if isinstance(hours, HourSeries)]
    if stored:
        stored[0].read_columns(stored, _NAMES, ParkedHours)
