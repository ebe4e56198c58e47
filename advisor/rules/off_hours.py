"""A GPU does nothing in the same hours of every week.

What it finds
    GPUs with hours of the week (168 bins, in UTC) in which they were idle for at least 90 % of the hour in three of
    four weeks, at least two such hours in a row. With less than four weeks every week must agree, and the finding is
    tentative. A schedule made without the last week is run over the last week: what it would have saved and which
    minutes of work it would have cut off are told, and where they are many there is no finding. A host whose GPUs all
    have off hours, most of them in common, is one finding.

Why it costs
    The card is billed by night and at the weekend as by day. The bill falls only when the whole billing unit can be
    off at the same time; for a node that is the hours in which all of its GPUs are off. Every start costs time as
    well: weights are loaded, graphs captured, images pulled, and that is taken off.

When it is wrong
    A standby that must answer at once, a month's end or a season that the window does not show, hours that follow
    local time across a change of the clocks: the site's time zone is not known here, all times are UTC.

What to do
    Stop the work and hand the unit back in these hours, by the scheduler or autoscaler that starts it. Where hours are
    less regular than this, unload after as many idle seconds as a start takes: that never costs more than twice what
    perfect foresight would.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from advisor.engines_on import engines_on
from advisor.fleet import gpu_subject
from advisor.idle import idle_gpus
from advisor.model import Rule, Source, Verdict
from advisor.off_habit import HABIT, OffHoursLimits, habit_of
from advisor.off_hours_advice import Case, finding_of
from advisor.off_schedule import Habit, host_schedules, paid_schedules
from core.evidence import Evidence
from core.finding import Effort, Finding, NotEvaluated, Risk

RULE_ID: Final = "off-hours"
MOSTLY_IN_COMMON_RATIO: Final = 0.8
"""Of the longest off hours of its GPUs, those that all have: with fewer a host has no schedule of its own (ours)."""


def evaluate(evidence: Evidence, limits: OffHoursLimits) -> Iterator[Verdict]:
    """Every GPU with regular idle hours that does not stand idle altogether: of those the stop rules speak."""
    standing = idle_gpus(evidence)
    habits: dict[str, Habit] = {}
    for gpu in evidence.gpus:
        if gpu.gpu_uuid in standing:
            continue
        judged = habit_of(evidence, gpu, limits)
        if isinstance(judged, Habit):
            habits[gpu.gpu_uuid] = judged
        elif judged is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *judged, denies=judged[0] == HABIT)
    if habits:
        yield from _findings(evidence, habits, standing, limits)


def _findings(
    evidence: Evidence,
    habits: Mapping[str, Habit],
    standing: Collection[str],
    limits: OffHoursLimits,
) -> Iterator[Verdict]:
    on_host = host_schedules(evidence, habits, standing, limits.min_block_h)
    paid = paid_schedules(evidence, habits, standing, on_host)
    for gpu in evidence.gpus:
        habit = habits.get(gpu.gpu_uuid)
        if habit is None:
            continue
        unit, release = paid[gpu.gpu_uuid]
        case = Case(
            gpu=gpu,
            habit=habit,
            host=on_host.get(gpu.identity.host) if gpu.host_gpu_count > 1 else None,
            unit=unit,
            release=release,
            engines=tuple(engines_on(evidence).get(gpu.gpu_uuid, ())),
            measured_start_s=limits.cold_start_s,
            start_penalty_usd=limits.start_penalty_usd,
            max_active_ratio=limits.max_active_ratio,
        )
        yield finding_of(evidence, case)


def of_host(host: str, parts: Sequence[Finding]) -> tuple[str, str] | None:
    """Of a host whose GPUs all have off hours, most of them in common; else each GPU is another matter."""
    together = parts[0].evidence.get("host_off_h_week")
    hours = sorted({part.evidence["off_h_week"] for part in parts})
    if together is None or together < MOSTLY_IN_COMMON_RATIO * hours[-1]:
        return None
    weeks = min(part.evidence["weeks_seen"] for part in parts)
    words = parts[0].evidence["host_off_schedule_utc"]
    return (
        f"Switch {host} with its {len(parts)} GPUs off in {together} of 168 hours a week",
        f"All {len(parts)} GPUs are idle together in {together} of 168 hours, the same in {weeks} weeks (UTC: {words}).",
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R04",
    title="Switch GPUs off in the hours nobody uses them",
    needs=frozenset({"busy_ratio", "memory_used_bytes"}),
    limits=OffHoursLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("Vadari, The Model Parking Tax", "https://arxiv.org/abs/2605.23918"),
        Source(
            "AWS Compute Optimizer: metric requirements",
            "https://docs.aws.amazon.com/compute-optimizer/latest/ug/requirements.html",
        ),
        Source(
            "Karlin et al., Competitive randomized algorithms for nonuniform problems (the keep-warm bound)",
            "https://doi.org/10.1007/BF01189993",
        ),
    ),
    evaluate=evaluate,
    of_host=of_host,
)
