"""What runs on a GPU, as a tenant that could share it: how much memory it needs and when in the week it is at work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from advisor.confidence import duration, is_short
from advisor.digest import digest
from advisor.estimators.off_hours import WEEK_H, bin_of
from advisor.estimators.packing import Tenant
from advisor.fleet import label
from advisor.gpu_jobs import main_use, ranks_of
from advisor.idle import idle_gpus
from advisor.idle_hours import silence_h
from advisor.memo import OncePerEvidence
from advisor.memory_need import needed_bytes
from advisor.model import Limits
from advisor.replica_group import peak_running, replica_key
from advisor.serving import Serving, servings
from advisor.serving_checks import Refusal
from core.activity import Activity
from core.evidence import Evidence, GpuEvidence
from core.hour_columns import rows_of
from core.hours import GpuHour
from core.percent import percent

MIN_HELD_RATIO: Final = 0.05
"""Share of the time with something on the GPU below which it has no tenant worth a move."""


class ShareableGpuLimits(Limits):
    """Thresholds of ``shareable-gpu``."""

    max_sm_active_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Mean SM activity below which a tenant leaves room for others (R21)."""
    max_busy_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """The same of the share of time with a kernel, where SM activity is not read (R21)."""
    memory_ratio: Annotated[float, Field(gt=0, le=0.95)] = 0.85
    """Of a card's memory that its tenants may hold together (R21)."""
    activity_ratio: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Of a card that its tenants' highest hours may add up to at any hour of the week: an hour's mean hides its minutes."""
    max_correlation: Annotated[float, Field(ge=-1, le=1)] = 0.5
    """Correlation of two tenants' weeks from which their peaks come together (R21)."""
    max_stalled_ratio: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of the time starved or spinning from which low activity is no room: the job waits for something else."""
    max_unknown_ratio: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Share of the time of unknown activity from which nobody knows when it is at work."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due. A gap must never read as idleness."""
    max_silence_h: Annotated[float, Field(gt=0, le=168)] = 3.0
    """Without samples for longer, nobody knows what the GPU is doing now."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A tenant with the GPU it is on.

    Attributes:
        name: what runs there, for people. serving: its engine, where it is one alone.
        memory_held_bytes: most in use. user: who runs it; None when not known.
    """

    gpu: GpuEvidence
    tenant: Tenant
    name: str
    serving: Serving | None
    memory_held_bytes: float
    user: str | None

    @property
    def reserves(self) -> bool:
        """It holds more than it needs: an engine's reservation, to be lowered before it shares."""
        return self.serving is not None and self.memory_held_bytes > 1.05 * self.tenant.memory_bytes


def _engines(evidence: Evidence) -> Mapping[str, Sequence[Serving]]:
    """Engines by each of their GPUs."""
    found: dict[str, list[Serving]] = {}
    for serving in servings(evidence):
        for uuid in serving.engine.gpu_uuids:
            found.setdefault(uuid, []).append(serving)
    return found


engines_on = OncePerEvidence(_engines)


def mean_activity(gpu: GpuEvidence, limits: ShareableGpuLimits) -> tuple[float, bool] | None:
    """Mean activity over covered time and whether it is low; SM activity where it is read. None: neither is."""
    for name, most in (
        ("sm_active_ratio", limits.max_sm_active_ratio),
        ("busy_ratio", limits.max_busy_ratio),
    ):
        known = [pair for pair in rows_of(gpu.parts, name, "covered_s") if pair[0] is not None]
        seconds = sum([covered for _, covered in known])
        if seconds > 0:
            mean = sum([value * covered for value, covered in known]) / seconds
            return mean, mean < most
    return None


def holds_something(evidence: Evidence, gpu: GpuEvidence) -> bool:
    """It has a tenant, and not one that the rules on idle GPUs speak of."""
    seen = digest(evidence, gpu)
    held_h = seen.covered_h - seen.empty_h - seen.unknown_h
    if seen.covered_h <= 0 or gpu.gpu_uuid in idle_gpus(evidence):
        return False
    return held_h >= MIN_HELD_RATIO * seen.covered_h and seen.active_h > 0


def refusal(evidence: Evidence, gpu: GpuEvidence, limits: ShareableGpuLimits) -> Refusal | None:
    """Why a GPU with little activity cannot be planned with; None when it can."""
    seen = digest(evidence, gpu)
    silent = silence_h(evidence, gpu)
    if silent > limits.max_silence_h:
        return ("recent samples",), f"The last sample is {duration(silent)} old."
    if seen.coverage < limits.min_coverage_ratio:
        why = f"Samples cover {percent(seen.coverage)} of the time; a gap is unknown, not quiet."
        return ("samples",), why
    if is_short(seen.observed_h, seen.covered_h):
        why = f"{duration(seen.covered_h)} of data over {duration(seen.observed_h)}: two weeks show when its peaks come."
        return ("time",), why
    if seen.unknown_h > limits.max_unknown_ratio * seen.covered_h:
        return ("busy_ratio", "memory_used_bytes"), "When it is at work is not known."
    if _stalled_s(gpu) > limits.max_stalled_ratio * 3600 * seen.covered_h:
        why = "Its job waits for input, the host or other ranks: low activity is not room (see input-bound, stuck-job)."
        return ("a job that is not held up",), why
    if gpu.identity.host is None or gpu.gpu_key is None:
        return (
            "host",
            "GPU model",
        ), "Without host and model neither failure domains nor equal cards are known."
    if gpu.identity.memory_total_bytes is None or _most_memory(gpu) is None:
        return ("memory_used_bytes",), "How much memory its work needs is not known."
    if any(len(serving.engine.gpu_uuids) > 1 for serving in engines_on(evidence).get(gpu.gpu_uuid, ())):
        return (
            "a workload on one GPU",
        ), "Ranks of a split model talk over NVLink, which slices do not have."
    ranks = len(ranks_of(evidence, gpu))
    if ranks > 1:
        return ("a workload on one GPU",), f"It is one of {ranks} GPUs of a job, which wait for each other."
    return None


def is_slice(gpu: GpuEvidence) -> bool:
    """A MIG slice: part of a card that is shared already."""
    return gpu.gpu_uuid.startswith("MIG-") or " MIG " in (gpu.identity.model or "")


def resident_of(evidence: Evidence, gpu: GpuEvidence) -> Resident:
    """The tenant of a GPU that is not refused; reads its hours."""
    engines = engines_on(evidence).get(gpu.gpu_uuid, ())
    serving = engines[0] if len(engines) == 1 else None
    held = _most_memory(gpu) or 0.0
    need = None if serving is None else needed_bytes(serving, peak_running(serving))
    use = main_use(gpu)
    assert gpu.identity.host is not None
    assert gpu.gpu_key is not None
    tenant = Tenant(
        card=gpu.gpu_uuid,
        host=gpu.identity.host,
        kind=gpu.gpu_key,
        card_bytes=float(gpu.identity.memory_total_bytes or 0),
        memory_bytes=held if need is None else min(held, need.p90),
        week=week_of(gpu.hours),
        apart=None if serving is None or serving.engine.identity.model is None else replica_key(serving),
    )
    name = label(gpu) if use is None else use.workload.name
    return Resident(
        gpu,
        tenant,
        serving.label if serving is not None else name,
        serving,
        held,
        None if use is None else use.workload.user,
    )


def week_of(hours: Sequence[GpuHour]) -> tuple[float, ...]:
    """Highest hourly activity at each hour of the week; an hour of the week never seen counts as the highest of all."""
    bins: list[float | None] = [None] * WEEK_H
    for hour in hours:
        share = hour.sm_active_ratio if hour.sm_active_ratio is not None else hour.busy_ratio
        if share is None or hour.covered_s <= 0:
            continue
        at = bin_of(hour.hour_ms)
        bins[at] = max(bins[at] or 0.0, min(1.0, share))
    highest = max((share for share in bins if share is not None), default=1.0)
    return tuple(highest if share is None else share for share in bins)


def _stalled_s(gpu: GpuEvidence) -> float:
    kinds = (Activity.STARVED, Activity.SPINNING)
    return sum(part.seconds.get(kind, 0.0) for part in gpu.parts for kind in kinds)


def _most_memory(gpu: GpuEvidence) -> float | None:
    """Most memory in use; of parts without a highest, their mean."""
    known = [
        value
        for part in gpu.parts
        if (value := part.memory_used_max_bytes or part.memory_used_bytes) is not None
    ]
    return max(known) if known else None
