"""Real captures through import or ingest, roll-up and ledger, on both databases: what the raw files give by hand."""

import csv
import gzip
from collections import defaultdict
from contextlib import closing
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from fleet_for_tests import GIB, H100, HOUR
from ledger_for_tests import ingest, price, settings, stored, sums
from sqlalchemy import Engine, text

from api.resources.ledger_days import materialise
from core.activity import Activity
from core.readings import GpuIdentity
from core.samples import GpuSample
from gpuwise.__main__ import main
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest

pytestmark = pytest.mark.shared_data
STEP_MS = 57_000
"""The publisher of the day scaled time: 57 s stand for a sample of one minute."""
LATER = 1_800_000_000_000


def usage(engine: Engine) -> dict[int | None, tuple[float, float | None]]:
    """Seconds and joules of every workload, as the roll-up left them."""
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT workload_id, sum(allocated_s), sum(energy_j) FROM usage_hour GROUP BY workload_id")
        )
        return {workload: (seconds, joules) for workload, seconds, joules in rows}


def test_a_vllm_run_costs_its_time_and_its_energy(ready_database: str, shared_data: Path) -> None:
    path = shared_data / "openmetrics" / "llama-2-13b-max_num_seqs_8.prom.gz"
    with gzip.open(path, "rt") as lines:
        told = [line for line in lines if line.startswith("DCGM_FI_DEV_POWER_USAGE")]
    power = [tuple(map(float, line.rsplit(maxsplit=2)[1:])) for line in told]
    uuid = told[0].partition('UUID="')[2].partition('"')[0]
    assert main(["import", "openmetrics", str(path), "--database-url", ready_database]) == 0
    engine = make_engine(ready_database)
    price(engine, "3.99", uuid, 0)
    materialise(engine, settings(engine), LATER)

    found = sums(engine)
    clock_s = power[-1][1] - power[0][1]
    joules = sum((b[1] - a[1]) * (a[0] + b[0]) / 2 for a, b in pairwise(power))
    known, cost, energy = found["known_ms"], found["cost_usd"], found["energy_mj"]
    assert known is not None
    assert energy is not None
    # Samples lie on a grid of ten seconds: the first begins and the last ends up to so much outside the series.
    assert 0 <= known / 1000 - clock_s <= 20
    assert cost == round(Decimal(known) * 3_990_000 / HOUR)
    assert energy / 1000 == pytest.approx(joules, rel=0.005)
    # 0.2 for the host, PUE 1.25, 0.10 USD/kWh
    assert found["energy_usd"] == pytest.approx(joules * 1.5 / 3.6e6 * 100_000, rel=0.005)
    by_hand = usage(engine)
    lines = stored(engine, "workload_id", "known_ms", "cost_usd", "energy_mj", "kind")
    held = {row[0]: row for row in lines if row[4] == "workload"}
    assert held.keys() == by_hand.keys() - {None}
    assert held
    for workload, row in held.items():
        seconds, used_j = by_hand[workload]
        assert row[1] == round(seconds * 1000)
        # What whole micro-dollars leave over of the hour's three lines is the largest's.
        assert row[2] == pytest.approx(seconds * 3_990_000 / 3600, abs=3)
        assert used_j is not None
        assert row[3] == pytest.approx(used_j * 1000, abs=1)


def test_a_real_day_of_containers_costs_what_the_clock_says(ready_database: str, shared_data: Path) -> None:
    file = shared_data / "alibaba_gentd26" / "pod_gpu_duty_cycle_anon.csv.gz"
    if not file.is_file():
        pytest.skip(f"no real day here: {file} does not exist")
    busy: dict[str, dict[int, bool]] = defaultdict(dict)
    with gzip.open(file, "rt", newline="") as opened:
        for row in csv.DictReader(opened):
            at_ms = round(float(row["timestamp_anon"]) * 1000)
            busy[row["container_ip"]][at_ms] = float(row["value"]) > 0
    chosen = sorted(sorted(busy), key=lambda one: -sum(busy[one].values()))[:3]
    with closing(open_connection(ready_database)) as connection:
        sink = Ingest(connection)
        sink.gpus(GpuIdentity(one, "h1", at, H100, 80 * GIB) for at, one in enumerate(chosen))
        sink.commit()
    engine = make_engine(ready_database)
    for one in chosen:
        price(engine, "2.50", one, 0)
    ingest(
        engine,
        [
            GpuSample(
                one,
                at_ms,
                STEP_MS,
                STEP_MS,
                {"busy_ratio": 1.0 if works else 0.0, "memory_used_bytes": 8.0 * GIB},
                None,
                Activity.BUSY if works else Activity.PARKED,
            )
            for one in chosen
            for at_ms, works in busy[one].items()
        ],
        LATER,
    )
    materialise(engine, settings(engine), LATER)
    lines = stored(engine, "gpu_id", "known_ms", "covered_ms", "active_ms", "cost_usd", "idle_cost_usd")
    assert len({row[0] for row in lines}) == 3
    clock_ms = sum(max(times) + STEP_MS - min(times) for times in (busy[one] for one in chosen))
    worked_ms = sum(STEP_MS for one in chosen for works in busy[one].values() if works)
    covered_ms = sum(STEP_MS for one in chosen for _ in busy[one])
    known, covered, active, cost, idle = (sum(row[at] or 0 for row in lines) for at in range(1, 6))
    # Two cut hours a GPU are rounded to whole micro-dollars.
    assert known == clock_ms
    assert abs(cost - clock_ms * 2_500_000 / HOUR) <= 6
    # Samples over the end of an hour are scaled to it: at most one of them an hour.
    hours = clock_ms // HOUR + 6
    assert 0 <= covered_ms - covered <= hours * STEP_MS
    assert 0 <= worked_ms - active <= hours * STEP_MS
    assert idle == pytest.approx((covered - active) * 2_500_000 / HOUR, abs=hours)
