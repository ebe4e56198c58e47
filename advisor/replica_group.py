"""Engines that do the same work, and what falls away when fewer of them can do it."""

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.confidence import widened
from advisor.fleet import month_h, releases
from advisor.serving import Serving
from core.evidence import Evidence
from core.finding import Grade, Range, Saving
from core.units import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one engine of a group saves, or why it saves nothing.

    Attributes:
        saving: per ledger; empty with ``no_figure``.
        gpu_uuids: GPUs that fall free with it.
        replicas_now, replicas_then: of the group; ``then`` at the middle of the range.
    """

    saving: Saving
    no_figure: str | None
    gpu_uuids: tuple[str, ...]
    replicas_now: int
    replicas_then: int


def replica_key(serving: Serving) -> tuple[object, ...]:
    """Engines with the same key can take each other's requests."""
    identity = serving.engine.identity
    model = serving.llm.model_key if serving.llm is not None else identity.model
    return (
        identity.kind,
        model,
        serving.gpu_spec.gpu_key if serving.gpu_spec is not None else None,
        serving.tensor_parallel,
        serving.precision.bits if serving.precision is not None else None,
    )


def outcome(
    evidence: Evidence, same: Sequence[Serving], serving: Serving, dropped: tuple[int, int, int], grade: Grade
) -> Outcome:
    """Saving of one engine when ``dropped`` replicas of ``same`` fall away (low, middle, high).

    The last ones by name fall away; they carry the saving, so that no GPU is counted twice. Cash only where the
    GPUs of all that fall away end a billing unit.
    """
    low, middle, high = dropped
    count = len(same)
    name = serving.engine.identity.engine
    from_end = count - next(i for i, each in enumerate(same) if each.engine.identity.engine == name)
    uuids = tuple(gpu.gpu_uuid for gpu in serving.gpus)
    if count == 1:
        return Outcome(
            Saving(),
            "No money figure: one replica cannot become fewer. The rate rises, the bill does not fall.",
            uuids,
            1,
            1,
        )
    if middle == 0:
        why = f"No money figure: {count} replicas stay {count}. Throughput saves only when a whole one falls away."
        return Outcome(Saving(), why, uuids, count, count)
    if from_end > middle:
        why = f"The saving is counted on the {middle} of {count} replicas that fall away; this one carries their load."
        return Outcome(Saving(), why, uuids, count, count - middle)
    gone = [gpu.gpu_uuid for each in same[count - middle :] for gpu in each.gpus]
    hours = sum(month_h(evidence, gpu.covered_h) for gpu in serving.gpus)
    certain = 1.0 if from_end <= low else 0.0
    around = widened(hours, grade, most=HOURS_PER_MONTH * len(serving.gpus))
    capacity = Range(around.p10 * certain, around.p50, around.p90 if from_end <= high else around.p50)
    release = releases(evidence, gone)
    blocked = next((release[uuid].why_not for uuid in uuids if not release[uuid].cash), None)
    rate = serving.usd_per_hour
    if blocked is not None or rate is None:
        why = f"No cash figure: {blocked or 'a GPU has no price'}."
        return Outcome(Saving(capacity_gpu_h_month=capacity), why, uuids, count, count - middle)
    cash = capacity.scaled(rate / len(serving.gpus))
    return Outcome(Saving(cash, capacity), None, uuids, count, count - middle)
