"""Addresses of databases: told apart, and never printed with their secrets."""

from pathlib import Path

import pytest

from core.errors import StoreError
from store.dbapi import dialect_of, open_connection, shown, sqlite_path


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("sqlite:////var/lib/gpuwise.db", "sqlite"),
        ("postgresql://u@h/db", "postgresql"),
        ("postgresql+psycopg://u@h/db", "postgresql"),
    ],
)
def test_the_scheme_tells_the_database(url: str, dialect: str) -> None:
    assert dialect_of(url) == dialect


def test_another_database_is_refused_with_what_to_use() -> None:
    with pytest.raises(StoreError, match="use sqlite:///PATH or postgresql://"):
        dialect_of("mysql://root:secret@h/db")


def test_a_refusal_does_not_print_the_password() -> None:
    with pytest.raises(StoreError) as caught:
        dialect_of("mysql://root:secret@h/db")
    assert "secret" not in str(caught.value)


def test_user_and_password_are_not_shown() -> None:
    assert (
        shown("postgresql://ann:secret@db.example:5433/fleet?sslmode=require")
        == "postgresql://db.example:5433/fleet"
    )


def test_sqlite_paths_are_absolute_with_four_slashes_and_relative_with_three() -> None:
    assert sqlite_path("sqlite:////srv/g.db") == Path("/srv/g.db")
    assert sqlite_path("sqlite:///g.db") == Path("g.db")


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///:memory:"])
def test_a_sqlite_address_names_a_file(url: str) -> None:
    with pytest.raises(StoreError, match="names no file"):
        sqlite_path(url)


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"folder .*/nowhere of the database does not exist"):
        open_connection(f"sqlite:///{tmp_path}/nowhere/g.db")


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt cannot be opened"):
        open_connection(f"sqlite:///{path}")


def test_a_server_that_is_not_there_is_a_sentence_without_its_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        open_connection("postgresql://ann:hushhush@127.0.0.1:1/db")
    assert "hushhush" not in str(caught.value)
