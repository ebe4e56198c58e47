"""No page of a stranger can change anything: every address that takes a change, asked of the application itself."""

import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import inspect, text
from starlette.testclient import TestClient

from api.app import PAGES, ROUTES
from api.security import SAFE_METHODS
from store.engine import make_engine
from tests.integration.api.fleet_for_tests import fill
from tests.integration.pages.conftest import give_advice, person_at

OURS = "http://127.0.0.1:8787"
STRANGERS = {
    "a form of another origin": {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    "a form of another port": {"origin": "http://127.0.0.1:9999", "sec-fetch-site": "same-site"},
    "an old browser's form": {"origin": "https://evil.example"},
    "a sandboxed frame": {"origin": "null", "sec-fetch-site": "cross-site"},
    "a frame that says nothing of its site": {"origin": "null"},
    "a lie about its origin": {"origin": OURS, "sec-fetch-site": "cross-site"},
}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain")
"""What a form can send without asking first."""


def changing() -> Iterator[tuple[str, str]]:
    """Method and address of everything that changes something; agents' deliveries carry tokens of their own."""
    for prefix, routers in (("/api/v1", ROUTES), ("", PAGES)):
        for router in routers:
            for route in router.routes:
                assert isinstance(route, APIRoute)
                for method in sorted(route.methods - SAFE_METHODS):
                    path = prefix + re.sub(r"\{[^}]+\}", "1", route.path)
                    if path != "/api/v1/ingest":
                        yield method, path


CHANGES = tuple(dict.fromkeys(changing()))


@pytest.fixture
def stranger(ready_database: str) -> TestClient:
    """A client that sends no header by itself."""
    fill(ready_database)
    give_advice(ready_database)
    client = person_at(ready_database)
    for name in ("accept", "sec-fetch-site"):
        del client.headers[name]
    return client


def counted(url: str) -> dict[str, int]:
    """Rows of every table, and what every recommendation's status is."""
    with make_engine(url).connect() as connection:
        rows = {
            name: connection.execute(text(f'SELECT count(*) FROM "{name}"')).scalar_one()
            for name in inspect(connection).get_table_names()
        }
        states = connection.execute(text("SELECT id, status FROM recommendation ORDER BY id")).all()
    return rows | {f"recommendation {id_} {status}": 1 for id_, status in states}


def test_there_are_changes_to_guard() -> None:
    assert ("POST", "/budgets/add") in CHANGES
    assert ("POST", "/recommendations/1/1") in CHANGES
    assert ("DELETE", "/api/v1/prices/1") in CHANGES
    assert len(CHANGES) > 40


def test_no_form_of_a_stranger_changes_anything(stranger: TestClient, ready_database: str) -> None:
    before = counted(ready_database)
    for method, path in CHANGES:
        for who, headers in STRANGERS.items():
            for form in FORMS:
                answer = stranger.request(
                    method, path, content=b"a=b", headers={**headers, "content-type": form}
                )
                assert answer.status_code == 403, (method, path, who, form)
    assert counted(ready_database) == before


def test_a_form_that_says_no_origin_at_all_changes_nothing(stranger: TestClient, ready_database: str) -> None:
    before = counted(ready_database)
    for method, path in (change for change in CHANGES if change[0] == "POST"):
        for form in FORMS:  # a form sends GET and POST only
            answer = stranger.request(method, path, content=b"a=b", headers={"content-type": form})
            assert answer.status_code == 403, (method, path, form)
    assert counted(ready_database) == before


def test_a_stranger_who_sends_json_is_refused_too(stranger: TestClient, ready_database: str) -> None:
    before = counted(ready_database)
    for method, path in CHANGES:
        for headers in STRANGERS.values():
            answer = stranger.request(method, path, json={}, headers=headers)
            assert answer.status_code == 403, (method, path, headers)
    assert counted(ready_database) == before


def test_nothing_is_changed_by_looking(stranger: TestClient, ready_database: str) -> None:
    before = counted(ready_database)
    for method, path in CHANGES:
        if method == "POST":
            stranger.get(path, headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})
    assert counted(ready_database) == before
