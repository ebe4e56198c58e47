"""What a job is, and the one place that runs one: recorded, logged, never taking its neighbours along."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from core.settings import Settings
from store.engine import session_scope
from store.queries import jobs as job_runs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Scheduled work: one function of ``now``, safe to run twice.

    Attributes:
        name: kebab-case; the key in ``job_run``.
        help: one sentence for people.
        cron: APScheduler's cron fields (UTC), e.g. ``{"minute": "*"}``; may depend on the settings.
        run: does the work; returns one sentence of what it did.
    """

    name: str
    help: str
    cron: Callable[[Settings], dict[str, str]]
    run: Callable[[Engine, Settings, int], str]


def run_job(job: Job, engine: Engine, settings: Settings, now_ms: int) -> bool:
    """Run one job and record it in ``job_run``; False when it failed (logged with its traceback)."""
    with session_scope(engine) as session:
        run_id = job_runs.start(session, job.name, now_ms)
    started_s = time.monotonic()
    try:
        message, ok = job.run(engine, settings, now_ms), True
    except Exception as error:
        log.exception("job failed", extra={"job": job.name})
        message, ok = f"{type(error).__name__}: {error}", False
    took_ms = round((time.monotonic() - started_s) * 1000)
    with session_scope(engine) as session:
        job_runs.finish(session, run_id, now_ms + took_ms, ok=ok, message=message)
    log.info("job done", extra={"job": job.name, "ok": ok, "took_ms": took_ms, "result": message})
    return ok
