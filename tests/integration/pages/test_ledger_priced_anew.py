"""While much of the ledger is priced anew a page shows what is stored and says so; scripts are told what is exact."""

from dataclasses import replace
from decimal import Decimal

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from api.resources import ledger_anew, ledger_months
from api.resources.ledger_days import materialise
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS, MINUTE_MS
from store.engine import make_engine, session_scope
from store.queries import ledger_pending, meta
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for
from tests.integration.pages.conftest import PERSON

LATER = NOW + 3 * DAY_MS
WINDOW = {"since": "2026-10-05T00:00:00Z", "until": "2026-10-06T00:00:00Z"}


@pytest.fixture
def url(ready_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The small fleet, priced, of which a day is much."""
    monkeypatch.setattr(ledger_anew, "MOST_AT_ONCE", 1)
    fill(ready_database)
    materialise(make_engine(ready_database), settings_for(ready_database), NOW)
    return ready_database


def person(settings: Settings, now_ms: int = LATER) -> TestClient:
    app = create_app(settings)
    app.state.clock = lambda: now_ms
    return TestClient(app, base_url="http://127.0.0.1:8787", headers=PERSON)


def notice(text: str) -> str:
    return text.split('class="notice anew"')[1].split("</p>", maxsplit=1)[0] if "notice anew" in text else ""


def headline(text: str) -> str:
    return text.split("<h1")[1].split("</h1>", maxsplit=1)[0]


def test_nothing_is_said_while_figures_are_exact(url: str) -> None:
    assert notice(person(settings_for(url)).get("/", params=WINDOW).text) == ""


def test_another_setting_is_told_until_its_job_ran_and_scripts_are_told_what_is_exact(url: str) -> None:
    changed = replace(settings_for(url), pays_for_power=True)
    client = person(changed)
    page = client.get("/", params=WINDOW).text
    assert "Pricing anew begins within five minutes" in notice(page)
    assert "$8.00" in headline(page), "what is stored"
    exact = client.get("/api/v1/costs", params={**WINDOW, "by": "kind"}).json()["items"]
    assert sum(Decimal(row["cost_usd"] or 0) for row in exact) > 8
    materialise(make_engine(url), changed, LATER)
    page = client.get("/", params=WINDOW).text
    assert notice(page) == ""
    assert "$8.11" in headline(page)


@pytest.mark.parametrize(
    "path", ["/", "/costs", "/energy", "/budgets", "/fleet", "/owners", "/report", "/settings/prices"]
)
def test_every_page_of_money_says_how_far_it_is(url: str, path: str) -> None:
    with session_scope(make_engine(url)) as session:
        ledger_pending.mark(session, 0, None)
        left = ledger_pending.count(session)
        meta.put(session, ledger_anew.KEY, f"{LATER - 5 * MINUTE_MS} {left + 7}")
    page = person(settings_for(url)).get(path).text
    assert f"goes on since 01:55 UTC: 7 of {left + 7} GPU-days are done." in notice(page)
    assert "shown as they were priced before" in notice(page)


def test_the_mail_in_its_frame_says_it_too_and_a_mail_is_exact(url: str) -> None:
    from api.report import weekly

    with session_scope(make_engine(url)) as session:
        ledger_pending.mark(session, 0, None)
    assert "Pricing anew begins" in person(settings_for(url)).get("/report/preview").text
    with session_scope(make_engine(url)) as session:
        assert "anew" not in weekly(session, settings_for(url), LATER).partial_note


def test_days_that_were_never_priced_are_priced_now(
    ready_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_anew, "MOST_AT_ONCE", 1)
    fill(ready_database)
    with session_scope(make_engine(ready_database)) as session:
        meta.put(session, "ledger_digest", "of other settings")
        meta.put(session, "ledger_time_zone", "UTC")
    page = person(settings_for(ready_database)).get("/", params=WINDOW).text
    assert notice(page)
    assert "$8.00" in headline(page)


def days_of(text: str) -> str:
    """The table of days of a GPU's page."""
    return text.partition('id="hours"')[2].partition("</table>")[0]


def test_after_another_time_zone_a_page_keeps_to_the_days_before_until_the_job_ran(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person(replace(settings_for(url), accounting_time_zone="America/New_York"))
    priced: list[object] = []
    monkeypatch.setattr(
        "api.resources.ledger_reading.priced_lines", lambda *asked, **_: priced.append(asked) or []
    )
    page = client.get("/gpus/GPU-a").text
    assert "The accounting time zone changed. Pricing anew begins within five minutes" in notice(page)
    assert "days, weeks and months are those of UTC" in notice(page)
    assert "Day (UTC)" in days_of(page)
    assert "2026-10-05</a>" in days_of(page)
    assert "$4.00" in days_of(page)
    assert priced == [], "every day is read as it is stored"


def test_scripts_have_days_of_the_new_time_zone_at_once_and_pages_once_the_job_ran(url: str) -> None:
    moved = replace(settings_for(url), accounting_time_zone="America/New_York")
    client = person(moved)
    exact = client.get("/api/v1/costs", params={**WINDOW, "by": "day"}).json()["items"]
    assert [row["key"] for row in exact] == ["2026-10-04"]
    materialise(make_engine(url), moved, LATER)
    page = client.get("/gpus/GPU-a").text
    assert notice(page) == ""
    assert "Day (America/New_York)" in days_of(page)
    assert "2026-10-04</a>" in days_of(page)


def test_the_settings_page_tells_the_time_zone_that_is_set(url: str) -> None:
    page = person(replace(settings_for(url), accounting_time_zone="Asia/Kolkata")).get("/settings").text
    assert "Asia/Kolkata" in page


def test_another_time_zone_and_other_prices_are_both_told(url: str) -> None:
    moved = replace(settings_for(url), accounting_time_zone="Asia/Kolkata", pays_for_power=True)
    page = person(moved).get("/", params=WINDOW).text
    assert "Prices or settings changed" in notice(page)
    assert "days, weeks and months are those of UTC" in notice(page)
    assert "shown as they were priced before" in notice(page)
    assert "$8.00" in headline(page)


def test_closed_months_keep_their_time_zone_and_pages_say_so(url: str) -> None:
    with session_scope(make_engine(url)) as session:
        ledger_months.close(session, settings_for(url), NOW + 40 * DAY_MS, "2026-10")
    page = person(replace(settings_for(url), accounting_time_zone="Asia/Kolkata")).get("/costs").text
    assert "months are closed with days of UTC: set it back" in notice(page)


def test_the_job_keeps_when_it_began_and_forgets_it_at_its_end(url: str) -> None:
    engine = make_engine(url)
    with session_scope(engine) as session:
        ledger_pending.mark(session, 0, None)
        left = ledger_pending.count(session)
        ledger_anew.begin(session, LATER)
        ledger_anew.begin(session, LATER + HOUR_MS)
        assert meta.get(session, ledger_anew.KEY) == f"{LATER} {left}"
    seen: list[str | None] = []

    def look(*_: int) -> None:
        with session_scope(engine) as session:
            seen.append(meta.get(session, ledger_anew.KEY))

    materialise(engine, settings_for(url), LATER + HOUR_MS, look)
    assert seen == [f"{LATER} {left}"]
    with session_scope(engine) as session:
        assert meta.get(session, ledger_anew.KEY) is None


def test_little_that_waits_is_priced_at_once_and_nothing_is_said(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_anew, "MOST_AT_ONCE", 100)
    client = person(replace(settings_for(url), pays_for_power=True))
    page = client.get("/", params=WINDOW).text
    assert notice(page) == ""
    assert "$8.11" in headline(page)
