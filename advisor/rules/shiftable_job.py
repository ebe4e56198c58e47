"""Batch jobs run while electricity is dear, and cheaper hours have room.

What it finds
    Jobs of a batch scheduler, shorter than a day, whose energy would have cost less at another hour of the same day by
    the site's hourly prices, while their GPUs were free then. Three policies are run over the jobs that were seen: wait
    six hours at most, start all at one hour, start each at its cheapest.

Why it costs
    The same kilowatt-hour costs several times as much in the evening as at night under a tariff by the hour. It is a
    small term: energy is usually under a twentieth of what a GPU costs.

When it is wrong
    Somebody waits for the result, the jobs have a deadline within the day, or jobs depend on each other. Deadlines are
    not seen in telemetry. Without prices by the hour nothing can be said, and nothing is.

What to do
    Submit deferrable jobs with a start time, or give the queue a partition that opens when power is cheap.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.batch_runs import Batch, active_by_hour, batch_of, coverage_of
from advisor.confidence import graded
from advisor.estimators.shift import CAUTIOUS_DELAY_H, DAY_H, cost, saved_by_one_hour, shifted
from advisor.facts import profile_chart, rounded, window_facts
from advisor.fleet import month_h
from advisor.model import Limits, Rule, Source, Verdict
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving, Subject
from core.percent import percent

RULE_ID: Final = "shiftable-job"
FLEET: Final = Subject("fleet", "fleet", "the fleet")


class ShiftableJobLimits(Limits):
    """Thresholds of ``shiftable-job``."""

    max_delay_h: Annotated[int, Field(ge=1, le=23)] = 23
    """Longest wait of a job, hours: less than a day, because later there may be a deadline (R33)."""
    max_active_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of time at work of the jobs' GPUs above which an hour of the day has no room for more."""
    min_jobs: Annotated[int, Field(ge=1, le=10_000)] = 5
    """Fewer jobs in the window are no habit."""
    min_span_h: Annotated[float, Field(ge=24, le=8760)] = 168.0
    """Hours of data: less than a week has not seen a weekend."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due; what ran in a gap is not known."""


def evaluate(evidence: Evidence, limits: ShiftableJobLimits) -> Iterator[Verdict]:
    """The fleet's batch jobs together."""
    refusal = _no_prices(evidence)
    if refusal is None:
        batch = batch_of(evidence, evidence.site.pue)
        refusal = _no_jobs(evidence, batch, limits)
        if refusal is None:
            yield _verdict(evidence, batch, limits)
            return
    yield NotEvaluated(RULE_ID, FLEET, *refusal)


def _no_prices(evidence: Evidence) -> tuple[tuple[str, ...], str] | None:
    """Why the hour of a job costs nothing here, or is not known to; None when there are prices by the hour."""
    site = evidence.site
    if not site.pays_for_power:
        return (
            ("pays_for_power",),
            "Power is inside the price of the GPUs, which is the same at every hour: shifting jobs saves no money.",
        )
    if site.hourly_usd_per_kwh is None:
        missing = (
            ("hourly_usd_per_kwh",)
            if site.tariff_usd_per_kwh is not None
            else (
                "tariff_usd_per_kwh",
                "hourly_usd_per_kwh",
            )
        )
        return (
            missing,
            "There is no electricity price by the hour, and no carbon by the hour: at one price all day no hour is better.",
        )
    return None


def _no_jobs(
    evidence: Evidence, batch: Batch, limits: ShiftableJobLimits
) -> tuple[tuple[str, ...], str] | None:
    """Why the jobs that were seen cannot carry a figure; None when they can."""
    if not batch.runs and batch.unread:
        return (
            "energy_j",
            "bare_idle_w",
        ), f"Energy or bare idle power of the GPUs of {batch.unread} batch jobs is not known."
    if len(batch.runs) < limits.min_jobs:
        return (
            ("batch jobs",),
            (
                f"{len(batch.runs)} whole jobs of a batch scheduler, shorter than a day, were seen; {limits.min_jobs} are"
                " needed. What else runs may serve somebody and is not called deferrable."
            ),
        )
    if evidence.window.hours < limits.min_span_h:
        return ("time",), f"{evidence.window.hours:.0f} hours of data; {limits.min_span_h:.0f} are needed."
    share = coverage_of(evidence, batch.gpus)
    if share < limits.min_coverage_ratio:
        return ("samples",), f"Samples cover {percent(share)} of the time; what ran in a gap is not known."
    return None


def _verdict(evidence: Evidence, batch: Batch, limits: ShiftableJobLimits) -> Verdict:
    prices = evidence.site.hourly_usd_per_kwh or ()
    room = active_by_hour(batch.gpus)
    allowed = [room.get(hour, 1.0) <= limits.max_active_ratio for hour in range(DAY_H)]
    figure = shifted(batch.runs, prices, max_delay_h=limits.max_delay_h, allowed=allowed)
    if figure is None:
        return NotEvaluated(
            RULE_ID, FLEET, ("energy_j",), "The jobs drew no energy above idle, or a price is no number."
        )
    if figure.p50 <= 0:
        return NotEvaluated(
            RULE_ID,
            FLEET,
            ("a cheaper hour with room",),
            f"No start hour makes the {len(batch.runs)} jobs cheaper: the cheap hours have no room, or the jobs run then"
            " already.",
        )
    return _finding(evidence, batch, figure, allowed, limits)


def _finding(
    evidence: Evidence, batch: Batch, figure: Range, allowed: list[bool], limits: ShiftableJobLimits
) -> Finding:
    prices = evidence.site.hourly_usd_per_kwh or ()
    hour, simple = saved_by_one_hour(batch.runs, prices, max_delay_h=limits.max_delay_h, allowed=allowed)
    paid = sum(cost(run, prices) for run in batch.runs)
    month = figure.scaled(month_h(evidence, 1.0))
    grade, confidence = graded(
        Grade.C,
        "Energy of the jobs is measured, prices are the site's; whether the jobs may wait is not known",
        span_h=evidence.window.hours,
        covered_h=evidence.window.hours * coverage_of(evidence, batch.gpus),
    )
    share = f", {percent(simple / paid)} of their energy bill" if paid > 0 else ""
    when = 0 if hour is None else hour
    return Finding(
        rule_id=RULE_ID,
        subject=FLEET,
        cause="hourly price",
        title="Start batch jobs when power is cheap",
        because=(
            f"{len(batch.runs)} jobs shorter than a day, all started at {when:02d}:00 UTC where that is cheaper, would have"
            f" cost ${simple:.2f} less{share}."
        ),
        state="run at dear hours",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(cash_usd_month=month),
        evidence=_facts(evidence, batch, figure, when, paid),
        actions=_actions(when),
        wrong_when="Somebody waits for the results, a deadline falls within the day, or jobs wait for each other.",
        not_claimed=(
            "Carbon, for which no figures by the hour are known; energy, which stays the same; power of the host and of idle"
            " cards, which does not move with a job."
        ),
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in batch.gpus),
        stage="schedule",
        chart=profile_chart(
            ((float(at), price) for at, price in enumerate(prices)),
            "USD per kWh",
            "hour of the day, UTC",
            sum(prices) / DAY_H,
        ),
    )


def _facts(evidence: Evidence, batch: Batch, figure: Range, hour: int, paid: float) -> dict[str, Any]:
    prices = evidence.site.hourly_usd_per_kwh or ()
    return {
        **window_facts(evidence, coverage_of(evidence, batch.gpus)),
        **rounded(
            {
                "jobs": len(batch.runs),
                "jobs_left_out_energy_unknown": batch.unread,
                "jobs_left_out_a_day_or_longer": batch.long,
                "gpus": len(batch.gpus),
                "moved_kwh": sum(sum(run.kwh) for run in batch.runs),
                "paid_usd": paid,
                f"saved_waiting_up_to_{CAUTIOUS_DELAY_H}_h_or_less_usd": figure.p10,
                "saved_at_each_cheapest_start_usd": figure.p90,
                "start_hour_utc": hour,
                "lowest_usd_per_kwh": min(prices),
                "highest_usd_per_kwh": max(prices),
                "pue": evidence.site.pue,
            }
        ),
    }


def _actions(hour: int) -> tuple[Action, ...]:
    return (
        Action(
            "Submit jobs that can wait with a start time (Slurm reads the cluster's local time)",
            f"sbatch --begin=$(date -d '{hour:02d}:00 UTC' +%H:%M) job.sh",
        ),
        Action("Or give the queue a partition for deferrable jobs that is up only while power is cheap."),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R33",
    title="Start deferrable jobs when power is cheap",
    needs=frozenset({"energy_j", "workloads", "hourly_usd_per_kwh"}),
    limits=ShiftableJobLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source(
            "Sukprasert et al., On the Limitations of Carbon-Aware Temporal and Spatial Workload Shifting",
            "https://arxiv.org/abs/2306.06502",
        ),
        Source("Slurm: sbatch --begin", "https://slurm.schedmd.com/sbatch.html"),
    ),
    evaluate=evaluate,
    scope="fleet",
)
