"""What happens to the fleet of tests, and what is found and told of it."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine, update
from sqlalchemy.orm import Session

from api.alerts_found import find
from core.fault import Fault
from core.finding import Advice, Range, Saving, Totals
from core.ownership import Owner
from core.readings import GpuHealth
from core.samples import GpuEvent
from core.settings import Settings
from core.user_recipient import Recipient
from store.dbapi import open_connection
from store.engine import session_scope
from store.ingest import Ingest
from store.models.host import HostRow
from store.queries import recipients, recommendations
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import NOW
from tests.integration.mail.smtp_for_tests import Inbox, settings_at

HEAD = "head@example.org"


def hear(engine: Engine, at_ms: int, *hosts: str) -> None:
    """The agents of these hosts delivered then."""
    with session_scope(engine) as session:
        session.execute(update(HostRow).where(HostRow.name.in_(hosts)).values(agent_seen_ms=at_ms))


def event(engine: Engine, uuid: str, at_ms: int, kind: str, message: str, *, code: int | None = None) -> None:
    """Something happened to a GPU."""
    tell(engine, lambda ingest: ingest.events([GpuEvent(uuid, at_ms, kind, message, code)]))


def health(engine: Engine, uuid: str, at_ms: int, **facts: float | str) -> None:
    """A GPU was asked how it is."""
    tell(engine, lambda ingest: ingest.health([GpuHealth(uuid, at_ms, facts)]))


def tell(engine: Engine, say: Callable[[Ingest], object]) -> None:
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    with closing(open_connection(url)) as wire:
        ingest = Ingest(wire)
        say(ingest)
        ingest.commit()


def advise(engine: Engine, now_ms: int = NOW, **changes: Any) -> int:
    """The rules find one thing; its recommendation."""
    one = replace(good.finding(), **changes)
    with session_scope(engine) as session:
        recommendations.record(session, Advice((one,), (), Totals(None, None, None, None)), now_ms)
        return next(
            item.id
            for item in recommendations.listing(session)
            if item.finding.fingerprint == one.fingerprint
        )


def cash(usd: float) -> Saving:
    return Saving(cash_usd_month=Range.around(usd, 0.1))


def add(engine: Engine, address: str, audience: Owner | None = None) -> int:
    with session_scope(engine) as session:
        return recipients.add(session, Recipient(None, address, audience), NOW)


def faults(engine: Engine, settings: Settings, now_ms: int = NOW) -> tuple[Fault, ...]:
    with Session(engine) as session:
        return find(session, settings, now_ms).faults


def titles(engine: Engine, settings: Settings, now_ms: int = NOW) -> list[str]:
    return [one.title for one in faults(engine, settings, now_ms)]


def quiet(port: int = 25, **more: Any) -> Settings:
    """A site without recipients in its file."""
    return settings_at(port, report_recipients=(), **more)


def body_of(inbox: Inbox, number: int = -1, kind: str = "plain") -> str:
    part = inbox.mails[number].get_body((kind,))
    assert part is not None
    return str(part.get_content())
