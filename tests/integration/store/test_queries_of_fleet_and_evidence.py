"""What pages and rules are given, on both databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session
from store_samples import H0, NOW, SPAN, engine_sample, gpu_sample, process_sample

from core.activity import Activity
from core.evidence import Price, Site, Window
from core.readings import EngineIdentity, GpuIdentity
from core.units import HOUR_MS
from store.dbapi import open_connection
from store.ingest import Ingest
from store.queries import fleet, hours, samples
from store.queries.evidence import evidence
from store.rollup import roll_up

SITE = Site(None, 1.3, 0.3, None, pays_for_power=False, billing="on_demand")
H100 = "NVIDIA H100 80GB HBM3"
PRICE = Price(Decimal("2.50"), "your price", "on_demand", 1, "2026-10-05", from_user=True)


def fill(url: str, gpu_count: int = 2) -> None:
    """GPUs a, b, … on h1 and one on no known host: an empty hour, then a busy one; an engine on GPU-b."""
    names = [f"GPU-{letter}" for letter in "abcdefghij"[:gpu_count]]
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus(GpuIdentity(name, "h1", at, H100, 80 << 30) for at, name in enumerate(names))
        ingest.gpus([GpuIdentity("GPU-stray")])
        ingest.engines([EngineIdentity("h1:8000/0", "h1", "vllm", "opt-1.3b", {}, ("GPU-b",))])
        for name in (*names, "GPU-stray"):
            ingest.gpu_samples(
                gpu_sample(slot, Activity.EMPTY, gpu=name, power_w=70.0 + slot / 100) for slot in range(360)
            )
            ingest.gpu_samples(gpu_sample(slot, gpu=name) for slot in range(360, 400))
        ingest.process_samples([process_sample(360), process_sample(361)])
        ingest.engine_samples(engine_sample(slot) for slot in range(360, 366))
        ingest.commit()


@pytest.fixture
def filled(ready_database: str, engine: Engine) -> Engine:
    fill(ready_database)
    roll_up(engine, now_ms=NOW)
    return engine


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_an_empty_store_has_no_bounds_and_no_fleet(session: Session) -> None:
    assert hours.bounds(session) is None
    assert fleet.gpus(session) == []
    assert fleet.hosts(session) == []
    assert fleet.engines(session) == []


def test_bounds_are_the_first_and_the_last_moment_of_data(filled: Engine, session: Session) -> None:
    assert hours.bounds(session) == Window(H0, H0 + 400 * SPAN)


def test_bounds_forget_what_was_purged(filled: Engine, session: Session) -> None:
    connection = session.connection()
    connection.exec_driver_sql(f"DELETE FROM gpu_hour WHERE hour_ms = {H0}")
    assert hours.bounds(session) == Window(H0 + HOUR_MS, H0 + 400 * SPAN)


def test_the_fleet_lists_gpus_by_host_and_index_with_their_newest_sample(
    filled: Engine, session: Session
) -> None:
    found = fleet.gpus(session)
    assert {gpu.identity.gpu_uuid for gpu in found} == {"GPU-a", "GPU-b", "GPU-stray"}
    by_uuid = {gpu.identity.gpu_uuid: gpu for gpu in found}
    assert by_uuid["GPU-b"].identity == GpuIdentity("GPU-b", "h1", 1, H100, 80 << 30)
    assert by_uuid["GPU-b"].latest == gpu_sample(399, gpu="GPU-b")
    assert (by_uuid["GPU-b"].first_seen_ms, by_uuid["GPU-b"].last_seen_ms) == (H0, H0 + 400 * SPAN)


def test_hosts_gather_their_gpus_and_the_strays_come_last(filled: Engine, session: Session) -> None:
    assert [(host.host, host.gpu_uuids) for host in fleet.hosts(session)] == [
        ("h1", ("GPU-a", "GPU-b")),
        (None, ("GPU-stray",)),
    ]


def test_engines_name_their_gpus_and_how_that_is_known(filled: Engine, session: Session) -> None:
    (engine,) = fleet.engines(session)
    assert (engine.gpu_uuids, engine.join) == (("GPU-b",), "process")
    assert (engine.first_seen_ms, engine.last_seen_ms) == (H0 + 360 * SPAN, H0 + 366 * SPAN)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (Window(H0, H0 + HOUR_MS), [H0]),
        (Window(H0 + HOUR_MS, H0 + 2 * HOUR_MS), [H0 + HOUR_MS]),
        (Window(H0 + 1, H0 + HOUR_MS + 1), [H0, H0 + HOUR_MS]),
        (Window(H0 + 5 * HOUR_MS, H0 + 6 * HOUR_MS), []),
    ],
)
def test_an_hour_belongs_to_the_windows_it_overlaps(
    filled: Engine, session: Session, window: Window, expected: list[int]
) -> None:
    assert [hour.hour_ms for hour in hours.gpu_hours(session, window, ["GPU-a"])] == expected


def test_activity_by_hour_adds_up_the_fleet(filled: Engine, session: Session) -> None:
    first, second = hours.activity_by_hour(session, Window(H0, H0 + 2 * HOUR_MS))
    assert (first.gpu_count, first.covered_s, first.seconds) == (3, 10_800.0, {Activity.EMPTY: 10_800.0})
    assert second.seconds == {Activity.BUSY: 1_200.0}
    assert second.joules == {Activity.BUSY: 3 * 40 * 3_000.0}
    (one,) = hours.activity_by_hour(session, Window(H0, H0 + HOUR_MS), ["GPU-a"])
    assert (one.gpu_count, one.covered_s) == (1, 3_600.0)


def test_engine_hours_can_be_asked_of_one_engine(filled: Engine, session: Session) -> None:
    always = Window(0, 10**15)
    assert len(hours.engine_hours(session, always, "h1:8000/0")) == 1
    assert hours.engine_hours(session, always, "h9:1/0") == []


def test_samples_are_paged_from_the_oldest(filled: Engine, session: Session) -> None:
    found = samples.gpu_samples(session, "GPU-a", Window(H0, H0 + 10 * SPAN), limit=3)
    assert [sample.ts_ms for sample in found] == [H0, H0 + SPAN, H0 + 2 * SPAN]
    assert samples.gpu_samples(session, "GPU-none", Window(0, 10**15)) == []


def test_processes_of_a_gpu_come_with_their_workload(filled: Engine, session: Session) -> None:
    assert samples.processes(session, "GPU-a", Window(H0, H0 + 361 * SPAN)) == [process_sample(360)]


def test_evidence_holds_hours_price_and_what_the_card_draws_when_empty(
    filled: Engine, session: Session
) -> None:
    asked: list[tuple[str, str | None, int]] = []

    def price_of(gpu: GpuIdentity, gpu_key: str | None, at_ms: int) -> Price | None:
        asked.append((gpu.gpu_uuid, gpu_key, at_ms))
        return PRICE if gpu_key else None

    window = Window(H0 + HOUR_MS, H0 + 2 * HOUR_MS)
    found = evidence(session, window=window, now_ms=NOW, site=SITE, price_of=price_of)
    a, stray = found.gpu("GPU-a"), found.gpu("GPU-stray")
    assert a is not None
    assert stray is not None
    assert [hour.hour_ms for hour in a.hours] == [H0 + HOUR_MS]
    assert (a.price, stray.price, stray.gpu_key) == (PRICE, None, None)
    assert a.bare_idle_w == pytest.approx(70.0 + 359 / 200)
    assert (a.host_gpu_count, stray.host_gpu_count) == (2, 1)
    assert (a.first_sample_ms, a.last_sample_ms) == (H0, H0 + 400 * SPAN)
    assert {uuid: (key, at) for uuid, key, at in asked}["GPU-a"] == (a.gpu_key, window.to_ms)
    (engine,) = found.engines
    assert (engine.gpu_uuids, engine.join, engine.busy_s) == (("GPU-b",), "process", 60.0)
    assert (found.window, found.now_ms, found.site) == (window, NOW, SITE)


def test_evidence_leaves_out_what_has_no_hours_in_the_window(filled: Engine, session: Session) -> None:
    found = evidence(
        session, window=Window(H0, H0 + HOUR_MS), now_ms=NOW, site=SITE, price_of=lambda *_: None
    )
    assert len(found.gpus) == 3
    assert found.engines == ()


def test_evidence_costs_as_many_queries_for_ten_gpus_as_for_two(
    filled: Engine, session: Session, ready_database: str
) -> None:
    def count() -> int:
        with counted(filled) as statements:
            evidence(
                session, window=Window(H0, H0 + 2 * HOUR_MS), now_ms=NOW, site=SITE, price_of=lambda *_: PRICE
            )
        session.rollback()
        return len(statements)

    few = count()
    fill(ready_database, 10)
    roll_up(filled, now_ms=NOW)
    assert count() == few <= 20


def test_a_purged_newest_sample_is_unknown(filled: Engine, session: Session) -> None:
    session.connection().exec_driver_sql("DELETE FROM gpu_sample")
    assert {gpu.latest for gpu in fleet.gpus(session)} == {None}
    assert replace(fleet.gpus(session)[0], latest=None).last_seen_ms == H0 + 400 * SPAN
