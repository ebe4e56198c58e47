"""The jobs process: APScheduler over the explicit list of jobs. One of it at a time per database."""

import logging
import signal
from types import FrameType
from typing import Final

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BlockingScheduler
from sqlalchemy import Engine

from advisor.limits_book import limits_book
from api.jobs.advice import ADVICE
from api.jobs.ledger import LEDGER
from api.jobs.model import Job, run_job
from api.jobs.roll_up import ROLL_UP
from api.jobs.schedule import JOBS, trigger
from core.clock import now_ms
from core.errors import GpuwiseError
from core.settings import Settings
from store.engine import make_engine
from store.lock import jobs_lock
from store.schema import ensure_ready

log = logging.getLogger(__name__)

AT_START: Final = (ROLL_UP, LEDGER, ADVICE)
"""Run once when the process starts, so that a new installation does not wait an hour for its first advice."""


def by_name(name: str) -> Job:
    """The job of that name. Raises ``GpuwiseError`` naming the ones there are."""
    for job in JOBS:
        if job.name == name:
            return job
    raise GpuwiseError(f"there is no job {name!r}: the jobs are {', '.join(job.name for job in JOBS)}")


def run_once(settings: Settings, job: Job) -> bool:
    """Run one job now, beside a running jobs process too (jobs are safe to run twice)."""
    ensure_ready(settings.database_url)
    return run_job(job, make_engine(settings.database_url), settings, now_ms())


def run(settings: Settings) -> int:
    """Run the schedule until SIGTERM.

    Raises:
        GpuwiseError: another jobs process holds this database.
    """
    limits_book(settings.rules)
    ensure_ready(settings.database_url)
    engine = make_engine(settings.database_url)
    with jobs_lock(engine) as held:
        if not held:
            raise GpuwiseError(
                "another gpuwise jobs process works on this database: stop it, or let it do the work"
            )
        for job in AT_START:
            run_job(job, engine, settings, now_ms())
        _schedule(engine, settings).start()
    return 0


def _schedule(engine: Engine, settings: Settings) -> BlockingScheduler:
    # One thread: jobs write, and SQLite has one writer; a long roll-up delays the next job, it does not fight it.
    scheduler = BlockingScheduler(
        executors={"default": ThreadPoolExecutor(1)},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": 3600},
        timezone="UTC",
    )
    for job in JOBS:
        scheduler.add_job(
            _tick, trigger(job, settings), args=(job, engine, settings), id=job.name, name=job.help
        )

    def stop(_number: int, _frame: FrameType | None) -> None:
        if scheduler.running:  # a second SIGTERM during the end is no error
            scheduler.shutdown(wait=False)

    signal.signal(signal.SIGTERM, stop)
    return scheduler


def _tick(job: Job, engine: Engine, settings: Settings) -> None:
    run_job(job, engine, settings, now_ms())
