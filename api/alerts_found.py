"""What is wrong now: silent agents, sick GPUs, stuck jobs, budgets at risk, new large recommendations.

Read from the state of the fleet, its events and what rules and budgets said already; never from raw samples. Each
judgement is made elsewhere: health by the rule ``unhealthy-gpu`` and the GPU's page, budgets by their forecast.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from sqlalchemy.orm import Session

from advisor.limits_book import limits_book
from advisor.rules import unhealthy_gpu
from api import formats
from api.links import gpu_path, recommendation_path
from api.pages.gpu_health import HealthBlock, alarms
from api.rec_row import sums
from api.resources import budgets
from api.resources.budgets import BudgetView
from api.resources.ledger_basis import is_current
from api.resources.overview import WAITING
from api.resources.pricing import price_lookup, spec_of
from api.resources.report import gpu_label
from api.resources.rule_settings import with_kept
from core.evidence import Evidence, GpuEvidence, Site, Window
from core.fault import Fault, FaultKind, Severity
from core.finding import Finding, Status
from core.ownership import Owner
from core.readings import GpuHealth
from core.samples import GpuEvent
from core.settings import Settings
from core.units import DAY_MS, MINUTE_MS
from core.user_budget import BudgetScope
from store.known import KnownGpu, known_gpus
from store.queries import events, host_samples, owners, recommendations
from store.queries.health import gpu_health
from store.queries.recommendations import Recommendation

RETIRED_MS: Final = 14 * DAY_MS
"""A host that is silent for longer was taken away, and people were told: twice, with the usual cool-down."""
LOOK_BACK_MS: Final = 30 * DAY_MS
"""Of events: as far as the rules look."""
KINDS: Final = ("xid", "lost", "stuck", "unavailable", "found")
IN_HAND: Final = frozenset({Status.CLAIMED, Status.SNOOZED, Status.DISMISSED})
"""Somebody knows of it, or an exclusion says so."""
OPEN: Final = frozenset({Status.OPEN, Status.REOPENED})
SEVERITIES: Final = {"reboot": Severity.BAD, "drain": Severity.BAD}
STUCK_RULE: Final = "stuck-job"


@dataclass(frozen=True, slots=True)
class Seen:
    """What faults are found in; read once."""

    now_ms: int
    gpus: Sequence[KnownGpu]
    health: Mapping[str, GpuHealth]
    events: Mapping[str, Sequence[GpuEvent]]
    agents_ms: Mapping[str, int]
    recommendations: Sequence[Recommendation]
    usd_per_h: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Found:
    """Faults that are there now.

    Attributes:
        unjudged: GPUs of silent hosts, of whose health nobody tells.
        is_budget_judged: false while the ledger is written anew, after a setting changed.
        waiting: recommendations that are open or in hand, by their key.
    """

    faults: tuple[Fault, ...]
    unjudged: frozenset[str]
    is_budget_judged: bool
    waiting: Mapping[int, Recommendation]


def find(session: Session, settings: Settings, now_ms: int) -> Found:
    """Every fault of the kinds that are watched, the worst first."""
    kinds = frozenset(FaultKind(kind) for kind in settings.alert_kinds)
    seen = read(session, settings, now_ms, kinds)
    silent = silent_hosts(seen, settings.alert_silent_minutes)
    faults: list[Fault] = []
    if FaultKind.SILENT in kinds:
        faults += of_silence(seen, silent)
    if FaultKind.GPU in kinds:
        faults += of_gpus(seen, with_kept(session, settings, now_ms))
    if FaultKind.STUCK in kinds:
        faults += [of_stuck(item) for item in seen.recommendations if _is_stuck(item)]
    # Without its stored days the ledger is added up from hours: minutes for a large fleet, every five minutes.
    is_budget_judged = FaultKind.BUDGET in kinds and is_current(session, settings)
    if is_budget_judged:
        faults += of_budgets(budgets.rows(session, settings, now_ms), _teams_by_project(session))
    if FaultKind.RECOMMENDATION in kinds:
        faults += of_recommendations(seen, settings.alert_recommendation_usd_month)
    faults.sort(key=lambda one: (-one.severity, -(one.figure or 0.0), one.kind, one.key))
    unjudged = frozenset(gpu.identity.gpu_uuid for gpu in seen.gpus if gpu.identity.host in silent)
    waiting = {item.id: item for item in seen.recommendations}
    return Found(tuple(faults), unjudged, is_budget_judged, waiting)


def read(session: Session, settings: Settings, now_ms: int, kinds: Collection[FaultKind]) -> Seen:
    """Rows of GPUs and hosts, events, and the recommendations that wait: nothing that grows with samples."""
    by_gpu: dict[str, list[GpuEvent]] = {}
    if FaultKind.GPU in kinds:
        window = Window(now_ms - LOOK_BACK_MS, now_ms + 1)
        for event in events.gpu_events(session, window, kinds=KINDS):
            by_gpu.setdefault(event.gpu_uuid, []).append(event)
    gpus = [gpu for gpu in known_gpus(session.connection()) if not gpu.identity.is_slice]
    return Seen(
        now_ms=now_ms,
        gpus=gpus,
        health=gpu_health(session) if FaultKind.GPU in kinds else {},
        events=by_gpu,
        agents_ms={
            host.identity.name: host.agent_seen_ms
            for host in host_samples.hosts(session)
            if host.agent_seen_ms is not None
        },
        recommendations=recommendations.listing(session, {*WAITING, *IN_HAND}),
        usd_per_h=_prices(session, settings, gpus, now_ms) if FaultKind.RECOMMENDATION in kinds else {},
    )


def _prices(session: Session, settings: Settings, gpus: Sequence[KnownGpu], now_ms: int) -> dict[str, float]:
    prices, found = price_lookup(session, settings), {}
    for gpu in gpus:
        spec = spec_of(gpu.identity)
        price = prices(gpu.identity, None if spec is None else spec.gpu_key, now_ms)
        if price is not None:
            found[gpu.identity.gpu_uuid] = float(price.usd_per_gpu_hour)
    return found


def silent_hosts(seen: Seen, minutes: int) -> dict[str, int]:
    """Hosts whose agent told nothing for so long, with the last that is known of each; not those taken away long ago.

    Only a host that an agent spoke for can fall silent; imported logs end, and that is no fault.
    """
    last = dict(seen.agents_ms)
    for gpu in seen.gpus:
        host, until = gpu.identity.host, gpu.seen_until_ms
        if host in last and until is not None:
            last[host] = max(last[host], until)
    return {
        host: at_ms for host, at_ms in last.items() if minutes * MINUTE_MS <= seen.now_ms - at_ms < RETIRED_MS
    }


def of_silence(seen: Seen, silent: Mapping[str, int]) -> Iterator[Fault]:
    """One fault a host; where no agent at all tells anything, one for the fleet."""
    talking = [
        host
        for host, at_ms in seen.agents_ms.items()
        if host not in silent and seen.now_ms - at_ms < RETIRED_MS
    ]
    gpus: dict[str, list[str]] = {}
    for gpu in seen.gpus:
        if gpu.identity.host in silent:
            gpus.setdefault(gpu.identity.host or "", []).append(gpu.identity.gpu_uuid)
    if len(silent) > 1 and not talking:
        yield Fault(
            key=f"{FaultKind.SILENT}:*",
            kind=FaultKind.SILENT,
            severity=Severity.BAD,
            title="No agent reports any more",
            detail=f"All {len(silent)} hosts are silent since {formats.minute(max(silent.values()))} UTC: look at the server"
            " that they deliver to, and at the network, before the hosts.",
            path="/fleet",
        )
        return
    for host, at_ms in sorted(silent.items()):
        count = len(gpus.get(host, ()))
        unseen = f"Its {count} GPU{'s' if count > 1 else ''} cannot be seen. " if count else ""
        yield Fault(
            key=f"{FaultKind.SILENT}:{host}",
            kind=FaultKind.SILENT,
            severity=Severity.WARN,
            title=f"The agent on {host} is silent",
            detail=f"Nothing came from it since {formats.minute(at_ms)} UTC. {unseen}"
            "Look there: systemctl status gpuwise-agent, or whether the host is up.",
            path=f"/fleet?host={quote(host)}",
            gpu_uuids=tuple(gpus.get(host, ())),
        )


def of_gpus(seen: Seen, settings: Settings) -> Iterator[Fault]:
    """GPUs that do not answer, or that the rule ``unhealthy-gpu`` finds; one fault a GPU."""
    sick = {
        finding.gpu_uuids[0]: finding
        for finding in _unhealthy(seen, settings)
        if finding.fingerprint not in _in_hand(seen.recommendations)
    }
    for gpu in seen.gpus:
        uuid = gpu.identity.gpu_uuid
        finding = sick.get(uuid)
        # The page's judgement: lost or hanging, and not back since.
        away = alarms(HealthBlock(None, (), ()), seen.events.get(uuid, ()))
        if finding is None and not away:
            continue
        label = gpu_label(gpu.identity)
        said = [one.text for one in away] + ([finding.because] if finding else [])
        severity = Severity.BAD if away or finding is None else SEVERITIES.get(finding.cause, Severity.WARN)
        yield Fault(
            key=f"{FaultKind.GPU}:{uuid}",
            kind=FaultKind.GPU,
            severity=severity,
            title=finding.title if finding else f"{label} does not answer",
            detail=" ".join(said),
            path=gpu_path(uuid),
            gpu_uuids=(uuid,),
        )


def _unhealthy(seen: Seen, settings: Settings) -> Iterator[Finding]:
    """What the rule finds in events and health alone, which is all that it asks for."""
    rule = unhealthy_gpu.RULE
    limits = limits_book(settings.rules).fleet.get(rule.id, rule.limits)
    told = [
        gpu
        for gpu in seen.gpus
        if gpu.identity.gpu_uuid in seen.health or gpu.identity.gpu_uuid in seen.events
    ]
    evidence = Evidence(
        now_ms=seen.now_ms,
        window=Window(seen.now_ms - LOOK_BACK_MS, seen.now_ms),
        gpus=tuple(_evidence_of(gpu, seen) for gpu in told),
        engines=(),
        site=Site(None, 1.0, 0.0, None, pays_for_power=False, billing="on_demand"),
    )
    return (one for one in rule.evaluate(evidence, limits) if isinstance(one, Finding))


def _evidence_of(gpu: KnownGpu, seen: Seen) -> GpuEvidence:
    uuid = gpu.identity.gpu_uuid
    health = seen.health.get(uuid)
    return GpuEvidence(
        identity=gpu.identity,
        gpu_key=None,
        hours=(),
        first_sample_ms=gpu.first_sample_ms or 0,
        last_sample_ms=gpu.seen_until_ms or 0,
        price=None,
        bare_idle_w=None,
        host_gpu_count=1,
        events=tuple(seen.events.get(uuid, ())),
        health={} if health is None else health.facts,
        health_ms=None if health is None else health.ts_ms,
    )


def _in_hand(found: Sequence[Recommendation]) -> set[str]:
    return {item.finding.fingerprint for item in found if item.status in IN_HAND}


def _is_stuck(item: Recommendation) -> bool:
    return item.finding.rule_id == STUCK_RULE and item.status in OPEN


def of_stuck(item: Recommendation) -> Fault:
    """A job that waits for itself."""
    finding = item.finding
    return Fault(
        key=f"{FaultKind.STUCK}:{finding.fingerprint}",
        kind=FaultKind.STUCK,
        severity=Severity.BAD,
        title=finding.title,
        detail=finding.because,
        path=recommendation_path(item.id),
        figure=float(len(finding.gpu_uuids)) or None,
        gpu_uuids=finding.gpu_uuids,
        recommendation_id=item.id,
    )


def of_recommendations(seen: Seen, least_usd_month: float) -> Iterator[Fault]:
    """Open recommendations worth so much a month; what has no price is no sum."""
    for item in seen.recommendations:
        usd = worth_usd_month(item.finding, seen.usd_per_h)
        if item.status in OPEN and usd is not None and usd >= least_usd_month and usd > 0:
            yield of_recommendation(item, usd)


def of_recommendation(item: Recommendation, usd_month: float) -> Fault:
    """One of them."""
    finding = item.finding
    first = sums(finding)[0]
    return Fault(
        key=f"{FaultKind.RECOMMENDATION}:{finding.fingerprint}",
        kind=FaultKind.RECOMMENDATION,
        severity=Severity.NOTE,
        title=finding.title,
        detail=f"Saves {first.figure} ({first.note}). {finding.because}",
        path=recommendation_path(item.id),
        figure=round(usd_month, 2),
        gpu_uuids=finding.gpu_uuids,
        recommendation_id=item.id,
    )


def worth_usd_month(finding: Finding, usd_per_h: Mapping[str, float]) -> float | None:
    """The larger of its cash, and its freed hours at the price of their GPUs; None where nothing has a price."""
    saving, found = finding.saving, []
    if saving.cash_usd_month is not None:
        found.append(saving.cash_usd_month.p50)
    rates = [usd_per_h[uuid] for uuid in finding.gpu_uuids if uuid in usd_per_h]
    if saving.capacity_gpu_h_month is not None and rates and len(rates) == len(finding.gpu_uuids):
        found.append(saving.capacity_gpu_h_month.p50 * sum(rates) / len(rates))
    return max(found, default=None)


def of_budgets(found: Sequence[BudgetView], teams_by_project: Mapping[str, set[str]]) -> Iterator[Fault]:
    """Budgets of this month that are exceeded, or will be as things go."""
    for one in found:
        if one.status not in {"over", "at_risk"}:
            continue
        is_over = one.status == "over"
        amount, spent = formats.money(one.amount_usd), formats.money(one.spent_usd)
        is_open = one.p50_usd is not None and not one.is_over
        expected = f", {formats.money(one.p50_usd)} expected by its end" if is_open else ""
        day = one.breaks_on or one.breaks_earliest
        breaks = f" At this pace it is exceeded on {day}." if day and not is_over else ""
        figure = one.spent_usd if one.p50_usd is None else one.p50_usd
        yield Fault(
            key=f"{FaultKind.BUDGET}:{one.id}:{one.month}",
            kind=FaultKind.BUDGET,
            severity=Severity.BAD if is_over else Severity.WARN,
            title=f"Budget {one.name} is {'exceeded' if is_over else 'at risk'}",
            detail=f"{spent} of {amount} spent in {one.month}{expected}.{breaks}",
            path="/budgets",
            figure=None if figure is None else float(figure),
            owner=_owner_of(one, teams_by_project),
        )


def _owner_of(one: BudgetView, teams_by_project: Mapping[str, set[str]]) -> Owner | None:
    """Whose budget it is; a project's name that several teams use is nobody's alone."""
    if one.scope_kind == BudgetScope.TEAM:
        return Owner(one.scope_value)
    teams = teams_by_project.get(one.scope_value, set()) if one.scope_kind == BudgetScope.PROJECT else set()
    return Owner(next(iter(teams)), one.scope_value) if len(teams) == 1 else None


def _teams_by_project(session: Session) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for rule in owners.listing(session):
        if rule.owner.project:
            found.setdefault(rule.owner.project, set()).add(rule.owner.team)
    return found
