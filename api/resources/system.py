"""gpuwise itself: what arrives from where, the agents' own cost, jobs, the database, what waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.jobs.schedule import JOBS, next_run_ms
from api.resources.health import Health, health
from api.resources.report_sum import ratio
from api.resources.scope import Scope
from core.units import DAY_MS, MINUTE_MS
from ledger.calendar import Calendar
from store.queries import fleet, host_samples, jobs, ledger_pending, mail, system
from store.queries.host_samples import AgentHost
from store.queries.jobs import JobRun
from store.queries.system import TableSize

SILENT_MS: Final = 3 * MINUTE_MS
"""An agent stores every 10 s and delivers at least every minute; three minutes without anything is silence."""
DAYS: Final = 14


@dataclass(frozen=True, slots=True)
class HostState:
    """One host: what arrives from it and what its agent costs it.

    Attributes:
        newest_ms: end of the newest sample of its GPUs; None: none ever. lag_ms: its age. is_silent: older than the fleet allows.
        agent: as it describes itself; None where samples come without one (imports, Prometheus).
        by_day: share of samples received on each of ``System.days``; None: not priced yet, or nothing known of the host.
    """

    host: str | None
    gpus: int
    newest_ms: int | None
    lag_ms: int | None
    is_silent: bool
    agent: AgentHost | None
    by_day: tuple[float | None, ...]

    def figure(self, name: str) -> float | None:
        """A figure of the agent's newest sample."""
        latest = None if self.agent is None else self.agent.latest
        return None if latest is None else latest.values.get(name)


@dataclass(frozen=True, slots=True)
class JobState:
    """A job: its newest run (None: never yet) and its next in a running jobs process."""

    name: str
    help: str
    last: JobRun | None
    next_ms: int | None


@dataclass(frozen=True, slots=True)
class System:
    """Everything about gpuwise itself.

    Attributes:
        days: accounting days of ``HostState.by_day``, oldest first.
        waiting: what waits, by what it waits for.
        oldest_sample_ms, oldest_hour_ms: how far back the database goes.
    """

    health: Health
    hosts: tuple[HostState, ...]
    days: tuple[str, ...]
    jobs: tuple[JobState, ...]
    database_bytes: int | None
    tables: tuple[TableSize, ...]
    oldest_sample_ms: int | None
    oldest_hour_ms: int | None
    waiting: Mapping[str, int]
    revision: str | None


def read_system(scope: Scope) -> System:
    """Look at everything; a few dozen rows a table, and one a host."""
    session = scope.session
    oldest_sample, oldest_hour = system.oldest_ms(session)
    own = health(session, scope.settings, scope.now_ms)
    last = {run.name: run for run in jobs.last_runs(session)}
    days = Calendar(scope.settings.accounting_time_zone).days(
        scope.now_ms - (DAYS - 1) * DAY_MS, scope.now_ms + 1
    )
    found = system.received(session, days[0].start_ms, days[-1].to_ms)
    shares: dict[tuple[str | None, str], float | None] = {}
    keys = {span.start_ms: span.key for span in days}
    for one in found:
        if one.day_ms in keys:
            shares[one.host, keys[one.day_ms]] = ratio(one.covered_ms, one.known_ms)
    return System(
        health=own,
        hosts=_hosts(scope, [span.key for span in days], shares),
        days=tuple(span.key for span in days),
        jobs=tuple(
            JobState(job.name, job.help, last.get(job.name), next_run_ms(job, scope.settings, scope.now_ms))
            for job in JOBS
        ),
        database_bytes=system.database_bytes(session),
        tables=tuple(system.table_sizes(session)),
        oldest_sample_ms=oldest_sample,
        oldest_hour_ms=oldest_hour,
        waiting={
            "hours to be rolled up": own.rollup_pending,
            "GPU-days to be priced": ledger_pending.count(session),
            "messages to be sent": mail.open_count(session),
        },
        revision=system.revision(session),
    )


def _hosts(
    scope: Scope, days: Sequence[str], shares: Mapping[tuple[str | None, str], float | None]
) -> tuple[HostState, ...]:
    """Hosts with GPUs or an agent; the silent ones first, then by how old their newest sample is."""
    agents = {one.identity.name: one for one in host_samples.hosts(scope.session)}
    with_gpus = {one.host: one for one in fleet.hosts(scope.session)}
    names = list(with_gpus) + [
        name
        for name, one in agents.items()
        if name not in with_gpus and (one.agent_seen_ms or one.last_seen_ms)
    ]
    newest = {
        name: max(
            (
                ms
                for ms in (
                    with_gpus[name].last_seen_ms if name in with_gpus else None,
                    agents[name].last_seen_ms if name in agents else None,
                )
                if ms is not None
            ),
            default=None,
        )
        for name in names
    }
    found = []
    for name in names:
        at = newest[name]
        lag = None if at is None else max(0, scope.now_ms - at)
        found.append(
            HostState(
                host=name,
                gpus=len(with_gpus[name].gpu_uuids) if name in with_gpus else 0,
                newest_ms=at,
                lag_ms=lag,
                is_silent=lag is None or lag > SILENT_MS,
                agent=agents.get(name or ""),
                by_day=tuple(shares.get((name, day)) for day in days),
            )
        )
    return tuple(sorted(found, key=lambda one: (not one.is_silent, -(one.lag_ms or 0), one.host or "~")))
