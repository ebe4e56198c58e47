"""What it saves when some GPUs fall free of their work: hours always, money where billing units end with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.confidence import seen_share, widened
from advisor.digest import digest
from advisor.fleet import month_h, releases
from core.evidence import Evidence, GpuEvidence
from core.finding import Grade, Range, Saving


@dataclass(frozen=True, slots=True)
class Freed:
    """A saving, why there is no money in it where there is none, and the GPUs it is on."""

    saving: Saving
    no_figure: str | None
    gpu_uuids: tuple[str, ...]


def freed(evidence: Evidence, gpus: Sequence[GpuEvidence], certain: int, grade: Grade) -> Freed:
    """The month's hours of ``gpus``, of which the last ``certain`` fall free even at the low end.

    Cash is that of the GPUs whose billing unit ends when all of ``gpus`` are handed back; at the low end when only the
    certain ones are.
    """
    sure = gpus[len(gpus) - certain :]
    release, release_sure = (releases(evidence, [gpu.gpu_uuid for gpu in each]) for each in (gpus, sure))
    seen = seen_share(evidence.window.hours)
    capacity, cash, blocked = [], [], None
    for gpu in gpus:
        hours = month_h(evidence, digest(evidence, gpu).covered_h)
        around = widened(hours, grade, most=hours, seen=seen)
        is_sure = gpu.gpu_uuid in release_sure
        capacity.append(around if is_sure else Range(0.0, around.p50, around.p90))
        if gpu.price is None or not release[gpu.gpu_uuid].cash:
            blocked = blocked or release[gpu.gpu_uuid].why_not or "this GPU has no price"
            continue
        paid = around.scaled(float(gpu.price.usd_per_gpu_hour))
        is_paid = is_sure and release_sure[gpu.gpu_uuid].cash
        cash.append(paid if is_paid else Range(0.0, paid.p50, paid.p90))
    saving = Saving(cash_usd_month=Range.total(cash), capacity_gpu_h_month=Range.total(capacity))
    why = None if cash else f"No cash figure, because {blocked}."
    return Freed(saving, why, tuple(gpu.gpu_uuid for gpu in gpus))
