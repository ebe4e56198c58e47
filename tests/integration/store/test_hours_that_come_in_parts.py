"""An hour whose first part is purged before the second part comes, on both databases."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session
from store_samples import H0, NOW, engine_sample, gpu_sample, host_sample, process_sample

from core.activity import Activity
from core.evidence import Window
from core.quarters import Quarters
from core.readings import EngineIdentity, GpuIdentity
from core.units import DAY_MS
from store.dbapi import open_connection
from store.engine import session_scope
from store.ingest import Ingest
from store.queries import gpu_heat, hours
from store.retention import purge
from store.rollup import RollUpResult, roll_up

HOUR = Window(H0, H0 + 3_600_000)
FIRST, SECOND, WHOLE = range(180), range(180, 360), range(360)


def put(url: str, slots: Iterable[int]) -> None:
    """Slots in which the GPU works, parks and draws more as time goes by, with a process and an engine."""
    slots = list(slots)
    with open_connection(url) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity("GPU-a", "h1")])
        ingest.engines([EngineIdentity("h1:8000/0", "h1", "vllm", "opt")])
        ingest.gpu_samples(
            gpu_sample(
                slot,
                Activity.PARKED if slot % 3 == 0 else Activity.BUSY,
                power_w=100.0 + slot,
                energy_j=1_000.0 + 10 * slot,
                memory_used_bytes=1e9 + slot,
                nvlink_rx_bytes_per_s=1e6 * slot,
                nvlink_tx_bytes_per_s=1e6,
                tensor_hmma_active_ratio=slot / 400,
                slowed_power_cap_s=slot / 100,
                slowed_hw_thermal_s=slot / 50,
                temperature_margin_c=float(abs(slot - 200)),
            )
            for slot in slots
        )
        ingest.process_samples(
            process_sample(slot, cpu=1.0 + slot, thread=slot / 400) for slot in slots if slot % 5
        )
        ingest.engine_samples(engine_sample(slot, running=float(slot % 7)) for slot in slots)
        ingest.host_samples(
            host_sample(slot, cpu_busy_ratio=slot / 400, host_power_w=100.0 + slot) for slot in slots
        )
        ingest.commit()


def purge_raw(engine: Engine) -> None:
    assert not purge(engine, now_ms=H0 + 5 * DAY_MS, raw_days=2, hour_days=100).kept_pending


def seen(engine: Engine) -> list[dict[str, Any]]:
    """Everything the hour says, numbers in lists of their own so that they can be compared about."""
    with session_scope(engine) as session:
        lines = sorted(hours.usage_hours(session, HOUR), key=lambda line: str(line.workload))
        found = [*hours.gpu_hours(session, HOUR), *hours.engine_hours(session, HOUR), *lines]
        found += hours.host_hours(session, HOUR)
        quarters = [
            gpu_heat.gpu_quarters(session, HOUR, [1])[1, H0],
            gpu_heat.host_quarters(session, HOUR, "h1")[H0],
        ]
    return [_flat(asdict(one)) for one in found] + [_quarters(one) for one in quarters]


def _quarters(found: Quarters | None) -> dict[str, Any]:
    """Quarters as they are kept: in half precision."""
    assert found is not None
    return {
        f"{at}/{name}": pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
        for at, quarter in enumerate(found)
        for name, value in [*quarter._asdict().items(), *enumerate(quarter.values)]
        if name != "values"
    }


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {key: one for part in value for key, one in _flat(value[part], f"{name}/{part}").items()}
    return {name: pytest.approx(value) if isinstance(value, float) else value}


@pytest.mark.parametrize(("before", "after"), [(FIRST, SECOND), (SECOND, FIRST), (WHOLE[:300], WHOLE[300:])])
def test_both_parts_make_the_hour_that_all_samples_make(
    ready_database: str, engine: Engine, before: range, after: range
) -> None:
    put(ready_database, WHOLE)
    roll_up(engine, now_ms=NOW)
    whole = seen(engine)
    with engine.begin() as connection:
        for table in (
            "gpu_sample",
            "process_sample",
            "engine_sample",
            "host_sample",
            "gpu_hour",
            "engine_hour",
            "host_hour",
            "usage_hour",
        ):
            connection.execute(text(f"DELETE FROM {table}"))
    put(ready_database, before)
    roll_up(engine, now_ms=NOW)
    purge_raw(engine)
    put(ready_database, after)
    assert roll_up(engine, now_ms=NOW) == RollUpResult(1, 1, 2, 0, 0, 1)
    assert seen(engine) == whole


def test_a_third_part_after_another_purge_is_added_too(
    ready_database: str, engine: Engine, session: Session
) -> None:
    for start in (0, 120, 240):
        put(ready_database, range(start, start + 120))
        roll_up(engine, now_ms=NOW)
        purge_raw(engine)
    (hour,) = hours.gpu_hours(session, HOUR)
    assert hour.covered_s == 3600.0
    assert sum(line.allocated_s for line in hours.usage_hours(session, HOUR)) == 3600.0


def test_a_file_that_ends_within_an_interval_and_one_that_goes_on_there_are_parts(
    ready_database: str, engine: Engine, session: Session
) -> None:
    for samples in (
        [gpu_sample(0), gpu_sample(1, covered_ms=4_000)],
        [gpu_sample(1, covered_ms=6_000), gpu_sample(2)],
    ):
        with open_connection(ready_database) as connection:
            ingest = Ingest(connection)
            ingest.gpu_samples(samples)
            ingest.commit()
        roll_up(engine, now_ms=NOW)
        purge_raw(engine)
    (hour,) = hours.gpu_hours(session, HOUR)
    assert hour.covered_s == 30.0


def test_the_same_part_again_changes_nothing(ready_database: str, engine: Engine) -> None:
    put(ready_database, FIRST)
    roll_up(engine, now_ms=NOW)
    before = seen(engine)
    purge_raw(engine)
    put(ready_database, FIRST)
    assert roll_up(engine, now_ms=NOW).partial_hours == 0
    assert seen(engine) == before


@pytest.mark.parametrize(("again", "covered_s"), [(range(100, 200), 1800.0), (range(100, 360), 2600.0)])
def test_parts_that_overlap_are_counted_and_the_larger_one_stands(
    ready_database: str, engine: Engine, caplog: pytest.LogCaptureFixture, again: range, covered_s: float
) -> None:
    put(ready_database, FIRST)
    roll_up(engine, now_ms=NOW)
    purge_raw(engine)
    put(ready_database, again)
    assert roll_up(engine, now_ms=NOW).partial_hours == 3
    assert "without all of their samples" in caplog.text
    with session_scope(engine) as session:
        assert hours.gpu_hours(session, HOUR)[0].covered_s == covered_s
        assert hours.engine_hours(session, HOUR)[0].covered_s == covered_s
        assert hours.host_hours(session, HOUR)[0].covered_s == covered_s


def test_a_late_sample_within_what_is_there_is_no_part(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, [*range(180), *range(200, 360)])
    roll_up(engine, now_ms=NOW)
    put(ready_database, range(180, 200))
    assert roll_up(engine, now_ms=NOW).partial_hours == 0
    assert hours.gpu_hours(session, HOUR)[0].covered_s == 3600.0


def test_hours_of_before_spans_were_kept_are_replaced_by_what_covers_as_much(
    ready_database: str, engine: Engine, session: Session
) -> None:
    put(ready_database, FIRST)
    roll_up(engine, now_ms=NOW)
    with engine.begin() as connection:
        for table in ("gpu_hour", "engine_hour"):
            connection.execute(text(f"UPDATE {table} SET sampled_from_ms = NULL, sampled_to_ms = NULL"))
    with open_connection(ready_database) as connection_:
        ingest = Ingest(connection_)
        ingest.gpu_samples([replace(gpu_sample(180), gpu_uuid="GPU-a")])
        ingest.commit()
    roll_up(engine, now_ms=NOW)
    assert hours.gpu_hours(session, HOUR)[0].covered_s == 1810.0
