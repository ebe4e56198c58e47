"""Evidence from the store, rules over it, findings with what people made of them, and the record of it all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sqlalchemy.orm import Session

from advisor.limits_book import limits_book
from advisor.site_run import LeftOut, SiteRun
from advisor.waterfall import Base, Spend
from api.ranking import rank
from api.resources.fleet_run import judge_fleet
from api.resources.ownership import owner_lookup
from api.resources.recommendations import AdviceView, row_of, totals_view
from api.resources.rule_settings import with_kept
from api.resources.scope import Scope
from api.resources.verifications import records
from core.clock import from_ms, to_ms
from core.collector import rarely_collected
from core.evidence import Window
from core.finding import Advice, NotEvaluated, Range, Status, Subject, Totals
from store.queries import meta
from store.queries import recommendations as kept
from store.queries.recommendations import Recommendation

SET_ASIDE: Final = frozenset({Status.SNOOZED, Status.DISMISSED})
"""Their savings do not count: somebody said so."""
FOLLOWED: Final = SET_ASIDE | {Status.CLAIMED, Status.DONE, Status.VERIFIED}
"""Somebody took a step on it, alone: it is not swallowed by a finding about its host."""
LAST_RUN: Final = "last_advice"
"""Key in ``meta``: what a run says beyond its findings. Findings have a table; this is one value, replaced by each run."""

LAST_SPEND: Final = "last_advice_spend"
"""Key in ``meta``: what totals of any part of the findings are made of, as of the last recorded run."""


@dataclass(frozen=True, slots=True)
class LastSpend:
    """What each GPU cost, offered and drew in the last recorded run's window, for totals of some of its findings.

    ``refused`` is how many judgements that run refused.
    """

    at_ms: int
    window: Window
    refused: int
    spend: Spend


@dataclass(frozen=True, slots=True)
class LastRun:
    """What the last recorded run of the rules said beyond its findings.

    ``totals`` are after overlap, without snoozed and dismissed findings *as they were then*.
    """

    at_ms: int
    window: Window
    totals: Totals
    not_evaluated: tuple[NotEvaluated, ...]


@rarely_collected()
def run(scope: Scope, *, record: bool) -> AdviceView:
    """Run the rules over the scope's window.

    Args:
        scope: where and when.
        record: write the findings, so that people can follow them; else nothing changes.
    """
    scope = replace(scope, settings=with_kept(scope.session, scope.settings, scope.now_ms))
    followed = kept.listing(scope.session, FOLLOWED)
    rules = SiteRun(
        limits_book(scope.settings.rules),
        now=from_ms(scope.now_ms),
        min_saving_usd_month=scope.settings.minimum_saving_usd_month,
        records=records(scope.session),
        followed={item.finding.fingerprint for item in followed},
        covered=_covered(followed),
        owner_of=owner_lookup(scope.session),
    )
    reader = judge_fleet(scope, rules)
    advice = rules.advice()
    if record:
        kept.record(scope.session, advice, scope.now_ms, rules.subjects)
        _put_aside(scope, rules.left_out)
    by_fingerprint = {item.finding.fingerprint: item for item in kept.listing(scope.session)}
    counting = [finding for finding in advice.findings if _counts(by_fingerprint.get(finding.fingerprint))]
    whole = advice.totals if len(counting) == len(advice.findings) else rules.totals(counting)
    if record:
        _remember(scope, advice, whole)
        _remember_spend(scope, rules.spend, len(advice.not_evaluated))
    reader.shelves.clear()
    return view_of(advice, whole, by_fingerprint)


def _covered(followed: Sequence[Recommendation]) -> dict[tuple[str, str, str], str]:
    """What nobody needs to be told of a GPU alone: that its host has, where somebody is on that or set it aside."""
    return {
        (item.finding.rule_id, item.finding.cause, uuid): (
            f"Part of recommendation {item.id} about {item.finding.subject.label}, which is {item.status}."
        )
        for item in followed
        if item.finding.subject.kind == "host" and item.status in SET_ASIDE | {Status.CLAIMED}
        for uuid in item.finding.gpu_uuids
    }


def _put_aside(scope: Scope, left_out: Sequence[LeftOut]) -> None:
    """Of what is open, snooze what is excluded until the exclusion ends, and close what is worth too little."""
    by_fingerprint = {one.finding.fingerprint: one for one in left_out}
    if not by_fingerprint:
        return
    for item in kept.listing(scope.session, [Status.OPEN, Status.REOPENED]):
        one = by_fingerprint.get(item.finding.fingerprint)
        if one is not None:
            kept.set_status(
                scope.session,
                item.id,
                Status.GONE if one.until is None else Status.SNOOZED,
                scope.now_ms,
                note=one.why,
                until_ms=None if one.until is None else to_ms(one.until),
                who=one.who,
            )


def view_of(advice: Advice, whole: Totals, by_fingerprint: Mapping[str, Recommendation]) -> AdviceView:
    """Findings with their status, best first, what could not be judged, and the totals."""
    found = [(finding, by_fingerprint.get(finding.fingerprint)) for finding in advice.findings]
    found.sort(key=lambda each: (rank(each[0]), 0 if each[1] is None else each[1].id))
    return AdviceView(
        recommendations=tuple(row_of(finding, item) for finding, item in found),
        not_evaluated=advice.not_evaluated,
        totals=totals_view(whole),
    )


def _counts(item: Recommendation | None) -> bool:
    return item is None or item.status not in SET_ASIDE


def _remember(scope: Scope, advice: Advice, whole: Totals) -> None:
    last = LastRun(scope.now_ms, scope.window, whole, advice.not_evaluated)
    meta.put(scope.session, LAST_RUN, json.dumps(asdict(last), separators=(",", ":")))


def _remember_spend(scope: Scope, spend: Spend, refused: int) -> None:
    rows = [[uuid, base.cash, base.capacity, base.energy, spent] for uuid, base, spent in spend.known()]
    window = [scope.window.from_ms, scope.window.to_ms]
    kept_ = {"at_ms": scope.now_ms, "window": window, "refused": refused, "gpus": rows}
    meta.put(scope.session, LAST_SPEND, json.dumps(kept_, separators=(",", ":")))


def last_spend(session: Session) -> LastSpend | None:
    """What totals are made of since the last recorded run; None before the first one."""
    text = meta.get(session, LAST_SPEND)
    if text is None:
        return None
    raw: dict[str, Any] = json.loads(text)
    spend = Spend()
    for uuid, cash, capacity, energy, spent in raw["gpus"]:
        spend.know(uuid, Base(cash, capacity, energy), spent)
    return LastSpend(raw["at_ms"], Window(*raw["window"]), raw["refused"], spend)


def last_totals(session: Session, waiting: Sequence[Recommendation]) -> tuple[Totals, int] | None:
    """What ``waiting`` come to after overlap, and how many judgements the last recorded run refused; None before the first one.

    Of what waits now, not as it was when the rules ran: every page, mail and answer says the same sum as the list does,
    also after somebody set one aside, and with those that the last run could not judge anew.
    """
    last = last_spend(session)
    if last is not None:
        return last.spend.totals([item.finding for item in waiting]), last.refused
    run = last_run(session)
    return None if run is None else (run.totals, len(run.not_evaluated))


def last_run(session: Session) -> LastRun | None:
    """What the last recorded run said beyond its findings; None before the first one."""
    text = meta.get(session, LAST_RUN)
    if text is None:
        return None
    raw: dict[str, Any] = json.loads(text)
    return LastRun(
        at_ms=raw["at_ms"],
        window=Window(**raw["window"]),
        totals=_totals(raw["totals"]),
        not_evaluated=tuple(
            NotEvaluated(item["rule_id"], Subject(**item["subject"]), tuple(item["missing"]), item["why"])
            for item in raw["not_evaluated"]
        ),
    )


def _totals(raw: Mapping[str, Any]) -> Totals:
    return Totals(
        _range(raw["cash_usd_month"]),
        _range(raw["capacity_gpu_h_month"]),
        _range(raw["energy_kwh_month"]),
        raw["spend_usd_month"],
    )


def _range(raw: Mapping[str, float] | None) -> Range | None:
    return None if raw is None else Range(**raw)
