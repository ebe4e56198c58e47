"""SQLite behaves like PostgreSQL under readers and writers at once."""

import sqlite3
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from store import schema
from store.engine import dispose_engine, make_engine, session_scope
from store.queries import meta

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def url(tmp_path: Path) -> "Iterator[str]":
    address = f"sqlite:///{tmp_path / 'g.db'}"
    schema.upgrade(address)
    yield address
    dispose_engine(address)


def test_the_pragmas_of_the_house_are_set(url: str) -> None:
    with make_engine(url).connect() as connection:
        values = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert values == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 10_000}


def test_one_engine_serves_an_address(url: str) -> None:
    assert make_engine(url) is make_engine(url)


def test_a_reader_that_turns_writer_after_another_commit_does_not_fail(url: str) -> None:
    engine = make_engine(url)
    with session_scope(engine) as session:
        assert meta.get(session, "k") is None
        with session_scope(engine) as other:
            meta.put(other, "k", "other")
        meta.put(session, "mine", "1")
        assert meta.get(session, "mine") == "1"
    with session_scope(engine) as session:
        assert session.execute(text("SELECT COUNT(*) FROM meta")).scalar() == 2


def test_a_reader_does_not_wait_for_a_writer(url: str, tmp_path: Path) -> None:
    writer = sqlite3.connect(tmp_path / "g.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO meta VALUES ('k', 'unseen')")
    try:
        with session_scope(make_engine(url)) as session:
            assert meta.get(session, "k") is None
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_writers_at_once_wait_for_each_other(url: str) -> None:
    engine = make_engine(url)
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for number in range(20):
                with session_scope(engine) as session:
                    meta.get(session, name)
                    meta.put(session, f"{name}{number}", "x")
        except BaseException as error:
            failures.append(error)
            raise

    threads = [Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with session_scope(engine) as session:
        assert session.execute(text("SELECT COUNT(*) FROM meta")).scalar() == 60


def test_a_block_that_raises_keeps_nothing(url: str) -> None:
    engine = make_engine(url)

    def fail() -> None:
        with session_scope(engine) as session:
            meta.put(session, "k", "v")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    with session_scope(engine) as session:
        assert meta.get(session, "k") is None
