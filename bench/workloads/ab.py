"""Does the agent, or GPM, slow a load down? One decode loop runs on; the agent and a GPM probe come and go beside it.

Phases take turns (nothing, agent, GPM each second, nothing, …), so that heat and clocks drift through all of them alike.
"""

import json
import subprocess
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from bench.workloads.agent import ROOT, Agent, with_root
from bench.workloads.start import Running
from core.clock import now_ms

NOTHING, AGENT, GPM = "nothing", "agent", "gpm"
SETTLE_S: Final = 3.0
"""After a switch: the driver is opened or let go of, and nothing is counted."""


def run(
    agent: Agent, load: Running, uuid: str, python: str, *, rounds: int, phase_s: float
) -> dict[str, Any]:
    """Tokens per second by phase, and what the GPM probe says of its calls."""
    phases: list[tuple[str, int, int]] = []
    probes: list[dict[str, Any]] = []
    for kind in (NOTHING, AGENT, GPM) * rounds + (NOTHING,):
        if kind == AGENT:
            agent.resume()
        else:
            agent.pause()
        time.sleep(SETTLE_S)
        from_ms = now_ms()
        if kind == GPM:
            probes.append(_probe(uuid, python, phase_s))
        else:
            time.sleep(phase_s)
        phases.append((kind, from_ms, now_ms()))
    agent.resume()
    return {"phases": rates(phases, load.ticks), "probes": probes}


def rates(phases: Sequence[tuple[str, int, int]], ticks: Sequence[tuple[int, float]]) -> list[dict[str, Any]]:
    """Units per second within each phase, from the ticks that fall into it. Pure."""
    found = []
    for kind, from_ms, to_ms in phases:
        inside = [tick for tick in ticks if from_ms <= tick[0] <= to_ms]
        if len(inside) >= 2 and inside[-1][0] > inside[0][0]:
            seconds = (inside[-1][0] - inside[0][0]) / 1000
            found.append({"kind": kind, "per_s": (inside[-1][1] - inside[0][1]) / seconds})
    return found


def effect(phases: Sequence[dict[str, Any]], kind: str) -> tuple[float, float] | None:
    """Speed in ``kind`` over speed with nothing, median of the rounds, and half the spread of the quiet phases.

    Each phase is held against the mean of the quiet ones nearest before and after it. None: not measured. Pure.
    """
    ratios = []
    for at, phase in enumerate(phases):
        if phase["kind"] != kind:
            continue
        before = next((one["per_s"] for one in reversed(phases[:at]) if one["kind"] == NOTHING), None)
        after = next((one["per_s"] for one in phases[at + 1 :] if one["kind"] == NOTHING), None)
        quiet = [one for one in (before, after) if one]
        if quiet:
            ratios.append(phase["per_s"] / (sum(quiet) / len(quiet)))
    calm = [one["per_s"] for one in phases if one["kind"] == NOTHING]
    if not ratios or not calm:
        return None
    return median(ratios), (max(calm) - min(calm)) / 2 / median(calm)


def _probe(uuid: str, python: str, seconds: float) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-m", "bench.workloads.gpm_probe", "--uuid", uuid, "--seconds", str(seconds)],
        cwd=ROOT,
        env=with_root({}),
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        check=False,
    )
    if done.returncode != 0:
        return {"calls": 0, "why": done.stderr.strip()[-300:]}
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told
