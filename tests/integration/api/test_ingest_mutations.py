"""Whatever is changed in a body: it is stored as given, or refused by the field's path; never an error of ours."""

import copy
import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest_for_tests import NOW, delivery, json_of, make_token, post
from sqlalchemy import text
from starlette.testclient import TestClient

from api.app import create_app
from core.metrics import GPU_COLUMNS
from core.settings import Settings
from store.engine import make_engine

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 20_000),
    st.sampled_from([0, 2**31, 2**53, 2**63, 2**64, -1, 10**400, NOW, NOW - 1, NOW + 300_000]),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["", "\0", "\ud800", "x" * 5_000, "GPU-a", "pod", "h1", "0", "NaN", "\u2028", "a\x1fb"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.floats(), max_size=2),
)


def places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a body that can be changed."""
    if path:
        yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


OWN = "GPU-own-"
NUMBERS = count()
PLACES = sorted(places(json_of()), key=str)


def spoilt(path: tuple[str | int, ...], how: str, value: Any, name: str) -> dict[str, Any]:
    body = json_of(delivery(uuid=f"{OWN}{next(NUMBERS)}"))
    node: Any = body
    for key in path[:-1]:
        node = node[key]
    last: Any = path[-1]
    if how == "drop":
        del node[last]
    elif how == "add" and isinstance(node, dict):
        node[name] = value
    elif how == "twice" and isinstance(node, list):
        node.append(copy.deepcopy(node[last]))
    else:
        node[last] = value
    return body


@pytest.fixture
def server(ready_database: str) -> Iterator[tuple[TestClient, str, str]]:
    """One server and one database for all bodies of a law: what was stored before is no excuse either."""
    app = create_app(Settings(database_url=ready_database))
    app.state.clock = lambda: NOW
    with TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False) as client:
        yield client, make_token(ready_database, None), ready_database


def check(client: TestClient, token: str, url: str, body: dict[str, Any]) -> None:
    """Post a body; hold the answer to the law."""
    response = post(client, token, json.dumps(body, ensure_ascii=True).encode())
    if response.status_code == 200:
        kept_as_given(url, body)
        return
    assert response.status_code in {422, 425}, (response.status_code, response.text)
    detail = response.json()["detail"]
    head = detail.split(" is ")[0].split(".")[0].split("[")[0]
    known = {str(place[0]) for place in PLACES} | set(body)
    assert head in known or detail.startswith("the body is no JSON") or head.startswith('"'), detail
    assert len(detail) < 500
    assert detail.isprintable()


def kept_as_given(url: str, body: dict[str, Any]) -> None:
    """What the last body said of a GPU that no other body named is in the rows, value by value."""
    for sample in body.get("gpu_samples", ())[:1]:
        if not sample["gpu_uuid"].startswith(OWN):
            continue
        row = row_of(
            url,
            "SELECT s.* FROM gpu_sample s JOIN gpu g ON g.id = s.gpu_id WHERE g.gpu_uuid = :uuid AND s.ts_ms = :ts",
            uuid=sample["gpu_uuid"],
            ts=sample["ts_ms"],
        )
        for name, value in sample["values"].items():
            assert row[name] == value or (value > 1 and row[name] == 1.0), name
        assert [row[name] for name in GPU_COLUMNS if name not in sample["values"]] == [None] * (
            len(GPU_COLUMNS) - len(sample["values"])
        )
        assert (row["span_ms"], row["covered_ms"]) == (sample["span_ms"], sample["covered_ms"])
        assert (row["activity"], row["energy_method"]) == (sample["activity"], sample.get("energy_method"))
    for event in body.get("events", ()):
        row_of(
            url,
            "SELECT * FROM gpu_event WHERE ts_ms = :ts AND kind = :kind AND message = :message "
            "AND gpu_id = (SELECT id FROM gpu WHERE gpu_uuid = :uuid)",
            ts=event["ts_ms"],
            kind=event["kind"],
            message=event["message"],
            uuid=event["gpu_uuid"],
        )


def row_of(url: str, query: str, **parameters: object) -> dict[str, Any]:
    """The one row of a query."""
    with make_engine(url).connect() as connection:
        return dict(connection.execute(text(query), parameters).mappings().one())


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(PLACES),
    how=st.sampled_from(["replace", "replace", "replace", "drop", "add", "twice"]),
    value=ODD,
    name=st.text(max_size=8),
)
def test_a_changed_body_is_stored_as_given_or_refused_by_path(
    server: tuple[TestClient, str, str], path: tuple[str | int, ...], how: str, value: Any, name: str
) -> None:
    check(*server, spoilt(path, how, value, name))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_broken_bytes_are_refused(server: tuple[TestClient, str, str], data: st.DataObject) -> None:
    client, token, _ = server
    raw = bytearray(json.dumps(json_of()).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    response = post(client, token, bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    assert response.status_code in {200, 422, 425}, response.text
