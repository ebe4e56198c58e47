"""The price book over REST, on both databases: what is refused and why, what is ended, what prices what."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fleet_for_tests import H100, HOUR, NOW, T0, A, B, C, fill, settings_for
from starlette.testclient import TestClient

from api.app import create_app
from core.clock import iso

CSV = {"Content-Type": "text/csv", "X-Gpuwise-Client": "test"}


@pytest.fixture
def book(ready_database: str) -> TestClient:
    """The small fleet without a price, on each kind of database."""
    fill(ready_database, price_usd=None)
    app = create_app(settings_for(ready_database))
    app.state.clock = lambda: NOW
    return TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False)


def post(client: TestClient, path: str, body: Any, status: int = 201, **query: str) -> Any:
    answer = client.post(f"/api/v1/{path}", json=body, params=query)
    assert answer.status_code == status, answer.text
    return answer.json()


def get(client: TestClient, path: str) -> Any:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def price(client: TestClient, status: int = 201, *, supersede: bool = False, **fields: Any) -> Any:
    given = {"scope_kind": "host", "scope_value": "h1"} | fields
    return post(client, "prices", given, status, supersede=str(supersede).lower())


def effective(client: TestClient) -> dict[str, Any]:
    return {row["gpu_uuid"]: row for row in get(client, "prices/effective")["items"]}


def pending(client: TestClient) -> list[tuple[str, int]]:
    engine = client.app.state.engine  # type: ignore[attr-defined]
    with engine.begin() as connection:
        run = connection.exec_driver_sql
        found = run(
            "SELECT gpu_uuid, day_ms FROM ledger_pending JOIN gpu ON gpu.id = gpu_id ORDER BY 1, 2"
        ).all()
        run("DELETE FROM ledger_pending")
    return [(uuid, day_ms) for uuid, day_ms in found]


def test_two_prices_for_the_same_at_the_same_time_are_refused_naming_both(book: TestClient) -> None:
    first = price(book, usd_per_gpu_hour="2", valid_from="2026-10-01")
    says = price(book, 400, usd_per_gpu_hour="3", valid_from="2026-10-02")["detail"]
    assert says == (
        "price of host h1, 3 USD, from 2026-10-02 00:00: overlaps price 1 (host h1, 2 USD, from 2026-10-01 00:00): "
        "end the older one first, or replace it (--replace, over REST supersede=true), which ends it where the new one starts"
    )
    second = price(book, supersede=True, usd_per_gpu_hour="3", valid_from="2026-10-02")
    listed = get(book, "prices")["items"]
    assert [row["id"] for row in listed] == [first["id"], second["id"]]
    assert [row["valid_to"] for row in listed] == ["2026-10-02T00:00:00.000Z", None]
    refused = price(book, 400, supersede=True, usd_per_gpu_hour="4", valid_from="2026-10-02")["detail"]
    assert "does not start before it" in refused
    price(book, scope_value="h2", usd_per_gpu_hour="4")
    price(book, scope_kind="all", scope_value="", usd_per_gpu_hour="4")


def test_of_two_that_come_at_once_one_is_refused(book: TestClient) -> None:
    given = {"scope_kind": "all", "usd_per_gpu_hour": "2"}
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: book.post("/api/v1/prices", json=given).status_code, range(4)))
    assert sorted(answers) == [201, 400, 400, 400]
    assert len(get(book, "prices")["items"]) == 1


def test_the_model_is_the_same_in_whatever_case(book: TestClient) -> None:
    price(book, scope_kind="model", scope_value=H100, usd_per_gpu_hour="2")
    assert (
        "overlaps"
        in price(book, 400, scope_kind="model", scope_value=H100.lower(), usd_per_gpu_hour="2")["detail"]
    )


def test_a_price_can_end_earlier_or_later_and_not_into_another(book: TestClient) -> None:
    one = price(book, usd_per_gpu_hour="2", valid_from="2026-10-01")["id"]

    def end(at: str) -> Any:
        return book.patch(f"/api/v1/prices/{one}", json={"valid_to": at})

    assert end("2026-10-05T01:00:00Z").json()["valid_to"] == "2026-10-05T01:00:00.000Z"
    price(book, usd_per_gpu_hour="3", valid_from="2026-10-06")
    assert end("2026-10-06").status_code == 200
    for at, says in (("2026-10-07", "overlaps"), ("2026-10-01", "not after the start"), ("soon", "valid_to")):
        answer = end(at)
        assert (answer.status_code, says in answer.json()["detail"]) == (400, True), answer.text
    assert get(book, "prices")["items"][0]["valid_to"] == "2026-10-06T00:00:00.000Z"
    assert book.patch("/api/v1/prices/99", json={"valid_to": "2026-10-07"}).status_code == 404


def test_another_currency_needs_a_rate_and_is_priced_at_that_of_the_time(book: TestClient) -> None:
    start = "2026-10-05T00:00:00Z"
    bad = price(book, 400, amount_per_gpu_hour="2", currency="EUR", valid_from=start)["detail"]
    assert "no exchange rate of EUR: add one" in bad
    rate = {"currency": "eur", "from_day": "2026-10-05", "usd_per_unit": "1.25"}
    made = post(book, "exchange-rates", rate)
    assert made == {"id": 1, "currency": "EUR", "from_day": "2026-10-05", "usd_per_unit": "1.25"}
    early = price(book, 400, amount_per_gpu_hour="2", currency="EUR")["detail"]
    assert "no exchange rate of EUR before 2026-10-05" in early
    assert (
        price(book, amount_per_gpu_hour="2", currency="EUR", valid_from=start)["usd_per_gpu_hour"] == "2.50"
    )
    row = effective(book)[A]
    assert (row["usd_per_gpu_hour"], row["price_basis"]) == (
        "2.50",
        "your price for h1 of 2026-10-05, 2 EUR at 1.25 USD of 2026-10-05",
    )
    assert "replace" in post(book, "exchange-rates", rate | {"usd_per_unit": "1.5"}, 400)["detail"]
    replaced = post(book, "exchange-rates", rate | {"usd_per_unit": "1.5"}, replace="true")
    assert (replaced["id"], effective(book)[A]["usd_per_gpu_hour"]) == (1, "3.00")
    assert "price 1" in book.delete("/api/v1/exchange-rates/1").json()["detail"]
    assert book.delete("/api/v1/prices/1").status_code == 204
    assert book.delete("/api/v1/exchange-rates/1").status_code == 204
    assert book.delete("/api/v1/exchange-rates/1").status_code == 404


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"currency": "XYZ"}, "currency is 'XYZ'"),
        ({"currency": "USD"}, "a dollar is a dollar"),
        ({"from_day": "2026-13-01"}, "from_day is '2026-13-01'"),
        ({"from_day": "20261001"}, "from_day is '20261001'"),
        ({"usd_per_unit": "0"}, "usd_per_unit 0"),
        ({"usd_per_unit": "-1"}, "-1 is out of bounds"),
        ({"usd_per_unit": "NaN"}, "NaN is out of bounds"),
        ({"usd_per_unit": "0.0000000000001"}, "12 decimals"),
    ],
)
def test_a_rate_that_cannot_be_is_refused(client: TestClient, change: dict[str, str], says: str) -> None:
    body = {"currency": "EUR", "from_day": "2026-10-05", "usd_per_unit": "1.1"} | change
    answer = client.post("/api/v1/exchange-rates", json=body)
    assert answer.status_code in {400, 422}
    assert says in answer.json()["detail"]
    assert get(client, "exchange-rates")["items"] == []


OWNED = {"capex": 330_000, "gpu_count": 8, "life_years": 4, "residual_ratio": 0.15, "maintenance_ratio": 0.05}
COMMIT = {
    "amount_per_gpu_hour": "1",
    "billing": "committed",
    "commitment": "cud-7",
    "committed_gpus": 16,
    "upfront": "16000",
    "valid_from": "2026-10-01",
    "valid_to": "2026-10-11",
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "amount_per_gpu_hour is not given"),
        ({"usd_per_gpu_hour": "-1"}, "usd_per_gpu_hour: -1 is out of bounds"),
        ({"usd_per_gpu_hour": "nan"}, "nan is out of bounds"),
        ({"usd_per_gpu_hour": "1e10"}, "1e10 is out of bounds"),
        ({"usd_per_gpu_hour": "0.1234567"}, "6 decimals"),
        (
            {"usd_per_gpu_hour": "1", "amount_per_gpu_hour": "1"},
            "usd_per_gpu_hour is 1 beside another amount",
        ),
        ({"usd_per_gpu_hour": "1", "currency": "EUR"}, "beside another amount or currency"),
        ({"amount_per_gpu_hour": "1", "currency": "XXX"}, "currency is 'XXX'"),
        ({"owned": OWNED}, "use billing owned"),
        ({"owned": OWNED | {"capex": 0}, "billing": "owned"}, "capex is 0"),
        ({"owned": OWNED | {"gpu_count": 0}, "billing": "owned"}, "gpu_count is 0"),
        ({"owned": OWNED | {"life_years": -1}, "billing": "owned"}, "life_years is -1"),
        ({"owned": OWNED, "billing": "owned", "amount_per_gpu_hour": "2"}, "amount_per_gpu_hour is 2, but"),
        (
            {"owned": OWNED | {"includes_energy": True, "colo_includes_power": True}, "billing": "owned"},
            "twice",
        ),
        (COMMIT | {"commitment": None}, "no commitment"),
        (COMMIT | {"valid_to": None}, "over which it is spread"),
        (COMMIT | {"committed_gpus": None}, "give committed_gpus"),
        (COMMIT | {"billing": "on_demand"}, "use reserved or committed"),
        (COMMIT | {"committed_gpus": 0}, "committed_gpus"),
        ({"amount_per_gpu_hour": "1", "billing": "spot", "spot": {"interruptions_per_hour": -1}}, "is -1"),
        ({"scope_kind": "label", "scope_value": "pool", "usd_per_gpu_hour": "1"}, "give key=value"),
    ],
)
def test_a_price_that_cannot_be_is_refused_naming_field_and_value(
    client: TestClient, change: dict[str, Any], says: str
) -> None:
    answer = client.post("/api/v1/prices", json={"scope_kind": "host", "scope_value": "h1"} | change)
    assert answer.status_code in {400, 422}, answer.text
    assert says in answer.json()["detail"]
    assert len(get(client, "prices")["items"]) == 1


def test_an_owned_machine_has_the_fixed_cost_of_its_hours(book: TestClient) -> None:
    made = price(book, billing="owned", owned=OWNED | {"idle_kw": 2.2, "pue": 1.3, "tariff_per_kwh": 0.12})
    # Worked example of cost-model 2: 126,155.22 a year with energy at idle draw, over 8 × 8760 hours.
    assert made["amount_per_gpu_hour"] == "1.80016"
    assert float(made["owned_rate"]["capital_per_year"]) == pytest.approx(88_648.79, abs=0.005)
    assert "energy at idle draw is in the rate" in made["owned_rate"]["energy"]
    bare = price(
        book, scope_value="h2", billing="owned", owned=OWNED | {"includes_energy": False}
    )  # 123,148.79
    assert bare["amount_per_gpu_hour"] == "1.75726"
    assert "the ledger adds what was measured" in bare["owned_rate"]["energy"]
    assert effective(book)[A]["usd_per_gpu_hour"] == "1.80016"


def test_energy_is_left_out_where_the_host_pays_its_power_apart(book: TestClient) -> None:
    site = {"name": "colo", "scope_kind": "host", "scope_value": "h2", "pays_for_power": True}
    post(book, "sites", site)
    apart = price(book, scope_value="h2", billing="owned", owned=OWNED)
    assert apart["inputs"]["includes_energy"] is False
    assert "the ledger adds what was measured" in apart["owned_rate"]["energy"]
    within = price(book, scope_value="h1", billing="owned", owned=OWNED)
    assert within["inputs"]["includes_energy"] is True
    twice = {"scope_value": "h2", "valid_from": "2026-10-05", "supersede": True, "billing": "owned"}
    for name in ("includes_energy", "colo_includes_power"):
        refused = price(book, 400, owned=OWNED | {name: True}, **twice)["detail"]
        assert refused.startswith(f"{name} is true and the site pays its power apart")


def test_what_was_paid_upfront_is_spread_over_the_term(book: TestClient) -> None:
    made = price(book, **COMMIT)
    # 16,000 over 16 GPUs and 240 hours.
    assert (made["amount_per_gpu_hour"], made["effective_amount_per_gpu_hour"]) == ("1.00", "5.166667")
    row = effective(book)[A]
    assert (row["usd_per_gpu_hour"], row["commitment"], row["price_id"]) == ("5.166667", "cud-7", made["id"])
    answer = book.patch(f"/api/v1/prices/{made['id']}", json={"valid_to": "2026-10-08"})
    assert (answer.status_code, "paid upfront" in answer.json()["detail"]) == (400, True)
    over = price(book, 400, supersede=True, usd_per_gpu_hour="2", valid_from="2026-10-05")
    assert "paid upfront" in over["detail"]


def test_a_spot_price_tells_what_interruptions_cost(book: TestClient) -> None:
    spot = {"interruptions_per_hour": 0.05, "checkpoint_h": 1.0, "restart_h": 0.5}
    made = price(book, usd_per_gpu_hour="2", billing="spot", spot=spot)
    assert (made["usd_per_gpu_hour"], made["spot_effective_amount_per_gpu_hour"]) == ("2.00", "2.10")


def test_what_is_in_force_says_its_age_and_counts_the_unpriced(book: TestClient) -> None:
    page = get(book, "prices/effective")
    assert (page["priced_count"], page["unpriced_count"], page["stale_count"]) == (2, 1, 0)
    by_uuid = {row["gpu_uuid"]: row for row in page["items"]}
    assert by_uuid[C]["usd_per_gpu_hour"] is None
    assert by_uuid[C]["why_unpriced"] == "Card Of Nobody is in no price list of ours: give your own price"
    listed = by_uuid[A]
    assert listed["price_basis"].startswith("catalogue: median on-demand of H100")
    book.app.state.clock = lambda: NOW + 400 * 24 * HOUR  # type: ignore[attr-defined]
    later = effective(book)[A]
    assert (later["stale"], later["price_age_days"] - listed["price_age_days"]) == (True, 400)
    assert later["price_basis"].endswith("over 90 days old by then: give your own price")
    price(book, usd_per_gpu_hour="2", valid_from="2026-10-05")
    mine = effective(book)[A]
    assert (mine["stale"], mine["price_age_days"], mine["price_id"]) == (False, 400, 1)
    assert mine["list_usd_per_gpu_hour"] == listed["usd_per_gpu_hour"]
    assert "why_unpriced" in book.get("/api/v1/prices/effective?format=csv").text


def test_every_change_marks_the_days_it_prices(book: TestClient) -> None:
    pending(book)
    made = price(book, usd_per_gpu_hour="2")
    assert pending(book) == [(A, T0), (B, T0)]
    book.patch(f"/api/v1/prices/{made['id']}", json={"valid_to": iso(NOW)})
    assert pending(book) == [(A, T0), (B, T0)]
    price(book, 400, usd_per_gpu_hour="3")
    assert pending(book) == []
    book.delete(f"/api/v1/prices/{made['id']}")
    assert pending(book) == [(A, T0), (B, T0)]
    post(book, "exchange-rates", {"currency": "EUR", "from_day": "2026-10-01", "usd_per_unit": 1.1})
    assert {day for _, day in pending(book)} == {T0}


FILE = """scope_kind,scope_value,amount_per_gpu_hour,valid_from,currency,note
host,h1,2.5,2026-10-01,USD,'=1+1
label,pool=train,1.75,2026-10-05T12:00:00Z,EUR,"two
lines, one cell"
all,,9,,,
"""


def upload(book: TestClient, text: str, **query: str) -> Any:
    return book.post("/api/v1/prices/import", content=text.encode(), headers=CSV, params=query)


def test_a_file_goes_in_comes_out_and_goes_in_again_unchanged(book: TestClient) -> None:
    post(book, "exchange-rates", {"currency": "EUR", "from_day": "2026-10-05", "usd_per_unit": "1.1"})
    price(book, scope_value="h2", billing="owned", owned=OWNED)
    price(book, scope_value="h3", **COMMIT)
    answer = upload(book, FILE)
    assert answer.status_code == 201, answer.text
    done = answer.json()
    assert (done["added_count"], done["unchanged_count"], done["ended_count"]) == (3, 0, 0)
    assert {row["note"] for row in done["prices"]} == {"=1+1", "two\nlines, one cell", ""}
    exported = book.get("/api/v1/prices/export").text
    assert "'=1+1" in exported
    again = upload(book, exported).json()
    assert (again["added_count"], again["unchanged_count"]) == (0, 5)
    before = get(book, "prices")["items"]
    for row in before:
        book.delete(f"/api/v1/prices/{row['id']}")
    assert upload(book, exported).json()["added_count"] == 5
    assert book.get("/api/v1/prices/export").text == exported


def test_of_a_file_with_bad_rows_nothing_is_kept_and_each_is_named(book: TestClient) -> None:
    bad = "host,h2,-1,2026-10-01,USD,\nhost,h3,1,2026-10-01,QQQ,\nrack,r1,1,,,\nhost,h1,3,2026-10-02,,\n"
    answer = upload(book, FILE.replace("EUR", "USD") + bad)
    assert answer.status_code == 400
    says = answer.json()["detail"]
    assert says.startswith("4 of 7 rows are refused, nothing was kept: line 6: ")
    for one in (
        "line 6: amount_per_gpu_hour: -1 is out of bounds",
        "line 7: currency is 'QQQ'",
        "line 8: price scope 'rack'",
        "line 9: host h1, 3 USD, from 2026-10-02 00:00: overlaps host h1, 2.5 USD",
    ):
        assert one in says
    assert get(book, "prices")["items"] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("scope_kind,colour\nall,red\n", "column 'colour' is none of ours"),
        ("scope_value\nh1\n", "column 'scope_kind' is missing"),
        ("scope_kind,scope_kind\nall,all\n", "is there twice"),
        ("scope_kind,amount_per_gpu_hour\nall\n", "line 2 has 1 cells and the header 2"),
        ('scope_kind,amount_per_gpu_hour\nall,"1"2\n', "is no CSV"),
        ("scope_kind,gpus_per_unit,amount_per_gpu_hour\nall,two,1\n", "gpus_per_unit is 'two'"),
        ("scope_kind,billing,owned\nall,owned,nothing\n", "owned is 'nothing'"),
    ],
)
def test_what_is_no_such_file_is_refused(client: TestClient, text: str, says: str) -> None:
    answer = upload(client, text)
    assert (answer.status_code, says in answer.json()["detail"]) == (400, True), answer.text


def test_json_is_imported_as_a_file_is(book: TestClient) -> None:
    rows = [{"scope_kind": "host", "scope_value": "h1", "usd_per_gpu_hour": 2}, {"scope_kind": "host"}]
    assert "row 2: " in post(book, "prices/import", {"prices": rows}, 400)["detail"]
    assert post(book, "prices/import", {"prices": rows[:1]})["added_count"] == 1
    csv = "scope_kind,scope_value,usd_per_gpu_hour,valid_from\nhost,h1,3,2026-10-05\n"
    assert "overlaps price 1" in post(book, "prices/import", {"csv": csv}, 400)["detail"]
    assert post(book, "prices/import", {"csv": csv}, supersede="true")["ended_count"] == 1
    for body in ([], {"rows": []}, {"prices": [1]}):
        assert "list of rows" in post(book, "prices/import", body, 400)["detail"]


def test_rates_are_imported_whole_or_not_at_all(book: TestClient) -> None:
    text = "currency,from_day,usd_per_unit\nEUR,2026-10-01,1.1\nEUR,2026-10-02,1.2\n"
    bad = post(book, "exchange-rates/import", {"csv": text + "EUR,2026-10-01,1.3\nAAA,2026-10-01,1\n"}, 400)
    assert bad["detail"].startswith("2 of 4 rows are refused, nothing was kept: line 4: EUR of 2026-10-01")
    done = post(book, "exchange-rates/import", {"csv": text})
    assert (done["added_count"], done["unchanged_count"]) == (2, 0)
    assert post(book, "exchange-rates/import", {"csv": text})["unchanged_count"] == 2
    changed = text.replace("1.2", "1.21")
    assert "line 3: there is a rate" in post(book, "exchange-rates/import", {"csv": changed}, 400)["detail"]
    assert post(book, "exchange-rates/import", {"csv": changed}, replace="true")["replaced_count"] == 1
    assert [row["usd_per_unit"] for row in get(book, "exchange-rates")["items"]] == ["1.1", "1.21"]
