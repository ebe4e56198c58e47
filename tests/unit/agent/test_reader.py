"""When the reader replaces its driver process, whom it blames, and what it says: with a process that is made up."""

import select
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent import reader as module
from agent.driver.board import DRIVER, EVENTS, IDLE, MAIN, QUICK, SLOW
from agent.driver.process import probe
from agent.reader import UPGRADED, Reader

NS = 1_000_000_000


class Made:
    """A driver process without one: a board that a test fills, frames it hands out, an exit code."""

    made: ClassVar[list["Made"]] = []

    def __init__(self, *, interval_s: float, gpm_s: float, skip: set[int]) -> None:
        self.skip, self.pid, self.fd = skip, 100 + len(Made.made), 0
        self.started_s = Clock.now_s
        self.code: int | None = None
        self.told: list[tuple[Any, ...]] = []
        self.orders: list[str] = []
        self.killable, self.stopped = True, False
        self.looks: list[tuple[int, int]] = [(IDLE, 0)] * 4
        self.board, self.frames = self, self
        self.closed = False
        Made.made.append(self)

    def look(self) -> list[tuple[int, int]]:
        return self.looks

    def asks(self, slot: int, index: int, for_s: float) -> None:
        self.looks[slot] = index, int((Clock.now_s - for_s) * NS)

    def read(self) -> list[tuple[Any, ...]]:
        told, self.told = self.told, []
        self.closed = not told
        return told

    def order(self, text: str) -> None:
        self.orders.append(text)

    def exit_code(self) -> int | None:
        return self.code

    def stop(self, _seconds: float) -> bool:
        self.stopped = True
        return self.kill()

    def kill(self) -> bool:
        if self.killable:
            self.code = -9 if self.code is None else self.code
        return self.killable


class Clock:
    now_s = 1_000.0


class Probe:
    """A probe that says what the test wants."""

    made: ClassVar[list["Probe"]] = []

    def __init__(self, index: int) -> None:
        self.index, self.pid, self.code = index, 900, None
        Probe.made.append(self)

    code: int | None

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.code = -9

    def wait(self, _seconds: float) -> int | None:
        return self.code


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    Made.made, Probe.made, Clock.now_s = [], [], 1_000.0
    monkeypatch.setattr(module, "DriverProcess", Made)
    monkeypatch.setattr(module, "probe", Probe)
    monkeypatch.setattr(time, "monotonic", lambda: Clock.now_s)
    monkeypatch.setattr(time, "monotonic_ns", lambda: int(Clock.now_s * NS))
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(select, "select", lambda *_: ([], [], []))


def make(tmp_path: Path) -> Reader:
    return Reader(interval_s=1.0, version_file=tmp_path / "version")


def poll(reader: Reader, seconds: float = 0.0) -> list[tuple[Any, ...]]:
    Clock.now_s += seconds
    return reader.poll(0)


def kinds(frames: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(frame[0], frame[2]) for frame in frames]


@pytest.mark.parametrize(
    ("asking", "blamed"),
    [
        ({QUICK: (3, 2.5)}, 3),
        ({SLOW: (1, 3.0), QUICK: (0, 2.5)}, 1),  # the readings wait for the lock that the list holds
        ({SLOW: (1, 9.0), QUICK: (0, 2.5)}, 0),  # readings were had while the list took its time: no lock
        ({EVENTS: (5, 3.0), QUICK: (0, 2.5)}, 5),  # a registration holds the lock
        ({EVENTS: (DRIVER, 2.6), QUICK: (0, 2.5)}, None),  # the wait itself does
        (
            {EVENTS: (DRIVER, 60.0), QUICK: (4, 2.5)},
            4,
        ),  # a wait that hangs by itself has nothing to do with it
        ({MAIN: (6, 21.0)}, 6),
        ({MAIN: (DRIVER, 21.0)}, None),
        ({SLOW: (2, 11.0)}, 2),
        ({QUICK: (DRIVER, 2.5)}, None),
    ],
)
def test_who_is_blamed_for_a_hang(
    asking: dict[int, tuple[int, float]], blamed: int | None, tmp_path: Path
) -> None:
    reader = make(tmp_path)
    poll(reader)
    for slot, (index, for_s) in asking.items():
        Made.made[0].asks(slot, index, for_s)
    assert kinds(poll(reader)) == [("stuck", blamed)]
    assert Made.made[0].code == -9
    assert reader.silent == ([] if blamed is None else [blamed])
    poll(reader, 0.1)
    if blamed is None:
        assert len(Made.made) == 1  # the driver as a whole: not at once
        poll(reader, module.FIRST_WAIT_S)
    assert Made.made[1].skip == (set() if blamed is None else {blamed})


@pytest.mark.parametrize(
    "asking",
    [
        {QUICK: (3, 1.5)},
        {SLOW: (3, 9.0)},
        {EVENTS: (DRIVER, 19.0)},
        {MAIN: (DRIVER, 19.0)},
        {EVENTS: (DRIVER, 1.0)},
    ],
)
def test_what_may_take_its_time_is_left_in_peace(
    asking: dict[int, tuple[int, float]], tmp_path: Path
) -> None:
    reader = make(tmp_path)
    poll(reader)
    for slot, (index, for_s) in asking.items():
        Made.made[0].asks(slot, index, for_s)
    assert poll(reader) == []
    assert len(Made.made) == 1


def test_a_wait_for_events_that_hangs_replaces_the_process_ever_less_often(tmp_path: Path) -> None:
    reader = make(tmp_path)
    starts: list[int] = []
    poll(reader)
    for second in range(300):
        if len(Made.made) > len(starts):
            starts.append(second)
        began_s = Made.made[-1].started_s
        Made.made[-1].looks[EVENTS] = DRIVER, int(began_s * NS)
        assert poll(reader, 1.0) == []
    gaps = [after - before for before, after in pairwise(starts[1:])]
    assert len(gaps) >= 2
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 2 * gaps[0]


def test_a_silent_gpu_is_asked_one_at_a_time_and_comes_back(tmp_path: Path) -> None:
    reader = make(tmp_path)
    poll(reader)
    Made.made[0].asks(QUICK, 2, 3)
    poll(reader)
    poll(reader, 1)
    assert Probe.made == []
    poll(reader, module.FIRST_WAIT_S)
    (first,) = Probe.made
    assert reader.pids == [Made.made[1].pid, first.pid]
    poll(reader, module.PROBE_S + 1)  # it hangs too: killed
    assert first.code == -9
    poll(reader, 0.1)
    poll(reader, module.FIRST_WAIT_S + 1)
    assert len(Probe.made) == 1  # twice as long this time
    poll(reader, module.FIRST_WAIT_S)
    Probe.made[1].code = 0
    poll(reader, 1)
    assert reader.silent == []
    assert Made.made[1].orders == ["admit 2"]
    # Silent again at once: the waits go on where they were.
    Made.made[1].asks(QUICK, 2, 3)
    poll(reader)
    poll(reader, 2 * module.FIRST_WAIT_S + 1)
    assert len(Probe.made) == 2
    poll(reader, 2 * module.FIRST_WAIT_S)
    assert len(Probe.made) == 3


def test_processes_that_cannot_be_killed_do_not_pile_up(tmp_path: Path) -> None:
    reader = make(tmp_path)
    for _ in range(20):
        poll(reader, 100)
        for process in Made.made:
            process.killable = False
        Made.made[-1].asks(QUICK, len(Made.made), 3)
        poll(reader)
    assert len(Made.made) == module.UNKILLABLE
    assert len(reader.pids) == module.UNKILLABLE
    for process in Made.made:
        process.code = -9
    poll(reader, 1)
    assert len(Made.made) == module.UNKILLABLE + 1


def test_last_words_are_read_after_the_end_and_the_wait_grows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = make(tmp_path)
    waits: list[float] = []
    for _ in range(4):
        poll(reader)
        process = Made.made[-1]
        process.told, process.code = [("hello", "580", "12"), ("failed", 9, "the driver is not loaded")], 3
        frames = poll(reader, 0.1)
        assert [frame[0] for frame in frames] == ["hello", "down"]
        before = Clock.now_s
        while len(Made.made) == len(waits) + 1:
            poll(reader, 0.25)
        waits.append(Clock.now_s - before)
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]
    assert [record.why for record in caplog.records] == ["the driver is not loaded"]  # type: ignore[attr-defined]


def test_an_upgrade_is_one_sentence_and_ends_the_wait_when_the_module_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    version = tmp_path / "version"
    version.write_text("580\n")
    reader = make(tmp_path)
    poll(reader)
    version.write_text("590\n")
    poll(reader, module.VERSION_LOOK_S + 1)
    assert Made.made[0].stopped
    poll(reader)
    for _ in range(5):
        Made.made[-1].told, Made.made[-1].code = [("failed", 18, "versions differ")], 3
        assert kinds(poll(reader, 0.1)) == [("down", UPGRADED)]
        poll(reader, 100)
    Made.made[-1].told, Made.made[-1].code = [("failed", 18, "versions differ")], 3
    poll(reader, 0.1)
    held = len(Made.made)
    poll(reader, module.VERSION_LOOK_S + 1)
    assert len(Made.made) == held  # a long wait by now
    version.write_text("590.1\n")
    poll(reader, module.VERSION_LOOK_S + 1)
    poll(reader)
    assert len(Made.made) == held + 1
    assert [getattr(record, "why", record.message) for record in caplog.records] == [UPGRADED]


def test_a_gpu_that_brings_the_process_down_is_left_alone(tmp_path: Path) -> None:
    reader = make(tmp_path)
    told: list[tuple[Any, ...]] = []
    for _ in range(2):
        poll(reader, 100)
        Made.made[-1].asks(QUICK, 4, 0)
        Made.made[-1].code = -11
        told += poll(reader)
    assert kinds(told) == [("stuck", 4)]
    assert reader.silent == [4]


def test_a_process_that_never_gives_a_reading_leaves_no_gpu_known(tmp_path: Path) -> None:
    reader = make(tmp_path)
    told: list[tuple[Any, ...]] = []
    for _ in range(2):
        poll(reader, 100)
        Made.made[-1].code = 1
        told += poll(reader)
    assert [frame[0] for frame in told] == ["down"]


def test_a_pause_ends_process_and_probe_and_starts_nothing(tmp_path: Path) -> None:
    reader = make(tmp_path)
    poll(reader)
    Made.made[0].asks(QUICK, 2, 3)
    poll(reader)
    poll(reader, 1)
    poll(reader, module.FIRST_WAIT_S)
    assert len(Probe.made) == 1
    assert reader.pause()
    assert reader.pids == []
    assert Probe.made[0].code == -9
    poll(reader, 1_000)
    assert len(Made.made) == 2
    reader.resume()
    poll(reader)
    assert len(Made.made) == 3


def test_a_process_that_does_not_let_go_makes_the_pause_say_so(tmp_path: Path) -> None:
    reader = make(tmp_path)
    poll(reader)
    Made.made[0].killable = False
    assert not reader.pause()
    assert reader.pids == [Made.made[0].pid]


def test_a_folder_named_like_a_package_of_ours_does_not_stand_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "__init__.py").write_text("raise SystemExit('not ours')")
    monkeypatch.chdir(tmp_path)
    child = probe(0)
    assert child.wait(20) in {0, 4}, (
        "0: it answers; 4: no such GPU or no driver; 1 would be the other package"
    )
