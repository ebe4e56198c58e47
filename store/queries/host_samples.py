"""Hosts as their agents describe them, with the newest sample of each; and one host's samples."""

from dataclasses import dataclass

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from core.evidence import Window
from core.readings import HostIdentity
from core.samples import HostSample
from store.models.host import HostRow
from store.models.host_sample import HostSampleRow
from store.rows import HOST_SAMPLE_COLUMNS, host_sample_of


@dataclass(frozen=True, slots=True)
class AgentHost:
    """A host.

    Attributes:
        identity: as its agent describes it; only a name where no agent runs.
        agent_id, agent_sequence, agent_seen_ms: the last delivery that was stored, and when it came; None without agent.
        latest: its newest sample; None without samples, or when that one was purged.
        first_seen_ms, last_seen_ms: start of the first and end of the newest of its host samples.
    """

    identity: HostIdentity
    agent_id: str | None
    agent_sequence: int | None
    agent_seen_ms: int | None
    first_seen_ms: int | None
    last_seen_ms: int | None
    latest: HostSample | None


def hosts(session: Session, name: str | None = None) -> list[AgentHost]:
    """Every host, or the one of a name, by name; two queries however long the history."""
    newest = select(*HOST_SAMPLE_COLUMNS).join(
        HostRow, and_(HostSampleRow.host_id == HostRow.id, HostSampleRow.ts_ms == HostRow.last_sample_ms)
    )
    every = select(HostRow.__table__).order_by(HostRow.name)
    if name is not None:
        newest, every = newest.where(HostRow.name == name), every.where(HostRow.name == name)
    latest = {row[0]: row for row in session.execute(newest)}
    found = session.execute(every)
    return [
        AgentHost(
            HostIdentity(row.name, row.cpu_count, row.memory_total_bytes, row.agent_version),
            row.agent_id,
            row.agent_sequence,
            row.agent_seen_ms,
            row.first_sample_ms,
            row.seen_until_ms,
            host_sample_of(row.name, latest[row.id]) if row.id in latest else None,
        )
        for row in found
    ]


def host_samples(session: Session, host: str, window: Window, limit: int | None = None) -> list[HostSample]:
    """Samples that start in the window, in order of time; ``limit`` keeps the first ones, to page on."""
    row = HostSampleRow
    host_id = select(HostRow.id).where(HostRow.name == host).scalar_subquery()
    statement = (
        select(*HOST_SAMPLE_COLUMNS)
        .where(row.host_id == host_id, row.ts_ms >= window.from_ms, row.ts_ms < window.to_ms)
        .order_by(row.ts_ms)
        .limit(limit)
    )
    return [host_sample_of(host, found) for found in session.execute(statement).all()]
