"""Accounting days cover time without a hole, whatever the zone does."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clock import from_ms, to_ms
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar, utc_month_parts

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kiritimati",
)
CALENDARS = {zone: Calendar(zone) for zone in ZONES}
TIMES = st.integers(to_ms(datetime(2009, 1, 1, tzinfo=UTC)), to_ms(datetime(2032, 1, 1, tzinfo=UTC)))


def _ms(text: str) -> int:
    return to_ms(datetime.fromisoformat(text))


@given(st.sampled_from(ZONES), TIMES)
def test_days_follow_each_other_without_a_hole(zone: str, at_ms: int) -> None:
    days = CALENDARS[zone].days(at_ms, at_ms + 10 * DAY_MS)
    assert days[0].from_ms <= at_ms < days[0].to_ms
    assert days[-1].to_ms >= at_ms + 10 * DAY_MS
    assert all(one.to_ms == other.from_ms for one, other in pairwise(days))
    assert all(
        day.from_ms % HOUR_MS == 0 and day.to_ms - day.from_ms in {h * HOUR_MS for h in (23, 24, 25)}
        for day in days
    )
    assert all(0 <= day.from_ms - day.start_ms < HOUR_MS for day in days)


@given(st.sampled_from(ZONES), TIMES)
def test_an_hour_belongs_to_the_day_in_which_it_begins(zone: str, at_ms: int) -> None:
    calendar = CALENDARS[zone]
    hour_ms = at_ms - at_ms % HOUR_MS
    day, week, month = calendar.day_at(at_ms), calendar.week_at(at_ms), calendar.month_at(at_ms)
    assert day.key == from_ms(hour_ms).astimezone(calendar._zone).date().isoformat()
    assert week.from_ms <= day.from_ms < day.to_ms <= week.to_ms
    assert month.from_ms <= day.from_ms < day.to_ms <= month.to_ms
    assert month.key == day.key[:7]
    assert calendar.month(month.key) == month


@given(st.sampled_from(ZONES), TIMES)
def test_weeks_and_months_follow_each_other(zone: str, at_ms: int) -> None:
    for spans in (
        CALENDARS[zone].weeks(at_ms, at_ms + 60 * DAY_MS),
        CALENDARS[zone].months(at_ms, at_ms + 60 * DAY_MS),
    ):
        assert all(one.to_ms == other.from_ms for one, other in pairwise(spans))


def test_days_of_summer_time_have_23_and_25_hours() -> None:
    berlin = CALENDARS["Europe/Berlin"]
    spring, autumn = (
        berlin.day_at(_ms("2026-03-29T12:00:00+02:00")),
        berlin.day_at(_ms("2026-10-25T12:00:00+01:00")),
    )
    assert (spring.to_ms - spring.from_ms, autumn.to_ms - autumn.from_ms) == (23 * HOUR_MS, 25 * HOUR_MS)
    assert (spring.key, autumn.key) == ("2026-03-29", "2026-10-25")


def test_a_half_hour_zone_begins_with_the_first_hour_after_midnight() -> None:
    day = CALENDARS["Asia/Kolkata"].day_at(_ms("2026-10-05T12:00:00+05:30"))
    assert day.start_ms == _ms("2026-10-04T18:30:00+00:00")
    assert (day.from_ms, day.to_ms) == (_ms("2026-10-04T19:00:00+00:00"), _ms("2026-10-05T19:00:00+00:00"))


def test_a_day_that_a_zone_skipped_has_no_hours() -> None:
    days = CALENDARS["Pacific/Apia"].days(_ms("2011-12-29T12:00:00-10:00"), _ms("2011-12-31T12:00:00+14:00"))
    assert [day.key for day in days] == ["2011-12-29", "2011-12-31"]


def test_weeks_are_those_of_iso_8601() -> None:
    week = CALENDARS["UTC"].week_at(_ms("2027-01-02T00:00:00+00:00"))
    assert (week.key, week.from_ms) == ("2026-W53", _ms("2026-12-28T00:00:00+00:00"))


@pytest.mark.parametrize("text", ["2026", "2026-13", "2026-1", "october", "2026-10-01"])
def test_a_month_is_written_with_its_year(text: str) -> None:
    with pytest.raises(ValueError, match="is not a month such as 2026-10"):
        CALENDARS["UTC"].month(text)


@given(TIMES, st.integers(1, 100 * 24))
def test_no_part_crosses_a_month_in_utc(at_ms: int, length_h: int) -> None:
    start = at_ms - at_ms % HOUR_MS
    parts = utc_month_parts(start, start + length_h * HOUR_MS)
    assert (parts[0][0], parts[-1][1]) == (start, start + length_h * HOUR_MS)
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    for first, after in parts:
        assert f"{from_ms(first):%Y-%m}" == f"{from_ms(after - 1):%Y-%m}"
