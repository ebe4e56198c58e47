"""A GPU at work runs at a lower clock than it should, and nothing says why.

What it finds
    Cards under load that neither heat, nor a brake, nor the power cap holds back, and whose SM clock is still below
    their peers' (other cards of the model under the same kind of load), or below 0.7 of their own highest. Also
    servers without persistence mode on which short processes start anew again and again.

Why it costs
    Somebody locked the clocks, or an application clock is set, and forgot it. Arithmetic then takes longer by the
    same share. Work that waits for memory loses a few percent at most.

When it is wrong
    The clock was lowered on purpose to save energy (``decode-clock`` advises just that), or the card runs other work
    than its peers. Clocks of different boards of one model differ by a few percent by themselves.

What to do
    Reset locked and application clocks, and look at the card again. Switch persistence mode on where it is off.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.clock_peers import Clocking, clocking, free_parts, is_free, looks, peers_of
from advisor.confidence import duration, graded
from advisor.digest import digest
from advisor.estimators.throttle_loss import throttle_loss
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_work import WorkLimits, freed, hours_of, is_dark, means, unfit, unread, whole_hours
from advisor.model import Rule, Source, Verdict
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.percent import percent

RULE_ID: Final = "slow-clock"


class SlowClockLimits(WorkLimits):
    """Thresholds of ``slow-clock``."""

    min_peer_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.93
    """Clock over the peers' median below which a card is slow: boards differ by a few percent by themselves."""
    min_peers: Annotated[int, Field(ge=2)] = 3
    """Fewer other cards of the model under such load are no fleet to compare with."""
    min_own_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.7
    """Clock over the card's own highest below which it is slow without any peer (R25)."""
    short_process_h: Annotated[float, Field(gt=0, le=24)] = 1.0
    """A process that ended within this time pays the card's start with its own (R25)."""
    min_short_processes: Annotated[int, Field(ge=1)] = 3
    """Fewer of them are no habit."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A card's clock, what it is measured against, and in whose words."""

    own: Clocking
    reference_hz: float
    cause: str
    peer_count: int

    @property
    def ratio(self) -> float:
        """Clock over reference."""
        return self.own.clock_hz / self.reference_hz


def evaluate(evidence: Evidence, limits: SlowClockLimits) -> Iterator[Verdict]:
    """Every GPU at work."""
    blind: list[GpuEvidence] = []
    for gpu in evidence.gpus:
        look = looks(evidence)[gpu.gpu_uuid]
        if not look.told if look.worked else is_dark(evidence, gpu):
            blind.append(gpu)
        slow = _slow(evidence, gpu, limits)
        if slow is None:
            if _restarts(gpu, limits) and gpu.health.get("persistence_mode") == "disabled":
                yield _not_persistent(evidence, gpu, limits)
            continue
        refusal = _refusal(evidence, gpu, slow, limits)
        if refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *refusal)
        else:
            yield _finding(evidence, gpu, slow, limits)
    why = "a slow clock cannot be told from one that heat or a cap lowers."
    yield from unread(RULE_ID, blind, ("sm_clock_hz", "event_reasons_flags"), why)


def _slow(evidence: Evidence, gpu: GpuEvidence, limits: SlowClockLimits) -> Slow | None:
    own = clocking(evidence, gpu)
    if own is None:
        return None
    peers = peers_of(evidence, gpu)
    highest = gpu.identity.max_sm_clock_hz
    if peers is not None and peers.count >= limits.min_peers:
        if own.clock_hz < limits.min_peer_ratio * peers.clock_hz:
            return Slow(own, peers.clock_hz, "peers", peers.count)
        return None
    if highest is not None and own.clock_hz < limits.min_own_ratio * highest:
        return Slow(own, highest, "own", 0 if peers is None else peers.count)
    return None


def _refusal(
    evidence: Evidence, gpu: GpuEvidence, slow: Slow, limits: SlowClockLimits
) -> tuple[tuple[str, ...], str] | None:
    refusal = unfit(evidence, gpu, limits)
    if refusal is None and slow.own.work_h < limits.min_work_h:
        due = duration(limits.min_work_h)
        return ("time",), (
            f"Under load and held back by nothing for {duration(slow.own.work_h)}; {due} are needed."
        )
    return refusal


def _restarts(gpu: GpuEvidence, limits: SlowClockLimits) -> int:
    """Short processes on it, when they are enough for a habit; else 0."""
    short = sum(
        1
        for use in gpu.uses
        if use.workload.kind == "process"
        and (use.last_ms - use.first_ms) / 3_600_000 <= limits.short_process_h
    )
    return short if short >= limits.min_short_processes else 0


def _finding(evidence: Evidence, gpu: GpuEvidence, slow: Slow, limits: SlowClockLimits) -> Finding:
    work = [hour for hour in whole_hours(gpu.hours) if is_free(gpu, hour)]
    below = [
        hour
        for hour in work
        if hour.sm_clock_hz is not None and hour.sm_clock_hz < limits.min_peer_ratio * slow.reference_hz
    ]
    loss = throttle_loss(
        clock_hz=slow.own.clock_hz, reference_hz=slow.reference_hz, memory_bound=slow.own.bound
    )
    capacity = _capacity(evidence, gpu, hours_of(below), loss) if slow.cause == "peers" else None
    seen = digest(evidence, gpu)
    basis = (
        "The clock is measured against cards of the same model; the loss follows the clock by a formula"
        if slow.cause == "peers"
        else "The clock is measured against the card's own highest, which not every work reaches"
    )
    grade, confidence = graded(
        Grade.C if slow.cause == "peers" else Grade.D,
        basis,
        span_h=seen.observed_h,
        covered_h=seen.covered_h,
    )
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="clock",
        title=f"Reset the clocks of {label(gpu)}",
        because=_because(slow),
        state="below its peers" if slow.cause == "peers" else "below its own clock",
        confidence=confidence,
        grade=grade,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(capacity_gpu_h_month=capacity),
        no_figure=None if capacity is not None else _no_figure(slow),
        evidence=_facts(evidence, gpu, slow, hours_of(below)),
        actions=_actions(gpu),
        wrong_when="The clock was lowered on purpose to save energy, or the card runs other work than its peers.",
        not_claimed="Money: faster work lowers a bill only where a whole GPU or node falls away.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="clocks",
        chart=time_chart(
            ((h.hour_ms, None if h.sm_clock_hz is None else h.sm_clock_hz / 1e6) for h in work[-24 * 14 :]),
            "MHz",
            slow.reference_hz / 1e6,
        ),
    )


def _capacity(evidence: Evidence, gpu: GpuEvidence, below_h: float, loss: Range | None) -> Range | None:
    """The same work in fewer hours; None where the loss is not known or nothing."""
    if loss is None or loss.p50 <= 0 or below_h <= 0:
        return None
    whole = freed(evidence, [gpu], below_h, Grade.A)
    return Range(whole.p10 * loss.p10, whole.p50 * loss.p50, whole.p90 * loss.p90)


def _no_figure(slow: Slow) -> str:
    if slow.cause == "own":
        return (
            "No figure: too few cards of this model run such work, so the clock it should have is not known."
        )
    return "No figure: what the clock costs this work is not known."


def _because(slow: Slow) -> str:
    clock, reference = slow.own.clock_hz / 1e6, slow.reference_hz / 1e6
    against = (
        f"{slow.peer_count} other cards of the model run at {reference:.0f} MHz under such load"
        if slow.cause == "peers"
        else f"its highest is {reference:.0f} MHz"
    )
    said = (
        f"At work its multiprocessors run at {clock:.0f} MHz while {against} ({percent(1 - slow.ratio)} less);"
        " neither heat nor brake nor power cap holds them back."
    )
    if slow.own.bound:
        said += " The work waits for memory, whose clock is not touched: the loss is small."
    return said


def _facts(evidence: Evidence, gpu: GpuEvidence, slow: Slow, below_h: float) -> dict[str, Any]:
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        **means(free_parts(evidence, gpu), "busy_ratio", "power_w", "sm_active_ratio"),
        **rounded(
            {
                "sm_clock_hz": slow.own.clock_hz,
                "reference_clock_hz": slow.reference_hz,
                "clock_ratio": slow.ratio,
                "peer_count": slow.peer_count,
                "slow_h": below_h,
                "max_sm_clock_hz": gpu.identity.max_sm_clock_hz,
            }
        ),
        **({"persistence_mode": gpu.health["persistence_mode"]} if "persistence_mode" in gpu.health else {}),
    }


def _actions(gpu: GpuEvidence) -> tuple[Action, ...]:
    return (
        Action("See the clocks that are set", f"nvidia-smi -q -d CLOCK,PERFORMANCE -i {gpu.gpu_uuid}"),
        Action("Take a clock lock away", f"nvidia-smi -i {gpu.gpu_uuid} -rgc"),
        Action("Take application clocks away", f"nvidia-smi -i {gpu.gpu_uuid} -rac"),
    )


def _not_persistent(evidence: Evidence, gpu: GpuEvidence, limits: SlowClockLimits) -> Finding:
    """Persistence mode is off, and short processes pay for it."""
    short = _restarts(gpu, limits)
    seen = digest(evidence, gpu)
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause="persistence",
        title=f"Switch persistence mode on for {label(gpu)}",
        because=f"Persistence mode is off and {short} processes ended within {duration(limits.short_process_h)}:"
        " each first one waits for seconds until the card has started, and set clocks are lost.",
        state="without persistence mode",
        confidence="High: the driver says so; what each start costs is not measured.",
        grade=Grade.A,
        effort=Effort.LOW,
        risk=Risk.LOW,
        saving=Saving(),
        no_figure="No figure: how long each start took cannot be read from telemetry.",
        evidence={
            **window_facts(evidence, seen.coverage),
            "short_process_count": short,
            "persistence_mode": "disabled",
        },
        actions=(
            Action("Run the persistence daemon", "systemctl enable --now nvidia-persistenced"),
            Action("Or switch it on until the next boot", f"nvidia-smi -i {gpu.gpu_uuid} -pm 1"),
        ),
        wrong_when="Another client, such as an agent, keeps the driver open all the time.",
        not_claimed="Time lost at each start.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="clocks",
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R25",
    title="Reset clocks that are lower than they should be",
    needs=frozenset({"sm_clock_hz", "event_reasons_flags", "busy_ratio"}),
    limits=SlowClockLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source(
            "NVML: clocks event reasons",
            "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
        ),
        Source(
            "NVIDIA driver persistence",
            "https://docs.nvidia.com/deploy/driver-persistence/",
        ),
    ),
    evaluate=evaluate,
    scope="fleet",
)
