"""The pictures of one recommendation: its evidence with the threshold, before and after, the rule's record."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from advisor.verify.outcome import IDLE_STAGES
from api import formats
from api.charts_lines import Line, line_chart
from api.charts_track import TrackCase, track_chart
from api.charts_verification import verification_chart
from api.rec_row import chart_points, threshold
from api.resources.verifications import TrackRecordView, VerificationView
from core.clock import to_ms
from core.evidence import Window
from core.finding import Finding, Range
from core.units import MINUTE_MS
from core.verification import Ledger, Verdict

MOST_ROWS = 48
SHARE = "share of "
UNIT_A_DAY = {Ledger.CASH: "$ a day", Ledger.CAPACITY: "GPU-h a day", Ledger.ENERGY: "kWh a day"}


@dataclass(frozen=True, slots=True)
class EvidenceChart:
    """The chart of a finding.

    Attributes:
        title: what it shows. unit: of its values. x_unit: what the horizontal axis counts where it is no time.
        rows: the newest points, to read.
    """

    title: str
    drawn: Markup
    unit: str
    x_unit: str
    rows: tuple[tuple[int, float | None], ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """One comparison of before and after, with its picture.

    Attributes:
        title: how it ended, for people. sums: name and figure. drawn: None where nothing can be drawn.
        has_baseline, has_peers: what the picture holds. rows: day, measured, expected, peers.
    """

    view: VerificationView
    title: str
    sums: tuple[tuple[str, str, str], ...]
    drawn: Markup | None
    unit: str
    has_baseline: bool
    has_peers: bool
    rows: tuple[tuple[int, float, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Track:
    """A rule's record with its picture; ``drawn`` None: no case yet."""

    view: TrackRecordView
    drawn: Markup | None
    rows: tuple[VerificationView, ...]


def profile_of(finding: Finding) -> str:
    """What the chart's horizontal axis counts where it is no time; empty for a chart over time."""
    chart = finding.chart
    return str(chart.get("x_unit") or "value") if chart.get("kind") == "profile" else ""


def conclusion(values: Sequence[float], unit: str, limit: float | None) -> str:
    """What the points show, in a phrase."""
    if not values:
        return "Nothing was measured"
    if limit is None:
        middle, most = formats.short(median(values)), formats.short(max(values))
        return f"{middle} {unit} throughout" if middle == most else f"Median {middle}, at most {most} {unit}"
    above = sum(value > limit for value in values) / len(values)
    side, share = ("Above", above) if above >= 0.5 else ("Not above", 1 - above)
    return f"{side} the threshold of {formats.short(limit)} {unit} in {formats.percent(share)} of the points"


def in_percent(unit: str) -> str | None:
    """What a share is of, after its "%"; None for what is no share."""
    if unit == "ratio":
        return "%"
    return f"% of {unit.removeprefix(SHARE)}" if unit.startswith(SHARE) else None


def evidence_chart(finding: Finding) -> EvidenceChart | None:
    """The finding's chart with its threshold, shares in per cent; None when it has none."""
    points = chart_points(finding)
    if not points:
        return None
    unit, limit = str(finding.chart.get("unit", "")), threshold(finding)
    if (of := in_percent(unit)) is not None:
        unit, limit = of, None if limit is None else 100 * limit
        points = [(at, None if value is None else 100 * value) for at, value in points]
    gaps = sorted(b[0] - a[0] for a, b in pairwise(points))
    x_unit = profile_of(finding)
    title = conclusion([value for _, value in points if value is not None], unit, limit)
    drawn = line_chart(
        [Line("busy", unit, tuple(points))],
        window=Window(points[0][0], max(points[-1][0], points[0][0] + (1 if x_unit else MINUTE_MS))),
        step_ms=gaps[len(gaps) // 2] if gaps and not x_unit else None,
        label=f"{title}. {unit} {f'by {x_unit}' if x_unit else 'over time'}",
        threshold=limit,
        threshold_text="" if limit is None else f"threshold {formats.short(limit)} {unit}",
        height=190,
        x_unit=x_unit,
    )
    return EvidenceChart(title, drawn, unit, x_unit, tuple(reversed(points[-MOST_ROWS:])))


TITLES = {
    Verdict.SAVED: "It came true",
    Verdict.NO_SAVING: "It did not come true",
    Verdict.NOISE: "Not distinguishable from noise",
    Verdict.TOO_EARLY: "Too early to say",
}
"""How a comparison ended; every other verdict is a refusal."""


def amount(ledger: Ledger, value: float) -> str:
    """An amount a month of a ledger."""
    text = {Ledger.CASH: formats.money, Ledger.CAPACITY: formats.gpu_hours, Ledger.ENERGY: formats.kwh}[
        ledger
    ]
    return text(round(value) if ledger is not Ledger.CASH and abs(value) >= 100 else value)


def proof_of(view: VerificationView, stage: str = "") -> Proof:
    """One comparison as people read it; ``stage`` of the waterfall says which GPU-hours were counted."""
    ledger, sums = view.ledger, []
    if ledger is not None:
        if view.predicted_p50 is not None:
            sums.append(("Claimed", amount(ledger, view.predicted_p50), "a month"))
        if view.saving is not None:
            low, high = amount(ledger, view.saving.p10), amount(ledger, view.saving.p90)
            sums.append(
                ("Verified", amount(ledger, view.saving.p50), f"a month at equal load · {low} to {high}")
            )
    if view.realised_ratio is not None:
        sums.append(("Verified ÷ claimed", formats.percent(view.realised_ratio, 0), "of the claim came true"))
    title = TITLES.get(view.verdict, "Before and after cannot be compared")
    if view.verdict is Verdict.SAVED and view.realised_ratio is not None:
        title = f"It came true: {formats.percent(view.realised_ratio, 0)} of the claim"
    unit = "" if ledger is None else UNIT_A_DAY[ledger]
    if ledger is Ledger.CAPACITY:
        unit = f"{'idle' if stage in IDLE_STAGES else 'held'} {unit}"
    days = view.days
    return Proof(
        view=view,
        title=title,
        sums=tuple(sums),
        drawn=verification_chart(
            days, to_ms(view.acted_at), label=f"{title}. {unit} by day, before and after: {view.sentence}"
        ),
        unit=unit,
        has_baseline=any(day.expected is not None for day in days),
        has_peers=any(day.peers is not None for day in days),
        rows=tuple((day.day_ms, day.measured, day.expected, day.peers) for day in days),
    )


def track_of(view: TrackRecordView, every: Sequence[VerificationView], own_id: int | None = None) -> Track:
    """The record of a rule; ``every`` verification of it, the newest first."""
    rows = tuple(
        one
        for one in every
        if one.rule_id == view.rule_id and one.saving is not None and one.realised_ratio is not None
    )
    cases = [
        TrackCase(_over(one.saving, one.predicted_p50), one.recommendation_id == own_id)
        for one in rows
        if one.saving is not None and one.predicted_p50
    ]
    label = f"Verified over claimed of {len(cases)} cases. {view.sentence}"
    return Track(view, track_chart(cases, view.ratio, label=label) if cases else None, rows)


def _over(saving: Range, claim: float) -> Range:
    return saving.scaled(1 / claim)
