"""Before and after on stored hours: a parked GPU that was given back, and one that was only said to be."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import Final

from fleet_for_tests import GIB, H100, settings_for
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.app import create_app
from api.jobs.verification import VERIFICATION
from api.resources import advise, verifications
from api.resources.scope import scope_of
from core.activity import Activity
from core.finding import Status
from core.readings import GpuIdentity
from core.samples import EnergyMethod, GpuEvent, GpuSample
from core.units import DAY_MS, HOUR_MS
from core.verification import Ledger, Verdict
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import prices, recommendations
from store.rollup import roll_up

T0: Final = 1_791_158_400_000
ACTION: Final = T0 + 28 * DAY_MS
END: Final = T0 + 46 * DAY_MS
PARKED, BUSY = "GPU-a", "GPU-b"


def hourly(uuid: str, at: int, activity: Activity, watts: float) -> GpuSample:
    """One hour as one sample."""
    held = activity is not Activity.EMPTY
    known = {
        "busy_ratio": 0.9 if activity is Activity.BUSY else 0.0,
        "memory_used_bytes": 60.0 * GIB if held else 0.0,
        "process_count": float(held),
        "power_w": watts,
        "energy_j": watts * 3600,
        "pcie_rx_bytes_per_s": 0.0,
        "pcie_tx_bytes_per_s": 0.0,
    }
    return GpuSample(uuid, T0 + at * HOUR_MS, HOUR_MS, HOUR_MS, known, EnergyMethod.COUNTER, activity)


def fill(url: str, *, until_h: int, after: Activity | None, events: tuple[GpuEvent, ...] = ()) -> None:
    """GPU-a is parked until the action and then ``after`` (None: not seen again); GPU-b works all the time."""
    action_h = (ACTION - T0) // HOUR_MS
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(uuid, "h1", at, H100, 80 * GIB) for at, uuid in enumerate((PARKED, BUSY))])
        for at in range(until_h):
            mine = Activity.PARKED if at < action_h else after
            samples = [hourly(BUSY, at, Activity.BUSY, 400.0)]
            if mine is not None:
                samples.append(hourly(PARKED, at, mine, 110.0 if mine is Activity.PARKED else 70.0))
            ingest.gpu_samples(samples)
        if events:
            ingest.events(list(events))
        ingest.commit()
    engine = make_engine(url)
    while roll_up(engine, now_ms=T0 + until_h * HOUR_MS).pending_left:
        pass
    with session_scope(engine) as session:
        if not prices.listing(session):
            prices.add(
                session,
                scope_kind="model",
                scope_value=H100,
                usd_per_gpu_hour=Decimal("2.00"),
                billing="on_demand",
                gpus_per_unit=1,
                valid_from_ms=0,
                valid_to_ms=None,
                note="",
            )


@contextmanager
def opened(url: str) -> Iterator[Session]:
    with session_scope(make_engine(url)) as session:
        yield session


def said_done(url: str) -> int:
    """Advice at the action, then done; the id of the parked model's recommendation."""
    with opened(url) as session:
        advise.run(scope_of(session, settings_for(url), ACTION), record=True)
        (found,) = [one for one in recommendations.listing(session) if one.finding.rule_id == "parked-model"]
        recommendations.set_status(session, found.id, Status.DONE, ACTION, note="released", who="Ada")
        return found.id


def checked(url: str, now_ms: int) -> str:
    return VERIFICATION.run(make_engine(url), settings_for(url), now_ms)


def test_a_gpu_given_back_is_verified_in_cash(ready_database: str) -> None:
    url = ready_database
    fill(url, until_h=28 * 24, after=Activity.EMPTY)
    id_ = said_done(url)
    fill(url, until_h=46 * 24, after=None)
    assert checked(url, END) == "1 verified, 0 reopened, 0 waiting"
    with opened(url) as session:
        kept = recommendations.get(session, id_)
        (row,) = verifications.rows(session)
        records = {one.rule_id: one for one in verifications.record_rows(session)}
    assert kept is not None
    assert kept.status is Status.VERIFIED
    assert kept.note is not None
    assert "Saves $1,460.00 a month at equal load" in kept.note
    assert (row.verdict, row.ledger, row.unit) == (Verdict.SAVED, Ledger.CASH, "cash_usd_month")
    assert records["parked-model"].cases == 1
    assert records["parked-model"].applied
    assert not records["empty-gpu"].applied
    with TestClient(create_app(settings_for(url)), headers={"X-Gpuwise-Client": "test"}) as client:
        listed = client.get("/api/v1/verifications").json()["items"]
        assert [one["verdict"] for one in listed] == ["saved"]
        assert client.get("/api/v1/verifications?recommendation_id=999").json()["items"] == []
        track = client.get("/api/v1/verifications/track-record").json()["items"]
        assert [one["cases"] for one in track if one["rule_id"] == "parked-model"] == [1]
        steps = client.get(f"/api/v1/recommendations/{id_}/events").json()
        assert [(one["status"], one["who"]) for one in steps] == [
            ("open", None),
            ("done", "Ada"),
            ("verified", None),
        ]
        page = client.get(f"/recommendations/{id_}").text
        assert "Saves $1,460.00 a month at equal load" in page


def test_a_gpu_that_is_still_billed_saves_no_cash(ready_database: str) -> None:
    url = ready_database
    fill(url, until_h=28 * 24, after=Activity.EMPTY)
    said_done(url)
    fill(url, until_h=46 * 24, after=Activity.EMPTY)
    assert "0 verified" in checked(url, END)
    with opened(url) as session:
        (row,) = verifications.rows(session)
    assert row.verdict is Verdict.NOISE
    assert row.saving is not None
    assert row.saving.p50 == 0.0


def test_a_finding_that_is_still_there_is_reopened(ready_database: str) -> None:
    url = ready_database
    fill(url, until_h=28 * 24, after=Activity.PARKED)
    id_ = said_done(url)
    fill(url, until_h=46 * 24, after=Activity.PARKED)
    assert checked(url, END) == "0 verified, 1 reopened, 0 waiting"
    with opened(url) as session:
        kept = recommendations.get(session, id_)
    assert kept is not None
    assert kept.status is Status.REOPENED
    assert (kept.note or "").startswith("still found in the time since it was done")


def test_before_two_weeks_it_waits(ready_database: str) -> None:
    url = ready_database
    fill(url, until_h=28 * 24, after=Activity.EMPTY)
    said_done(url)
    fill(url, until_h=32 * 24, after=Activity.EMPTY)
    assert checked(url, T0 + 32 * DAY_MS) == "0 verified, 0 reopened, 1 waiting"
    with opened(url) as session:
        (row,) = verifications.rows(session)
    assert row.verdict is Verdict.TOO_EARLY


def test_a_driver_change_on_the_day_is_named(ready_database: str) -> None:
    url = ready_database
    driver = GpuEvent(PARKED, ACTION + HOUR_MS, "driver", "Driver 590.1 instead of 580.2.")
    fill(url, until_h=28 * 24, after=Activity.EMPTY)
    said_done(url)
    fill(url, until_h=46 * 24, after=Activity.EMPTY, events=(driver,))
    checked(url, END)
    with opened(url) as session:
        (row,) = verifications.rows(session)
    assert row.verdict is Verdict.CONFOUNDED
    assert "Driver 590.1" in row.sentence


def test_the_job_is_safe_to_run_twice(ready_database: str) -> None:
    url = ready_database
    fill(url, until_h=28 * 24, after=Activity.EMPTY)
    said_done(url)
    fill(url, until_h=46 * 24, after=None)
    checked(url, END)
    assert checked(url, END) == "0 verified, 0 reopened, 0 waiting"
    with opened(url) as session:
        assert len(verifications.rows(session)) == 1
