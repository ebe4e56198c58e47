"""One recommendation: what to do, where and whose, what speaks for it and against it, its life, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse

from advisor.model import Rule
from advisor.reversible import REVERSIBLE
from advisor.rule_text import RuleText, text_of
from advisor.rules import RULES
from api import formats
from api.pages.facts import Fact, facts_of
from api.pages.forms import NO_FORM, FormState
from api.pages.frame import Frame, build_frame
from api.pages.recommendation_charts import EvidenceChart, Proof, Track, evidence_chart, proof_of, track_of
from api.pages.recommendation_where import Where, read_where
from api.pages.view import View, ViewDep
from api.problems import NotFoundError
from api.rec_row import Sum, sums
from api.resources import verifications
from api.resources.recommendation_actions import APPLIES
from api.resources.scope import Scope
from api.templating import render
from api.text import with_names
from api.words import STATUS, Word, grade_word
from core.clock import from_ms
from core.finding import Finding, Grade, Status
from core.units import DAY_MS
from store.queries import recommendations
from store.queries.recommendations import Recommendation

router = APIRouter(include_in_schema=False)
IdPath = Annotated[int, Path(ge=1, le=2**31 - 1)]

MOST_NOTE: Final = 2_000
MOST_WHO: Final = 200
REASONS: Final = {
    "hot-spare": "A hot spare",
    "planned": "Planned work needs it so",
    "wrong": "The finding is wrong",
    "not-worth-it": "Not worth the work",
    "other": "Something else",
}
"""Why people dismiss, by the key of the form."""
MONEY: Final = frozenset({"usd_per_gpu_hour", "price_basis", "price_as_of", "billing"})
"""Evidence about the price, told apart from the rest."""
BETTER: Final = {
    Grade.A: "",
    Grade.B: "The change itself, measured before and after, would raise it.",
    Grade.C: "A trial on one GPU, measured, would raise it: the figure is arithmetic so far.",
    Grade.D: "A trial here would raise it: so far only others have measured it.",
}
"""What would make the grade better."""


@dataclass(frozen=True, slots=True)
class LifeLine:
    """One event of a recommendation's life; ``who`` None: the rules, or nobody told."""

    at_ms: int
    word: Word
    note: str | None
    who: str | None = None


@dataclass(frozen=True, slots=True)
class Doc:
    """A rule's documentation."""

    rule: Rule
    text: RuleText


@dataclass(frozen=True, slots=True)
class Forms:
    """What can be done with it now; ``form``: of the step that was refused, with what was typed.

    Attributes:
        snoozes: name and last day of the usual ones. first_day: a snooze may end then. now: bound of when it was done.
    """

    steps: tuple[str, ...]
    snoozes: tuple[tuple[str, str], ...]
    first_day: str
    earliest: str
    now: str
    form: FormState = NO_FORM
    reasons: Mapping[str, str] = field(default_factory=lambda: REASONS)
    most_note: int = MOST_NOTE
    most_who: int = MOST_WHO


@dataclass(frozen=True, slots=True)
class DetailPage:
    """One recommendation.

    Attributes:
        sums: claim per ledger, or what is at stake and why nothing is claimed. reversible: in words. better: what would raise its grade.
        money: the price behind the sum, None: none is. facts: numbers behind it. reads: what the rule looks at.
        proofs: comparisons of before and after, newest first. missing_since: when the rules lost sight of it.
    """

    frame: Frame
    recommendation: Recommendation
    finding: Finding
    href: str
    because: str
    sums: tuple[Sum, ...]
    where: Where
    chart: EvidenceChart | None
    facts: tuple[Fact, ...]
    money: str | None
    grade_word: str
    status_word: Word
    reversible: str
    better: str
    reads: tuple[str, ...]
    doc: Doc | None
    life: tuple[LifeLine, ...]
    forms: Forms
    proofs: tuple[Proof, ...]
    track: Track


def find(scope: Scope, id_: int) -> Recommendation:
    """The recommendation of that number. Raises ``NotFoundError``."""
    found = recommendations.get(scope.session, id_)
    if found is None:
        raise NotFoundError(f"no recommendation {id_} in this database: the list has all of them")
    return found


def allowed(status: Status) -> tuple[str, ...]:
    """Forms that a status offers."""
    return tuple(step.value for step, statuses in APPLIES.items() if status in statuses)


def forms_of(rec: Recommendation, now_ms: int, form: FormState = NO_FORM) -> Forms:
    """What can be done with it now."""

    def day(days: int) -> str:
        return from_ms(now_ms + days * DAY_MS).date().isoformat()

    return Forms(
        steps=allowed(rec.status),
        snoozes=(("1 week", day(7)), ("1 month", day(30))),
        first_day=day(1),
        earliest=f"{from_ms(rec.opened_at_ms):%Y-%m-%dT%H:%M}",
        now=f"{from_ms(now_ms):%Y-%m-%dT%H:%M}",
        form=form,
    )


def money_of(finding: Finding) -> str | None:
    """The price that the sum rests on, in a sentence; None: there is none in it."""
    evidence = finding.evidence
    rate = evidence.get("usd_per_gpu_hour")
    if rate is None:
        return None
    said = f"{formats.money_rate(rate)} a GPU-hour"
    billing = evidence.get("billing")
    basis = evidence.get("price_basis")
    said += f", billed {str(billing).replace('_', ' ')}" if billing else ""
    return f"{said}. {basis}." if basis else f"{said}."


def page_of(
    frame: Frame,
    rec: Recommendation,
    where: Where,
    *,
    life: Sequence[LifeLine],
    forms: Forms,
    proofs: Sequence[Proof],
    track: Track,
) -> DetailPage:
    """Lay out one recommendation; pure."""
    finding = rec.finding
    rule = next((rule for rule in RULES if rule.id == finding.rule_id), None)
    evidence = {name: value for name, value in finding.evidence.items() if name not in MONEY}
    better = BETTER[finding.grade]
    if finding.is_short_of_data:
        better = "More days of data would raise it: the rules look again every hour."
    return DetailPage(
        frame=frame,
        recommendation=rec,
        finding=finding,
        href=f"/recommendations/{rec.id}",
        because=with_names(finding.because, where.names),
        sums=tuple(sums(finding)),
        where=where,
        chart=evidence_chart(finding),
        facts=facts_of(evidence, where.names),
        money=money_of(finding),
        grade_word=grade_word(finding),
        status_word=STATUS[rec.status],
        reversible=REVERSIBLE.get(finding.rule_id, formats.UNKNOWN),
        better=better,
        reads=() if rule is None else tuple(sorted(rule.needs)),
        doc=None if rule is None else Doc(rule, text_of(rule)),
        life=tuple(life),
        forms=forms,
        proofs=tuple(proofs),
        track=track,
    )


def build_detail(asked: View, rec: Recommendation, form: FormState = NO_FORM) -> DetailPage:
    """One recommendation; ``form``: one that was refused."""
    scope = asked.scope
    session, finding = scope.session, rec.finding
    every = verifications.rows(session, rule_id=finding.rule_id)
    known = verifications.records(session, finding.rule_id).get(finding.rule_id)
    return page_of(
        build_frame(asked, active="recommendations", title=finding.title, window_text=""),
        rec,
        read_where(session, finding),
        life=[
            LifeLine(event.at_ms, STATUS[event.status], event.note, event.who)
            for event in recommendations.events(session, rec.id)
        ],
        forms=forms_of(rec, scope.now_ms, form),
        proofs=[proof_of(one, finding.stage) for one in every if one.recommendation_id == rec.id],
        track=track_of(verifications.record_view(finding.rule_id, known), every, rec.id),
    )


@router.get("/recommendations/{id_}", response_class=HTMLResponse)
def detail_page(asked: ViewDep, id_: IdPath) -> str:
    """One recommendation as HTML."""
    return render("pages/recommendation.html", build_detail(asked, find(asked.scope, id_)))
