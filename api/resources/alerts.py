"""Alerts as they stand: what would be told now and to whom, and what people know of already. Nothing is recorded or sent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.alerts import PAID_MS, again_ms, decide, listeners, told_by_audience
from api.alerts_found import find
from api.alerts_message import SAID
from api.resources.columns import about
from api.resources.scope import Scope
from core.clock import from_ms
from core.evidence import Window
from core.fault import Fault
from core.outbox import MessageState
from core.settings import Settings
from core.user_recipient import Recipient
from store.queries import alerts
from store.queries.alerts import KnownAlert, ToldAlert

TO_TELL: Final = frozenset({"due", "nobody"})
ON_ITS_WAY: Final = frozenset({MessageState.WAITING, MessageState.CLAIMED})


@dataclass(frozen=True, slots=True)
class AlertView:
    """One fault that is there now."""

    key: Annotated[str, about("The same fault however often it is found.")]
    kind: Annotated[str, about("agent-silent, gpu-unhealthy, stuck-job, budget or recommendation.")]
    severity: Annotated[str, about("urgent, soon, or for you to know.")]
    state: Annotated[
        str,
        about(
            "due: somebody is told at the next run; waiting: a message is on its way; cooling: all were told, and hear no more until again_at; refused: nobody took it, tried again from again_at; nobody: nobody gets it."
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
    told: Annotated[tuple[str, ...], about("Who was told, or is being told, and hears no more for now.")]
    sent_at: Annotated[datetime | None, about("When anybody was told last, UTC.")]
    again_at: Annotated[
        datetime | None,
        about("The first of them is told again from then, UTC, or sooner where it grew; null: not told yet."),
    ]


def rows(session: Session, settings: Settings, now_ms: int) -> list[AlertView]:
    """Every fault that is there now, those to tell first."""
    found = find(session, settings, now_ms)
    known = alerts.listing(session)
    people = listeners(session, settings, now_ms)
    decided = decide(found, known, people, settings, now_ms)
    scope = Scope(session, settings, now_ms, Window(now_ms - PAID_MS, now_ms))
    told = told_by_audience(scope, found, found.faults, people.values())
    views = []
    for fault in found.faults:
        mine = {id_: one for id_, one in people.items() if fault.key in told.get(one.audience, {})}
        due = [one.shown for id_, one in mine.items() if fault in decided.due[id_]]
        views.append(_view(fault, known.get(fault.key), mine, due, settings))
    return sorted(views, key=lambda one: one.state not in TO_TELL)


def _view(
    fault: Fault,
    known: KnownAlert | None,
    people: Mapping[int, Recipient],
    due: Sequence[str],
    settings: Settings,
) -> AlertView:
    heard = {} if known is None else {id_: one for id_, one in known.told.items() if id_ in people}
    took = {id_: one for id_, one in heard.items() if one.refused_at_ms is None}
    of_state = took or heard
    again = min((again_ms(one, settings) for one in of_state.values()), default=None)
    sent = max((one.told_at_ms for one in took.values()), default=None)
    told = tuple(one.shown for id_, one in people.items() if id_ in took and one.shown not in due)
    return AlertView(
        key=fault.key,
        kind=fault.kind.value,
        severity=SAID[fault.severity],
        state="due" if due else _state(took.values(), is_refused=bool(heard)),
        title=fault.title,
        detail=fault.detail,
        figure=fault.figure,
        gpu_uuids=fault.gpu_uuids,
        path=fault.path,
        recipients=tuple(due),
        told=told,
        first_at=None if known is None else from_ms(known.first_at_ms),
        sent_at=None if sent is None else from_ms(sent),
        again_at=None if again is None else from_ms(again),
    )


def _state(took: Collection[ToldAlert], *, is_refused: bool) -> str:
    """Of a fault that nobody is to be told of now."""
    if any(one.state in ON_ITS_WAY for one in took):
        return "waiting"
    if took:
        return "cooling"
    return "refused" if is_refused else "nobody"
