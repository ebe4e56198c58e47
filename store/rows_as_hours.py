"""Rows as hours of GPUs and engines: a figure is taken out of its row when somebody asks for it.

A fleet's fortnight is read in full and looked at in part; making values of all of it would cost more than reading it.
``StoredGpuHour`` and ``StoredEngineHour`` are their plain kinds in all else: they compare equal to them, and a copy
with other values (``dataclasses.replace``) is a plain one.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, Final

from core.activity import Activity
from core.histogram import Histogram
from core.hours import BatchPoint, EngineHour, GpuHour
from core.samples import EnergyMethod

_ACTIVITIES: Final = tuple(Activity)
_GPU_APART: Final = {"gpu_uuid", "seconds", "joules", "energy_method"}
_ENGINE_APART: Final = {"engine", "running", "waiting", "kv_used", "profile"}
GPU_PLAIN: Final = tuple(f.name for f in fields(GpuHour) if f.name not in _GPU_APART)
"""Fields of ``GpuHour`` that are columns of the same name."""
ENGINE_PLAIN: Final = tuple(f.name for f in fields(EngineHour) if f.name not in _ENGINE_APART)
"""Fields of ``EngineHour`` that are columns of the same name."""
GPU_HOUR_FIRST: Final = (
    "covered_s",
    *(f"{activity.value}_s" for activity in _ACTIVITIES),
    "active_s",
    "busy_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp32_active_ratio",
    "power_w",
    "throttled_s",
    "pcie_bytes_per_s",
    "slowed_power_s",
    "slowed_thermal_s",
)
"""Figures that rules ask of the hours of nearly every GPU, the first of ``GPU_FIGURES``."""
GPU_DAY_FIRST: Final = (
    *GPU_HOUR_FIRST,
    "energy_j",
    "memory_busy_ratio",
    "memory_used_bytes",
    "memory_used_max_bytes",
    "power_limit_w",
    "empty_power_w",
    "parked_power_w",
    "sm_clock_hz",
)
"""The same of days: half of a day's columns, and a driver that reads rows takes as long as it reads columns."""
_GPU_COLUMNS: Final = (
    *(f"{activity.value}_j" for activity in _ACTIVITIES),
    "energy_method",
    *(name for name in GPU_PLAIN if name != "hour_ms"),
)
GPU_FIGURES: Final = (*GPU_DAY_FIRST, *(name for name in _GPU_COLUMNS if name not in GPU_DAY_FIRST))
"""Columns of ``gpu_hour`` and ``gpu_day`` that ``gpu_hour_in`` reads, in its order."""
ENGINE_FIGURES: Final = tuple(f.name for f in fields(EngineHour) if f.name not in {"engine", "hour_ms"})
"""Columns of ``engine_hour`` and ``engine_day`` that ``engine_hour_in`` reads, in its order."""
_SECONDS_TO: Final = 1 + len(_ACTIVITIES)
_JOULES_AT: Final = len(GPU_DAY_FIRST)
_REST_AT: Final = _JOULES_AT + len(_ACTIVITIES)
_METHOD_AT: Final = GPU_FIGURES.index("energy_method")
_METHODS: Final = {None: None} | {method.value: method for method in EnergyMethod}
_JSON: Final = ("running", "waiting", "kv_used", "profile")
_JSON_AT: Final = ENGINE_FIGURES.index(_JSON[0])
_decode: Final = json.JSONDecoder(parse_int=float).decode
_level: Final = lru_cache(maxsize=4_096)(float)
"""Levels have two digits, so that a fleet has few; the same object for each is found in a histogram at first sight."""
_new: Final = object.__new__
Rest = Callable[[str, int], Sequence[Any]]
"""Subject's name and start of an hour, or of a day → its whole row, in the order of the figures."""


class StoredGpuHour(GpuHour):
    """An hour, or a day as one, with its row in the order of ``GPU_FIGURES``.

    Of a row that ends early ``rest`` reads the whole of it, once somebody asks for a figure beyond its end.
    """

    __slots__ = ("joules_read", "raw", "rest", "seconds_read")
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
    def rows(hours: Sequence[Any], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """Two columns or more of each of such hours (``core.hour_columns.rows_of``)."""
        pick, furthest = _gpu_picker(names)
        if furthest < len(GPU_HOUR_FIRST):
            return [pick(hour.raw) for hour in hours]
        return [pick(_up_to(hour, furthest)) for hour in hours]


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
    def rows(hours: Sequence[Any], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """As of ``StoredGpuHour``."""
        pick, _ = _engine_picker(names)
        return [pick(hour.raw) for hour in hours]


@cache
def _gpu_picker(names: tuple[str, ...]) -> tuple[Callable[[Any], tuple[Any, ...]], int]:
    """What takes columns out of a row, and the furthest of their places."""
    places = [GPU_FIGURES.index(name) for name in names]
    return itemgetter(*places), max(places)


@cache
def _engine_picker(names: tuple[str, ...]) -> tuple[Callable[[Any], tuple[Any, ...]], int]:
    places = [ENGINE_FIGURES.index(name) for name in names]
    return itemgetter(*places), max(places)


def _same(one: object, other: object, kind: type[Any]) -> bool:
    return all(getattr(one, field.name) == getattr(other, field.name) for field in fields(kind))


def _setters(kind: type[Any], *names: str) -> list[Any]:
    """What writes these slots of a frozen class."""
    return [getattr(kind, name).__set__ for name in names]


_set_uuid, _set_hour = _setters(GpuHour, "gpu_uuid", "hour_ms")
_set_row, _set_rest = _setters(StoredGpuHour, "raw", "rest")
_set_seconds, _set_joules = _setters(StoredGpuHour, "seconds_read", "joules_read")
_set_engine, _set_engine_hour = _setters(EngineHour, "engine", "hour_ms")
_set_engine_row, _set_read = _setters(StoredEngineHour, "raw", "parsed")


def gpu_hour_in(gpu_uuid: str, start_ms: int, row: Sequence[Any]) -> GpuHour:
    """Values of ``GPU_FIGURES`` as an hour; activities without time are left out."""
    hour: GpuHour = _new(StoredGpuHour)
    _set_uuid(hour, gpu_uuid)
    _set_hour(hour, start_ms)
    _set_row(hour, row)
    return hour


def gpu_part_in(gpu_uuid: str, start_ms: int, row: Sequence[Any], rest: Rest) -> GpuHour:
    """The first values of ``GPU_FIGURES`` as an hour, at least ``GPU_HOUR_FIRST``; ``rest`` gives all of them."""
    hour: GpuHour = _new(StoredGpuHour)
    _set_uuid(hour, gpu_uuid)
    _set_hour(hour, start_ms)
    _set_row(hour, row)
    _set_rest(hour, rest)
    return hour


def engine_hour_in(engine: str, start_ms: int, row: Sequence[Any]) -> EngineHour:
    """Values of ``ENGINE_FIGURES`` as an hour."""
    hour: EngineHour = _new(StoredEngineHour)
    _set_engine(hour, engine)
    _set_engine_hour(hour, start_ms)
    _set_engine_row(hour, row)
    return hour


def _up_to(hour: Any, at: int) -> Sequence[Any]:
    """The row of an hour, which reaches at least so far."""
    if at >= len(hour.raw):
        _set_row(hour, hour.rest(hour.gpu_uuid, hour.hour_ms))
    return hour.raw  # type: ignore[no-any-return]


def _seconds(hour: Any) -> Mapping[Activity, float]:
    try:
        return hour.seconds_read  # type: ignore[no-any-return]
    except AttributeError:
        row = hour.raw[1:_SECONDS_TO]
        found = {activity: s for activity, s in zip(_ACTIVITIES, row, strict=True) if s}
        _set_seconds(hour, found)
        return found


def _joules(hour: Any) -> Mapping[Activity, float]:
    try:
        return hour.joules_read  # type: ignore[no-any-return]
    except AttributeError:
        row = _up_to(hour, _REST_AT)[_JOULES_AT:_REST_AT]
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
    parsed = iter(_decode(f"[{','.join(texts)}]"))
    for hour, running, waiting, kv_used, profile in zip(hours, parsed, parsed, parsed, parsed, strict=False):
        found = (
            *[
                Histogram(dict(zip(map(_level, raw), raw.values(), strict=True)))
                for raw in (running, waiting, kv_used)
            ],
            dict(zip(map(_level, profile), map(BatchPoint._make, profile.values()), strict=True)),
        )
        _set_read(hour, found)


def _figure(at: int) -> property:
    return property(lambda self: self.raw[at])


def _gpu_figure(at: int) -> property:
    if at < len(GPU_HOUR_FIRST):
        return _figure(at)

    def read(hour: Any) -> Any:
        try:
            return hour.raw[at]
        except IndexError:
            return _up_to(hour, at)[at]

    return property(read)


def _parsed(at: int) -> property:
    return property(lambda self: _read(self)[at])


for _at, _name in enumerate(GPU_FIGURES):
    if _name in GPU_PLAIN:
        setattr(StoredGpuHour, _name, _gpu_figure(_at))
for _name, _value in {
    "seconds": property(_seconds),
    "joules": property(_joules),
    "energy_method": property(lambda hour: _METHODS[_up_to(hour, _METHOD_AT)[_METHOD_AT]]),
}.items():
    setattr(StoredGpuHour, _name, _value)
for _at, _name in enumerate(ENGINE_FIGURES):
    _part = _JSON.index(_name) if _name in _JSON else None
    setattr(StoredEngineHour, _name, _figure(_at) if _part is None else _parsed(_part))
