"""The pages of a MIG slice over HTTP, on both databases: its own days, and the card that is paid for."""

import re
from contextlib import closing

import pytest
from starlette.testclient import TestClient

from core.activity import Activity
from core.readings import GpuIdentity
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up
from tests.integration.api.fleet_for_tests import GIB, NOW, fill, sample
from tests.integration.pages.conftest import person_at

CARD = "GPU-card"
MODEL = "NVIDIA A100-SXM4-80GB"
PLACED, NAMED, BLIND = "MIG-placed", f"MIG-{CARD}/2/0", "MIG-blind"


@pytest.fixture
def sliced(ready_database: str) -> TestClient:
    """A card with slices by NVML and by dcgm-exporter, and one of which nothing tells what it did."""
    fill(ready_database)
    held = {"memory_used_bytes": 8.0 * GIB}
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        cut = [
            GpuIdentity(uuid, "h9", 0, f"{MODEL} MIG 1g.10gb", 10 * GIB) for uuid in (PLACED, NAMED, BLIND)
        ]
        ingest.gpus(
            [GpuIdentity(CARD, "h9", 0, MODEL, 80 * GIB), GpuIdentity("GPU-next", "h9", 1, MODEL), *cut]
        )
        ingest.gpu_samples([sample(CARD, slot, Activity.BUSY, 200.0, busy_ratio=0.9) for slot in range(12)])
        for uuid in (PLACED, NAMED):
            told = dict.fromkeys(range(3), Activity.MIXED) | dict.fromkeys((9, 10, 11), Activity.PARKED)
            ingest.gpu_samples([sample(uuid, slot, what, None, **held) for slot, what in told.items()])
        ingest.gpu_samples([sample(BLIND, slot, Activity.UNKNOWN, None, **held) for slot in range(12)])
        ingest.commit()
    roll_up(make_engine(ready_database), now_ms=NOW)
    return person_at(ready_database)


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def days_of(html: str) -> list[list[str]]:
    table = html.partition('id="hours"')[2].partition("</table>")[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[2:]]


@pytest.mark.parametrize("uuid", [PLACED, NAMED])
def test_a_slice_has_its_days_with_their_gaps(sliced: TestClient, uuid: str) -> None:
    html = sliced.get(f"/gpus/{uuid.replace('/', '%2F')}").text
    (day,) = days_of(html)
    assert "2026-10-05" in day[0]
    assert day[1:] == ["2", "0.50", "0.50", "1"], "hours, worked, idle, and an hour of gap"
    assert "Idle cost" not in html
    assert "30\xa0min empty or parked" in html


@pytest.mark.parametrize("uuid", [PLACED, NAMED])
def test_a_slice_leads_to_the_card_that_is_paid_for(sliced: TestClient, uuid: str) -> None:
    html = sliced.get(f"/gpus/{uuid.replace('/', '%2F')}").text
    assert f'paid for with <a href="/gpus/{CARD}' in html
    assert "What it cost is not known" not in html
    assert "Slice of GPU 0 on h9" in text(html)


def test_a_slice_of_which_nothing_is_told_is_not_called_idle(sliced: TestClient) -> None:
    html = sliced.get(f"/gpus/{BLIND}").text
    assert days_of(html)[0][1:] == ["2", "–", "–", "2"]
    assert "how long it was idle is not known" in html
    hours = text(sliced.get(f"/gpus/{BLIND}/hours?day=2026-10-05").text)
    assert "what it did on 2026-10-05 cannot be told" in hours
    assert "never idle" not in hours


def test_a_day_of_a_slice_leads_to_its_hours(sliced: TestClient) -> None:
    hours = text(sliced.get(f"/gpus/{PLACED}/hours?day=2026-10-05").text)
    assert "did nothing for 30 min of 60 min" in hours.replace("\xa0", " ")


def test_a_card_leads_to_its_slices(sliced: TestClient) -> None:
    html = sliced.get(f"/gpus/{CARD}").text
    told = html.partition("Cut into MIG slices")[2].partition("</dd>")[0]
    assert told.count('<a href="/gpus/MIG-') == 3
    assert all(uuid in told for uuid in (PLACED, NAMED, BLIND))
    for page in (
        "/gpus/GPU-next",
        "/gpus/GPU-a",
        f"/gpus/{PLACED}",
        f"/gpus/{CARD}?since=2026-10-06&until=2026-10-07",
    ):
        assert "Cut into MIG slices" not in sliced.get(page).text


def test_the_card_itself_is_priced_as_ever(sliced: TestClient) -> None:
    html = sliced.get(f"/gpus/{CARD}").text
    assert "Idle cost" in html
    assert "paid for with" not in html
