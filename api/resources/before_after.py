"""Before and after of one finding, from the store's hours: what a verification compares, and what else happened."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy.orm import Session

from advisor.verification import LONGEST_MS, verify
from advisor.verify.outcome import ENGINE_LOADS, latencies, ledger_of, load_hours, released
from advisor.verify.series import Case, Happening, LoadHour
from advisor.waterfall import EXCHANGES
from api.resources.pricing import price_lookup
from catalog.gpu_specs import resolve
from core.evidence import Window
from core.finding import Finding, Range, Status
from core.hours import EngineHour
from core.settings import Settings
from core.verification import Ledger, Verdict, Verification
from store.queries import events, fleet, hours, recommendations
from store.queries.fleet import FleetEngine, FleetGpu

RESETS: Final = frozenset({"driver", "mig", "mode", "model", "precision"})
"""Events that make before and after two different machines; a new power limit may be the action itself."""
IS_ACTION: Final = {"quantization-candidate": frozenset({"precision"})}
"""By rule: of these, what it tells people to do."""
MOST_PEERS: Final = 32
"""More neighbours make the control no better."""


def compare(
    session: Session, settings: Settings, now_ms: int, finding: Finding, acted_ms: int
) -> Verification:
    """Before and after of one finding's GPUs, from the store's hours."""
    ledger = ledger_of(finding)
    data = hours.bounds(session)
    if ledger is None:
        why = finding.no_figure or "it claimed none"
        return Verification(Verdict.NOT_MEASURABLE, f"There is no saving to be measured: {why}")
    claimed: Range = getattr(finding.saving, ledger.field)
    if data is None or not finding.gpu_uuids:
        return Verification(
            Verdict.NOT_MEASURABLE, "No GPU of it is known to the store.", ledger, None, claimed.p50
        )
    if ledger is Ledger.CASH and finding.rule_id == EXCHANGES:
        return Verification(
            Verdict.NOT_MEASURABLE,
            "What the cheaper card costs is not seen on the dearer one's GPUs: compare the two invoices.",
            ledger,
            None,
            claimed.p50,
        )
    until_ms = min(now_ms, data.to_ms)
    gpus = fleet.gpus(session)
    engines = engines_of(session, finding)
    treated = set(finding.gpu_uuids).union(*(engine.gpu_uuids for engine in engines))
    if ledger is Ledger.CASH or (ledger is Ledger.CAPACITY and finding.stage in {"stop", "schedule"}):
        treated = set(finding.gpu_uuids)
    window = Window(acted_ms - LONGEST_MS, min(until_ms, acted_ms + LONGEST_MS))
    engine_hours = _hours_of(session, window, engines)
    prices = _prices(session, settings, gpus, acted_ms)
    last_seen = {
        gpu.identity.gpu_uuid: gpu.last_seen_ms
        for gpu in gpus
        if gpu.identity.gpu_uuid in treated and gpu.last_seen_ms is not None
    }
    gone = released(last_seen, acted_ms, until_ms) if ledger is Ledger.CASH else None
    series, names = load_hours(
        hours.gpu_hours(session, window, treated),
        engine_hours,
        finding=finding,
        ledger=ledger,
        price_of=prices,
        released_ms=gone,
    )
    peers, peer_names = _peers(
        session,
        finding,
        ledger,
        gpus=gpus,
        treated=treated,
        window=window,
        by_engine=names == ENGINE_LOADS,
    )
    return verify(
        Case(
            ledger=ledger,
            predicted_p50=claimed.p50,
            action_ms=acted_ms,
            until_ms=until_ms,
            hours=series,
            load_names=names,
            peers=peers,
            peer_load_names=peer_names,
            happenings=_happenings(session, finding, gpus, treated, window),
            moved=_moved(finding, engines),
            latencies=latencies(engine_hours),
        )
    )


def engines_of(session: Session, finding: Finding) -> list[FleetEngine]:
    """The finding's engine, those on its GPUs, and those that serve the same model: they share its traffic."""
    every = fleet.engines(session)
    own = [
        engine
        for engine in every
        if set(engine.gpu_uuids) & set(finding.gpu_uuids)
        or (finding.subject.kind, finding.subject.id) == ("engine", engine.identity.engine)
    ]
    models = {engine.identity.model for engine in own if engine.identity.model is not None}
    return [engine for engine in every if engine in own or engine.identity.model in models]


def _prices(session: Session, settings: Settings, gpus: Sequence[FleetGpu], at_ms: int) -> dict[str, float]:
    """Dollars of a GPU-hour on the day of the action, before and after alike: a new price is no saving."""
    lookup = price_lookup(session, settings)
    found = {}
    for gpu in gpus:
        spec = resolve(gpu.identity.model, gpu.identity.memory_total_bytes) if gpu.identity.model else None
        price = lookup(gpu.identity, None if spec is None else spec.gpu_key, at_ms)
        if price is not None:
            found[gpu.identity.gpu_uuid] = float(price.usd_per_gpu_hour)
    return found


def _happenings(
    session: Session, finding: Finding, gpus: Sequence[FleetGpu], treated: Collection[str], window: Window
) -> list[Happening]:
    """What makes before and after two machines, by time."""
    kinds = RESETS - IS_ACTION.get(finding.rule_id, frozenset())
    found = [
        Happening(one.ts_ms, one.message)
        for one in events.gpu_events(session, window)
        if one.gpu_uuid in treated and one.kind in kinds
    ]
    found += _exchanged_cards(gpus, treated, window)
    return sorted(set(found), key=lambda one: (one.at_ms, one.sentence))


def _exchanged_cards(
    gpus: Sequence[FleetGpu], treated: Collection[str], window: Window
) -> Iterator[Happening]:
    """Cards that came into the place of a treated one: same host, same index, another UUID."""
    places = {
        (gpu.identity.host, gpu.identity.index): gpu
        for gpu in gpus
        if gpu.identity.gpu_uuid in treated and not gpu.identity.is_slice
    }
    for gpu in gpus:
        one, since_ms = gpu.identity, gpu.first_seen_ms
        if one.host is None or one.index is None or one.is_slice or one.gpu_uuid in treated:
            continue
        old = places.get((one.host, one.index))
        if old is None or since_ms is None or since_ms <= (old.first_seen_ms or 0):
            continue
        if window.from_ms <= since_ms < window.to_ms:
            yield Happening(
                since_ms,
                f"GPU {one.index} on {one.host} is another card: {one.model or one.gpu_uuid} ({one.gpu_uuid}) instead of"
                f" {old.identity.model or old.identity.gpu_uuid} ({old.identity.gpu_uuid}).",
            )


def _moved(finding: Finding, engines: Sequence[FleetEngine]) -> str | None:
    """That the engine of the finding runs on other cards now; None: it does not, or nobody knows where it runs."""
    for engine in engines:
        name = engine.identity.engine
        if engine.join != "process":
            continue
        elsewhere = set(engine.gpu_uuids) - set(finding.gpu_uuids)
        if finding.subject.kind == "engine" and finding.subject.id == name and elsewhere:
            return (
                f"Engine {name} runs on {', '.join(sorted(elsewhere))} now, on which it was not found: before and after"
                " are different cards."
            )
    return None


def _peers(
    session: Session,
    finding: Finding,
    ledger: Ledger,
    *,
    treated: Collection[str],
    gpus: Sequence[FleetGpu],
    window: Window,
    by_engine: bool,
) -> tuple[list[LoadHour], tuple[str, ...]]:
    """Untreated cards of the same model whose recommendations nobody acted on, together, and what their load is.

    Where the treated are compared by what their engines served (``by_engine``), so are the peers, as far as they serve.
    """
    if ledger is Ledger.CASH:
        return [], ()
    models = {gpu.identity.model for gpu in gpus if gpu.identity.gpu_uuid in treated}
    acted = {
        uuid
        for one in recommendations.listing(session, [Status.DONE, Status.VERIFIED, Status.CLAIMED])
        for uuid in one.finding.gpu_uuids
    }
    free = [
        gpu.identity.gpu_uuid
        for gpu in gpus
        if gpu.identity.model in models
        and gpu.identity.gpu_uuid not in treated
        and gpu.identity.gpu_uuid not in acted
        and not gpu.identity.is_slice
    ]
    engines = _engines_within(session, free) if by_engine else []
    on_engines = {uuid for engine in engines for uuid in engine.gpu_uuids}
    chosen = sorted(on_engines) if engines else free[:MOST_PEERS]
    if not chosen:
        return [], ()
    return load_hours(
        hours.gpu_hours(session, window, chosen),
        _hours_of(session, window, engines),
        finding=finding,
        ledger=ledger,
        price_of={},
    )


def _engines_within(session: Session, gpu_uuids: Collection[str]) -> list[FleetEngine]:
    """Engines with all of their GPUs among these, as many as ``MOST_PEERS`` GPUs hold."""
    allowed, found, taken = set(gpu_uuids), [], set[str]()
    for engine in fleet.engines(session):
        own = set(engine.gpu_uuids)
        if own and own <= allowed and len(taken | own) <= MOST_PEERS:
            found.append(engine)
            taken |= own
    return found


def _hours_of(session: Session, window: Window, engines: Iterable[FleetEngine]) -> list[EngineHour]:
    return [
        hour for engine in engines for hour in hours.engine_hours(session, window, engine.identity.engine)
    ]
