"""A month against its budget: status, the day it breaks, what is left a day."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from core.user_budget import Budget, month_before
from ledger.budgets import Outlook, Status, outlook, standing
from ledger.forecast import DaySpend

MONTH, AFTER = date(2026, 10, 1), date(2026, 11, 1)


def days(until: date, usd: float = 100.0, history: int = 40) -> list[DaySpend]:
    """Every day the same, whole, up to and without ``until``."""
    first = MONTH - timedelta(days=history)
    return [
        DaySpend(first + timedelta(days=at), Decimal(usd), 1.0, 1.0, is_whole=True)
        for at in range((until - first).days)
    ]


def at(day: int, **more: Any) -> Outlook:
    until = date(2026, 10, day)
    return outlook(days(until, **more), MONTH, AFTER, until)


@pytest.mark.parametrize(
    ("amount", "status", "breaks", "left"),
    [
        (3100, Status.OK, None, 2100),
        (3000, Status.AT_RISK, date(2026, 10, 31), 2000),
        (2050, Status.AT_RISK, date(2026, 10, 21), 1050),
        (1000, Status.AT_RISK, date(2026, 10, 11), 0),
        (999, Status.OVER, date(2026, 10, 10), -1),
        (0, Status.OVER, date(2026, 10, 1), -1000),
    ],
)
def test_a_steady_month_breaks_when_the_sum_says_so(
    amount: int, status: Status, breaks: date | None, left: int
) -> None:
    found = standing(at(11), Decimal(amount))
    assert (found.status, found.breaks_on, found.left_usd) == (status, breaks, left)
    assert found.left_usd_per_day == (Decimal(max(0, left)) / 21).quantize(Decimal("0.01"), "ROUND_FLOOR")


def test_a_chance_in_ten_is_a_risk_and_says_from_when() -> None:
    restless = [
        day._replace(usd=Decimal(100 + (number * 7919) % 61))
        for number, day in enumerate(days(date(2026, 10, 11)))
    ]
    month = outlook(restless, MONTH, AFTER, date(2026, 10, 11))
    assert month.month_end is not None
    between = (month.month_end.p50 + month.month_end.p90) / 2
    found = standing(month, between)
    assert (found.status, found.breaks_on) == (Status.AT_RISK, None)
    assert found.earliest is not None
    assert standing(month, month.month_end.p90 + 1).status is Status.OK


def test_a_month_that_is_over_is_what_it_came_to() -> None:
    month = outlook(days(AFTER), MONTH, AFTER, AFTER)
    assert (month.spent_usd, month.is_over, month.days_left) == (3100, True, 0)
    assert month.month_end == (3100, 3100, 3100)
    assert standing(month, Decimal(3100)).status is Status.OK
    assert standing(month, Decimal(3050)).breaks_on == date(2026, 10, 31)
    assert standing(month, Decimal(3050)).left_usd_per_day is None


def test_what_the_day_in_progress_has_cost_is_spent() -> None:
    own = [*days(date(2026, 10, 11)), DaySpend(date(2026, 10, 11), Decimal(900), 1.0, 1.0, is_whole=False)]
    month = outlook(own, MONTH, AFTER, date(2026, 10, 11))
    assert month.spent_usd == 1900
    assert month.path[0] == (1900, 1900, 1900)
    assert month.month_end == (3100, 3100, 3100)


def test_without_a_forecast_only_what_was_spent_decides() -> None:
    month = at(5, history=5)
    assert month.month_end is None
    assert month.why == "9 whole days with spend are known, a forecast needs 14"
    assert standing(month, Decimal(500)).status is Status.OK
    assert standing(month, Decimal(300)).status is Status.OVER


def test_of_a_month_that_has_not_begun_nothing_is_known() -> None:
    month = outlook(days(date(2026, 9, 20)), MONTH, AFTER, date(2026, 9, 20))
    assert (month.spent_usd, month.why) == (None, "data end on 2026-09-19, before the month begins")
    assert standing(month, Decimal(1)).status is None


def test_without_any_price_nothing_is_spent_and_nothing_is_known() -> None:
    unpriced = [day._replace(usd=Decimal(0), priced_ratio=0.0) for day in days(date(2026, 10, 11))]
    month = outlook(unpriced, MONTH, AFTER, date(2026, 10, 11))
    assert (month.spent_usd, month.why) == (None, "nothing of it is priced")
    assert standing(month, Decimal(0)).status is None


def test_who_used_nothing_spent_nothing() -> None:
    none = [day._replace(usd=Decimal(0), priced_ratio=None) for day in days(date(2026, 10, 11))]
    month = outlook(none, MONTH, AFTER, date(2026, 10, 11))
    assert month.spent_usd == 0
    assert standing(month, Decimal(10)).status is Status.OK


GOOD: dict[str, Any] = {
    "id": 0,
    "name": "vision",
    "scope_kind": "team",
    "scope_value": "vision",
    "amount_usd": Decimal(1000),
    "from_month": "2026-10",
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": " "}, "name is ' '"),
        ({"scope_kind": "planet"}, "scope_kind is 'planet'"),
        ({"scope_value": ""}, "scope_value is ''"),
        ({"scope_kind": "all"}, "scope_value is 'vision' for scope_kind all: leave it out"),
        ({"scope_kind": "label"}, "give a host label as key=value"),
        ({"amount_usd": Decimal(-1)}, "amount_usd is -1"),
        ({"amount_usd": Decimal("nan")}, "amount_usd is NaN"),
        ({"from_month": "2026-13"}, "from_month is '2026-13'"),
        ({"from_month": "2026-10-01"}, "from_month is '2026-10-01'"),
        ({"to_month": "next"}, "to_month is 'next'"),
        ({"to_month": "2026-09"}, "to_month is '2026-09', before from_month '2026-10'"),
    ],
)
def test_a_budget_that_could_not_be_watched_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says.split("'", maxsplit=1)[0]) as refused:
        Budget(**GOOD | change)
    assert says in str(refused.value)


def test_budgets_hold_in_their_months_and_overlap_where_they_share_one() -> None:
    first, then = Budget(**GOOD | {"to_month": "2026-12"}), Budget(**GOOD | {"from_month": "2027-01"})
    assert [first.holds_in(month) for month in ("2026-09", "2026-10", "2026-12", "2027-01")] == [
        False,
        True,
        True,
        False,
    ]
    assert not first.overlaps(then)
    assert not then.overlaps(first)
    assert Budget(**GOOD).overlaps(then)
    assert [month_before(month) for month in ("2027-01", "2026-10")] == ["2026-12", "2026-09"]
