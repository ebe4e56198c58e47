"""Prompts that share their beginning are computed again and again.

What it finds
    Engines with prefix caching off, or with less than a fifth of prompt tokens from the cache, where it is known that
    prompts share more: from replicas of the same model that do find their prompts in the cache, or from the share of
    common prompt tokens that you give (``shared_prompt_ratio``).

Why it costs
    A system prompt is computed for every request. The time saved is the share of a step that computes prompts times the
    share of prompt tokens found in the cache; decoding costs what it did.

When it is wrong
    Prompts that differ from the first token gain nothing. A cache that is full throws prefixes out before they are used.
    Replicas behind one name may serve different users, and requests spread at random find their prefix nowhere.

What to do
    Turn prefix caching on with one replica and read the hit ratio after a busy hour. Put what all prompts share first, and
    send requests with the same beginning to the same replica.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor import kv_flags
from advisor.confidence import graded
from advisor.engine_time import engine_coverage, engine_span_h, engine_subject
from advisor.estimators import prefix_cache
from advisor.estimators.replicas import dropped
from advisor.facts import as_facts, price_facts, rounded, time_chart, window_facts
from advisor.model import Limits, Rule, Source, Verdict
from advisor.recent import recent_hours
from advisor.replica_group import Fall, Outcome, peak_tokens_per_s, replica_key, without_saving
from advisor.serving import Serving, servings
from advisor.serving_checks import (
    STEP_GRADE,
    Refusal,
    no_engines,
    quality,
    refusal,
    replica_groups,
    shared_gpu,
    total,
)
from core.evidence import EngineEvidence, Evidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Range, Risk
from core.hours import EngineHour
from core.percent import percent, percent_range

RULE_ID: Final = "no-prefix-cache"
SWITCH: Final = "enable_prefix_caching"


class NoPrefixCacheLimits(Limits):
    """Thresholds of ``no-prefix-cache``."""

    max_hit_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Prompt tokens from the cache below which little is reused (R14)."""
    shared_prompt_ratio: Annotated[float | None, Field(gt=0, le=1)] = None
    """Share of prompt tokens that your prompts have in common (system prompt over mean prompt). None: not known."""
    min_saved_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.03
    """Time saved below which it is not worth a restart."""
    min_busy_s: Annotated[float, Field(ge=60)] = 300.0
    """Busy time below which start and end of a load weigh too much."""
    min_coverage_ratio: Annotated[float, Field(ge=0, le=1)] = 0.8
    """Samples received over samples due."""


@dataclass(frozen=True, slots=True)
class Case:
    """One engine whose prompts share more than its cache finds.

    Attributes:
        off: caching is switched off. hit: today's hit ratio, 0 when off. expected: what could be found. basis: how
            that is known. prefill: share of its time that computes prompts; saved: of its time.
    """

    serving: Serving
    off: bool
    hit: float
    expected: float
    basis: str
    prefill: Range
    saved: Range

    @property
    def speed(self) -> Range:
        """Throughput over today's at the same batch."""
        return prefix_cache.speedup(self.saved)


def evaluate(evidence: Evidence, limits: NoPrefixCacheLimits) -> Iterator[Verdict]:
    """Every engine of the fleet."""
    if not evidence.engines:
        yield no_engines(RULE_ID)
        return
    best = _best_hits(evidence)
    groups: dict[object, list[Case]] = {}
    for serving in servings(evidence):
        found = _judged(evidence, serving, best.get(replica_key(serving)), limits)
        if isinstance(found, Case):
            groups.setdefault(replica_key(serving), []).append(found)
        elif found is not None:
            yield NotEvaluated(RULE_ID, engine_subject(serving), *found)
    for same in groups.values():
        fall = _fall(evidence, same)
        for case in same:
            yield _finding(evidence, fall, case)


def _best_hits(evidence: Evidence) -> dict[object, tuple[float, str]]:
    """The best hit ratio among the replicas of each model, and which one has it."""
    best: dict[object, tuple[float, str]] = {}
    for group in replica_groups(evidence):
        hits = [
            (hit, each.label)
            for each in group
            if each.engine.identity.model is not None and (hit := _hit_of(each.engine)) is not None
        ]
        if hits:
            best[replica_key(group[0])] = max(hits)
    return best


def _hit(hours: Sequence[EngineHour]) -> float | None:
    """Hit ratio of some hours, over those that know both counters."""
    both = [h for h in hours if h.cached_prompt_tokens is not None and h.prompt_tokens is not None]
    return prefix_cache.hit_ratio(total(both, "cached_prompt_tokens"), total(both, "prompt_tokens"))


def _hit_of(engine: EngineEvidence) -> float | None:
    """The same of all its hours; their sums tell it unless an hour knows one counter only."""
    return _hit(engine.parts if engine.has_paired_prompts else engine.hours)


def _judged(
    evidence: Evidence, serving: Serving, best: tuple[float, str] | None, limits: NoPrefixCacheLimits
) -> Case | Refusal | None:
    """A case, what is missing, or None when its prompts are found in the cache or cost too little to matter."""
    engine = serving.engine
    basic = refusal(
        evidence, engine, min_busy_s=limits.min_busy_s, min_coverage_ratio=limits.min_coverage_ratio
    )
    if basic is not None:
        return basic
    off = kv_flags.is_on(engine.identity.settings.get(SWITCH)) is False
    hit = _hit_of(engine)
    if not off and hit is None:
        why = "Neither the switch nor the tokens from the cache are published: whether prefixes are reused is not known."
        return ("cached_prompt_tokens", SWITCH), why
    now = 0.0 if off else (hit or 0.0)
    if not off and now >= limits.max_hit_ratio:
        return None
    found = _missed(serving, best, limits, off=off, now=now)
    if found is None or off or (_hit(recent_hours(engine)) or 0.0) < limits.max_hit_ratio:
        return found
    return None  # of late they are found


def _missed(
    serving: Serving,
    best: tuple[float, str] | None,
    limits: NoPrefixCacheLimits,
    *,
    off: bool,
    now: float,
) -> Case | Refusal | None:
    """What it would find beyond ``now``; None when that is too little to matter."""
    modelled = shared_gpu(serving) or _unmodelled(serving)
    if modelled is not None:
        return modelled
    prefill = _prefill(serving)
    if prefill is None:
        return ("model architecture",), "How much of a step computes prompts is not known."
    if prefill.p50 < limits.min_saved_ratio:
        return None  # even if all prompts were the same
    known = _sharing(serving, best, limits)
    if known is None:
        return ("how much prompts share",), _unknown_sharing(prefill, off=off, hit=now)
    expected, basis = known
    saved = _saved(prefill, now, expected)
    if saved.p50 < limits.min_saved_ratio:
        return None  # what they share is found already, or too little to matter
    return Case(serving, off, now, expected, basis, prefill, saved)


def _unmodelled(serving: Serving) -> Refusal | None:
    if serving.model is None or serving.running is None or serving.prompt_per_generated is None:
        missing = serving.missing or ("step-time model",)
        return missing, "How much of a step computes prompts cannot be told without its step time."
    return None


def _prefill(serving: Serving) -> Range | None:
    """Share of its time that computes prompts, at its mean batch."""
    if serving.model is None or serving.running is None or serving.prompt_per_generated is None:
        return None
    return prefix_cache.prefill_share(serving.model, serving.running, serving.prompt_per_generated)


def _sharing(
    serving: Serving, best: tuple[float, str] | None, limits: NoPrefixCacheLimits
) -> tuple[float, str] | None:
    """What could be found in the cache: as told, else as a replica shows it; None when nothing says."""
    if limits.shared_prompt_ratio is not None:
        return limits.shared_prompt_ratio, "your own figure of what prompts share"
    if best is None or best[0] < limits.max_hit_ratio or best[1] == serving.label:
        return None
    return best[0], f"{best[1]} finds {percent(best[0])} of the same model's prompt tokens in its cache"


def _unknown_sharing(prefill: Range, *, off: bool, hit: float) -> str:
    state = "Prefix caching is off" if off else f"{percent(hit)} of the prompt tokens come from the cache"
    find_out = (
        "switch it on with one replica for a busy hour" if off else "look at the prompts of a busy hour"
    )
    return (
        f"{state}, and computing prompts takes up to {percent(prefill.p90)} of the time; but whether prompts share"
        f" anything is not seen from here: {find_out}, or set shared_prompt_ratio."
    )


def _saved(prefill: Range, now: float, expected: float) -> Range:
    """Of the prompt tokens computed today, those found in addition; half of them at the low end: caches evict."""
    more = max(0.0, expected - now) / (1 - now) if now < 1 else 0.0
    return prefix_cache.time_saved(prefill, Range(0.5 * more, more, more))


def _fall(evidence: Evidence, same: Sequence[Case]) -> Fall:
    """Replicas that fall away when all of these reuse prefixes: their busiest time (p99) must be carried."""
    members = [case.serving for case in same]
    count = next(
        len(group) for group in replica_groups(evidence) if replica_key(group[0]) == replica_key(members[0])
    )
    rates = [(case.speed, peak_tokens_per_s(case.serving)) for case in same]
    load = sum(rate for _, rate in rates)
    sums = (
        sum(getattr(speed, quantile) * rate for speed, rate in rates) for quantile in ("p10", "p50", "p90")
    )
    gone = dropped(len(same), load, Range(*(max(load, each) / len(same) for each in sums)))
    return Fall.of(evidence, members, gone, beside=count - len(same))


def _finding(evidence: Evidence, fall: Fall, case: Case) -> Finding:
    serving, engine = case.serving, case.serving.engine
    model = serving.model
    assert model is not None
    grade, confidence = graded(
        max(STEP_GRADE[model.basis], Grade.C),
        f"Arithmetic of prompts from the step law; what they share from {case.basis}",
        span_h=engine_span_h(engine),
        covered_h=engine.covered_s / 3600,
    )
    result = _outcome(fall, case, grade)
    return Finding(
        rule_id=RULE_ID,
        subject=engine_subject(serving),
        cause="off" if case.off else "missed",
        title=(
            f"Turn prefix caching on for {serving.label}"
            if case.off
            else f"Let {serving.label} find its prompts in the cache"
        ),
        because=(
            ("Prefix caching is off" if case.off else f"{percent(case.hit)} of its prompt tokens come from the cache")
            + f", while {case.basis}; computing prompts takes {percent(case.prefill.p50)} of its time, of which"
            f" {percent_range(case.saved.p10 / case.prefill.p50, min(1.0, case.saved.p90 / case.prefill.p50))} could go."
        ),
        state="prefix caching off" if case.off else "prefixes not found",
        confidence=confidence + quality(serving),
        grade=grade,
        effort=Effort.LOW if case.off else Effort.MEDIUM,
        risk=Risk.LOW,
        saving=result.saving,
        no_figure=result.no_figure,
        evidence=_facts(evidence, case, result),
        actions=_actions(case),
        wrong_when="Prompts differ from the first token, the cache is too full to keep prefixes, or the replicas serve"
        " different users.",
        not_claimed="Faster decoding, and any gain for unique prompts. A shorter time to the first token comes with it but is"
        " not counted.",
        gpu_uuids=result.gpu_uuids,
        stage="workload",
        chart=_chart(engine.hours, case.expected),
    )  # fmt: skip


def _outcome(fall: Fall, case: Case, grade: Grade) -> Outcome:
    """Replicas count only where more than one serves."""
    if len(fall.rank_from_end) + fall.beside > 1:
        return fall.outcome(case.serving, grade)
    why = "No figure, because one replica cannot become fewer: prompts cost less time, the bill stays."
    return without_saving(case.serving, why, 1)


def _actions(case: Case) -> tuple[Action, ...]:
    identity = case.serving.engine.identity
    first = Action("Put what all prompts share first, word for word: a prefix ends at the first difference")
    if case.off:
        text = "Start one replica with prefix caching and read its hit ratio after a busy hour"
        if identity.kind == "sglang":
            text += " (leave --disable-radix-cache out)"
        return Action(text, kv_flags.prefix_command(identity.kind, identity.model)), first
    route = "Send requests with the same beginning to the same replica (prefix-aware or session routing)"
    return Action(route), first


def _facts(evidence: Evidence, case: Case, result: Outcome) -> dict[str, Any]:
    serving = case.serving
    facts: dict[str, Any] = {
        **window_facts(evidence, engine_coverage(serving.engine)),
        **(price_facts(serving.gpus[0].price) if serving.gpus else {}),
        "hit_ratio": case.hit,
        "expected_hit_ratio": case.expected,
        "expected_basis": case.basis,
        **as_facts("prefill_share", case.prefill),
        **as_facts("time_saved_ratio", case.saved),
        **as_facts("gain", case.speed),
        "prompt_tokens_per_generated": serving.prompt_per_generated,
        "running_mean": serving.running,
        "replicas_now": result.replicas_now,
        "replicas_then": result.replicas_then,
    }
    return rounded(facts)


def _chart(hours: Sequence[EngineHour], expected: float) -> Mapping[str, Any]:
    """Hit ratio by hour against what could be found."""
    return time_chart(((hour.hour_ms, _hit([hour])) for hour in hours), "ratio", expected)


RULE: Final = Rule(
    id=RULE_ID,
    code="R14",
    title="Reuse the prefixes that prompts share",
    needs=frozenset({"prompt_tokens", "cached_prompt_tokens", "generated_tokens", "running_requests"}),
    limits=NoPrefixCacheLimits(),
    effort=Effort.LOW,
    risk=Risk.LOW,
    sources=(
        Source("vLLM: automatic prefix caching", "https://docs.vllm.ai/en/latest/features/automatic_prefix_caching.html"),
        Source("SGLang: RadixAttention", "https://arxiv.org/abs/2312.07104"),
    ),
    evaluate=evaluate,
    scope="fleet",
)  # fmt: skip
