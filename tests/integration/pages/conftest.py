"""The application with its pages over a small fleet and over nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from api.resources import advise
from api.resources.scope import scope_of
from store.engine import make_engine, session_scope
from store.queries import recommendations
from tests.contract import page_fixtures as good
from tests.database_copies import Copies, Kind
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for

PERSON = {"accept": "text/html", "sec-fetch-site": "same-origin"}
"""What a browser says on our own pages."""


def person_at(url: str) -> TestClient:
    """A browser at the application; the clock stands at ``NOW``."""
    app = create_app(settings_for(url))
    app.state.clock = lambda: NOW
    return TestClient(
        app,
        base_url="http://127.0.0.1:8787",
        headers=PERSON,
        raise_server_exceptions=False,
        follow_redirects=False,
    )


def give_advice(url: str) -> None:
    """Record a run of the rules, and one finding about GPU-a that is surely there."""
    from core.finding import Advice, Totals

    with session_scope(make_engine(url)) as session:
        scope = scope_of(session, settings_for(url), NOW)
        advise.run(scope, record=True)
        found = good.finding(gpu_uuids=("GPU-a",))
        recommendations.record(session, Advice((found,), (), Totals(None, None, None, None)), NOW)


@pytest.fixture
def empty_person(ready_database: str) -> TestClient:
    """A person before an empty database, of each kind."""
    return person_at(ready_database)


@pytest.fixture
def advised_database(copies: Copies, database_kind: Kind, tmp_path: Path) -> Iterator[str]:
    """The small fleet with advice, on each kind of database."""
    with copies.new(database_kind, tmp_path / "gpuwise.db", fill, give_advice) as url:
        yield url


@pytest.fixture
def person(advised_database: str) -> TestClient:
    """A person before the small fleet with advice, on each kind of database."""
    return person_at(advised_database)


@pytest.fixture(scope="module")
def reader(copies: Copies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A person who changes nothing; one SQLite database for all tests of a module."""
    with copies.new("sqlite", tmp_path_factory.mktemp("pages") / "gpuwise.db", fill, give_advice) as url:
        yield person_at(url)
