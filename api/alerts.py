"""Tell people what is wrong, once: which faults are news, who may know of which, and one message per recipient and run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Engine

from api.alerts_found import Found, find, of_recommendation, of_stuck
from api.alerts_message import as_mail, as_slack, message_of, silence_ms
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
from store.queries.alerts import KnownAlert
from store.queries.mail import Draft

PAID_MS: Final = 7 * DAY_MS
"""Who paid most of a GPU in so long is who is told of it."""
Told = Mapping[str, Fault]
"""Faults by key, in an audience's words."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Faults that are news, those that people know of, and keys of what is over."""

    due: tuple[Fault, ...]
    cooling: tuple[Fault, ...]
    over: tuple[KnownAlert, ...]


def decide(found: Found, known: Mapping[str, KnownAlert], settings: Settings, now_ms: int) -> Decided:
    """What is news; pure. The health of a GPU whose host is silent is not over because nobody tells of it."""
    kinds = frozenset(settings.alert_kinds) - (frozenset() if found.is_budget_judged else {FaultKind.BUDGET})
    keys = {fault.key for fault in found.faults}
    unjudged = {f"{FaultKind.GPU}:{uuid}" for uuid in found.unjudged}
    due = tuple(one for one in found.faults if is_due(one, known.get(one.key), settings, now_ms))
    news = {one.key for one in due}
    return Decided(
        due,
        tuple(one for one in found.faults if one.key not in news),
        tuple(
            one
            for one in known.values()
            if one.resolved_at_ms is None
            and one.key not in keys
            and one.key not in unjudged
            and one.kind in kinds
        ),
    )


def is_due(fault: Fault, known: KnownAlert | None, settings: Settings, now_ms: int) -> bool:
    """People were not told lately, or it grew since; pure."""
    if known is None or known.sent_at_ms is None:
        return True
    if now_ms - known.sent_at_ms >= silence_ms(settings):
        return True
    return has_grown(int(fault.severity), fault.figure, known.sent_severity, known.sent_figure)


def was_told(known: KnownAlert) -> bool:
    """People heard of it since it came this time: of one that comes and goes they hear neither again; pure."""
    return known.sent_at_ms is not None and known.sent_at_ms >= known.first_at_ms


def send(engine: Engine, settings: Settings, now_ms: int) -> tuple[str, Delivery]:
    """Look, put messages in and send them; one sentence, and how it went."""
    with session_scope(engine) as session:
        people = [one for one in everybody(session, settings) if one.alerts and not one.is_paused(now_ms)]
        found = find(session, settings, now_ms)
        decided = decide(found, alerts.listing(session), settings, now_ms)
        scope = Scope(session, settings, now_ms, Window(now_ms - PAID_MS, now_ms))
        told = told_by_audience(scope, found, decided.due, people)
        simulated = settings.simulated or meta.simulated(session)
    with session_scope(engine) as session:
        # Decided again where nobody else decides: another process may have told since.
        alerts.lock(session)
        known = alerts.listing(session)
        decided = decide(found, known, settings, now_ms)
        alerts.record(session, found.faults, now_ms)
        alerts.resolve(session, [one.key for one in decided.over], now_ms)
        over = [one for one in decided.over if settings.alert_resolved and was_told(one)]
        drafts, sent = _drafts(
            settings, now_ms, people, told=told, due=decided.due, over=over, simulated=simulated
        )
        put = [mail.put(session, draft, now_ms) for draft in drafts]
        alerts.told(session, [one for one in decided.due if one.key in sent], now_ms)
    done = deliver(engine, settings, now_ms, only=[key for key in put if key is not None])
    count = len(found.faults)
    said = f"{count} fault{'' if count == 1 else 's'}, {len(sent)} to tell of"
    if decided.due and not people:
        return f"{said}, but nobody gets alerts (gpuwise recipients add ADDRESS)", done
    return (f"{said}: {done}" if drafts else said), done


def _drafts(
    settings: Settings,
    now_ms: int,
    people: Sequence[Recipient],
    *,
    told: Mapping[Owner | None, Told],
    due: Sequence[Fault],
    over: Sequence[KnownAlert],
    simulated: bool,
) -> tuple[list[Draft], set[str]]:
    """One message per recipient that has anything to hear, and the keys of what is told."""
    drafts: list[Draft] = []
    sent: set[str] = set()
    for one in people:
        mine = told.get(one.audience, {})
        faults = [mine[fault.key] for fault in due if fault.key in mine]
        # Of what is over only the fleet's people are told: whose it was is not known any more.
        ended = [known.title for known in over] if one.audience is None else []
        if not faults and not ended:
            continue
        sent |= {fault.key for fault in faults}
        message = message_of(faults, ended, settings, simulated=simulated)
        if one.channel is Channel.MAIL:
            body = as_wire(as_mail(message, settings, now_ms, to=one.address))
        else:
            body = as_slack(message)
        drafts.append(Draft(MessageKind.ALERTS, alerts_period(now_ms), one, message.subject, body))
    return drafts, sent


def told_by_audience(
    scope: Scope, found: Found, faults: Collection[Fault], people: Sequence[Recipient]
) -> dict[Owner | None, Told]:
    """What each audience may know of these faults, in its words: the fleet's people of all of them."""
    audiences = {one.audience for one in people}
    told: dict[Owner | None, Told] = {None: {one.key: one for one in faults}}
    owners = [audience for audience in audiences if audience is not None]
    if not owners or not faults:
        return told
    bills = gpu_bills(scope)
    labels = {
        gpu.identity.gpu_uuid: gpu_label(gpu.identity) for gpu in known_gpus(scope.session.connection())
    }
    for audience in owners:
        told[audience] = _told_owner(scope, found, faults, bills=bills, audience=audience, labels=labels)
    return told


def _told_owner(
    scope: Scope,
    found: Found,
    faults: Collection[Fault],
    *,
    bills: GpuBills,
    audience: Owner,
    labels: Mapping[str, str],
) -> Told:
    """Faults of GPUs that it paid most of, and of its own budget; advice as its weekly mail would give it."""
    advised = {one.recommendation_id: one for one in faults if one.recommendation_id is not None}
    own = (
        {
            item.id: item
            for item in own_advice(
                [item for id_, item in found.waiting.items() if id_ in advised],
                bills,
                audience,
                others=others_of(scope, bills, audience),
                label_of=labels,
            ).recommendations
        }
        if advised
        else {}
    )
    told: dict[str, Fault] = {}
    for one in faults:
        if one.owner is not None:
            mine = one if one.owner == audience else None
        elif one.recommendation_id is not None:
            item = own.get(one.recommendation_id)
            share = bills.share(one.gpu_uuids, audience)
            mine = (
                None
                if item is None
                else (
                    of_stuck(item)
                    if one.kind is FaultKind.STUCK
                    else of_recommendation(item, (one.figure or 0.0) * share)
                )
            )
        else:
            paid = tuple(uuid for uuid in one.gpu_uuids if bills.has_most([uuid], audience))
            mine = replace(one, gpu_uuids=paid) if paid else None
        if mine is not None:
            told[one.key] = mine
    return told
