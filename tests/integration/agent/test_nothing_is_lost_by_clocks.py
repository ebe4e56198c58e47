"""A wall clock that is set forward and back, and drifts: energy and means stay right, and nothing is lost or waits behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.sinks.server import ServerSink
from core.clock import now_ms
from core.samples import GpuSample, HostSample
from core.units import HOUR_MS, MINUTE_MS, SECOND_MS
from tests.integration.agent.chaos import ROOT, Agent, Child, drain, uuid_of
from tests.integration.agent.chaos_notes import doubles, losses, stored_rows
from tests.integration.agent.chaos_rounds import token_of
from tests.standin.build import build_or_skip
from tests.standin.clockshift import ShiftedClock
from tests.standin.profiles import busy_decode

pytestmark = [pytest.mark.xdist_group("chaos"), pytest.mark.timeout(180)]

TWO_HOURS_S = 7_200
LOW_W, HIGH_W, MEAN_W = 200.0, 600.0, 400.0
STEP_S = 0.5
PHASE_S = 3.0


@dataclass
class Spawner:
    """Starts programs as a shell would: a library can be preloaded."""

    environment: Mapping[str, str]

    def start(
        self, words: Sequence[str], environment: Mapping[str, str], log: Path, **_sets: object
    ) -> Child:
        own = {name: value for name, value in os.environ.items() if name[:8] != "GPUWISE_"}
        own |= {"PYTHONPATH": str(ROOT), "no_proxy": "*", **self.environment, **environment}
        with log.open("ab") as file:
            command = [sys.executable, "-m", "gpuwise", *words]
            return Child(subprocess.Popen(command, env=own, stdout=file, stderr=file).pid, log)


@pytest.fixture
def port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def clocks(tmp_path: Path) -> tuple[ShiftedClock, ShiftedClock]:
    build_or_skip(tmp_path / "driver")
    folders = tmp_path / "agent-clock", tmp_path / "server-clock"
    for folder in folders:
        folder.mkdir()
    return ShiftedClock(folders[0]), ShiftedClock(folders[1])


def until(fact: Callable[[], object], log: Path) -> None:
    patience_s = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < patience_s, log.read_text()[-3000:]
        time.sleep(0.05)


def varying_power(agent: Agent) -> None:
    """Half a second low, half a second high: a mean that was taken over the wrong time shows."""
    scenario = busy_decode(2)
    for gpu in range(2):
        scenario.at(0, gpu, "uuid", uuid_of(agent.number, gpu))
    for step in range(300):
        scenario.at(step * STEP_S, "*", "power_mw", round(1000 * (HIGH_W if step % 2 else LOW_W)))
    scenario.write(agent.folder / "scenario")


@pytest.mark.parametrize("database_kind", ["sqlite"], indirect=True)
def test_a_clock_that_jumps_and_drifts_changes_no_joule_and_blocks_nothing(
    ready_database: str,
    tmp_path: Path,
    port: int,
    clocks: tuple[ShiftedClock, ShiftedClock],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    clock, server_clock = clocks
    token = token_of(ready_database, 0)
    url = f"http://127.0.0.1:{port}"
    serve = ["serve", "--database-url", ready_database, "--port", str(port)]
    log = tmp_path / "server.log"
    server = Spawner(server_clock.environment).start(serve, {}, log)
    sink = ["--sink", "server", "--server-url", url]
    environment = {"GPUWISE_SERVER_TOKEN": token}
    agent = Agent(Spawner(clock.environment), tmp_path, 0, tmp_path / "driver", sink, 2, environment)  # type: ignore[arg-type]
    varying_power(agent)
    started = time.monotonic()
    agent.start()
    until(lambda: gpu_rows(ready_database), agent.log)
    began = time.monotonic()

    def go_on() -> None:
        end_s = time.monotonic() + PHASE_S
        while time.monotonic() < end_s:
            agent.notes.take_live()
            time.sleep(0.01)

    go_on()
    true_ms = now_ms()
    clock.set(TWO_HOURS_S)
    go_on()
    clock.set(0)
    go_on()
    clock.set(-TWO_HOURS_S)
    go_on()
    clock.set(-TWO_HOURS_S - 30)
    go_on()
    clock.set(-TWO_HOURS_S - 30, drift_ppm=20_000)
    go_on()
    least_s = time.monotonic() - began - 5 * 0.5
    agent.end()
    most_s = time.monotonic() - started
    ahead = {row for row in keys(agent) if row[2] > true_ms + HOUR_MS}
    assert ahead, "the forward step is in the spool"
    stored = stored_rows(ready_database)
    there = {(row.gpu_uuid, row.ts_ms) for row in stored if isinstance(row, GpuSample)}
    assert not {(uuid, ts_ms) for _kind, uuid, ts_ms in ahead} & there, "the future is not taken"
    assert min(ts_ms for _uuid, ts_ms in there) < true_ms - HOUR_MS, "what came after it did not wait"
    assert '"event": "samples are early for the sink\'s clock' in agent.log.read_text()
    server.end(signal.SIGTERM)
    server_clock.set(TWO_HOURS_S)
    server = Spawner(server_clock.environment).start(serve, {}, log)
    drain(agent, ServerSink(url, lambda: token), clock=lambda: now_ms() + TWO_HOURS_S * SECOND_MS + MINUTE_MS)
    server.end(signal.SIGTERM)
    stored = stored_rows(ready_database)
    assert agent.notes.refused == 0
    assert not losses([agent.notes], stored)
    assert not doubles(stored)
    samples = [row for row in stored if isinstance(row, GpuSample)]
    assert all(0 <= row.covered_ms <= row.span_ms == SECOND_MS for row in samples)
    assert all(row.values["energy_j"] <= HIGH_W * 1.2 for row in samples if "energy_j" in row.values)
    for gpu in range(2):
        covered_s, used_j, mean_j = of_one(samples, uuid_of(0, gpu))
        # A step ends a series: what lies between its last reading and the next one is not vouched for.
        assert least_s <= covered_s <= most_s, (least_s, covered_s, most_s)
        assert used_j == pytest.approx(MEAN_W * covered_s, rel=0.04)
        assert mean_j == pytest.approx(used_j, rel=0.04)
    hosts = [row for row in stored if isinstance(row, HostSample)]
    assert all(row.values.get("agent_cpu_s", 0.0) < 60 for row in hosts), "nothing spans the two hours"


def gpu_rows(database_url: str) -> list[object]:
    return [row for row in stored_rows(database_url) if isinstance(row, GpuSample)]


def keys(agent: Agent) -> set[tuple[str, str, int]]:
    return {(key[0], key[1], key[2]) for key in agent.notes.rows if key[0] == "gpu"}


def of_one(samples: Sequence[GpuSample], uuid: str) -> tuple[float, float, float]:
    """Covered seconds, joules by the counter, and joules that the means tell."""
    own = [row for row in samples if row.gpu_uuid == uuid and "energy_j" in row.values]
    return (
        sum(row.covered_ms for row in own) / 1000,
        sum(row.values["energy_j"] for row in own),
        sum(row.values["power_w"] * row.covered_ms / 1000 for row in own),
    )
