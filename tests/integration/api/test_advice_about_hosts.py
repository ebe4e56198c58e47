"""A host as one recommendation through its life: merged, set aside, and not back GPU by GPU."""

from contextlib import closing
from typing import Final

from fleet_for_tests import GIB, H100, settings_for

from api.resources import advise
from api.resources.scope import scope_of
from core.activity import Activity
from core.finding import Status
from core.readings import GpuIdentity
from core.samples import EnergyMethod, GpuSample
from core.units import HOUR_MS
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.queries import recommendations as kept
from store.rollup import roll_up

T0: Final = 1_791_158_400_000
UUIDS: Final = ("GPU-a", "GPU-b")


def hour(uuid: str, at: int, activity: Activity) -> GpuSample:
    busy = activity is Activity.BUSY
    known = {
        "busy_ratio": 0.9 if busy else 0.0,
        "memory_used_bytes": 60.0 * GIB if busy else 0.0,
        "process_count": float(busy),
    }
    return GpuSample(uuid, T0 + at * HOUR_MS, HOUR_MS, HOUR_MS, known, EnergyMethod.COUNTER, activity)


def fill(url: str, from_h: int, to_h: int, *working: str) -> None:
    """Hours of both GPUs; those named work, the others are empty."""
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(uuid, "h1", at, H100, 80 * GIB) for at, uuid in enumerate(UUIDS)])
        ingest.gpu_samples(
            hour(uuid, at, Activity.BUSY if uuid in working else Activity.EMPTY)
            for uuid in UUIDS
            for at in range(from_h, to_h)
        )
        ingest.commit()
    while roll_up(make_engine(url), now_ms=T0 + to_h * HOUR_MS).pending_left:
        pass


def found(url: str, at_h: int) -> list[tuple[str, str]]:
    """Subjects of ``empty-gpu`` as a recorded run says them."""
    with session_scope(make_engine(url)) as session:
        view = advise.run(scope_of(session, settings_for(url), T0 + at_h * HOUR_MS), record=True)
    rows = [row for row in view.recommendations if row.rule_id == "empty-gpu"]
    return [(row.subject.kind, row.subject.id) for row in rows]


def listed(url: str) -> dict[str, Status]:
    with session_scope(make_engine(url)) as session:
        rows = [one for one in kept.listing(session) if one.finding.rule_id == "empty-gpu"]
        return {one.finding.subject.id: one.status for one in rows}


def test_gpus_become_their_host_and_what_was_set_aside_with_it_stays_aside(ready_database: str) -> None:
    url = ready_database
    fill(url, 0, 30, "GPU-b")
    assert found(url, 30) == [("gpu", "GPU-a")]
    fill(url, 30, 60)
    assert found(url, 60) == [("host", "h1")]
    assert listed(url) == {"GPU-a": Status.GONE, "h1": Status.OPEN}
    with session_scope(make_engine(url)) as session:
        (id_,) = [one.id for one in kept.listing(session, [Status.OPEN]) if one.finding.subject.id == "h1"]
        kept.set_status(session, id_, Status.DISMISSED, T0 + 60 * HOUR_MS, note="hot spare")
    fill(url, 60, 61, "GPU-b")
    assert found(url, 61) == []
    assert listed(url) == {"GPU-a": Status.GONE, "h1": Status.DISMISSED}
    fill(url, 61, 90)
    assert found(url, 90) == [("host", "h1")]
    assert listed(url) == {"GPU-a": Status.GONE, "h1": Status.DISMISSED}
