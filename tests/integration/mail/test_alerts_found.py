"""What is a fault and what is none, on both databases."""

from decimal import Decimal

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.alerts import send
from api.resources.ledger_days import materialise
from core.finding import Range, Saving, Status, Subject
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from core.user_budget import Budget
from store.engine import make_engine, session_scope
from store.queries import alerts as kept
from store.queries import budgets, owners, recommendations
from tests.integration.api.fleet_for_tests import NOW, A, B, fill
from tests.integration.mail.alerts_for_tests import (
    advise,
    cash,
    event,
    faults,
    health,
    hear,
    quiet,
    titles,
)


def test_a_healthy_fleet_that_reports_has_no_faults(fleet: Engine) -> None:
    assert faults(fleet, quiet()) == ()


def test_an_agent_that_falls_silent_is_a_fault_with_its_gpus(fleet: Engine) -> None:
    hear(fleet, NOW + 20 * MINUTE_MS, "h2")
    assert faults(fleet, quiet(), NOW + 14 * MINUTE_MS) == ()
    (one,) = faults(fleet, quiet(), NOW + 20 * MINUTE_MS)
    assert (one.title, one.key, one.gpu_uuids) == ("The agent on h1 is silent", "agent-silent:h1", (A, B))
    assert "since 5 Oct 02:00 UTC. Its 2 GPUs cannot be seen." in one.detail


def test_a_fleet_that_is_silent_as_a_whole_is_one_fault(fleet: Engine) -> None:
    assert titles(fleet, quiet(), NOW + HOUR_MS) == ["No agent reports any more"]


def test_a_host_that_was_taken_away_long_ago_is_none(fleet: Engine) -> None:
    hear(fleet, NOW + 14 * DAY_MS, "h2")
    assert titles(fleet, quiet(), NOW + 13 * DAY_MS) == ["The agent on h1 is silent"]
    assert titles(fleet, quiet(), NOW + 14 * DAY_MS) == []


def test_imported_logs_that_end_are_no_silence(ready_database: str) -> None:
    fill(ready_database)
    assert faults(make_engine(ready_database), quiet(), NOW + HOUR_MS) == ()


def test_a_lost_gpu_is_a_fault_until_it_is_found(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    (one,) = faults(fleet, quiet())
    assert (one.title, one.detail, one.path) == (
        "GPU 0 on h1 does not answer",
        "The GPU stopped answering.",
        "/gpus/GPU-a",
    )
    event(fleet, A, NOW, "found", "The GPU answers again.")
    assert faults(fleet, quiet()) == ()


def test_a_sick_gpu_is_judged_by_the_rule_and_a_broken_program_is_no_fault(fleet: Engine) -> None:
    event(fleet, A, NOW - HOUR_MS, "xid", "XID 79: GPU has fallen off the bus.", code=79)
    event(fleet, B, NOW - HOUR_MS, "xid", "XID 31: GPU memory page fault.", code=31)
    health(fleet, B, NOW - MINUTE_MS, row_remap_pending=1.0, recovery_action="none")
    worst, other = faults(fleet, quiet())
    assert (worst.title, worst.severity.name) == ("Drain and reboot the host of GPU 0 on h1", "BAD")
    assert (other.title, other.severity.name) == ("Reset at the next window GPU 1 on h1", "WARN")
    assert other.detail == "A row remapping waits for a reset."


def test_a_gpu_that_somebody_took_in_hand_is_no_fault(fleet: Engine) -> None:
    event(fleet, A, NOW - HOUR_MS, "xid", "XID 48: double-bit ECC error.", code=48)
    assert len(faults(fleet, quiet())) == 1
    id_ = advise(
        fleet,
        rule_id="unhealthy-gpu",
        cause="drain",
        subject=Subject("gpu", A, "GPU 0 on h1"),
        saving=Saving(),
        no_figure="health",
    )
    with session_scope(fleet) as session:
        recommendations.set_status(session, id_, Status.CLAIMED, NOW)
    assert faults(fleet, quiet()) == ()


def test_a_stuck_job_is_a_fault_while_its_recommendation_is_open(fleet: Engine) -> None:
    id_ = advise(
        fleet, rule_id="stuck-job", title="See why job 7 does not move", gpu_uuids=(A, B), saving=Saving()
    )
    (one,) = faults(fleet, quiet())
    assert (one.title, one.figure, one.path) == (
        "See why job 7 does not move",
        2.0,
        f"/recommendations/{id_}",
    )
    with session_scope(fleet) as session:
        recommendations.set_status(session, id_, Status.CLAIMED, NOW)
    assert faults(fleet, quiet()) == ()


@pytest.mark.parametrize(
    ("saving", "is_told"),
    [
        (cash(1_000.0), True),
        (cash(999.0), False),
        (Saving(capacity_gpu_h_month=Range.around(500.0, 0.1)), True),  # at $2 an hour
        (Saving(capacity_gpu_h_month=Range.around(499.0, 0.1)), False),
        (Saving(energy_kwh_month=Range.around(9_999.0, 0.1)), False),
    ],
)
def test_a_recommendation_above_the_set_sum_is_told(fleet: Engine, saving: Saving, is_told: bool) -> None:
    advise(fleet, saving=saving, gpu_uuids=(A, B), title="Release GPU 0")
    assert titles(fleet, quiet()) == (["Release GPU 0"] if is_told else [])


def test_freed_hours_of_a_gpu_without_a_price_are_no_sum(fleet: Engine) -> None:
    advise(fleet, saving=Saving(capacity_gpu_h_month=Range.around(9_999.0, 0.1)), gpu_uuids=(A, "GPU-c"))
    assert faults(fleet, quiet()) == ()


def test_a_budget_that_is_exceeded_is_a_fault_of_its_team(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        owners.insert(session, OwnerRule(0, Owner("research", "vision"), OwnerConditions(host="h1")))
        budgets.add(session, Budget(0, "All", "all", "", Decimal("0.5"), "2026-10"))
        budgets.add(session, Budget(0, "Vision", "project", "vision", Decimal(1), "2026-10"))
        budgets.add(session, Budget(0, "Enough", "all", "", Decimal(1_000_000), "2026-10"))
    materialise(fleet, quiet(), NOW)
    found = {one.title: one for one in faults(fleet, quiet())}
    assert set(found) == {"Budget All is exceeded", "Budget Vision is exceeded"}
    assert found["Budget All is exceeded"].owner is None
    assert found["Budget Vision is exceeded"].owner == Owner("research", "vision")
    assert found["Budget All is exceeded"].detail.startswith("$")


def test_a_budget_waits_while_the_ledger_is_written_anew_and_is_not_over_by_that(fleet: Engine) -> None:
    with session_scope(fleet) as session:
        budgets.add(session, Budget(0, "All", "all", "", Decimal("0.5"), "2026-10"))
    materialise(fleet, quiet(), NOW)
    send(fleet, quiet(), NOW)
    another = quiet(pue=2.0)
    assert faults(fleet, another) == ()
    send(fleet, another, NOW)
    with Session(fleet) as session:
        (one,) = kept.listing(session).values()
    assert (one.title, one.resolved_at_ms) == ("Budget All is exceeded", None)
    materialise(fleet, another, NOW)
    assert titles(fleet, another) == ["Budget All is exceeded"]


def test_kinds_that_are_turned_off_are_not_looked_for(fleet: Engine) -> None:
    event(fleet, A, NOW - MINUTE_MS, "lost", "The GPU stopped answering.")
    advise(fleet, saving=cash(5_000.0))
    assert titles(fleet, quiet(alert_kinds=("gpu-unhealthy",))) == ["GPU 0 on h1 does not answer"]
    assert titles(fleet, quiet(alert_kinds=())) == []
