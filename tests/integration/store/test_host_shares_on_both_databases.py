"""The measured share of a host follows its days and marks the ledger's, on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session
from store_samples import H0, NOW, SPAN, gpu_sample, host_sample

from core.readings import GpuIdentity
from core.units import DAY_MS, HOUR_MS
from store import schema
from store.dbapi import open_connection
from store.ingest import Ingest
from store.queries.host_share import HostShares
from store.retention import purge
from store.rollup import roll_up

HOUR = HOUR_MS // SPAN
DAY = 24 * HOUR
STEP = 60
"""Ten minutes in slots."""


def put(
    url: str, *, hosts: range = range(0), gpus: range = range(0), gpu: str = "GPU-a", host_w: float = 150.0
) -> None:
    """Ten-minute samples of host h1 and of one of its cards (300 W) that begin at these slots."""
    span = STEP * SPAN
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(gpu, "h1", 0, "NVIDIA H100 80GB HBM3", 80 << 30)])
        ingest.gpu_samples(
            replace(gpu_sample(slot, gpu=gpu, energy_j=300.0 * 600), span_ms=span, covered_ms=span)
            for slot in gpus
        )
        ingest.host_samples(replace(host_sample(slot, host_power_w=host_w), span_ms=span) for slot in hosts)
        ingest.commit()


def marks(session: Session) -> set[tuple[str, int]]:
    found = session.execute(
        text("SELECT gpu_uuid, day_ms FROM ledger_pending JOIN gpu ON gpu.id = ledger_pending.gpu_id")
    )
    return {(uuid, (day_ms - H0) // DAY_MS) for uuid, day_ms in found}


def cleared(session: Session) -> None:
    session.execute(text("DELETE FROM ledger_pending"))
    session.commit()


def test_a_share_is_told_by_day_and_marks_the_days_of_the_hosts_cards(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, hosts=range(0, 2 * DAY, STEP), gpus=range(0, DAY + 6 * HOUR, STEP))
    roll_up(engine, now_ms=NOW)
    shares = HostShares(session)
    assert shares("h1", H0 + 5 * HOUR_MS) == pytest.approx(0.5)
    assert shares("h1", H0 + DAY_MS) is None  # the card was seen for a quarter of the host's day
    assert shares("h2", H0) is None
    assert list(shares.borders()) == [H0, H0 + DAY_MS]
    assert ("GPU-a", 0) in marks(session)


def test_late_samples_of_the_host_or_of_another_card_tell_it_anew(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, gpus=range(0, DAY, STEP))
    roll_up(engine, now_ms=NOW)
    cleared(session)
    assert HostShares(session)("h1", H0) is None
    put(ready_database, hosts=range(0, DAY, STEP))
    roll_up(engine, now_ms=NOW)
    assert HostShares(session)("h1", H0) == pytest.approx(0.5)
    assert marks(session) == {("GPU-a", 0)}
    cleared(session)
    put(ready_database, gpus=range(0, DAY, STEP), gpu="GPU-b")
    roll_up(engine, now_ms=NOW)
    assert HostShares(session)("h1", H0) == pytest.approx(0.25)
    assert {("GPU-a", 0), ("GPU-b", 0)} <= marks(session)


def test_a_card_that_was_seen_for_less_takes_the_share_away(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, hosts=range(0, DAY, STEP), gpus=range(0, DAY, STEP))
    roll_up(engine, now_ms=NOW)
    cleared(session)
    put(ready_database, gpus=range(0, 2 * HOUR, STEP), gpu="GPU-b")
    roll_up(engine, now_ms=NOW)
    assert HostShares(session)("h1", H0) is None
    assert ("GPU-a", 0) in marks(session)


def test_a_roll_up_that_changes_nothing_marks_nothing(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, hosts=range(0, DAY, STEP), gpus=range(0, DAY, STEP))
    roll_up(engine, now_ms=NOW)
    cleared(session)
    session.execute(
        text("INSERT INTO day_pending (kind, entity_id, day_ms) SELECT 'host', host_id, day_ms FROM host_day")
    )
    session.commit()
    roll_up(engine, now_ms=NOW)
    assert marks(session) == set()


def test_shares_go_with_their_days(ready_database: str, engine: Engine, session: Session) -> None:
    put(ready_database, hosts=range(0, DAY, STEP), gpus=range(0, DAY, STEP))
    roll_up(engine, now_ms=NOW)
    purge(engine, now_ms=H0 + 10 * DAY_MS, raw_days=1, hour_days=2)
    assert HostShares(session)("h1", H0) is None


def test_days_that_were_there_before_the_upgrade_are_told_too(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, hosts=range(0, DAY, STEP), gpus=range(0, DAY, STEP))
    roll_up(engine, now_ms=NOW)
    session.close()
    schema.downgrade(ready_database, "0010")
    schema.upgrade(ready_database)
    assert HostShares(session)("h1", H0) is None
    roll_up(engine, now_ms=NOW)
    assert HostShares(session)("h1", H0) == pytest.approx(0.5)
