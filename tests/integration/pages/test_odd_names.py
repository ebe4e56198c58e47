"""Whatever a host or a GPU is called: the fleet links to a page that is there."""

import re
from contextlib import closing
from html import unescape

import pytest
from starlette.testclient import TestClient

from api.links import gpu_path, host_path
from core.activity import Activity
from core.readings import GpuIdentity
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up
from tests.integration.api.fleet_for_tests import NOW, sample
from tests.integration.pages.conftest import person_at

NAMES = ("..", ".", "a/b", "a/../b", "rack 7?x#y", "ü", "one\ntwo", "end/", "W" * 2_000)
SLICE = "MIG-GPU-5c0f8e6a-5d1c-4b0e-9c6b-3f1f6f7a8b9c/1/0"
"""As drivers before R470 named an instance of a GPU."""


def uuid_of(number: int) -> str:
    return f"GPU-{number}"


@pytest.fixture
def person(ready_database: str) -> TestClient:
    """A host of each name with a GPU, and an instance of a GPU on one of them."""
    named = [*((uuid_of(number), name) for number, name in enumerate(NAMES)), (SLICE, "ü")]
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity(uuid, name, 0, "NVIDIA A100-SXM4-40GB") for uuid, name in named])
        ingest.gpu_samples(
            [
                sample(uuid, slot, Activity.BUSY, 200.0, busy_ratio=0.9)
                for uuid, _ in named
                for slot in range(12)
            ]
        )
        ingest.commit()
    assert roll_up(make_engine(ready_database), now_ms=NOW).pending_left == 0
    return person_at(ready_database)


def test_the_fleet_links_to_a_page_of_every_host(person: TestClient) -> None:
    html = person.get("/fleet").text
    linked = {unescape(href) for href in re.findall(r'href="(/hosts/[^"?]+)', html)}
    assert linked == {host_path(name) for name in NAMES}
    for number, name in enumerate(NAMES):
        answer = person.get(host_path(name))
        assert answer.status_code == 200, name
        assert gpu_path(uuid_of(number)) in unescape(answer.text)


def test_no_part_of_an_address_is_one_that_browsers_take_for_here_or_above() -> None:
    for name in NAMES:
        parts = host_path(name).lower().replace("%2e", ".").split("/")
        assert not {".", ".."} & set(parts), name


@pytest.mark.parametrize(
    "rest", ["", "/hours?day=2026-10-05", "/samples?hour=2026-10-05T00:00:00Z", "/series.json"]
)
def test_a_gpu_with_a_slash_in_its_name_has_all_its_pages(person: TestClient, rest: str) -> None:
    assert person.get(f"{gpu_path(SLICE)}{rest}").status_code == 200


@pytest.mark.parametrize("part", ["", "/samples", "/hours", "/events"])
def test_rest_answers_for_it_too(person: TestClient, part: str) -> None:
    assert person.get(f"/api/v1{gpu_path(SLICE)}{part}").status_code == 200
