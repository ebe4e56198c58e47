"""REST: GPUs by the filters of the fleet page, samples of engines, the parts of a cost."""

from decimal import Decimal
from typing import Any

import pytest
from fleet_for_tests import ENGINE, H100, A, B, C
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from api.paging import Page
from api.resources.engine_samples import EngineSampleView
from api.routes.costs import CostPartsBody


def get(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", params=query or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("query", "uuids"),
    [
        ({"host": "h1"}, [A, B]),
        ({"host": ["h1", "h2"]}, [A, B, C]),
        ({"model": H100}, [A, B]),
        ({"activity": "empty"}, [A]),
        ({"activity": ["empty", "busy"]}, [A, B]),
        ({"activity": "silent"}, [C]),
        ({"engine": ENGINE}, [A]),
        ({"owner": "unowned"}, [A, B, C]),
        ({"label": "team=none"}, []),
        ({"find": "gpu-B"}, [B]),
        ({"host": "h1", "activity": "busy"}, [B]),
        ({"host": "nowhere"}, []),
        ({"host": ""}, [A, B, C]),
    ],
    ids=str,
)
def test_gpus_are_filtered_as_on_the_fleet_page(
    client: TestClient, query: dict[str, Any], uuids: list[str]
) -> None:
    assert [row["gpu_uuid"] for row in get(client, "gpus", **query)["items"]] == uuids


def test_an_activity_that_does_not_exist_is_refused(client: TestClient) -> None:
    answer = client.get("/api/v1/gpus?activity=lazy")
    assert (answer.status_code, "activity" in answer.json()["detail"]) == (422, True)


def test_samples_of_an_engine_by_page(client: TestClient) -> None:
    path = f"engines/{ENGINE}/samples"
    body = get(client, path, since="2h")
    TypeAdapter(Page[EngineSampleView]).validate_python(body)
    assert [row["running_requests"] for row in body["items"]] == [8.0, 8.0, 8.0, 0.0, 0.0, 0.0]
    assert body["items"][0]["busy_s"] == 600.0
    assert body["items"][3]["busy_running_requests"] is None
    first = get(client, path, since="2h", limit=4)
    second = get(client, path, since="2h", limit=4, cursor=first["next_cursor"])
    assert first["items"] + second["items"] == body["items"]
    assert second["next_cursor"] is None


def test_an_unknown_engine_has_no_samples(client: TestClient) -> None:
    answer = client.get("/api/v1/engines/h9:1/0/samples")
    assert (answer.status_code, answer.json()["detail"].startswith("no engine h9:1/0")) == (404, True)


@pytest.mark.parametrize("query", [{}, {"by": "gpu", "key": A}, {"by": "owner", "nobody": "true"}], ids=str)
def test_the_parts_of_a_cost_add_up_to_it(client: TestClient, query: dict[str, str]) -> None:
    body = get(client, "costs/parts", **query)
    CostPartsBody.model_validate(body)
    assert body["prices"]
    assert Decimal(body["sum_usd"]) == Decimal(body["cost"]["cost_usd"]) > 0


def test_the_cost_whose_parts_are_told_is_that_of_the_list(client: TestClient) -> None:
    listed = {row["key"]: row for row in get(client, "costs", by="gpu")["items"]}
    assert get(client, "costs/parts", by="gpu", key=A)["cost"] == listed[A]


def test_a_group_without_a_cost_is_not_found_and_two_are_refused(client: TestClient) -> None:
    assert client.get("/api/v1/costs/parts?by=gpu&key=GPU-none").status_code == 404
    assert client.get("/api/v1/costs/parts?by=owner&key=ml&nobody=true").status_code == 400
