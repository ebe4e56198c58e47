"""Addresses of pages: what links keep, what they change, how tables are ordered, what filters offer."""

import pytest

from api.pages.filters import filter_bar, report_filters
from api.pages.frame import window_words
from api.pages.period import PERIODS, links_of
from api.pages.sorting import Column, sort_rows
from api.pages.view import Address, whole_days
from core.errors import UsageError
from core.evidence import Window
from ledger.calendar import Calendar

HERE = Address("/costs", (("since", "7d"), ("by", "owner"), ("owner", "search & ads"), ("owner", "lab")))


def test_a_link_changes_one_parameter_and_keeps_the_others() -> None:
    assert HERE.href(by="host") == "/costs?since=7d&owner=search+%26+ads&owner=lab&by=host"
    assert HERE.href(owner=None) == "/costs?since=7d&by=owner"
    assert Address("/costs").href() == "/costs"


def test_another_page_keeps_the_period_and_nothing_else() -> None:
    assert HERE.link("/energy") == "/energy?since=7d"
    assert (
        Address("/costs", (("month", "2026-10"), ("by", "day"))).link("/energy", by="host")
        == "/energy?month=2026-10&by=host"
    )


def test_another_period_takes_the_place_of_the_old_one_however_it_was_asked_for() -> None:
    asked = Address("/costs", (("month", "2026-10"), ("until", "2026-11-01"), ("by", "host")))
    links = links_of(asked, PERIODS, "")
    assert [link.href for link in links][:2] == ["/costs?by=host&since=24h", "/costs?by=host&since=7d"]
    assert not any(link.current for link in links)


def test_each_filter_in_force_has_a_link_without_it_alone() -> None:
    bar = filter_bar(HERE, {"owner": ["lab", "search & ads"], "host": []})
    assert [field.parameter for field in bar.fields] == ["owner"]
    assert [chip.value for chip in bar.chips] == ["search & ads", "lab"]
    assert bar.chips[1].href == "/costs?since=7d&by=owner&owner=search+%26+ads"
    assert bar.clear == "/costs?since=7d&by=owner"
    assert bar.hidden == (("since", "7d"), ("by", "owner"))


def test_filters_of_the_address_reach_the_report() -> None:
    assert report_filters(HERE).owner == ("search & ads", "lab")
    assert report_filters(HERE).host == ()


COLUMNS = {"name": Column("Name", lambda row: row[0], down=False), "cost": Column("Cost", lambda row: row[1])}
ROWS = [("b", 2.0), ("a", None), ("c", 9.0)]


def test_rows_without_a_value_come_last_in_either_direction() -> None:
    up, _ = sort_rows(Address("/x", (("sort", "cost"),)), ROWS, COLUMNS, "-cost")
    down, links = sort_rows(Address("/x"), ROWS, COLUMNS, "-cost")
    assert [row[0] for row in up] == ["b", "c", "a"]
    assert [row[0] for row in down] == ["c", "b", "a"]
    assert links["cost"].order == "descending"
    assert links["cost"].href == "/x?sort=cost"
    assert links["name"].href == "/x?sort=name"


def test_an_unknown_column_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="use one of name, cost"):
        sort_rows(Address("/x", (("sort", "<b>"),)), ROWS, COLUMNS, "-cost")


def test_a_period_of_days_begins_where_its_first_accounting_day_does() -> None:
    noon = 1_790_856_000_000  # 2026-10-01T12:00Z
    assert whole_days("30d", "UTC", noon) == "2026-09-02T00:00:00.000Z"
    assert whole_days("2w", "Europe/Berlin", noon) == "2026-09-17T22:00:00.000Z"
    assert whole_days("24h", "UTC", noon) == "24h"
    assert whole_days("1d", "UTC", noon) == "1d"
    assert whole_days("2026-09-03", "UTC", noon) == "2026-09-03"
    assert whole_days("9999d", "UTC", noon) == "1999-05-18T00:00:00.000Z"
    assert whole_days("9999w", "UTC", noon) == "9999w", "before the clock began"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"])
def test_a_month_is_told_by_its_own_days_in_every_zone(zone: str) -> None:
    month = Calendar(zone).month("2026-10")
    assert window_words(Window(month.from_ms, month.to_ms), zone) == "1 Oct – 31 Oct 2026"


def test_hours_are_told_in_utc_in_every_zone() -> None:
    day = Calendar("Europe/Berlin").day("2026-10-05")
    assert (
        window_words(Window(day.from_ms, day.to_ms), "Europe/Berlin") == "4 Oct 2026 22:00 – 5 Oct 22:00 UTC"
    )
