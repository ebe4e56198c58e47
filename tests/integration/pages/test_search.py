"""Search over HTTP: what is found by which words, and that odd texts find nothing instead of everything."""

import re

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from store.engine import make_engine, session_scope
from store.models.workload import WorkloadRow
from tests.integration.api.fleet_for_tests import fill
from tests.integration.pages.conftest import person_at


def links(client: TestClient, asked: str, path: str = "/search") -> list[str]:
    answer = client.get(path, params={"q": asked})
    assert answer.status_code == 200
    inside = answer.text.split('<main id="main">')[-1]
    return re.findall(r'<li><a href="([^"]+)"', inside)


def test_a_gpu_is_found_by_its_number_and_host_by_the_start_of_its_uuid_and_by_its_model(
    person: TestClient,
) -> None:
    assert "/gpus/GPU-a" in links(person, "gpu-a")
    assert {link for link in links(person, "h100") if link.startswith("/gpus/")} == {
        "/gpus/GPU-a",
        "/gpus/GPU-b",
    }
    assert links(person, "GPU 0 on h1")[0] == "/gpus/GPU-a"


def test_a_user_a_workload_and_a_host_lead_to_their_pages(person: TestClient) -> None:
    assert "/users/ann" in links(person, "ANN")
    assert any(link.startswith("/workloads/") for link in links(person, "train.py"))
    assert "/hosts/h1" in links(person, "h1")


@pytest.mark.parametrize("asked", ["Özgür", "özgür", "ÖZGÜR", "özg"])
def test_names_with_letters_beyond_ascii_are_found(ready_database: str, asked: str) -> None:
    fill(ready_database)
    with session_scope(make_engine(ready_database)) as session:
        session.execute(update(WorkloadRow).values(user_name="Özgür"))
    assert "/users/%C3%96zg%C3%BCr" in links(person_at(ready_database), asked)


def test_a_recommendation_is_found_by_its_title(person: TestClient) -> None:
    assert any(link.startswith("/recommendations/") for link in links(person, "raise the batch of llama-70b"))


def test_every_word_must_be_there(person: TestClient) -> None:
    assert links(person, "h100 nowhere") == []


@pytest.mark.parametrize("asked", ["%%", "__", "a%b", "'; DROP TABLE gpu --", "“”", "x" * 10_000])
def test_signs_of_databases_are_letters(person: TestClient, asked: str) -> None:
    assert links(person, asked) == []
    assert links(person, asked, "/search/quick") == []


def test_one_letter_finds_nothing_and_an_empty_search_asks_for_words(person: TestClient) -> None:
    assert links(person, "g") == []
    assert "Search the fleet" in person.get("/search").text


def test_markup_that_was_searched_for_stays_text(person: TestClient) -> None:
    page = person.get("/search", params={"q": '"><script>alert(1)</script>'}).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_the_short_list_holds_a_few_of_each_kind(person: TestClient) -> None:
    page = person.get("/search/quick", params={"q": "gpu"}).text
    assert "<html" not in page
    assert "/gpus/GPU-a" in page
