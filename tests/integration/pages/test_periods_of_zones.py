"""Periods of pages in a zone of their own: the first to the last of a month are that month; odd ones are refused in words."""

import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for
from tests.integration.pages.conftest import PERSON


def person_in(url: str, zone: str) -> TestClient:
    app = create_app(replace(settings_for(url), accounting_time_zone=zone))
    app.state.clock = lambda: NOW
    return TestClient(app, base_url="http://127.0.0.1:8787", headers=PERSON)


def headline_of(page: str) -> str:
    found = re.search(r"<h1.*?</h1>", page, re.DOTALL)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"])
def test_days_of_the_form_are_accounting_days(ready_database: str, zone: str) -> None:
    fill(ready_database)
    person = person_in(ready_database, zone)
    month = person.get("/costs", params={"month": "2026-10"})
    days = person.get("/costs", params={"since": "2026-10-01", "through": "2026-10-31"})
    assert (month.status_code, days.status_code) == (200, 200)
    assert "$8.00" in month.text
    assert headline_of(days.text) == headline_of(month.text)


@pytest.mark.parametrize(
    ("zone", "day"), [("Europe/Berlin", "2026-10-05"), ("America/New_York", "2026-10-04")]
)
def test_a_day_of_the_form_holds_what_its_zone_calls_that_day(
    ready_database: str, zone: str, day: str
) -> None:
    fill(ready_database)  # two hours from midnight in UTC: in New York that is the evening before
    person = person_in(ready_database, zone)
    shown = dict(re.findall(r'type="date" name="(\w+)" value="([^"]*)"', person.get("/costs").text))
    assert shown == {"since": day, "through": day}
    assert "$8.00" in person.get("/costs", params=shown).text


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"since": "0001-01-01", "through": "9999-12-31"}, 200),
        ({"since": "1970-01-01", "through": "2026-10-05"}, 200),
        ({"month": "0001-01"}, 400),
        ({"month": "1970-01"}, 200),
        ({"month": "9999-12"}, 400),
        ({"since": "2026-10-06", "through": "2026-10-05"}, 400),
        ({"since": "2026-13-01", "through": "2026-10-05"}, 400),
    ],
)
def test_periods_at_the_ends_of_the_clock(
    ready_database: str, zone: str, asked: dict[str, str], status: int
) -> None:
    fill(ready_database)
    assert person_in(ready_database, zone).get("/costs", params=asked).status_code == status


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        (
            "Asia/Kolkata",
            "days of money in Asia/Kolkata, each from the first full hour of UTC after midnight there.",
        ),
        ("Europe/Berlin", "days of money in Europe/Berlin."),
    ],
)
def test_the_foot_of_a_page_says_where_its_days_begin(ready_database: str, zone: str, said: str) -> None:
    assert said in person_in(ready_database, zone).get("/costs").text
