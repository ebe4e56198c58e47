"""The weekly mail's hour: when it is, and that one which was slept through is made up once; on both databases."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from api.jobs import mail as mail_job
from api.jobs import weekly_report
from api.mailing import send_weekly
from api.report import weekly
from core.activity import Activity
from core.evidence import Window
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.dbapi import open_connection
from store.ingest import Ingest
from store.models.mail_log import MailLogRow
from store.rollup import roll_up
from tests.integration.api.fleet_for_tests import NOW, B, sample
from tests.integration.mail.smtp_for_tests import Inbox, settings_at, smtp_server
from tests.integration.mail.weekly_for_tests import FINANCE, HEAD

MONDAY_7: int = NOW - NOW % DAY_MS + 7 * HOUR_MS  # NOW is a Monday shortly after 02:00


@pytest.mark.parametrize(
    ("now_ms", "expected"),
    [
        (MONDAY_7, MONDAY_7),
        (MONDAY_7 - 1, MONDAY_7 - 7 * DAY_MS),
        (MONDAY_7 + 3 * DAY_MS, MONDAY_7),
        (MONDAY_7 + 7 * DAY_MS - 1, MONDAY_7),
    ],
)
def test_the_set_hour_is_the_last_one(now_ms: int, expected: int) -> None:
    assert weekly_report.set_hour_ms(Settings(), now_ms) == expected


DAYS_BEFORE = "2026-10-05/2026-10-05"
"""Period of what was there by then: two hours of that Monday."""


def more(engine: Engine, until_ms: int) -> None:
    """Samples of days that come after, one in six hours."""
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    last = sample(B, 12, Activity.BUSY, 200.0)
    with closing(open_connection(url)) as wire:
        ingest = Ingest(wire)
        ingest.gpu_samples([replace(last, ts_ms=at) for at in range(last.ts_ms, until_ms, 6 * HOUR_MS)])
        ingest.commit()
    roll_up(engine, now_ms=until_ms)


@pytest.fixture
def asleep(filled: Engine) -> Engine:
    """Its jobs ran last week; since then the machine slept."""
    weekly_report.run(filled, settings_at(25, report_recipients=()), MONDAY_7 - 7 * DAY_MS)
    return filled


@pytest.mark.parametrize("late_h", [0, 1, 16, 17, 48, 72])
def test_an_hour_that_was_slept_through_is_made_up_once_of_its_own_days(asleep: Engine, late_h: int) -> None:
    more(asleep, MONDAY_7 + 3 * DAY_MS)
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings, at = settings_at(port), MONDAY_7 + late_h * HOUR_MS
        assert mail_job.run(asleep, settings, at).startswith(
            "the weekly report's hour was missed: 'gpuwise: "
        )
        assert mail_job.run(asleep, settings, at + 5 * MINUTE_MS) == "nothing to send"
    assert sorted(inbox.got) == [FINANCE, HEAD]
    with Session(asleep) as session:
        assert set(session.scalars(select(MailLogRow.period))) == {DAYS_BEFORE}


def test_an_hour_that_is_longer_ago_waits_for_the_next(asleep: Engine) -> None:
    settings = settings_at(25)
    assert mail_job.run(asleep, settings, MONDAY_7 + 73 * HOUR_MS) == "nothing to send"
    assert mail_job.run(asleep, settings, MONDAY_7 + 6 * DAY_MS) == "nothing to send"


def test_a_late_report_and_one_of_a_cron_line_are_one_mail(asleep: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings = settings_at(port)
        send_weekly(asleep, settings, MONDAY_7 + HOUR_MS)
        assert mail_job.run(asleep, settings, MONDAY_7 + 2 * HOUR_MS).endswith("2 mailed before")
    assert sorted(inbox.got) == [FINANCE, HEAD]


def test_a_new_installation_has_missed_nothing(filled: Engine) -> None:
    inbox = Inbox()
    with smtp_server(inbox) as port:
        settings, at = settings_at(port), MONDAY_7 + HOUR_MS
        assert mail_job.run(filled, settings, at) == "nothing to send"
        assert mail_job.run(filled, settings, at + 6 * DAY_MS) == "nothing to send"
        more(filled, at + 7 * DAY_MS)
        assert mail_job.run(filled, settings, at + 7 * DAY_MS).startswith(
            "the weekly report's hour was missed"
        )
    assert sorted(inbox.got) == [FINANCE, HEAD]


@pytest.mark.parametrize("changed", [{"report_weekday": 2}, {"report_hour_utc": 9}])
def test_another_day_or_hour_in_the_settings_sends_nothing_at_once(
    asleep: Engine, changed: dict[str, Any]
) -> None:
    weekly_report.run(asleep, settings_at(25, report_recipients=()), MONDAY_7)
    settings = settings_at(25, **changed)
    assert mail_job.run(asleep, settings, MONDAY_7 + 2 * DAY_MS + 3 * HOUR_MS) == "nothing to send"


def test_a_late_report_of_days_before_all_data_is_none(asleep: Engine) -> None:
    with Session(asleep) as session:
        early = NOW - 400 * DAY_MS
        report = weekly(session, settings_at(25), NOW, until_ms=early)
    assert (report.has_data, report.window) == (False, Window(early - 7 * DAY_MS, early))


def test_the_hour_that_was_kept_is_not_made_up(filled: Engine) -> None:
    settings = settings_at(25, report_recipients=())
    assert weekly_report.run(filled, settings, MONDAY_7).startswith("dry run")
    assert mail_job.run(filled, settings, MONDAY_7 + 5 * MINUTE_MS) == "nothing to send"
