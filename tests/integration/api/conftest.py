"""The small fleet in a database, and the application over it."""

from collections.abc import Iterator

import pytest
from fleet_for_tests import NOW, settings_for
from server_for_tests import serving
from starlette.testclient import TestClient

from api.app import create_app
from api.resources.scope import Scope, scope_of
from gpuwise.__main__ import main
from store.engine import make_engine, session_scope
from tests.database_copies import Copies
from tests.integration.api.fleet_for_tests import fill


@pytest.fixture
def filled_scope(filled_database: str) -> Iterator[Scope]:
    """A scope over all its data, on each kind of database."""
    with session_scope(make_engine(filled_database)) as session:
        yield scope_of(session, settings_for(filled_database), NOW)


@pytest.fixture(params=["database", "server"])
def advised_place(
    request: pytest.FixtureRequest, filled_database: str, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[str, str]]:
    """Options that say where the small fleet with its recommendations is; the same database behind both."""
    assert main(["advise", "--database-url", filled_database]) == 0
    capsys.readouterr()
    if request.param == "database":
        yield "--database-url", filled_database
        return
    with serving(filled_database) as address:
        yield "--server", address


@pytest.fixture(scope="module")
def filled_sqlite(copies: Copies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The small fleet in one SQLite database for all tests of a module: for tests that do not change it."""
    with copies.new("sqlite", tmp_path_factory.mktemp("fleet") / "gpuwise.db", fill) as url:
        yield url


def client_for(url: str) -> TestClient:
    """A client as a program on this host is one; the clock stands at ``NOW``."""
    app = create_app(settings_for(url))
    app.state.clock = lambda: NOW
    return TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def client(filled_sqlite: str) -> TestClient:
    """The application over the module's database; tests with it change nothing."""
    return client_for(filled_sqlite)


@pytest.fixture
def fresh_client(filled_database: str) -> TestClient:
    """The application over a database of the test's own, of each kind."""
    return client_for(filled_database)
