"""How gpuwise itself is: freshness, what waits to be rolled up, the last run of each job."""

from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from core.clock import from_ms
from core.settings import Settings
from store import pending
from store.queries import jobs, meta
from store.queries.hours import bounds
from store.queries.jobs import JobRun

STALE_S: Final = 600.0
"""Ten minutes without a sample: no agent writes, or none reaches the database."""


@dataclass(frozen=True, slots=True)
class JobHealth:
    """The newest run of one job."""

    name: Annotated[str, about("Job.")]
    started_at: Annotated[datetime, about("When it started, UTC.")]
    finished_at: Annotated[datetime | None, about("When it ended; null: it runs, or was killed.")]
    ok: Annotated[bool | None, about("Whether it succeeded; null: not known yet.")]
    message: Annotated[str | None, about("What it did, or why it failed.")]


@dataclass(frozen=True, slots=True)
class Health:
    """gpuwise itself."""

    status: Annotated[str, about("ok; degraded when samples are stale or a job failed; empty without data.")]
    problems: Annotated[tuple[str, ...], about("What is wrong, one sentence each.")]
    version: Annotated[str, about("Version of gpuwise.")]
    simulated: Annotated[bool, about("The fleet is simulated.")]
    newest_sample_at: Annotated[datetime | None, about("End of the newest rolled-up sample, UTC.")]
    freshness_s: Annotated[float | None, about("Its age; null without data.")]
    rollup_pending: Annotated[int, about("Hours of GPUs and engines that wait for the roll-up.")]
    jobs: Annotated[tuple[JobHealth, ...], about("The newest run of every job.")]


def health(session: Session, settings: Settings, now_ms: int) -> Health:
    """Look at data and jobs; the current hour of every GPU always waits, that is no problem."""
    newest = bounds(session)
    freshness_s = None if newest is None else max(0.0, (now_ms - newest.to_ms) / 1000)
    runs = tuple(_job(run) for run in jobs.last_runs(session))
    problems = [f"job {run.name} failed: {run.message}" for run in runs if run.ok is False]
    if freshness_s is not None and freshness_s > STALE_S:
        problems.append(f"no sample for {freshness_s / 60:,.0f} min: check the agents")
    status = "degraded" if problems else "empty" if newest is None else "ok"
    return Health(
        status=status,
        problems=tuple(problems),
        version=own_version(),
        simulated=settings.simulated or meta.simulated(session),
        newest_sample_at=None if newest is None else from_ms(newest.to_ms),
        freshness_s=freshness_s,
        rollup_pending=pending.count(session.connection()),
        jobs=runs,
    )


def _job(run: JobRun) -> JobHealth:
    return JobHealth(
        name=run.name,
        started_at=from_ms(run.started_at_ms),
        finished_at=None if run.finished_at_ms is None else from_ms(run.finished_at_ms),
        ok=run.ok,
        message=run.message,
    )


def own_version() -> str:
    """Version of the installed package; 0 from an unpacked source."""
    try:
        return version("gpuwise")
    except PackageNotFoundError:
        return "0"
