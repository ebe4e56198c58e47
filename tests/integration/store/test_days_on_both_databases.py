"""Days follow their hours, on both databases: late data, interruption, upgrade, retention, windows of any edge."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session
from store_samples import H0, NOW, SPAN, engine_sample, gpu_sample, host_sample, process_sample

from advisor.engine import AdviceRun, advise, advise_chunks
from core.activity import Activity
from core.days import engine_day, folded_by_day, gpu_day
from core.evidence import Evidence, Price, Site, Window
from core.parked_hours import parked_hours
from core.readings import EngineIdentity, GpuHealth, GpuIdentity
from core.samples import GpuEvent
from core.series import each_since
from core.units import DAY_MS, HOUR_MS
from store import day_writer
from store.dbapi import open_connection
from store.engine import session_scope
from store.ingest import Ingest
from store.queries import hours
from store.queries.evidence import evidence, evidence_chunks
from store.retention import purge
from store.rollup import roll_up

SITE = Site(0.12, 1.3, 0.3, None, pays_for_power=True, billing="on_demand")
H100 = "NVIDIA H100 80GB HBM3"
PRICE = Price(Decimal("2.50"), "your price", "on_demand", 1, "2026-10-05", from_user=True)
SLOT_HOURS = HOUR_MS // SPAN
ALWAYS = Window(H0 - 10 * DAY_MS, H0 + 100 * DAY_MS)


def put(url: str, at: Iterable[int], gpus: Iterable[str] = ("GPU-a", "GPU-b"), step: int = 60) -> None:
    """Hours ``at`` after H0, in samples of ten minutes: GPU-a is empty, GPU-b works for an engine and a process."""
    span = step * SPAN
    slots = [hour * SLOT_HOURS + part for hour in at for part in range(0, SLOT_HOURS, step)]
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus(GpuIdentity(gpu, f"h-{gpu[-1]}", 0, H100, 80 << 30) for gpu in gpus)
        ingest.engines([EngineIdentity("h-b:8000/0", "h-b", "vllm", "opt-1.3b", {}, ("GPU-b",))])
        for gpu in gpus:
            kind = Activity.EMPTY if gpu == "GPU-a" else Activity.BUSY
            ingest.gpu_samples(
                replace(gpu_sample(slot, kind, gpu=gpu, memory_used_bytes=0.0), span_ms=span, covered_ms=span)
                for slot in slots
            )
        ingest.process_samples(
            process_sample(slot, key, gpu="GPU-b", cpu=1.0) for slot in slots for key in ("1:1", "2:2")
        )
        ingest.engine_samples(engine_sample(slot, engine="h-b:8000/0") for slot in slots)
        ingest.host_samples(host_sample(slot, host="h-b") for slot in slots)
        ingest.commit()


def read(session: Session, window: Window = ALWAYS) -> Evidence:
    return evidence(session, window=window, now_ms=NOW, site=SITE, price_of=lambda *_: PRICE)


def assert_days_are_their_hours(session: Session, window: Window = ALWAYS) -> None:
    found = read(session, window)
    by_gpu = {gpu.gpu_uuid: gpu for gpu in found.gpus}
    stored = hours.gpu_hours(session, window)
    assert {hour.gpu_uuid for hour in stored} == set(by_gpu)
    for uuid, gpu in by_gpu.items():
        mine = [hour for hour in stored if hour.gpu_uuid == uuid]
        assert tuple(gpu.days) == folded_by_day(mine, gpu_day)
        assert list(gpu.hours) == mine
        assert (len(gpu.hours), gpu.hours[0], gpu.hours[-1]) == (len(mine), mine[0], mine[-1])
        assert list(reversed(gpu.hours)) == mine[::-1]
        assert gpu.hours[-2:] == tuple(mine[-2:])
        assert parked_hours(gpu.hours) == parked_hours(mine)
        assert each_since([(gpu.hours, mine[0].hour_ms)]) == [mine]  # of rows that are read in part at first
    for engine in found.engines:
        mine_ = hours.engine_hours(session, window, engine.identity.engine)
        assert tuple(engine.days) == folded_by_day(mine_, engine_day)
        assert list(engine.hours) == mine_
        assert engine.busy_hours == [hour.hour_ms for hour in mine_ if hour.busy_s > 0]
        assert engine.seen_hours == [hour.hour_ms for hour in mine_ if hour.covered_s > 0]
        pairs = {(hour.prompt_tokens is None) == (hour.cached_prompt_tokens is None) for hour in mine_}
        assert engine.has_paired_prompts == (False not in pairs)


def test_days_are_what_their_hours_fold_to_and_late_hours_join_them(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, [0, 1, 5, 23, 24, 30])
    roll_up(engine, now_ms=NOW)
    assert_days_are_their_hours(session)
    put(ready_database, [2, 50])
    roll_up(engine, now_ms=NOW)
    assert_days_are_their_hours(session)
    session.rollback()
    roll_up(engine, now_ms=NOW)
    assert_days_are_their_hours(session)
    assert session.execute(text("SELECT count(*) FROM gpu_day")).scalar() == 2 * 3
    assert session.execute(text("SELECT count(*) FROM day_pending")).scalar() == 0


def test_a_run_that_stops_before_the_days_is_resumed_and_meanwhile_hours_answer(
    ready_database: str, engine: Engine, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(ready_database, [0, 1])
    roll_up(engine, now_ms=NOW)
    put(ready_database, [2, 25])

    def stop(_engine: Engine) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("store.rollup.write_days", stop)
        with pytest.raises(KeyboardInterrupt):
            roll_up(engine, now_ms=NOW)
    assert_days_are_their_hours(session)
    (gpu,) = [gpu for gpu in read(session).gpus if gpu.gpu_uuid == "GPU-a"]
    assert gpu.bare_idle_w == 300.0
    session.rollback()
    assert day_writer.write_days(engine) == 2 * 2 + 2 + 2
    assert_days_are_their_hours(session)


def test_a_database_of_before_is_filled_by_the_first_roll_up(
    ready_database: str, engine: Engine, session: Session
) -> None:
    from store import schema

    put(ready_database, [0, 30])
    roll_up(engine, now_ms=NOW)
    schema.downgrade(ready_database, "0004")
    schema.upgrade(ready_database)
    assert_days_are_their_hours(session)
    assert session.execute(text("SELECT count(*) FROM gpu_day")).scalar() == 0
    session.rollback()
    roll_up(engine, now_ms=NOW)
    assert session.execute(text("SELECT count(*) FROM gpu_day")).scalar() == 4
    lines = "SELECT DISTINCT gpu_id, workload_id, hour_ms - hour_ms % 86400000 FROM usage_hour"
    expected = session.execute(text(f"SELECT count(*) FROM ({lines}) AS line")).scalar()
    assert session.execute(text("SELECT count(*) FROM usage_day")).scalar() == expected
    assert_days_are_their_hours(session)


@pytest.mark.parametrize(
    ("from_h", "to_h"), [(0.0, 24.0), (0.5, 24.0), (1.0, 25.5), (5.0, 6.0), (24.0, 47.0), (3.0, 60.0)]
)
def test_windows_may_cut_days_anywhere(
    ready_database: str, engine: Engine, session: Session, from_h: float, to_h: float
) -> None:
    put(ready_database, [0, 1, 5, 23, 24, 30, 47, 49])
    roll_up(engine, now_ms=NOW)
    window = Window(H0 + int(from_h * HOUR_MS), H0 + int(to_h * HOUR_MS))
    assert_days_are_their_hours(session, window)
    for gpu in read(session, window).gpus:
        lines = [u for u in hours.usage_hours(session, window) if u.gpu_uuid == gpu.gpu_uuid and u.workload]
        assert sum(use.allocated_s for use in gpu.uses) == pytest.approx(sum(u.allocated_s for u in lines))
        assert {use.workload for use in gpu.uses} == {line.workload for line in lines}


def test_days_go_with_their_hours(ready_database: str, engine: Engine, session: Session) -> None:
    put(ready_database, [0, 30])
    roll_up(engine, now_ms=NOW)
    purge(engine, now_ms=H0 + 2 * DAY_MS, raw_days=1, hour_days=1)
    for table in ("gpu_day", "engine_day", "host_day", "usage_day"):
        found = session.execute(text(f"SELECT DISTINCT day_ms FROM {table}")).scalars().all()
        assert found == [H0 + DAY_MS], table


def test_evidence_tells_of_uses_events_health_and_hosts(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, [0, 1])
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        ingest.events([GpuEvent("GPU-b", H0 + 5, "xid", "fell off", 79)])
        ingest.health([GpuHealth("GPU-b", H0 + 7, {"pcie_link_width_count": 8.0})])
        ingest.commit()
    roll_up(engine, now_ms=NOW)
    found = read(session)
    b = found.gpu("GPU-b")
    assert b is not None
    assert [(event.kind, event.code) for event in b.events] == [("xid", 79)]
    assert (b.health, b.health_ms) == ({"pcie_link_width_count": 8.0}, H0 + 7)
    assert {use.workload.key for use in b.uses} >= {"1:1", "2:2"}
    assert {use.cpu_ratio for use in b.uses if use.workload.kind == "process"} == {1.0}
    assert all(use.shared and use.first_ms == H0 and use.last_ms == H0 + 2 * HOUR_MS for use in b.uses)
    host = found.host("h-b")
    assert host is not None
    assert [hour.hour_ms for hour in host.hours] == [H0, H0 + HOUR_MS]
    assert len(host.days) == 1


def test_advice_does_not_depend_on_how_the_fleet_is_cut(
    ready_database: str, engine: Engine, session: Session
) -> None:
    names = ["GPU-a", *(f"GPU-{letter}" for letter in "bcdefg")]
    put(ready_database, range(30), names)
    roll_up(engine, now_ms=NOW)
    window = hours.bounds(session)
    assert window is not None

    def chunks(size: int) -> list[Evidence]:
        return list(
            evidence_chunks(
                session, window=window, now_ms=NOW, site=SITE, price_of=lambda *_: PRICE, chunk_gpus=size
            )
        )

    assert [len(chunks(size)) for size in (1, 3, 100)] == [7, 3, 1]
    whole = advise(read(session, window))
    assert whole.findings
    assert whole.not_evaluated
    for size in (1, 2, 3, 100):
        cut = advise_chunks(chunks(size))
        assert set(cut.not_evaluated) ^ set(whole.not_evaluated) == set()
        assert cut == whole
    run = AdviceRun()
    for chunk in chunks(2):
        run.feed(chunk)
    assert run.subjects == {("gpu", name) for name in names} | {("engine", "h-b:8000/0")}
    assert run.advice() == whole
    assert run.totals(()) == replace(
        whole.totals, cash_usd_month=None, capacity_gpu_h_month=None, energy_kwh_month=None
    )


def test_chunks_keep_hosts_whole_and_engines_with_all_their_hosts(
    ready_database: str, engine: Engine
) -> None:
    put(ready_database, [0], ["GPU-a", "GPU-b", "GPU-c"])
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        ingest.engines([EngineIdentity("h-b:8000/0", "h-b", "vllm", "opt-1.3b", {}, ("GPU-a", "GPU-c"))])
        ingest.commit()
    roll_up(engine, now_ms=NOW)
    with session_scope(engine) as session:
        found = list(
            evidence_chunks(
                session, window=ALWAYS, now_ms=NOW, site=SITE, price_of=lambda *_: None, chunk_gpus=1
            )
        )
        together = [{gpu.gpu_uuid for gpu in chunk.gpus} for chunk in found]
        assert {"GPU-a", "GPU-c"} in together
        assert sum(len(chunk.engines) for chunk in found) == 1
