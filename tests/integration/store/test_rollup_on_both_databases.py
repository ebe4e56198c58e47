"""Roll-up on both databases: incremental, idempotent, late samples, and never over an hour that knew more."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session
from store_samples import H0, NOW, SPAN, engine_sample, gpu_sample, host_sample, process_sample

from core.activity import Activity
from core.evidence import Window
from core.readings import EngineIdentity, GpuIdentity
from core.samples import EngineSample, GpuSample, HostSample, ProcessSample
from core.units import HOUR_MS
from store.dbapi import open_connection
from store.engine import session_scope
from store.ingest import Ingest
from store.queries import fleet, hour_sums, hours
from store.raw import SqlRawReader
from store.rollup import RollUpResult, roll_up

ALWAYS = Window(0, 10**15)
Put = Callable[..., None]


@pytest.fixture
def put(ready_database: str) -> Put:
    def put_all(  # noqa: PLR0917
        gpu: Iterable[GpuSample] = (),
        process: Iterable[ProcessSample] = (),
        engine: Iterable[EngineSample] = (),
        gpus: Iterable[GpuIdentity] = (),
        engines: Iterable[EngineIdentity] = (),
        host: Iterable[HostSample] = (),
    ) -> None:
        with open_connection(ready_database) as connection:
            ingest = Ingest(connection)
            ingest.gpus(gpus)
            ingest.engines(engines)
            ingest.gpu_samples(gpu)
            ingest.process_samples(process)
            ingest.engine_samples(engine)
            ingest.host_samples(host)
            ingest.commit()

    return put_all


def test_samples_become_hours_and_usage(put: Put, engine: Engine, session: Session) -> None:
    put([gpu_sample(slot) for slot in range(720)], [process_sample(slot) for slot in range(360)])
    assert roll_up(engine, now_ms=NOW) == RollUpResult(2, 0, 2, 0)
    first, second = hours.gpu_hours(session, ALWAYS)
    assert (first.hour_ms, second.hour_ms) == (H0, H0 + HOUR_MS)
    assert first.seconds == {Activity.BUSY: 3600.0}
    assert first.energy_j == 360 * 3_000.0
    held, free = hours.usage_hours(session, ALWAYS)
    assert held.workload == process_sample().workload
    assert (held.allocated_s, held.energy_j, held.share_method) == (3600.0, 360 * 3_000.0, "whole")
    assert (free.workload, free.allocated_s, free.hour_ms) == (None, 3600.0, H0 + HOUR_MS)


def test_nothing_new_is_nothing_to_do(put: Put, engine: Engine) -> None:
    put([gpu_sample(0)])
    roll_up(engine, now_ms=NOW)
    assert roll_up(engine, now_ms=NOW) == RollUpResult(0, 0, 0, 0)


def test_a_late_sample_rolls_its_hour_again_and_only_that(put: Put, engine: Engine, session: Session) -> None:
    put([gpu_sample(0), gpu_sample(360)])
    roll_up(engine, now_ms=NOW)
    put([gpu_sample(5)])
    assert roll_up(engine, now_ms=NOW) == RollUpResult(1, 0, 1, 0)
    assert [hour.covered_s for hour in hours.gpu_hours(session, ALWAYS)] == [20.0, 10.0]
    assert [usage.allocated_s for usage in hours.usage_hours(session, ALWAYS)] == [20.0, 10.0]


def test_a_run_that_is_cut_short_is_taken_up_where_it_stopped(
    put: Put, engine: Engine, session: Session
) -> None:
    put([gpu_sample(slot * 360) for slot in range(10)])
    first = roll_up(engine, now_ms=NOW, limit=4)
    assert (first.gpu_hours, first.pending_left) == (4, 6)
    second = roll_up(engine, now_ms=NOW)
    assert (second.gpu_hours, second.pending_left) == (6, 0)
    assert len(hours.gpu_hours(session, ALWAYS)) == 10


def test_an_hour_that_has_not_begun_waits(put: Put, engine: Engine) -> None:
    put([gpu_sample(0), gpu_sample(360)])
    assert roll_up(engine, now_ms=H0 + 5).pending_left == 1
    assert roll_up(engine, now_ms=H0 + HOUR_MS).pending_left == 0


def test_an_hour_is_not_replaced_by_what_is_left_of_it(put: Put, engine: Engine, session: Session) -> None:
    put([gpu_sample(slot) for slot in range(360)], [process_sample(slot) for slot in range(360)])
    roll_up(engine, now_ms=NOW)
    before = (hours.gpu_hours(session, ALWAYS), hours.usage_hours(session, ALWAYS))
    session.rollback()
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM gpu_sample"))
    put([gpu_sample(400 - 360, covered_ms=9_000)])
    result = roll_up(engine, now_ms=NOW)
    assert (result.gpu_hours, result.pending_left) == (0, 0)
    assert (hours.gpu_hours(session, ALWAYS), hours.usage_hours(session, ALWAYS)) == before


def test_samples_that_arrive_while_their_hour_is_folded_are_not_forgotten(
    put: Put, engine: Engine, session: Session
) -> None:
    class Interrupted(SqlRawReader):
        def gpu_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[GpuSample]:
            found = list(super().gpu_samples(gpu_uuids, window))
            put([gpu_sample(1)])
            return found

    put([gpu_sample(0)])
    assert roll_up(engine, Interrupted(engine), now_ms=NOW).pending_left == 1
    assert hours.gpu_hours(session, ALWAYS) == []
    session.rollback()
    assert roll_up(engine, now_ms=NOW).pending_left == 0
    assert [hour.covered_s for hour in hours.gpu_hours(session, ALWAYS)] == [20.0]


def test_a_mark_that_another_run_removed_is_not_written_over(
    put: Put, engine: Engine, session: Session
) -> None:
    class Overtaken(SqlRawReader):
        def gpu_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[GpuSample]:
            stale = list(super().gpu_samples(gpu_uuids, window))
            put([gpu_sample(1)])
            roll_up(engine, now_ms=NOW)
            return stale

    put([gpu_sample(0)])
    assert roll_up(engine, Overtaken(engine), now_ms=NOW) == RollUpResult(0, 0, 0, 0)
    assert [hour.covered_s for hour in hours.gpu_hours(session, ALWAYS)] == [20.0]


def test_many_gpus_and_hours_are_rolled_up_in_chunks(put: Put, engine: Engine, session: Session) -> None:
    put(
        replace(
            gpu_sample(0, gpu=f"GPU-{number:02}"),
            ts_ms=H0 + hour * HOUR_MS + minute * 300_000,
            span_ms=300_000,
        )
        for number in range(12)
        for hour in range(0, 60, 1 if number else 7)
        for minute in range(12)
    )
    result = roll_up(engine, now_ms=NOW)
    assert (result.gpu_hours, result.pending_left) == (11 * 60 + 9, 0)
    found = hours.gpu_hours(session, ALWAYS)
    assert len(found) == 11 * 60 + 9
    assert {hour.covered_s for hour in found} == {120.0}


ONE_GPU = (GpuIdentity("GPU-a", "h1"),)
SERVER = EngineIdentity("h1:8000/0", "h1", "vllm", "opt-1.3b")


def test_an_engine_gets_its_gpus_energy_and_stands_in_as_workload(
    put: Put, engine: Engine, session: Session
) -> None:
    put(
        gpu=[gpu_sample(slot) for slot in range(6)],
        engine=[engine_sample(slot) for slot in range(3)],
        gpus=ONE_GPU,
        engines=[SERVER],
    )
    assert roll_up(engine, now_ms=NOW) == RollUpResult(1, 1, 2, 0)
    (hour,) = hours.engine_hours(session, ALWAYS)
    assert (hour.busy_s, hour.busy_generated_tokens, hour.busy_energy_j) == (30.0, 3_000.0, 9_000.0)
    assert hour.running.seconds == {8.0: 30.0}
    usage = {u.workload.kind if u.workload else None: u for u in hours.usage_hours(session, ALWAYS)}
    assert usage["engine"].workload is not None
    assert (usage["engine"].workload.key, usage["engine"].workload.name) == ("h1:8000/0", "opt-1.3b")
    assert (usage["engine"].allocated_s, usage[None].allocated_s) == (30.0, 30.0)


def test_late_gpu_samples_give_the_engines_hour_its_energy(
    put: Put, engine: Engine, session: Session
) -> None:
    put(engine=[engine_sample(0)], gpus=ONE_GPU, engines=[SERVER])
    roll_up(engine, now_ms=NOW)
    (before,) = hours.engine_hours(session, ALWAYS)
    assert before.busy_energy_j is None
    session.rollback()
    put(gpu=[gpu_sample(0)])
    roll_up(engine, now_ms=NOW)
    (after,) = hours.engine_hours(session, ALWAYS)
    assert after.busy_energy_j == 3_000.0


def test_a_join_that_becomes_ambiguous_takes_the_energy_back(
    put: Put, engine: Engine, session: Session
) -> None:
    put(gpu=[gpu_sample(0)], engine=[engine_sample(0)], gpus=ONE_GPU, engines=[SERVER])
    roll_up(engine, now_ms=NOW)
    put(gpu=[gpu_sample(0, gpu="GPU-b")], gpus=[GpuIdentity("GPU-b", "h1")])
    result = roll_up(engine, now_ms=NOW)
    assert result.pending_left == 0
    (known,) = fleet.engines(session)
    assert (known.gpu_uuids, known.join) == ((), "unknown")
    (hour,) = hours.engine_hours(session, ALWAYS)
    assert hour.busy_energy_j is None
    assert [usage.workload for usage in hours.usage_hours(session, ALWAYS)] == [None, None]


def test_a_join_told_by_processes_later_is_taken_up(put: Put, engine: Engine, session: Session) -> None:
    put(
        gpu=[gpu_sample(0), gpu_sample(0, gpu="GPU-b")],
        engine=[engine_sample(0)],
        gpus=[GpuIdentity("GPU-a", "h1"), GpuIdentity("GPU-b", "h1")],
        engines=[SERVER],
    )
    roll_up(engine, now_ms=NOW)
    (before,) = hours.engine_hours(session, ALWAYS)
    session.rollback()
    put(engines=[replace(SERVER, gpu_uuids=("GPU-b",))])
    roll_up(engine, now_ms=NOW)
    (after,) = hours.engine_hours(session, ALWAYS)
    assert (before.busy_energy_j, after.busy_energy_j) == (None, 3_000.0)
    by_gpu = {usage.gpu_uuid: usage.workload for usage in hours.usage_hours(session, ALWAYS)}
    assert by_gpu["GPU-a"] is None
    assert by_gpu["GPU-b"] is not None


def test_two_engines_share_the_one_gpu_of_their_host(put: Put, engine: Engine, session: Session) -> None:
    other = replace(SERVER, engine="h1:8001/0")
    put(
        gpu=[gpu_sample(0)],
        engine=[engine_sample(0), engine_sample(0, engine=other.engine)],
        gpus=ONE_GPU,
        engines=[SERVER, other],
    )
    assert roll_up(engine, now_ms=NOW) == RollUpResult(1, 2, 2, 0)
    assert [(u.allocated_s, u.share_method) for u in hours.usage_hours(session, ALWAYS)] == [
        (5.0, "even")
    ] * 2


def test_a_gpu_seen_first_during_a_run_is_left_for_the_next(put: Put, engine: Engine) -> None:
    class Late(SqlRawReader):
        def gpu_samples(self, gpu_uuids: Sequence[str], window: Window) -> Iterable[GpuSample]:
            put([gpu_sample(0, gpu="GPU-new")])
            return super().gpu_samples(gpu_uuids, window)

    put([gpu_sample(0)])
    assert roll_up(engine, Late(engine), now_ms=NOW) == RollUpResult(1, 0, 1, 1)
    assert roll_up(engine, now_ms=NOW) == RollUpResult(1, 0, 1, 0)


def test_hours_come_back_as_they_were_folded(put: Put, engine: Engine) -> None:
    put(
        [
            gpu_sample(
                0, sm_active_ratio=0.7, dram_active_ratio=0.2, event_reasons_flags=64.0, temperature_c=71.0
            )
        ]
    )
    roll_up(engine, now_ms=NOW)
    with session_scope(engine) as session:
        (hour,) = hours.gpu_hours(session, Window(H0, H0 + SPAN), ["GPU-a"])
    assert (hour.sm_active_ratio, hour.throttled_s, hour.temperature_max_c) == (0.7, 10.0, 71.0)
    assert (hour.effective_s, hour.parked_power_w) == (10.0, None)
    assert hour.joules == {Activity.BUSY: 3_000.0}


def test_hosts_have_hours_of_their_own(put: Put, engine: Engine, session: Session) -> None:
    put(host=[host_sample(slot, host=name) for slot in range(540) for name in ("h1", "h2")])
    assert roll_up(engine, now_ms=NOW) == RollUpResult(0, 0, 0, 0, host_hours=4)
    found = hours.host_hours(session, ALWAYS)
    assert [(hour.host, hour.hour_ms - H0, hour.covered_s) for hour in found] == [
        (host, hour * HOUR_MS, covered_s)
        for host in ("h1", "h2")
        for hour, covered_s in ((0, 3_600.0), (1, 1_800.0))
    ]
    for hour in found:
        assert (hour.cpu_busy_ratio, hour.host_memory_used_bytes) == pytest.approx((0.25, 6e10))
        assert hour.host_power_w is None
    assert hours.host_hours(session, Window(H0, H0 + HOUR_MS), "h2") == [found[2]]
    session.rollback()
    assert roll_up(engine, now_ms=NOW) == RollUpResult(0, 0, 0, 0)


def test_a_late_sample_of_a_host_rolls_only_its_hour_again(
    put: Put, engine: Engine, session: Session
) -> None:
    put([gpu_sample(0)], host=[host_sample(0, cpu_busy_ratio=0.2), host_sample(360)])
    roll_up(engine, now_ms=NOW)
    put(host=[host_sample(1, cpu_busy_ratio=0.4)])
    assert roll_up(engine, now_ms=NOW) == RollUpResult(0, 0, 0, 0, host_hours=1)
    first, second = hours.host_hours(session, ALWAYS)
    assert (first.cpu_busy_ratio, first.covered_s) == (pytest.approx(0.3), 20.0)
    assert (second.cpu_busy_ratio, second.covered_s) == (0.25, 10.0)


def test_processors_and_attributes_of_workloads_reach_their_hours(
    put: Put, engine: Engine, session: Session
) -> None:
    bare = process_sample(0, cpu=2.0, thread=0.5)
    named = replace(bare.workload, attributes=(("namespace", "ml"),))
    put([gpu_sample(0), gpu_sample(1)], [bare])
    put(process=[replace(bare, ts_ms=H0 + SPAN, workload=named, cpu_ratio=4.0)])
    roll_up(engine, now_ms=NOW)
    (usage,) = hours.usage_hours(session, ALWAYS)
    assert (usage.workload, usage.allocated_s) == (named, 20.0)
    assert (usage.cpu_ratio, usage.cpu_thread_ratio) == (3.0, 0.5)
    (added,) = hour_sums.workload_sums(session, ALWAYS, hour_sums.Stretches())
    assert added.workload == named


def test_what_becomes_unknown_of_an_hour_is_unknown_again(put: Put, engine: Engine, session: Session) -> None:
    put([gpu_sample(0, nvlink_rx_bytes_per_s=1e9, nvlink_tx_bytes_per_s=1e9)])
    roll_up(engine, now_ms=NOW)
    with engine.begin() as connection:
        connection.execute(text("UPDATE gpu_sample SET nvlink_rx_bytes_per_s = NULL"))
    put([gpu_sample(1)])
    roll_up(engine, now_ms=NOW)
    (hour,) = hours.gpu_hours(session, ALWAYS)
    assert (hour.covered_s, hour.nvlink_bytes_per_s) == (20.0, None)
