"""The spool keeps what it was given until it is acknowledged, within its bounds, through restarts and damage."""

import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from spool_deliveries import DAY, T0, content, delivery

from agent import spool_file
from agent.spool import AGE_GRACE_S, LATEST_MS, Spool, SpoolError, SpoolFullError
from agent.spool_beside import SET_ASIDE_KEPT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "spool.db"


@pytest.fixture
def spool(path: Path) -> Iterator[Spool]:
    spool = Spool(path)
    yield spool
    spool.close()


def sequences(spool: Spool, now_ms: int = T0) -> list[int]:
    """Takes and acknowledges all that is due."""
    taken = []
    while entry := spool.oldest(now_ms):
        assert content(entry)["sequence"] == entry.sequence
        assert content(entry)["agent_id"] == entry.agent_id == spool.agent_id
        taken.append(entry.sequence)
        spool.done(entry.sequence)
    return taken


def test_deliveries_come_out_in_order_and_go_when_they_are_acknowledged(spool: Spool) -> None:
    assert [spool.append(delivery(n), T0 + n) for n in range(3)] == [1, 2, 3]
    assert spool.waiting == 3
    first = spool.oldest(T0)
    assert first == spool.oldest(T0)
    assert first is not None
    assert first.newest_ts_ms == T0
    assert sequences(spool) == [1, 2, 3]
    assert (spool.waiting, spool.oldest(T0)) == (0, None)


def test_a_restart_keeps_the_deliveries_their_numbers_and_the_name_of_the_agent(path: Path) -> None:
    first = Spool(path)
    for n in range(3):
        first.append(delivery(n), T0)
    first.done(1)
    first.done(3)
    first.close()
    second = Spool(path)
    assert second.agent_id == first.agent_id
    assert second.waiting == 1
    assert second.append(delivery(9), T0) == 4
    assert sequences(second) == [2, 4]
    second.close()
    third = Spool(path)
    assert third.append(delivery(9), T0) == 5, "a number is never used twice"
    third.close()


def test_what_is_put_off_lets_others_pass_and_comes_back_first(spool: Spool) -> None:
    for n in range(3):
        spool.append(delivery(n), T0)
    spool.later(1, T0 + 60_000)
    entry = spool.oldest(T0)
    assert entry is not None
    assert entry.sequence == 2
    assert spool.next_due_ms() == T0 + 60_000
    due = spool.oldest(T0 + 60_000)
    assert due is not None
    assert due.sequence == 1
    assert spool.waiting == 3


def test_a_clock_set_back_does_not_hold_up_what_was_put_off_by_it(spool: Spool) -> None:
    spool.append(delivery(0), T0)
    ahead = T0 + 400 * DAY
    spool.later(1, ahead + LATEST_MS)
    assert spool.oldest(ahead) is None
    assert spool.oldest(T0) is not None


def test_a_refused_delivery_is_kept_for_people_with_its_reason(spool: Spool, path: Path) -> None:
    spool.append(delivery(0), T0)
    spool.append(delivery(1), T0)
    spool.refuse(1, "gpu_samples.0.ts_ms is negative", T0)
    assert (spool.waiting, spool.refused) == (1, 1)
    assert sequences(spool) == [2]
    spool.close()
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT sequence, reason, refused_ms FROM refused").fetchall()
    connection.close()
    assert rows == [(1, "gpu_samples.0.ts_ms is negative", T0)]


def test_refused_deliveries_are_bounded_and_all_counted(
    spool: Spool, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.spool.REFUSED_KEPT", 3)
    for n in range(6):
        spool.refuse(spool.append(delivery(n), T0), "no", T0)
    spool.close()
    again = Spool(path)
    assert again.refused == 6
    again.close()
    with sqlite3.connect(path) as connection:
        assert [row[0] for row in connection.execute("SELECT sequence FROM refused")] == [4, 5, 6]
    connection.close()


def test_over_its_size_the_oldest_day_goes_and_is_counted(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(path, max_bytes=400_000)
    with caplog.at_level(logging.ERROR):
        for n in range(40):
            spool.append(delivery(n, 2, padding=4_000), T0 + n // 10 * DAY)
    # about 9 kB each: forty do not fit, thirty do
    assert spool.waiting + len(caplog.records) * 10 == 40
    assert spool.dropped_rows == 2 * len(caplog.records) * 10 > 0
    assert spool.bytes <= 400_000
    entry = spool.oldest(T0)
    assert entry is not None
    assert entry.sequence == 1 + len(caplog.records) * 10
    dropped = spool.dropped_rows
    spool.close()
    again = Spool(path)
    assert again.dropped_rows == dropped
    again.close()


def test_of_a_backlog_of_one_day_only_the_older_half_goes(path: Path) -> None:
    spool = Spool(path, max_bytes=200_000)
    for n in range(40):
        spool.append(delivery(n, padding=5_000), T0 + n)
    assert sequences(spool)[-1] == 40
    assert 0 < spool.dropped_rows < 40
    spool.close()


def test_over_its_age_a_day_goes_once_the_clock_has_said_so_for_an_hour(path: Path) -> None:
    monotonic = [0.0]
    spool = Spool(path, max_age_days=2, monotonic=lambda: monotonic[0])
    spool.append(delivery(0), T0)
    spool.append(delivery(1), T0 + DAY)
    spool.append(delivery(2), T0 + 400 * DAY)  # the clock jumps ahead
    spool.append(delivery(3), T0 + DAY)  # and back
    monotonic[0] = 2 * AGE_GRACE_S
    spool.append(delivery(4), T0 + 3 * DAY)
    assert spool.dropped_rows == 0
    monotonic[0] += AGE_GRACE_S
    spool.append(delivery(5), T0 + 3 * DAY)
    assert spool.dropped_rows == 1
    assert sequences(spool) == [2, 3, 4, 5, 6]
    spool.close()


def test_after_the_backlog_the_file_gives_its_space_back(path: Path) -> None:
    spool = Spool(path)
    for n in range(300):
        spool.append(delivery(n, padding=30_000), T0)
    spool.close()
    before = path.stat().st_size
    spool = Spool(path)
    sequences(spool)
    spool.close()
    assert before > 9_000_000
    assert path.stat().st_size < 5_000_000


def test_two_agents_on_one_spool_are_told_apart_by_pid(spool: Spool, path: Path) -> None:
    import os

    with pytest.raises(SpoolError, match=rf"used by another agent \(pid {os.getpid()}\)"):
        Spool(path)
    spool.close()
    Spool(path).close()


def test_a_closed_spool_says_so(spool: Spool) -> None:
    spool.close()
    with pytest.raises(SpoolError, match="is closed"):
        spool.append(delivery(0), T0)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be opened"):
        Spool(tmp_path / "file" / "spool.db")


def test_a_spool_of_a_newer_version_is_left_alone(path: Path) -> None:
    Spool(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(SpoolError, match="newer gpuwise"):
        Spool(path)
    with pytest.raises(SpoolError, match="newer gpuwise"):
        Spool(path)  # and the lock was released


def test_only_the_owner_can_read_it(spool: Spool, path: Path) -> None:
    spool.append(delivery(0), T0)
    assert {file.stat().st_mode & 0o077 for file in path.parent.iterdir()} == {0}


# damage


@pytest.mark.parametrize(
    "garbage", [b"no database at all" * 1000, b"", b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_file_of_garbage_is_set_aside_and_a_fresh_one_begins(
    path: Path, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_bytes(garbage)
    with caplog.at_level(logging.CRITICAL):
        spool = Spool(path)
    spool.append(delivery(0), T0)
    assert sequences(spool) == [1]
    spool.close()
    aside = [file for file in path.parent.glob("spool.db.corrupt-*") if file.read_bytes() == garbage]
    assert len(aside) == len(caplog.records) == (1 if garbage else 0)


def test_torn_pages_are_set_aside_and_a_fresh_one_begins(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = Spool(path)
    for n in range(200):
        first.append(delivery(n, padding=3_000), T0)
    first.close()
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xa5" * (path.stat().st_size - 2 * 4096))
    with caplog.at_level(logging.CRITICAL):
        second = Spool(path)
        second.append(delivery(7), T0)
        taken = sequences(second)
    assert [record.message for record in caplog.records] == [
        "the spool is damaged: it was set aside, what it held is not delivered, a fresh one begins"
    ]
    assert taken
    assert second.agent_id != first.agent_id
    second.close()


def test_damage_found_by_any_call_ends_in_a_fresh_spool(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for act in ("oldest", "done", "later", "refuse", "append"):
        spool = Spool(path)
        number = spool.append(delivery(0), T0)
        agent_id = spool.agent_id
        assert spool._connection is not None
        spool._connection.close()
        spool._connection = Damaged()  # type: ignore[assignment]
        if act == "oldest":
            assert spool.oldest(T0) is None
        elif act == "done":
            spool.done(number)
        elif act == "later":
            spool.later(number, T0)
        elif act == "refuse":
            spool.refuse(number, "no", T0)
        else:
            assert spool.append(delivery(1), T0) == number + 1
        assert spool.agent_id != agent_id, act
        assert spool.append(delivery(2), T0) > number, act
        spool.close()
    assert len({file.name.split("-")[1] for file in path.parent.glob("*.corrupt-*")}) == SET_ASIDE_KEPT


def test_a_damaged_file_that_cannot_be_replaced_is_tried_again(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_rename(*_args: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as broken:
        broken.setattr("agent.spool.set_aside", no_rename)
        assert spool._connection is not None
        spool._connection.close()
        spool._connection = Damaged()  # type: ignore[assignment]
        with pytest.raises(SpoolError, match=r"cannot be replaced .*Read-only file system.*: check the disk"):
            spool.append(delivery(0), T0)
    assert spool.append(delivery(0), T0) == 1


class Damaged:
    """A connection to a file whose pages are torn."""

    in_transaction = False

    def execute(self, *_args: object) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    def close(self) -> None:
        pass


# a disk without room


def test_without_room_an_append_says_so_and_works_again_when_there_is_some(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = spool._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 60")

    def fill() -> None:
        for n in range(100):
            spool.append(delivery(n, padding=5_000), T0)

    with pytest.raises(SpoolFullError, match="free space on its disk"):
        fill()
    kept = spool.waiting
    assert 5 < kept < 100
    spool.done(1)
    spool.done(2)
    assert spool.append(delivery(0, padding=5_000), T0) == kept + 1
    connection.execute("PRAGMA max_page_count = 100000")
    spool.append(delivery(0, padding=9_000), T0)
    assert sequences(spool) == list(range(3, kept + 3))


def test_what_cannot_be_deleted_is_remembered_and_not_sent_again(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        spool.append(delivery(n), T0)
    spool.later(2, T0 + 1)

    def no_room(*_args: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as full:
        full.setattr("agent.spool.transaction", no_room)
        assert sequences(spool, T0 + 1) == [2, 1, 3, 4, 5]
        assert spool.waiting == 0
    spool.append(delivery(6), T0)
    assert sequences(spool, T0 + 1) == [6]
    assert spool._rows == 0, "and deleted when it is possible"


def test_a_failed_write_is_told_from_damage() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    assert spool_file.is_full(error)
    assert not spool_file.is_damage(error)
