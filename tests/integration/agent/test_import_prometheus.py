"""``gpuwise import prometheus`` on both databases, against a server that speaks the API."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prometheus_server import Server, prometheus
from scraped_fleet import Recorded, scrape_engine, scrape_gpu

from agent.fold import GpuFold
from agent.sources.prometheus import api
from agent.sources.simulator.fleet import fleet
from core.clock import now_ms
from core.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from gpuwise.__main__ import main
from store.dbapi import open_connection
from store.engine import make_engine
from store.fold_hours import fold_gpu_hour
from store.ingest import Ingest
from store.rollup import roll_up

START_MS = now_ms() // HOUR_MS * HOUR_MS - 8 * HOUR_MS
END_MS = START_MS + 6 * HOUR_MS
FROM, TO = (
    ["--from", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START_MS / 1000))],
    ["--to", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(END_MS / 1000))],
)
SCRAPED = range(START_MS + 7_000, END_MS, MINUTE_MS)
HOURS = """
    SELECT g.gpu_uuid, h.* FROM gpu_hour h JOIN gpu g ON g.id = h.gpu_id ORDER BY g.gpu_uuid, h.hour_ms
"""


@pytest.fixture
def server() -> object:
    with prometheus() as running:
        yield running


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["import", "prometheus", *words])
    out, err = capsys.readouterr()
    return code, out, err


def imported(
    capsys: pytest.CaptureFixture[str],
    server: Server,
    url: str,
    *more: str,
    span: tuple[str, ...] = (*FROM, *TO),
) -> dict[str, object]:
    code, out, err = command(capsys, "--url", server.url, "--database-url", url, "--json", *span, *more)
    assert code == 0, err
    report: dict[str, object] = json.loads(out)
    return report


def stored(url: str, sql: str) -> list[tuple[object, ...]]:
    with open_connection(url) as connection:
        return connection.fetch(sql)


def hours(url: str) -> list[dict[str, object]]:
    with make_engine(url).connect() as connection:
        return [dict(row) for row in connection.exec_driver_sql(HOURS).mappings()]


def total(url: str, column: str) -> float:
    return float(stored(url, f"SELECT sum({column}) FROM gpu_hour")[0][0])  # type: ignore[arg-type]


@pytest.mark.parametrize("every_s", [15, 60])
def test_a_gpu_has_the_hours_that_the_agent_would_have_given_it(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str], every_s: int
) -> None:
    """Scraped now and then against read every second: energy by the counter to 0.1 %, means to 1 %, times to 2 % of the hour."""
    end_ms = START_MS + 4 * HOUR_MS
    probe = fleet(END_MS).gpus[1]
    readings = {ts: probe.read(ts) for ts in range(START_MS, end_ms, SECOND_MS)}
    scrape_gpu(
        server, Recorded(probe.identity, readings), range(START_MS + 7_000, end_ms, every_s * SECOND_MS)
    )
    report = imported(capsys, server, ready_database)
    assert (report["step_s"], report["scrape_interval_s"]) == (every_s, every_s)
    fold = GpuFold(identities=[probe.identity])
    samples = [sample for reading in readings.values() for sample in fold.add(reading)] + fold.flush()
    rows = hours(ready_database)
    assert [row["hour_ms"] for row in rows] == list(range(START_MS, end_ms, HOUR_MS))
    for mine in rows[1:-1]:
        hour_ms = mine["hour_ms"]
        its = fold_gpu_hour(
            probe.identity.gpu_uuid, hour_ms, [s for s in samples if s.ts_ms // HOUR_MS * HOUR_MS == hour_ms]
        )
        assert its is not None
        assert mine["covered_s"] == its.covered_s == 3600
        assert mine["energy_method"] == "counter"
        assert mine["energy_j"] == pytest.approx(its.energy_j, rel=1e-3)
        for name in ("busy_ratio", "power_w", "sm_active_ratio", "dram_active_ratio", "memory_used_bytes"):
            assert mine[name] == pytest.approx(getattr(its, name), rel=0.01, abs=0.005), name
        for name in ("allocated_s", "active_s", "effective_s"):
            assert mine[name] == pytest.approx(getattr(its, name), abs=0.02 * 3600), name


def test_twice_is_once_and_what_is_new_is_added(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED)
    first = imported(capsys, server, ready_database, span=(*FROM, "--to", _iso(START_MS + 3 * HOUR_MS)))
    before = hours(ready_database)
    again = imported(capsys, server, ready_database, span=(*FROM, "--to", _iso(START_MS + 3 * HOUR_MS)))
    assert first["new_rows"] == 180 == first["gpu_samples"]
    assert (again["new_rows"], again["done_hours"], again["points"]) == (0, 3, 0)
    assert hours(ready_database) == before
    more = imported(capsys, server, ready_database)
    assert (more["new_rows"], more["done_hours"]) == (180, 3)
    whole = hours(ready_database)
    assert whole[:3] == before
    assert len(whole) == 6


def test_the_hour_that_was_running_is_completed_by_a_later_run(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED)
    imported(capsys, server, ready_database, span=(*FROM, "--to", _iso(START_MS + 2 * HOUR_MS + 1_234_000)))
    assert [row["covered_s"] for row in hours(ready_database)][1:] == [3600, 1260]
    again = imported(capsys, server, ready_database, span=(*FROM, "--to", _iso(START_MS + 3 * HOUR_MS)))
    assert [row["covered_s"] for row in hours(ready_database)][1:] == [3600, 3600]
    assert (again["new_rows"], again["done_hours"], again["known_hours"]) == (39, 2, 0)


def test_a_server_that_goes_away_leaves_what_was_stored_with_its_hours(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PAUSE_S", 0.001)
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED)
    server.most_samples = 150
    server.before = lambda _path: (502, b"bad gateway") if len(server.asked) > 80 else None
    words = ("--url", server.url, "--database-url", ready_database, *FROM, *TO)
    code, _out, err = command(capsys, *words)
    assert code == 1
    assert "answers 502" in err
    assert "what was stored before stays: the same command goes on from there" in err
    half = hours(ready_database)
    assert half
    server.before = lambda _path: None
    assert imported(capsys, server, ready_database)["done_hours"] == len(half)
    assert len(hours(ready_database)) == 6


def test_a_history_cut_into_windows_is_the_history_in_one(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED)
    one, cut = (f"sqlite:///{tmp_path / name}.db" for name in ("one", "cut"))
    imported(capsys, server, one)
    server.most_samples = 150
    imported(capsys, server, cut)
    look = "SELECT ts_ms, covered_ms, energy_j, busy_ratio, activity FROM gpu_sample ORDER BY ts_ms"
    assert stored(cut, look) == stored(one, look)


def test_a_series_that_stopped_is_a_gap_though_prometheus_carries_it_on(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    gap = range(START_MS + HOUR_MS + 10 * MINUTE_MS, START_MS + HOUR_MS + 40 * MINUTE_MS)
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED, seen=lambda ts_ms: ts_ms not in gap)
    report = imported(capsys, server, ready_database)
    covered = [row["covered_s"] for row in hours(ready_database)]
    assert covered[1] == pytest.approx(1800 - 60, abs=61)
    assert covered[2:5] == [3600, 3600, 3600]
    assert report["repeated_points"] > 0  # type: ignore[operator]


def test_a_server_that_does_not_tell_when_it_scraped_is_read_all_the_same_and_said(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.functions = False
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED)
    report = imported(capsys, server, ready_database)
    assert report["step_s"] == 60
    assert "does not tell when it scraped" in str(report["notes"])
    assert total(ready_database, "covered_s") == pytest.approx(6 * 3600, abs=420)


def test_energy_is_counted_over_resets_and_integrated_without_a_counter(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = fleet(END_MS).gpus[:3]
    reset_ms = START_MS + 2 * HOUR_MS + 20 * MINUTE_MS
    scrape_gpu(server, first, SCRAPED)
    at_reset: dict[str, float] = {}

    def reset(name: str, ts_ms: int, value: float) -> float:
        if name != "energy_j" or ts_ms < reset_ms:
            return value
        return value - at_reset.setdefault(name, value)

    scrape_gpu(server, second, SCRAPED, change=reset)
    scrape_gpu(server, third, SCRAPED, without=frozenset({"energy_j"}))
    imported(capsys, server, ready_database)
    rows = hours(ready_database)
    of_second = [row for row in rows if row["gpu_uuid"] == second.identity.gpu_uuid]
    assert [row["energy_method"] for row in of_second] == ["counter"] * 2 + ["mixed"] + ["counter"] * 3
    for row in rows:
        assert row["energy_j"] == pytest.approx(float(row["power_w"]) * float(row["covered_s"]), rel=0.01)  # type: ignore[arg-type]
    assert {row["energy_method"] for row in rows if row["gpu_uuid"] == third.identity.gpu_uuid} == {
        "integrated"
    }


def test_hours_of_the_agent_win(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = fleet(END_MS).gpus[0]
    scrape_gpu(server, probe, SCRAPED)
    live = fleet(END_MS).gpus[0]
    fold = GpuFold(identities=[live.identity])
    own = range(START_MS + 4 * HOUR_MS + 20 * MINUTE_MS, END_MS, 5 * SECOND_MS)
    samples = [s for ts in own for s in fold.add(live.read(ts))]  # type: ignore[arg-type]
    with open_connection(ready_database) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples(samples)
        ingest.commit()
    roll_up(make_engine(ready_database), now_ms=END_MS)
    before = hours(ready_database)
    report = imported(capsys, server, ready_database)
    assert report["known_hours"] == 2
    assert "2 hours left as they are" in str(report["notes"])
    assert hours(ready_database)[4:] == before
    assert [row["covered_s"] for row in hours(ready_database)[1:4]] == [3600.0] * 3


def test_old_samples_become_hours_and_go(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUWISE_RAW_DAYS", "1")
    start = (now_ms() // DAY_MS - 3) * DAY_MS
    scrape_gpu(server, fleet(END_MS).gpus[0], range(start, start + 3 * DAY_MS, 2 * MINUTE_MS))
    report = imported(capsys, server, ready_database, span=("--days", "4"))
    oldest = stored(ready_database, "SELECT min(ts_ms) FROM gpu_sample")[0][0]
    assert oldest == start + 2 * DAY_MS
    assert len(hours(ready_database)) == 72
    assert "only hours are kept" in str(report["notes"])
    assert imported(capsys, server, ready_database, span=("--days", "4"))["new_rows"] == 0


def test_pods_hold_gpus_and_an_engine_has_those_of_its_pod(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated = fleet(END_MS)
    middle = START_MS + 3 * HOUR_MS
    mine = {"exported_namespace": "chat", "exported_pod": "vllm-0", "exported_container": "server"}
    exporter = {"pod": "dcgm-exporter-abcde", "namespace": "gpu-operator", "container": "exporter"}
    scrape_gpu(server, simulated.gpus[0], SCRAPED, **exporter, **mine)
    scrape_gpu(server, simulated.gpus[1], SCRAPED, seen=lambda ts: ts < middle, **exporter)
    later = fleet(END_MS).gpus[1]
    scrape_gpu(
        server,
        later,
        SCRAPED,
        seen=lambda ts: ts >= middle,
        **exporter,
        exported_pod="train-1",
        exported_namespace="ml",
    )
    engine = simulated.engines[0]
    scrape_engine(server, engine, SCRAPED, instance="10.1.2.3:8000", pod="vllm-0", namespace="chat")
    report = imported(capsys, server, ready_database)
    held = stored(
        ready_database,
        "SELECT w.kind, w.key, w.attributes, g.gpu_uuid, sum(u.allocated_s) FROM usage_hour u JOIN gpu g ON g.id = u.gpu_id "
        "JOIN workload w ON w.id = u.workload_id GROUP BY 1, 2, 3, 4 ORDER BY 2",
    )
    assert [(row[0], row[1], row[3]) for row in held] == [
        ("pod", "chat/vllm-0", simulated.gpus[0].identity.gpu_uuid),
        ("pod", "ml/train-1", later.identity.gpu_uuid),
    ]
    assert json.loads(str(held[0][2])) == {"container": "server", "namespace": "chat", "pod": "vllm-0"}
    assert held[1][4] == pytest.approx(3 * 3600, abs=120)
    assert report["engines"] == ["10.1.2.3:8000/0"]
    told = stored(ready_database, "SELECT e.gpu_uuids, h.name FROM engine e JOIN host h ON h.id = e.host_id")
    assert told == [(json.dumps([simulated.gpus[0].identity.gpu_uuid]), simulated.gpus[0].identity.host)]
    assert stored(ready_database, "SELECT count(*) FROM engine_hour WHERE busy_energy_j > 0")[0][0] > 0  # type: ignore[operator]


def test_an_xid_is_an_event_where_it_changes(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = fleet(END_MS).gpus[0]
    scrape_gpu(server, probe, SCRAPED)
    labels = {**server.series[0].labels}
    labels.pop("__name__")
    at = SCRAPED[150]
    server.add("DCGM_FI_DEV_XID_ERRORS", labels, [(ts, 31.0 if ts < at else 79.0) for ts in SCRAPED])
    report = imported(capsys, server, ready_database)
    assert report["events"] == 1
    assert stored(ready_database, "SELECT ts_ms, kind, code FROM gpu_event") == [(at, "xid", 79)]


def test_one_of_two_targets_of_a_gpu_is_read(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED, prometheus_replica="a")
    slow = range(START_MS + 11_000, END_MS, MINUTE_MS)
    scrape_gpu(
        server, fleet(END_MS).gpus[0], slow, prometheus_replica="b", change=lambda _n, _t, value: value / 2
    )
    report = imported(capsys, server, ready_database)
    assert "is scraped by more than one target" in str(report["notes"])
    for row in hours(ready_database)[1:-1]:
        assert row["energy_method"] == "counter"
        assert row["energy_j"] == pytest.approx(float(row["power_w"]) * float(row["covered_s"]), rel=0.01)  # type: ignore[arg-type]


def test_an_exporter_that_was_started_anew_goes_on_without_a_gap(
    ready_database: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    middle = START_MS + 3 * HOUR_MS
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED, seen=lambda ts: ts < middle, instance="10.0.0.4:9400")
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED, seen=lambda ts: ts >= middle, instance="10.0.0.9:9400")
    report = imported(capsys, server, ready_database)
    assert [row["covered_s"] for row in hours(ready_database)][1:-1] == [3600] * 4
    assert report["notes"] == []


def test_a_killed_import_goes_on_where_it_stopped(
    ready_database: str, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    for probe in fleet(END_MS).gpus[:2]:
        scrape_gpu(server, probe, SCRAPED)
    server.most_samples = 200  # many small pieces
    words = ["import", "prometheus", "--url", server.url, "--database-url", ready_database, *FROM, *TO]
    whole = f"sqlite:///{tmp_path / 'whole.db'}"
    imported(capsys, server, whole)
    questions = len(server.asked)
    for part in (3, 4):
        started = len(server.asked)
        child = subprocess.Popen(
            [sys.executable, "-m", "gpuwise", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        limit = time.monotonic() + 60
        while len(server.asked) < started + questions // part and child.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.002)
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    report = imported(capsys, server, ready_database)
    assert report["done_hours"] > 0  # type: ignore[operator]
    keys = ("gpu_uuid", "hour_ms", "covered_s", "energy_j", "busy_ratio", "active_s")

    def figures(url: str) -> list[list[object]]:
        return [[row[key] for key in keys] for row in hours(url)]

    assert figures(ready_database) == figures(whole)


def _iso(ts_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ts_ms / 1000))
