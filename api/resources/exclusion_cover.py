"""What an exclusion covers now: GPUs and engines of the fleet, and recommendations that are open about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Final

from sqlalchemy.orm import Session

from advisor.site_run import Part
from api.resources.columns import about
from api.resources.evidence import fleet_reader
from api.resources.ownership import owner_lookup
from api.resources.scope import Scope, scope_of
from core.clock import to_ms
from core.finding import Status
from core.readings import GpuIdentity
from core.rule_settings import Exclusion, Selector
from core.settings import Settings
from store.queries import recommendations
from store.queries.chunks import Chunk
from store.queries.evidence import fleet_chunks
from store.queries.recommendations import Recommendation

OPEN: Final = (Status.OPEN, Status.REOPENED)
"""What a run of the rules sets aside: on what is claimed, somebody is at work."""


@dataclass(frozen=True, slots=True)
class CoveredRecommendation:
    """A recommendation under an exclusion."""

    id: Annotated[int, about("Its number.")]
    rule_id: Annotated[str, about("Of which rule.")]
    title: Annotated[str, about("What to do.")]
    subject: Annotated[str, about("What it is about, for people.")]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an exclusion covers, by the last 30 days of data, as a run of the rules sees them."""

    gpu_count: Annotated[int, about("GPUs of it.")]
    known_gpu_count: Annotated[int, about("GPUs of the whole fleet.")]
    engine_count: Annotated[int, about("Engines of it.")]
    gpu_uuids: Annotated[Sequence[str], about("Those GPUs.")]
    recommendation_count: Annotated[int, about("Open recommendations that it sets aside.")]
    recommendations: Annotated[Sequence[CoveredRecommendation], about("Those.")]


def coverage(session: Session, settings: Settings, now_ms: int, given: Exclusion) -> Coverage:
    """By the very code with which a run of the rules decides it."""
    scope = scope_of(session, settings, now_ms)
    part = Part(given.selectors, owner_lookup(session))
    known = _gather(scope, part, given.selectors)
    found = [
        item
        for item in recommendations.listing(session, OPEN, brief=True)
        if given.rule_id in {None, item.finding.rule_id}
        and part.holds(item.finding.subject, item.finding.gpu_uuids)
    ]
    uuids = sorted(id_ for kind, id_ in part.subjects if kind == "gpu")
    return Coverage(
        gpu_count=len(uuids),
        known_gpu_count=known,
        engine_count=sum(kind == "engine" for kind, _ in part.subjects),
        gpu_uuids=uuids,
        recommendation_count=len(found),
        recommendations=[
            CoveredRecommendation(
                item.id,
                item.finding.rule_id,
                item.finding.title,
                item.finding.subject.label or item.finding.subject.id,
            )
            for item in found
        ],
    )


def waiting_under(session: Session, given: Exclusion) -> list[Recommendation]:
    """Recommendations that this exclusion set aside: snoozed to its end, in its words."""
    return [
        item
        for item in recommendations.listing(session, [Status.SNOOZED], brief=True)
        if item.snoozed_until_ms == to_ms(given.until) and item.note == given.sentence
    ]


def _gather(scope: Scope, part: Part, selectors: Sequence[Selector]) -> int:
    """Put what the selectors choose into ``part``; returns how many GPUs there are."""
    chunks = fleet_chunks(scope.session)
    reader = fleet_reader(scope)
    for chunk in chunks:
        named = _named(chunk, selectors)
        seen = reader.read(named) if named.gpus or named.engines else None
        if seen is not None:
            part.add(seen)
    return sum(not gpu.identity.is_slice for chunk in chunks for gpu in chunk.gpus)


def _named(chunk: Chunk, selectors: Sequence[Selector]) -> Chunk:
    """What of a chunk may be chosen as far as names tell: reading who held what, and what served, takes a while."""
    engines_on: dict[str, list[str]] = {}
    for engine in chunk.engines:
        for uuid in engine.join.gpu_uuids:
            engines_on.setdefault(uuid, []).append(engine.identity.engine)

    def may_fit(one: Selector, gpu: GpuIdentity) -> bool:
        names = {
            "host": [] if gpu.host is None else [gpu.host],
            "gpu": [gpu.gpu_uuid],
            "engine": engines_on.get(gpu.gpu_uuid, []),
        }
        return one.kind not in names or any(fnmatchcase(name, one.pattern) for name in names[one.kind])

    gpus = [gpu for gpu in chunk.gpus if all(may_fit(one, gpu.identity) for one in selectors)]
    uuids = {gpu.identity.gpu_uuid for gpu in gpus}
    engines = [
        engine
        for engine in chunk.engines
        if not uuids.isdisjoint(engine.join.gpu_uuids)
        or all(one.kind == "engine" and fnmatchcase(engine.identity.engine, one.pattern) for one in selectors)
    ]
    return replace(chunk, gpus=gpus, engines=engines, hosts=[])
