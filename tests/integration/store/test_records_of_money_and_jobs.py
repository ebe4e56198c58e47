"""Prices, job runs and facts about the database, on both databases."""

from decimal import Decimal

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from core.errors import StoreError
from core.user_price import UserPrice
from store.queries import jobs, meta, prices

T0 = 1_791_158_400_000


def price(session: Session, **changes: object) -> UserPrice:
    given: dict[str, object] = {
        "scope_kind": "model",
        "scope_value": "NVIDIA H100 PCIe",
        "usd_per_gpu_hour": Decimal("2.123456"),
        "billing": "on_demand",
        "valid_from_ms": T0,
    }
    return prices.add(session, **(given | changes))  # type: ignore[arg-type]


def test_a_price_comes_back_to_the_micro_dollar(session: Session) -> None:
    given = price(session, note="contract 7", gpus_per_unit=8, valid_to_ms=T0 + 1)
    session.commit()
    assert prices.listing(session) == [given]
    assert given.amount_per_gpu_hour == Decimal("2.123456")
    assert (given.note, given.gpus_per_unit, given.valid_to_ms) == ("contract 7", 8, T0 + 1)
    assert session.execute(text("SELECT amount_per_gpu_hour FROM price")).scalar() == 2_123_456
    assert prices.get(session, given.id) == given


def test_a_price_may_leave_open_how_many_gpus_are_released_together(session: Session) -> None:
    given = price(session)
    session.commit()
    assert given.gpus_per_unit is None
    assert prices.listing(session) == [given]


def test_a_price_for_all_has_no_value(session: Session) -> None:
    assert price(session, scope_kind="all", scope_value="").scope_value == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope_kind": "galaxy"},
        {"scope_kind": "all"},
        {"scope_value": ""},
        {"usd_per_gpu_hour": Decimal(-1)},
        {"gpus_per_unit": 0},
        {"billing": "barter"},
        {"valid_to_ms": T0},
    ],
)
def test_a_price_that_could_not_be_applied_is_refused(session: Session, wrong: dict[str, object]) -> None:
    with pytest.raises(StoreError, match="the price is refused"):
        price(session, **wrong)
    assert prices.listing(session) == []


def test_a_price_can_end_and_can_be_removed(session: Session) -> None:
    given = price(session)
    assert prices.end(session, given.id, T0 + 5).valid_to_ms == T0 + 5
    assert prices.delete(session, given.id) is True
    assert prices.delete(session, given.id) is False
    assert prices.get(session, given.id) is None
    with pytest.raises(StoreError, match="no price"):
        prices.end(session, given.id, T0 + 6)


def test_the_newest_run_of_each_job_is_told(session: Session) -> None:
    first = jobs.start(session, "roll-up", T0)
    jobs.finish(session, first, T0 + 50, ok=True, message="3 GPU hours")
    jobs.start(session, "roll-up", T0 + 60_000)
    other = jobs.start(session, "advice", T0 + 10)
    jobs.finish(session, other, T0 + 20, ok=False, message="KeyError: 'x'")
    session.commit()
    assert jobs.last_runs(session) == [
        jobs.JobRun("advice", T0 + 10, T0 + 20, ok=False, message="KeyError: 'x'"),
        jobs.JobRun("roll-up", T0 + 60_000, None, ok=None, message=None),
    ]


def test_a_run_that_never_started_cannot_finish(session: Session) -> None:
    with pytest.raises(StoreError, match="no job run 7"):
        jobs.finish(session, 7, T0, ok=True, message=None)


def test_facts_are_put_and_replaced(session: Session) -> None:
    assert meta.get(session, "k") is None
    meta.put(session, "k", "1")
    meta.put(session, "k", "2")
    session.commit()
    assert meta.get(session, "k") == "2"


def test_a_database_is_real_until_it_is_said_to_be_simulated(session: Session) -> None:
    assert meta.simulated(session) is False
    meta.set_simulated(session)
    session.commit()
    assert meta.simulated(session) is True
