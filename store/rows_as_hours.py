"""Rows as hours of GPUs and engines: a figure is taken out of its row when somebody asks for it.

A fleet's fortnight is read in full and looked at in part; making values of all of it would cost more than reading it.
``StoredGpuHour`` and ``StoredEngineHour`` are their plain kinds in all else: they compare equal to them, and a copy
with other values (``dataclasses.replace``) is a plain one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import itemgetter
from typing import Any, Final

from core.activity import Activity
from core.histogram import Histogram
from core.hours import BatchPoint, EngineHour, GpuHour
from core.samples import EnergyMethod

_ACTIVITIES: Final = tuple(Activity)
_JOULES_AT: Final = 1 + len(_ACTIVITIES)
_REST_AT: Final = _JOULES_AT + len(_ACTIVITIES)
_GPU_APART: Final = {"gpu_uuid", "seconds", "joules", "energy_method"}
_ENGINE_APART: Final = {"engine", "running", "waiting", "kv_used", "profile"}
GPU_PLAIN: Final = tuple(f.name for f in fields(GpuHour) if f.name not in _GPU_APART)
"""Fields of ``GpuHour`` that are columns of the same name."""
ENGINE_PLAIN: Final = tuple(f.name for f in fields(EngineHour) if f.name not in _ENGINE_APART)
"""Fields of ``EngineHour`` that are columns of the same name."""
GPU_FIGURES: Final = (
    "covered_s",
    *(f"{activity.value}_s" for activity in _ACTIVITIES),
    *(f"{activity.value}_j" for activity in _ACTIVITIES),
    "energy_j",
    "energy_method",
    *GPU_PLAIN[GPU_PLAIN.index("energy_covered_s") :],
)
"""Columns of ``gpu_hour`` and ``gpu_day`` that ``gpu_hour_in`` reads, in its order."""
ENGINE_FIGURES: Final = tuple(f.name for f in fields(EngineHour) if f.name not in {"engine", "hour_ms"})
"""Columns of ``engine_hour`` and ``engine_day`` that ``engine_hour_in`` reads, in its order."""
_METHOD_AT: Final = GPU_FIGURES.index("energy_method")
_METHODS: Final = {None: None} | {method.value: method for method in EnergyMethod}
_JSON: Final = ("running", "waiting", "kv_used", "profile")
_JSON_AT: Final = ENGINE_FIGURES.index(_JSON[0])
_new: Final = object.__new__


class StoredGpuHour(GpuHour):
    """An hour, or a day as one, with its row in the order of ``GPU_FIGURES``."""

    __slots__ = ("joules_read", "raw", "seconds_read")
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, *values: Any, **named: Any) -> GpuHour:  # type: ignore[misc] # noqa: D102 - see ``replace`` above
        return GpuHour(*values, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        """As the plain hour."""
        return GpuHour, tuple(getattr(self, field.name) for field in fields(GpuHour))

    def __eq__(self, other: object) -> bool:
        """Equal in all fields."""
        return isinstance(other, GpuHour) and _same(self, other, GpuHour)

    @staticmethod
    @cache
    def picker(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
        """What takes two fields or more out of an hour's row (``core.hour_columns.rows_of``)."""
        pick = itemgetter(*(GPU_FIGURES.index(name) for name in names))
        return lambda hour: pick(hour.raw)


class StoredEngineHour(EngineHour):
    """An hour, or a day as one, with its row in the order of ``ENGINE_FIGURES``."""

    __slots__ = ("parsed", "raw")
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, *values: Any, **named: Any) -> EngineHour:  # type: ignore[misc] # noqa: D102 - see above
        return EngineHour(*values, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        """As the plain hour."""
        return EngineHour, tuple(getattr(self, field.name) for field in fields(EngineHour))

    def __eq__(self, other: object) -> bool:
        """Equal in all fields."""
        return isinstance(other, EngineHour) and _same(self, other, EngineHour)

    @staticmethod
    @cache
    def picker(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
        """As of ``StoredGpuHour``."""
        pick = itemgetter(*(ENGINE_FIGURES.index(name) for name in names))
        return lambda hour: pick(hour.raw)


def _same(one: object, other: object, kind: type[Any]) -> bool:
    return all(getattr(one, field.name) == getattr(other, field.name) for field in fields(kind))


def _setters(kind: type[Any], *names: str) -> list[Any]:
    """What writes these slots of a frozen class."""
    return [getattr(kind, name).__set__ for name in names]


_set_uuid, _set_hour = _setters(GpuHour, "gpu_uuid", "hour_ms")
_set_row, _set_seconds, _set_joules = _setters(StoredGpuHour, "raw", "seconds_read", "joules_read")
_set_engine, _set_engine_hour = _setters(EngineHour, "engine", "hour_ms")
_set_engine_row, _set_read = _setters(StoredEngineHour, "raw", "parsed")


def gpu_hour_in(gpu_uuid: str, start_ms: int, row: Sequence[Any]) -> GpuHour:
    """Values of ``GPU_FIGURES`` as an hour; activities without time are left out."""
    hour: GpuHour = _new(StoredGpuHour)
    _set_uuid(hour, gpu_uuid)
    _set_hour(hour, start_ms)
    _set_row(hour, row)
    return hour


def engine_hour_in(engine: str, start_ms: int, row: Sequence[Any]) -> EngineHour:
    """Values of ``ENGINE_FIGURES`` as an hour."""
    hour: EngineHour = _new(StoredEngineHour)
    _set_engine(hour, engine)
    _set_engine_hour(hour, start_ms)
    _set_engine_row(hour, row)
    return hour


def stored_columns(hours: Sequence[Any], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Columns of stored hours of a GPU, two or more, as they lie in their rows."""
    pick = itemgetter(*(GPU_FIGURES.index(name) for name in names))
    return [pick(hour.raw) for hour in hours]


def _seconds(hour: Any) -> Mapping[Activity, float]:
    try:
        return hour.seconds_read  # type: ignore[no-any-return]
    except AttributeError:
        row = hour.raw[1:_JOULES_AT]
        found = {activity: s for activity, s in zip(_ACTIVITIES, row, strict=True) if s}
        _set_seconds(hour, found)
        return found


def _joules(hour: Any) -> Mapping[Activity, float]:
    try:
        return hour.joules_read  # type: ignore[no-any-return]
    except AttributeError:
        row = hour.raw[_JOULES_AT:_REST_AT]
        found = {activity: j for activity, j in zip(_ACTIVITIES, row, strict=True) if j is not None}
        _set_joules(hour, found)
        return found


def _read(hour: Any) -> tuple[Any, ...]:
    """Histograms and profile, parsed together: a call of the parser costs more than what it parses."""
    try:
        return hour.parsed  # type: ignore[no-any-return]
    except AttributeError:
        parse_together([hour])
        return hour.parsed  # type: ignore[no-any-return]


def parse_together(hours: Sequence[Any]) -> None:
    """Have histograms and profiles of stored hours of engines parsed at once, where that was not done yet."""
    texts = [text or "{}" for hour in hours for text in hour.raw[_JSON_AT : _JSON_AT + len(_JSON)]]
    parsed = iter(json.loads(f"[{','.join(texts)}]"))
    for hour, running, waiting, kv_used, profile in zip(hours, parsed, parsed, parsed, parsed, strict=False):
        found = (
            *[
                Histogram({float(key): float(s) for key, s in raw.items()})
                for raw in (running, waiting, kv_used)
            ],
            {float(batch): BatchPoint(*point) for batch, point in profile.items()},
        )
        _set_read(hour, found)


def _figure(at: int) -> property:
    return property(lambda self: self.raw[at])


def _parsed(at: int) -> property:
    return property(lambda self: _read(self)[at])


for _at, _name in enumerate(GPU_FIGURES):
    if _name in GPU_PLAIN:
        setattr(StoredGpuHour, _name, _figure(_at))
for _name, _value in {
    "seconds": property(_seconds),
    "joules": property(_joules),
    "energy_method": property(lambda hour: _METHODS[hour.raw[_METHOD_AT]]),
}.items():
    setattr(StoredGpuHour, _name, _value)
for _at, _name in enumerate(ENGINE_FIGURES):
    _part = _JSON.index(_name) if _name in _JSON else None
    setattr(StoredEngineHour, _name, _figure(_at) if _part is None else _parsed(_part))
