"""Alerts as they stand: what would be told now and to whom, and what people know of already. Nothing is recorded or sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from sqlalchemy.orm import Session

from api.alerts import PAID_MS, Told, decide, told_by_audience
from api.alerts_found import find
from api.alerts_message import SAID, silence_ms
from api.resources.columns import about
from api.resources.recipients import everybody
from api.resources.scope import Scope
from core.clock import from_ms
from core.evidence import Window
from core.fault import Fault
from core.ownership import Owner
from core.settings import Settings
from core.user_recipient import Recipient
from store.queries import alerts
from store.queries.alerts import KnownAlert


@dataclass(frozen=True, slots=True)
class AlertView:
    """One fault that is there now."""

    key: Annotated[str, about("The same fault however often it is found.")]
    kind: Annotated[str, about("agent-silent, gpu-unhealthy, stuck-job, budget or recommendation.")]
    severity: Annotated[str, about("urgent, soon, or for you to know.")]
    state: Annotated[
        str,
        about(
            "due: people are told at the next run; nobody: it would be, but nobody gets it; cooling: they were told, and hear no more until again_at."
        ),
    ]
    title: Annotated[str, about("What is wrong.")]
    detail: Annotated[str, about("What is known of it.")]
    figure: Annotated[
        float | None, about("What growth is measured by: dollars, or GPUs; null: nothing is counted.")
    ]
    gpu_uuids: Annotated[tuple[str, ...], about("GPUs it is about; empty: the fleet as a whole.")]
    path: Annotated[str, about("Of the page about it.")]
    recipients: Annotated[tuple[str, ...], about("Who is told at the next run.")]
    first_at: Annotated[datetime | None, about("Found first, UTC; null: no run has seen it yet.")]
    sent_at: Annotated[datetime | None, about("When people were told last, UTC.")]
    again_at: Annotated[
        datetime | None, about("Told again from then, UTC, or sooner where it grew; null: not told yet.")
    ]


def rows(session: Session, settings: Settings, now_ms: int) -> list[AlertView]:
    """Every fault that is there now, those to tell first."""
    found = find(session, settings, now_ms)
    known = alerts.listing(session)
    decided = decide(found, known, settings, now_ms)
    people = [one for one in everybody(session, settings) if one.alerts and not one.is_paused(now_ms)]
    scope = Scope(session, settings, now_ms, Window(now_ms - PAID_MS, now_ms))
    told = told_by_audience(scope, found, decided.due, people)
    due = [
        _view(one, known.get(one.key), settings, is_due=True, who=_who(one, people, told))
        for one in decided.due
    ]
    cooling = [_view(one, known.get(one.key), settings, is_due=False, who=()) for one in decided.cooling]
    return [*due, *cooling]


def _who(fault: Fault, people: Sequence[Recipient], told: Mapping[Owner | None, Told]) -> tuple[str, ...]:
    return tuple(one.shown for one in people if fault.key in told.get(one.audience, {}))


def _view(
    fault: Fault, known: KnownAlert | None, settings: Settings, *, is_due: bool, who: tuple[str, ...]
) -> AlertView:
    sent_ms = None if known is None else known.sent_at_ms
    return AlertView(
        key=fault.key,
        kind=fault.kind.value,
        severity=SAID[fault.severity],
        state="cooling" if not is_due else "due" if who else "nobody",
        title=fault.title,
        detail=fault.detail,
        figure=fault.figure,
        gpu_uuids=fault.gpu_uuids,
        path=fault.path,
        recipients=who,
        first_at=None if known is None else from_ms(known.first_at_ms),
        sent_at=None if sent_ms is None else from_ms(sent_ms),
        again_at=None if sent_ms is None else from_ms(sent_ms + silence_ms(settings)),
    )
