"""Deliveries of agents into both databases: all of one at once, exactly once, and states without churn."""

from collections.abc import Iterator
from dataclasses import replace
from math import nan

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session
from store_samples import H0, SPAN, engine_sample, gpu_sample, host_sample, process_sample

from core import delivery
from core.delivery import Delivery
from core.errors import StoreError
from core.evidence import Window
from core.metrics import GPU_COLUMNS, HOST_COLUMNS
from core.readings import EngineIdentity, GpuHealth, GpuIdentity, HostIdentity, WorkloadKey
from core.samples import GpuEvent, ProcessSample
from core.units import MINUTE_MS
from store.dbapi import Connection, open_connection
from store.ingest import Ingest
from store.models.host import HostRow
from store.models.rollup_pending import RollupPendingRow
from store.models.workload import WorkloadRow
from store.queries import events, fleet, health, host_samples, samples
from store.raw import SqlRawReader

ALWAYS = Window(0, 10**15)
HOST = HostIdentity("h1", 96, 2 * 10**12, "1.4.0")
POD = WorkloadKey("pod", "ns/trainer-0", "trainer-0", "ann", "h1", (("namespace", "ml"), ("pod_uid", "7f3c")))


@pytest.fixture
def connection(ready_database: str) -> Iterator[Connection]:
    with open_connection(ready_database) as opened:
        yield opened


@pytest.fixture
def ingest(connection: Connection) -> Ingest:
    return Ingest(connection)


def whole_delivery() -> Delivery:
    """Something of every kind, every metric known."""
    every_gpu_metric = {name: 0.5 + at for at, name in enumerate(GPU_COLUMNS)}
    every_host_metric = {name: 0.25 + at for at, name in enumerate(HOST_COLUMNS)}
    pod = replace(process_sample(0, cpu=3.5, thread=0.99), workload=POD)
    return Delivery(
        HOST,
        gpus=[GpuIdentity("GPU-a", "h1", 0, "NVIDIA H200", compute_capability="9.0", power_averaging_s=1.0)],
        engines=[EngineIdentity("h1:8000/0", "h1", "vllm", "opt", {"block_size": "16"}, ("GPU-a",))],
        gpu_samples=[gpu_sample(0, **every_gpu_metric)],
        process_samples=[pod],
        engine_samples=[engine_sample(0)],
        host_samples=[host_sample(0, **every_host_metric)],
        events=[GpuEvent("GPU-a", H0, "xid", "GPU has fallen off the bus", 79)],
        health=[
            GpuHealth("GPU-a", H0, {"ecc_mode": "on", "ecc_corrected_count": 3, "power_limit_max_w": 700.0})
        ],
    )


def test_everything_of_a_delivery_comes_back(ingest: Ingest, session: Session) -> None:
    given = whole_delivery()
    assert ingest.deliver(given, agent_id="a1", sequence=7, now_ms=H0 + 15_000) == 5
    ingest.commit()
    (gpu,) = fleet.gpus(session)
    assert gpu.identity == given.gpus[0]
    assert samples.gpu_samples(session, "GPU-a", ALWAYS) == given.gpu_samples
    assert samples.processes(session, "GPU-a", ALWAYS) == given.process_samples
    assert host_samples.host_samples(session, "h1", ALWAYS) == given.host_samples
    assert events.gpu_events(session, ALWAYS) == given.events
    assert health.gpu_health(session) == {"GPU-a": given.health[0]}
    (host,) = host_samples.hosts(session)
    assert host == host_samples.AgentHost(HOST, "a1", 7, H0 + 15_000, H0, H0 + SPAN, given.host_samples[0])
    row = RollupPendingRow
    assert set(session.execute(select(row.hour_ms, row.kind))) == {
        (H0, kind) for kind in ("gpu", "engine", "host")
    }


def test_the_raw_reader_gives_what_was_delivered(ingest: Ingest, session: Session) -> None:
    given = whole_delivery()
    ingest.deliver(given)
    ingest.commit()
    reader = SqlRawReader(session.get_bind())  # type: ignore[arg-type]
    assert reader.gpu_samples(["GPU-a"], ALWAYS) == given.gpu_samples
    assert reader.process_samples(["GPU-a"], ALWAYS) == given.process_samples
    assert reader.engine_samples(["h1:8000/0"], ALWAYS) == given.engine_samples
    assert reader.host_samples(["h1"], ALWAYS) == given.host_samples
    assert reader.host_samples(["h2"], ALWAYS) == []


def test_a_delivery_stays_the_same_through_its_json(ingest: Ingest, session: Session) -> None:
    given = whole_delivery()
    read = delivery.decode(delivery.encode(given, agent_id="a1", sequence=7))
    assert ingest.deliver(read) == 5
    assert ingest.deliver(given) == 0
    ingest.commit()
    assert samples.processes(session, "GPU-a", ALWAYS) == given.process_samples


def test_the_same_delivery_again_changes_nothing(ingest: Ingest, session: Session) -> None:
    ingest.deliver(whole_delivery(), agent_id="a1", sequence=7)
    ingest.commit()
    before = everything(session)
    session.rollback()
    for again in (ingest, Ingest(ingest._connection)):
        assert again.deliver(whole_delivery(), agent_id="a1", sequence=7) == 0
        again.commit()
        assert everything(session) == before
        session.rollback()


def everything(session: Session) -> list[list[tuple[object, ...]]]:
    tables = ("host", "gpu", "workload", "gpu_sample", "process_sample", "host_sample", "rollup_pending")
    return [[tuple(row) for row in session.execute(text(f"SELECT * FROM {table}"))] for table in tables]


def test_nothing_is_kept_of_a_delivery_that_was_rolled_back(ingest: Ingest, session: Session) -> None:
    ingest.deliver(whole_delivery(), agent_id="a1", sequence=7)
    ingest.rollback()
    assert host_samples.hosts(session) == []
    session.rollback()
    assert ingest.deliver(whole_delivery(), agent_id="a1", sequence=7) == 5
    ingest.commit()
    assert health.gpu_health(session).keys() == {"GPU-a"}
    assert host_samples.hosts(session)[0].agent_sequence == 7


def test_a_delivery_that_is_refused_leaves_nothing(ingest: Ingest, session: Session) -> None:
    broken = whole_delivery()
    broken.events.append(GpuEvent("GPU-a", None, "xid", "when?"))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="refused to store"):
        ingest.deliver(broken)
    ingest.commit()
    assert everything(session) == [[]] * 7


def test_an_import_has_no_host_to_complete(ingest: Ingest, session: Session) -> None:
    assert ingest.deliver(Delivery(gpu_samples=[gpu_sample(0)]), agent_id="a1", sequence=1) == 1
    ingest.commit()
    assert host_samples.hosts(session) == []


def test_what_is_known_of_a_host_is_completed_and_never_erased(ingest: Ingest, session: Session) -> None:
    ingest.deliver(Delivery(HOST), agent_id="a1", sequence=3, now_ms=H0)
    ingest.commit()
    ingest.deliver(Delivery(HostIdentity("h1", agent_version="1.5.0")))
    ingest.commit()
    (host,) = host_samples.hosts(session)
    assert host.identity == replace(HOST, agent_version="1.5.0")
    assert (host.agent_id, host.agent_sequence, host.agent_seen_ms, host.latest) == ("a1", 3, H0, None)


def test_the_last_sequence_never_falls_but_with_a_new_spool(ingest: Ingest, session: Session) -> None:
    told = []
    for agent_id, sequence in (("a1", 5), ("a1", 4), ("a1", 6), ("a2", 1)):
        ingest.deliver(Delivery(HOST), agent_id=agent_id, sequence=sequence)
        ingest.commit()
        told.append(session.execute(select(HostRow.agent_id, HostRow.agent_sequence)).one())
        session.rollback()
    assert told == [("a1", 5), ("a1", 5), ("a1", 6), ("a2", 1)]


def test_without_a_clock_the_newest_sample_says_when_a_delivery_came(
    ingest: Ingest, session: Session
) -> None:
    ingest.deliver(Delivery(HOST, gpu_samples=[gpu_sample(3)], host_samples=[host_sample(1)]))
    ingest.commit()
    assert host_samples.hosts(session)[0].agent_seen_ms == H0 + 4 * SPAN


def state(after_ms: int, corrected: int = 0) -> GpuHealth:
    return GpuHealth("GPU-a", H0 + after_ms, {"ecc_corrected_count": corrected, "ecc_mode": "on"})


@pytest.mark.parametrize("restarted", [False, True])
def test_health_is_written_when_it_changed_and_every_ten_minutes(
    connection: Connection, session: Session, restarted: bool
) -> None:
    ingest = Ingest(connection)
    written = []
    for asked in (
        state(0),
        state(9 * MINUTE_MS),
        state(10 * MINUTE_MS),
        state(11 * MINUTE_MS, 1),
        state(5 * MINUTE_MS, 9),
        state(12 * MINUTE_MS, 1),
    ):
        if restarted:
            ingest = Ingest(connection)
        ingest.health([asked])
        ingest.commit()
        (found,) = health.gpu_health(session).values()
        session.rollback()
        written.append(((found.ts_ms - H0) // MINUTE_MS, found.facts["ecc_corrected_count"]))
    assert written == [(0, 0), (0, 0), (10, 0), (11, 1), (11, 1), (11, 1)]


def test_the_newest_state_of_a_delivery_counts_and_no_number_is_unknown(
    ingest: Ingest, session: Session
) -> None:
    broken = GpuHealth("GPU-a", H0 + 2, {"power_limit_max_w": nan, "mig_mode": "off"})
    ingest.health([state(1, 5), broken, state(0, 7)])
    ingest.commit()
    assert health.gpu_health(session) == {"GPU-a": GpuHealth("GPU-a", H0 + 2, {"mig_mode": "off"})}


def test_attributes_of_a_workload_are_completed_and_never_erased(
    connection: Connection, session: Session
) -> None:
    for attributes in (
        (),
        (("namespace", "ml"), ("pod", "a")),
        (("container_id", "c1"),),
        (("pod", "b"),),
        (),
    ):
        ingest = Ingest(connection)  # each knows nothing of what the one before it registered
        ingest.process_samples([held(attributes, at=len(attributes))])
        ingest.commit()
    stored = session.scalars(select(WorkloadRow.attributes)).one()
    assert stored == '{"container_id":"c1","namespace":"ml","pod":"b"}'
    found = samples.processes(session, "GPU-a", ALWAYS)
    assert {one.workload.attributes for one in found} == {
        (("container_id", "c1"), ("namespace", "ml"), ("pod", "b"))
    }


def held(attributes: tuple[tuple[str, str], ...], at: int = 0) -> ProcessSample:
    one = process_sample(at)
    return replace(one, workload=replace(one.workload, attributes=attributes))


def test_one_workload_told_with_and_without_attributes_is_one(ingest: Ingest, session: Session) -> None:
    ingest.process_samples([held(()), held((("pod", "ü"),), at=1), held((), at=2)])
    ingest.commit()
    assert session.scalars(select(WorkloadRow.attributes)).all() == ['{"pod":"ü"}']


def test_host_figures_that_are_no_number_are_unknown(ingest: Ingest, session: Session) -> None:
    ingest.deliver(Delivery(HOST, host_samples=[host_sample(0, iowait_ratio=nan)]))
    ingest.commit()
    (host,) = host_samples.hosts(session)
    assert host.latest == host_sample(0)


def test_the_latest_sample_is_each_hosts_own(ingest: Ingest, session: Session) -> None:
    ingest.host_samples([host_sample(2), host_sample(1), host_sample(0, host="h2", iowait_ratio=0.5)])
    ingest.commit()
    ingest.host_samples([host_sample(0)])
    ingest.commit()
    one, other = host_samples.hosts(session)
    assert (one.latest, one.first_seen_ms, one.last_seen_ms) == (host_sample(2), H0, H0 + 3 * SPAN)
    assert other.latest == host_sample(0, host="h2", iowait_ratio=0.5)
    first_two = host_samples.host_samples(session, "h1", ALWAYS, limit=2)
    assert first_two == [host_sample(0), host_sample(1)]
