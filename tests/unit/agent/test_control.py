"""Pause, resume and status against a real process that keeps the agent's side of the bargain."""

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent import control
from core.clock import now_ms
from core.errors import GpuwiseError, UsageError

ROOT = Path(__file__).resolve().parents[3]
AGENT = """
import signal, subprocess, sys, threading
from pathlib import Path
from agent.control import STATE, State, pause_asked
from core.clock import now_ms

folder, deaf = Path(sys.argv[1]), "deaf" in sys.argv
driver = None
stop = threading.Event()
state = State(folder / STATE)

def start():
    global driver
    driver = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    state.write(paused=False, paused_until_ms=None, driver_pid=driver.pid, version="1", sink="database", waiting=0)

def pause(*_):
    if not deaf:
        until_ms = pause_asked(folder, now_ms())
        driver.kill(); driver.wait()
        state.write(paused=True, paused_until_ms=until_ms, driver_pid=None)

signal.signal(signal.SIGUSR1, pause)
signal.signal(signal.SIGUSR2, lambda *_: start())
signal.signal(signal.SIGTERM, lambda *_: stop.set())
start()
while not stop.wait(0.05):
    pass
if driver.poll() is None:
    driver.kill()
    driver.wait()
"""


@contextmanager
def an_agent(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(folder), *words], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        until(lambda: (control.read_state(folder / control.STATE) or {}).get("driver_pid") is not None)
        yield child
    finally:
        child.terminate()
        child.wait(10)


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def no_service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(control, "SYSTEM_STATE", tmp_path / "service")


def test_a_pause_ends_the_driver_process_and_a_resume_starts_another(tmp_path: Path) -> None:
    with an_agent(tmp_path):
        before = control.status(tmp_path)
        assert before["running"]
        assert "sampling" in control.status_text(before)
        at_ms = now_ms()
        said = control.pause(tmp_path, 900)
        assert "GPU reset" in said
        assert "gpuwise agent resume" in said
        paused = control.status(tmp_path)
        assert paused["driver_pid"] is None
        assert 0 <= paused["paused_until_ms"] - at_ms - 900_000 < 60_000
        assert control.started(before["driver_pid"]) is None
        assert not (tmp_path / control.CONTROL).exists()
        assert "paused until" in control.status_text(paused)
        assert "samples again" in control.resume(tmp_path)
        assert control.status(tmp_path)["driver_pid"] not in {None, before["driver_pid"]}
        assert "not paused" in control.resume(tmp_path)


def test_the_service_is_found_when_the_users_own_folder_has_no_agent(tmp_path: Path) -> None:
    (tmp_path / "service").mkdir()
    with an_agent(tmp_path / "service"):
        assert "released" in control.pause(tmp_path / "mine")


def test_an_agent_that_does_not_follow_is_said_to_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ANSWER_S", 0.3)
    with an_agent(tmp_path, "deaf"), pytest.raises(GpuwiseError, match="driver may hang"):
        control.pause(tmp_path)


def test_without_an_agent_the_sentence_says_where_it_was_looked_for(tmp_path: Path) -> None:
    for ask in (control.pause, control.resume, control.status):
        with pytest.raises(GpuwiseError, match="no agent runs here") as caught:
            ask(tmp_path)
        assert str(tmp_path) in str(caught.value)


def test_a_process_id_that_was_used_again_is_not_the_agent(tmp_path: Path) -> None:
    control.State(tmp_path / control.STATE).write()
    assert control.read_state(tmp_path / control.STATE) is not None
    fields = json.loads((tmp_path / control.STATE).read_text())
    (tmp_path / control.STATE).write_text(json.dumps({**fields, "started": fields["started"] - 1}))
    assert control.read_state(tmp_path / control.STATE) is None
    with pytest.raises(GpuwiseError, match="of a process that ended"):
        control.pause(tmp_path)
    assert not control.status(tmp_path)["running"]
    assert "No agent runs" in control.status_text(control.status(tmp_path))


def test_who_may_not_signal_it_is_told_to_use_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    control.State(tmp_path / control.STATE).write(paused=False)
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(GpuwiseError, match="use sudo"):
        control.pause(tmp_path)
    assert not (tmp_path / control.CONTROL).exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"pid": "x"}', '{"pid": 0, "started": 0}'])
def test_a_broken_account_is_no_agent(tmp_path: Path, text: str) -> None:
    (tmp_path / control.STATE).write_text(text)
    assert control.read_state(tmp_path / control.STATE) is None


def test_a_bare_signal_pauses_for_an_hour_and_an_old_request_is_not_its_own(tmp_path: Path) -> None:
    assert control.pause_asked(tmp_path, 1_000) == 1_000 + 3_600_000
    request = {"paused": True, "until_ms": 9_000_000, "at_ms": 1_000}
    (tmp_path / control.CONTROL).write_text(json.dumps(request))
    assert control.pause_asked(tmp_path, 2_000) == 9_000_000
    assert control.pause_asked(tmp_path, 2_000) == 2_000 + 3_600_000, "a request counts once"
    (tmp_path / control.CONTROL).write_text(json.dumps(request))
    assert control.pause_asked(tmp_path, 1_000_000) == 1_000_000 + 3_600_000
    forever = {"paused": True, "until_ms": 10**15, "at_ms": 1_000}
    (tmp_path / control.CONTROL).write_text(json.dumps(forever))
    assert control.pause_asked(tmp_path, 1_000) == 1_000 + 7 * 86_400_000


def test_an_agent_that_restarts_amid_a_pause_stays_paused_until_its_end(tmp_path: Path) -> None:
    assert control.left_paused(tmp_path, 0) is None
    control.State(tmp_path / control.STATE).write(paused=True, paused_until_ms=5_000)
    assert control.left_paused(tmp_path, 4_000) == 5_000
    assert control.left_paused(tmp_path, 5_000) is None
    fields = json.loads((tmp_path / control.STATE).read_text())
    (tmp_path / control.STATE).write_text(json.dumps({**fields, "boot_id": "another"}))
    assert control.left_paused(tmp_path, 4_000) is None, "a reboot ends every pause"


def test_the_account_is_readable_for_all_whatever_the_umask_and_follows_no_link(tmp_path: Path) -> None:
    state = control.State(tmp_path / control.STATE)
    target = tmp_path / "target"
    target.write_text("untouched")
    (tmp_path / (control.STATE + ".new")).symlink_to(target)
    mask = os.umask(0o077)
    try:
        state.write(waiting=3)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / control.STATE).stat().st_mode) == 0o644
    assert target.read_text() == "untouched"
    state.remove()
    assert not (tmp_path / control.STATE).exists()


def test_a_full_disk_is_not_the_agents_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = control.State(tmp_path / control.STATE)
    state.write(waiting=1)

    def full(*_words: object, **_more: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(control.os, "open", full)
    state.write(waiting=2)
    assert json.loads((tmp_path / control.STATE).read_text())["waiting"] == 1


def test_the_start_time_is_read_past_a_name_with_parentheses() -> None:
    first = control.started(os.getpid())
    assert first is not None
    assert first == control.started(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert control.started(child.pid) is None, "a zombie is gone"
    child.wait()


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("1.5h", 5400), ("7d", 604_800)]
)
def test_durations(text: str, seconds: float) -> None:
    assert control.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "8d", "-5m", "m", "15 m", "1e9", "nan", "15x"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="15m"):
        control.parse_duration(text)
