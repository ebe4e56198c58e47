"""Pages of engines, workloads, teams and users over HTTP: the ledger's figures, from the team down to single hours."""

import re
from html import unescape
from urllib.parse import quote

from starlette.testclient import TestClient

from store.engine import make_engine, session_scope
from tests.integration.api.fleet_for_tests import ANN, ENGINE, NOW, settings_for

WORKLOAD = quote(f"process/h1/{ANN.key}", safe="")
ADDRESSES = (
    "/engines",
    "/engines?sort=-dollars&host=h1&owner=research",
    f"/engines/{quote(ENGINE, safe='')}",
    f"/engines/{quote(ENGINE, safe='')}?money=all",
    "/workloads",
    "/workloads?by=user&idle=even",
    "/workloads?by=run&user=ann&host=h1&kind=process&q=train",
    "/owners",
    "/owners?idle=proportional",
    "/owners/research",
    "/users/ann",
    f"/workloads/{WORKLOAD}",
    "/workloads/1",
)


def own(url: str) -> None:
    """Give ann's time to a team."""
    from api.resources import owners
    from api.resources.owner_specs import RuleSpec

    with session_scope(make_engine(url)) as session:
        owners.add(session, settings_for(url), NOW, RuleSpec("research", "vision", "4711", user="ann"))


def test_every_page_answers_on_each_kind_of_database(person: TestClient, advised_database: str) -> None:
    own(advised_database)
    for address in ADDRESSES:
        answer = person.get(address)
        assert answer.status_code == 200, (address, answer.text[:400])
        assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)", answer.text), address


def row_of(html: str, name: str) -> str:
    """The text of a table's row."""
    start = html.index(name, html.index("<tbody>"))
    return unescape(re.sub(r"<[^>]+>", " ", html[start:].split("</tr>", maxsplit=1)[0]))


def test_a_job_has_the_hours_and_the_money_of_its_user(person: TestClient, advised_database: str) -> None:
    # ann held GPU-b for two hours at $2.00; it drew 200 W; no counter says whether she used it well.
    own(advised_database)
    row = row_of(person.get("/workloads").text, "train.py")
    assert "$4.00" in row
    assert "0.40\xa0kWh" in row
    team = row_of(person.get("/owners").text, "research")
    assert "$4.00" in team
    assert "$4.00" in person.get("/users/ann").text


def test_from_the_team_to_the_samples_in_four_clicks(person: TestClient, advised_database: str) -> None:
    own(advised_database)
    html = person.get("/owners?since=30d").text
    for step in (
        r"/owners/research[^\"]*",
        r"/users/ann[^\"]*",
        r"/workloads/process[^\"]*",
        r"/gpus/GPU-b[^\"]*",
    ):
        found = re.search(f'href="({step})"', html)
        assert found is not None, step
        address = unescape(found[1])
        answer = person.get(address)
        assert answer.status_code == 200, address
        html = answer.text
    assert "since=" in address
    assert "GPU" in html


def test_filters_narrow_the_rows_and_the_csv_alike(reader: TestClient) -> None:
    html = reader.get("/workloads?by=run&user=ann").text
    assert "train.py" in html
    csv = unescape(re.search(r'href="(/api/v1/workloads\?[^"]*)"', html)[1])  # type: ignore[index]
    assert "user=ann" in csv
    assert "train.py" in reader.get(csv).text
    assert "No workload fits" in reader.get("/workloads?user=bob").text
    assert "train.py" not in reader.get(csv.replace("user=ann", "user=bob")).text


def test_what_nobody_held_is_said_beside_the_rows(reader: TestClient) -> None:
    # GPU-a was empty or parked without a known holder, GPU-c unpriced.
    html = reader.get("/workloads").text
    assert "Held by no known workload:" in html
    assert "unowned" in reader.get("/owners").text


def test_an_engine_page_says_why_there_is_no_fit(reader: TestClient) -> None:
    html = unescape(reader.get(f"/engines/{quote(ENGINE, safe='')}").text)
    assert "it ran at 1 batch size only (8): a line needs 3" in html
    assert "No honest curve for this engine" in html
    assert "The limit on its batch is not published" in html


def test_what_is_not_there_is_not_found(reader: TestClient) -> None:
    for address in (
        "/engines/nobody",
        "/users/nobody",
        "/owners/nobody",
        "/workloads/pod%2Fx%2Fy",
        "/workloads/999999",
    ):
        assert reader.get(address).status_code == 404, address


def test_a_level_or_order_that_there_is_not_is_refused_in_a_sentence(reader: TestClient) -> None:
    for address in ("/workloads?by=planet", "/workloads?sort=x", "/engines?sort=x", "/owners?idle=x"):
        answer = reader.get(address)
        assert answer.status_code in {400, 422}, address
        assert "use one of" in answer.text


def test_an_empty_database_says_what_to_do(empty_person: TestClient) -> None:
    for address in ("/engines", "/workloads", "/owners"):
        answer = empty_person.get(address)
        assert answer.status_code == 200
        assert "gpuwise import" in answer.text
