"""What a kilowatt-hour costs: one price for every hour, or a refusal that names the hole."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.clock import to_ms
from core.units import DAY_MS, HOUR_MS
from core.user_tariff import DAY_H, WEEK_H, WEEKDAYS, Period, Tariff
from ledger.tariff import hours_utc, local_day_ms, overlap, parse_weekdays, usd_per_kwh, weekdays_text

DEAR, CHEAP = Decimal("0.30"), Decimal("0.10")
WORKDAYS, WEEKEND = (0, 1, 2, 3, 4), (5, 6)
DAY_AND_NIGHT = (
    Period(WORKDAYS, 6, 22, DEAR),
    Period(WORKDAYS, 22, 24, CHEAP),
    Period(WORKDAYS, 0, 6, CHEAP),
    Period(WEEKEND, 0, 24, CHEAP),
)
BERLIN = Tariff(1, "berlin", "Europe/Berlin", None, DAY_AND_NIGHT)
FLAT = Tariff(2, "flat", None, Decimal("0.2"), ())
ZONES = sorted(available_timezones())


def at(text: str) -> int:
    return to_ms(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    ("time", "usd"),
    [
        ("2026-01-05T05:00:00+01:00", CHEAP),
        ("2026-01-05T06:00:00+01:00", DEAR),
        ("2026-01-05T21:00:00+01:00", DEAR),
        ("2026-01-05T22:00:00+01:00", CHEAP),
        ("2026-01-10T12:00:00+01:00", CHEAP),  # a Saturday
        ("2026-07-06T04:00:00+00:00", DEAR),  # 06:00 in summer
        ("2026-01-05T05:00:00+00:00", DEAR),  # 06:00 in winter
    ],
)
def test_the_local_clock_decides(time: str, usd: Decimal) -> None:
    assert usd_per_kwh(BERLIN, at(time)) == usd


def test_one_price_needs_no_clock() -> None:
    assert {usd_per_kwh(FLAT, hour * HOUR_MS) for hour in range(1000)} == {Decimal("0.2")}
    assert hours_utc(FLAT, 0) is None


def test_a_period_over_midnight_belongs_to_the_day_it_begins_on() -> None:
    night = replace(
        BERLIN,
        time_zone="UTC",
        periods=(Period(tuple(range(7)), 22, 6, CHEAP), Period(tuple(range(7)), 6, 22, DEAR)),
    )
    assert usd_per_kwh(night, at("2026-10-05T23:00:00Z")) == CHEAP
    assert usd_per_kwh(night, at("2026-10-05T05:00:00Z")) == CHEAP
    friday = Period((4,), 22, 6, CHEAP)
    assert friday.hours == [4 * 24 + 22, 4 * 24 + 23, *(5 * 24 + hour for hour in range(6))]
    assert Period((6,), 23, 1, CHEAP).hours == [6 * 24 + 23, 0]


@pytest.mark.parametrize(
    ("periods", "says"),
    [
        ((Period(WORKDAYS, 0, 24, DEAR),), "leave out sat 00:00–24:00"),
        ((Period(tuple(range(7)), 6, 22, DEAR),), "leave out mon 00:00–06:00"),
        ((Period(tuple(range(7)), 0, 24, DEAR), Period((2,), 7, 9, CHEAP)), "overlap on wed 07:00–09:00"),
        ((*DAY_AND_NIGHT, Period((0,), 23, 24, CHEAP)), "overlap on mon 23:00–24:00"),
    ],
)
def test_a_hole_or_an_overlap_is_refused_by_name(periods: tuple[Period, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        replace(BERLIN, periods=periods)
    assert "'berlin'" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"time_zone": None}, "time_zone is not given"),
        ({"time_zone": "Berlin"}, "time_zone is 'Berlin'"),
        ({"time_zone": "../etc/passwd"}, "time_zone is"),
        ({"periods": ()}, "either usd_per_kwh"),
        ({"usd_per_kwh": DEAR}, "either usd_per_kwh"),
        ({"name": " "}, "name is ' '"),
        ({"valid_from_ms": 5, "valid_to_ms": 5}, "valid_to is not after valid_from"),
    ],
)
def test_a_tariff_that_could_not_be_applied_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(BERLIN, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("period", "says"),
    [
        (((), 0, 24, DEAR), "weekdays is"),
        (((7,), 0, 24, DEAR), "weekdays is"),
        (((0,), 24, 24, DEAR), "from_hour is 24"),
        (((0,), 0, 0, DEAR), "to_hour is 0"),
        (((0,), 0, 25, DEAR), "to_hour is 25"),
        (((0,), 0, 24, Decimal("-0.01")), "usd_per_kwh is -0.01"),
        (((0,), 0, 24, Decimal(28)), "usd_per_kwh is 28"),
        (((0,), 0, 24, Decimal("NaN")), "usd_per_kwh is NaN"),
        (((0,), 0, 24, Decimal("0.1234567")), "at most 6 decimals"),
    ],
)
def test_a_period_that_is_none_is_refused(period: tuple[object, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Period(*period)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(
    st.sampled_from(ZONES),
    st.integers(2000, 2036),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 23)), min_size=1, max_size=12, unique=True),
)
def test_every_hour_of_a_year_has_exactly_one_price_in_any_zone(
    zone: str, year: int, cuts: list[tuple[int, int]]
) -> None:
    # Any set of cuts makes a week of periods that cover it once; prices tell them apart.
    starts = sorted(day * DAY_H + hour for day, hour in cuts)
    spans = zip(starts, [*starts[1:], starts[0] + WEEK_H], strict=True)
    periods = [
        Period((hour % WEEK_H // DAY_H,), hour % DAY_H, hour % DAY_H + 1, Decimal(index) / 100)
        for index, (start, end) in enumerate(spans)
        for hour in range(start, end)
    ]
    tariff = Tariff(1, "cuts", zone, None, tuple(periods))
    by_hour = {(p.weekdays[0], p.from_hour): p.usd_per_kwh for p in periods}
    clock, first = ZoneInfo(zone), datetime(year, 1, 1, tzinfo=UTC)
    for hour in range(366 * DAY_H):
        moment = first + timedelta(hours=hour)
        local = moment.astimezone(clock)
        assert usd_per_kwh(tariff, to_ms(moment)) == by_hour[local.weekday(), local.hour]


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)])
def test_days_of_23_and_25_hours_price_the_hours_they_have(day: str, hours: int) -> None:
    tariff = replace(
        BERLIN,
        periods=tuple(
            Period(tuple(range(7)), hour, hour + 1, Decimal(hour + 1) / 100) for hour in range(DAY_H)
        ),
    )
    start = local_day_ms(date.fromisoformat(day), "Europe/Berlin")
    found = [usd_per_kwh(tariff, start + at * HOUR_MS) for at in range(hours)]
    assert (found[0], found[-1]) == (Decimal("0.01"), Decimal("0.24"))
    assert usd_per_kwh(tariff, start + hours * HOUR_MS) == Decimal("0.01")
    twice = [price for price in set(found) if found.count(price) == 2]
    left_out = {Decimal(hour + 1) / 100 for hour in range(DAY_H)} - set(found)
    assert twice == ([Decimal("0.03")] if hours == 25 else [])
    assert left_out == ({Decimal("0.03")} if hours == 23 else set())


def test_the_day_of_hours_is_the_mean_over_a_week() -> None:
    week = Tariff(1, "utc", "UTC", None, DAY_AND_NIGHT)
    hours = hours_utc(week, at("2026-10-07T13:00:00Z"))
    assert hours is not None
    assert len(hours) == DAY_H
    assert hours[12] == (5 * DEAR + 2 * CHEAP) / 7
    assert hours[3] == CHEAP


def test_a_day_begins_where_the_tariff_is() -> None:
    assert local_day_ms(date(2026, 7, 1), "Europe/Berlin") == at("2026-06-30T22:00:00Z")
    assert local_day_ms(date(2026, 7, 1), "UTC") == at("2026-07-01T00:00:00Z")


def test_prices_of_one_name_follow_each_other() -> None:
    old = replace(FLAT, valid_to_ms=DAY_MS)
    new = replace(FLAT, id=3, valid_from_ms=DAY_MS)
    assert overlap([old], new) is None
    assert overlap([FLAT], new) is FLAT
    assert overlap([old], replace(new, valid_from_ms=DAY_MS - 1)) is old
    assert overlap([new], replace(FLAT, id=0)) is new
    assert overlap([FLAT], replace(new, name="other")) is None


@pytest.mark.parametrize(
    ("text", "days", "again"),
    [
        ("mon-fri", WORKDAYS, "mon-fri"),
        ("all", tuple(range(7)), "all"),
        ("Sat, Sunday", WEEKEND, "sat,sun"),
        ("fri-mon", (0, 4, 5, 6), "mon,fri,sat,sun"),
        ("WED", (2,), "wed"),
    ],
)
def test_weekdays_in_words(text: str, days: tuple[int, ...], again: str) -> None:
    assert parse_weekdays(text) == days
    assert weekdays_text(days) == again


@pytest.mark.parametrize("text", ["", "mon-", "someday", "mon;tue", "1-5"])
def test_other_words_are_no_weekdays(text: str) -> None:
    with pytest.raises(ValueError, match="weekdays is"):
        parse_weekdays(text)


@given(st.sets(st.integers(0, len(WEEKDAYS) - 1), min_size=1))
def test_weekdays_come_back_from_their_words(days: set[int]) -> None:
    assert parse_weekdays(weekdays_text(days)) == tuple(sorted(days))
