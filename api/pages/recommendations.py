"""Recommendations: the list with what could not be judged, one recommendation with its life, and the forms that move it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from api import formats
from api.charts_lines import Line, line_chart
from api.deps import NowDep, ScopeDep, SessionDep
from api.pages.facts import facts_of
from api.pages.forms import FormDep
from api.pages.frame import OPEN, Frame, build_frame
from api.problems import NotFoundError
from api.rec_row import RecommendationRow, chart_points, row_of, rows_of, sums, threshold
from api.resources import advise, verifications
from api.resources.recommendation_actions import APPLIES, Act, act
from api.resources.scope import Scope
from api.resources.verifications import TrackRecordView, VerificationView
from api.templating import render
from api.words import STATUS, Word, grade_word
from core.clock import from_ms
from core.evidence import Window
from core.finding import Finding, NotEvaluated, Status, Totals
from core.units import DAY_MS, MINUTE_MS
from store.queries import fleet, recommendations
from store.queries.recommendations import Recommendation

router = APIRouter(include_in_schema=False)
IdPath = Annotated[int, Path(ge=1, le=2**31 - 1)]

VIEWS: Final[dict[str, tuple[str, tuple[Status, ...]]]] = {
    "open": ("Open", OPEN),
    "done": ("Done", (Status.DONE, Status.VERIFIED)),
    "put-aside": ("Snoozed and dismissed", (Status.SNOOZED, Status.DISMISSED)),
    "gone": ("Gone", (Status.GONE,)),
}
NOT_JUDGED: Final = "not-judged"
"""What the last recorded run of the rules refused to judge."""
MOST_NOTE: Final = 2_000
MOST_WHO: Final = 200


@dataclass(frozen=True, slots=True)
class ViewLink:
    """One way to cut the list."""

    name: str
    href: str
    current: bool
    count: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Judgements refused for the same reason, on how many subjects and which."""

    rule_id: str
    why: str
    missing: tuple[str, ...]
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListPage:
    """The list."""

    frame: Frame
    views: tuple[ViewLink, ...]
    view: str
    rows: tuple[RecommendationRow, ...]
    refusals: tuple[Refusal, ...]
    totals: Totals | None
    claims: str
    ran_at_ms: int | None
    has_data: bool


@dataclass(frozen=True, slots=True)
class LifeLine:
    """One event of a recommendation's life."""

    at_ms: int
    word: Word
    note: str | None
    who: str | None = None


@dataclass(frozen=True, slots=True)
class DetailPage:
    """One recommendation; ``forms`` are the actions its status allows."""

    frame: Frame
    recommendation: Recommendation
    finding: Finding
    row: RecommendationRow
    sums: tuple[tuple[str, str], ...]
    chart: Markup | None
    chart_title: str
    chart_rows: tuple[tuple[int, float | None], ...]
    evidence: tuple[tuple[str, str], ...]
    grade_word: str
    status_word: Word
    life: tuple[LifeLine, ...]
    gpus: tuple[tuple[str, str], ...]
    forms: tuple[str, ...]
    snooze_from: str
    most_note: int
    verification: VerificationView | None = None
    track_record: TrackRecordView | None = None
    chart_x: str = ""
    """What the chart's horizontal axis counts where it is no time."""


def refusals(found: Sequence[NotEvaluated]) -> tuple[Refusal, ...]:
    """Refused judgements with equal reasons together; the most frequent first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for item in found:
        groups.setdefault((item.rule_id, item.why, item.missing), []).append(
            item.subject.label or item.subject.id
        )
    rows = [Refusal(rule, why, missing, tuple(subjects)) for (rule, why, missing), subjects in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-len(row.subjects), row.rule_id)))


def claims(totals: Totals, window: Window) -> str:
    """What could be saved after overlap, kind by kind, of a window's spend; empty when nothing is claimed."""
    said = []
    if totals.cash_usd_month is not None:
        spend_usd = totals.spend_usd_month
        spend = "" if spend_usd is None else f" of {formats.money(spend_usd)} {formats.pace(window.hours)}"
        said.append(f"cash {formats.spread(totals.cash_usd_month, 'cash')} a month{spend}")
    if totals.capacity_gpu_h_month is not None:
        said.append(f"capacity {formats.spread(totals.capacity_gpu_h_month, 'capacity')} GPU-h a month")
    if totals.energy_kwh_month is not None:
        said.append(f"energy {formats.spread(totals.energy_kwh_month, 'energy')} kWh a month")
    return ", ".join(said)


def build_list(scope: Scope, view: str) -> ListPage:
    """The list in one of its views. The rules are not run: the last recorded run is shown, with its time."""
    kept = recommendations.listing(scope.session)
    chosen = VIEWS[view][1] if view in VIEWS else ()
    host_of = {gpu.identity.gpu_uuid: gpu.identity.host for gpu in fleet.gpus(scope.session)}
    frame = build_frame(scope, active="recommendations", title="Recommendations")
    has_data = frame.newest_ms is not None
    last = advise.last_run(scope.session)
    links = [
        ViewLink(name, f"/recommendations?view={key}", key == view, sum(rec.status in of for rec in kept))
        for key, (name, of) in VIEWS.items()
    ]
    refused = len(last.not_evaluated) if last else 0
    links.append(ViewLink("Not judged", f"/recommendations?view={NOT_JUDGED}", view == NOT_JUDGED, refused))
    return ListPage(
        frame=frame,
        views=tuple(links),
        view=view,
        rows=rows_of((rec for rec in kept if rec.status in chosen), host_of, with_status=True),
        refusals=refusals(last.not_evaluated) if last and view == NOT_JUDGED else (),
        totals=last.totals if last else None,
        claims=claims(last.totals, last.window) if last else "",
        ran_at_ms=last.at_ms if last else None,
        has_data=has_data,
    )


def find(scope: Scope, id_: int) -> Recommendation:
    """The recommendation of that number. Raises ``NotFoundError``."""
    found = recommendations.get(scope.session, id_)
    if found is None:
        raise NotFoundError(f"no recommendation {id_} in this database: the list has all of them")
    return found


def allowed(status: Status) -> tuple[str, ...]:
    """Forms that a status offers."""
    return tuple(step.value for step, statuses in APPLIES.items() if status in statuses)


def chart_of(finding: Finding) -> Markup | None:
    """The finding's chart with its threshold; None when it has none."""
    points = chart_points(finding)
    if not points:
        return None
    unit = str(finding.chart.get("unit", ""))
    gaps = sorted(b[0] - a[0] for a, b in pairwise(points))
    limit = threshold(finding)
    said = "" if limit is None else f"threshold {formats.short(limit)} {unit}"
    x_unit = profile_of(finding)
    least = 1 if x_unit else MINUTE_MS
    return line_chart(
        [Line("busy", unit, tuple(points))],
        window=Window(points[0][0], max(points[-1][0], points[0][0] + least)),
        step_ms=gaps[len(gaps) // 2] if gaps and not x_unit else None,
        label=f"{unit} {f'by {x_unit}' if x_unit else 'over time'}; {said or 'no threshold'}",
        threshold=limit,
        threshold_text=said,
        height=190,
        x_unit=x_unit,
    )


def profile_of(finding: Finding) -> str:
    """What the chart's horizontal axis counts where it is no time; empty for a chart over time."""
    chart = finding.chart
    return str(chart.get("x_unit") or "value") if chart.get("kind") == "profile" else ""


def build_detail(scope: Scope, rec: Recommendation) -> DetailPage:
    """One recommendation."""
    finding = rec.finding
    subject = finding.subject
    return DetailPage(
        frame=build_frame(scope, active="recommendations", title=finding.title),
        recommendation=rec,
        finding=finding,
        row=row_of(str(rec.id), finding, rec.status),
        sums=tuple(sums(finding.saving, finding.no_figure)),
        chart=chart_of(finding),
        chart_title=str(finding.chart.get("unit", "")),
        chart_x=profile_of(finding),
        chart_rows=tuple(reversed(chart_points(finding)[-48:])),
        evidence=facts_of(finding.evidence),
        grade_word=grade_word(finding),
        status_word=STATUS[rec.status],
        life=tuple(
            LifeLine(event.at_ms, STATUS[event.status], event.note, event.who)
            for event in recommendations.events(scope.session, rec.id)
        ),
        gpus=tuple(
            (f"/gpus/{uuid}", subject.label if uuid == subject.id and subject.label else uuid)
            for uuid in finding.gpu_uuids
        ),
        forms=allowed(rec.status),
        snooze_from=from_ms(scope.now_ms + DAY_MS).date().isoformat(),
        most_note=MOST_NOTE,
        verification=next(iter(verifications.rows(scope.session, rec.id)), None),
        track_record=verifications.record_view(
            finding.rule_id, verifications.records(scope.session).get(finding.rule_id)
        ),
    )


@router.get("/recommendations", response_class=HTMLResponse)
def list_page(scope: ScopeDep, view: Annotated[str, Query(max_length=20)] = "open") -> str:
    """The list as HTML."""
    if view not in {*VIEWS, NOT_JUDGED}:
        raise NotFoundError(
            f"no view {view!r} of the recommendations: there are {', '.join(VIEWS)}, {NOT_JUDGED}"
        )
    return render("pages/recommendations.html", build_list(scope, view))


@router.get("/recommendations/{id_}", response_class=HTMLResponse)
def detail_page(scope: ScopeDep, id_: IdPath) -> str:
    """One recommendation as HTML."""
    return render("pages/recommendation.html", build_detail(scope, find(scope, id_)))


@router.post("/recommendations/{id_}/{step}", response_class=RedirectResponse, status_code=303)
def take_step(id_: IdPath, step: Act, fields: FormDep, session: SessionDep, now: NowDep) -> RedirectResponse:
    """Take a step from a form and show the recommendation again."""
    note, until = fields.get("note", "")[:MOST_NOTE], fields.get("until") or None
    act(session, id_, step, now, note=note, until=until, who=fields.get("who", "")[:MOST_WHO])
    return RedirectResponse(f"/recommendations/{id_}", 303)
