"""One finding for a host where a rule says the same of every GPU: a node is handed back once, not eight times.

Only of rules that say how they speak of a whole host (``Rule.of_host``), only where all of its GPUs are concerned, and
never over somebody's head: a finding on which people took a step stays one of its own, and so do its neighbours.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from advisor.model import OfHost, Rule
from advisor.roster import Roster
from core.chart import PackedChart
from core.finding import Action, Effort, Finding, Grade, Risk, Saving, Subject

log = logging.getLogger(__name__)


def merged(
    findings: Sequence[Finding], roster: Roster, rules: Sequence[Rule], followed: Collection[str] = ()
) -> list[Finding]:
    """The findings, those on all GPUs of one host as one, in the place of the first of them.

    Args:
        findings: of one run. roster: its GPUs. rules: that made them.
        followed: fingerprints of findings on which people took a step.
    """
    speaks = {rule.id: rule.of_host for rule in rules if rule.of_host is not None}
    on_host: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        host = roster.host_of(finding.subject.id) if finding.subject.kind == "gpu" else None
        if host is not None and finding.rule_id in speaks and finding.fingerprint not in followed:
            on_host[finding.rule_id, finding.cause, host].append(finding)
    one_for: dict[int, Finding | None] = {}
    for (rule_id, _, host), parts in on_host.items():
        if len(parts) != roster.count_on(host) or len(parts) < 2:
            continue
        try:
            whole = _whole(speaks[rule_id], host, parts)
        except Exception:
            # As where a rule judges: its words fail, its findings stay.
            log.exception("rule failed", extra={"rule_id": rule_id, "subject": host})
            continue
        if whole is not None:
            one_for |= dict.fromkeys(map(id, parts))
            one_for[id(parts[0])] = whole
    found = (one_for.get(id(finding), finding) for finding in findings)
    return [finding for finding in found if finding is not None]


def _whole(of_host: OfHost, host: str, parts: Sequence[Finding]) -> Finding | None:
    """What its GPUs save together, with the least sure and the riskiest of what is said of them; None: no such thing."""
    ordered = sorted(parts, key=lambda part: (len(part.subject.label), part.subject.label, part.subject.id))
    first = ordered[0]
    worst = max(ordered, key=lambda part: list(Grade).index(part.grade))
    words = of_host(host, ordered)
    if words is None:
        return None
    return Finding(
        rule_id=first.rule_id,
        subject=Subject("host", host, host),
        cause=first.cause,
        title=words[0],
        because=words[1],
        state=_each_once(part.state for part in ordered),
        confidence=worst.confidence,
        grade=worst.grade,
        effort=max((part.effort for part in ordered), key=list(Effort).index),
        risk=max((part.risk for part in ordered), key=list(Risk).index),
        saving=Saving.total(part.saving for part in ordered),
        evidence=_evidence(ordered),
        actions=_actions(ordered),
        wrong_when=_each_once(part.wrong_when for part in ordered),
        not_claimed=_each_once(part.not_claimed for part in ordered),
        no_figure=_each_once(part.no_figure or "" for part in ordered) or None,
        gpu_uuids=tuple(dict.fromkeys(uuid for part in ordered for uuid in part.gpu_uuids)),
        stage=first.stage,
        chart=_chart([part.chart for part in ordered]),
    )


def _each_once(sentences: Iterable[str]) -> str:
    return " ".join(one for one in dict.fromkeys(sentences) if one)


def _evidence(parts: Sequence[Finding]) -> dict[str, Any]:
    """What is the same of all GPUs once; what differs by GPU, in the order of ``gpu_uuids``; the least coverage."""
    names = dict.fromkeys(name for part in parts for name in part.evidence)
    found: dict[str, Any] = {}
    for name in names:
        values = [part.evidence.get(name) for part in parts]
        found[name] = values[0] if all(value == values[0] for value in values) else values
    found["coverage_ratio"] = min(part.evidence["coverage_ratio"] for part in parts)
    return found | {"gpu_count": len(parts), "gpu_uuids": [part.subject.id for part in parts]}


def _actions(parts: Sequence[Finding]) -> tuple[Action, ...]:
    """Steps that are said of all GPUs once, with one command for them; others with the names of their GPUs."""
    said: dict[str, list[tuple[Subject, str | None]]] = {}
    for part in parts:
        for action in part.actions:
            said.setdefault(action.text, []).append((part.subject, action.command))
    found = []
    for text, uses in said.items():
        whose = "" if len(uses) == len(parts) else f"{', '.join(gpu.label for gpu, _ in uses)}: "
        found.append(Action(f"{whose}{text}", _command(uses)))
    return tuple(found)


def _command(uses: Sequence[tuple[Subject, str | None]]) -> str | None:
    """One command for all GPUs where only their UUIDs tell theirs apart (nvidia-smi takes a list), else each its own."""
    known = [(gpu.id, command) for gpu, command in uses if command is not None]
    alike = {command.replace(uuid, "{}") for uuid, command in known}
    if len(known) > 1 and len(alike) == 1 and (one := next(iter(alike))).count("{}") == 1:
        return one.replace("{}", ",".join(uuid for uuid, _ in known))
    return "\n".join(dict.fromkeys(command for _, command in known)) or None


def _chart(charts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The mean over the GPUs at every point that one of them has."""
    points: dict[Any, list[float]] = defaultdict(list)
    for chart in charts:
        for x, value in chart.get("series", ()):
            points[x].append(value)
    means = {x: round(fsum(values) / len(values), 4) for x, values in sorted(points.items())}
    first = charts[0]
    if isinstance(first, PackedChart):
        return first.with_points(list(means), list(means.values()))
    return {**first, "series": list(map(list, means.items()))} if first else first
