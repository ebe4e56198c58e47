"""The setting ``usage_share_method`` reaches hours and ledger: a card cut into MIG slices is shared out by them."""

from contextlib import closing
from dataclasses import replace

import pytest
from fleet_for_tests import GIB, HOUR, NOW, SPAN, T0, settings_for
from sqlalchemy import text

from api.jobs.roll_up import ROLL_UP
from core.activity import Activity
from core.errors import SettingsError
from core.readings import GpuIdentity, WorkloadKey
from core.samples import EnergyMethod, GpuSample, ProcessSample
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest

A100 = "NVIDIA A100-SXM4-80GB"
CARD, LARGE, SMALL, FREE = "GPU-card", "MIG-large", "MIG-small", "MIG-free"
CUT = {LARGE: "3g.40gb", SMALL: "2g.20gb", FREE: "2g.20gb"}
BIG, LITTLE = (WorkloadKey("process", key, key, user=key, host="h1") for key in ("big", "little"))
NAMES = "SELECT w.key, u.allocated_s, u.active_s, u.energy_j, u.share_method FROM usage_hour u JOIN gpu g ON g.id = u.gpu_id LEFT JOIN workload w ON w.id = u.workload_id WHERE g.gpu_uuid = 'GPU-card' ORDER BY w.key"


def _fill(url: str) -> None:
    """An hour of a card in three slices: one process in each of two; the card lists both."""
    slots = range(6)
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus(
            [
                GpuIdentity(CARD, "h1", 0, A100, 80 * GIB),
                *(GpuIdentity(uuid, "h1", 0, f"{A100} MIG {name}", 20 * GIB) for uuid, name in CUT.items()),
            ]
        )
        known = {"power_w": 300.0, "energy_j": 180_000.0}
        for uuid in (CARD, *CUT):
            values, method = (known, EnergyMethod.COUNTER) if uuid == CARD else ({}, None)
            ingest.gpu_samples(
                GpuSample(uuid, T0 + slot * SPAN, SPAN, SPAN, values, method, Activity.BUSY) for slot in slots
            )
        for uuid, who, held, busy in (
            (CARD, BIG, 30, 0.25),
            (CARD, LITTLE, 10, 0.75),
            (LARGE, BIG, 30, None),
            (SMALL, LITTLE, 10, None),
        ):
            ingest.process_samples(
                ProcessSample(uuid, T0 + slot * SPAN, SPAN, who, held * GIB, busy, 1) for slot in slots
            )
        ingest.commit()


@pytest.mark.parametrize(
    ("method", "big", "little", "nobody"),
    [
        ("memory_time", (2_700.0, "memory_time"), (900.0, "memory_time"), None),
        ("sm_time", (900.0, "sm_time"), (2_700.0, "sm_time"), None),
        ("even", (1_800.0, "even"), (1_800.0, "even"), None),
        ("mig_slice", (1_542.857, "mig_slice"), (1_028.571, "mig_slice"), (1_028.571, "mig_slice")),
    ],
)
def test_hours_are_shared_out_as_the_site_says(
    ready_database: str,
    method: str,
    big: tuple[float, str],
    little: tuple[float, str],
    nobody: tuple[float, str] | None,
) -> None:
    _fill(ready_database)
    settings = replace(settings_for(ready_database), usage_share_method=method)
    engine = make_engine(ready_database)
    assert ROLL_UP.run(engine, settings, NOW).startswith("4 GPU hours")
    with engine.connect() as connection:
        rows = {row[0]: row for row in connection.execute(text(NAMES))}
    assert {key: (row[1], row[4]) for key, row in rows.items()} == {
        key: (pytest.approx(share[0], abs=0.02), share[1])
        for key, share in (("big", big), ("little", little), (None, nobody))
        if share is not None
    }
    assert round(sum(row[1] for row in rows.values()) * 1000) == HOUR
    assert sum(row[3] for row in rows.values()) == pytest.approx(6 * 180_000.0)
    assert {key: row[2] for key, row in rows.items()} == {
        key: 0.0 if key is None else row[1] for key, row in rows.items()
    }


def test_a_method_that_is_none_is_refused_at_start(tmp_path: object) -> None:
    with pytest.raises(SettingsError, match="usage_share_method is 'fair': use mig_slice, sm_time"):
        replace(settings_for(f"sqlite:///{tmp_path}/x.db"), usage_share_method="fair")
