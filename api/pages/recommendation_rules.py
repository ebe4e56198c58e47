"""All rules: what each has found, what became of it, how far its claims came true, and what it says of itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from advisor.reversible import REVERSIBLE
from advisor.rule_text import text_of
from advisor.rules import RULES
from api import formats
from api.charts_track import TrackCase, track_chart
from api.pages.frame import OPEN, Frame, build_frame
from api.pages.recommendation import Doc
from api.pages.view import View, ViewDep
from api.resources import verifications
from api.resources.verifications import TrackRecordView, VerificationView
from api.templating import render
from core.finding import Status
from store.queries import recommendations

router = APIRouter(include_in_schema=False)

PATH = "/recommendations/rules"


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule: how many of its findings are where, and its record; ``drawn`` None: nothing was verified yet."""

    doc: Doc
    reversible: str
    open: int
    done: int
    verified: int
    aside: int
    record: TrackRecordView
    drawn: Markup | None
    is_asked: bool


@dataclass(frozen=True, slots=True)
class RulesPage:
    """Everything the page prints; ``lines`` are those with findings first, ``quiet`` the others."""

    frame: Frame
    headline: str
    lines: tuple[RuleLine, ...]
    quiet: tuple[RuleLine, ...]


def page_of(
    frame: Frame,
    counts: Mapping[tuple[str, Status], int],
    records: Sequence[TrackRecordView],
    every: Sequence[VerificationView],
    asked: str = "",
) -> RulesPage:
    """Lay out the rules; pure."""
    by_rule = {record.rule_id: record for record in records}
    lines = []
    for rule in RULES:

        def many(*statuses: Status, of: str = rule.id) -> int:
            return sum(counts.get((of, status), 0) for status in statuses)

        record = by_rule[rule.id]
        cases = [
            TrackCase(one.saving.scaled(1 / one.predicted_p50))
            for one in every
            if one.rule_id == rule.id and one.saving and one.predicted_p50 and one.realised_ratio is not None
        ]
        lines.append(
            RuleLine(
                doc=Doc(rule, text_of(rule)),
                reversible=REVERSIBLE[rule.id],
                open=many(*OPEN),
                done=many(Status.DONE),
                verified=many(Status.VERIFIED),
                aside=many(Status.SNOOZED, Status.DISMISSED),
                record=record,
                drawn=track_chart(cases, record.ratio, label=f"{rule.id}: {record.sentence}")
                if cases
                else None,
                is_asked=rule.id == asked,
            )
        )
    with_findings = [one for one in lines if one.open or one.done or one.verified or one.aside]
    with_findings.sort(key=lambda one: (-one.record.cases, -one.verified, -one.done, -one.open))
    cases_ = sum(record.cases for record in records)
    rules = sum(record.cases > 0 for record in records)
    headline = f"{len(RULES)} rules, {len(with_findings)} with findings"
    if cases_:
        headline += (
            f"; {formats.figure(cases_)} saving{'' if cases_ == 1 else 's'} measured, of {rules} rule"
            f"{'' if rules == 1 else 's'}"
        )
    return RulesPage(
        frame=frame,
        headline=headline,
        lines=tuple(with_findings),
        quiet=tuple(one for one in lines if one not in with_findings),
    )


def build_rules(view: View) -> RulesPage:
    """The page."""
    session = view.scope.session
    return page_of(
        build_frame(view, active="recommendations", title="Rules", window_text=""),
        recommendations.counts_by_rule(session),
        verifications.record_rows(session),
        verifications.rows(session),
        view.address.get("rule"),
    )


@router.get(PATH, response_class=HTMLResponse)
def rules_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render("pages/recommendation_rules.html", build_rules(view))
