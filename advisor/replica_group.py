"""Engines that do the same work, and what falls away when fewer of them can do it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from advisor.confidence import duration, widened
from advisor.digest import digest
from advisor.engine_time import engine_span_h
from advisor.fleet import Release, month_h, releases
from advisor.serving import Serving, profile_of
from core.evidence import Evidence
from core.finding import Grade, Range, Saving

MIN_LOAD_H: Final = 24.0
"""Less than a day of load does not show its peaks, and replicas are counted for peaks (R08)."""
PEAK: Final = 0.99
"""Share of busy time that the replicas that stay must carry (R08: p99)."""


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


def peak_running(serving: Serving) -> float:
    """Requests at once in its busiest time: p99 over all its busy hours."""
    return serving.engine.running.quantile(PEAK) or 0.0


def peak_tokens_per_s(serving: Serving) -> float:
    """Generated tokens per second in its busiest time: p99 over the rates at its batch sizes."""
    points = profile_of(serving.engine).values()
    rates = sorted(
        (each.generated_tokens / each.seconds, each.seconds) for each in points if each.seconds > 0
    )
    left_s = PEAK * sum(seconds for _, seconds in rates) - 1e-9
    for rate, seconds in rates:
        left_s -= seconds
        if left_s <= 0:
            return rate
    return serving.tokens_per_s or 0.0


def without_saving(serving: Serving, why: str, replicas: int) -> Outcome:
    """An outcome that claims nothing and says why."""
    return Outcome(Saving(), why, tuple(gpu.gpu_uuid for gpu in serving.gpus), replicas, replicas)


@dataclass(frozen=True, slots=True)
class Fall:
    """Replicas of one model of which some fall away: the last ones by name, so that no GPU is counted twice.

    Attributes:
        rank_from_end: 1 for the last replica by name, by engine.
        dropped: how many fall away at the low, middle and high end.
        release_low, release: for the GPUs of the replicas that fall away at the low end, at the middle.
        beside: replicas of the same model that stay whatever happens here.
        need: what the replicas are needed for when none falls away.
    """

    evidence: Evidence
    rank_from_end: Mapping[str, int]
    dropped: tuple[int, int, int]
    release_low: Mapping[str, Release]
    release: Mapping[str, Release]
    beside: int
    need: str

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        replicas: Sequence[Serving],
        dropped: tuple[int, int, int],
        *,
        beside: int = 0,
        need: str = "Throughput saves only when a whole one falls away.",
        first: Callable[[Serving], bool] = lambda _: False,
    ) -> Self:
        """The last ``dropped`` of ``replicas``; those that are ``first`` go before the others."""
        ordered = sorted(replicas, key=lambda each: (first(each), each.engine.identity.engine), reverse=True)
        ranks = {each.engine.identity.engine: rank for rank, each in enumerate(ordered, start=1)}
        low, middle = (
            releases(evidence, [gpu.gpu_uuid for each in ordered[:count] for gpu in each.gpus])
            for count in dropped[:2]
        )
        return cls(evidence, ranks, dropped, low, middle, beside, need)

    def outcome(self, serving: Serving, grade: Grade) -> Outcome:
        """Saving of one of the replicas. Cash only where the GPUs that fall away end a billing unit."""
        low, middle, _ = self.dropped
        count = len(self.rank_from_end) + self.beside
        rank = self.rank_from_end[serving.engine.identity.engine]
        if count == 1:
            why = "No money figure: one replica cannot become fewer. The rate rises, the bill does not fall."
            return without_saving(serving, why, 1)
        gpus_h = min((digest(self.evidence, gpu).observed_h for gpu in serving.gpus), default=0.0)
        seen_h = min(gpus_h, engine_span_h(serving.engine))
        if seen_h < MIN_LOAD_H:
            why = f"No money figure: {duration(seen_h)} of load do not show how many replicas its peaks need; a day does."
            return without_saving(serving, why, count)
        if middle == 0:
            why = f"No money figure: {count} replicas stay {count}. {self.need}"
            return without_saving(serving, why, count)
        uuids, then = tuple(gpu.gpu_uuid for gpu in serving.gpus), count - middle
        if rank > middle:
            why = f"The saving is counted on the {middle} of {count} replicas that fall away; this one carries their load."
            return Outcome(Saving(), why, uuids, count, then)
        engine_h = serving.engine.covered_s / 3600
        hours = sum(
            month_h(self.evidence, min(digest(self.evidence, gpu).covered_h, engine_h))
            for gpu in serving.gpus
        )
        around = widened(hours, grade, most=hours)
        capacity = around if rank <= low else Range(0.0, around.p50, around.p90)
        blocked = next((self.release[uuid].why_not for uuid in uuids if not self.release[uuid].cash), None)
        rate = serving.usd_per_hour
        if blocked is not None or rate is None:
            why = f"No cash figure: {blocked or 'a GPU has no price'}."
            return Outcome(Saving(capacity_gpu_h_month=capacity), why, uuids, count, then)
        certain = rank <= low and all(self.release_low[uuid].cash for uuid in uuids)
        paid = capacity if certain else Range(0.0, capacity.p50, capacity.p90)
        return Outcome(Saving(paid.scaled(rate / len(uuids)), capacity), None, uuids, count, then)
