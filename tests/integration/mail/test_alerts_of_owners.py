"""An owner hears of its own GPUs, hosts, budgets and advice, and of nobody else's; on both databases."""

from collections.abc import Callable, Sequence
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from api.alerts import send
from api.resources.ledger_days import materialise
from core.finding import Subject
from core.ownership import Owner, OwnerConditions, OwnerRule
from core.units import HOUR_MS, MINUTE_MS
from core.user_budget import Budget
from core.user_recipient import Recipient
from store.engine import session_scope
from store.queries import budgets, owners, recipients
from tests.integration.api.fleet_for_tests import NOW, A
from tests.integration.mail.alerts_for_tests import (
    add,
    advise,
    body_of,
    cash,
    event,
    hear,
    quiet,
)
from tests.integration.mail.smtp_for_tests import Inbox, smtp_server


@pytest.fixture
def owned(fleet: Engine) -> Engine:
    """h1 is research's, h2 is media's."""
    with session_scope(fleet) as session:
        owners.insert(session, OwnerRule(0, Owner("research"), OwnerConditions(host="h1")))
        owners.insert(session, OwnerRule(0, Owner("media"), OwnerConditions(host="h2")))
    return fleet


def texts_for(engine: Engine, audience: Owner | None, make: Callable[[], object]) -> Sequence[str]:
    """What an audience's mail says of what ``make`` breaks."""
    add(engine, "one@example.org", audience)
    make()
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(engine, quiet(port), NOW)
    return [body_of(inbox, number) for number in range(len(inbox.mails))]


def test_an_owner_hears_of_gpus_that_it_pays_for_and_of_no_others(owned: Engine) -> None:
    def make() -> None:
        event(owned, A, NOW - MINUTE_MS, "lost", "A stopped answering.")
        event(owned, "GPU-c", NOW - MINUTE_MS, "lost", "C stopped answering.")

    (text,) = texts_for(owned, Owner("research"), make)
    assert "A stopped" in text
    assert "C stopped" not in text
    assert "h2" not in text


def test_an_owner_hears_of_its_silent_hosts(owned: Engine) -> None:
    with session_scope(owned) as session:
        recipients.add(session, Recipient(None, "r@example.org", Owner("research")), NOW)
        recipients.add(session, Recipient(None, "m@example.org", Owner("media")), NOW)
    hear(owned, NOW + HOUR_MS, "h2")
    inbox = Inbox()
    with smtp_server(inbox) as port:
        send(owned, quiet(port), NOW + HOUR_MS)
    assert inbox.got == ["r@example.org"]


def test_an_owner_is_not_told_of_other_peoples_money(owned: Engine) -> None:
    def make() -> None:
        with session_scope(owned) as session:
            budgets.add(session, Budget(0, "All", "all", "", Decimal("0.1"), "2026-10"))
            budgets.add(session, Budget(0, "Media", "team", "media", Decimal("0.0"), "2026-10"))
        materialise(owned, quiet(), NOW)
        advise(owned, saving=cash(7_777.0), gpu_uuids=(A, "GPU-c"), title="Release two GPUs")

    assert texts_for(owned, Owner("research"), make) == []
    assert len(texts_for(owned, None, lambda: None)) == 1


def test_an_owner_hears_of_its_own_budget_and_advice(owned: Engine) -> None:
    def make() -> None:
        with session_scope(owned) as session:
            budgets.add(session, Budget(0, "Ours", "team", "research", Decimal("0.1"), "2026-10"))
        materialise(owned, quiet(), NOW)
        advise(
            owned,
            saving=cash(7_777.0),
            gpu_uuids=(A,),
            subject=Subject("gpu", A, "GPU 0 on h1"),
            title="Release GPU 0 on h1",
            because="No work for days.",
            actions=(),
        )

    (text,) = texts_for(owned, Owner("research"), make)
    assert "Budget Ours is exceeded" in text
    assert "Release GPU 0 on h1" in text
