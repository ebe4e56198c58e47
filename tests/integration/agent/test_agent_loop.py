"""The daemon on a fake driver and a real database: stored, flushed at the end, undisturbed by failures."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_nvml import FakeGpu, FakeNvml
from list_sink import ListSink

from agent import loop
from agent.cli import main
from agent.loop import run
from agent.nvml import Driver
from agent.sinks.base import Sink, SinkError
from agent.sinks.database import DatabaseSink
from agent.sources.live import LiveSource
from core.delivery import Delivery
from store.dbapi import open_connection

ROOT = Path(__file__).parents[3]


def stop_after(source: LiveSource, ticks: int) -> threading.Event:
    """An event that is set when the source was asked so often."""
    stop, count, tick = threading.Event(), [0], source.tick

    def counted(clock: object) -> object:
        count[0] += 1
        if count[0] >= ticks:
            stop.set()
        return tick(clock)  # type: ignore[arg-type]

    source.tick = counted  # type: ignore[method-assign, assignment]
    return stop


def test_samples_reach_the_database_and_the_open_interval_is_flushed_at_the_end(ready_database: str) -> None:
    source = LiveSource(Driver(FakeNvml(FakeGpu(), FakeGpu(uuid="GPU-b"))), "node")
    counts = run(source, lambda: DatabaseSink(ready_database), interval_s=0.02, stop=stop_after(source, 10))
    with open_connection(ready_database) as connection:
        rows = connection.fetch(
            "SELECT gpu_uuid, count(*), sum(covered_ms), min(power_w) FROM gpu_sample JOIN gpu ON gpu.id = gpu_id GROUP BY gpu_uuid ORDER BY gpu_uuid"
        )
    assert [row[0] for row in rows] == ["GPU-a", "GPU-b"]
    assert all(row[2] >= 100 and row[3] == 300 for row in rows)
    assert counts.ticks >= 9
    assert counts.failed == counts.dropped == 0


def test_a_gpu_lost_on_the_way_is_an_event_in_the_store(ready_database: str) -> None:
    card = FakeGpu()
    source = LiveSource(Driver(FakeNvml(card, FakeGpu(uuid="GPU-b"))), "node")
    stop = stop_after(source, 12)
    timer = threading.Timer(0.1, lambda: card.fails.update({"": 15}))
    timer.start()
    run(source, lambda: DatabaseSink(ready_database), interval_s=0.02, stop=stop)
    timer.join()
    with open_connection(ready_database) as connection:
        assert connection.fetch("SELECT kind, code FROM gpu_event") == [("lost", 15)]


def test_a_sink_that_refuses_loses_nothing_that_fits_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "RETRY_S", 0.01)
    sinks: list[ListSink] = []
    refusals = iter([True, True, False])

    class Moody(ListSink):
        def deliver(self, delivery: Delivery) -> int:
            if next(refusals, False):
                raise SinkError("the database is locked")
            return super().deliver(delivery)

    def make() -> Sink:
        sinks.append(Moody())
        return sinks[-1]

    source = LiveSource(Driver(FakeNvml(FakeGpu())), "node")
    counts = run(source, make, interval_s=0.02, stop=stop_after(source, 12))
    assert counts.sink_errors == 2
    assert len(sinks) == 3
    assert list(sinks[-1].gpu_ids) == ["GPU-a"]
    assert len(sinks[-1].gpu_rows) >= 1
    assert all(sink.closed for sink in sinks)


def test_a_late_tick_skips_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    source = LiveSource(Driver(FakeNvml(FakeGpu())), "node")
    stop = stop_after(source, 4)
    tick, slow = source.tick, iter([0.0, 0.11])

    def late(clock: object) -> object:
        time.sleep(next(slow, 0.0))
        return tick(clock)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "tick", late)
    counts = run(source, ListSink, interval_s=0.03, stop=stop)
    assert counts.skipped >= 2


def test_a_tick_that_raises_is_counted_and_the_next_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    source = LiveSource(Driver(FakeNvml(FakeGpu())), "node")
    stop = stop_after(source, 5)
    tick, first = source.tick, iter([True])

    def failing(clock: object) -> object:
        if next(first, False):
            raise RuntimeError("a bug")
        return tick(clock)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "tick", failing)
    counts = run(source, ListSink, interval_s=0.01, stop=stop)
    assert counts.failed == 1
    assert counts.ticks >= 4


def test_a_driver_call_that_hangs_does_not_hold_up_the_end() -> None:
    gate = threading.Event()
    source = LiveSource(Driver(FakeNvml(FakeGpu())), "node")
    ticks = iter([False, False, True])
    tick, stop = source.tick, threading.Event()

    def hanging(clock: object) -> object:
        if next(ticks):
            threading.Timer(0.05, stop.set).start()
            gate.wait()
        return tick(clock)  # type: ignore[arg-type]

    source.tick = hanging  # type: ignore[method-assign, assignment]
    sink = ListSink()
    before = time.monotonic()
    run(source, lambda: sink, interval_s=0.01, stop=stop)
    assert time.monotonic() - before < 1.5
    assert len(sink.gpu_rows) >= 1
    gate.set()


def test_the_command_prints_one_sample_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.once.DISTANCE_S", 0.0)
    assert main(["--once", "--hostname", "node"], library=FakeNvml(FakeGpu())) == 0
    (sample,) = json.loads(capsys.readouterr().out)
    assert (sample["gpu_uuid"], sample["host"], sample["model"]) == ("GPU-a", "node", "NVIDIA H200")
    assert sample["dram_active_ratio"] is None


def test_the_agent_flushes_within_a_second_of_sigterm(tmp_path: Path, sqlite_template: Path) -> None:
    database = tmp_path / "agent.db"
    database.write_bytes(sqlite_template.read_bytes())
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from fake_nvml import FakeGpu, FakeNvml\n"
        "from agent.cli import main\n"
        f"sys.exit(main(['--interval', '0.1', '--database-url', 'sqlite:///{database}'], library=FakeNvml(FakeGpu())))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        with open_connection(f"sqlite:///{database}") as connection:
            while not connection.fetch("SELECT 1 FROM gpu") and time.monotonic() < deadline:
                time.sleep(0.02)
            asked = time.monotonic()
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=10)
            took = time.monotonic() - asked
            rows = connection.fetch("SELECT count(*) FROM gpu_sample")
    finally:
        child.kill()
        _out, err = child.communicate()
    assert child.returncode == 0, err.decode()
    assert rows[0][0] >= 1  # type: ignore[operator]
    assert took < 1.5, os.fsdecode(err)


def test_without_a_driver_the_agent_says_so_and_fails(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has an NVIDIA driver")
    done = subprocess.run(
        [sys.executable, "-m", "gpuwise", "agent", "--once"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "NVIDIA driver" in done.stderr
