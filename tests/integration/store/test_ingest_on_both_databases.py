"""Samples into both databases: exactly once, never a number that is none, all of a commit or nothing."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nan
from threading import Thread

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session
from store_samples import H0, SPAN, bare_sample, engine_sample, gpu_sample, process_sample

from core.activity import Activity
from core.errors import StoreError
from core.evidence import Window
from core.readings import EngineIdentity, GpuIdentity
from core.samples import EnergyMethod, GpuEvent, GpuSample
from core.units import DAY_MS, HOUR_MS
from store.dbapi import Connection, open_connection
from store.ingest import Ingest
from store.models.gpu import GpuRow
from store.models.rollup_pending import RollupPendingRow
from store.queries import events, fleet, samples

ALWAYS = Window(0, 10**15)


@pytest.fixture
def connection(ready_database: str) -> Iterator[Connection]:
    with open_connection(ready_database) as opened:
        yield opened


@pytest.fixture
def ingest(connection: Connection) -> Ingest:
    return Ingest(connection)


def stored(session: Session, gpu: str = "GPU-a") -> list[GpuSample]:
    return samples.gpu_samples(session, gpu, ALWAYS)


def marks(session: Session) -> dict[tuple[int, str], int]:
    row = RollupPendingRow
    return {
        (hour, kind): mark for hour, kind, mark in session.execute(select(row.hour_ms, row.kind, row.mark))
    }


def test_samples_come_back_as_they_were(ingest: Ingest, session: Session) -> None:
    given = [
        gpu_sample(0, Activity.MEMORY_BOUND, sm_active_ratio=0.123456789),
        gpu_sample(1, Activity.EMPTY, method=None),
    ]
    assert ingest.gpu_samples(given) == 2
    ingest.commit()
    assert stored(session) == given


def test_the_same_samples_twice_change_nothing(ingest: Ingest, session: Session) -> None:
    given = [gpu_sample(slot) for slot in range(50)]
    assert ingest.gpu_samples(given) == 50
    ingest.commit()
    before = marks(session)
    session.rollback()
    assert ingest.gpu_samples(given) == 0
    ingest.commit()
    assert stored(session) == given
    assert marks(session) == before


def test_the_same_sample_twice_in_one_batch_is_stored_once(ingest: Ingest, session: Session) -> None:
    whole = gpu_sample(0, power_w=400.0)
    ingest.gpu_samples([gpu_sample(0, covered_ms=3_000), whole, gpu_sample(0, covered_ms=5_000)])
    ingest.commit()
    assert stored(session) == [whole]


def test_a_sample_that_covers_more_wins_and_keeps_what_only_the_other_knew(
    ingest: Ingest, session: Session
) -> None:
    part = gpu_sample(0, covered_ms=4_000, power_w=100.0, sm_active_ratio=0.5)
    whole = gpu_sample(0, covered_ms=10_000, power_w=200.0)
    assert ingest.gpu_samples([part]) == 1
    assert ingest.gpu_samples([whole]) == 1
    assert ingest.gpu_samples([part, whole]) == 0
    ingest.commit()
    assert stored(session) == [gpu_sample(0, covered_ms=10_000, power_w=200.0, sm_active_ratio=0.5)]


@pytest.mark.parametrize("swapped", [False, True])
def test_two_logs_of_one_run_fill_each_others_unknowns_in_either_order(
    ingest: Ingest, session: Session, swapped: bool
) -> None:
    query = bare_sample(0, Activity.PARKED, busy_ratio=0.0, memory_used_bytes=5e10)
    dmon = replace(
        bare_sample(0, Activity.UNKNOWN, busy_ratio=0.0, power_w=118.0, energy_j=1_180.0),
        energy_method=EnergyMethod.INTEGRATED,
    )
    for log in (dmon, query) if swapped else (query, dmon):
        assert ingest.gpu_samples([log]) == 1
    assert ingest.gpu_samples([dmon, query]) == 0
    ingest.commit()
    (found,) = stored(session)
    assert found.values == {
        "busy_ratio": 0.0,
        "memory_used_bytes": 5e10,
        "power_w": 118.0,
        "energy_j": 1_180.0,
    }
    assert (found.activity, found.energy_method) == (Activity.PARKED, EnergyMethod.INTEGRATED)


def test_the_joules_of_a_part_never_pass_for_the_whole(ingest: Ingest, session: Session) -> None:
    part = replace(
        bare_sample(0, Activity.BUSY, covered_ms=4_000, energy_j=400.0), energy_method=EnergyMethod.COUNTER
    )
    ingest.gpu_samples([part])
    ingest.gpu_samples([bare_sample(0, Activity.BUSY, busy_ratio=0.9)])
    ingest.gpu_samples([part])
    ingest.commit()
    (found,) = stored(session)
    assert found.values == {"busy_ratio": 0.9}
    assert found.energy_method is None


def test_what_is_no_number_is_stored_as_unknown(ingest: Ingest, session: Session) -> None:
    ingest.gpu_samples([gpu_sample(0, power_w=nan, busy_ratio=inf, sm_active_ratio=-inf, energy_j=1.0)])
    ingest.process_samples([process_sample(0, memory=nan)])
    ingest.engine_samples([engine_sample(0, nan, waiting_requests=inf)])
    ingest.commit()
    (found,) = stored(session)
    assert found.values == {"energy_j": 1.0}
    (held,) = samples.processes(session, "GPU-a", ALWAYS)
    assert held.memory_used_bytes is None
    row = session.connection().exec_driver_sql(
        "SELECT busy_running_requests, waiting_requests FROM engine_sample"
    )
    assert tuple(row.one()) == (None, None)


def test_touched_hours_are_marked_with_the_samples(ingest: Ingest, session: Session) -> None:
    ingest.gpu_samples([gpu_sample(0), gpu_sample(359), gpu_sample(360)])
    ingest.engine_samples([engine_sample(0)])
    assert marks(session) == {}
    session.rollback()
    ingest.commit()
    assert set(marks(session)) == {(H0, "gpu"), (H0 + HOUR_MS, "gpu"), (H0, "engine")}


def test_a_late_sample_gives_its_hour_a_new_mark(ingest: Ingest, session: Session) -> None:
    ingest.gpu_samples([gpu_sample(0)])
    ingest.commit()
    first = marks(session)
    session.rollback()
    ingest.gpu_samples([gpu_sample(1)])
    ingest.commit()
    assert marks(session).keys() == first.keys()
    assert marks(session) != first


def test_nothing_is_kept_of_what_was_rolled_back(ingest: Ingest, session: Session) -> None:
    ingest.gpu_samples([gpu_sample(0)])
    ingest.rollback()
    assert ingest.gpu_samples([gpu_sample(1)]) == 1
    ingest.commit()
    assert stored(session) == [gpu_sample(1)]


def test_a_sample_of_an_unknown_gpu_registers_it_and_its_identity_completes_it(
    ingest: Ingest, session: Session
) -> None:
    ingest.gpu_samples([gpu_sample(0)])
    ingest.gpus([GpuIdentity("GPU-a", host="h1", model="NVIDIA H100 PCIe")])
    ingest.gpus([GpuIdentity("GPU-a", index=3)])
    ingest.commit()
    (gpu,) = fleet.gpus(session)
    assert gpu.identity == GpuIdentity("GPU-a", host="h1", index=3, model="NVIDIA H100 PCIe")
    assert (gpu.first_seen_ms, gpu.last_seen_ms, gpu.latest) == (H0, H0 + SPAN, gpu_sample(0))


def test_first_and_last_sight_grow_with_the_data(ingest: Ingest, session: Session) -> None:
    ingest.gpu_samples([gpu_sample(5, Activity.EMPTY), gpu_sample(9, Activity.EMPTY)])
    ingest.commit()
    ingest.gpu_samples([gpu_sample(2, Activity.PARKED), gpu_sample(7, Activity.EMPTY)])
    ingest.commit()
    row = session.scalars(select(GpuRow)).one()
    assert row.first_sample_ms == H0 + 2 * SPAN
    assert row.last_sample_ms == H0 + 9 * SPAN
    assert row.seen_until_ms == H0 + 10 * SPAN
    assert row.last_held_ms == H0 + 2 * SPAN


def test_published_settings_of_an_engine_are_merged(ingest: Ingest, session: Session) -> None:
    ingest.engines([EngineIdentity("h1:8000/0", "h1", "vllm", "opt", {"block_size": "16"}, ("GPU-a",))])
    ingest.engines([EngineIdentity("h1:8000/0", "h1", "vllm", None, {"num_gpu_blocks": "9"})])
    ingest.commit()
    (engine,) = fleet.engines(session)
    assert engine.identity.settings == {"block_size": "16", "num_gpu_blocks": "9"}
    assert (engine.identity.model, engine.gpu_uuids, engine.join) == ("opt", ("GPU-a",), "process")


def test_events_are_stored_once(ingest: Ingest, session: Session) -> None:
    lost = GpuEvent("GPU-a", H0, "xid", "GPU has fallen off the bus", 79)
    assert ingest.events([lost, lost]) == 1
    ingest.commit()
    assert ingest.events([lost, replace(lost, ts_ms=H0 + 1)]) == 1
    ingest.commit()
    assert events.gpu_events(session, Window(H0, H0 + 1), "GPU-a") == [lost]
    assert len(events.gpu_events(session, ALWAYS)) == 2


def test_workloads_of_two_hosts_with_the_same_key_are_two(ingest: Ingest, session: Session) -> None:
    one = process_sample(0)
    other = replace(one, gpu_uuid="GPU-b", workload=replace(one.workload, host="h2"))
    ingest.process_samples([one, other])
    ingest.commit()
    assert samples.processes(session, "GPU-a", ALWAYS) == [one]
    assert samples.processes(session, "GPU-b", ALWAYS) == [other]


def test_samples_of_many_days_find_their_partitions(ingest: Ingest, session: Session) -> None:
    given = [replace(gpu_sample(0), ts_ms=H0 + day * DAY_MS) for day in range(-2, 3)]
    assert ingest.gpu_samples(given) == 5
    ingest.commit()
    assert stored(session) == given


def test_two_writers_at_once_store_everything_once(ready_database: str, session: Session) -> None:
    failures: list[BaseException] = []

    def write(gpu: str) -> None:
        try:
            with open_connection(ready_database) as opened:
                ingest = Ingest(opened)
                for hour in range(0, 30, 3):
                    # each writer meets new days in the middle of its transaction, and shares one GPU
                    ingest.gpu_samples(
                        replace(gpu_sample(slot, gpu=name), ts_ms=H0 + hour * DAY_MS + slot * SPAN)
                        for slot in range(20)
                        for name in (gpu, "GPU-shared")
                    )
                    ingest.commit()
        except BaseException as error:
            failures.append(error)
            raise

    writers = [Thread(target=write, args=(f"GPU-{number}",)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert failures == []
    for gpu in ("GPU-0", "GPU-1", "GPU-2", "GPU-shared"):
        assert len(stored(session, gpu)) == 200


def test_a_database_without_tables_says_what_to_run(database_url: str) -> None:
    with (
        open_connection(database_url) as opened,
        pytest.raises(StoreError, match=r"is not set up [\s\S]* run: gpuwise db upgrade"),
    ):
        Ingest(opened)


def test_a_database_that_refuses_is_a_sentence_and_leaves_ingest_usable(
    ingest: Ingest, connection: Connection, session: Session
) -> None:
    with pytest.raises(StoreError, match="refused to store"):
        ingest.gpu_samples([replace(gpu_sample(0), span_ms="ten", covered_ms=None)])  # type: ignore[arg-type]
    assert ingest.gpu_samples([gpu_sample(0)]) == 1
    ingest.commit()
    assert stored(session) == [gpu_sample(0)]
    assert connection.fetch("SELECT COUNT(*) FROM gpu_sample") == [(1,)]


def test_a_writer_locked_out_for_longer_than_the_timeout_says_so(
    ready_database: str, ingest: Ingest, connection: Connection
) -> None:
    connection.execute(
        "PRAGMA busy_timeout = 50" if connection.dialect == "sqlite" else "SET lock_timeout = '50ms'"
    )
    connection.commit()
    with open_connection(ready_database) as other:
        other.begin()
        if other.dialect == "postgresql":
            other.execute("LOCK TABLE gpu IN EXCLUSIVE MODE")
        with pytest.raises(StoreError, match="refused to store"):
            ingest.gpu_samples([gpu_sample(0)])
        other.rollback()
    assert ingest.gpu_samples([gpu_sample(0)]) == 1
    ingest.commit()


def test_a_lost_connection_is_a_sentence(ready_database: str, ingest: Ingest, connection: Connection) -> None:
    if connection.dialect == "sqlite":
        connection.close()
    else:
        ((backend,),) = connection.fetch("SELECT pg_backend_pid()")
        with open_connection(ready_database) as other:
            other.fetch("SELECT pg_terminate_backend(?)", (backend,))
    with pytest.raises(StoreError, match="refused to store"):
        ingest.gpu_samples([gpu_sample(0)])
