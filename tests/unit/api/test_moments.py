"""When something that people keep begins or ends."""

import pytest

from api.resources.moments import check_year, moment
from core.clock import iso
from core.errors import UsageError

NOW = 1_790_985_600_000  # 2026-10-03T00:00:00Z


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-10-03", "2026-10-02T22:00:00.000Z"),
        (" 2026-12-03 ", "2026-12-02T23:00:00.000Z"),
        ("2026-10-03T00:00:00+05:00", "2026-10-02T19:00:00.000Z"),
        ("7d", "2026-09-26T00:00:00.000Z"),
        ("1970-01-01", "1970-01-01T00:00:00.000Z"),
        ("1998d", "2021-04-14T00:00:00.000Z"),
        ("9998-12-31", "9998-12-30T23:00:00.000Z"),
    ],
)
def test_a_day_begins_at_midnight_of_its_zone_and_a_time_when_it_says(text: str, at: str) -> None:
    assert iso(moment(text, "Europe/Berlin", NOW, "valid_from")) == at


@pytest.mark.parametrize("text", ["1900-01-01", "1969-12-31T23:00:00Z", "9999-12-31", "0001-01-01"])
def test_a_year_out_of_bounds_is_refused_and_not_moved(text: str) -> None:
    with pytest.raises(UsageError, match=f"valid_to is '{text}': give a year from 1970 to 9998"):
        moment(text, "UTC", NOW, "valid_to")


def test_a_day_that_is_none_and_a_zone_that_is_none_are_refused() -> None:
    with pytest.raises(UsageError, match="on is '2026-02-30'"):
        moment("2026-02-30", "UTC", NOW, "on")
    with pytest.raises(ValueError, match="time_zone is 'Europe/Berln'"):
        moment("2026-02-03", "Europe/Berln", NOW, "on")
    check_year("2026-10-03", "from_day")
