"""Pause and resume, the end, and two agents on one spool."""

import os
import signal
import time
from pathlib import Path

from live_agent import LiveAgent

from core.clock import now_ms
from tests.standin import profiles
from tests.standin.scenario import gpu_uuid

GPU = gpu_uuid(0)


def sampled(agent: LiveAgent, since_ms: int = 0) -> None:
    agent.until(lambda: agent.samples(GPU, f"covered_ms = 1000 AND ts_ms >= {since_ms}"))


def test_a_pause_lets_go_of_the_driver_and_ends_when_told_or_by_itself(tmp_path: Path) -> None:
    with LiveAgent(tmp_path, profiles.busy_decode(start_s=now_ms() / 1000)) as agent:
        sampled(agent)
        driver_pid = agent.account["driver_pid"]
        said = agent.order("status")
        assert (said.returncode, "sampling" in said.stdout) == (0, True), said.stderr

        os.kill(agent.process.pid, signal.SIGUSR1)
        agent.until(lambda: agent.account["paused"])
        paused_ms = now_ms()
        assert agent.account["driver_pid"] is None
        assert not Path(f"/proc/{driver_pid}").exists()
        assert agent.calls()["nvmlShutdown", None]  # let go of, not just killed
        assert "paused until" in agent.order("status").stdout
        agent.until(lambda: agent.rows(f"SELECT 1 FROM host_sample WHERE ts_ms > {paused_ms}"))
        assert agent.samples(GPU, f"ts_ms > {paused_ms}") == []
        os.kill(agent.process.pid, signal.SIGUSR2)
        agent.until(lambda: not agent.account["paused"])
        sampled(agent, paused_ms)

        done = agent.order("pause", "--for", "2s")
        assert "released" in done.stdout, done.stderr
        again_ms = now_ms()
        agent.until(lambda: not agent.account["paused"])
        sampled(agent, again_ms)
        assert agent.events("lost") == []
        assert agent.events("stuck") == []

        # Two agents on one spool: one sentence, no traceback, and the first one goes on.
        second = agent.again()
        assert second.returncode == 1
        assert len(second.stderr.strip().splitlines()) == 1
        assert "spool" in second.stderr
        sampled(agent, now_ms())


def test_the_end_comes_at_once_and_leaves_everything_in_the_database(tmp_path: Path) -> None:
    with LiveAgent(tmp_path, profiles.busy_decode(start_s=now_ms() / 1000)) as agent:
        sampled(agent)
        time.sleep(0.5)  # into an interval
        asked, asked_ms = time.monotonic(), now_ms()
        assert agent.end() == 0
        took_s = time.monotonic() - asked
        assert agent.log[-1]["waiting"] == 0
        assert agent.log[-1]["unsaved"] == 0
        last = agent.samples(GPU)[-1]
        assert last["ts_ms"] + last["covered_ms"] >= asked_ms - 600  # the open interval, as far as it went
        assert not agent.state.exists()
        assert took_s < 5  # a second by design; a machine under load is given more
