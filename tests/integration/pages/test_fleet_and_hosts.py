"""The fleet and the pages of hosts over HTTP, on each kind of database."""

from contextlib import closing

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from core.activity import Activity
from core.readings import GpuIdentity
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up
from tests.integration.api.fleet_for_tests import GIB, H100, NOW, A, fill, sample
from tests.integration.pages.conftest import give_advice, person_at

MORE = "GPU-x"


def row_of(html: str, uuid: str) -> str:
    return html.partition(f'data-live-gpu="{uuid}"')[2].partition("</tr>")[0]


def test_the_fleet_shows_every_gpu_under_its_host_with_its_money(person: TestClient) -> None:
    html = person.get("/fleet").text
    # GPU-a is 30 min parked and 40 min empty of 2 h at $2.00; the rest of what is not work is a gap.
    assert ">$4.00</td>" in row_of(html, A)
    assert 'class="warn">$2.33</td>' in row_of(html, A)
    assert html.index('href="/hosts/h1"') < html.index('href="/hosts/h2"')


def test_a_gpu_that_fell_silent_is_not_called_idle(person: TestClient) -> None:
    html = person.get("/fleet").text
    # GPU-c gave its last sample an hour before the others.
    assert "silent" in row_of(html, "GPU-c")
    assert "1 is silent" in html


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("host=h2", ["GPU-c"]),
        ("activity=empty", ["GPU-a"]),
        ("activity=silent", ["GPU-c"]),
        ("engine=acme/secret-7b", ["GPU-a"]),
        ("find=nobody", ["GPU-c"]),
        ("find=h1&sort=-busy", ["GPU-b", "GPU-a"]),
        ("list=none&sort=-cost", ["GPU-a", "GPU-b", "GPU-c"]),
    ],
)
def test_the_address_says_which_gpus_are_shown(person: TestClient, query: str, shown: list[str]) -> None:
    html = person.get(f"/fleet?{query}").text
    assert [part.split('"')[0] for part in html.split('data-live-gpu="')[1:]] == shown


def test_a_hosts_page_has_its_gpus_money_users_and_advice(person: TestClient) -> None:
    html = person.get("/hosts/h1").text
    assert "of $8.00 bought hours in which nothing ran" in html
    assert html.count('class="heat"') >= 2
    assert "train.py" in html
    assert "acme/secret-7b" in html
    assert 'href="/recommendations/' in html
    assert "$2.00/h" in html


@pytest.mark.parametrize("what", ["activity", "busy", "power", "memory", "sm", "dram", "tensor"])
def test_strips_show_what_is_asked_for_or_say_why_not(person: TestClient, what: str) -> None:
    for host in ("h1", "h2"):
        answer = person.get(f"/hosts/{host}?show={what}")
        assert answer.status_code == 200
        assert 'class="heat"' in answer.text or "Not measured" in answer.text or "No samples" in answer.text


def rows_of_strips(html: str) -> list[str]:
    return html.split('<table class="heat-table">')[1].split("<tbody>")[1].split("</tr>")


def test_a_figure_of_a_strip_is_the_mean_of_its_quarter(person: TestClient) -> None:
    html = person.get("/hosts/h1?show=power").text
    # GPU-a: 30 min at 500 W, 30 min at 100 W, in samples of ten minutes. GPU-b: 200 W throughout.
    first, second, third = rows_of_strips(html)[:3]
    assert "<td>500\xa0W</td><td>200\xa0W</td>" in first
    assert "<td>500\xa0W</td>" in second
    assert "<td>100\xa0W</td>" in third
    assert "a cell is 15\xa0min" in html


def test_over_more_than_two_days_it_is_the_mean_of_its_hour(ready_database: str) -> None:
    fill(ready_database)
    _store(ready_database, "h1", range(-3 * 144, -3 * 144 + 6))
    html = person_at(ready_database).get("/hosts/h1?show=power&since=7d").text
    assert "<td>300\xa0W</td><td>–</td><td>200\xa0W</td>" in rows_of_strips(html)[72]
    assert "a cell is 1\xa0h" in html


def test_hours_without_quarters_are_shown_whole_and_said(ready_database: str) -> None:
    fill(ready_database)
    with make_engine(ready_database).begin() as connection:
        connection.execute(text("UPDATE gpu_hour SET quarters = NULL"))
    html = person_at(ready_database).get("/hosts/h1?show=power").text
    assert all("<td>300\xa0W</td><td>200\xa0W</td>" in row for row in rows_of_strips(html)[:4])
    assert "shown whole" in html


def test_an_unknown_host_is_a_page_that_says_so(person: TestClient) -> None:
    answer = person.get("/hosts/nobody")
    assert answer.status_code == 404
    assert "nobody" in answer.text
    assert person.get("/hosts/h1?show=colour").status_code == 400


def test_hosts_with_any_letters_in_their_name_have_a_page(ready_database: str) -> None:
    fill(ready_database)
    odd = "a/b?c#d<script>"
    _store(ready_database, odd)
    person = person_at(ready_database)
    fleet = person.get("/fleet?sort=gpu").text
    href = "/hosts/a%2Fb%3Fc%23d%3Cscript%3E"
    assert f'href="{href}"' in fleet
    answer = person.get(href)
    assert answer.status_code == 200
    assert "<script>" not in answer.text.replace("<script src", "")
    assert f'href="{href}?show=busy"' in answer.text


def test_gpus_of_no_known_host_have_a_page_too(ready_database: str) -> None:
    fill(ready_database)
    person = person_at(ready_database)
    assert person.get("/hosts").headers["location"] == "/fleet"
    _store(ready_database, None)
    html = person.get("/hosts").text
    assert "GPUs of no known host" in html
    assert f"/gpus/{MORE}" in html
    assert 'href="/hosts"' in person.get("/fleet").text


def test_advice_on_a_gpu_stands_in_its_row(ready_database: str) -> None:
    fill(ready_database)
    give_advice(ready_database)
    assert 'href="/recommendations/' in row_of(person_at(ready_database).get("/fleet").text, A)


def _store(url: str, host: str | None, slots: range = range(12)) -> None:
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(MORE, host, 0, H100, 80 * GIB)])
        ingest.gpu_samples([sample(MORE, slot, Activity.BUSY, 200.0, busy_ratio=0.9) for slot in slots])
        ingest.commit()
    roll_up(make_engine(url), now_ms=NOW)
