"""Findings as people follow them: one shape for the command line, REST, the pages and the mail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from api.resources.columns import about
from core.clock import from_ms
from core.finding import (
    Action,
    Effort,
    Finding,
    Grade,
    NotEvaluated,
    Range,
    Risk,
    Saving,
    Stake,
    Status,
    Subject,
    Totals,
)
from core.money import usd
from store.queries.recommendations import Recommendation


@dataclass(frozen=True, slots=True)
class MoneyRange:
    """Dollars with their uncertainty, p10 ≤ p50 ≤ p90."""

    p10: Decimal
    p50: Decimal
    p90: Decimal


@dataclass(frozen=True, slots=True)
class SavingView:
    """Three ledgers, never added together; null: no claim in that ledger."""

    cash_usd_month: Annotated[MoneyRange | None, about("Dollars a month that would no longer be billed.")]
    capacity_gpu_h_month: Annotated[
        Range | None, about("GPU-hours a month that would be free for other work.")
    ]
    energy_kwh_month: Annotated[Range | None, about("Energy a month, at the GPU.")]


@dataclass(frozen=True, slots=True)
class StakeView:
    """GPUs that do no work now, and what they cost until that ends: a fact, never a saving."""

    gpus: Annotated[float, about("GPUs held; of an owner's share a part.")]
    usd_per_hour: Annotated[Decimal | None, about("What they cost an hour; null: one of them has no price.")]


@dataclass(frozen=True, slots=True)
class TotalsView:
    """All findings that count, after overlap (design 10.3); never more than the spend."""

    cash_usd_month: Annotated[MoneyRange | None, about("Dollars a month.")]
    capacity_gpu_h_month: Annotated[Range | None, about("GPU-hours a month.")]
    energy_kwh_month: Annotated[Range | None, about("Energy a month, at the GPU.")]
    spend_usd_month: Annotated[
        Decimal | None, about("What the priced GPUs of the same window cost in a month.")
    ]


@dataclass(frozen=True, slots=True)
class RecommendationRow:
    """One finding, its saving, its evidence and where it stands."""

    rule_id: Annotated[str, about("Failing state as a noun phrase.")]
    subject: Annotated[Subject, about("What it is about.")]
    status: Annotated[Status, about("Where people have taken it; open until someone acts.")]
    title: Annotated[str, about("What to do.")]
    because: Annotated[str, about("One sentence with the numbers.")]
    state: Annotated[str, about("State in the rule's own words.")]
    confidence: Annotated[str, about("In words, with the reason.")]
    grade: Annotated[
        Grade, about("How the figure was had: A measured, B fitted here, C formula, D literature.")
    ]
    effort: Annotated[Effort, about("Work to act on it.")]
    risk: Annotated[Risk, about("What can go wrong.")]
    saving: Annotated[SavingView, about("Per ledger.")]
    evidence: Annotated[Mapping[str, Any], about("Numbers with units in their names.")]
    actions: Annotated[tuple[Action, ...], about("What to do, with commands.")]
    wrong_when: Annotated[str, about("When this is wrong.")]
    not_claimed: Annotated[str, about("What is deliberately not claimed.")]
    no_figure: Annotated[str | None, about("Why there is no saving; null when there is one.")]
    cause: Annotated[str, about("Branch of the rule.")]
    fingerprint: Annotated[str, about("Same rule, subject and cause: the same finding.")]
    gpu_uuids: Annotated[tuple[str, ...], about("GPUs whose hours the saving acts on.")]
    at_stake: Annotated[
        StakeView | None,
        about(
            "What GPUs that do no work now cost until somebody acts: no saving; null: not so, or not known."
        ),
    ]
    stage: Annotated[str, about("Its place in the waterfall.")]
    chart: Annotated[Mapping[str, Any], about("Points to draw, with the threshold.")]
    id: Annotated[int | None, about("Number for claim, done, snooze, dismiss, reopen; null: not recorded.")]
    opened_at: Annotated[datetime | None, about("First found, UTC.")]
    seen_at: Annotated[datetime | None, about("Last found, UTC.")]
    snoozed_until: Annotated[datetime | None, about("Comes back then, UTC.")]
    note: Annotated[str | None, about("What the last person to act wrote.")]


@dataclass(frozen=True, slots=True)
class AdviceView:
    """One run of the rules: what ``gpuwise advise --json`` prints."""

    recommendations: tuple[RecommendationRow, ...]
    not_evaluated: tuple[NotEvaluated, ...]
    totals: TotalsView


def money_range(figure: Range | None) -> MoneyRange | None:
    """A range of dollars as money."""
    return None if figure is None else MoneyRange(usd(figure.p10), usd(figure.p50), usd(figure.p90))


def saving_view(saving: Saving) -> SavingView:
    """A saving with its dollars as money."""
    return SavingView(
        money_range(saving.cash_usd_month), saving.capacity_gpu_h_month, saving.energy_kwh_month
    )


def stake_view(stake: Stake) -> StakeView:
    """What is at stake with its dollars as money."""
    return StakeView(stake.gpus, None if stake.usd_per_hour is None else usd(stake.usd_per_hour))


def totals_view(totals: Totals) -> TotalsView:
    """Totals with their dollars as money."""
    spend = None if totals.spend_usd_month is None else usd(totals.spend_usd_month)
    return TotalsView(
        money_range(totals.cash_usd_month), totals.capacity_gpu_h_month, totals.energy_kwh_month, spend
    )


def with_money(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence with its dollar figures (``usd`` in the name) as money, so that JSON prints them as text."""
    return {
        name: usd(value) if "usd" in name and isinstance(value, float) else value
        for name, value in evidence.items()
    }


def row_of(finding: Finding, kept: Recommendation | None) -> RecommendationRow:
    """A finding with what people did about it; ``kept`` None: it is not recorded, and open."""
    return RecommendationRow(
        rule_id=finding.rule_id,
        subject=finding.subject,
        status=Status.OPEN if kept is None else kept.status,
        title=finding.title,
        because=finding.because,
        state=finding.state,
        confidence=finding.confidence,
        grade=finding.grade,
        effort=finding.effort,
        risk=finding.risk,
        saving=saving_view(finding.saving),
        evidence=with_money(finding.evidence),
        actions=finding.actions,
        wrong_when=finding.wrong_when,
        not_claimed=finding.not_claimed,
        no_figure=finding.no_figure,
        cause=finding.cause,
        fingerprint=finding.fingerprint,
        gpu_uuids=finding.gpu_uuids,
        at_stake=None if finding.at_stake is None else stake_view(finding.at_stake),
        stage=finding.stage,
        chart=finding.chart,
        id=None if kept is None else kept.id,
        opened_at=None if kept is None else from_ms(kept.opened_at_ms),
        seen_at=None if kept is None else from_ms(kept.seen_at_ms),
        snoozed_until=None
        if kept is None or kept.snoozed_until_ms is None
        else from_ms(kept.snoozed_until_ms),
        note=None if kept is None else kept.note,
    )
