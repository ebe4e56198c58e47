"""The pages of settings over HTTP, on both databases: forms keep, refuse, look, and keep out other sites and secrets."""

import re
from typing import Any

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import Engine
from starlette.testclient import TestClient

from api.app import PAGES as PAGE_ROUTERS
from api.resources import settings_given
from core.settings import Secret, Settings
from store.engine import session_scope
from store.queries import tokens
from tests.integration.api.fleet_for_tests import H100

PRICE = {"scope_kind": "model", "scope_value": H100, "amount_per_gpu_hour": "2.50", "currency": "USD"}
CSV = "scope_kind,scope_value,usd_per_gpu_hour,valid_from\nhost,h1,2.00,2026-10-01\nhost,h2,1.00,2026-10-01\n"
RULE = {"team": "vision", "user": "ann"}
FOREIGN = [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "", "origin": "https://evil.example"}]
PAGES = ("", "/prices", "/tariffs", "/owners", "/recipients", "/tokens")


def rows(person: TestClient, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = person.get(f"/api/v1/{path}").json()["items"]
    return found


def made(person: TestClient, path: str, data: dict[str, str]) -> None:
    answer = person.post(f"/settings/{path}", data=data)
    assert answer.status_code == 303, answer.text[:2000]
    assert person.get(answer.headers["location"]).status_code == 200


def token_states(person: TestClient) -> list[bool]:
    engine: Engine = person.app.state.engine  # type: ignore[attr-defined]
    with session_scope(engine) as session:
        return [one.revoked_ms is None for one in tokens.listing(session)]


def everything(person: TestClient) -> list[Any]:
    paths = ("prices", "exchange-rates", "tariffs", "sites", "owners/rules", "recipients")
    facts = [(row["host"], row.get("cluster")) for row in rows(person, "hosts")]
    return [*(rows(person, path) for path in paths), token_states(person), facts]


@pytest.mark.parametrize("path", PAGES)
def test_an_empty_database_says_what_to_do_next(empty_person: TestClient, path: str) -> None:
    answer = empty_person.get(f"/settings{path}")
    assert answer.status_code == 200
    assert 'aria-label="Settings"' in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_and_sets_nothing_by_being_read(person: TestClient, path: str) -> None:
    before = everything(person)
    assert person.get(f"/settings{path}?said=saved").status_code == 200
    assert everything(person) == before


def test_a_price_is_added_ended_and_removed(person: TestClient) -> None:
    before = rows(person, "prices")
    data = {**PRICE, "valid_from": "2026-11-01", "supersede": "1", "note": "contract 7"}
    made(person, "prices/add", data)
    (price,) = [row for row in rows(person, "prices") if row["note"] == "contract 7"]
    assert (price["amount_per_gpu_hour"], price["billing"]) == ("2.50", "on_demand")
    assert "contract 7" in person.get("/settings/prices").text
    made(person, f"prices/{price['id']}/end", {"valid_to": "2026-12-01"})
    assert rows(person, "prices")[-1]["valid_to"].startswith("2026-12-01")
    made(person, f"prices/{price['id']}/remove", {})
    assert len(rows(person, "prices")) == len(before)


def test_an_owned_machine_is_figured_from_what_it_cost(person: TestClient) -> None:
    data = {**PRICE, "scope_kind": "host", "scope_value": "h2", "amount_per_gpu_hour": ""}
    made(person, "prices/add", {**data, "capex": "330000", "gpu_count": "8", "life_years": "4"})
    (price,) = [row for row in rows(person, "prices") if row["billing"] == "owned"]
    assert price["owned_rate"]["gpu_hours_per_year"] == "70080.00"


@pytest.mark.parametrize(
    ("typed", "field", "says"),
    [
        ({"amount_per_gpu_hour": "much"}, "amount_per_gpu_hour", "is no amount"),
        ({"currency": "XXXX"}, "currency", "give an ISO 4217 code"),
        ({"gpus_per_unit": "two"}, "gpus_per_unit", "give a whole number such as 8"),
        ({"valid_to": "1971-01-01", "valid_from": "2026-01-01"}, "valid_to", "not after valid_from"),
        ({"note": "a\x00b"}, "note", "cannot be stored"),
    ],
)
def test_a_refusal_stands_beside_its_field_and_keeps_what_was_typed(
    person: TestClient, typed: dict[str, str], field: str, says: str
) -> None:
    before = everything(person)
    answer = person.post("/settings/prices/add", data={**PRICE, "commitment": "kept-words", **typed})
    assert answer.status_code == 422
    wrong = answer.text.partition(f'id="add-{field}-wrong"')[2].partition("</span>")[0]
    assert says in wrong
    assert 'value="kept-words"' in answer.text
    assert everything(person) == before


def test_a_file_of_prices_is_looked_at_before_it_is_kept(person: TestClient) -> None:
    before = rows(person, "prices")
    answer = person.post("/settings/prices/import", files={"file": ("p.csv", CSV, "text/csv")})
    assert answer.status_code == 200
    assert "2 prices would be added" in answer.text
    assert rows(person, "prices") == before
    text = answer.text.partition('name="csv" value="')[2].partition('"')[0]
    made(person, "prices/import", {"csv": text, "keep": "1"})
    assert len(rows(person, "prices")) == len(before) + 2


def test_a_file_with_one_bad_row_is_refused_as_a_whole(person: TestClient) -> None:
    before = rows(person, "prices")
    for data in ({"csv": f"{CSV}moon,x,1,\n"}, {"csv": f"{CSV}moon,x,1,\n", "keep": "1"}, {"csv": " "}):
        answer = person.post("/settings/prices/import", data=data)
        assert answer.status_code == 422
    assert (
        "1 of 3 row is refused, nothing was kept: line 4"
        in person.post("/settings/prices/import", data={"csv": f"{CSV}moon,x,1,\n"}).text
    )
    latin = person.post("/settings/prices/import", files={"file": ("p.csv", b"\xff\xfe\x00", "text/csv")})
    assert latin.status_code == 400
    assert rows(person, "prices") == before


def test_exchange_rates_are_added_and_removed(person: TestClient) -> None:
    made(person, "prices/rates/add", {"currency": "EUR", "from_day": "2026-10-01", "usd_per_unit": "1.08"})
    (rate,) = rows(person, "exchange-rates")
    assert "1.08" in person.get("/settings/prices").text
    made(person, f"prices/rates/{rate['id']}/remove", {})
    assert rows(person, "exchange-rates") == []


def test_a_tariff_by_time_of_use_and_a_site_that_names_it(person: TestClient) -> None:
    day = {"weekdays0": "all", "from_hour0": "7", "to_hour0": "21", "usd_per_kwh0": "0.17"}
    night = {"weekdays1": "all", "from_hour1": "21", "to_hour1": "7", "usd_per_kwh1": "0.11"}
    made(person, "tariffs/add", {"name": "hall", "time_zone": "Europe/Berlin", **day, **night})
    (tariff,) = rows(person, "tariffs")
    assert tariff["kind"] == "time_of_use"
    site = {"name": "hall 1", "scope_kind": "all", "tariff": "hall", "pue": "1.4", "pays_for_power": "yes"}
    made(person, "tariffs/sites/add", site)
    (kept,) = rows(person, "sites")
    assert (kept["pue"], kept["pays_for_power"], kept["host_share_measured"]) == (1.4, True, False)
    text = person.get("/settings/tariffs").text
    assert "A kilowatt-hour costs $0.11 at this hour" in text
    assert "Mon 07–21: $0.17 a kWh" in text
    answer = person.post(f"/settings/tariffs/{tariff['id']}/remove", data={})
    assert answer.status_code == 422
    assert "is named by site profile" in answer.text
    made(person, f"tariffs/sites/{kept['id']}/end", {"at": "2026-11-01"})
    made(person, f"tariffs/sites/{kept['id']}/remove", {})
    made(person, f"tariffs/{tariff['id']}/end", {"at": "2026-11-01"})
    made(person, f"tariffs/{tariff['id']}/remove", {})
    assert rows(person, "tariffs") == rows(person, "sites") == []


def test_a_rule_is_tried_kept_moved_handed_over_and_removed(person: TestClient) -> None:
    answer = person.post("/settings/owners/add", data={**RULE, "look": "1"})
    assert answer.status_code == 200
    said = answer.text.partition('class="covers"')[2].partition("</strong>")[0]
    assert re.search(r"It would book 2 GPU-h, \$\d.* to vision", said), said
    assert rows(person, "owners/rules") == []
    made(person, "owners/add", RULE)
    made(person, "owners/add", {"team": "lab", "host": "h*", "position": "1"})
    assert [row["team"] for row in rows(person, "owners/rules")] == ["lab", "vision"]
    first, second = rows(person, "owners/rules")
    made(person, f"owners/{second['id']}/move", {"position": "1"})
    assert [row["team"] for row in rows(person, "owners/rules")] == ["vision", "lab"]
    made(person, f"owners/{second['id']}/hand-over", {"team": "physics", "on": "2026-10-06"})
    made(person, "owners/rename", {"old_team": "lab", "to_team": "shop", "on": "2026-10-06"})
    assert [row["team"] for row in rows(person, "owners/rules")] == ["vision", "physics", "lab", "shop"]
    made(person, f"owners/{second['id']}/end", {"valid_to": "2026-10-05"})
    made(person, f"owners/{first['id']}/remove", {})
    assert [row["team"] for row in rows(person, "owners/rules")] == ["vision", "physics", "shop"]


def test_a_rule_that_matches_everything_is_refused_unless_it_is_meant(person: TestClient) -> None:
    for data in ({"team": "all"}, {"team": "all", "look": "1"}):
        answer = person.post("/settings/owners/add", data=data)
        assert answer.status_code == 422
        assert "matches everything" in answer.text
    made(person, "owners/add", {"team": "all", "catch_all": "1"})
    assert "everything is owned" in person.get("/settings/owners").text


def test_what_nobody_owns_is_listed_with_a_way_to_own_it(person: TestClient) -> None:
    text = person.get("/settings/owners").text
    assert "Processes of ann" in text
    assert 'href="/settings/owners?user=ann#add"' in text
    filled = person.get("/settings/owners?user=ann").text
    assert 'name="user" value="ann"' in filled


def test_hosts_are_told_of_and_untold(person: TestClient) -> None:
    made(person, "owners/hosts", {"host": "h*", "cluster": "ci", "more": "rack=a7, pool=train"})
    text = person.get("/settings/owners").text
    assert "h1, h2" in text
    assert "rack=a7" in text
    made(person, "owners/hosts", {"host": "h1", "more": "cluster=, rack="})
    assert person.get("/settings/owners").text.count("rack=a7<") == 1
    for bad in ({"host": "h1"}, {"host": "nope", "cluster": "x"}, {"host": "h1", "more": "rack"}):
        assert person.post("/settings/owners/hosts", data=bad).status_code == 422


def test_a_recipient_is_added_changed_paused_and_removed(person: TestClient) -> None:
    made(person, "recipients/add", {"address": "fin@example.org", "weekly": "1", "quiet_week": "line"})
    (one,) = rows(person, "recipients")
    assert (one["weekly"], one["alerts"], one["quiet_week"]) == (True, False, "line")
    made(person, f"recipients/{one['id']}/change", {"alerts": "1", "quiet_week": "skip", "note": "ops"})
    (one,) = rows(person, "recipients")
    assert (one["weekly"], one["alerts"], one["note"]) == (False, True, "ops")
    made(person, f"recipients/{one['id']}/pause", {"paused_until": "2026-11-01"})
    assert "paused until 2026-11-01" in person.get("/settings/recipients").text
    made(person, f"recipients/{one['id']}/pause", {})
    assert rows(person, "recipients")[0]["paused_until"] is None
    made(person, f"recipients/{one['id']}/remove", {})
    assert rows(person, "recipients") == []


def test_a_test_that_fails_says_why_beside_its_recipient_and_in_the_log(person: TestClient) -> None:
    made(person, "recipients/add", {"address": "fin@example.org", "weekly": "1"})
    (one,) = rows(person, "recipients")
    answer = person.post(f"/settings/recipients/{one['id']}/test", data={})
    assert answer.status_code == 422
    assert 'class="error" role="alert"' in answer.text
    assert "gpuwise: a test message" in answer.text
    # What it gets stands as it is kept: saving it then changes nothing.
    row = answer.text.split(f'action="/settings/recipients/{one["id"]}/change', 1)[1].split("</form>", 1)[0]
    assert re.search(r'name="weekly" value="1" checked', row)


def test_a_pause_that_is_refused_leaves_what_the_recipient_gets(person: TestClient) -> None:
    made(person, "recipients/add", {"address": "fin@example.org", "weekly": "1", "alerts": "1"})
    (one,) = rows(person, "recipients")
    answer = person.post(f"/settings/recipients/{one['id']}/pause", data={"paused_until": "2020-01-01"})
    assert answer.status_code == 422
    assert "which is over" in answer.text
    row = answer.text.split(f'action="/settings/recipients/{one["id"]}/change', 1)[1].split("</form>", 1)[0]
    assert row.count(" checked") == 2


def test_the_url_of_a_webhook_never_comes_back(person: TestClient) -> None:
    url = "https://hooks.example.org/services/T0SECRET/B0SECRET/verysecretindeed"
    refused = person.post("/settings/recipients/add", data={"address": url})
    assert refused.status_code == 422
    assert "neither the weekly mail nor alerts" in refused.text
    made(person, "recipients/add", {"address": url, "alerts": "1"})
    page = person.get("/settings/recipients").text
    assert "hooks.example.org" in page
    for text in (refused.text, page):
        assert "SECRET" not in text


def test_a_token_is_shown_in_one_answer_that_nothing_keeps(person: TestClient) -> None:
    answer = person.post(
        "/settings/tokens/create", data={"host": "h1", "name": "rack a", "expires_days": "30"}
    )
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    (token,) = re.findall(r"gw_[\w-]{43}", answer.text)
    page = person.get("/settings/tokens").text
    assert token not in page
    assert token[:8] in page
    assert "1 token in force; 1 was never used" in page
    made(person, "tokens/1/revoke", {})
    assert token_states(person) == [False]
    assert "there is no token in force" in person.get("/settings/tokens").text


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"host": ""}, "host"),
        ({"host": "h1", "expires_days": "0"}, "expires_days"),
        ({"host": "a\x00"}, "host"),
    ],
)
def test_a_token_for_nobody_is_not_made(person: TestClient, typed: dict[str, str], field: str) -> None:
    answer = person.post("/settings/tokens/create", data=typed)
    assert answer.status_code == 422
    assert f'id="create-{field}-wrong"' in answer.text
    assert token_states(person) == []


FORMS = {
    "prices/add": PRICE | {"valid_from": "2027-01-01"},
    "prices/1/end": {"valid_to": "2027-01-01"},
    "prices/1/remove": {},
    "prices/import": {"csv": CSV, "keep": "1"},
    "prices/rates/add": {"currency": "GBP", "from_day": "2026-10-01", "usd_per_unit": "1.2"},
    "prices/rates/1/remove": {},
    "tariffs/add": {"name": "flat", "usd_per_kwh": "0.1"},
    "tariffs/1/end": {"at": "2027-01-01"},
    "tariffs/1/remove": {},
    "tariffs/sites/add": {"name": "x", "scope_kind": "all", "pue": "1.2"},
    "tariffs/sites/1/end": {"at": "2027-01-01"},
    "tariffs/sites/1/remove": {},
    "owners/add": {"team": "evil", "user": "*n*"},
    "owners/1/move": {"position": "2"},
    "owners/1/hand-over": {"team": "evil", "on": "2026-10-06"},
    "owners/1/end": {"valid_to": "2026-10-06"},
    "owners/1/remove": {},
    "owners/rename": {"old_team": "vision", "to_team": "evil", "on": "2026-10-06"},
    "owners/hosts": {"host": "h*", "cluster": "evil"},
    "recipients/add": {"address": "evil@example.org", "weekly": "1"},
    "recipients/1/change": {"weekly": "1", "alerts": "1"},
    "recipients/1/pause": {"paused_until": "2026-12-01"},
    "recipients/1/remove": {},
    "recipients/1/test": {},
    "tokens/create": {"host": "evil"},
    "tokens/1/revoke": {},
}


def test_forms_of_other_sites_are_refused_and_change_nothing(person: TestClient) -> None:
    made(person, "prices/rates/add", {"currency": "EUR", "from_day": "2026-10-01", "usd_per_unit": "1.08"})
    made(person, "tariffs/add", {"name": "hall", "usd_per_kwh": "0.2"})
    made(person, "tariffs/sites/add", {"name": "hall 1", "scope_kind": "all", "pue": "1.3"})
    made(person, "owners/add", RULE)
    made(person, "owners/add", {"team": "lab", "host": "h*"})
    made(person, "recipients/add", {"address": "fin@example.org", "weekly": "1"})
    assert person.post("/settings/tokens/create", data={"host": "h1"}).status_code == 200
    before = everything(person)
    for path, data in FORMS.items():
        for headers in FOREIGN:
            assert person.post(f"/settings/{path}", data=data, headers=headers).status_code == 403, path
    assert everything(person) == before


def test_every_form_of_settings_is_among_those_tried_from_other_sites() -> None:
    routes = {
        re.sub(r"\{\w+\}", "1", route.path.removeprefix("/settings/"))
        for router in PAGE_ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "POST" in route.methods and route.path.startswith("/settings/")
    }
    assert {path for path in routes if not path.startswith("rules/")} == set(FORMS)


def test_settings_hide_secrets_and_say_where_each_is_from(tmp_path: Any) -> None:
    file = tmp_path / "gpuwise.toml"
    file.write_text('pue = 1.4\nsmtp_password = "hush-hush"\n')
    environ = {"GPUWISE_CONFIG": str(file), "GPUWISE_RAW_DAYS": "7"}
    given = Settings(
        database_url="postgresql://me:hush@db/gpuwise?password=hush",
        pue=1.4,
        raw_days=7,
        smtp_password=Secret("hush-hush"),
    )
    found = {one.key: one for one in settings_given.rows(given, environ)}
    assert found["pue"].origin == str(file)
    assert found["raw_days"].origin == "environment GPUWISE_RAW_DAYS"
    assert (found["database_url"].value, found["database_url"].origin) == (
        "postgresql://me:***@db/gpuwise",
        "command line",
    )
    assert (found["smtp_password"].value, found["server_token"].value) == ("set, hidden", "not given")
    assert found["port"].origin == "default"
    assert all("hush" not in one.value for one in found.values())


def test_every_setting_says_what_it_means() -> None:
    assert [key for key, meaning in settings_given.meanings().items() if not meaning and key != "rules"] == []
