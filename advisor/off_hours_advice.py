"""What is said of a GPU with regular off hours: figures, words, commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from advisor.confidence import HALF_WIDTH
from advisor.cron import in_words, start_lines, stop_lines
from advisor.digest import digest
from advisor.estimators.cold_start import cold_start_s, keep_warm_s, widest_s
from advisor.estimators.off_hours import (
    FULL_WEEKS,
    WEEKS_PER_MONTH,
    Schedule,
    bin_of,
    saved_h_month,
    weekly,
)
from advisor.facts import as_facts, price_facts, profile_chart, rounded, window_facts
from advisor.fleet import Release, billing, gpu_subject, label
from advisor.off_schedule import Habit
from advisor.waterfall import base_of
from catalog import llm_models
from core.activity import Activity
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.finding import GRADED_DOWN, Action, Effort, Finding, Grade, Range, Risk, Saving

STOP: Final[Mapping[str, tuple[str, str]]] = {
    "systemd_unit": ("systemctl stop {name}", "systemctl start {name}"),
    "container": ("docker stop {container}", "docker start {container}"),
    "pod": (
        "kubectl scale deployment/DEPLOYMENT --replicas=0{namespace}",
        "kubectl scale deployment/DEPLOYMENT --replicas=1{namespace}",
    ),
}
"""How a workload of a kind is stopped and started."""
VLLM_SLEEP: Final = (
    "curl -X POST http://localhost:8000/sleep?level=1",
    "curl -X POST http://localhost:8000/wake_up",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A GPU with a habit that the last week bore out, and what is known around it.

    Attributes:
        gpu, habit: which, and its week. host: hours in which all GPUs of its host are off; None: there are none, or it is alone.
        unit: hours in which its billing unit can be off; None when it cannot. release: why not.
        engines: LLM engines on it.
        measured_start_s: a start as measured on the site. start_penalty_usd: dollars that each start costs besides.
        max_active_ratio: share of an hour that may be active and still be off.
    """

    gpu: GpuEvidence
    habit: Habit
    host: Schedule | None
    unit: Schedule | None
    release: Release
    engines: tuple[EngineEvidence, ...]
    measured_start_s: float | None
    start_penalty_usd: float
    max_active_ratio: float

    @property
    def start_s(self) -> Range:
        """Seconds of a cold start: measured, by the size of the engine's model, or the widest range."""
        sizes = [spec.parameters for e in self.engines if (spec := llm_models.resolve(e.identity.model))]
        known = cold_start_s(parameters=max(sizes, default=None), measured_s=self.measured_start_s)
        return widest_s() if known is None else known

    @property
    def start_basis(self) -> str:
        """Where that figure comes from."""
        if self.measured_start_s is not None:
            return "measured on this site"
        sized = any(llm_models.resolve(engine.identity.model) for engine in self.engines)
        return "one vendor's figures, by model size" if sized else "one vendor's figures, model not known"

    @property
    def grade(self) -> Grade:
        """A habit fitted on this site's weeks; short of four it is tentative."""
        return Grade.B if self.habit.schedule.weeks >= FULL_WEEKS else Grade.C

    @property
    def confidence(self) -> str:
        """The grade in words."""
        weeks = self.habit.schedule.weeks
        if self.grade is Grade.B:
            return (
                f"Good: {weeks} weeks agree, and a schedule made without the last week held in it.{self._cut}"
            )
        return (
            f"Moderate: tentative. {weeks} weeks agree.{self._cut}"
            f" {GRADED_DOWN} from B: {weeks} weeks of data, four are the floor for a weekly habit."
        )

    @property
    def _cut(self) -> str:
        tested = self.habit.tested
        if tested is None:
            return ""
        return f" In the last week it would have cut off {tested.wrongly_off_min:.0f} minutes of work."


def finding_of(evidence: Evidence, case: Case) -> Finding:
    """The finding."""
    gpu, schedule = case.gpu, case.habit.schedule
    base = base_of(gpu, digest(evidence, gpu), evidence.window.hours)
    capacity = _figure(case, schedule, base.capacity)
    cash, no_figure = _cash(case, base.capacity)
    kwh = _energy_kwh_month(evidence, case, capacity)
    share = f"{schedule.off_h} of 168 hours a week"
    tested = case.habit.tested
    cut = (
        ""
        if tested is None
        else f"; last week that would have cut off {tested.wrongly_off_min:.0f} minutes of work"
    )
    return Finding(
        rule_id="off-hours",
        subject=gpu_subject(gpu),
        cause="off-hours",
        title=f"Switch {label(gpu)} off in {share}",
        because=f"Idle in {share}, the same in {schedule.weeks} weeks (UTC: {in_words(schedule)}){cut}.",
        state="off hours" if case.grade is Grade.B else "off hours, tentative",
        confidence=case.confidence,
        grade=case.grade,
        effort=Effort.MEDIUM,
        risk=Risk.MEDIUM,
        saving=Saving(cash, capacity, kwh),
        no_figure=no_figure,
        evidence=_facts(evidence, case),
        actions=_actions(case),
        wrong_when=(
            "It must answer at once at any hour, the window misses a month's end or a season, or hours follow local time"
            " across a change of the clocks."
        ),
        not_claimed="The time a machine takes to boot, whether capacity is there in the morning, and what late answers cost.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="schedule",
        chart=profile_chart(
            sorted(
                (float(index), round(sum(shares) / len(shares), 4))
                for index, shares in weekly(case.habit.hours).items()
            ),
            "share of the hour active",
            "hour of the week, 0 = Monday 00:00 UTC",
            case.max_active_ratio,
        ),
    )


def _figure(case: Case, schedule: Schedule, most: float) -> Range:
    """Hours a month: starts taken off, the grade's half-width, and no more at the lower end than the last week bore out."""
    saved = saved_h_month(schedule, case.start_s)
    wide = Range.around(saved.p50, HALF_WIDTH[case.grade])
    tested = case.habit.tested
    share = 0.0 if tested is None else min(1.0, tested.off_h / case.habit.schedule.off_h)
    cut_h = 0.0 if tested is None else tested.wrongly_off_min / 60 * WEEKS_PER_MONTH
    low = max(0.0, min(saved.p10, wide.p10) * share - cut_h)
    high = min(max(saved.p90, wide.p90), schedule.off_h * WEEKS_PER_MONTH)
    return Range(min(low, most), min(saved.p50, most), min(max(high, saved.p50), most))


def _cash(case: Case, most: float) -> tuple[Range | None, str | None]:
    price = case.gpu.price
    if case.unit is None or price is None:
        return None, f"No cash figure: {case.release.why_not or 'its billing unit is never off as a whole'}."
    gross = _figure(case, case.unit, most).scaled(float(price.usd_per_gpu_hour))
    penalty = case.unit.starts * WEEKS_PER_MONTH * case.start_penalty_usd
    if gross.p50 <= penalty:
        return None, f"No cash figure: starts cost ${penalty:.2f} a month, more than the hours are worth."
    return Range(*(max(0.0, value - penalty) for value in (gross.p10, gross.p50, gross.p90))), None


def _energy_kwh_month(evidence: Evidence, case: Case, capacity: Range) -> Range | None:
    """Unloading takes the card down to bare idle; a machine that is switched off saves more, which is not claimed."""
    parked_w, bare_w = case.habit.parked_w, case.gpu.bare_idle_w
    if not evidence.site.pays_for_power or parked_w is None or bare_w is None or parked_w <= bare_w:
        return None
    bins = case.habit.schedule.bins
    inside = [hour for hour in case.gpu.hours if bin_of(hour.hour_ms) in bins]
    covered_s = sum(hour.covered_s for hour in inside)
    parked_s = sum(hour.seconds.get(Activity.PARKED, 0.0) for hour in inside)
    return capacity.scaled((parked_w - bare_w) / 1000 * parked_s / covered_s) if parked_s > 0 else None


def _facts(evidence: Evidence, case: Case) -> dict[str, Any]:
    schedule, tested, start_s = case.habit.schedule, case.habit.tested, case.start_s
    price = case.gpu.price
    usd = None if price is None else float(price.usd_per_gpu_hour)
    return {
        **window_facts(evidence, digest(evidence, case.gpu).coverage),
        **price_facts(price),
        **rounded(
            {
                "off_h_week": schedule.off_h,
                "off_schedule_utc": in_words(schedule),
                "time_zone": "UTC; the site's own is not known",
                "weeks_seen": schedule.weeks,
                "starts_per_week": schedule.starts,
                **as_facts("cold_start_s", start_s),
                "cold_start_basis": case.start_basis,
                "keep_warm_s": keep_warm_s(
                    start_s.p50, usd_per_gpu_hour=usd, penalty_usd=case.start_penalty_usd
                ),
                "host_off_h_week": None if case.host is None else case.host.off_h,
                "host_off_schedule_utc": None if case.host is None else in_words(case.host),
                "unit_off_h_week": None if case.unit is None else case.unit.off_h,
                "back_test_off_h": None if tested is None else tested.off_h,
                "back_test_wrongly_off_min": None if tested is None else tested.wrongly_off_min,
                "back_test_seen_h": None if tested is None else tested.seen_h,
                "parked_power_w": case.habit.parked_w,
                "bare_idle_w": case.gpu.bare_idle_w,
                "billing": billing(price, evidence.site),
            }
        ),
    }


def _actions(case: Case) -> tuple[Action, ...]:
    schedule = case.unit or case.habit.schedule
    kept_s = keep_warm_s(case.start_s.p50, usd_per_gpu_hour=None) or 0.0
    unit = (
        "Let the provider or autoscaler take the unit in these hours: stopped work alone saves no money."
        if case.unit is not None
        else "Offer the hours to batch work through the queue."
    )
    return (
        _by_the_clock(stop_lines(schedule), start_lines(schedule, case.start_s.p90), _commands(case)),
        Action(unit),
        Action(
            f"Where hours are less regular: unload after {kept_s / 60:.0f} idle minutes, about what a start takes."
        ),
    )


def _by_the_clock(stops: list[str], starts: list[str], commands: tuple[str, str] | None) -> Action:
    if commands is None:
        return Action(
            "Stop what runs there and start it again at these times (crontab, UTC):"
            f" stop {'; '.join(stops)}; start {'; '.join(starts)}."
        )
    stop, start = commands
    lines = ("CRON_TZ=UTC", *(f"{when} {stop}" for when in stops), *(f"{when} {start}" for when in starts))
    return Action("Stop and start it by the clock (crontab)", "\n".join(lines))


def _commands(case: Case) -> tuple[str, str] | None:
    """How what runs there is stopped and started; None when that is not known."""
    for use in case.gpu.uses:
        known = STOP.get(use.workload.kind)
        if known is not None:
            told = dict(use.workload.attributes)
            names = {
                "name": use.workload.name,
                "container": told.get("container_id", use.workload.key)[:12],
                "namespace": f" -n {told['namespace']}" if "namespace" in told else "",
            }
            return known[0].format(**names), known[1].format(**names)
    if any(engine.identity.kind == "vllm" for engine in case.engines):
        return VLLM_SLEEP
    return None
