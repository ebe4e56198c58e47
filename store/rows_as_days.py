"""Rows as days of GPUs and engines: what a day says of its hours is unpacked when somebody asks for it.

``StoredGpuDay`` and ``StoredEngineDay`` are their plain kinds in all else and compare equal to them.
"""

from collections.abc import Sequence
from dataclasses import fields
from struct import Struct
from typing import Any, Final

from core.days import HOURS, EngineDay, GpuDay
from store.rows_as_hours import (
    ENGINE_FIGURES,
    GPU_DAY_FIRST,
    GPU_FIGURES,
    Rest,
    engine_hour_in,
    gpu_part_in,
)

GPU_HOURLY: Final = Struct(f"<{4 * HOURS}h")
_ONE_HOURLY: Final = Struct(f"<{HOURS}h")
ENGINE_HOURLY: Final = Struct(f"<{2 * HOURS}h{4 * HOURS}d?")
UNKNOWN: Final = -1.0
"""Stands for an hour without a median batch or token count in the packed column; neither is ever negative."""
GPU_DAY: Final = ("day_ms", "seen", "hourly", "bare_idle_w", *GPU_FIGURES)
GPU_DAY_PART: Final = GPU_DAY[: 4 + len(GPU_DAY_FIRST)]
"""What ``gpu_day_in`` needs of it at least."""
ENGINE_DAY: Final = ("day_ms", "seen", "hourly", *ENGINE_FIGURES)
"""Columns that the readers below expect, in their order."""
_new: Final = object.__new__


class StoredGpuDay(GpuDay):
    """A day with the row that it begins with, up to where ``whole`` does."""

    __slots__ = ("raw",)
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, *values: Any, **named: Any) -> GpuDay:  # type: ignore[misc] # noqa: D102 - a copy is a plain one
        return GpuDay(*values, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        """As the plain day."""
        return GpuDay, tuple(getattr(self, field.name) for field in fields(GpuDay))

    def __eq__(self, other: object) -> bool:
        """Equal in all fields."""
        return isinstance(other, GpuDay) and _same(self, other, GpuDay)


class StoredEngineDay(EngineDay):
    """A day with its row in the order of ``ENGINE_DAY``."""

    __slots__ = ("hourly_read", "raw", "whole_read")
    __hash__ = None  # type: ignore[assignment]

    def __new__(cls, *values: Any, **named: Any) -> EngineDay:  # type: ignore[misc] # noqa: D102 - a copy is a plain one
        return EngineDay(*values, **named)

    def __reduce__(self) -> tuple[Any, ...]:
        """As the plain day."""
        return EngineDay, tuple(getattr(self, field.name) for field in fields(EngineDay))

    def __eq__(self, other: object) -> bool:
        """Equal in all fields."""
        return isinstance(other, EngineDay) and _same(self, other, EngineDay)


def _same(one: object, other: object, kind: type[Any]) -> bool:
    return all(getattr(one, field.name) == getattr(other, field.name) for field in fields(kind))


def _setters(kind: type[Any], *names: str) -> list[Any]:
    """What writes these slots of a frozen class."""
    return [getattr(kind, name).__set__ for name in names]


_set_uuid, _set_gpu_day, _set_gpu_whole = _setters(GpuDay, "gpu_uuid", "day_ms", "whole")
_set_engine, _set_engine_day = _setters(EngineDay, "engine", "day_ms")
_ENGINE: Final = _setters(StoredEngineDay, "raw", "whole_read", "hourly_read")
(_set_gpu_row,) = _setters(StoredGpuDay, "raw")
_set_engine_row, _set_engine_whole, _set_engine_hourly = _ENGINE


def _nothing(_name: str, _start_ms: int) -> Sequence[Any]:
    """Of a row that is whole nothing is left to read."""
    raise LookupError("the row is whole")


def gpu_day_in(gpu_uuid: str, row: Sequence[Any], rest: Rest = _nothing) -> GpuDay:
    """Values of ``GPU_DAY``, or of ``GPU_DAY_PART`` with what gives all figures, as a day."""
    day: GpuDay = _new(StoredGpuDay)
    day_ms = row[0]
    _set_uuid(day, gpu_uuid)
    _set_gpu_day(day, day_ms)
    _set_gpu_row(day, row)
    _set_gpu_whole(day, gpu_part_in(gpu_uuid, day_ms, row[4:], rest))  # some rule asks for it in any case
    return day


def engine_day_in(engine: str, row: Sequence[Any], _rest: Rest = _nothing) -> EngineDay:
    """Values of ``ENGINE_DAY`` as a day."""
    day: EngineDay = _new(StoredEngineDay)
    _set_engine(day, engine)
    _set_engine_day(day, row[0])
    _set_engine_row(day, row)
    return day


def _engine_whole(day: Any) -> Any:
    try:
        return day.whole_read
    except AttributeError:
        found = engine_hour_in(day.engine, day.day_ms, day.raw[3:])
        _set_engine_whole(day, found)
        return found


def _engine_hourly(day: Any) -> Sequence[Any]:
    try:
        return day.hourly_read  # type: ignore[no-any-return]
    except AttributeError:
        values = ENGINE_HOURLY.unpack(day.raw[2])
        found = (
            values[:24],
            values[24:48],
            _known(values[48:72]),
            values[96:120],
            values[120:144],
            values[72:96],
            values[144],
        )
        _set_engine_hourly(day, found)
        return found


def _gpu_part(at: int) -> property:
    """Unpacked at each look: a look at one or two of the four is all that most days get."""
    unpack, begin = _ONE_HOURLY.unpack_from, at * _ONE_HOURLY.size
    return property(lambda day: unpack(day.raw[2], begin))


def _engine_part(at: int) -> property:
    return property(lambda day: _engine_hourly(day)[at])


def _known(values: Sequence[float]) -> Sequence[float | None]:
    return tuple([None if value < 0 else value for value in values]) if min(values) < 0 else values


def _known_part(at: int) -> property:
    return property(lambda day: _known(_engine_hourly(day)[at]))


for _kind, _parts in (
    (
        StoredGpuDay,
        {
            "seen": property(lambda day: day.raw[1]),
            "bare_idle_w": property(lambda day: day.raw[3]),
            **{
                name: _gpu_part(at)
                for at, name in enumerate(("covered_s", "active_s", "empty_s", "parked_s"))
            },
        },
    ),
    (
        StoredEngineDay,
        {
            "whole": property(_engine_whole),
            "seen": property(lambda day: day.raw[1]),
            **{
                name: (_known_part if name == "generated_tokens" else _engine_part)(at)
                for at, name in enumerate(
                    (
                        "covered_s",
                        "busy_s",
                        "running_p50",
                        "running_mean",
                        "kv_mean",
                        "generated_tokens",
                        "paired",
                    )
                )
            },
        },
    ),
):
    for _name, _part in _parts.items():
        setattr(_kind, _name, _part)
