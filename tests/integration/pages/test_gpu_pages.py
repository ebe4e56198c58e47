"""A GPU's pages over HTTP: near and far, who held it, what it cost, and down to the samples, on both databases."""

import re
from contextlib import closing
from itertools import product

import pytest
from starlette.testclient import TestClient

from core.activity import Activity
from core.readings import WorkloadKey
from core.samples import GpuEvent, ProcessSample
from store.dbapi import open_connection
from store.engine import make_engine
from store.ingest import Ingest
from store.rollup import roll_up
from tests.contract import page_fixtures as good
from tests.integration.api.fleet_for_tests import ANN, GIB, NOW, SPAN, T0, A, B, fill, sample
from tests.integration.pages.conftest import give_advice, person_at

BOB = WorkloadKey("process", "77:1", good.HOSTILE, user="bob", host="h1")


def charts(person: TestClient, address: str) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in person.get(address).json()["charts"]}


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.fixture
def shared(ready_database: str) -> TestClient:
    """GPU-b held by ann and, for the second hour, by bob too; an event on GPU-a."""
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.process_samples(
            [ProcessSample(B, T0 + slot * SPAN, SPAN, BOB, 10.0 * GIB, None, 1) for slot in range(6, 12)]
        )
        ingest.events([GpuEvent(A, T0 + SPAN, "xid", good.HOSTILE, 79)])
        ingest.commit()
    assert roll_up(make_engine(ready_database), now_ms=NOW).pending_left == 0
    give_advice(ready_database)
    return person_at(ready_database)


def test_a_gpu_page_answers_over_any_period(shared: TestClient) -> None:
    for uuid, since in product(("GPU-a", "GPU-b", "GPU-c"), ("10m", "2h", "24h", "30d", "90d", "400d")):
        answer = shared.get(f"/gpus/{uuid}?since={since}")
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert shared.get(f"/gpus/{uuid}/series.json?since={since}").status_code == 200


def test_months_and_last_days_of_other_pages_are_understood(shared: TestClient) -> None:
    month = shared.get("/gpus/GPU-a?month=2026-10").text
    assert "one point" in month or "samples of" in month
    one_day = shared.get("/gpus/GPU-a?since=2026-10-05&through=2026-10-05").text
    assert "samples of 600 s" in one_day


def test_memory_is_stacked_by_who_holds_it_near_and_far(shared: TestClient) -> None:
    for since in ("2h", "30d"):
        memory = charts(shared, f"/gpus/GPU-b/series.json?since={since}")["memory"]
        lines = {line["name"]: line["values"] for line in memory["lines"]}  # type: ignore[attr-defined]
        assert lines["train.py"][0] == 70.0
        assert lines["train.py"][-1] == 70.0
        hostile = next(name for name in lines if "alert(1)" in name)
        assert lines[hostile][0] == 0.0
        assert lines[hostile][-1] == 10.0
        assert "\u202e" not in hostile


@pytest.mark.parametrize("since", ["2h", "30d"])
def test_holders_have_their_share_their_cost_and_links(shared: TestClient, since: str) -> None:
    html = shared.get(f"/gpus/GPU-b?since={since}").text
    table = html[html.index('id="holders"') : html.index('id="money"')]
    assert re.search(r'href="/workloads/\d+\?since=', table)
    assert 'href="/users/ann?since=' in table
    rows = [text(row) for row in table.split("<tr>")[2:]]
    assert len(rows) == 2
    assert "train.py" in rows[0]
    assert "unowned" in rows[0]
    assert "shared the GPU" in rows[1]
    cost = sum(float(re.findall(r"\$(\d+\.\d\d)", row)[0]) for row in rows)
    assert cost == pytest.approx(4.00), "two hours at $2.00, shared out"


def test_a_holder_whose_hours_are_not_added_up_yet_is_still_named(ready_database: str) -> None:
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.gpu_samples([sample(A, 12, Activity.BUSY, 200.0, busy_ratio=0.9, memory_used_bytes=8.0 * GIB)])
        ingest.process_samples([ProcessSample(A, T0 + 12 * SPAN, SPAN, ANN, 8.0 * GIB, None, 1)])
        ingest.commit()
    html = person_at(ready_database).get("/gpus/GPU-a?since=10m").text
    table = html[html.index('id="holders"') : html.index('id="money"')]
    assert "train.py" in table
    assert "8.0\xa0GiB" in table
    assert 'data-label="Share of time">–' in table


def test_money_is_usage_times_price_and_says_which_price(shared: TestClient) -> None:
    html = shared.get("/gpus/GPU-a?since=2h").text
    money = text(html[html.index('id="money"') : html.index('id="hours"')])
    assert "$4.00 for 2 h of clock time" in money
    assert "$2.00/h" in money
    assert "your own price" in money
    assert "Rate of the period" not in money
    assert 'href="/costs/parts?since=2h&amp;by=gpu&amp;key=GPU-a"' in html
    unpriced = text(shared.get("/gpus/GPU-c?since=2h").text)
    assert "What it cost is not known" in unpriced


def test_an_event_is_a_mark_on_the_axis_and_a_line_below(shared: TestClient) -> None:
    html = shared.get("/gpus/GPU-a?since=2h").text
    assert 'class="instant i-bad"' in html
    assert "driver error (XID)" in html
    assert "instant" in shared.get("/gpus/GPU-a/series.json?since=2h").json()["marks_svg"]
    assert shared.get("/gpus/GPU-b/series.json?since=2h").json()["marks_svg"] == ""


def test_counters_that_are_missing_are_named_and_present_ones_drawn(shared: TestClient) -> None:
    assert "dcgm-exporter" in shared.get("/gpus/GPU-b?since=2h").text
    with_counters = shared.get("/gpus/GPU-a?since=2h").text
    assert "dcgm-exporter" not in with_counters
    assert "active: SMs 60\xa0%, tensor cores 10\xa0%, memory 70\xa0%" in with_counters


def test_from_a_gpu_down_to_its_samples(shared: TestClient) -> None:
    page = shared.get("/gpus/GPU-a?since=30d").text
    (day,) = re.findall(r'href="(/gpus/GPU-a/hours\?day=2026-10-05)"', page)
    hours = shared.get(day).text
    assert "GPU 0 on h1 did nothing for 70 min of 1.7 h on 2026-10-05: $2.33 idle" in text(hours)
    (first, second) = re.findall(r'href="(/gpus/GPU-a/samples\?hour=[^"]+)"', hours)
    row = text(hours[hours.index(first) :].split("</tr>")[0])
    assert "$2.00/h" in row
    assert "$1.00" in row, "half of the hour was parked"
    samples = shared.get(first).text
    assert "3 of 6 samples were" in samples
    assert samples.count('<th scope="row"><time') == 6
    assert "500\xa0W" in samples
    gap = text(shared.get(second).text)
    assert "All 4 samples were empty" in gap


def test_the_csv_of_hours_and_samples_is_what_the_pages_show(shared: TestClient) -> None:
    for page in ("/gpus/GPU-a/hours?day=2026-10-05", "/gpus/GPU-a/samples?hour=2026-10-05T00:00:00Z"):
        (address,) = re.findall(r'href="(/api/v1/gpus/GPU-a/[^"]*format=csv[^"]*)"', shared.get(page).text)
        answer = shared.get(address.replace("&amp;", "&"))
        assert answer.headers["content-type"].startswith("text/csv")
        assert len(answer.text.strip().splitlines()) == 1 + (2 if "hours" in page else 6)


@pytest.mark.parametrize(
    ("address", "status", "word"),
    [
        ("/gpus/GPU-a/hours?day=2026-13-01", 400, "day"),
        ("/gpus/GPU-a/hours?day=today", 400, "day"),
        ("/gpus/GPU-a/samples?hour=noon", 400, "hour"),
        ("/gpus/GPU-a/samples?page=0", 422, "page"),
        ("/gpus/GPU-nobody/hours", 404, "no GPU"),
        ("/gpus/GPU-nobody/samples", 404, "no GPU"),
        ("/gpus/GPU-a?since=500d", 400, "400 days"),
        ("/gpus/GPU-a?month=October", 400, "month"),
    ],
)
def test_what_cannot_be_shown_is_said_on_a_page(
    reader: TestClient, address: str, status: int, word: str
) -> None:
    answer = reader.get(address)
    assert answer.status_code == status
    assert word in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_a_day_without_samples_is_a_page_that_says_so(reader: TestClient) -> None:
    assert "no samples on 2026-10-04" in text(reader.get("/gpus/GPU-a/hours?day=2026-10-04").text)
    assert "no samples are kept" in text(reader.get("/gpus/GPU-a/samples?hour=2026-10-04T10:00:00Z").text)


def test_a_page_reads_a_bounded_number_of_statements(shared: TestClient) -> None:
    from sqlalchemy import event

    engine = shared.app.state.engine  # type: ignore[attr-defined]
    counts = []
    for since in ("2h", "90d"):
        asked: list[str] = []

        def note(_c: object, _cursor: object, statement: str, *_: object, found: list[str] = asked) -> None:
            found.append(statement)

        event.listen(engine, "before_cursor_execute", note)
        shared.get(f"/gpus/GPU-a?since={since}")
        event.remove(engine, "before_cursor_execute", note)
        counts.append(len(asked))
    assert max(counts) < 90
