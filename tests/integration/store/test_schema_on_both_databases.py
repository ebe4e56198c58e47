"""The migration history, on both databases."""

import re
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.exc import IntegrityError

from core.errors import StoreError
from store import schema
from store.engine import make_engine
from store.tables import METADATA


def _tables(url: str) -> set[str]:
    return set(inspect(make_engine(url)).get_table_names())


def test_history_runs_up_checks_clean_runs_down_and_up_again(database_url: str) -> None:
    schema.upgrade(database_url)
    with make_engine(database_url).begin() as connection:
        command.check(schema.configuration(connection))
    assert _tables(database_url) == {*METADATA.tables, "alembic_version"}

    schema.downgrade(database_url, "base")
    assert _tables(database_url) == {"alembic_version"}

    schema.upgrade(database_url)
    assert schema.check(database_url) is None


def test_history_is_one_line() -> None:
    scripts = ScriptDirectory.from_config(schema.configuration())
    assert len(scripts.get_heads()) == 1
    assert all(not isinstance(script.down_revision, tuple) for script in scripts.walk_revisions())


def test_upgrade_twice_changes_nothing(ready_database: str) -> None:
    before = _tables(ready_database)
    schema.upgrade(ready_database)
    assert _tables(ready_database) == before


def test_an_empty_database_says_what_it_lacks(database_url: str) -> None:
    assert re.search(r"has no gpuwise tables yet|does not exist yet", schema.check(database_url) or "")


def test_sqlite_is_made_ready_on_first_use_and_postgresql_asks_for_the_upgrade(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        schema.ensure_ready(database_url)
        assert schema.check(database_url) is None
    else:
        with pytest.raises(StoreError, match="run: gpuwise db upgrade"):
            schema.ensure_ready(database_url)


def test_a_database_of_a_newer_gpuwise_is_refused(ready_database: str) -> None:
    with make_engine(ready_database).begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer than this gpuwise: upgrade gpuwise"):
        schema.ensure_ready(ready_database)


def test_ensure_ready_creates_the_folder_of_a_sqlite_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state' / 'gpuwise' / 'gpuwise.db'}"
    schema.ensure_ready(url)
    assert schema.check(url) is None


def test_backup_of_a_database_in_use_is_a_database(ready_database: str, tmp_path: Path) -> None:
    with make_engine(ready_database).begin() as connection:
        connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES ('simulated', 'true')")
    copy = tmp_path / "copy.db"
    if not ready_database.startswith("sqlite"):
        with pytest.raises(StoreError, match="pg_dump"):
            schema.backup(ready_database, copy)
        return
    schema.backup(ready_database, copy)
    url = f"sqlite:///{copy}"
    assert schema.check(url) is None
    with make_engine(url).connect() as connection:
        assert connection.exec_driver_sql("SELECT value FROM meta").scalar() == "true"


def test_rows_of_the_revision_before_stay_as_they_were_and_marks_survive(database_url: str) -> None:
    schema.upgrade(database_url, "0003")
    with make_engine(database_url).begin() as connection:
        run = connection.exec_driver_sql
        run("INSERT INTO host (id, name) VALUES (1, 'h1')")
        run("INSERT INTO gpu (id, gpu_uuid, host_id) VALUES (1, 'GPU-a', 1)")
        run(
            "INSERT INTO workload (id, natural_key, host_id, kind, key, name) VALUES (1, 'w', 1, 'pod', 'k', 'n')"
        )
        run("INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark) VALUES (0, 'gpu', 1, 42)")
    schema.upgrade(database_url)
    with make_engine(database_url).begin() as connection:
        run = connection.exec_driver_sql
        assert run("SELECT name, cpu_count, agent_id FROM host").one() == ("h1", None, None)
        assert run("SELECT attributes FROM workload").scalar() == "{}"
        assert run("SELECT kind, mark FROM rollup_pending").all() == [("gpu", 42)]
        run("INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark) VALUES (0, 'host', 1, 43)")
    schema.downgrade(database_url, "0003")
    with make_engine(database_url).connect() as connection:
        run = connection.exec_driver_sql
        assert run("SELECT gpu_uuid, host_id FROM gpu").one() == ("GPU-a", 1)
        assert run("SELECT kind, mark FROM rollup_pending").all() == [("gpu", 42)]


def test_marks_are_kept_without_row_numbers_and_of_known_kinds_only(ready_database: str) -> None:
    with make_engine(ready_database).connect() as connection:
        if connection.dialect.name == "sqlite":
            text = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'rollup_pending'")
            assert "WITHOUT ROWID" in text.scalar_one()
        with pytest.raises(IntegrityError, match="ck_rollup_pending_kind"):
            connection.exec_driver_sql(
                "INSERT INTO rollup_pending (hour_ms, kind, entity_id, mark) VALUES (0, 'rack', 1, 1)"
            )
