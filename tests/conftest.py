"""Fixtures for everyone: databases of both kinds, and the real captures beside the project."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest
from hypothesis import settings
from postgres_for_tests import NoPostgresError, running_server
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from store import schema
from store.engine import dispose_engine, make_engine

# Laws are about values: a busy machine must not fail them by a slow example.
settings.register_profile("gpuwise", deadline=None)
settings.load_profile("gpuwise")

ROOT = Path(__file__).resolve().parents[1]
TEST_URL = "GPUWISE_TEST_DATABASE_URL"


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """Address of a PostgreSQL server on which databases may be made and dropped.

    ``GPUWISE_TEST_DATABASE_URL`` names one of your own; otherwise each worker starts one from the wheel. Where none
    can be had the tests are skipped, and fail when ``CI=true``.
    """
    own = os.environ.get(TEST_URL)
    if own:
        yield own
        return
    server = running_server()
    try:
        url = server.__enter__()
    except (NoPostgresError, OSError) as error:
        sentence = f"no PostgreSQL for tests: {error}; set {TEST_URL} to use a server of your own"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)
    try:
        yield url
    finally:
        server.__exit__(None, None, None)


def _named(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def _administer(url: str, statement: str) -> None:
    import psycopg

    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> Iterator[str]:
    """Name of an upgraded database that others are copied from."""
    name = f"gpuwise_template_{uuid4().hex[:12]}"
    _administer(postgresql_server, f"CREATE DATABASE {name}")
    schema.upgrade(_named(postgresql_server, name))
    dispose_engine(_named(postgresql_server, name))
    yield name
    _administer(postgresql_server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An upgraded SQLite database that others are copied from."""
    path = tmp_path_factory.mktemp("template") / "gpuwise.db"
    url = f"sqlite:///{path}"
    schema.upgrade(url)
    dispose_engine(url)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> str:
    """Which database a test is on."""
    kind: str = request.param
    return kind


@contextmanager
def _postgresql_database(request: pytest.FixtureRequest, made_from: str) -> Iterator[str]:
    """Address of a new database on the server of the tests."""
    server: str = request.getfixturevalue("postgresql_server")
    name = f"gpuwise_test_{uuid4().hex[:12]}"
    _administer(server, f"CREATE DATABASE {name} {made_from}")
    url = _named(server, name)
    yield url
    dispose_engine(url)
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database_url(request: pytest.FixtureRequest, database_kind: str, tmp_path: Path) -> Iterator[str]:
    """Address of a new, empty database of each kind."""
    if database_kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'gpuwise.db'}"
        yield url
        dispose_engine(url)
        return
    with _postgresql_database(request, "") as url:
        yield url


@pytest.fixture
def ready_database(request: pytest.FixtureRequest, database_kind: str, tmp_path: Path) -> Iterator[str]:
    """Address of a new database with all tables in it."""
    if database_kind == "sqlite":
        path = tmp_path / "gpuwise.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        dispose_engine(f"sqlite:///{path}")
        return
    template = request.getfixturevalue("postgresql_template")
    with _postgresql_database(request, f"TEMPLATE {template} STRATEGY FILE_COPY") as url:
        yield url


@pytest.fixture
def engine(ready_database: str) -> Engine:
    """SQLAlchemy engine on a ready database."""
    return make_engine(ready_database)


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    """A session on a ready database; what it did not commit is rolled back."""
    with Session(engine, expire_on_commit=False) as open_session:
        yield open_session


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with real captures of real GPUs; skips where it is not beside the project."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real captures here: {folder} does not exist")
    return folder
