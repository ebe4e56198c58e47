"""``POST /api/v1/ingest`` over HTTP, on both databases: what is stored, and what is refused with which answer."""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate
from typing import Any

import pytest
from ingest_for_tests import HOST, NOW, PATH, T0, UUID, counts, delivery, json_of, make_token, post, stored
from sqlalchemy import text
from starlette.testclient import TestClient

from api.app import create_app
from api.resources import ingest, ingest_bytes, tokens
from core.errors import StoreError
from core.metrics import GPU_COLUMNS, HOST_COLUMNS
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from store import dbapi
from store.engine import make_engine, session_scope
from store.rollup import roll_up

NOTHING = {"gpu_sample": 0, "process_sample": 0, "engine_sample": 0, "host_sample": 0, "gpu_event": 0}
ONE_OF_EACH = dict.fromkeys(NOTHING, 1)


@pytest.fixture
def client(ready_database: str) -> Iterator[TestClient]:
    """A server over an empty database; its clock stands at ``NOW``."""
    app = create_app(Settings(database_url=ready_database))
    app.state.clock = lambda: NOW
    with TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture
def token(ready_database: str) -> str:
    return make_token(ready_database)


def answer(response: Any, status: int) -> str:
    """The sentence of a problem."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return str(response.json()["detail"])


def test_a_delivery_is_stored_as_given(client: TestClient, token: str, ready_database: str) -> None:
    response = post(client, token, json_of(sequence=7))
    assert response.status_code == 200, response.text
    assert response.json() == {
        "sequence": 7,
        "rows": 5,
        "new_rows": 5,
        "clock_skew_s": None,
        "server_time": "2026-10-05T00:01:00.000Z",
    }
    assert counts(ready_database) == ONE_OF_EACH
    given = delivery()
    (gpu_row,), (host_row,) = stored(ready_database, "gpu_sample"), stored(ready_database, "host_sample")
    assert {name: gpu_row[name] for name in GPU_COLUMNS} == given.gpu_samples[0].values
    assert {name: host_row[name] for name in HOST_COLUMNS} == given.host_samples[0].values
    assert (gpu_row["activity"], gpu_row["energy_method"]) == ("memory_bound", "counter")
    (process,) = stored(ready_database, "process_sample")
    assert (process["memory_used_bytes"], process["cpu_ratio"], process["cpu_thread_ratio"]) == (
        6.8e10,
        1.5,
        0.99,
    )
    (gpu,) = stored(ready_database, "gpu")
    assert (gpu["gpu_uuid"], gpu["model"], gpu["compute_capability"]) == (UUID, "NVIDIA H200", "9.0")
    (host,) = stored(ready_database, "host")
    assert (
        host["name"],
        host["cpu_count"],
        host["agent_id"],
        host["agent_sequence"],
        host["agent_seen_ms"],
    ) == (
        HOST,
        96,
        "agent-1",
        7,
        NOW,
    )


def test_the_same_delivery_again_changes_nothing(client: TestClient, token: str, ready_database: str) -> None:
    post(client, token, json_of())
    before = {table: stored(ready_database, table) for table in ONE_OF_EACH}
    again = post(client, token, json_of())
    assert (again.status_code, again.json()["rows"], again.json()["new_rows"]) == (200, 5, 0)
    assert {table: stored(ready_database, table) for table in ONE_OF_EACH} == before


def test_plain_json_is_taken_too(client: TestClient, token: str) -> None:
    raw = json.dumps(json_of()).encode()
    assert post(client, token, raw).json()["new_rows"] == 5
    assert post(client, token, raw, Content_Encoding="identity").status_code == 200


def test_a_gpu_that_a_sample_is_the_first_to_name_is_registered(
    client: TestClient, token: str, ready_database: str
) -> None:
    body = json_of()
    body["gpu_samples"][0]["gpu_uuid"] = "GPU-new"
    assert post(client, token, body).status_code == 200
    assert {row["gpu_uuid"] for row in stored(ready_database, "gpu")} == {UUID, "GPU-new"}


def test_late_data_are_taken_and_their_hours_folded_anew(
    client: TestClient, token: str, ready_database: str
) -> None:
    late = delivery(-360)  # an hour earlier
    engine = make_engine(ready_database)
    assert post(client, token, json_of(delivery(-359), sequence=1)).status_code == 200
    roll_up(engine, now_ms=NOW)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM rollup_pending")).scalar() == 0
    assert post(client, token, json_of(late, sequence=2)).json()["new_rows"] == 5
    marks = {(row["kind"], row["hour_ms"]) for row in stored(ready_database, "rollup_pending")}
    assert {("gpu", T0 - HOUR_MS), ("engine", T0 - HOUR_MS), ("host", T0 - HOUR_MS)} <= marks


def test_what_is_older_than_samples_are_kept_is_refused(
    client: TestClient, token: str, ready_database: str
) -> None:
    old = json_of(delivery(-15 * DAY_MS // 10_000))
    sentence = answer(post(client, token, old), 422)
    assert sentence.startswith(
        "gpu_samples[0].ts_ms is 2026-09-20T00:00:00.000Z: this server keeps them for 14 days"
    )
    assert counts(ready_database) == NOTHING


def test_the_future_waits_for_the_servers_clock(client: TestClient, token: str, ready_database: str) -> None:
    ahead = json_of(delivery((60_000 + 420_000) // 10_000))
    response = post(client, token, ahead, Date=formatdate(NOW / 1000 + 420, usegmt=True))
    sentence = answer(response, 425)
    assert response.headers["retry-after"] == "120"
    assert "420 s ahead of this server's clock (its Date was +420 s off): set both clocks by NTP" in sentence
    assert counts(ready_database) == NOTHING


def test_a_far_future_is_looked_at_again_soon(client: TestClient, token: str) -> None:
    response = post(client, token, json_of(delivery(10_000_000)))
    assert (response.status_code, response.headers["retry-after"]) == (425, "900")


@pytest.mark.parametrize(
    ("date", "skew"),
    [
        (formatdate(NOW / 1000, usegmt=True), 0.5),
        (formatdate(NOW / 1000 - 90, usegmt=True), -89.5),
        ("yesterday", None),
        ("Mon, 99 Oct 99999 00:00:00 GMT", None),
        ("", None),
    ],
)
def test_the_answer_tells_how_far_the_clocks_are_apart(
    client: TestClient, token: str, date: str, skew: float | None
) -> None:
    assert post(client, token, json_of(), Date=date).json()["clock_skew_s"] == skew


def test_a_bad_field_is_named_and_nothing_is_stored(
    client: TestClient, token: str, ready_database: str
) -> None:
    body = json_of()
    body["gpu_samples"].append(json_of(delivery(1))["gpu_samples"][0])
    body["gpu_samples"][1]["values"]["power_w"] = 90_000
    sentence = answer(post(client, token, body), 422)
    assert sentence == "gpu_samples[1].values.power_w is 90000: a board draws between 0 and 5,000 W"
    assert counts(ready_database) == NOTHING


def test_without_a_token_nothing_is_taken(client: TestClient, ready_database: str) -> None:
    for sent in (None, "gw_" + "x" * 43, "", "ünknown"[1:]):
        response = post(client, sent, json_of())
        assert "gpuwise token create --host NAME" in answer(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"
    assert counts(ready_database) == NOTHING


def test_another_scheme_is_no_token(client: TestClient, token: str) -> None:
    answer(post(client, None, json_of(), Authorization=f"Basic {token}"), 401)


def test_a_token_opens_nothing_but_ingest(client: TestClient, token: str) -> None:
    """Write-only: it is no answer to a question, and GET is not there."""
    assert client.get(PATH, headers={"Authorization": f"Bearer {token}"}).status_code == 405


def test_a_revoked_token_is_refused_when_it_is_looked_up_again(
    client: TestClient, token: str, ready_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post(client, token, json_of()).status_code == 200
    with session_scope(make_engine(ready_database)) as session:
        tokens.revoke(session, token, now_ms=NOW)
    assert post(client, token, json_of()).status_code == 200  # remembered for some seconds
    later = time.monotonic() + tokens.REMEMBERED_S + 0.1
    monkeypatch.setattr("api.resources.tokens.time.monotonic", lambda: later)
    assert "was revoked" in answer(post(client, token, json_of()), 401)


def test_an_expired_token_is_refused_even_while_remembered(client: TestClient, ready_database: str) -> None:
    token = make_token(ready_database, expires_days=1)
    assert post(client, token, json_of()).status_code == 200
    client.app.state.clock = lambda: NOW + DAY_MS  # type: ignore[attr-defined]
    assert "expired on 2026-10-06T00:01:00.000Z" in answer(post(client, token, json_of()), 401)


def test_another_host_is_refused_by_name(client: TestClient, token: str, ready_database: str) -> None:
    sentence = answer(post(client, token, json_of(delivery(host="gpu-node-02"))), 403)
    assert sentence.startswith(f'host.name is "gpu-node-02", and this token is for "{HOST}"')
    assert counts(ready_database) == NOTHING
    anyone = make_token(ready_database, None)
    assert post(client, anyone, json_of(delivery(host="gpu-node-02"))).status_code == 200


def test_the_list_of_tokens_says_when_one_was_last_used(
    client: TestClient, token: str, ready_database: str
) -> None:
    def last_used() -> object:
        return stored(ready_database, "api_token")[0]["last_used_ms"]

    post(client, token, b"{}")
    assert last_used() is None  # only what was stored counts as use
    for after_ms, expected in ((0, NOW), (59_999, NOW), (60_000, NOW + 60_000)):
        client.app.state.clock = lambda after_ms=after_ms: NOW + after_ms  # type: ignore[attr-defined]
        assert post(client, token, json_of()).status_code == 200
        assert last_used() == expected


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Content-Type": "text/plain"}, "Content-Type is 'text/plain': send application/json"),
        ({"Content-Type": ""}, "Content-Type is '': send application/json"),
        ({"Content-Encoding": "br"}, "Content-Encoding is 'br': send gzip, or none"),
    ],
)
def test_other_media_are_refused(client: TestClient, token: str, headers: dict[str, str], said: str) -> None:
    assert answer(post(client, token, json_of(), **headers), 415) == said


def test_too_much_is_refused(client: TestClient, token: str) -> None:
    sent = bytes(ingest_bytes.MOST_SENT_BYTES + 1)
    assert (
        answer(post(client, token, sent), 413)
        == "the body is longer than 8 MiB: deliver fewer intervals at once"
    )
    bomb = gzip.compress(bytes(ingest_bytes.MOST_BYTES + 1), 1)
    sentence = answer(post(client, token, bomb, Content_Encoding="gzip"), 413)
    assert sentence == "the body inflates to more than 64 MiB: deliver fewer intervals at once"


def test_broken_gzip_is_refused(client: TestClient, token: str) -> None:
    assert "no gzip data" in answer(post(client, token, b"{}", Content_Encoding="gzip"), 422)


def test_the_token_speaks_for_the_request_whatever_name_led_here(client: TestClient, token: str) -> None:
    assert post(client, token, json_of(), Host="gpuwise.monitoring.svc.cluster.local").status_code == 200


def test_a_database_that_is_away_asks_for_patience(
    client: TestClient, token: str, ready_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_url: str) -> None:
        raise StoreError("database gpuwise cannot be reached (refused): check address and server")

    monkeypatch.setattr(ingest, "open_connection", gone)
    response = post(client, token, json_of())
    assert answer(response, 503).startswith("database gpuwise cannot be reached (refused)")
    assert response.headers["retry-after"] == "5"
    monkeypatch.undo()
    assert post(client, token, json_of()).json()["new_rows"] == 5


def test_tables_that_are_away_ask_for_patience(client: TestClient, token: str, ready_database: str) -> None:
    post(client, token, json_of())
    with make_engine(ready_database).begin() as connection:
        connection.execute(text("ALTER TABLE host_sample RENAME TO host_sample_away"))
    assert post(client, token, json_of(delivery(1))).status_code == 503
    with make_engine(ready_database).begin() as connection:
        connection.execute(text("ALTER TABLE host_sample_away RENAME TO host_sample"))
    assert post(client, token, json_of(delivery(1))).json()["new_rows"] == 5


def test_a_connection_that_was_cut_is_opened_again_without_a_word(
    client: TestClient, token: str, ready_database: str
) -> None:
    if not ready_database.startswith("postgresql"):
        pytest.skip("SQLite has no connection to cut")
    post(client, token, json_of())
    with make_engine(ready_database).connect() as connection:
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(text(cut))
    make_engine(ready_database).dispose()
    assert post(client, token, json_of(delivery(1))).json()["new_rows"] == 5


def test_keys_of_rows_that_are_gone_are_looked_up_again(
    client: TestClient, token: str, ready_database: str
) -> None:
    post(client, token, json_of())
    with make_engine(ready_database).begin() as connection:
        for table in (*ONE_OF_EACH, "rollup_pending", "engine", "workload", "gpu", "host"):
            connection.execute(text(f"DELETE FROM {table}"))
    assert post(client, token, json_of(delivery(1))).status_code == 200


def test_a_server_that_is_behind_gives_deliveries_back(
    client: TestClient, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MOST_WAITING", 0)
    assert "more deliveries are waiting" in answer(post(client, token, json_of()), 503)
    monkeypatch.setattr(ingest, "MOST_WAITING", 1)
    monkeypatch.setattr(ingest, "MOST_WAITING_BYTES", 10)
    assert "more bytes are waiting" in answer(post(client, token, json_of()), 503)
    monkeypatch.undo()
    assert post(client, token, json_of()).status_code == 200
    monkeypatch.setattr(ingest, "MOST_WAIT_S", -1.0)
    assert "keeps this server waiting" in answer(post(client, token, json_of()), 503)


def test_a_database_that_is_locked_for_long_asks_for_patience(
    client: TestClient, token: str, ready_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ready_database.startswith("sqlite"):
        pytest.skip("PostgreSQL locks rows")
    pragmas = ("PRAGMA busy_timeout = 50", *dbapi.SQLITE_PRAGMAS[1:])
    monkeypatch.setattr(dbapi, "SQLITE_PRAGMAS", pragmas)
    with closing(dbapi.open_connection(ready_database)) as other:
        other.begin()
        assert "locked" in answer(post(client, token, json_of()), 503)
        other.rollback()
    assert post(client, token, json_of()).json()["new_rows"] == 5
