"""Money over HTTP, on both databases: groupings, parts that add up to the figure, energy, budgets from forms."""

import re
from decimal import Decimal
from html import unescape

import pytest
from starlette.testclient import TestClient

from api.pages import breakdown_largest
from api.pages.breakdown import GROUPS
from api.resources import costs, owners
from api.resources.by import By
from api.resources.cost_parts import Group, cost_parts
from api.resources.idle_sharing import IdlePolicy
from api.resources.owner_specs import RuleSpec
from api.resources.scope import Scope, scope_of
from core.evidence import Window
from core.ownership import HostFacts
from core.units import DAY_MS, HOUR_MS
from ledger.calendar import Calendar
from store.engine import make_engine, session_scope
from store.queries import host_facts
from store.queries.idle_energy import energy_by_host_hour, idle_energy
from tests.integration.api.fleet_for_tests import NOW, fill, settings_for
from tests.integration.pages.conftest import person_at


@pytest.fixture
def filled(ready_database: str) -> str:
    """The small fleet with a team, on each kind of database."""
    fill(ready_database)
    with session_scope(make_engine(ready_database)) as session:
        owners.add(session, settings_for(ready_database), NOW, RuleSpec("research", "", "", host="h1"))
    return ready_database


def in_form(client: TestClient, path: str, **fields: str) -> tuple[int, str, str]:
    answer = client.post(path, data=fields)
    return answer.status_code, answer.headers.get("location", ""), answer.text


@pytest.mark.parametrize("path", ["/costs", "/energy"])
def test_an_activity_has_the_colour_and_the_name_of_every_other_chart(filled: str, path: str) -> None:
    html = person_at(filled).get(f"{path}?by=activity").text
    assert 'class="a-' in html
    assert 'class="c-0"' not in html
    assert "busy, nature unknown" in html


def test_parts_of_every_cost_of_every_grouping_add_up_to_it(filled: str) -> None:
    with session_scope(make_engine(filled)) as session:
        scope = scope_of(session, settings_for(filled), NOW)
        for by, _ in GROUPS:
            for row in costs.rows(scope, by):
                found = cost_parts(scope, by, Group(key=row.key, is_nobody=row.key is None))
                assert found is not None
                assert found.row.cost_usd == row.cost_usd
                assert found.sum_usd == (row.cost_usd or Decimal(0)), (by, row.label)


def test_parts_of_everything_and_of_shared_idle_cost_add_up(filled: str) -> None:
    with session_scope(make_engine(filled)) as session:
        scope = scope_of(session, settings_for(filled), NOW)
        whole = cost_parts(scope, By.DAY, None)
        assert whole is not None
        assert whole.sum_usd == whole.row.cost_usd == Decimal("8.00")
        for row in costs.rows(scope, By.USER, idle=IdlePolicy.EVEN):
            group = Group(key=row.key, is_nobody=row.key is None)
            found = cost_parts(scope, By.USER, group, idle=IdlePolicy.EVEN)
            assert found is not None
            assert found.sum_usd == row.cost_usd
            assert found.shared_usd == row.shared_usd


def test_a_part_of_the_period_has_the_parts_of_its_own_hours(filled: str) -> None:
    with session_scope(make_engine(filled)) as session:
        whole = scope_of(session, settings_for(filled), NOW)
        middle = whole.window.from_ms + HOUR_MS
        halves = [
            cost_parts(Scope(session, whole.settings, NOW, window), By.DAY, None)
            for window in (Window(whole.window.from_ms, middle), Window(middle, whole.window.to_ms))
        ]
        assert sum(half.sum_usd for half in halves if half is not None) == Decimal("8.00")


def test_every_grouping_answers_by_every_step(filled: str) -> None:
    client = person_at(filled)
    for page in ("/costs", "/energy"):
        for by, _ in GROUPS:
            assert client.get(f"{page}?by={by.value}").status_code == 200, (page, by)
        for per in ("hour", "day", "week", "month"):
            assert client.get(f"{page}?per={per}&by=host").status_code == 200, (page, per)
    for idle in ("even", "proportional"):
        assert client.get(f"/costs?by=user&idle={idle}").status_code == 200


def test_a_cost_leads_to_its_parts_and_a_name_of_nothing_to_a_404(filled: str) -> None:
    client = person_at(filled)
    html = client.get("/costs?by=owner").text
    assert 'href="/costs/parts?by=owner&amp;key=research"' in html
    parts = client.get("/costs/parts?by=owner&key=research").text
    assert "adds up to the figure, to the micro-dollar" in parts
    assert client.get("/costs/parts?by=owner&key=nobody-of-that-name").status_code == 404


def test_links_to_files_answer_with_the_same_view(filled: str) -> None:
    client = person_at(filled)
    html = client.get("/costs?by=host&host=h1").text.replace("&amp;", "&")
    for start in (
        'href="/api/v1/costs?by=host&',
        'href="/api/v1/costs?by=host%2C',
        'href="/api/v1/exports/focus?',
    ):
        address = html[html.index(start) + 6 :].split('"')[0]
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"].startswith("text/csv")
        if "exports" not in address:
            assert "host=h1" in address


def test_energy_of_empty_and_parked_gpus_is_in_hours_and_days_alike(filled: str) -> None:
    with session_scope(make_engine(filled)) as session:
        scope = scope_of(session, settings_for(filled), NOW)
        hours = idle_energy(session, scope.window)
        day = scope.window.from_ms - scope.window.from_ms % DAY_MS
        days = idle_energy(session, Window(day, day + 2 * DAY_MS))
        assert hours.parked_s == days.parked_s == pytest.approx(30 * 60)
        assert hours.empty_s == days.empty_s
        assert hours.parked_j == pytest.approx(days.parked_j)
        drew = energy_by_host_hour(session, scope.window)
        assert {host for host, _, _ in drew} >= {"h1"}


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu", "America/New_York"])
def test_idle_energy_of_days_adds_up_where_midnight_is_within_an_hour(filled: str, zone: str) -> None:
    with session_scope(make_engine(filled)) as session:
        whole = Window(NOW - 4 * DAY_MS, NOW + 2 * DAY_MS)
        days = Calendar(zone).days(whole.from_ms, whole.to_ms)
        of_days = [idle_energy(session, Window(day.from_ms, day.to_ms)) for day in days]
        every = idle_energy(session, Window(days[0].from_ms, days[-1].to_ms))
    assert sum(one.parked_s for one in of_days) == every.parked_s > 0
    assert sum(one.empty_j or 0.0 for one in of_days) == pytest.approx(every.empty_j)


def test_a_budget_lives_from_a_form_to_its_end(filled: str) -> None:
    client = person_at(filled)
    given = {
        "name": "Vision",
        "scope_kind": "team",
        "scope_value": "research",
        "amount_usd": "5",
        "from_month": "",
    }
    status, where, _ = in_form(client, "/budgets/add", **given)
    assert (status, where) == (303, "/budgets?said=added#main")
    html = client.get(where).text
    assert "Added." in html
    assert "Vision" in html
    assert in_form(client, "/budgets/1/change", amount_usd="7", since_month="", note="more")[0] == 303
    assert "$7.00 a month" in client.get("/budgets").text
    month = html[html.index('name="to_month"') :].split('value="')[1].split('"')[0]
    assert in_form(client, "/budgets/1/end", to_month=month)[:2] == (303, "/budgets?said=ended#main")
    assert f"until {month}" in client.get("/budgets").text
    assert in_form(client, "/budgets/1/remove")[:2] == (303, "/budgets?said=removed#main")
    assert "Vision" not in client.get("/budgets").text


@pytest.mark.parametrize(
    ("kind", "value", "address"),
    [
        ("all", "", "/costs?month={}"),
        ("team", "research", "/costs?owner=research&amp;month={}"),
        ("project", "vision", "/costs/parts?by=project&amp;key=vision&amp;month={}"),
        ("host", "h1", "/costs?by=host&amp;host=h1&amp;month={}"),
        ("label", "rack=7", "/costs?by=host&amp;host=h1&amp;month={}"),
    ],
)
def test_what_a_month_spent_leads_to_the_costs_of_the_same_sum(
    filled: str, kind: str, value: str, address: str
) -> None:
    with session_scope(make_engine(filled)) as session:
        owners.add(
            session, settings_for(filled), NOW, RuleSpec("research", "vision", "", host="h1"), position=1
        )
        host_facts.write(session, HostFacts("h1", labels=(("rack", "7"),)))
    client = person_at(filled)
    given = {"name": "One", "scope_kind": kind, "scope_value": value, "amount_usd": "9"}
    assert in_form(client, "/budgets/add", **given)[0] == 303
    found = re.search(r'Spent</dt><dd><a href="([^"]+)">([^<]+)</a>', client.get("/budgets").text)
    assert found is not None
    href, spent = found.groups()
    month = href.rpartition("=")[2]
    assert href == address.format(month)
    answer = client.get(unescape(href))
    assert answer.status_code == 200
    assert spent in answer.text[answer.text.index("<h1") :].split("</h1>")[0]


def test_a_refused_budget_is_not_kept_and_what_was_typed_is(filled: str) -> None:
    client = person_at(filled)
    status, _, html = in_form(
        client, "/budgets/add", name="Vision", scope_kind="team", scope_value="resaerch", amount_usd="5"
    )
    assert status == 422
    field = html[html.index('value="resaerch"') :].split("</label>")[0]
    assert "there is no team of that name" in field
    assert 'value="Vision"' in html
    assert "No budget for" in client.get("/budgets").text


def test_a_form_of_another_site_changes_nothing(filled: str) -> None:
    client = person_at(filled)
    headers = {"sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    given = {"name": "Vision", "scope_kind": "all", "amount_usd": "5"}
    assert client.post("/budgets/add", data=given, headers=headers).status_code == 403
    assert "Vision" not in client.get("/budgets").text


def test_a_long_table_reads_the_largest_only_and_its_sums_are_of_all(
    filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person_at(filled)
    whole = client.get("/costs?by=gpu").text
    monkeypatch.setattr(breakdown_largest, "MOST_ROWS", 1)
    cut = client.get("/costs?by=gpu").text
    assert "smaller ones are not shown; “All” counts them" in cut
    assert "smaller ones are not shown" not in whole
    in_all = re.findall(r"<tfoot>.*?</tfoot>", cut, re.DOTALL)[1]
    assert "$8.00" in in_all, "of all GPUs, of which one is shown"
    assert "$2.33" in in_all
    assert "$8.00 of GPU time, $2.33 of it idle" in cut
    assert re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', cut)[0] in re.findall(
        r'<th scope="row"><bdi>(.*?)</bdi>', whole
    )
    assert "others" in cut
