"""Several GPUs do little work each, and fewer of them could do all of it.

What it finds
    A packing plan over GPUs of one model: tenants with SM activity under 30 % (or under 30 % busy), whose memory adds up
    to less than 85 % of one card, whose highest hours of the week add up to no more than 70 % and do not come together,
    and which are no replicas of one model. It names the card that stays, what moves there, and the GPUs that fall free.

Why it costs
    A GPU is paid whole. Two tenants that need a fifth of a card each, at different hours, hold two cards where one would do.

When it is wrong
    A latency promise: a neighbour adds to every answer (two 4B services on one A100 instead of two lost 7.5 % of their
    rate, time per token rose by 19.5 %). Peaks shorter than an hour that do come together, tenants that must not see each
    other, fault domains that are not told by the model's name, and a job about to grow.

What to do
    Lower engine reservations first. Split the card into MIG slices where the tenants fit them: each keeps its share and
    its faults. Else run them side by side (MPS) and watch latency for a week. Then hand back the free GPUs; for cash whole
    billing units must fall free.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from advisor import kv_flags
from advisor.confidence import graded, seen_share, widened
from advisor.digest import digest
from advisor.estimators.mig_slices import Demand, slices_for
from advisor.estimators.packing import Caps, Plan, Stay, pack
from advisor.facts import price_facts, profile_chart, rounded, window_facts
from advisor.fleet import Release, gpu_subject, label, month_h, releases
from advisor.idle import idle_gpus
from advisor.model import Rule, Source, Verdict
from advisor.tenants import (
    Resident,
    ShareableGpuLimits,
    holds_something,
    is_slice,
    mean_activity,
    refusal,
    resident_of,
)
from advisor.waterfall import base_of
from catalog import mig_profiles
from catalog.mig_profiles import MigProfile
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk, Saving
from core.percent import percent
from core.units import GIB

RULE_ID: Final = "shareable-gpu"
STRICT: Final = 0.8
"""The low end of the plan: with caps at 80 % of the limits as many GPUs fall free for sure."""


@dataclass(frozen=True, slots=True)
class Share:
    """One card that stays, who moves in, and the slices that hold them all; None: no slices do."""

    stays: Resident
    moves: tuple[Resident, ...]
    stay: Stay
    slices: tuple[MigProfile, ...] | None

    @property
    def all(self) -> tuple[Resident, ...]:
        """Its tenants, in the order of ``slices``."""
        return (self.stays, *self.moves)

    @property
    def freed(self) -> tuple[GpuEvidence, ...]:
        """GPUs that fall free with it."""
        return tuple(each.gpu for each in self.moves)

    @property
    def strangers(self) -> bool:
        """Its tenants belong to different users, or nobody knows whose they are."""
        users = {each.user for each in self.all}
        return len(users) > 1 or users == {None}


def evaluate(evidence: Evidence, limits: ShareableGpuLimits) -> Iterator[Verdict]:
    """All GPUs with little activity together: a plan is made over the fleet."""
    candidates: dict[str | None, list[GpuEvidence]] = {}
    for gpu in evidence.gpus:
        if is_slice(gpu) or not gpu.hours:
            continue
        if not holds_something(evidence, gpu):
            if mean_activity(gpu, limits) is None and digest(evidence, gpu).covered_h > 0:
                yield _blind(gpu)
            continue
        activity = mean_activity(gpu, limits)
        if activity is None:
            yield _blind(gpu)
            continue
        if not activity[1]:
            continue
        reason = refusal(evidence, gpu, limits)
        if reason is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *reason)
            continue
        candidates.setdefault(gpu.gpu_key, []).append(gpu)
    residents = {
        gpu.gpu_uuid: resident_of(evidence, gpu)
        for equal in candidates.values()
        if len(equal) > 1  # one alone has no card to go to, and its hours need not be read
        for gpu in equal
    }
    plan = _plan(residents, limits)
    if plan is None:
        return
    certain = _certain(residents, plan, limits)
    release = releases(evidence, set(plan.freed) | idle_gpus(evidence))
    for stay in plan.shared:
        yield _finding(evidence, _share(stay, residents), release, certain, limits)


def _blind(gpu: GpuEvidence) -> NotEvaluated:
    why = "Neither SM activity nor utilization is read (MIG mode hides both on the card): how busy it is is not known."
    return NotEvaluated(RULE_ID, gpu_subject(gpu), ("sm_active_ratio", "busy_ratio"), why)


def _plan(residents: Mapping[str, Resident], limits: ShareableGpuLimits, share: float = 1.0) -> Plan | None:
    caps = Caps(
        memory_ratio=share * limits.memory_ratio,
        activity_ratio=share * limits.activity_ratio,
        correlation=limits.max_correlation,
    )
    return pack((each.tenant for each in residents.values()), caps)


def _certain(residents: Mapping[str, Resident], plan: Plan, limits: ShareableGpuLimits) -> frozenset[str]:
    """Freed GPUs that a stricter plan would free as well, counted and not named: those whose card is least full."""
    strict = _plan(residents, limits, STRICT)
    count = 0 if strict is None else len(strict.freed)
    fullness = {
        stay.card: max(stay.memory_bytes / stay.tenants[0].card_bytes, *stay.week) for stay in plan.shared
    }
    ordered = sorted(plan.freed, key=lambda uuid: (fullness[plan.freed[uuid]], uuid))
    return frozenset(ordered[:count])


def _share(stay: Stay, residents: Mapping[str, Resident]) -> Share:
    tenants = tuple(residents[each.card] for each in stay.tenants)
    card = mig_profiles.of_card(tenants[0].gpu.gpu_key)
    demands = [Demand(each.tenant.memory_bytes, each.tenant.peak_ratio) for each in tenants]
    return Share(tenants[0], tenants[1:], stay, None if card is None else slices_for(card, demands))


def _finding(
    evidence: Evidence,
    share: Share,
    release: Mapping[str, Release],
    certain: frozenset[str],
    limits: ShareableGpuLimits,
) -> Finding:
    seen = [digest(evidence, each.gpu) for each in share.all]
    grade, confidence = graded(
        Grade.C,
        "Memory and weeks of the tenants are measured, how they get on with each other is not",
        span_h=min(each.observed_h for each in seen),
        covered_h=min(each.covered_h for each in seen),
    )
    saving, no_figure = _saving(evidence, share, release, certain, grade)
    freed = " and ".join(label(gpu) for gpu in share.freed)
    card = share.stay.tenants[0].card_bytes
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(share.stays.gpu),
        cause="packing",
        title=f"Share {label(share.stays.gpu)} and free {freed}",
        because=(
            f"{len(share.all)} tenants need {share.stay.memory_bytes / GIB:.0f} of {card / GIB:.0f} GiB together and are never"
            f" active for more than {percent(max(share.stay.week))} of an hour of the week, added up; alone the busiest"
            f" reaches {percent(max(each.tenant.peak_ratio for each in share.all))}."
        ),
        state="shareable in MIG slices" if share.slices else "shareable side by side",
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.MEDIUM if share.slices or not share.strangers else Risk.HIGH,
        saving=saving,
        no_figure=no_figure,
        evidence=rounded(_facts(evidence, share, min(each.coverage for each in seen))),
        actions=_actions(share),
        wrong_when="A latency promise does not bear a neighbour, peaks shorter than an hour come together, the tenants must"
        " not see each other, they stand by for one another, or one is about to grow.",
        not_claimed="The work of moving, what a neighbour adds to latency, and energy: the same work is done.",
        gpu_uuids=tuple(gpu.gpu_uuid for gpu in share.freed),
        stage="consolidate",
        chart=profile_chart(
            enumerate(share.stay.week),
            "ratio",
            "hour of the week (UTC, Monday 00:00 = 0)",
            limits.activity_ratio,
        ),
    )


def _saving(
    evidence: Evidence,
    share: Share,
    release: Mapping[str, Release],
    certain: frozenset[str],
    grade: Grade,
) -> tuple[Saving, str | None]:
    """Hours of the GPUs that fall free; cash only where they end a billing unit."""
    shown = seen_share(evidence.window.hours)
    hours: list[Range] = []
    cash: list[Range] = []
    blocked: str | None = None
    for gpu in share.freed:
        base = base_of(gpu, digest(evidence, gpu), evidence.window.hours)
        own = widened(
            month_h(evidence, digest(evidence, gpu).covered_h), grade, most=base.capacity, seen=shown
        )
        if gpu.gpu_uuid not in certain:
            own = replace(own, p10=0.0)
        hours.append(own)
        ends = release[gpu.gpu_uuid]
        if ends.cash and gpu.price is not None:
            cash.append(own.scaled(float(gpu.price.usd_per_gpu_hour)))
        else:
            blocked = blocked or ends.why_not
    why = None
    if not cash:
        why = f"No cash figure: {blocked}."
    elif blocked is not None:
        why = f"Cash of {len(cash)} of {len(hours)} freed GPUs only: {blocked}."
    return Saving(cash_usd_month=Range.total(cash), capacity_gpu_h_month=Range.total(hours)), why


def _facts(evidence: Evidence, share: Share, coverage: float) -> dict[str, Any]:
    card = share.stay.tenants[0]
    return {
        **window_facts(evidence, coverage),
        **price_facts(share.freed[0].price),
        "gpu_key": card.kind,
        "tenants": [each.name for each in share.all],
        "freed_gpu_uuids": [gpu.gpu_uuid for gpu in share.freed],
        "freed_gpus": [label(gpu) for gpu in share.freed],
        "memory_needed_bytes": share.stay.memory_bytes,
        "memory_total_bytes": card.card_bytes,
        "tenant_memory_bytes": [round(each.tenant.memory_bytes) for each in share.all],
        "tenant_memory_held_bytes": [round(each.memory_held_bytes) for each in share.all],
        "tenant_peak_ratio": [round(each.tenant.peak_ratio, 4) for each in share.all],
        "activity_peak_ratio": max(share.stay.week),
        "mig_profiles": None if share.slices is None else [each.profile for each in share.slices],
    }


def _actions(share: Share) -> tuple[Action, ...]:
    uuid = share.stays.gpu.gpu_uuid
    first = tuple(
        Action(
            f"Lower the reservation of {each.name} to what it needs ({percent(_part(each, share))} of the card)",
            None
            if each.serving is None
            else kv_flags.flagged(
                each.serving.engine.identity.kind,
                each.serving.engine.identity.model,
                kv_flags.MEMORY_SHARE,
                f"{_part(each, share):.2f}",
            ),
        )
        for each in share.all
        if each.reserves
    )
    names = " and ".join(f"{each.name} (from {label(each.gpu)})" for each in share.moves)
    split: tuple[Action, ...]
    if share.slices is not None:
        wanted = ",".join(each.profile for each in share.slices)
        split = (
            Action("Stop what runs on the card, then turn MIG on (root; the card resets)", f"nvidia-smi -i {uuid} -mig 1"),
            Action(
                f"Make a slice for each: {', '.join(f'{p.profile} for {r.name}' for p, r in zip(share.slices, share.all, strict=True))}",
                f"nvidia-smi mig -i {uuid} -cgi {wanted} -C",
            ),
        )  # fmt: skip
    else:
        split = (
            Action(
                "No set of MIG slices holds them: let them run side by side through MPS, one user's processes only",
                "nvidia-cuda-mps-control -d",
            ),
        )  # fmt: skip
    return (
        *first,
        *split,
        Action(f"Start {names} there, watch latency for a week, then hand back what is free"),
    )


def _part(each: Resident, share: Share) -> float:
    """Memory it needs as a share of what it will see: its slice, else the card."""
    if share.slices is None:
        return each.tenant.memory_bytes / each.tenant.card_bytes
    return min(1.0, each.tenant.memory_bytes / share.slices[share.all.index(each)].usable_bytes)


RULE: Final = Rule(
    id=RULE_ID,
    code="R21",
    title="Let GPUs with little work share a card",
    needs=frozenset({"busy_ratio", "memory_used_bytes"}),
    limits=ShareableGpuLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("NVIDIA MIG User Guide", "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/"),
        Source("NVIDIA Multi-Process Service", "https://docs.nvidia.com/deploy/mps/"),
    ),
    evaluate=evaluate,
)
