"""Pages of advice over HTTP, on both databases: filters, totals of what is shown, the whole life through forms."""

import re
from html import unescape

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from api.resources import advise
from core.evidence import Window
from core.finding import Status
from core.units import DAY_MS
from store.engine import make_engine, session_scope
from store.queries import gpu_payers, recommendations
from tests.integration.api.fleet_for_tests import NOW


def the_one(person: TestClient) -> str:
    html = person.get("/recommendations").text
    found = re.findall(r'href="(/recommendations/\d+)">Raise the batch', html)
    return str(found[0])


def test_a_filter_leaves_out_what_does_not_fit(person: TestClient) -> None:
    assert "Raise the batch" in person.get("/recommendations?rule=small-batch").text
    assert "Raise the batch" in person.get("/recommendations?gpu=GPU-a&q=llama").text
    assert "Raise the batch" in person.get("/recommendations?host=h1&saves=cash").text
    for none in ("rule=stuck-job", "q=nothing-of-that-name", "host=elsewhere", "grade=D", "assignee=ann"):
        html = person.get(f"/recommendations?{none}").text
        assert "Raise the batch" not in html, none
        assert "Show all" in html, none


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("", 1),
        ("rule=small-batch&rule=stuck-job", 1),
        ("gpu=GPU-a&q=LLAMA", 1),
        ("host=h1&saves=cash", 1),
        ("rule=stuck-job", 0),
        ("q=nothing+of+that+name", 0),
        ("host=elsewhere", 0),
        ("model=NVIDIA+H100+80GB+HBM3&grade=D", 0),
        ("assignee=ann", 0),
        ("owner=nobody", 0),
        ("view=put-aside", 0),
    ],
)
def test_files_hold_what_the_page_shows(person: TestClient, asked: str, count: int) -> None:
    html = unescape(person.get(f"/recommendations?{asked}").text)
    links = dict(re.findall(r'<a href="(/api/v1/recommendations\?[^"]*)">(CSV|JSON)</a>', html))
    if not links:
        assert count == 0
        return
    csv, json = (next(href for href, kind in links.items() if kind == name) for name in ("CSV", "JSON"))
    rows = [row for row in person.get(json).json()["items"] if row["rule_id"] == "small-batch"]
    lines = person.get(csv).text.splitlines()
    assert (len(rows), sum("small-batch" in line for line in lines)) == (count, count)
    assert ("Raise the batch" in html) is (count == 1)
    for part in asked.split("&"):
        assert not part or part.startswith("view=") or part in json


@pytest.mark.parametrize("sort", ["", "cash", "capacity", "energy", "grade", "new", "old"])
def test_every_order_shows_the_same(person: TestClient, sort: str) -> None:
    assert "Raise the batch" in person.get(f"/recommendations?sort={sort}").text


def test_an_order_that_there_is_not_is_refused(person: TestClient) -> None:
    assert person.get("/recommendations?sort=colour").status_code == 400


def test_what_is_set_aside_leaves_the_totals(person: TestClient) -> None:
    before = person.get("/recommendations?rule=small-batch").text
    assert "Cash a month" in before
    address = the_one(person)
    assert person.post(f"{address}/dismiss", data={"reason": "hot-spare"}).status_code == 303
    assert "Cash a month" not in person.get("/recommendations?rule=small-batch").text
    aside = person.get("/recommendations?view=put-aside").text
    assert "1 recommendation set aside" in aside
    assert "A hot spare." in person.get(address).text


def test_a_list_pages_by_twenty_five(person: TestClient) -> None:
    html = person.get("/recommendations?page=99").text
    assert "Raise the batch" in html, "a page that is not there is the nearest that is"


def test_done_may_lie_in_the_past_but_not_before_it_was_found(person: TestClient) -> None:
    address = the_one(person)
    early = person.post(f"{address}/done", data={"at": "2001-02-03T04:05", "note": "set to 96", "who": "ann"})
    assert early.status_code == 422
    assert "before it was found" in early.text
    assert ">set to 96</textarea>" in early.text
    assert 'value="2001-02-03T04:05"' in early.text
    assert 'value="ann"' in early.text
    late = person.post(f"{address}/done", data={"at": "2999-01-01T00:00"})
    assert late.status_code == 422
    assert "in the future" in late.text
    assert person.post(f"{address}/done", data={"note": "set to 96", "who": "ann"}).status_code == 303
    html = person.get(f"{address}?said=step-taken").text
    assert "Noted, with who, when and why." in html
    assert "by <bdi>ann</bdi>" in html


def test_a_claim_is_kept_with_its_name_and_can_be_looked_for(person: TestClient) -> None:
    address = the_one(person)
    assert person.post(f"{address}/claim", data={"who": "ann"}).status_code == 303
    assert "Raise the batch" in person.get("/recommendations?assignee=ann").text
    assert "Raise the batch" not in person.get("/recommendations?assignee=bob").text


@pytest.mark.parametrize(
    ("step", "fields", "word"),
    [
        ("dismiss", {"reason": "other"}, "say what"),
        ("dismiss", {"reason": "no-such"}, "choose one of the list"),
        ("snooze", {"until": "2001-01-01"}, "not in the future"),
        ("snooze", {"until": ""}, "snoozing needs until"),
        ("claim", {"who": "x" * 201}, "longer than 200"),
        ("claim", {"who": "a\x00b"}, "cannot be stored"),
        ("reopen", {}, "does not apply"),
    ],
)
def test_a_form_that_cannot_be_taken_says_why_and_changes_nothing(
    person: TestClient, step: str, fields: dict[str, str], word: str
) -> None:
    address = the_one(person)
    answer = person.post(f"{address}/{step}", data=fields)
    assert answer.status_code == 422
    assert word in answer.text
    assert 'role="alert"' in answer.text
    assert 'class="status open"' in person.get(address).text


def test_all_rules_are_listed_with_what_they_found(person: TestClient) -> None:
    html = person.get("/recommendations/rules?rule=small-batch").text
    assert html.count("What it says of itself") >= 30
    assert "/recommendations?rule=small-batch" in html
    assert "<details open>" in html


def test_totals_of_a_part_are_what_the_run_says_of_it(person: TestClient, advised_database: str) -> None:
    with session_scope(make_engine(advised_database)) as session:
        last = advise.last_spend(session)
        run = advise.last_run(session)
        assert last is not None
        assert run is not None
        assert last.window == run.window
        assert last.spend.totals([]).spend_usd_month == run.totals.spend_usd_month


def test_whoever_paid_for_most_of_a_gpu_is_found_over_many_days(
    person: TestClient, advised_database: str
) -> None:
    engine: Engine = make_engine(advised_database)
    with session_scope(engine) as session:
        found = gpu_payers.payers(session, Window(NOW - 60 * DAY_MS, NOW))
        assert set(gpu_payers.main_payers(found)) <= set(found)
        assert gpu_payers.payers(session, Window(NOW - DAY_MS, NOW), ["GPU-nobody"]) == {}
    assert gpu_payers.main_payers({"a": {"x": 6, None: 4}, "b": {"x": 5, "y": 5}, "c": {None: 9}}) == {
        "a": "x"
    }


def test_counts_and_claimants_are_of_what_there_is(person: TestClient, advised_database: str) -> None:
    address = the_one(person)
    person.post(f"{address}/claim", data={"who": "ann"})
    id_ = int(address.rsplit("/", 1)[1])
    with session_scope(make_engine(advised_database)) as session:
        assert recommendations.counts(session)[Status.CLAIMED] == 1
        assert recommendations.claimants(session) == {id_: "ann"}
        assert recommendations.counts_by_rule(session)["small-batch", Status.CLAIMED] == 1
        assert [rec.id for rec in recommendations.several(session, [id_, 4711])] == [id_]
