"""Pages over HTTP: the figures of the store reach the page, forms move recommendations, errors are pages."""

import re

import pytest
from starlette.testclient import TestClient

from api.pages.frame import NAV
from store.engine import make_engine, session_scope
from store.queries import recommendations

ADDRESSES = [href for _, href, _ in NAV]


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_page_answers_on_an_empty_database(empty_person: TestClient, address: str) -> None:
    answer = empty_person.get(address)
    assert answer.status_code == 200
    # A plan needs no data: it says that nothing is measured and reckons with what one types.
    next_steps = ("gpuwise import", "gpuwise report", "gpuwise plan")
    assert any(step in answer.text for step in next_steps)


def test_every_page_answers_on_each_kind_of_database(person: TestClient) -> None:
    for address in [*ADDRESSES, "/gpus/GPU-a", "/recommendations?view=not-judged", "/costs?by=workload"]:
        answer = person.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"].startswith("text/html")


def test_pages_forbid_inline_code_and_carry_none(reader: TestClient) -> None:
    for address in [*ADDRESSES, "/gpus/GPU-a"]:
        answer = reader.get(address)
        policy = answer.headers["content-security-policy"]
        assert "'unsafe-inline'" not in policy
        assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)", answer.text), address


def test_the_overview_says_the_spend_and_the_idle_money_of_the_store(reader: TestClient) -> None:
    html = reader.get("/").text
    # GPU-a and GPU-b 2 h at $2.00; of it 30 min parked, 40 min empty and 20 min without samples.
    assert "You spent $8.00 on GPUs" in html
    assert "$2.33 of it bought hours in which nothing ran." in html
    assert "$0.67 of it not seen" in html


def test_a_gap_stands_in_every_pages_cost_and_is_said(reader: TestClient) -> None:
    costs = reader.get("/costs").text
    assert "Time without samples is neither idle nor free" in costs
    assert "$8.00, of it $2.33 idle, $0.67 not seen" in costs
    assert 'class="a-unknown" fill="url(#hatch)"' in costs
    gpu = reader.get("/gpus/GPU-a?since=2h").text
    assert '<strong><a href="#money">$4.00</a></strong><small>$0.67 of it not seen' in gpu
    assert "of it not seen" not in reader.get("/gpus/GPU-b?since=2h").text


def test_costs_by_host_name_what_has_no_price(reader: TestClient) -> None:
    html = reader.get("/costs?by=host").text
    row = html[html.index("<bdi>h2</bdi>") :].split("</tr>")[0]
    assert row.count("–") >= 3, "a card of no catalogue has no cost, no idle cost, no energy"
    assert "$0" not in row


def test_a_gpu_page_draws_samples_near_and_hours_far(reader: TestClient) -> None:
    near, far = reader.get("/gpus/GPU-a?since=2h").text, reader.get("/gpus/GPU-a?since=30d").text
    assert "samples of 600 s" in near
    assert "one point an hour" in far
    assert "parked" in near


def test_a_gpu_series_leaves_a_gap_a_gap(reader: TestClient) -> None:
    series = reader.get("/gpus/GPU-a/series.json?since=2h").json()
    (mean,) = (line["values"] for line in series["charts"][0]["lines"] if line["name"] == "mean")
    assert len(series["t"]) == len(mean) == 11, "ten samples and one gap"
    gap = mean.index(None)
    assert mean[gap - 1] == 70.0
    assert mean[gap + 1] == 70.0
    assert "no samples for" in series["band_svg"]


def test_a_gpu_page_shows_who_held_it_and_its_advice(reader: TestClient) -> None:
    assert "train.py" in reader.get("/gpus/GPU-b?since=2h").text
    assert "Raise the batch of llama-70b" in reader.get("/gpus/GPU-a").text


@pytest.mark.parametrize(
    ("address", "status", "word"),
    [
        ("/gpus/GPU-nobody", 404, "no GPU"),
        ("/recommendations/4711", 404, "no recommendation 4711"),
        ("/recommendations?view=all", 404, "no view"),
        ("/nowhere", 404, "/nowhere"),
        ("/gpus/GPU-a?since=yesterday", 400, "since"),
        ("/gpus/GPU-a?since=2026-10-05&until=2026-10-05", 400, "since"),
        ("/fleet?sort=colour", 400, "sort"),
        ("/fleet?activity=sleeping", 400, "activity"),
        ("/costs?by=moon", 400, "by"),
        ("/recommendations/x", 422, "id is"),
    ],
)
def test_an_error_is_a_page_that_says_what_is_wrong(
    reader: TestClient, address: str, status: int, word: str
) -> None:
    answer = reader.get(address)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert word in answer.text
    assert 'href="/fleet"' in answer.text


def the_one(person: TestClient) -> str:
    html = person.get("/recommendations").text
    return re.findall(r'href="(/recommendations/\d+)">Raise the batch', html)[0]


def post(person: TestClient, address: str, **fields: str) -> int:
    return person.post(address, data=fields).status_code


def test_a_recommendation_lives_through_plain_forms(person: TestClient) -> None:
    address = the_one(person)
    assert 'action="' + address + '/claim"' in person.get(address).text
    assert post(person, f"{address}/claim", note="ann takes it") == 303
    assert "ann takes it" in person.get(address).text
    assert post(person, f"{address}/done", note="set to 96") == 303
    html = person.get(address).text
    assert 'class="status done"' in html
    assert f'action="{address}/reopen"' in html
    assert f'action="{address}/claim"' not in html
    assert post(person, f"{address}/reopen") == 303
    assert post(person, f"{address}/snooze", until="2026-12-24") == 303
    html = person.get(address).text
    assert 'class="status snoozed"' in html
    assert "24 Dec" in html
    assert "Raise the batch" not in person.get("/recommendations").text
    assert "Raise the batch" in person.get("/recommendations?view=put-aside").text


def test_a_form_that_lacks_its_field_says_which(person: TestClient) -> None:
    address = the_one(person)
    answer = person.post(f"{address}/dismiss", data={"note": "  "})
    assert answer.status_code == 422
    assert "note" in answer.text
    assert person.post(f"{address}/snooze", data={"until": "2001-01-01"}).status_code == 422
    assert person.post(f"{address}/snooze", data={}).status_code == 422
    assert post(person, f"{address}/explode") in {404, 422}
    assert 'class="status' not in person.get(address).text.split("</h1>")[0].replace("status open", "")


def test_a_form_of_another_site_changes_nothing(person: TestClient) -> None:
    address = the_one(person)
    foreign = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    assert person.post(f"{address}/done", data={}, headers=foreign).status_code == 403
    assert f'action="{address}/done"' in person.get(address).text


def test_a_form_that_is_too_long_is_refused(person: TestClient) -> None:
    assert person.post(f"{the_one(person)}/claim", data={"note": "x" * 20_000}).status_code == 400


def test_a_dismissal_keeps_its_reason(person: TestClient) -> None:
    address = the_one(person)
    assert post(person, f"{address}/dismiss", note="<b>latency</b> promise") == 303
    html = person.get(address).text
    assert "&lt;b&gt;latency&lt;/b&gt; promise" in html
    id_ = int(address.rsplit("/", 1)[1])
    engine = person.app.state.engine  # type: ignore[attr-defined]
    with session_scope(make_engine(str(engine.url.render_as_string(hide_password=False)))) as session:
        kept = recommendations.get(session, id_)
    assert kept is not None
    assert kept.note == "<b>latency</b> promise"


def test_static_files_are_marked_and_kept(reader: TestClient) -> None:
    html = reader.get("/").text
    address = re.findall(r'href="(/static/gpuwise\.css\?v=\w+)"', html)[0]
    answer = reader.get(address)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]


def test_the_report_as_a_file_may_use_its_inline_style_and_run_nothing(reader: TestClient) -> None:
    answer = reader.get("/api/v1/reports/weekly?format=html")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "style-src 'unsafe-inline'" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "data:image/png;base64," in answer.text
