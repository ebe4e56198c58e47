"""Requests pile up in front of the replicas of a model: too few of them, or a limit that holds them back.

What it finds
    Hours in which 50 requests or more waited before all replicas of a model together, or before one of them for three
    minutes; or in which the first token took longer than half of your promise, with requests waiting. Only what is still
    so in the last busy hours.

Why it costs
    It is a broken promise, not waste: users wait. What helps may cost more each month, so nothing here is a saving.

When it is wrong
    An offline batch puts all its requests in at once and nobody waits for any of them. A queue that never empties looks
    the same from here. A client that retries counts twice.

What to do
    First what is free: raise a batch limit that is reached while the KV cache has room, make room in a cache that is full.
    Then add replicas for the peak, fast, and take them away slowly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import flags
from advisor.batch import Cause, Pressure, diagnose, pressure
from advisor.confidence import duration
from advisor.engine_time import engine_coverage, engine_subject
from advisor.estimators.enova import PENDING_UP
from advisor.estimators.replicas import UTILIZATION, for_rate
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours
from advisor.replica_group import peak_running, peak_tokens_per_s
from advisor.serving import Serving
from advisor.serving_checks import (
    model_name,
    no_engines,
    publishes,
    quality,
    refusal,
    replica_groups,
    slo_batch,
)
from core.evidence import Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving
from core.hours import EngineHour
from core.percent import percent
from core.units import DAY_MS, HOURS_PER_MONTH

RULE_ID: Final = "overload"
NEVER_EMPTY: Final = 0.95
"""Share of busy time with a queue from which an offline batch looks the same."""


class OverloadLimits(Limits):
    """Thresholds of ``overload``."""

    min_pending: Annotated[float, Field(gt=0)] = PENDING_UP
    """Waiting requests, summed over replicas (ENOVA)."""
    min_pending_s: Annotated[float, Field(gt=0)] = 180.0
    """Time in an hour with that many before one replica alone: three one-minute windows (ENOVA)."""
    min_hours: Annotated[int, Field(ge=1)] = 1
    """Overloaded hours among the last busy ones before it is told."""
    ttft_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time to the first token. None: only the queue is judged."""
    ttft_queue_ratio: Annotated[float, Field(gt=0)] = 0.5
    """Mean time to the first token over the promise from which waiting is what breaks it (R09, there for the queue's p95)."""
    itl_limit_s: Annotated[float | None, Field(gt=0)] = None
    """Your promise for the time between tokens. None: the knee t(B) ≤ 5·t(1), as the BSC advisor sets it [S4]."""
    knee_factor: Annotated[float, Field(gt=1)] = 5.0
    """Step time over that of a single sequence up to which a batch may grow when no promise is given."""
    min_gain: Annotated[float, Field(ge=1)] = 1.2
    """Throughput gain of a higher batch limit from which the limit, and not the number of replicas, comes first."""
    min_busy_s: Annotated[float, Field(ge=60)] = 180.0
    """Busy time of all replicas below which nothing is judged: health takes minutes, not days."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Samples received over samples due: a queue that was seen is a fact also beside gaps."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waited in one hour before all replicas together.

    Attributes:
        pending: mean over the covered time, summed over replicas. long_s: longest time that one replica alone had
            the limit or more. ttft_s: mean time to the first token; None: not published.
    """

    hour_ms: int
    pending: float
    long_s: float
    ttft_s: float | None

    def is_over(self, limits: OverloadLimits) -> bool:
        """One of the signs holds."""
        promise = limits.ttft_limit_s
        late = (
            promise is not None
            and self.ttft_s is not None
            and self.pending > 0
            and self.ttft_s > limits.ttft_queue_ratio * promise
        )
        return late or self.pending >= limits.min_pending or self.long_s >= limits.min_pending_s


def evaluate(evidence: Evidence, limits: OverloadLimits) -> Iterator[Verdict]:
    """Every model of the fleet with all its replicas."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    for group in replica_groups(evidence):
        reason = next(
            (
                own
                for each in group
                if (
                    own := refusal(
                        evidence, each.engine, min_busy_s=0.0, min_coverage_ratio=limits.min_coverage_ratio
                    )
                )
            ),
            None,
        )
        live = [each for each in group if _is_judged(evidence, each, limits)]
        if not live:
            if reason is not None:
                yield NotEvaluated(RULE_ID, engine_subject(group[-1]), *reason)
            continue
        if not any(publishes(each.engine.hours, "waiting") for each in live):
            why = "None of its replicas publishes how many requests wait: an overload cannot be seen."
            yield NotEvaluated(RULE_ID, engine_subject(group[-1]), ("waiting_requests",), why)
            continue
        busy_s = sum(each.engine.busy_s for each in live)
        if busy_s < limits.min_busy_s:
            why = f"Busy for {duration(busy_s / 3600)}; {duration(limits.min_busy_s / 3600)} are needed."
            yield NotEvaluated(RULE_ID, engine_subject(group[-1]), ("busy time",), why)
            continue
        if not any(_queues_at_all(each) for each in live):
            continue
        lately = {hour.hour_ms for each in live for hour in recent_hours(each.engine)}
        queues = _queues(live, limits)
        over = [queue for queue in queues if queue.is_over(limits)]
        if sum(queue.hour_ms in lately for queue in over) >= limits.min_hours:
            yield _finding(evidence, live, queues, over, limits)


def _is_judged(evidence: Evidence, serving: Serving, limits: OverloadLimits) -> bool:
    """Seen up to now and well enough; a replica that is gone serves nobody, the others carry on."""
    return (
        refusal(evidence, serving.engine, min_busy_s=0.0, min_coverage_ratio=limits.min_coverage_ratio)
        is None
    )


def _queues_at_all(serving: Serving) -> bool:
    """Whether any request ever waited; no sign of an overload holds without one."""
    return any(any(part.waiting.seconds) for part in serving.engine.parts)


def _queues(group: Sequence[Serving], limits: OverloadLimits) -> list[Queue]:
    """Hour by hour. The sum of means is the mean of the sum, so an hour that counts had that many at some time."""
    by_hour: dict[int, list[EngineHour]] = {}
    for each in group:
        for hour in each.engine.hours:
            if hour.busy_s > 0:
                by_hour.setdefault(hour.hour_ms, []).append(hour)
    return [_queue(hour_ms, hours, limits) for hour_ms, hours in sorted(by_hour.items())]


def _queue(hour_ms: int, hours: Sequence[EngineHour], limits: OverloadLimits) -> Queue:
    queued = [hour for hour in hours if any(hour.waiting.seconds)]  # a level above 0
    pending = sum((hour.waiting.mean() or 0.0) * hour.busy_s / hour.covered_s for hour in queued)
    long_s = max(
        ((hour.waiting.share_at_least(limits.min_pending) or 0.0) * hour.waiting.total_s for hour in queued),
        default=0.0,
    )
    sums = [
        (hour.ttft_sum_s, hour.ttft_count)
        for hour in hours
        if hour.ttft_sum_s is not None and hour.ttft_count
    ]
    count = sum(each or 0.0 for _, each in sums)
    return Queue(hour_ms, pending, long_s, sum(each or 0.0 for each, _ in sums) / count if count else None)


def _finding(
    evidence: Evidence,
    group: Sequence[Serving],
    queues: Sequence[Queue],
    over: Sequence[Queue],
    limits: OverloadLimits,
) -> Finding:
    hours = {queue.hour_ms for queue in over}
    pressed = [
        (each, seen)
        for each in group
        if (seen := pressure([h for h in each.engine.hours if h.hour_ms in hours], each.batch_ceiling))
        is not None
    ]
    worst, seen = max(pressed, key=lambda pair: pair[1].waiting_p95 or 0.0)
    cause = _cause(worst, seen, limits)
    queued_ratio = min(_queued_ratio(each) for each in group)
    days = {queue.hour_ms // DAY_MS for queue in over}
    state = _state(queued_ratio, len(days), promised=limits.ttft_limit_s is not None)
    may_be_batch = "offline batch" in state
    peak = max(over, key=lambda queue: queue.pending)
    needed = _needed(group, limits)
    lead = group[-1]
    late = (
        ""
        if peak.ttft_s is None
        else f" The first token took {peak.ttft_s:.2g} s on average in the worst hour."
    )
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(lead),
        cause=cause,
        title=_title(worst, cause, len(group), needed),
        because=(
            f"In {len(over)} of {len(queues)} busy hours requests piled up before {_replicas(len(group))}: up to"
            f" {peak.pending:.0f} on average over an hour, with {percent(seen.kv_p95 or 0.0) if seen.kv_p95 is not None else 'an unknown share'}"
            f" of the KV cache in use (p95).{late}"
        ),
        state=state,
        confidence=(
            "Moderate: the queue is measured, but an offline batch that nobody waits for looks the same; a promise for the"
            " first token (ttft_limit_s) tells them apart."
            if may_be_batch
            else "High: the queue is measured here, over all replicas."
        )
        + quality(lead),
        grade=Grade.B if may_be_batch else Grade.A,
        effort=Effort.LOW if cause == Cause.CONFIGURATION else Effort.MEDIUM,
        risk=Risk.MEDIUM,
        saving=Saving(),
        no_figure="No figure, because this is a promise to users and not waste: what helps may make the bill higher.",
        evidence=_facts(
            evidence,
            group,
            seen=seen,
            over=over,
            queues=queues,
            peak=peak,
            needed=needed,
            queued_ratio=queued_ratio,
        ),
        actions=_actions(worst, cause, len(group), needed),
        wrong_when="It is an offline batch, requests are retried by their clients, or the load was a single test.",
        not_claimed="A saving. What the demand is while requests wait: only what was served is counted, so that the number of"
        " replicas is the least that it takes.",
        gpu_uuids=tuple(gpu.gpu_uuid for each in group for gpu in each.gpus),
        stage="workload",
        chart=time_chart(
            ((queue.hour_ms, queue.pending) for queue in queues), "requests", limits.min_pending
        ),
    )


def _state(queued_ratio: float, days: int, *, promised: bool) -> str:
    """A batch puts all its requests in at once: without a promise only a queue that comes and goes on two days is none."""
    if promised:
        return "overloaded"
    if queued_ratio >= NEVER_EMPTY:
        return "the queue never empties: overload, or an offline batch"
    return (
        "overloaded at times"
        if days > 1
        else "overloaded on one day: a load test or an offline batch looks the same"
    )


def _cause(worst: Serving, seen: Pressure, limits: OverloadLimits) -> str:
    """What holds the requests back: the batch limit, the KV cache, or simply the number of replicas."""
    cause = diagnose(seen).cause
    if cause is Cause.KV:
        return cause.value
    batch = slo_batch(
        worst, itl_limit_s=limits.itl_limit_s, knee_factor=limits.knee_factor, keeps_limit=False
    )
    if cause is not Cause.CONFIGURATION or batch is None or worst.model is None or seen.ceiling is None:
        return "replicas"
    gain = worst.model.gain(seen.ceiling, max(seen.ceiling, batch))
    return cause.value if gain.p50 >= limits.min_gain else "replicas"


def _queued_ratio(serving: Serving) -> float:
    """Share of busy time with requests waiting."""
    seconds = serving.engine.waiting.seconds
    whole = sum(seconds.values())
    return sum(each for level, each in seconds.items() if level > 0) / whole if whole > 0 else 0.0


def _needed(group: Sequence[Serving], limits: OverloadLimits) -> int | None:
    """Replicas for what was served at the peak, and one more than there are at least: what waited is not in it."""
    rates = []
    for each in group:
        batch = slo_batch(each, itl_limit_s=limits.itl_limit_s, knee_factor=limits.knee_factor)
        if batch is None or each.model is None:
            return None
        peak = max(1.0, peak_running(each))
        rates.append(peak_tokens_per_s(each) * each.model.tokens_per_s(batch) / each.model.tokens_per_s(peak))
    needed = for_rate(sum(peak_tokens_per_s(each) for each in group), min(rates), UTILIZATION)
    return None if needed is None else max(len(group) + 1, needed)


def _replicas(count: int) -> str:
    return "its one replica" if count == 1 else f"its {count} replicas"


def _title(worst: Serving, cause: str, count: int, needed: int | None) -> str:
    if cause == Cause.CONFIGURATION:
        return f"Raise {flags.batch_flag(worst.engine.identity.kind)} of {worst.label}: requests wait at its limit"
    if cause == Cause.KV:
        return f"Make room in the KV cache of {worst.label}: requests wait for it"
    more = "more replicas" if needed is None else f"at least {needed} replicas instead of {count}"
    return f"Serve {model_name(worst)} with {more} in busy hours"


def _actions(worst: Serving, cause: str, count: int, needed: int | None) -> tuple[Action, ...]:
    scale = Action(
        "Add replicas within three busy minutes and take them away only after fifteen quiet ones",
        f"kubectl scale deployment/NAME --replicas={needed or count + 1}",
    )
    if cause == Cause.CONFIGURATION:
        first = "Raise the batch limit as far as latency and KV cache allow (small-batch says how far): it costs nothing"
        return Action(first), scale
    if cause == Cause.KV:
        identity = worst.engine.identity
        first = "Make room first (kv-thrash, kv-cache-precision): a full cache holds requests back however many may run"
        return Action(first, flags.kv_precision_command(identity.kind, identity.model)), scale
    return (scale,)


def _facts(
    evidence: Evidence,
    group: Sequence[Serving],
    *,
    seen: Pressure,
    over: Sequence[Queue],
    queues: Sequence[Queue],
    peak: Queue,
    needed: int | None,
    queued_ratio: float,
) -> dict[str, Any]:
    cost = group[-1].usd_per_hour
    more = None if needed is None or cost is None else (needed - len(group)) * cost * HOURS_PER_MONTH
    return rounded(
        {
            **window_facts(evidence, min(engine_coverage(each.engine) for each in group)),
            **(price_facts(group[-1].gpus[0].price) if group[-1].gpus else {}),
            "replicas_now": len(group),
            "replicas_needed_at_least": needed,
            "overloaded_hours": len(over),
            "busy_hours": len(queues),
            "pending_mean_worst_hour": peak.pending,
            "ttft_mean_worst_hour_s": peak.ttft_s,
            "waiting_p95_worst_replica": seen.waiting_p95,
            "running_p95": seen.running_p95,
            "kv_used_p95_ratio": seen.kv_p95,
            "batch_limit": seen.ceiling,
            "queued_time_ratio": queued_ratio,
            "added_cost_usd_month": more,
        }
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R09",
    title="Serve the requests that wait",
    needs=frozenset({"waiting_requests", "running_requests"}),
    limits=OverloadLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("ENOVA: autoscaling towards cost-effective LLM serving", "https://arxiv.org/abs/2407.09486"),
    ),
    evaluate=evaluate,
    scope="fleet",
)
