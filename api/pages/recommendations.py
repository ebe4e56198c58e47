"""Recommendations: the list by status, with filters, an order, totals after overlap, and what could not be judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from api import formats
from api.pages.filters import FilterBar
from api.pages.frame import OPEN, Frame, build_frame
from api.pages.pager import Pager, pager
from api.pages.period import PeriodLink
from api.pages.recommendations_filters import asked_of, bar_of
from api.pages.view import Address, View, ViewDep
from api.problems import NotFoundError
from api.ranking import rank
from api.rec_row import RecommendationRow, groups_of, row_of_group, together
from api.resources import advise
from api.resources.recommendation_filters import Asked, fitting, known_of
from api.templating import render
from core.errors import UsageError
from core.evidence import Window
from core.finding import Finding, NotEvaluated, Status, Totals
from store.queries import recommendations
from store.queries.recommendations import Recommendation

router = APIRouter(include_in_schema=False)

PATH: Final = "/recommendations"
VIEWS: Final[dict[str, tuple[str, tuple[Status, ...]]]] = {
    "open": ("Open", OPEN),
    "done": ("Done", (Status.DONE, Status.VERIFIED)),
    "put-aside": ("Snoozed and dismissed", (Status.SNOOZED, Status.DISMISSED)),
    "gone": ("Gone", (Status.GONE,)),
}
NOT_JUDGED: Final = "not-judged"
"""What the last recorded run of the rules refused to judge."""
AT_ONCE: Final = 25
MOST_ALIKE: Final = 50
"""Neighbours that a row lists one by one; more are behind its filters."""


def _amount(ledger: str) -> Callable[[Sequence[Recommendation]], float | None]:
    def read(recs: Sequence[Recommendation]) -> float | None:
        claim = getattr(together(recs).saving, ledger)
        return None if claim is None else -claim.p50

    return read


SORTS: Final[Mapping[str, tuple[str, Callable[[Sequence[Recommendation]], Any]]]] = {
    "": ("Best first", lambda recs: rank(together(recs))),
    "cash": ("Cash", _amount("cash_usd_month")),
    "capacity": ("GPU-hours", _amount("capacity_gpu_h_month")),
    "energy": ("Energy", _amount("energy_kwh_month")),
    "grade": ("Grade", lambda recs: recs[0].finding.grade.value),
    "new": ("Newest", lambda recs: -max(rec.opened_at_ms for rec in recs)),
    "old": ("Oldest", lambda recs: min(rec.opened_at_ms for rec in recs)),
}
"""Orders by their key in the address: name, and what rows are ordered by (None: last)."""


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
class Ledgers:
    """Totals as tiles: name, figure, small print; ``spend`` is what the same GPUs cost."""

    tiles: tuple[tuple[str, str, str], ...]
    without_figure: int


@dataclass(frozen=True, slots=True)
class ListPage:
    """The list.

    Attributes:
        rows: of this page of it; ``count`` findings in all. totals: of all that is shown, after overlap; None: none are claimed.
        is_filtered: the address leaves something out. files: all of ``count``, by format. refusals: of this page of what could not be judged.
    """

    frame: Frame
    headline: str
    lede: str
    views: tuple[ViewLink, ...]
    view: str
    filters: FilterBar | None
    asked_q: str
    hidden_q: tuple[tuple[str, str], ...]
    sorts: tuple[PeriodLink, ...]
    ledgers: Ledgers | None
    rows: tuple[RecommendationRow, ...]
    count: int
    pager: Pager
    files: tuple[tuple[str, str], ...]
    refusals: tuple[Refusal, ...]
    has_data: bool
    is_filtered: bool = False


def refusals(found: Sequence[NotEvaluated]) -> tuple[Refusal, ...]:
    """Refused judgements with equal reasons together; the most frequent first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for item in found:
        groups.setdefault((item.rule_id, item.why, item.missing), []).append(
            item.subject.label or item.subject.id
        )
    rows = [Refusal(rule, why, missing, tuple(subjects)) for (rule, why, missing), subjects in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-len(row.subjects), row.rule_id)))


def ledgers_of(totals: Totals, window: Window, findings: Sequence[Finding]) -> Ledgers:
    """Totals after overlap as tiles, kind by kind: they are never added up."""
    tiles = []
    if totals.cash_usd_month is not None:
        spend = totals.spend_usd_month
        of = "" if spend is None else f", of {formats.money(spend)} {formats.pace(window.hours)}"
        tiles.append(
            (
                "Cash a month",
                formats.money(totals.cash_usd_month.p50),
                f"{formats.spread(totals.cash_usd_month, 'cash')}{of}",
            )
        )
    if totals.capacity_gpu_h_month is not None:
        hours = totals.capacity_gpu_h_month
        tiles.append(
            (
                "Capacity a month",
                formats.gpu_hours(round(hours.p50)),
                f"{formats.figure(hours.p10)}–{formats.figure(hours.p90)}: free for other work, no smaller bill",
            )
        )
    if totals.energy_kwh_month is not None:
        energy = totals.energy_kwh_month
        tiles.append(
            (
                "Energy a month",
                formats.kwh(round(energy.p50)),
                f"{formats.spread(energy, 'energy')} at the GPUs",
            )
        )
    return Ledgers(tuple(tiles), sum(finding.saving.is_empty for finding in findings))


def headline(view: str, count: int, totals: Totals | None) -> str:
    """What the list comes to, in one sentence."""
    many = f"{formats.figure(count)} recommendation{'' if count == 1 else 's'}"
    if view == "done":
        return f"{many} acted on"
    if view == "put-aside":
        return f"{many} set aside"
    if view == "gone":
        return f"{many} no longer found"
    if totals is not None and totals.cash_usd_month is not None:
        return f"{formats.money(totals.cash_usd_month.p50)} a month could be saved"
    if totals is not None and totals.capacity_gpu_h_month is not None:
        return f"{formats.gpu_hours(round(totals.capacity_gpu_h_month.p50))} a month could be freed"
    return f"{many}, none with a figure" if count else "Nothing to do"


LEDES: Final = {
    "open": "After overlap: where two ask for the same GPU-hours they count once. Each kind on its own, never added together; snoozed and dismissed ones are not in it.",
    "done": "What people said was done. After two full weeks, before and after are compared at equal load; each one's page shows it.",
    "put-aside": "In no total. They return by themselves when the date comes, the saving grows by a quarter, or the cause changes.",
    "gone": "The rules found them once and do not any more, and nobody said that it was done. They come back by themselves.",
}


def lede(view: str, ran: str, *, has_figures: bool) -> str:
    """What the figures are, and when the rules last ran."""
    said = LEDES[view] if view != "open" or has_figures else "No sum is claimed: the evidence carries none."
    return f"{said} {ran}".strip()


def ordered(groups: Sequence[list[Recommendation]], sort: str) -> list[list[Recommendation]]:
    """Rows in the order that was asked for; those without what it goes by last."""
    key = SORTS[sort][1]
    keyed = [(key(recs), recs) for recs in groups]
    known = sorted((pair for pair in keyed if pair[0] is not None), key=lambda pair: pair[0])
    return [recs for _, recs in known] + [recs for value, recs in keyed if value is None]


def _views(address: Address, view: str, counts: Mapping[Status, int], refused: int) -> tuple[ViewLink, ...]:
    def href(key: str) -> str:
        return address.href(view=None if key == "open" else key, page=None, said=None)

    links = [
        ViewLink(name, href(key), key == view, sum(counts.get(status, 0) for status in of))
        for key, (name, of) in VIEWS.items()
    ]
    return (*links, ViewLink("Not judged", href(NOT_JUDGED), view == NOT_JUDGED, refused))


def _counted(found: Sequence[Recommendation]) -> dict[Status, int]:
    counts: dict[Status, int] = {}
    for rec in found:
        counts[rec.status] = counts.get(rec.status, 0) + 1
    return counts


def build_list(asked: View, view: str) -> ListPage:
    """The list in one of its views. The rules are not run: the last recorded run is shown, with its time."""
    session, address = asked.scope.session, asked.address
    sort = address.get("sort")
    if sort not in SORTS:
        raise UsageError(f"sort is {sort!r}: use one of {', '.join(key for key in SORTS if key)}, or none")
    frame = build_frame(asked, active="recommendations", title="Recommendations", window_text="")
    last = advise.last_spend(session)
    if view == NOT_JUDGED:
        return _not_judged(asked, frame, last)
    statuses = VIEWS[view][1]
    known, filters = known_of(session, last), asked_of(address)
    if filters:
        every = fitting(filters, recommendations.listing(session, brief=True), known)
        counts = _counted(every)
        offered = shown = [rec for rec in every if rec.status in statuses]
    else:
        offered = shown = recommendations.listing(session, statuses, brief=True)
        counts = recommendations.counts(session)
    totals = _totals(session, view, shown, last, is_whole=not filters)
    host_of = {uuid: gpu.host for uuid, gpu in known.gpus.items()}
    groups = ordered(groups_of(shown, host_of, by_status=True), sort)
    page = pager(address, len(groups), AT_ONCE)
    ledgers = None if totals is None else ledgers_of(*totals, [rec.finding for rec in shown])
    ran = "" if last is None else f"The rules last ran {formats.minute(last.at_ms)} UTC."
    return ListPage(
        frame=frame,
        headline=headline(view, len(shown), None if totals is None else totals[0]),
        lede=lede(view, ran, has_figures=ledgers is not None and bool(ledgers.tiles)),
        views=_views(address, view, counts, 0 if last is None else last.refused),
        view=view,
        filters=bar_of(address, offered, known),
        asked_q=address.get("q"),
        hidden_q=address.hidden("q", "page", "said"),
        sorts=tuple(
            PeriodLink(name, address.href(sort=key or None, page=None, said=None), key == sort)
            for key, (name, _) in SORTS.items()
        ),
        ledgers=ledgers,
        rows=_rows(session, groups[page.first : page.last], host_of),
        count=len(shown),
        pager=page,
        files=_files(statuses, filters),
        refusals=(),
        has_data=frame.newest_ms is not None,
        is_filtered=bool(filters),
    )


def _rows(
    session: Session, groups: Sequence[list[Recommendation]], host_of: Mapping[str, str | None]
) -> tuple[RecommendationRow, ...]:
    """The rows of one page: only the first of each group is read with evidence and chart."""
    whole = {rec.id: rec for rec in recommendations.several(session, [recs[0].id for recs in groups])}
    rows = []
    for recs in groups:
        row = row_of_group([whole.get(recs[0].id, recs[0]), *recs[1:]], host_of, with_status=True)
        rows.append(replace(row, alike=row.alike[:MOST_ALIKE]))
    return tuple(rows)


def _totals(
    session: Session,
    view: str,
    shown: Sequence[Recommendation],
    last: advise.LastSpend | None,
    *,
    is_whole: bool,
) -> tuple[Totals, Window] | None:
    """After overlap, of what is shown, and of which window; what was set aside, is done or gone has none."""
    if view != "open" or not shown:
        return None
    if last is not None:
        return last.spend.totals([rec.finding for rec in shown]), last.window
    run = advise.last_run(session) if is_whole else None
    return None if run is None else (run.totals, run.window)


def _files(statuses: Sequence[Status], filters: Asked) -> tuple[tuple[str, str], ...]:
    asked = {"status": [status.value for status in statuses], **filters}
    path = "/api/v1/recommendations?"
    return (
        ("CSV", path + urlencode({**asked, "format": "csv"}, doseq=True)),
        ("JSON", path + urlencode(asked, doseq=True)),
    )


def _not_judged(asked: View, frame: Frame, last: advise.LastSpend | None) -> ListPage:
    """What the last run refused to judge, by rule and reason."""
    session, address = asked.scope.session, asked.address
    run = advise.last_run(session)
    rules = address.every("rule")
    found = refusals([one for one in run.not_evaluated if not rules or one.rule_id in rules] if run else ())
    page = pager(address, len(found), AT_ONCE)
    count = sum(len(one.subjects) for one in found)
    ran = "" if run is None else f"The rules last ran {formats.minute(run.at_ms)} UTC."
    return ListPage(
        frame=frame,
        headline=f"{formats.figure(count)} judgement{'' if count == 1 else 's'} refused"
        if count
        else "Every rule could judge every subject",
        lede=f"A rule that lacks evidence says so instead of guessing, and names what is missing. {ran}".strip(),
        views=_views(
            address, NOT_JUDGED, recommendations.counts(session), count if last is None else last.refused
        ),
        view=NOT_JUDGED,
        filters=None,
        asked_q="",
        hidden_q=(),
        sorts=(),
        ledgers=None,
        rows=(),
        count=len(found),
        pager=page,
        files=(),
        refusals=found[page.first : page.last],
        has_data=frame.newest_ms is not None,
    )


@router.get(PATH, response_class=HTMLResponse)
def list_page(asked: ViewDep, view: Annotated[str, Query(max_length=20)] = "open") -> str:
    """The list as HTML."""
    if view not in {*VIEWS, NOT_JUDGED}:
        raise NotFoundError(
            f"no view {view!r} of the recommendations: there are {', '.join(VIEWS)}, {NOT_JUDGED}"
        )
    return render("pages/recommendations.html", build_list(asked, view))
