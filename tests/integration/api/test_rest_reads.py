"""REST that reads: pages, CSV, problems, headers, metrics."""

import csv
import io
from typing import Any

import pytest
from fleet_for_tests import ENGINE, HOUR, NOW, T0, A, B, C
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from api.paging import Page
from api.resources.costs import CostRow
from api.resources.energy import EnergyRow
from api.resources.engines import EngineRow
from api.resources.funnel import FunnelRow
from api.resources.gpu_detail import EventRow, HourRow, SampleRow
from api.resources.gpus import GpuRow
from api.resources.hosts import HostRow
from api.resources.usage import UsageRow

LISTS = [
    ("gpus", GpuRow, 3),
    ("hosts", HostRow, 2),
    ("engines", EngineRow, 1),
    ("usage", UsageRow, 3),
    ("costs?by=host", CostRow, 2),
    ("energy?by=activity", EnergyRow, 5),
    ("funnel", FunnelRow, 4),
    (f"gpus/{A}/samples?since=2h", SampleRow, 10),
    (f"gpus/{A}/hours", HourRow, 2),
    (f"gpus/{A}/events", EventRow, 0),
]


def get(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/{path}", params=query or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(("path", "row", "count"), LISTS)
def test_every_list_answers_in_the_shape_openapi_promises(
    client: TestClient, path: str, row: type, count: int
) -> None:
    body = get(client, path)
    TypeAdapter(Page[row]).validate_python(body)  # type: ignore[valid-type]
    assert len(body["items"]) == count
    assert body["next_cursor"] is None


@pytest.mark.parametrize("path", ["usage?by=hour", "gpus", f"gpus/{A}/samples?since=2h", f"gpus/{A}/hours"])
def test_pages_by_cursor_are_the_whole_list(client: TestClient, path: str) -> None:
    whole = get(client, path)["items"]
    seen, cursor = [], None
    while True:
        more = f"&cursor={cursor}" if cursor else ""
        page = client.get(f"/api/v1/{path}{'&' if '?' in path else '?'}limit=1{more}").json()
        seen += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == whole
    assert len(whole) > 1


def test_the_link_header_leads_to_the_next_page(client: TestClient) -> None:
    first = client.get("/api/v1/gpus", params={"limit": 2})
    link = first.headers["link"]
    assert link.endswith('>; rel="next"')
    following = client.get(link[1 : link.index(">")]).json()
    assert [row["gpu_uuid"] for row in following["items"]] == [C]


def test_csv_has_the_same_rows_from_the_same_address(client: TestClient) -> None:
    answer = client.get("/api/v1/costs", params={"format": "csv"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="gpuwise-costs.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["key"], row["cost_usd"]) for row in rows] == [(A, "4.00"), (B, "4.00"), (C, "")]


@pytest.mark.parametrize("path", ["gpus", f"gpus/{A}/samples?since=2h"])
def test_csv_is_complete_unless_a_limit_is_asked_for(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("api.paging.DEFAULT_LIMIT", 2)
    address = f"/api/v1/{path}{'&' if '?' in path else '?'}"
    assert len(client.get(address).json()["items"]) == 2
    whole = client.get(f"{address}format=csv")
    assert "link" not in whole.headers
    assert len(whole.text.splitlines()) == 1 + {"gpus": 3}.get(path, 10)
    cut = client.get(f"{address}format=csv&limit=1")
    assert len(cut.text.splitlines()) == 2
    assert "link" in cut.headers


def test_the_window_is_said_and_can_be_chosen(client: TestClient) -> None:
    body = get(client, "usage", since="1h")
    assert body["window"] == {"from": "2026-10-05T01:00:00.000Z", "to": "2026-10-05T02:00:00.000Z"}
    assert {row["key"]: row["total_gpu_h"] for row in body["items"]} == {A: 1.0, B: 1.0}


def test_samples_come_by_time_with_unknown_as_null(client: TestClient) -> None:
    rows = get(client, f"gpus/{C}/samples", since="2026-10-05")["items"]
    assert [row["sampled_at"] for row in rows[:2]] == ["2026-10-05T00:00:00.000Z", "2026-10-05T00:10:00.000Z"]
    assert (rows[0]["busy_ratio"], rows[0]["power_w"], rows[0]["energy_j"]) == (0.5, None, None)


def test_hours_of_a_gpu_name_their_activities(client: TestClient) -> None:
    first, _ = get(client, f"gpus/{A}/hours")["items"]
    assert first["seconds_by_activity"] == {"memory_bound": 1800.0, "parked": 1800.0}
    assert (first["hour_at"], first["energy_j"]) == ("2026-10-05T00:00:00.000Z", 1_080_000.0)


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("gpus/GPU-nobody/samples", 404, "no GPU GPU-nobody"),
        ("recommendations/77", 404, "no recommendation 77"),
        ("usage?by=colour", 422, "by"),
        ("usage?since=yesterday", 400, "since is 'yesterday'"),
        ("usage?since=2026-10-06&until=2026-10-05", 400, "not before"),
        ("usage?limit=0", 422, "limit"),
        ("usage?limit=ten", 422, "limit"),
        ("usage?cursor=garbage", 400, "cursor"),
        ("gpus/GPU-a/samples?cursor=WyJ4Il0", 400, "cursor"),
        ("usage?format=xml", 422, "format"),
        ("nothing", 404, "/api/v1/nothing"),
        ("gpus/%00/samples", 404, "NUL"),
        ("usage?host=a%00b", 400, "NUL"),
        ("recommendations/99999999999999999999", 422, "id is"),
    ],
)
def test_errors_are_problems_with_one_sentence(client: TestClient, path: str, status: int, says: str) -> None:
    answer = client.get(f"/api/v1/{path}", headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == {"type", "title", "status", "detail"}
    assert says in body["detail"]


def test_a_person_gets_a_page_for_an_address_that_is_not_there(client: TestClient) -> None:
    page = client.get("/nothing", headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    program = client.get("/nothing", headers={"Accept": "application/json"})
    assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")


def test_a_failure_of_ours_says_nothing_of_the_inside(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("password in a traceback")

    monkeypatch.setattr("api.resources.usage.rows", broken)
    answer = client.get("/api/v1/usage")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "password" not in answer.text


def test_every_answer_carries_the_security_headers(client: TestClient) -> None:
    for path in ("/api/v1/gpus", "/nothing", "/static/gpuwise.css", "/metrics", "/"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
    foreign = client.get("/api/v1/gpus", headers={"Host": "evil.example"})
    assert foreign.status_code == 421
    assert "content-security-policy" in foreign.headers


def test_large_answers_are_compressed(client: TestClient) -> None:
    answer = client.get("/api/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"


def test_static_files_are_kept_when_their_address_marks_their_content(client: TestClient) -> None:
    plain = client.get("/static/gpuwise.css")
    assert (plain.status_code, plain.headers["cache-control"]) == (200, "no-cache")
    again = client.get("/static/gpuwise.css", headers={"If-None-Match": plain.headers["etag"]})
    assert again.status_code == 304
    marked = client.get("/static/gpuwise.css?v=0123456789")
    assert "immutable" in marked.headers["cache-control"]
    assert client.get("/static/../app.py").status_code == 404


def test_health_tells_freshness_and_jobs(client: TestClient) -> None:
    body = get(client, "health")
    assert (body["status"], body["freshness_s"], body["jobs"], body["rollup_pending"]) == ("ok", 5.0, [], 0)
    assert body["newest_sample_at"] == "2026-10-05T02:00:00.000Z"


def test_health_is_degraded_when_samples_stop(client: TestClient) -> None:
    client.app.state.clock = lambda: NOW + HOUR  # type: ignore[attr-defined]
    try:
        body = get(client, "health")
    finally:
        client.app.state.clock = lambda: NOW  # type: ignore[attr-defined]
    assert body["status"] == "degraded"
    assert body["problems"] == ["no sample for 60 min: check the agents"]


def test_prometheus_gets_current_samples_in_base_units_and_no_old_ones(client: TestClient) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    model = "NVIDIA H100 80GB HBM3"
    assert f'gpuwise_gpu_power_watts{{gpu_uuid="{A}",host="h1",gpu="0",model="{model}"}} 70' in lines
    assert f'gpuwise_gpu_busy_ratio{{gpu_uuid="{B}",host="h1",gpu="1",model="{model}"}} 0.9' in lines
    assert "# TYPE gpuwise_gpu_power_watts gauge" in lines
    assert not any(line.startswith("gpuwise_gpu_energy") for line in lines)
    old = [line for line in lines if C in line]
    labels = f'gpu_uuid="{C}",host="h2",gpu="0",model="Card Of Nobody"'
    assert old == [f"gpuwise_gpu_last_sample_timestamp_seconds{{{labels}}} {(T0 + HOUR) // 1000}"]
    assert "gpuwise_freshness_seconds 5" in lines


def test_engines_carry_their_figures(client: TestClient) -> None:
    (row,) = get(client, "engines")["items"]
    assert (row["engine"], row["tokens_per_s"], row["usd_per_million_tokens"]) == (ENGINE, 30.0, "18.518519")


@pytest.mark.parametrize(
    "query", ["since=999999w", "since=0001-01-01&until=0002-01-01", "until=9999-12-31T23:59:59Z"]
)
def test_windows_beyond_the_calendar_are_answered(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/v1/usage?{query}")
    assert answer.status_code in {200, 400}, answer.text
    assert answer.headers["content-type"].startswith("application/")
