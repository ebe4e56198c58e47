"""The system page: silent hosts, failed jobs, shares of samples received, on both databases and on an empty one."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.jobs.ledger import LEDGER
from api.jobs.schedule import JOBS, next_run_ms
from api.pages.system import days_strip, headline
from api.resources.scope import scope_of
from api.resources.system import System, read_system
from core.settings import Settings
from core.units import HOUR_MS
from store.engine import make_engine, session_scope
from store.queries import jobs
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for


@pytest.fixture
def session(ready_database: str) -> Iterator[Session]:
    """The small fleet, priced."""
    fill(ready_database)
    engine = make_engine(ready_database)
    LEDGER.run(engine, settings_for(ready_database), NOW)
    with session_scope(engine) as opened:
        yield opened


def seen(session: Session, url: str, now_ms: int = NOW) -> System:
    return read_system(scope_of(session, settings_for(url), now_ms))


def test_a_host_that_stopped_sending_is_silent_and_comes_first(session: Session, ready_database: str) -> None:
    now = seen(session, ready_database)
    assert not now.hosts[-1].is_silent
    later = seen(session, ready_database, NOW + HOUR_MS)
    assert all(host.is_silent for host in later.hosts)
    assert headline(later) == "Nothing arrives: every host is silent"
    lags = [host.lag_ms or 0 for host in later.hosts]
    assert lags == sorted(lags, reverse=True)


def test_shares_of_a_day_are_those_of_the_ledger_and_days_before_are_not_known(
    session: Session, ready_database: str
) -> None:
    found = seen(session, ready_database)
    shares = {host.host: host.by_day for host in found.hosts}
    assert found.days[-1] == "2026-10-05"
    assert shares["h1"][-1] == pytest.approx(11 / 12)
    assert {share for shares_ in shares.values() for share in shares_[:-1]} == {None}
    strip = days_strip(found.hosts[0], found.days)
    assert strip.count("<rect") == len(found.days)
    assert "not known" in strip


def test_a_failed_job_is_said_with_its_sentence(session: Session, ready_database: str) -> None:
    run = jobs.start(session, "advice", NOW)
    jobs.finish(session, run, NOW + 2_000, ok=False, message="StoreError: <b>the disk is full</b>")
    found = seen(session, ready_database)
    assert "advice failed" in headline(found)
    (advice,) = [job for job in found.jobs if job.name == "advice"]
    assert advice.last is not None
    assert advice.last.ok is False


def test_every_job_says_when_it_runs_next() -> None:
    for job in JOBS:
        at = next_run_ms(job, Settings(), NOW)
        assert at is not None
        assert at > NOW, job.name


def test_the_database_tells_its_size_and_how_far_back_it_goes(session: Session, ready_database: str) -> None:
    found = seen(session, ready_database)
    assert (found.database_bytes or 0) > 10_000
    assert found.oldest_sample_ms == session.execute(text("SELECT min(ts_ms) FROM gpu_sample")).scalar()
    assert found.oldest_hour_ms == session.execute(text("SELECT min(hour_ms) FROM gpu_hour")).scalar()
    assert found.revision


def test_the_page_shows_jobs_hosts_and_what_waits(person: TestClient) -> None:
    page = person.get("/system").text
    for words in ("roll-up", "weekly-report", "Hours to be rolled up", "/hosts/h1"):
        assert words in page


def test_an_empty_database_says_what_to_do(empty_person: TestClient) -> None:
    page = empty_person.get("/system").text
    assert "No host has sent anything yet" in page
    assert "gpuwise agent --sink database" in page
