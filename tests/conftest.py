"""Fixtures for everyone: databases of both kinds, and the real captures beside the project."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from postgres_for_tests import NoPostgresError, running_server
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from store.engine import dispose_engine, make_engine
from tests.database_copies import Copies, Kind

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


@pytest.fixture(scope="session")
def copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """New databases for tests, copied from what was filled once in this worker."""
    return Copies(
        tmp_path_factory.mktemp("templates"), lambda: str(request.getfixturevalue("postgresql_server"))
    )


@pytest.fixture(scope="session")
def postgresql_template(copies: Copies) -> str:
    """Name of an upgraded database that others are copied from."""
    return copies.template("postgresql")


@pytest.fixture(scope="session")
def sqlite_template(copies: Copies) -> Path:
    """An upgraded SQLite database that others are copied from."""
    return Path(copies.template("sqlite"))


@pytest.fixture(params=["sqlite", "postgresql"])
def database_kind(request: pytest.FixtureRequest) -> Kind:
    """Which database a test is on."""
    kind: Kind = request.param
    return kind


@pytest.fixture
def database_url(copies: Copies, database_kind: Kind, tmp_path: Path) -> Iterator[str]:
    """Address of a new, empty database of each kind."""
    if database_kind == "sqlite":
        url = f"sqlite:///{tmp_path / 'gpuwise.db'}"
        yield url
        dispose_engine(url)
        return
    with copies.empty_postgresql() as url:
        yield url


@pytest.fixture
def ready_database(copies: Copies, database_kind: Kind, tmp_path: Path) -> Iterator[str]:
    """Address of a new database with all tables in it."""
    with copies.new(database_kind, tmp_path / "gpuwise.db") as url:
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
