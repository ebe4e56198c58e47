"""A recommendation as one row: the sum with its kind and range, the title, the evidence, the command, a spark line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from api import formats
from api.charts_lines import Point, sparkline
from api.ranking import rank
from api.words import TOGETHER, grade_word
from core.finding import Effort, Finding, Grade, Saving, Stake, Status
from store.queries.recommendations import Recommendation


@dataclass(frozen=True, slots=True)
class Sum:
    """One figure of a finding: what it is of, the figure, its kind and range in small print."""

    name: str
    figure: str
    note: str


@dataclass(frozen=True, slots=True)
class Alike:
    """One of the findings that a row says at once."""

    href: str
    title: str
    sum: str


@dataclass(frozen=True, slots=True)
class RecommendationRow:
    """What a row prints.

    ``command`` is the first action's, ``action`` its words when it has no command. ``alike`` are the
    findings of one rule and cause on the same hosts that the row says at once, with their sum.
    """

    id: str
    href: str
    sum: str
    sum_note: str
    title: str
    because: str
    command: str | None
    action: str | None
    spark: Markup
    grade: Grade
    grade_word: str
    confidence: str
    effort: Effort
    status: Status | None
    alike: tuple[Alike, ...] = ()


def sums(finding: Finding) -> list[Sum]:
    """Each ledger's claim, the hardest money first; else what is at stake, and ``no figure`` with its reason."""
    saving, name = finding.saving, "Saving"
    found = []
    if saving.cash_usd_month is not None:
        cash = saving.cash_usd_month
        found.append(
            Sum(name, f"{formats.money(cash.p50)} / month", f"cash · {formats.spread(cash, 'cash')}")
        )
    if saving.capacity_gpu_h_month is not None:
        hours = saving.capacity_gpu_h_month
        found.append(
            Sum(name, formats.gpu_hours(hours.p50), f"capacity a month · {formats.spread(hours, 'capacity')}")
        )
    if saving.energy_kwh_month is not None:
        energy = saving.energy_kwh_month
        found.append(
            Sum(name, formats.kwh(energy.p50), f"energy a month · {formats.spread(energy, 'energy')}")
        )
    if not found and finding.at_stake is not None:
        found.append(Sum("At stake", stake_words(finding.at_stake), "spent until it ends · not a saving"))
    if saving.is_empty:
        why = finding.no_figure or "no honest number from this evidence"
        found.append(Sum("Saving not claimed", "no figure", why))
    return found


def stake_words(stake: Stake) -> str:
    """What is at stake in a day: ``$480 / day``, of what has no price in GPU-hours."""
    if stake.usd_per_hour is None:
        return f"{formats.gpu_hours(24 * stake.gpus)} / day"
    return f"{formats.money(24 * stake.usd_per_hour)} / day"


def chart_points(finding: Finding) -> list[Point]:
    """The finding's chart as points; empty when it has none."""
    series = finding.chart.get("series") or []
    return [(int(ts_ms), None if value is None else float(value)) for ts_ms, value in series]


def threshold(finding: Finding) -> float | None:
    """The threshold of the finding's chart, or None."""
    value = finding.chart.get("threshold")
    return None if value is None else float(value)


def rows_of(
    found: Iterable[Recommendation],
    host_of: Mapping[str, str | None],
    *,
    most: int | None = None,
    with_status: bool = False,
) -> tuple[RecommendationRow, ...]:
    """Rows, best first; findings that say the same of GPUs on the same hosts share one.

    Args:
        found: recommendations in any order.
        host_of: host by GPU UUID.
        most: rows at most. with_status: print where each stands, and never join different ones.
    """
    groups = groups_of(found, host_of, by_status=with_status)[:most]
    return tuple(row_of_group(recs, host_of, with_status=with_status) for recs in groups)


def groups_of(
    found: Iterable[Recommendation], host_of: Mapping[str, str | None], *, by_status: bool = False
) -> list[list[Recommendation]]:
    """Findings that say the same of GPUs on the same hosts together, best first."""
    groups: dict[tuple[object, ...], list[Recommendation]] = {}
    for rec in sorted(found, key=lambda rec: (rank(rec.finding), rec.id)):
        finding = rec.finding
        hosts = frozenset(host_of.get(uuid) for uuid in finding.gpu_uuids)
        key = (finding.rule_id, finding.cause, hosts, rec.status if by_status else None)
        # Only GPUs are interchangeable: an engine's finding has its own command.
        alone = finding.subject.kind != "gpu" or not hosts or None in hosts
        groups.setdefault((rec.id,) if alone else key, []).append(rec)
    return sorted(groups.values(), key=lambda recs: (rank(_best(recs)), recs[0].id))


def _best(recs: Sequence[Recommendation]) -> Finding:
    """``together``, but for one alone, which is itself: most are."""
    return recs[0].finding if len(recs) == 1 else together(recs)


def together(recs: Sequence[Recommendation]) -> Finding:
    """The best of a group, with the savings of all of them, and all that is at stake."""
    findings = [rec.finding for rec in recs]
    return replace(
        findings[0],
        saving=Saving.total(finding.saving for finding in findings),
        at_stake=Stake.total(finding.at_stake for finding in findings),
    )


def row_of_group(
    recs: Sequence[Recommendation], host_of: Mapping[str, str | None], *, with_status: bool
) -> RecommendationRow:
    """One row for neighbours that say the same: their sum, a title for all, and each of them beneath."""
    row = row_of(str(recs[0].id), together(recs), recs[0].status if with_status else None)
    if len(recs) == 1:
        return row
    hosts = ", ".join(sorted({str(host_of[uuid]) for rec in recs for uuid in rec.finding.gpu_uuids}))
    title = TOGETHER.get(recs[0].finding.rule_id)
    alike = tuple(
        Alike(
            f"/recommendations/{rec.id}",
            rec.finding.title,
            sums(rec.finding)[0].figure,
        )
        for rec in recs
    )
    return replace(row, title=title.format(count=len(recs), hosts=hosts) if title else row.title, alike=alike)


def row_of(id_: str, finding: Finding, status: Status | None = None) -> RecommendationRow:
    """The row of a finding; ``status`` None leaves the mark out."""
    first_sum = sums(finding)[0]
    first = next((action for action in finding.actions if action.command), None)
    return RecommendationRow(
        id=id_,
        href=f"/recommendations/{id_}",
        sum=first_sum.figure,
        sum_note=first_sum.note,
        title=finding.title,
        because=finding.because,
        command=first.command if first else None,
        action=None if first else (finding.actions[0].text if finding.actions else None),
        spark=sparkline(
            chart_points(finding), unit=str(finding.chart.get("unit", "")), threshold=threshold(finding)
        ),
        grade=finding.grade,
        grade_word=grade_word(finding),
        confidence=finding.confidence,
        effort=finding.effort,
        status=status,
    )
