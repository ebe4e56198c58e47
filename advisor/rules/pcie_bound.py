"""The PCIe link is the bottleneck: it is full while the GPU waits, or it runs narrower or slower than it could.

What it finds
    Links of fewer lanes than card and slot allow, or of an older generation *while the card is at work*, and GPUs
    whose traffic fills 70 % of what the link carries in practice while the multiprocessors are under half active.

Why it costs
    A training step or an offloaded layer waits for its bytes. A link of half the lanes takes twice as long for each
    transfer, and nothing in the utilization figure shows it.

When it is wrong
    The generation drops whenever a card idles, by design: only a look taken at work counts. A slot wired with fewer
    lanes is how the board was built. Rates are means of an hour and hide bursts.

What to do
    Narrow or slow link: reseat the card or riser, look at the BIOS setting of the slot. Full link: keep data and
    weights on the card; where weights or KV cache are offloaded on purpose, the offload is the price.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import graded
from advisor.digest import digest
from advisor.facts import price_facts, rounded, time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_work import (
    RECENT_SPAN_H,
    WHOLE,
    WorkLimits,
    hours_of,
    is_dark,
    little_work,
    mean,
    means,
    recent,
    unfit,
    unread,
)
from advisor.memo import OncePerEvidence
from advisor.model import Rule, Source, Verdict
from core.evidence import EngineEvidence, Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving
from core.hours import GpuHour
from core.percent import percent
from core.units import HOUR_MS

RULE_ID: Final = "pcie-bound"
PRACTICAL_X16_BYTES_PER_S: Final[Mapping[int, float]] = {1: 3e9, 2: 6e9, 3: 12e9, 4: 25e9, 5: 50e9, 6: 100e9}
"""What 16 lanes carry in practice in one direction (R17: Gen3 ~12, Gen4 ~25, Gen5 ~50 GB/s; others by their rate)."""
OFFLOAD: Final = (
    "cpu_offload_gb",
    "kv_offloading_size",
    "swap_space",
    "n_gpu_layers",
    "enable_hierarchical_cache",
)
"""Settings of engines that move weights or KV cache over the link on purpose."""
NO_FIGURE: Final = (
    "No figure: how much of the time a transfer is waited for cannot be read from an hour's traffic."
)


class PcieBoundLimits(WorkLimits):
    """Thresholds of ``pcie-bound``."""

    min_link_ratio: Annotated[float, Field(gt=0, le=2)] = 0.7
    """Traffic (both directions) over what the link carries in one, from which it is full (R17)."""
    max_sm_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """SM activity below which the card waits meanwhile (R17)."""
    max_health_age_h: Annotated[float, Field(gt=0, le=168)] = 24.0
    """A link looked at longer ago may have changed."""
    min_replays: Annotated[float, Field(ge=1)] = 1000.0
    """Replayed packets since the driver was loaded from which it matters whether they still grow."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link as last asked; None is unknown. ``at_work``: the card was working when the generation was read."""

    generation: int | None
    max_generation: int | None
    width: int | None
    max_width: int | None
    replays: float | None
    at_work: bool

    @property
    def bytes_per_s(self) -> float | None:
        """What it carries in practice in one direction; an idle look at the generation is not believed."""
        generation = self.generation if self.at_work else self.max_generation
        x16 = None if generation is None else PRACTICAL_X16_BYTES_PER_S.get(generation)
        return None if x16 is None or not self.width else x16 * self.width / 16


def evaluate(evidence: Evidence, limits: PcieBoundLimits) -> Iterator[Verdict]:
    """Every GPU at work."""
    blind: list[GpuEvidence] = []
    for gpu in evidence.gpus:
        lately = recent(evidence, gpu).whole
        if not lately:
            blind += [gpu] if is_dark(evidence, gpu) else []
            continue
        link = _link(evidence, gpu, limits)
        if link is None and mean(lately, "pcie_bytes_per_s") is None:
            blind.append(gpu)
            continue
        cause = _cause(lately, link, limits)
        doubt = None if cause is not None else _doubt(lately, link, limits)
        if cause is None and doubt is None:
            continue
        refusal = unfit(evidence, gpu, limits) or doubt
        if cause is None or refusal is not None:
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), *(refusal or ((), "")))
        else:
            yield _finding(evidence, gpu, lately, link, cause)
    why = "neither the link nor its traffic is known."
    yield from unread(RULE_ID, blind, ("pcie_bytes_per_s", "pcie_link_width"), why)


def _link(evidence: Evidence, gpu: GpuEvidence, limits: PcieBoundLimits) -> Link | None:
    """The link as health tells it; None when never asked, or too long ago."""
    at_ms = gpu.health_ms
    if at_ms is None or evidence.window.to_ms - at_ms > limits.max_health_age_h * HOUR_MS:
        return None
    facts = [
        _number(gpu, f"pcie_link_{name}") for name in ("generation", "max_generation", "width", "max_width")
    ]
    if all(fact is None for fact in facts):
        return None
    generation, max_generation, width, max_width = (None if f is None else int(f) for f in facts)
    return Link(
        generation, max_generation, width, max_width, _number(gpu, "pcie_replay_count"), _at_work(gpu, at_ms)
    )


def _number(gpu: GpuEvidence, name: str) -> float | None:
    value = gpu.health.get(name)
    return float(value) if isinstance(value, int | float) else None


def _at_work(gpu: GpuEvidence, at_ms: int) -> bool:
    """The hour of the look was work throughout."""
    return any(
        hour.hour_ms <= at_ms <= hour.hour_ms + HOUR_MS and hour.active_s >= WHOLE * hour.covered_s > 0
        for hour in gpu.hours[-RECENT_SPAN_H:]
    )


def _cause(hours: Sequence[GpuHour], link: Link | None, limits: PcieBoundLimits) -> str | None:
    if link is None:
        return None
    if link.width is not None and link.max_width is not None and 0 < link.width < link.max_width:
        return "width"
    if (
        link.at_work
        and link.generation is not None
        and link.max_generation is not None
        and 0 < link.generation < link.max_generation
    ):
        return "generation"
    traffic, sm = mean(hours, "pcie_bytes_per_s"), mean(hours, "sm_active_ratio")
    full = _fill(traffic, link)
    if full is not None and full >= limits.min_link_ratio and sm is not None and sm < limits.max_sm_ratio:
        return "traffic"
    return None


def _fill(traffic: float | None, link: Link | None) -> float | None:
    carries = None if link is None else link.bytes_per_s
    return None if traffic is None or not carries else traffic / carries


def _doubt(
    hours: Sequence[GpuHour], link: Link | None, limits: PcieBoundLimits
) -> tuple[tuple[str, ...], str] | None:
    """Signs that cannot be judged with what is known."""
    traffic = mean(hours, "pcie_bytes_per_s")
    if link is None:
        if traffic is not None and traffic >= limits.min_link_ratio * PRACTICAL_X16_BYTES_PER_S[3]:
            why = f"PCIe moves {traffic / 1e9:.1f} GB/s, but what its link carries is not known."
            return ("pcie_link_max_generation", "pcie_link_width"), why
        return None
    full = _fill(traffic, link)
    if full is not None and full >= limits.min_link_ratio and mean(hours, "sm_active_ratio") is None:
        why = f"PCIe is {percent(full)} full, but whether the card waits meanwhile is not known."
        return ("sm_active_ratio",), why
    if link.replays is not None and link.replays >= limits.min_replays:
        why = (
            f"{link.replays:.0f} packets were replayed since the driver was loaded;"
            " whether they still grow is not recorded."
        )
        return ("pcie_replay_count over time",), why
    return None


def _engines(evidence: Evidence) -> Mapping[str, EngineEvidence]:
    """One engine by each of its GPUs."""
    return {uuid: engine for engine in evidence.engines for uuid in engine.gpu_uuids}


engine_on = OncePerEvidence(_engines)


def _offload(evidence: Evidence, gpu: GpuEvidence) -> str | None:
    """The engine's setting that moves weights or KV cache over the link; None without one."""
    engine = engine_on(evidence).get(gpu.gpu_uuid)
    if engine is None:
        return None
    off = {"", "0", "0.0", "none", "false", "-1", "99", "999"}
    for name in OFFLOAD:
        value = engine.identity.settings.get(name)
        if value is not None and value.strip().lower() not in off:
            return name
    return None


STATES: Final = {
    "width": "fewer lanes than it could have",
    "generation": "an older generation than it could run, at work",
    "traffic": "the link is full while the card waits",
}


def _finding(
    evidence: Evidence, gpu: GpuEvidence, hours: Sequence[GpuHour], link: Link | None, cause: str
) -> Finding:
    seen = digest(evidence, gpu)
    offload = _offload(evidence, gpu)
    grade, confidence = graded(
        Grade.A,
        "Link and traffic are the driver's own figures",
        span_h=seen.observed_h,
        covered_h=seen.covered_h,
    )
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause=cause,
        title=(
            f"Move less over the PCIe link of {label(gpu)}"
            if cause == "traffic"
            else f"Repair the PCIe link of {label(gpu)}"
        ),
        because=_because(hours, link, cause, offload),
        state=STATES[cause],
        confidence=confidence,
        grade=grade,
        effort=Effort.MEDIUM,
        risk=Risk.LOW if cause == "traffic" else Risk.MEDIUM,
        saving=Saving(),
        no_figure=NO_FIGURE,
        evidence=_facts(evidence, gpu, hours, link, offload),
        actions=_actions(evidence, gpu, cause, offload),
        wrong_when=(
            "The slot is wired with fewer lanes by design, the look was taken in a pause of the work, or the offload"
            " is wanted."
        ),
        not_claimed="Any speed-up: it depends on how much of the traffic is waited for.",
        gpu_uuids=(gpu.gpu_uuid,),
        chart=time_chart(
            (
                (h.hour_ms, None if h.pcie_bytes_per_s is None else h.pcie_bytes_per_s / 1e9)
                for h in gpu.hours[-24 * 14 :]
            ),
            "GB/s",
            None if link is None or link.bytes_per_s is None else link.bytes_per_s / 1e9,
        ),
    )


def _because(hours: Sequence[GpuHour], link: Link | None, cause: str, offload: str | None) -> str:
    if link is None:
        return STATES[cause]
    if cause == "width":
        return f"The link runs on {link.width} of {link.max_width} lanes."
    if cause == "generation":
        return f"At work the link runs at generation {link.generation}; card and slot could do {link.max_generation}."
    traffic = mean(hours, "pcie_bytes_per_s") or 0.0
    said = (
        f"PCIe moves {traffic / 1e9:.1f} GB/s over a link that carries about"
        f" {(link.bytes_per_s or 0.0) / 1e9:.0f} GB/s each way, and the multiprocessors are"
        f" {percent(mean(hours, 'sm_active_ratio') or 0.0)} active."
    )
    return said + little_work(hours) + ("" if offload is None else f" The engine's {offload} explains it.")


def _facts(
    evidence: Evidence, gpu: GpuEvidence, hours: Sequence[GpuHour], link: Link | None, offload: str | None
) -> dict[str, Any]:
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        **price_facts(gpu.price),
        **means(hours, "pcie_bytes_per_s", "sm_active_ratio", "busy_ratio"),
        **rounded(
            {
                "work_h": hours_of(hours),
                "link_bytes_per_s": None if link is None else link.bytes_per_s,
                "link_ratio": _fill(mean(hours, "pcie_bytes_per_s"), link),
                "offload_setting": offload,
            }
        ),
        **{name: value for name, value in gpu.health.items() if name.startswith("pcie_")},
    }


def _actions(evidence: Evidence, gpu: GpuEvidence, cause: str, offload: str | None) -> tuple[Action, ...]:
    look = Action(
        "Look at the link while the card works",
        f"nvidia-smi -i {gpu.gpu_uuid} --query-gpu=pcie.link.gen.gpucurrent,pcie.link.gen.max,"
        "pcie.link.width.current,pcie.link.width.max --format=csv",
    )
    if cause != "traffic":
        return (
            look,
            Action("Reseat card and riser at the next window, and see which lanes the slot has."),
            Action("Set the slot's generation in the BIOS to automatic, and update the board's firmware."),
        )
    if offload is not None:
        engine = engine_on(evidence)[gpu.gpu_uuid]
        flag = "--" + offload.replace("_", "-")
        text = (
            f"Start {engine.identity.kind} without {flag}, where the model fits; quantised weights make room."
        )
        return look, Action(text)
    return (
        look,
        Action("Keep data on the card, and copy from pinned memory while it computes", "pin_memory=True"),
        Action("See whether ranks talk over PCIe that could use NVLink", "nvidia-smi topo -m"),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R17",
    title="Repair or relieve PCIe links",
    needs=frozenset({"pcie_bytes_per_s", "pcie_link_width", "pcie_link_generation", "sm_active_ratio"}),
    limits=PcieBoundLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source(
            "NVML: device queries (PCIe link)",
            "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html",
        ),
    ),
    evaluate=evaluate,
)
