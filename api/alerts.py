"""Tell each of them what is wrong, once: which faults are news to whom, who may know of which, and one message a run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from api.alerts_found import Found, find, of_recommendation, of_stuck
from api.alerts_message import AlertsMessage, as_mail, as_slack, message_of, silence_ms
from api.mail_envelope import as_wire
from api.outgoing import Delivery, alerts_period, deliver
from api.resources.gpu_bills import GpuBills, gpu_bills
from api.resources.owner_advice import others_of, own_advice
from api.resources.recipients import everybody
from api.resources.report import gpu_label
from api.resources.scope import Scope
from core.evidence import Window
from core.fault import Fault, FaultKind, has_grown
from core.outbox import Channel, MessageKind
from core.ownership import Owner
from core.settings import Settings
from core.units import DAY_MS
from core.user_recipient import Recipient
from store.engine import session_scope
from store.known import known_gpus
from store.queries import alerts, mail, meta
from store.queries.alerts import KnownAlert, ToldAlert
from store.queries.ledger_sums import Only
from store.queries.mail import Draft

PAID_MS: Final = 7 * DAY_MS
"""Who paid most of a GPU in so long is who is told of it."""
REFUSED_MS: Final = DAY_MS
"""A recipient that refused a message for good is tried again with what is still wrong after so long."""
Told = Mapping[str, Fault]
"""Faults by key, in an audience's words."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Faults that each recipient was not told lately, by its key, whosever they are; and what is over."""

    due: Mapping[int, tuple[Fault, ...]]
    over: tuple[KnownAlert, ...]

    @property
    def due_to_anybody(self) -> tuple[Fault, ...]:
        """Each once."""
        return tuple({one.key: one for of in self.due.values() for one in of}.values())


def decide(
    found: Found,
    known: Mapping[str, KnownAlert],
    people: Collection[int],
    settings: Settings,
    now_ms: int,
) -> Decided:
    """What is news to whom; pure. The health of a GPU whose host is silent is not over because nobody tells of it."""
    kinds = frozenset(settings.alert_kinds) - (frozenset() if found.is_budget_judged else {FaultKind.BUDGET})
    keys = {fault.key for fault in found.faults}
    unjudged = {f"{FaultKind.GPU}:{uuid}" for uuid in found.unjudged}

    def last(fault: Fault, recipient_id: int) -> ToldAlert | None:
        return known[fault.key].told.get(recipient_id) if fault.key in known else None

    return Decided(
        {
            id_: tuple(one for one in found.faults if is_due(one, last(one, id_), settings, now_ms))
            for id_ in people
        },
        tuple(
            one
            for one in known.values()
            if one.resolved_at_ms is None
            and one.key not in keys
            and one.key not in unjudged
            and one.kind in kinds
        ),
    )


def is_due(fault: Fault, told: ToldAlert | None, settings: Settings, now_ms: int) -> bool:
    """Whether a recipient was not told lately, or it grew since; pure."""
    if told is None or now_ms >= again_ms(told, settings):
        return True
    if told.refused_at_ms is not None:
        return False
    return has_grown(int(fault.severity), fault.figure, told.severity, told.figure)


def again_ms(told: ToldAlert, settings: Settings) -> int:
    """From when on a recipient is told of the same fault again."""
    if told.refused_at_ms is not None:
        return told.refused_at_ms + min(REFUSED_MS, silence_ms(settings))
    return told.told_at_ms + silence_ms(settings)


def was_told(known: KnownAlert, recipient_id: int) -> bool:
    """It heard of it since it came this time: of one that comes and goes it hears neither again; pure."""
    told = known.told.get(recipient_id)
    return told is not None and told.refused_at_ms is None and told.told_at_ms >= known.first_at_ms


def listeners(session: Session, settings: Settings, now_ms: int) -> dict[int, Recipient]:
    """Who gets alerts now, by key; recipients of gpuwise.toml get none."""
    return {
        one.id: one
        for one in everybody(session, settings)
        if one.id is not None and one.alerts and not one.is_paused(now_ms)
    }


def send(engine: Engine, settings: Settings, now_ms: int) -> tuple[str, Delivery]:
    """Look, put messages in and send them; one sentence, and how it went."""
    with session_scope(engine) as session:
        people = listeners(session, settings, now_ms)
        found = find(session, settings, now_ms)
        decided = decide(found, alerts.listing(session), people, settings, now_ms)
        scope = Scope(session, settings, now_ms, Window(now_ms - PAID_MS, now_ms))
        told = told_by_audience(scope, found, decided.due_to_anybody, people.values())
        simulated = settings.simulated or meta.simulated(session)
    with session_scope(engine) as session:
        # Decided again where nobody else decides: another process may have told since.
        alerts.lock(session)
        decided = decide(found, alerts.listing(session), people, settings, now_ms)
        alerts.record(session, found.faults, now_ms)
        alerts.resolve(session, [one.key for one in decided.over], now_ms)
        put: list[int] = []
        sent: set[str] = set()
        for id_, one in people.items():
            # In an audience's words it is told; by the fleet's it is remembered, which every look compares with.
            mine = told.get(one.audience, {})
            due = [fault for fault in decided.due[id_] if fault.key in mine]
            # Of what is over only the fleet's people are told: whose it was is not known any more.
            is_told_ends = settings.alert_resolved and one.audience is None
            over = [known.title for known in decided.over if is_told_ends and was_told(known, id_)]
            if not due and not over:
                continue
            message = message_of([mine[fault.key] for fault in due], over, settings, simulated=simulated)
            key = mail.put(session, _draft(message, one, settings, now_ms), now_ms)
            if key is not None:
                put.append(key)
                alerts.tell(session, id_, key, due, now_ms)
                sent |= {fault.key for fault in due}
    done = deliver(engine, settings, now_ms, only=put)
    count = len(found.faults)
    said = f"{count} fault{'' if count == 1 else 's'}, {len(sent)} to tell of"
    if found.faults and not people:
        return f"{said}, but nobody gets alerts (gpuwise recipients add ADDRESS)", done
    return (f"{said}: {done}" if put else said), done


def _draft(message: AlertsMessage, one: Recipient, settings: Settings, now_ms: int) -> Draft:
    if one.channel is Channel.MAIL:
        body = as_wire(as_mail(message, settings, now_ms, to=one.address))
    else:
        body = as_slack(message)
    return Draft(MessageKind.ALERTS, alerts_period(now_ms), one, message.subject, body)


def told_by_audience(
    scope: Scope, found: Found, faults: Collection[Fault], people: Iterable[Recipient]
) -> Mapping[Owner | None, Told]:
    """What each audience may know of these faults, in its words: the fleet's people of all of them."""
    told: dict[Owner | None, dict[str, Fault]] = {None: {one.key: one for one in faults}}
    owners = {one.audience for one in people if one.audience is not None}
    if not owners or not faults:
        return told
    for audience in owners:
        told[audience] = {one.key: one for one in faults if one.owner == audience}
    # Looked at every five minutes for as long as a fault lasts: so first of its own GPUs alone.
    known = known_gpus(scope.session.connection())
    wanted = {uuid for one in faults if one.owner is None for uuid in one.gpu_uuids}
    if not wanted:
        return told
    only = Only(gpu_ids=frozenset(gpu.id for gpu in known if gpu.identity.gpu_uuid in wanted))
    bills = gpu_bills(scope, only)
    for audience in owners:
        for one in faults:
            paid = tuple(uuid for uuid in one.gpu_uuids if bills.has_most([uuid], audience))
            if one.owner is None and one.recommendation_id is None and paid:
                told[audience][one.key] = replace(one, gpu_uuids=paid)
    advice = {
        audience: [
            one
            for one in faults
            if one.recommendation_id is not None and bills.has_most(one.gpu_uuids, audience)
        ]
        for audience in owners
    }
    if any(advice.values()):
        every = gpu_bills(scope)
        labels = {gpu.identity.gpu_uuid: gpu_label(gpu.identity) for gpu in known}
        for audience, of in advice.items():
            told[audience] |= _advice(scope, found, of, bills=every, audience=audience, labels=labels)
    return told


def _advice(
    scope: Scope,
    found: Found,
    faults: Sequence[Fault],
    *,
    bills: GpuBills,
    audience: Owner,
    labels: Mapping[str, str],
) -> dict[str, Fault]:
    """Advice about GPUs that it paid most of, as its weekly mail would give it."""
    if not faults:
        return {}
    advised = {one.recommendation_id: one for one in faults}
    own = own_advice(
        [item for id_, item in found.waiting.items() if id_ in advised],
        bills,
        audience,
        others=others_of(scope, bills, audience),
        label_of=labels,
    )
    told: dict[str, Fault] = {}
    for item in own.recommendations:
        one = advised[item.id]
        share = bills.share(one.gpu_uuids, audience)
        told[one.key] = (
            of_stuck(item)
            if one.kind is FaultKind.STUCK
            else of_recommendation(item, (one.figure or 0.0) * share)
        )
    return told
