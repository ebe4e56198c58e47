"""Kernels run at full utilization and nothing moves: the ranks of a job wait for each other.

What it finds
    GPUs that, up to now and for ten minutes or longer, were at least 95 % utilized while device memory was read or
    written in at most 5 % of the time, with power near bare idle and next to no traffic over PCIe and NVLink, and no
    tokens from an engine on them. All such GPUs of one job are one finding, with the rank that does not spin named.

Why it costs
    A collective that lost a rank spins on the GPU for as long as the scheduler lets it, and every card of the job is
    billed meanwhile. Utilization shows 100 %, so that nobody looks.

When it is wrong
    A long compilation or autotuning, a loop of very small kernels, video encoding, or a deliberate barrier. Low power
    alone is never the reason: small models draw little as well, but read memory in more than half of their time.

What to do
    Look at the stacks of the ranks, first at the one that does not spin. When it is stuck, end the job and start it
    from its checkpoint, with a shorter watchdog of the collectives so that it ends by itself the next time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from advisor.confidence import duration
from advisor.digest import digest
from advisor.engines_on import engines_on
from advisor.fleet import gpu_subject
from advisor.idle_hours import silence_h
from advisor.model import Limits, Rule, Source, Verdict
from advisor.stuck_job_advice import RULE_ID, Spin, StuckJob, finding_of
from core.activity import (
    BARE_IDLE_W,
    MOVING_PCIE_BYTES_PER_S,
    SPIN_BUSY_RATIO,
    SPIN_MEMORY_BUSY_RATIO,
    SPIN_POWER_SHARE,
    Activity,
)
from core.evidence import Evidence, GpuEvidence, WorkloadUse
from core.finding import Effort, NotEvaluated, Risk, Subject
from core.hours import GpuHour
from core.units import HOUR_MS

WHOLE: Final = 0.95
"""Share of an hour that must spin: means of the hour then describe the spinning."""
MAX_DRAM_ACTIVE_RATIO: Final = 0.05
JOB_KINDS: Final = frozenset({"slurm_job"})
"""Kinds whose key names the same job on every host."""


class StuckJobLimits(Limits):
    """Thresholds of ``stuck-job``; those of a sample are in the activity."""

    min_spin_s: Annotated[float, Field(ge=600, le=86_400)] = 600.0
    """Seconds of spinning up to now (R27: NCCL's watchdog ends a collective after 600 s by default)."""
    max_link_bytes_per_s: Annotated[float, Field(gt=0, le=1e9)] = MOVING_PCIE_BYTES_PER_S
    """Traffic above this over PCIe or NVLink is work (4.1: 50 MB/s)."""
    min_job_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of a job's GPUs that must spin; fewer wait at a barrier or for an uneven split (R27: all ranks but one)."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


def evaluate(evidence: Evidence, limits: StuckJobLimits) -> Iterator[Verdict]:
    """Every GPU whose newest hours spin, by the job that holds it."""
    spinning: dict[str, Spin] = {}
    for gpu in evidence.gpus:
        seen = digest(evidence, gpu)
        never = seen.is_memory_known and seen.spinning_h * 3600 < min(limits.min_spin_s, 60.0) - 1e-6
        if never or not _is_candidate(gpu, limits):
            continue
        spin = spin_of(gpu, token_hours(evidence, gpu), limits)
        refusal = _refusal(evidence, gpu, spin, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        elif spin is not None and spin.spin_s >= limits.min_spin_s:
            spinning[gpu.gpu_uuid] = spin
    if spinning:
        yield from _by_job(evidence, spinning, limits)


def _is_candidate(gpu: GpuEvidence, limits: StuckJobLimits) -> bool:
    """Whether its newest hours are worth reading: its last two days, or hours, spun or could have spun unseen."""
    newest = gpu.parts[-2:]
    spun_s = sum(part.seconds.get(Activity.SPINNING, 0.0) for part in newest)
    blind = any(part.memory_busy_ratio is None and _could_spin(gpu, part) for part in newest[-1:])
    return blind or spun_s >= min(limits.min_spin_s, 60.0)


def token_hours(evidence: Evidence, gpu: GpuEvidence) -> frozenset[int]:
    """Hours in which an engine of the GPU generated tokens or read prompts."""
    return frozenset(
        hour.hour_ms
        for engine in engines_on(evidence).get(gpu.gpu_uuid, ())
        for hour in engine.hours
        if (hour.generated_tokens or 0.0) + (hour.prompt_tokens or 0.0) > 0
    )


def spin_of(gpu: GpuEvidence, tokens: frozenset[int], limits: StuckJobLimits) -> Spin | None:
    """The unbroken hours up to the last sample that spun throughout; None when the newest did not."""
    hours: list[GpuHour] = []
    for hour in reversed(gpu.hours):
        gap = bool(hours) and hours[-1].hour_ms - hour.hour_ms != HOUR_MS
        if gap or not _spins(hour, limits) or hour.hour_ms in tokens:
            break
        hours.append(hour)
    hours.reverse()
    return Spin(gpu, tuple(hours)) if hours else None


def _spins(hour: GpuHour, limits: StuckJobLimits) -> bool:
    """Spinning by its samples, and nothing in the hour's means speaks against it."""
    if hour.seconds.get(Activity.SPINNING, 0.0) < WHOLE * hour.covered_s or hour.covered_s <= 0:
        return False
    memory, dram = hour.memory_busy_ratio, hour.dram_active_ratio
    links = (hour.pcie_bytes_per_s, hour.nvlink_bytes_per_s)
    return (
        (memory is None or memory <= SPIN_MEMORY_BUSY_RATIO)
        and (dram is None or dram <= MAX_DRAM_ACTIVE_RATIO)
        and all(link is None or link <= limits.max_link_bytes_per_s for link in links)
    )


def _refusal(
    evidence: Evidence, gpu: GpuEvidence, spin: Spin | None, limits: StuckJobLimits
) -> tuple[tuple[str, ...], str] | None:
    """What is missing and why that matters; None when the GPU can be judged."""
    newest = gpu.hours[-1] if gpu.hours else None
    if newest is None or newest.covered_s <= 0:
        return None
    if spin is not None and silence_h(evidence, gpu) > limits.max_silence_h:
        silent = duration(silence_h(evidence, gpu))
        return (
            "recent samples",
        ), f"It spun when it was last seen, {silent} ago: what it does now is not known."
    if spin is not None and spin.spin_s < limits.min_spin_s:
        return (
            "time",
        ), f"It spins for {spin.spin_s / 60:.0f} minutes; {limits.min_spin_s / 60:.0f} are needed."
    spun_s = newest.seconds.get(Activity.SPINNING, 0.0)
    earlier_h = gpu.hours[-2] if len(gpu.hours) > 1 else None
    in_part = limits.min_spin_s <= spun_s < WHOLE * newest.covered_s
    if in_part and not (earlier_h and _spins(earlier_h, limits)):
        return ("time",), (
            f"It spun for {spun_s / 60:.0f} of the newest {newest.covered_s / 60:.0f} minutes; an hour does not tell"
            " whether that came last. The next whole hour will."
        )
    if newest.memory_busy_ratio is None and _could_spin(gpu, newest):
        return ("memory_busy_ratio",), (
            "Full utilization at low power without memory utilization: a small model and a stuck job look the same."
        )
    return None


def _could_spin(gpu: GpuEvidence, hour: GpuHour) -> bool:
    """Busy throughout and drawing little: only memory utilization can tell what that is."""
    limit_w = hour.power_limit_w if hour.power_limit_w is not None else gpu.identity.power_limit_default_w
    if (
        hour.busy_ratio is None
        or hour.power_w is None
        or limit_w is None
        or hour.dram_active_ratio is not None
    ):
        return False
    bare_w = BARE_IDLE_W if gpu.bare_idle_w is None else gpu.bare_idle_w
    return hour.busy_ratio >= SPIN_BUSY_RATIO and hour.power_w <= bare_w + SPIN_POWER_SHARE * max(
        limit_w - bare_w, 0.0
    )


@dataclass(slots=True)
class _Members:
    """GPUs that one workload holds now."""

    use: WorkloadUse
    gpus: list[GpuEvidence]


def _by_job(evidence: Evidence, spinning: Mapping[str, Spin], limits: StuckJobLimits) -> Iterator[Verdict]:
    groups: dict[tuple[object, ...], _Members] = {}
    for gpu in evidence.gpus:
        use = holder_now(gpu)
        if use is None:
            if gpu.gpu_uuid in spinning:
                yield finding_of(evidence, StuckJob(gpu_subject(gpu), (spinning[gpu.gpu_uuid],), (), None))
            continue
        groups.setdefault(_key(use), _Members(use, [])).gpus.append(gpu)
    for members in groups.values():
        stuck = tuple(spinning[gpu.gpu_uuid] for gpu in members.gpus if gpu.gpu_uuid in spinning)
        if stuck:
            yield _verdict(evidence, members, stuck, limits)


def _verdict(evidence: Evidence, members: _Members, stuck: Sequence[Spin], limits: StuckJobLimits) -> Verdict:
    workload = members.use.workload
    where = "" if workload.host is None or workload.kind in JOB_KINDS else f" on {workload.host}"
    spot = "" if workload.host is None or workload.kind in JOB_KINDS else f"{workload.host}:"
    subject = Subject("workload", f"{workload.kind}:{spot}{workload.key}", f"{workload.name}{where}")
    names = {spin.gpu.gpu_uuid for spin in stuck}
    others = tuple(gpu for gpu in members.gpus if gpu.gpu_uuid not in names)
    if len(stuck) < limits.min_job_ratio * len(members.gpus):
        return NotEvaluated(
            RULE_ID,
            subject,
            ("the ranks' progress",),
            f"{len(stuck)} of {len(members.gpus)} GPUs of the job spin while the others do not: a barrier or an uneven"
            " split looks the same.",
        )
    return finding_of(evidence, StuckJob(subject, tuple(stuck), others, members.use))


def holder_now(gpu: GpuEvidence) -> WorkloadUse | None:
    """The one workload that holds the GPU in its newest hour; None when none or several do."""
    newest_ms = (gpu.last_sample_ms - 1) // HOUR_MS * HOUR_MS
    present = [use for use in gpu.uses if use.first_ms <= newest_ms < use.last_ms]
    return present[0] if len(present) == 1 else None


def _key(use: WorkloadUse) -> tuple[object, ...]:
    """What the GPUs of one job have in common; ranks that are bare processes share name, user and first hour."""
    workload = use.workload
    if workload.kind in JOB_KINDS:
        return workload.kind, workload.key
    if workload.kind == "process":
        return workload.kind, workload.host, workload.name, workload.user, use.first_ms
    return workload.kind, workload.host, workload.key


RULE: Final = Rule(
    id=RULE_ID,
    code="R27",
    title="End jobs that spin and do not move",
    needs=frozenset({"busy_ratio", "memory_busy_ratio", "power_w", "power_limit_w"}),
    limits=StuckJobLimits(),
    effort=Effort.LOW,
    risk=Risk.MEDIUM,
    sources=(
        Source(
            "PyTorch: environment variables of ProcessGroupNCCL (watchdog)",
            "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html",
        ),
        Source(
            "Recasens et al., Mind the Memory Gap (memory utilization of real decode)",
            "https://arxiv.org/abs/2503.08311",
        ),
    ),
    evaluate=evaluate,
    scope="fleet",
)
