"""Days of a MIG slice from its own hours."""

from dataclasses import replace

import pytest
from store_samples import H0, gpu_sample

from api.pages.gpu_days import slice_days
from core.activity import Activity
from core.evidence import Window
from core.hours import GpuHour
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from ledger.calendar import Calendar
from store.fold_hours import fold_gpu_hour

UTC = Calendar("UTC")
PATH = "/gpus/MIG-a"
GOOD = fold_gpu_hour("MIG-a", H0, [gpu_sample()])


def hour(at: int, **minutes: int) -> GpuHour:
    """The hour that begins ``at`` hours into the first day, with minutes by activity."""
    assert GOOD is not None
    seconds = {Activity(name): 60.0 * count for name, count in minutes.items()}
    return replace(GOOD, hour_ms=H0 + at * HOUR_MS, seconds=seconds, covered_s=sum(seconds.values()))


def test_a_day_tells_work_idleness_and_what_nothing_tells() -> None:
    hours = [hour(0, busy=40, parked=20), hour(1, empty=30), hour(2, unknown=60)]
    (day,) = slice_days(hours, Window(H0, H0 + 3 * HOUR_MS), UTC, PATH)
    assert (day.day, day.href) == ("2026-10-05", f"{PATH}/hours?day=2026-10-05")
    assert day.gpu_h == 3.0
    assert day.active_h == pytest.approx(40 / 60)
    assert day.idle_h == pytest.approx(50 / 60)
    assert day.unknown_h == pytest.approx(1.5), "half an hour of gap and an hour without a name"
    assert (day.cost_usd, day.idle_usd) == (None, None)


def test_a_day_without_samples_between_is_a_gap_and_not_idle() -> None:
    lines = slice_days([hour(1, busy=60), hour(50, busy=60)], Window(H0, H0 + 51 * HOUR_MS), UTC, PATH)
    assert [line.day for line in lines] == ["2026-10-07", "2026-10-06", "2026-10-05"]
    gap = lines[1]
    assert (gap.gpu_h, gap.active_h, gap.idle_h, gap.unknown_h) == (24.0, None, None, 24.0)


def test_a_day_whose_activity_nobody_could_name_is_not_idle() -> None:
    (day,) = slice_days([hour(0, unknown=60)], Window(H0, H0 + HOUR_MS), UTC, PATH)
    assert (day.active_h, day.idle_h, day.unknown_h) == (None, None, 1.0)


def test_days_are_those_of_the_accounting_zone_and_end_with_the_samples() -> None:
    known = Window(H0 + 30 * MINUTE_MS, H0 + DAY_MS)
    last, first = slice_days([hour(0, busy=30), hour(22, busy=60)], known, Calendar("Europe/Berlin"), PATH)
    assert (first.day, first.gpu_h, first.active_h) == ("2026-10-05", 21.5, 0.5)
    assert (last.day, last.gpu_h, last.active_h) == ("2026-10-06", 2.0, 1.0)
