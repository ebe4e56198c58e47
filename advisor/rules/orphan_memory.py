"""GPU memory stays in use although nobody who could own it is seen.

What it finds
    GPUs with at least 1 GiB in use and no work, up to now and for half an hour or longer, in hours in which no workload
    is listed on them, or only a process that is known by its number because it is gone from the host. One sign is not
    enough: a second, independent one must agree (the last workload on the GPU ended before, its process is gone, or an
    application fault was reported just before).

Why it costs
    The memory cannot be given to anybody, so that the next job fails or is placed elsewhere, and the context keeps the
    card's clocks and power up. Nothing will end it by itself.

When it is wrong
    Containers hide processes: an agent that sees another PID namespace than the driver does not know what is there, and
    this rule refuses then. A display server, the parent of an MPS daemon, persistent memory of a driver add-on, or a
    virtual machine with the card passed through hold memory without a listed process as well.

What to do
    Look before anything is ended: which process has the device open, and whose is it. End it by its owner's hand, or
    reset the GPU once nothing needs it. Never kill by script: what is not listed may be somebody's work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration
from advisor.digest import digest
from advisor.facts import rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label, month_h
from advisor.holders import blinkered_hosts, during, is_numbered, named_workloads
from advisor.idle_hours import has_seen_engine, silence_h, typical_memory_bytes
from advisor.model import Limits, Rule, Source, Verdict, counted
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving
from core.hours import GpuHour
from core.units import GIB, HOUR_MS

RULE_ID: Final = "orphan-memory"
APPLICATION_XIDS: Final = frozenset({13, 31, 43, 45, 94})
"""Faults that end a process and not the card (advisor-rules R26)."""
SIGNS_NEEDED: Final = 2
NAMELESS: Final = (
    ("workloads",),
    "memory without work on hosts where no process was ever named: lists are hidden or not read, and nobody can be missed.",
)
"""Why an empty list of owners means nothing on a host that lists nobody."""


class OrphanMemoryLimits(Limits):
    """Thresholds of ``orphan-memory``."""

    min_held_h: Annotated[float, Field(ge=0.5, le=720)] = 0.5
    """Hours held without work and without an owner, up to now (R03: 30 min)."""
    min_memory_bytes: Annotated[float, Field(gt=0)] = float(GIB)
    """Less is a small context or the driver's reserve (4.1)."""
    max_busy_ratio: Annotated[float, Field(ge=0, lt=0.05)] = 0.01
    """R03 asks for utilization 0; a probe now and then is allowed."""
    whole_hour_ratio: Annotated[float, Field(gt=0.5, le=1)] = 0.95
    """Share of an hour that must be held without work for it to count."""
    min_hour_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Coverage below which an hour is not judged. A gap must never read as idleness."""
    fault_before_h: Annotated[float, Field(gt=0, le=24)] = 1.0
    """An application fault so long before the memory was left behind speaks of how it came to be."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Held:
    """Hours up to the last sample in which memory was held without work and without a workload that is known.

    Attributes:
        hours: by time; empty when the GPU does not stand so now.
        uses: processes known by number only that touch them.
        before: the workload that ended where they begin; None when none is known. After a pause the memory is not its.
    """

    hours: Sequence[GpuHour]
    uses: Sequence[WorkloadUse]
    before: WorkloadUse | None

    @property
    def span_h(self) -> float:
        """Hours for which samples vouch."""
        return sum(hour.seconds[Activity.PARKED] for hour in self.hours) / 3600

    @property
    def memory_bytes(self) -> float | None:
        """Typical memory held."""
        return typical_memory_bytes(hour.memory_used_bytes for hour in self.hours)


NOT_HELD: Final = Held((), (), None)


def evaluate(evidence: Evidence, limits: OrphanMemoryLimits) -> Iterator[Verdict]:
    """Every GPU that is held without work now; those of hosts without any named process in one sentence."""
    nameless = 0
    for gpu in evidence.gpus:
        if digest(evidence, gpu).parked_h < limits.min_held_h:
            continue
        held = held_of(evidence, gpu, limits)
        if held.span_h < limits.min_held_h:
            continue
        refusal = _refusal(evidence, gpu, limits)
        signs = signs_of(gpu, held, limits)
        if refusal is None and len(signs) < SIGNS_NEEDED:
            refusal = _one_sign(held, signs)
        if refusal == NAMELESS:
            nameless += 1
        elif refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        else:
            yield _finding(evidence, gpu, held, signs, limits)
    if nameless:
        one, many = f"1 GPU holds {NAMELESS[1]}", f"{{count}} GPUs hold {NAMELESS[1]}"
        yield counted(RULE_ID, NAMELESS[0], nameless, one, many)


def held_of(evidence: Evidence, gpu: GpuEvidence, limits: OrphanMemoryLimits) -> Held:
    """The unbroken hours up to the last sample that no known workload and no engine explains."""
    known = [use for use in gpu.uses if not is_numbered(use.workload)]
    owned_until_ms = max((use.last_ms for use in known), default=0)
    if gpu.last_sample_ms <= owned_until_ms or has_seen_engine(evidence, gpu):
        return NOT_HELD
    hours: list[GpuHour] = []
    for hour in reversed(gpu.hours):
        if hour.hour_ms < owned_until_ms or not _is_held(gpu, hour, limits):
            break
        if hours and hours[-1].hour_ms - hour.hour_ms != HOUR_MS:
            break
        hours.append(hour)
    hours.reverse()
    if not hours:
        return NOT_HELD
    begin_ms = hours[0].hour_ms
    numbered = [use for use in gpu.uses if is_numbered(use.workload)]
    before = max(
        (use for use in known if 0 <= begin_ms - use.last_ms <= HOUR_MS),
        key=lambda use: use.last_ms,
        default=None,
    )
    return Held(hours, during(numbered, begin_ms, evidence.window.to_ms), before)


def _is_held(gpu: GpuEvidence, hour: GpuHour, limits: OrphanMemoryLimits) -> bool:
    busy = hour.busy_ratio if hour.busy_ratio is not None else hour.sm_active_ratio
    begin, end = max(hour.hour_ms, gpu.first_sample_ms), min(hour.hour_ms + HOUR_MS, gpu.last_sample_ms)
    return (
        hour.covered_s > 0
        and hour.covered_s >= limits.min_hour_coverage_ratio * (end - begin) / 1000
        and hour.seconds.get(Activity.PARKED, 0.0) >= limits.whole_hour_ratio * hour.covered_s
        and hour.memory_used_bytes is not None
        and hour.memory_used_bytes >= limits.min_memory_bytes
        and busy is not None
        and busy <= limits.max_busy_ratio
    )


def signs_of(gpu: GpuEvidence, held: Held, limits: OrphanMemoryLimits) -> tuple[str, ...]:
    """What speaks for memory without an owner, in words; each from another source."""
    begin_ms = held.hours[0].hour_ms
    signs = []
    if held.uses:
        signs.append("the process that the driver lists is gone from the host")
    else:
        signs.append("no workload is listed on it")
    if held.before is not None:
        signs.append(f"its last workload, {held.before.workload.name}, ended before")
    since_ms = begin_ms - round(limits.fault_before_h * HOUR_MS)
    faults = [
        event.code
        for event in gpu.events
        if event.kind == "xid"
        and event.code in APPLICATION_XIDS
        and since_ms <= event.ts_ms < begin_ms + HOUR_MS
    ]
    if faults:
        signs.append(f"XID {faults[-1]}, which ends a process, was reported just before")
    return tuple(signs)


def _refusal(
    evidence: Evidence, gpu: GpuEvidence, limits: OrphanMemoryLimits
) -> tuple[tuple[str, ...], str] | None:
    """Why an empty list of owners means nothing here; None when it does."""
    silent_h = silence_h(evidence, gpu)
    if silent_h > limits.max_silence_h:
        return (
            "recent samples",
        ), f"The last sample is {duration(silent_h)} old: what holds the memory now is not known."
    host = gpu.identity.host
    if host in blinkered_hosts(evidence):
        return (
            "process names",
        ), "The agent sees another PID namespace than the driver: containers hide who holds the memory."
    if not named_workloads(evidence).get(host):
        return NAMELESS
    return None


def _one_sign(held: Held, signs: Sequence[str]) -> tuple[tuple[str, ...], str]:
    return (
        ("a second sign",),
        f"{duration(held.span_h)} held without work and {signs[0]}: alone that does not tell an orphan from a hidden process.",
    )


def _finding(
    evidence: Evidence, gpu: GpuEvidence, held: Held, signs: Sequence[str], limits: OrphanMemoryLimits
) -> Finding:
    memory = held.memory_bytes or 0.0
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="orphan",
        title=f"Find out who owns the memory of {label(gpu)}",
        because=f"{memory / GIB:.1f} GiB held without work for the last {duration(held.span_h)}: {'; '.join(signs)}.",
        state="held without an owner that is seen",
        confidence=(
            f"Good: memory and idleness are measured, that nobody owns it is inferred from {len(signs)} independent signs."
        ),
        grade=Grade.B,
        effort=Effort.LOW,
        risk=Risk.MEDIUM,
        saving=Saving(),
        no_figure=(
            "No figure, because whether anything is freed is a question: if nothing owns the memory,"
            f" {held.span_h:.1f} GPU-hours were lost in this window; if somebody does, none."
        ),
        evidence=_facts(evidence, gpu, held, signs),
        actions=_actions(gpu, held),
        wrong_when="Containers or a virtual machine hide the owner, or it is a display server or an MPS parent.",
        not_claimed="That it may be killed, what the hours are worth, and any saving: parked-model counts held hours.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="stop",
        chart=time_chart(
            ((hour.hour_ms, hour.memory_used_bytes) for hour in gpu.hours[-24 * 14 :]),
            "bytes",
            limits.min_memory_bytes,
        ),
    )


def _facts(evidence: Evidence, gpu: GpuEvidence, held: Held, signs: Sequence[str]) -> dict[str, Any]:
    before = held.before
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **rounded(
            {
                "held_h": held.span_h,
                "capacity_if_orphan_gpu_h_month": month_h(evidence, held.span_h),
                "memory_held_bytes": held.memory_bytes,
                "signs": list(signs),
                "sign_count": len(signs),
                "named_workloads_on_host": named_workloads(evidence)[gpu.identity.host],
                "last_workload": None if before is None else before.workload.name,
                "last_workload_user": None if before is None else before.workload.user,
                "bare_idle_w": gpu.bare_idle_w,
                "parked_power_w": held.hours[-1].parked_power_w,
            }
        ),
    }


def _actions(gpu: GpuEvidence, held: Held) -> tuple[Action, ...]:
    who = (
        f"{held.before.workload.user or 'the owner'} of {held.before.workload.name}" if held.before else None
    )
    ask = () if who is None else (Action(f"Ask {who} whether anything of it should still run."),)
    return (
        Action("See which processes have the device open, listed or not", "sudo fuser -v /dev/nvidia*"),
        Action(
            "Compare with what the driver lists",
            f"nvidia-smi -i {gpu.gpu_uuid} --query-compute-apps=pid,name,used_memory --format=csv",
        ),
        *ask,
        Action("End it by its owner's hand; reset the GPU only when nothing on it is needed any more."),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R03",
    title="Find out who holds memory that nobody seems to own",
    needs=frozenset({"busy_ratio", "memory_used_bytes", "workloads"}),
    limits=OrphanMemoryLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source(
            "NVIDIA System Management Interface: compute processes and PID namespaces",
            "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        ),
        Source("NVIDIA XID errors", "https://docs.nvidia.com/deploy/xid-errors/index.html"),
    ),
    evaluate=evaluate,
)
