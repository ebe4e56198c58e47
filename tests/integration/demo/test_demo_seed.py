"""Seeding the demo database: the same twice, topped up, never over real data."""

from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from agent.sources.simulator.fleet import gpu_uuid
from core.activity import Activity
from core.errors import GpuwiseError
from core.evidence import Window
from core.readings import GpuIdentity
from core.samples import GpuSample
from core.settings import Settings
from core.units import HOUR_MS, MINUTE_MS
from gpuwise.commands.demo import demo
from gpuwise.demo import ANCHOR_KEY, demo_settings, seed
from gpuwise.demo_feed import Feed
from store.dbapi import open_connection
from store.engine import dispose_engine, make_engine
from store.ingest import Ingest
from store.queries import fleet, hours, meta, samples
from store.rollup import roll_up
from store.schema import backup

NOW_MS = 1_794_998_723_456
"""Wednesday 18 November 2026, 10:45:23 UTC."""
ALL = Window(0, NOW_MS + 30 * HOUR_MS)


def settings_of(url: str) -> Settings:
    return Settings(database_url=url, simulated=True)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A SQLite demo database with a day of history."""
    url = f"sqlite:///{tmp_path_factory.mktemp('demo') / 'demo.db'}"
    seed(settings_of(url), NOW_MS, days=1, workers=0)
    return make_engine(url)


@pytest.fixture
def copied(seeded: Engine, tmp_path: Path) -> str:
    """Address of a copy of that database, to go on with."""
    path = tmp_path / "demo.db"
    backup(str(seeded.url), path)
    return f"sqlite:///{path}"


def test_two_seeds_with_the_same_now_give_equal_hours_on_either_database(
    seeded: Engine, ready_database: str
) -> None:
    seed(settings_of(ready_database), NOW_MS, days=1, workers=2)

    with Session(seeded) as ours, Session(make_engine(ready_database)) as theirs:
        assert hours.gpu_hours(ours, ALL) == hours.gpu_hours(theirs, ALL)
        assert hours.engine_hours(ours, ALL) == hours.engine_hours(theirs, ALL)
        key = lambda hour: (hour.gpu_uuid, hour.hour_ms, str(hour.workload))  # noqa: E731
        assert sorted(hours.usage_hours(ours, ALL), key=key) == sorted(
            hours.usage_hours(theirs, ALL), key=key
        )


def test_the_database_says_that_it_is_simulated(seeded: Engine) -> None:
    with Session(seeded) as session:
        assert meta.simulated(session)
        assert meta.get(session, ANCHOR_KEY) == str(NOW_MS // HOUR_MS * HOUR_MS)


def test_every_gpu_and_engine_is_covered_from_the_first_hour_to_now(seeded: Engine) -> None:
    with Session(seeded) as session:
        covered: dict[str, float] = defaultdict(float)
        for hour in hours.gpu_hours(session, ALL):
            covered[hour.gpu_uuid] += hour.covered_s
        engines = fleet.engines(session)

    whole_s = 24 * 3600 + 45 * 60
    assert len(covered) == 32
    assert all(spent_s == pytest.approx(whole_s) for spent_s in covered.values())
    assert {engine.last_seen_ms for engine in engines} == {NOW_MS // MINUTE_MS * MINUTE_MS}


def test_the_cast_shows_in_the_hours(seeded: Engine) -> None:
    with Session(seeded) as session:
        seconds: dict[str, dict[Activity, float]] = defaultdict(lambda: defaultdict(float))
        for hour in hours.gpu_hours(session, ALL):
            for activity, spent_s in hour.seconds.items():
                seconds[hour.gpu_uuid][activity] += spent_s

    def share(host: str, index: int, activity: Activity) -> float:
        found = seconds[gpu_uuid(host, index)]
        return found[activity] / sum(found.values())

    assert share("batch-01", 3, Activity.EMPTY) == 1.0
    assert share("lab-01", 0, Activity.PARKED) == 1.0
    assert share("lab-01", 2, Activity.STARVED) > 0.99
    assert share("lab-01", 4, Activity.SPINNING) == 1.0
    assert share("train-01", 0, Activity.COMPUTE_BOUND) > 0.95
    assert share("chat-01", 0, Activity.MEMORY_BOUND) > 0.99
    assert 0.2 < share("chat-01", 2, Activity.PARKED) < 0.6


def test_energy_of_an_engine_is_that_of_its_four_gpus(seeded: Engine) -> None:
    with Session(seeded) as session:
        ours = hours.engine_hours(session, ALL, "chat-01:8004/0")
        of_gpus = hours.gpu_hours(session, ALL, [gpu_uuid("chat-01", index) for index in range(4, 8)])

    joules = sum(hour.busy_energy_j or 0.0 for hour in ours)
    assert joules == pytest.approx(sum(hour.energy_j or 0.0 for hour in of_gpus), rel=0.01)


def test_a_second_seed_fills_what_is_missing_and_leaves_the_rest(copied: str) -> None:
    engine = make_engine(copied)
    with Session(engine) as session:
        before = {(hour.gpu_uuid, hour.hour_ms): hour for hour in hours.gpu_hours(session, ALL)}

    later = seed(settings_of(copied), NOW_MS + 5 * HOUR_MS, days=1, workers=0)
    again = seed(settings_of(copied), NOW_MS + 5 * HOUR_MS, days=1, workers=0)

    with Session(engine) as session:
        after = {(hour.gpu_uuid, hour.hour_ms): hour for hour in hours.gpu_hours(session, ALL)}
        anchor = meta.get(session, ANCHOR_KEY)
    cut_ms = NOW_MS // HOUR_MS * HOUR_MS
    full = [hour for (_uuid, hour_ms), hour in after.items() if hour_ms < cut_ms + 5 * HOUR_MS]
    assert later.samples > 0
    assert again.samples == 0
    assert all(hour.covered_s == pytest.approx(3600) for hour in full)
    assert all(after[key] == hour for key, hour in before.items() if key[1] < cut_ms)
    assert anchor == str(cut_ms)


def test_a_seed_that_was_cut_short_goes_on_where_it_stopped(seeded: Engine, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'demo.db'}"

    class EnoughError(Exception):
        """Stands for a process that is ended."""

    def end_after_nine(phase: str, done: int, _total: int) -> None:
        if (phase, done) == ("simulate", 9):
            raise EnoughError

    with pytest.raises(EnoughError):
        seed(settings_of(url), NOW_MS, days=1, workers=0, progress=end_after_nine)
    with Session(make_engine(url)) as session:
        begun = {gpu.identity.host for gpu in fleet.gpus(session) if gpu.latest is not None}
    seed(settings_of(url), NOW_MS, days=1, workers=0)

    assert begun == {"chat-01"}
    with Session(seeded) as ours, Session(make_engine(url)) as theirs:
        assert hours.gpu_hours(ours, ALL) == hours.gpu_hours(theirs, ALL)


def test_real_telemetry_is_never_seeded_over(ready_database: str) -> None:
    real = GpuSample("GPU-real", NOW_MS // 10_000 * 10_000, 10_000, 10_000, {}, None, Activity.UNKNOWN)
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity("GPU-real")])
        ingest.gpu_samples([real])
        ingest.commit()

    with pytest.raises(GpuwiseError, match=r"holds real telemetry.*--database-url"):
        seed(settings_of(ready_database), NOW_MS, days=1, workers=0)

    with Session(make_engine(ready_database)) as session:
        assert not meta.simulated(session)
        assert [gpu.identity.gpu_uuid for gpu in fleet.gpus(session)] == ["GPU-real"]


def test_the_live_feed_goes_on_where_history_ends_without_gap_or_overlap(copied: str) -> None:
    end_ms = NOW_MS // MINUTE_MS * MINUTE_MS
    with open_connection(copied) as connection:
        first = Feed(connection, NOW_MS)
        assert first.advance(NOW_MS + 60_000) > 32
        assert first.advance(NOW_MS + 61_000) == 0

    roll_up(make_engine(copied), now_ms=NOW_MS + 60_000)
    with Session(make_engine(copied)) as session:
        uuid = gpu_uuid("train-01", 2)
        live = samples.gpu_samples(session, uuid, Window(end_ms, NOW_MS + 60_000))
        (hour,) = hours.gpu_hours(session, Window(end_ms // HOUR_MS * HOUR_MS, ALL.to_ms), [uuid])
        held = samples.processes(session, uuid, Window(end_ms, NOW_MS + 60_000))
    assert [sample.ts_ms for sample in live] == list(range(end_ms, live[-1].ts_ms + 1, 10_000))
    assert {sample.span_ms for sample in live} == {10_000}
    assert live[-1].ts_ms + 20_000 > NOW_MS + 60_000
    assert hour.covered_s == pytest.approx(
        (live[-1].ts_ms + 10_000 - end_ms // HOUR_MS * HOUR_MS) / 1000, abs=2
    )
    assert {sample.workload.user for sample in held} == {"mara"}


def test_the_feed_refuses_a_database_without_a_demo_fleet(ready_database: str) -> None:
    with open_connection(ready_database) as connection, pytest.raises(GpuwiseError, match="demo --seed-only"):
        Feed(connection, NOW_MS)


def test_seed_only_fills_the_named_database_and_ends(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'demo.db'}"

    done = CliRunner().invoke(demo, ["--seed-only", "--database-url", url, "--days", "1"])

    assert done.exit_code == 0, done.output
    assert "the simulated fleet is ready" in done.output
    with Session(make_engine(url)) as session:
        assert meta.simulated(session)
        assert len(fleet.gpus(session)) == 32
    dispose_engine(url)


def test_the_demo_never_uses_the_database_of_real_telemetry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPUWISE_DATABASE_URL", f"sqlite:///{tmp_path / 'real.db'}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    found = demo_settings()

    assert found.database_url == f"sqlite:///{tmp_path / 'gpuwise' / 'demo.db'}"
    assert found.simulated
