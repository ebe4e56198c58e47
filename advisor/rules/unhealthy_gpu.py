"""A GPU reports a fault of its own: memory that cannot be repaired, a lost bus, a link error, a pending reset.

What it finds
    Cards with a fatal XID of the last days (48, 64, 79, 95 and what the driver calls unrecoverable), a failed or
    pending row remapping, a page retirement that waits, NVLink errors, or a recovery action that the driver asks for.
    XIDs that are usually the application's fault are not counted.

Why it costs
    A failing card stops jobs, or makes them wrong. What that is worth cannot be read from telemetry, so no money is
    named: this is about health, not saving.

When it is wrong
    The card was reset or replaced since and nobody has asked for its health again, or an XID of a broken program
    looks like one of the card. A single contained error is what error correction is for.

What to do
    Fatal: drain it, then reset it (79: reboot the host), and replace it when it comes back. Pending: reset at the next
    window. NVLink: look at the link and its neighbours first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from advisor.confidence import duration
from advisor.digest import digest
from advisor.facts import time_chart, window_facts
from advisor.fleet import gpu_subject, label
from advisor.gpu_work import unread
from advisor.model import Limits, Rule, Source, Verdict
from core.clock import iso
from core.evidence import Evidence, GpuEvidence
from core.finding import Action, Effort, Finding, Grade, NotEvaluated, Risk, Saving
from core.samples import GpuEvent
from core.units import DAY_MS, HOUR_MS

RULE_ID: Final = "unhealthy-gpu"
REBOOT_XIDS: Final = frozenset({79})
"""Fallen off the bus: only a reboot brings it back (R26)."""
FATAL_XIDS: Final = frozenset({48, 64, 95, 140, 143, 119, 120})
"""Double-bit or uncontained errors, failed remapping, firmware that does not answer: drain and reset (R26)."""
PENDING_XIDS: Final = frozenset({63, 94})
"""A repair was recorded, or an error was contained: reset at the next window (R26)."""
NVLINK_XIDS: Final = frozenset({74})
HEALTHY_ACTION: Final = "none"
NO_FIGURE: Final = "No figure: this is about health; what a failing card costs cannot be read from telemetry."
ORDER: Final = ("reboot", "drain", "reset", "link")


class UnhealthyGpuLimits(Limits):
    """Thresholds of ``unhealthy-gpu``."""

    recent_days: Annotated[float, Field(gt=0, le=90)] = 7.0
    """An XID older than this, with nothing since, is history."""
    max_health_age_h: Annotated[float, Field(gt=0, le=168)] = 24.0
    """Facts asked longer ago do not say what the card is now."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One fault: how bad (``ORDER``), and a sentence."""

    level: str
    text: str
    ts_ms: int | None = None


def evaluate(evidence: Evidence, limits: UnhealthyGpuLimits) -> Iterator[Verdict]:
    """Every GPU."""
    blind: list[GpuEvidence] = []
    for gpu in evidence.gpus:
        signs = _signs(evidence, gpu, limits)
        if signs:
            yield _finding(evidence, gpu, signs)
        elif not gpu.health and not gpu.events:
            blind.append(gpu)
        elif gpu.health and not _is_fresh(evidence, gpu, limits):
            age = "an unknown time" if gpu.health_ms is None else duration(_age_h(evidence, gpu.health_ms))
            why = f"Its health was last asked {age} before the end of the data: what it is now is not known."
            yield NotEvaluated(RULE_ID, gpu_subject(gpu), ("recent health",), why)
    why = "their health was never asked; the agent does, log files do not."
    yield from unread(RULE_ID, blind, ("row_remap_pending", "XID events"), why)


def _age_h(evidence: Evidence, at_ms: int) -> float:
    return max(0.0, (evidence.window.to_ms - at_ms) / HOUR_MS)


def _is_fresh(evidence: Evidence, gpu: GpuEvidence, limits: UnhealthyGpuLimits) -> bool:
    return gpu.health_ms is not None and _age_h(evidence, gpu.health_ms) <= limits.max_health_age_h


def _signs(evidence: Evidence, gpu: GpuEvidence, limits: UnhealthyGpuLimits) -> tuple[Sign, ...]:
    """All faults, the worst first."""
    fresh = _is_fresh(evidence, gpu, limits)
    found = [*_of_events(evidence, gpu, limits, fresh=fresh), *(_of_health(gpu) if fresh else ())]
    return tuple(sorted(found, key=lambda sign: ORDER.index(sign.level)))


def _of_health(gpu: GpuEvidence) -> Iterator[Sign]:
    health = gpu.health
    if health.get("row_remap_failed"):
        yield Sign(
            "drain", "A row remapping failed: its spare rows are used up and the card should be replaced."
        )
    if health.get("row_remap_pending"):
        yield Sign("reset", "A row remapping waits for a reset.")
    if health.get("retired_pages_pending"):
        yield Sign("reset", "A page retirement waits for a reset.")
    action = health.get("recovery_action")
    if action is not None and action != HEALTHY_ACTION:
        level = {"reboot": "reboot", "reset": "reset"}.get(str(action), "drain")
        yield Sign(level, f"The driver asks for a recovery action: {str(action).replace('_', ' ')}.")


def _of_events(
    evidence: Evidence, gpu: GpuEvidence, limits: UnhealthyGpuLimits, *, fresh: bool
) -> Iterator[Sign]:
    """The last of each XID of the last days; a pending repair that health no longer knows was done."""
    since_ms = evidence.window.to_ms - round(limits.recent_days * DAY_MS)
    last: dict[int, GpuEvent] = {}
    counts: dict[int, int] = {}
    for event in gpu.events:
        if event.kind == "xid" and event.code is not None and event.ts_ms >= since_ms:
            last[event.code] = event
            counts[event.code] = counts.get(event.code, 0) + 1
    for code, event in last.items():
        level = _level(code)
        if level is None or (code in PENDING_XIDS and fresh and _asked_after(gpu, event)):
            continue
        times = "once" if counts[code] == 1 else f"{counts[code]} times, last"
        yield Sign(level, f"XID {code} was reported {times} at {iso(event.ts_ms)}.", event.ts_ms)


def _asked_after(gpu: GpuEvidence, event: GpuEvent) -> bool:
    """Health was asked since, knows of remapping, and nothing waits any more."""
    return (
        gpu.health_ms is not None
        and gpu.health_ms > event.ts_ms
        and "row_remap_pending" in gpu.health
        and not gpu.health["row_remap_pending"]
    )


def _level(code: int) -> str | None:
    if code in REBOOT_XIDS:
        return "reboot"
    if code in FATAL_XIDS:
        return "drain"
    if code in PENDING_XIDS:
        return "reset"
    return "link" if code in NVLINK_XIDS else None


STATES: Final = {
    "reboot": "fallen off the bus",
    "drain": "failing",
    "reset": "waiting for a reset",
    "link": "with NVLink errors",
}
TITLES: Final = {
    "reboot": "Drain and reboot the host of",
    "drain": "Drain and reset",
    "reset": "Reset at the next window",
    "link": "Look at the NVLink of",
}


def _finding(evidence: Evidence, gpu: GpuEvidence, signs: tuple[Sign, ...]) -> Finding:
    worst = signs[0].level
    return Finding(
        rule_id=RULE_ID,
        subject=gpu_subject(gpu),
        cause=worst,
        title=f"{TITLES[worst]} {label(gpu)}",
        because=" ".join(sign.text for sign in signs),
        state=STATES[worst],
        confidence="High: the driver said so itself.",
        grade=Grade.A,
        effort=Effort.LOW if worst in {"reset", "link"} else Effort.MEDIUM,
        risk=Risk.MEDIUM,
        saving=Saving(),
        no_figure=NO_FIGURE,
        evidence=_facts(evidence, gpu, signs),
        actions=_actions(gpu, worst),
        wrong_when=(
            "The card was reset or replaced since, or a broken program caused the error: see whether it comes back"
            " under other work."
        ),
        not_claimed="What failed jobs and wrong results have cost.",
        gpu_uuids=(gpu.gpu_uuid,),
        stage="stop",
        chart=time_chart(((sign.ts_ms, 1.0) for sign in signs if sign.ts_ms is not None), "events", 1.0),
    )


def _facts(evidence: Evidence, gpu: GpuEvidence, signs: tuple[Sign, ...]) -> dict[str, Any]:
    xids = sorted({event.code for event in gpu.events if event.kind == "xid" and event.code is not None})
    told = (
        "ecc_uncorrected_count",
        "ecc_aggregate_uncorrected_count",
        "row_remap_uncorrected_count",
        "row_remap_pending",
        "row_remap_failed",
        "retired_pages_pending",
        "recovery_action",
    )
    return {
        **window_facts(evidence, digest(evidence, gpu).coverage),
        "sign_count": len(signs),
        "xids": xids,
        **({} if gpu.health_ms is None else {"health_at": iso(gpu.health_ms)}),
        **{name: gpu.health[name] for name in told if name in gpu.health},
    }


def _actions(gpu: GpuEvidence, worst: str) -> tuple[Action, ...]:
    look = Action("See what the card says of itself", f"nvidia-smi -q -d ECC,ROW_REMAPPER -i {gpu.gpu_uuid}")
    reset = Action(
        "Reset it once nothing runs on it; cards linked by NVLink are reset together",
        f"nvidia-smi --gpu-reset -i {gpu.gpu_uuid}",
    )
    drain = Action("Let its jobs end and give it no new ones (cordon the node, drain it in the scheduler).")
    if worst == "reboot":
        return look, drain, Action("Reboot the host; a reset does not reach a card that left the bus.")
    if worst == "link":
        return (
            look,
            Action("Count the errors of each link", f"nvidia-smi nvlink -e -i {gpu.gpu_uuid}"),
            Action("Reseat or replace the bridge or baseboard when one link keeps failing."),
        )
    if worst == "reset":
        return look, reset
    return (
        look,
        drain,
        reset,
        Action("Replace it when the error returns after a reset, or when remapping failed."),
    )


RULE: Final = Rule(
    id=RULE_ID,
    code="R26",
    title="Repair GPUs that report faults",
    needs=frozenset({"row_remap_pending", "row_remap_failed", "recovery_action", "xid"}),
    limits=UnhealthyGpuLimits(),
    effort=Effort.MEDIUM,
    risk=Risk.MEDIUM,
    sources=(
        Source("NVIDIA XID errors", "https://docs.nvidia.com/deploy/xid-errors/"),
        Source(
            "NVIDIA GPU memory error management",
            "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/",
        ),
    ),
    evaluate=evaluate,
)
