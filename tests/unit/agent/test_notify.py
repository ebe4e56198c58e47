"""sd_notify over real datagram sockets, in the file system and in the abstract name space."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent import notify


@pytest.fixture(params=["file", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as inbox:
        if request.param == "file":
            path = str(tmp_path / "notify")
            inbox.bind(path)
            monkeypatch.setenv("NOTIFY_SOCKET", path)
        else:
            name = f"gpuwise-test-{os.getpid()}"
            inbox.bind("\0" + name)
            monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)
        inbox.settimeout(5)
        yield inbox


def test_each_state_is_the_message_that_systemd_knows(manager: socket.socket) -> None:
    notify.ready()
    notify.watchdog()
    notify.status("8 GPUs,\n0 waiting")
    notify.stopping()
    said = [manager.recv(1024).decode() for _ in range(4)]
    assert said == ["READY=1", "WATCHDOG=1", "STATUS=8 GPUs, 0 waiting", "STOPPING=1"]


def test_without_a_manager_nothing_is_sent_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify.ready()
    for address in (str(tmp_path / "gone"), "@gone-and-away", "vsock:2:1234", ""):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify.ready()


def test_a_manager_that_does_not_read_holds_nothing_up(manager: socket.socket) -> None:
    for _ in range(5_000):  # far more than any receive buffer takes
        notify.watchdog()
    assert manager.recv(64) == b"WATCHDOG=1"


def test_the_watchdog_is_owed_at_half_its_limit_and_only_by_its_own_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    assert notify.watchdog_interval_s() == 15.0
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert notify.watchdog_interval_s() == 15.0
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert notify.watchdog_interval_s() is None


@pytest.mark.parametrize("limit", ["", "0", "soon"])
def test_no_limit_means_no_watchdog(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", limit)
    assert notify.watchdog_interval_s() is None
