"""REST that changes something: prices and recommendations, on both databases."""

import json
from typing import Any

import pytest
from fleet_for_tests import NOW, A, settings_for
from starlette.testclient import TestClient

from api.resources import advise
from api.resources.scope import scope_of
from store.engine import session_scope

JSON = {"Content-Type": "application/json"}


def post(client: TestClient, path: str, body: Any = None, status: int = 200) -> Any:
    answer = client.post(f"/api/v1/{path}", json={} if body is None else body)
    assert answer.status_code == status, answer.text
    return answer.json()


def cost_of(client: TestClient, uuid: str) -> tuple[str | None, str | None]:
    rows = client.get("/api/v1/costs").json()["items"]
    return next((row["cost_usd"], row["price_basis"]) for row in rows if row["key"] == uuid)


def test_a_price_reprices_the_past_and_leaves_again(fresh_client: TestClient) -> None:
    body = {"scope_kind": "gpu_uuid", "scope_value": A, "usd_per_gpu_hour": "3", "valid_from": "2026-10-01"}
    made = post(fresh_client, "prices", body, 201)
    assert (made["usd_per_gpu_hour"], made["billing"], made["valid_from"]) == (
        "3.00",
        "on_demand",
        "2026-10-01T00:00:00.000Z",
    )
    assert cost_of(fresh_client, A) == ("6.00", f"your price for {A} of 2026-10-01")
    assert len(fresh_client.get("/api/v1/prices").json()["items"]) == 2
    assert fresh_client.delete(f"/api/v1/prices/{made['id']}").status_code == 204
    assert cost_of(fresh_client, A)[0] == "4.00"
    assert fresh_client.delete(f"/api/v1/prices/{made['id']}").status_code == 404


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"usd_per_gpu_hour": -1}, 422, "usd_per_gpu_hour"),
        ({"usd_per_gpu_hour": False}, 422, "usd_per_gpu_hour"),
        ({"usd_per_gpu_hour": "NaN"}, 422, "usd_per_gpu_hour"),
        ({"gpus_per_unit": "8"}, 422, "gpus_per_unit"),
        ({"scope_kind": "colour"}, 400, "colour"),
        ({"scope_kind": "all", "scope_value": "h1"}, 400, "all"),
        ({"scope_value": ""}, 400, "name what it is for"),
        ({"billing": "barter"}, 400, "barter"),
        ({"valid_from": "soon"}, 400, "valid_from"),
        ({"valid_from": "2026-10-05", "valid_to": "2026-10-04"}, 400, "valid_to is '2026-10-04', not after"),
        ({"colour": "red"}, 422, "colour"),
        ({"note": "a\x00b"}, 422, "note"),
        ({"scope_value": "\ud800"}, 422, "scope_value"),
    ],
)
def test_a_price_that_cannot_be_applied_is_refused(
    fresh_client: TestClient, change: dict[str, Any], status: int, says: str
) -> None:
    body = {"scope_kind": "host", "scope_value": "h1", "usd_per_gpu_hour": "1.5"} | change
    answer = fresh_client.post("/api/v1/prices", content=json.dumps(body), headers=JSON)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert len(fresh_client.get("/api/v1/prices").json()["items"]) == 1


def test_a_foreign_page_cannot_change_a_price(fresh_client: TestClient) -> None:
    body = {"scope_kind": "all", "usd_per_gpu_hour": "0"}
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert fresh_client.post("/api/v1/prices", json=body, headers=headers).status_code == 403
    plain = fresh_client.post("/api/v1/prices", content='{"scope_kind":"all","usd_per_gpu_hour":"0"}')
    assert plain.status_code == 403
    assert len(fresh_client.get("/api/v1/prices").json()["items"]) == 1


def recorded(client: TestClient) -> list[dict[str, Any]]:
    state = client.app.state  # type: ignore[attr-defined]
    with session_scope(state.engine) as session:
        scope = scope_of(session, settings_for(state.settings.database_url), NOW)
        advise.run(scope, record=True)
    rows: list[dict[str, Any]] = client.get("/api/v1/recommendations").json()["items"]
    return rows


def test_before_the_first_run_there_is_nothing_and_it_says_so(fresh_client: TestClient) -> None:
    body = fresh_client.get("/api/v1/recommendations").json()
    assert body == {
        "items": [],
        "next_cursor": None,
        "window": None,
        "not_evaluated": [],
        "totals": None,
        "evaluated_at": None,
    }


def test_a_run_is_recorded_with_what_it_could_not_judge(fresh_client: TestClient) -> None:
    rows = recorded(fresh_client)
    assert rows
    assert {row["status"] for row in rows} == {"open"}
    body = fresh_client.get("/api/v1/recommendations").json()
    assert body["not_evaluated"]
    assert all(item["why"] for item in body["not_evaluated"])
    assert body["evaluated_at"] == "2026-10-05T02:00:05.000Z"
    assert body["totals"]["spend_usd_month"] == "2920.00"
    one = fresh_client.get(f"/api/v1/recommendations/{rows[0]['id']}").json()
    assert one == rows[0]


def test_a_recommendation_lives_through_claim_done_and_reopen(fresh_client: TestClient) -> None:
    id_ = recorded(fresh_client)[0]["id"]
    path = f"recommendations/{id_}"
    assert post(fresh_client, f"{path}/claim", {"note": "mine"})["status"] == "claimed"
    assert post(fresh_client, f"{path}/done")["status"] == "done"
    again = fresh_client.post(f"/api/v1/{path}/claim", json={})
    assert (again.status_code, "done" in again.json()["detail"]) == (400, True)
    assert post(fresh_client, f"{path}/reopen")["status"] == "reopened"
    kept = fresh_client.get("/api/v1/recommendations", params={"status": "reopened"}).json()["items"]
    assert [row["id"] for row in kept] == [id_]


def test_snoozing_needs_a_later_time_and_dismissing_a_reason(fresh_client: TestClient) -> None:
    id_ = recorded(fresh_client)[0]["id"]
    path = f"recommendations/{id_}"
    for step, body, says in (
        ("snooze", {}, "until"),
        ("snooze", {"until": "2020-01-01"}, "future"),
        ("dismiss", {"note": "  "}, "note"),
        ("claim", {"until": "2030-01-01"}, "snooze"),
    ):
        answer = fresh_client.post(f"/api/v1/{path}/{step}", json=body)
        assert (answer.status_code, says in answer.json()["detail"]) == (400, True), answer.text
    asleep = post(fresh_client, f"{path}/snooze", {"until": "2026-10-12", "note": "after the release"})
    assert (asleep["status"], asleep["snoozed_until"], asleep["note"]) == (
        "snoozed",
        "2026-10-12T00:00:00.000Z",
        "after the release",
    )
    assert post(fresh_client, f"{path}/reopen")["snoozed_until"] is None
    assert post(fresh_client, f"{path}/dismiss", {"note": "a test rig"})["note"] == "a test rig"


def test_steps_without_a_body_need_a_program_that_names_itself(fresh_client: TestClient) -> None:
    id_ = recorded(fresh_client)[0]["id"]
    bare = fresh_client.post(f"/api/v1/recommendations/{id_}/claim")
    assert bare.status_code == 403
    named = fresh_client.post(f"/api/v1/recommendations/{id_}/claim", headers={"X-Gpuwise-Client": "test"})
    assert (named.status_code, named.json()["status"]) == (200, "claimed")
    assert fresh_client.post(f"/api/v1/recommendations/{id_}/adopt", json={}).status_code == 422


def test_a_failed_change_leaves_nothing_behind(
    fresh_client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("after the write")

    monkeypatch.setattr("api.routes.prices.to_json", broken)
    answer = fresh_client.post("/api/v1/prices", json={"scope_kind": "all", "usd_per_gpu_hour": "1"})
    assert answer.status_code == 500
    assert len(fresh_client.get("/api/v1/prices").json()["items"]) == 1
