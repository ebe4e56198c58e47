"""The GPUs of one job do unequal work: the fast ones wait for the slow one.

What it finds
    Jobs over several GPUs of one model whose busy time, or power, differs between the GPUs by more than 25 % of the
    mean, for longer than half an hour of the last day of work.

Why it costs
    A step ends when its last rank is done. What the others wait is paid for: at most one minus mean over highest busy
    time.

When it is wrong
    Pipeline stages and expert parallelism differ by design, and the first rank logs, evaluates and saves. Ranks that
    wait in a collective look busy: then only their power tells, and power is no measure of time.

What to do
    Give every rank the same number of samples and tokens, move the first rank's extra work away, and balance stages
    by measured time, not by layers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.fleet import label
from advisor.gpu_jobs import Job, jobs, served
from advisor.gpu_work import (
    WorkLimits,
    freed,
    hours_of,
    is_dark,
    little_work,
    mean,
    recent,
    unfit,
    unread,
)
from advisor.model import Rule, Source, Verdict
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.hours import GpuHour
from core.percent import percent

RULE_ID: Final = "gpu-imbalance"


class GpuImbalanceLimits(WorkLimits):
    """Thresholds of ``gpu-imbalance``."""

    min_work_h: Annotated[float, Field(gt=0, le=336)] = 0.5
    """Time in that state (R18: more than half an hour)."""
    max_spread_ratio: Annotated[float, Field(gt=0, lt=2)] = 0.25
    """Highest minus lowest over the mean, of busy time or of power (R18)."""
    max_memory_spread_ratio: Annotated[float, Field(gt=0, lt=2)] = 0.25
    """Ranks that do the same hold the same memory; more than this apart they are stages of a pipeline."""
    min_steady_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of the job's recent hours in that state: less is a phase."""
    min_first_rank_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of those hours in which the same GPU does most, and the others are alike, from which it is extra work of one rank."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Hours in which a figure of the job's GPUs lay apart, each as the GPUs' hours."""

    name: str
    rows: Sequence[Sequence[GpuHour]]

    def means(self) -> Sequence[float]:
        """The figure's mean of each GPU."""
        return [mean(column, self.name) or 0.0 for column in zip(*self.rows, strict=True)]

    @property
    def hours(self) -> float:
        """Their length, once for all GPUs."""
        return sum(min(hour.covered_s for hour in row) for row in self.rows) / 3600


def evaluate(evidence: Evidence, limits: GpuImbalanceLimits) -> Iterator[Verdict]:
    """Every job over several GPUs."""
    engines = served(evidence)
    seen: set[int] = set()
    blind: list[GpuEvidence] = []
    dark: list[GpuEvidence] = []
    for gpu in evidence.gpus:
        job = jobs(evidence).get(gpu.gpu_uuid)
        if job is None:
            if is_dark(evidence, gpu):
                dark.append(gpu)
            elif not gpu.uses and recent(evidence, gpu).active:
                blind.append(gpu)
            continue
        if id(job) in seen or len(job.members) < 2:
            continue
        seen.add(id(job))
        if not engines.intersection(member.gpu.gpu_uuid for member in job.members):
            yield from _judge(evidence, job, limits)
    hosts = Counter(gpu.identity.host for gpu in blind)
    several = [gpu for gpu in blind if hosts[gpu.identity.host] > 1]
    yield from unread(RULE_ID, dark, ("busy_ratio",), "how their work is spread is not known.")
    yield from unread(RULE_ID, several, ("workload",), "which of them belong to one job is not told.")


def _judge(evidence: Evidence, job: Job, limits: GpuImbalanceLimits) -> Iterator[Verdict]:
    gpus = [member.gpu for member in job.members]
    rows = _rows([recent(evidence, gpu).active for gpu in gpus])
    apart = _apart("busy_ratio", rows, limits) or _apart("power_w", rows, limits)
    if apart is None:
        return
    for gpu in gpus:
        refusal = unfit(evidence, gpu, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, job.subject, *refusal)
            return
    refusal = _refusal(gpus, apart, rows, limits)
    if refusal is not None:
        yield NotEvaluated(RULE_ID, job.subject, *refusal)
    else:
        yield _finding(evidence, job, apart, limits)


def _rows(columns: Sequence[Sequence[GpuHour]]) -> Sequence[Sequence[GpuHour]]:
    """Hours that all GPUs of the job have, each as one row."""
    by_time: list[Mapping[int, GpuHour]] = [{hour.hour_ms: hour for hour in column} for column in columns]
    shared = set(by_time[0]).intersection(*by_time[1:])
    return [[column[at] for column in by_time] for at in sorted(shared)]


def _ratio(values: Sequence[float]) -> float:
    middle = sum(values) / len(values)
    return (max(values) - min(values)) / middle if middle > 0 else 0.0


def _apart(name: str, rows: Sequence[Sequence[GpuHour]], limits: GpuImbalanceLimits) -> Spread | None:
    """The hours in which the figure lay apart, when there are any."""
    found = []
    for row in rows:
        values = [value for hour in row if (value := getattr(hour, name)) is not None]
        if len(values) == len(row) and _ratio(values) > limits.max_spread_ratio:
            found.append(row)
    return Spread(name, found) if found else None


def _refusal(
    gpus: Sequence[GpuEvidence],
    apart: Spread,
    rows: Sequence[Sequence[GpuHour]],
    limits: GpuImbalanceLimits,
) -> tuple[tuple[str, ...], str] | None:
    """What speaks against ranks that should be alike."""
    if len({gpu.gpu_key or gpu.identity.model for gpu in gpus}) > 1:
        return ("GPUs of one model",), "Its GPUs are of different models: they differ by themselves."
    if apart.hours <= limits.min_work_h:
        due = duration(limits.min_work_h)
        return ("time",), f"Apart for {duration(apart.hours)}; more than {due} are needed."
    if len(apart.rows) < limits.min_steady_ratio * len(rows):
        share = percent(len(apart.rows) / len(rows))
        return (
            "steady imbalance",
        ), f"Apart in {share} of its hours: an evaluation or a checkpoint looks the same."
    memory = [mean(column, "memory_used_bytes") for column in zip(*apart.rows, strict=True)]
    known = [value for value in memory if value is not None]
    if len(known) == len(memory) and _ratio(known) > limits.max_memory_spread_ratio:
        return (
            ("ranks that do the same",),
            "Its GPUs hold unequal memory, as stages of a pipeline do: unequal work may be meant.",
        )
    return None


def _lone_rank(apart: Spread, limits: GpuImbalanceLimits) -> int | None:
    """The GPU that does most in nearly all hours while the others are alike; None when it is not one GPU."""
    figures = [[getattr(hour, apart.name) for hour in row] for row in apart.rows]
    tops = [row.index(max(row)) for row in figures]
    top = max(set(tops), key=tops.count)
    others = [value for index, value in enumerate(apart.means()) if index != top]
    steady = tops.count(top) >= limits.min_first_rank_ratio * len(tops)
    return top if steady and len(others) > 1 and _ratio(others) <= limits.max_spread_ratio / 2 else None


def _finding(evidence: Evidence, job: Job, apart: Spread, limits: GpuImbalanceLimits) -> Finding:
    gpus = [member.gpu for member in job.members]
    whole = _apart(apart.name, _rows([[h for h in gpu.hours if h.active_s > 0] for gpu in gpus]), limits)
    apart = whole or apart
    values = apart.means()
    by_time = apart.name == "busy_ratio"
    lone = _lone_rank(apart, limits)
    capacity = _capacity(evidence, gpus, apart, values) if by_time else None
    digests = [digest(evidence, gpu) for gpu in gpus]
    basis = (
        "Busy time is measured; half of what the others wait at most is taken"
        if by_time
        else "Power is measured"
    )
    if not job.certain:
        basis += "; that the processes are one job is read from their name and start"
    grade, confidence = graded(
        Grade.D if by_time else Grade.B,
        basis,
        span_h=max(each.observed_h for each in digests),
        covered_h=max(each.covered_h for each in digests),
    )
    high, low = values.index(max(values)), values.index(min(values))
    return Finding(
        rule_id=RULE_ID,
        subject=job.subject,
        cause="busy" if by_time else "power",
        title=f"Balance the GPUs of {job.subject.label}",
        because=_because(gpus, apart, values, high, low),
        state="one rank does more" if lone is not None else "unequal ranks",
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.LOW,
        saving=Saving(capacity_gpu_h_month=capacity),
        no_figure=None
        if capacity is not None
        else "No figure: all ranks look busy, and power does not tell how long one waits for another.",
        evidence=_facts(evidence, gpus, apart, values),
        actions=_actions(gpus, lone),
        wrong_when="It is a pipeline, a mixture of experts, or extra work that one rank is meant to do.",
        not_claimed="Money: a faster job lowers a bill only where a whole GPU or node is given back.",
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in gpus),
        chart=time_chart(
            (
                (row[0].hour_ms, _ratio([getattr(hour, apart.name) for hour in row]))
                for row in apart.rows[-24 * 14 :]
            ),
            "spread over mean",
            limits.max_spread_ratio,
        ),
    )


def _capacity(
    evidence: Evidence, gpus: Sequence[GpuEvidence], apart: Spread, values: Sequence[float]
) -> Range | None:
    """Half of 1 − mean/max of the GPU-hours apart; the whole of it at most, a quarter at least."""
    highest = max(values)
    most = 1 - sum(values) / len(values) / highest if highest > 0 else 0.0
    if most <= 0:
        return None
    hours = sum(hours_of(column) for column in zip(*apart.rows, strict=True))
    whole = freed(evidence, gpus, hours, Grade.A)
    return Range(whole.p10 * most / 4, whole.p50 * most / 2, whole.p50 * most)


def _because(gpus: Sequence[GpuEvidence], apart: Spread, values: Sequence[float], high: int, low: int) -> str:
    if apart.name == "busy_ratio":
        figures = (
            f"{label(gpus[high])} was {percent(values[high])} busy, {label(gpus[low])} {percent(values[low])}"
        )
    else:
        figures = f"{label(gpus[high])} drew {values[high]:.0f} W, {label(gpus[low])} {values[low]:.0f} W"
    said = f"Over {duration(apart.hours)} {figures}: {percent(_ratio(values))} of the mean apart."
    return said + little_work([row[low] for row in apart.rows])


def _facts(
    evidence: Evidence, gpus: Sequence[GpuEvidence], apart: Spread, values: Sequence[float]
) -> dict[str, Any]:
    return {
        **window_facts(evidence, min(digest(evidence, gpu).coverage for gpu in gpus)),
        **price_facts(gpus[0].price),
        **rounded(
            {
                "gpu_count": len(gpus),
                "apart_h": apart.hours,
                "spread_ratio": _ratio(values),
                f"{apart.name}_max": max(values),
                f"{apart.name}_min": min(values),
                f"{apart.name}_mean": sum(values) / len(values),
                "time_saved_most_ratio": 1 - sum(values) / len(values) / max(values)
                if apart.name == "busy_ratio"
                else None,
            }
        ),
        "by_gpu": {gpu.gpu_uuid: round(value, 4) for gpu, value in zip(gpus, values, strict=True)},
    }


def _actions(gpus: Sequence[GpuEvidence], lone: int | None) -> tuple[Action, ...]:
    uuids = ",".join(gpu.gpu_uuid for gpu in gpus[:8])
    look = Action("Watch its GPUs side by side", f"nvidia-smi dmon -i {uuids} -s pu")
    if lone is not None:
        return (
            look,
            Action(
                f"Take logging, evaluation and saving away from {label(gpus[lone])}, or do them asynchronously."
            ),
        )
    return (
        look,
        Action("Give every rank the same number of tokens", "DistributedSampler(..., drop_last=True)"),
        Action("Bucket samples by length, so that no rank gets the long ones."),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R18",
    title="Balance the GPUs of a job",
    needs=frozenset({"busy_ratio", "power_w", "workload"}),
    limits=GpuImbalanceLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.LOW,
    sources=(
        Source(
            "PyTorch: distributed data parallel, uneven inputs",
            "https://docs.pytorch.org/docs/stable/notes/ddp.html",
        ),
    ),
    evaluate=evaluate,
)
