"""A training job waits for its input: the GPU swings between full and idle while the host works.

What it finds
    GPUs that spend a quarter or more of their working hours starved (samples that swing between nothing and full,
    20–70 % busy on average), with a cause in sight on the host: a thread at its limit, time waiting for disks, or
    steady traffic over PCIe. A starved job is at work: it is never called idle.

Why it costs
    The card is billed while it waits. In a field study of low utilization 46 % of the issues were data operations,
    and 85 % of those could be fixed with small changes of code.

When it is wrong
    Evaluation and checkpoint phases, rollouts of reinforcement learning, and ranks that wait for a gradient exchange
    look alike. All ranks of a job that dip together are told only with a sign on their own host.

What to do
    Decode and augment in more worker processes, with pinned memory and prefetching; put the data on a local disk or
    in larger files; move decoding to the GPU. Raise one thing at a time and look at the same chart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import graded
from advisor.digest import digest
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_jobs import jobs, main_use, served
from advisor.gpu_work import WorkLimits, freed, hours_of, is_dark, mean, means, recent, share, unfit, unread
from advisor.model import Rule, Source, Verdict
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving, Subject
from core.hours import GpuHour
from core.percent import percent

RULE_ID: Final = "input-bound"
SIGNS: Final = ("cpu_thread_ratio", "iowait_ratio", "pcie_bytes_per_s")


class InputBoundLimits(WorkLimits):
    """Thresholds of ``input-bound``."""

    min_starved_ratio: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Share of an hour that is starved (R16: a quarter of the samples at either end)."""
    min_steady_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of recent work in such hours: less is a phase, such as an evaluation, and no habit."""
    min_busy_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.2
    max_busy_ratio: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Mean utilization of a job that waits for input (R16)."""
    min_thread_ratio: Annotated[float, Field(gt=0, le=1)] = 0.95
    """A thread of the job this busy holds it up (R16)."""
    min_waiting_cores: Annotated[float, Field(gt=0)] = 1.0
    """Cores' worth of time in which the host waits for disks: one reader that always waits."""
    min_iowait_ratio: Annotated[float, Field(gt=0, le=1)] = 0.1
    """The same as a share where the number of cores is not known."""
    min_pcie_bytes_per_s: Annotated[float, Field(gt=0)] = 1e9
    """Steady traffic that is input and not a few results; an hour's mean hides the bursts."""


@dataclass(frozen=True, slots=True)
class Host:
    """What the host shows: each figure, and what it means for the job."""

    thread: float | None
    iowait: float | None
    pcie: float | None
    causes: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Any of the three was read."""
        return any(value is not None for value in (self.thread, self.iowait, self.pcie))


def evaluate(evidence: Evidence, limits: InputBoundLimits) -> Iterator[Verdict]:
    """Every job with a starved GPU, and every starved GPU without a job."""
    engines = served(evidence)
    groups: dict[Subject, list[GpuEvidence]] = {}
    dark = [gpu for gpu in evidence.gpus if is_dark(evidence, gpu)]
    yield from unread(RULE_ID, dark, ("busy_ratio",), "whether they starve is not known.")
    for gpu in evidence.gpus:
        if gpu.gpu_uuid in engines or not _starved(recent(evidence, gpu).active, limits):
            continue
        job = jobs(evidence).get(gpu.gpu_uuid)
        several = job is not None and len(job.members) > 1
        groups.setdefault(job.subject if job is not None and several else gpu_subject(gpu), []).append(gpu)
    for subject, gpus in groups.items():
        yield from _judge(evidence, subject, gpus, limits)


def _starved(hours: Sequence[GpuHour], limits: InputBoundLimits) -> Sequence[GpuHour]:
    """Hours that swing, at a mean utilization in between."""
    return [
        hour
        for hour in hours
        if hour.busy_ratio is not None
        and limits.min_busy_ratio <= hour.busy_ratio <= limits.max_busy_ratio
        and hour.seconds.get(Activity.STARVED, 0.0) >= limits.min_starved_ratio * hour.covered_s
    ]


def _judge(
    evidence: Evidence, subject: Subject, gpus: Sequence[GpuEvidence], limits: InputBoundLimits
) -> Iterator[Verdict]:
    for gpu in gpus:
        refusal = unfit(evidence, gpu, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, subject, *refusal)
            return
    lately = [hour for gpu in gpus for hour in recent(evidence, gpu).active]
    starved = _starved(lately, limits)
    if hours_of(starved) < limits.min_steady_ratio * hours_of(lately):
        why = (
            f"Starved in {percent(hours_of(starved) / hours_of(lately))} of its hours:"
            " an evaluation, a checkpoint or a rollout looks the same."
        )
        yield NotEvaluated(RULE_ID, subject, ("steady starvation",), why)
        return
    host = _host(evidence, gpus, starved, limits)
    together = _ranks(evidence, gpus[0]) > 1 and len(gpus) == _ranks(evidence, gpus[0])
    if not host.known:
        why = "It waits, but nothing of its host was read: input cannot be told from waiting for other ranks."
        yield NotEvaluated(RULE_ID, subject, SIGNS, why)
    elif not host.causes or (together and host.causes == ("transfer",)):
        why = (
            "All its ranks wait together and no thread or disk of the host is at its limit:"
            " a gradient exchange looks the same."
            if together
            else "It waits, and neither a thread nor a disk nor PCIe of the host is at its limit:"
            " what it waits for is not known."
        )
        yield NotEvaluated(RULE_ID, subject, ("a cause on the host",), why)
    else:
        yield _finding(evidence, subject, gpus, host, limits)


def _ranks(evidence: Evidence, gpu: GpuEvidence) -> int:
    job = jobs(evidence).get(gpu.gpu_uuid)
    return 1 if job is None else len(job.members)


def _host(
    evidence: Evidence, gpus: Sequence[GpuEvidence], starved: Sequence[GpuHour], limits: InputBoundLimits
) -> Host:
    """The signs on the host, over the hours in which the job starved."""
    uses = [use for gpu in gpus if (use := main_use(gpu)) is not None]
    thread = max((use.cpu_thread_ratio for use in uses if use.cpu_thread_ratio is not None), default=None)
    iowait, waits = _iowait(evidence, gpus, starved, limits)
    pcie = mean(starved, "pcie_bytes_per_s")
    causes = (
        *(("thread",) if thread is not None and thread >= limits.min_thread_ratio else ()),
        *(("disk",) if waits else ()),
        *(("transfer",) if pcie is not None and pcie >= limits.min_pcie_bytes_per_s else ()),
    )
    return Host(thread, iowait, pcie, causes)


def _iowait(
    evidence: Evidence, gpus: Sequence[GpuEvidence], starved: Sequence[GpuHour], limits: InputBoundLimits
) -> tuple[float | None, bool]:
    """Highest mean share of waiting for disks of its hosts, and whether that is much."""
    times = {hour.hour_ms for hour in starved}
    most: float | None = None
    waits = False
    for name in {gpu.identity.host for gpu in gpus}:
        host = evidence.host(name)
        known = [
            (hour.iowait_ratio, hour.covered_s)
            for hour in (() if host is None else host.hours)
            if hour.hour_ms in times and hour.iowait_ratio is not None
        ]
        total_s = sum(seconds for _, seconds in known)
        if host is None or total_s <= 0:
            continue
        value = sum(ratio * seconds for ratio, seconds in known) / total_s
        most = value if most is None else max(most, value)
        waits = waits or (
            value >= limits.min_iowait_ratio
            if host.cpu_count is None
            else value * host.cpu_count >= limits.min_waiting_cores
        )
    return most, waits


WORDS: Final = {
    "thread": "a host thread at its limit",
    "disk": "a host that waits for its disks",
    "transfer": "steady traffic over PCIe",
}


def _finding(
    evidence: Evidence, subject: Subject, gpus: Sequence[GpuEvidence], host: Host, limits: InputBoundLimits
) -> Finding:
    starved = [hour for gpu in gpus for hour in _starved(gpu.hours, limits)]
    busy = mean(starved, "busy_ratio") or 0.0
    most = 1 - busy
    whole = freed(evidence, gpus, hours_of(starved), Grade.A)
    capacity = Range(whole.p10 * most / 4, whole.p50 * most / 2, whole.p50 * most)
    seen = [digest(evidence, gpu) for gpu in gpus]
    grade, confidence = graded(
        Grade.D,
        "Waiting is measured; half of its upper bound is taken, because not all of it can be hidden",
        span_h=max(each.observed_h for each in seen),
        covered_h=max(each.covered_h for each in seen),
    )
    signs = " and ".join(WORDS[cause] for cause in host.causes)
    name = label(gpus[0]) if subject.kind == "gpu" else subject.label
    return Finding(
        rule_id=RULE_ID,
        subject=subject,
        cause="input",
        title=f"Feed {name} faster",
        because=(
            f"{'Its GPUs were' if len(gpus) > 1 else 'It was'} {percent(busy)} busy on average, swinging between nothing"
            f" and full through {percent(share(starved, Activity.STARVED))} of"
            f" {hours_of(starved):.0f} GPU-hours, beside {signs}."
        ),
        state="starved of input",
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.LOW,
        saving=Saving(capacity_gpu_h_month=capacity),
        evidence=_facts(evidence, gpus, starved, host),
        actions=_actions(gpus[0], host),
        wrong_when=(
            "These are evaluation or checkpoint phases, rollouts of reinforcement learning, or ranks that wait for"
            " each other."
        ),
        not_claimed="Money: a faster job lowers a bill only where a whole GPU or node is given back.",
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in gpus),
        chart=time_chart(
            ((hour.hour_ms, hour.busy_ratio) for hour in gpus[0].hours[-24 * 14 :]),
            "share of time",
            limits.max_busy_ratio,
        ),
    )


def _facts(
    evidence: Evidence, gpus: Sequence[GpuEvidence], starved: Sequence[GpuHour], host: Host
) -> dict[str, Any]:
    use = main_use(gpus[0])
    return {
        **window_facts(evidence, min(digest(evidence, gpu).coverage for gpu in gpus)),
        **price_facts(gpus[0].price),
        **means(starved, "busy_ratio", "sm_active_ratio", "pcie_bytes_per_s", "power_w"),
        **rounded(
            {
                "starved_gpu_h": hours_of(starved),
                "starved_ratio": share(starved, Activity.STARVED),
                "time_saved_most_ratio": 1 - (mean(starved, "busy_ratio") or 0.0),
                "cpu_thread_ratio": host.thread,
                "iowait_ratio": host.iowait,
                "gpu_count": len(gpus),
            }
        ),
        **({} if use is None else {"workload": use.workload.name}),
    }


def _actions(gpu: GpuEvidence, host: Host) -> tuple[Action, ...]:
    found = [Action("See which thread is busy", f"nvidia-smi pmon -i {gpu.gpu_uuid} -c 5; top -H -d 1")]
    if "thread" in host.causes or "transfer" in host.causes:
        found.append(
            Action(
                "PyTorch: load in more processes, ahead of time, from pinned memory",
                "DataLoader(..., num_workers=8, prefetch_factor=4, pin_memory=True, persistent_workers=True)",
            )
        )
    if "thread" in host.causes:
        found.append(
            Action(
                "Decode and augment on the GPU (NVIDIA DALI, torchvision.transforms.v2), or once and keep it."
            )
        )
    if "disk" in host.causes:
        found.append(Action("Copy the data to a local NVMe disk, or pack it into large files (WebDataset)."))
    if "transfer" in host.causes:
        found.append(Action("Copy while it computes", "batch.to('cuda', non_blocking=True)"))
    return tuple(found)


RULE: Final = Rule(
    id=RULE_ID,
    code="R16",
    title="Feed training jobs faster",
    needs=frozenset({"busy_ratio", *SIGNS}),
    limits=InputBoundLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.LOW,
    sources=(
        Source(
            "Gao et al., An Empirical Study on Low GPU Utilization of Deep Learning Jobs (ICSE 2024)",
            "https://doi.org/10.1145/3597503.3639232",
        ),
    ),
    evaluate=evaluate,
)
