"""How hours and days of GPUs, engines and hosts are read by place: one description each, used alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic

from core.days import EngineDay, GpuDay, HostDay, engine_day, gpu_day, host_day
from core.hours import EngineHour, GpuHour, HostHour
from core.series import D, H
from store.day_rows import HOST_DAY, host_day_in
from store.hour_rows import HOST_FIGURES
from store.models.engine_day import EngineDayRow
from store.models.engine_hour import EngineHourRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_hour import GpuHourRow
from store.models.host_day import HostDayRow
from store.models.host_hour import HostHourRow
from store.rows_as_days import ENGINE_DAY, GPU_DAY_PART, engine_day_in, gpu_day_in
from store.rows_as_hours import (
    ENGINE_FIGURES,
    GPU_FIGURES,
    GPU_HOUR_FIRST,
    Rest,
    engine_hour_in,
    gpu_hour_in,
    gpu_part_in,
)


@dataclass(frozen=True, slots=True)
class Kind(Generic[H, D]):
    """One kind of subject.

    Attributes:
        name: as in marks (``gpu``). key: column of both tables that names the subject.
        hours, days: their tables. hour_figures, day_columns: what to select, in the readers' order.
        hour_part: the first of ``hour_figures``, which rules ask of nearly all. outline_columns: the first of
            ``day_columns``, all that is told of each hour of a day.
        hour_in: subject's name, start of the hour and figures → hour. hour_part_in: the same of ``hour_part``, and
            what reads the rest. day_in: name, columns and what reads the rest of a day's figures → day.
        fold: hours of one day → day.
    """

    name: str
    key: str
    hours: Any
    days: Any
    hour_figures: tuple[str, ...]
    hour_part: tuple[str, ...]
    day_columns: tuple[str, ...]
    outline_columns: tuple[str, ...]
    hour_in: Callable[[str, int, Sequence[Any]], H]
    hour_part_in: Callable[[str, int, Sequence[Any], Rest], H]
    day_in: Callable[[str, Sequence[Any], Rest], D]
    fold: Callable[[Sequence[H]], D]


def _host_hour_in(host: str, start_ms: int, row: Sequence[Any], _rest: Rest | None = None) -> HostHour:
    return HostHour(host, start_ms, *row)


def _host_day_in(host: str, row: Sequence[Any], _rest: Rest) -> HostDay:
    return host_day_in(host, row)


def _engine_hour_in(engine: str, start_ms: int, row: Sequence[Any], _rest: Rest) -> EngineHour:
    return engine_hour_in(engine, start_ms, row)


GPUS: Final[Kind[GpuHour, GpuDay]] = Kind(
    "gpu", "gpu_id", GpuHourRow.__table__, GpuDayRow.__table__,
    GPU_FIGURES, GPU_HOUR_FIRST, GPU_DAY_PART, GPU_DAY_PART[:4], gpu_hour_in, gpu_part_in, gpu_day_in, gpu_day,
)  # fmt: skip
ENGINES: Final[Kind[EngineHour, EngineDay]] = Kind(
    "engine", "engine_id", EngineHourRow.__table__, EngineDayRow.__table__,
    ENGINE_FIGURES, ENGINE_FIGURES, ENGINE_DAY, ENGINE_DAY[:3], engine_hour_in, _engine_hour_in, engine_day_in, engine_day,
)  # fmt: skip
HOSTS: Final[Kind[HostHour, HostDay]] = Kind(
    "host", "host_id", HostHourRow.__table__, HostDayRow.__table__,
    HOST_FIGURES, HOST_FIGURES, HOST_DAY, HOST_DAY, _host_hour_in, _host_hour_in, _host_day_in, host_day,
)  # fmt: skip
