"""The calculators as pages over HTTP, on both databases: filled from measurement, one address one answer, refusals beside fields."""

import html
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from api.resources.plan_defaults import forget
from tests.integration.api.plan_fleet_for_tests import HOUR, KEY, T0, fill, settings_for
from tests.integration.pages.conftest import PERSON

RENT_OR_BUY, SIZE, MIX = "/plan/rent-or-buy", "/plan/size", "/plan/mix"
NODE = "capex_usd=82500&gpu_count=2&staff_usd_per_year=4500"
CONFIG = {
    "model_type": "llama",
    "_name_or_path": "own/tiny-1",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
}
HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """What was measured for another test is not what is measured here."""
    forget()
    yield
    forget()


def at(url: str, weeks: float = 9) -> TestClient:
    app = create_app(settings_for(url))
    app.state.clock = lambda: T0 + round(weeks * 168) * HOUR + 5_000
    return TestClient(
        app,
        base_url="http://127.0.0.1:8787",
        headers=PERSON,
        raise_server_exceptions=False,
        follow_redirects=False,
    )


@pytest.fixture
def planner(ready_database: str) -> TestClient:
    """Nine weeks of four GPUs, on each kind of database."""
    fill(ready_database)
    return at(ready_database)


def get(client: TestClient, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text[:500]
    return answer.text


def h1(page: str) -> str:
    found = re.findall(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert len(found) == 1
    return html.unescape(found[0]).replace("\u00a0", " ")


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, name
    return html.unescape(found[1])


def note(page: str, name: str) -> str:
    found = re.search(rf'id="note-{name}">(.*?)</small>', page, re.DOTALL)
    assert found is not None, name
    return html.unescape(found[1]).replace("\u00a0", " ")


def own_link(page: str) -> str:
    found = re.search(r'<a href="([^"]*)" data-address>', page)
    assert found is not None
    return html.unescape(found[1])


def result(page: str) -> str:
    return page[page.index('id="result"') :]


def test_the_plan_begins_with_rent_or_buy(planner: TestClient) -> None:
    answer = planner.get("/plan")
    assert (answer.status_code, answer.headers["location"]) == (307, RENT_OR_BUY)


def test_the_form_holds_what_is_measured_and_says_where_it_is_from(planner: TestClient) -> None:
    page = get(planner, f"{RENT_OR_BUY}?{NODE}")
    rest = planner.post(
        "/api/v1/plan/rent-or-buy", json={"capex_usd": 82_500, "gpu_count": 2, "staff_usd_per_year": 4_500}
    ).json()
    assumed = rest["assumptions"]
    assert float(field(page, "utilisation_percent")) == pytest.approx(100 * assumed["utilisation"], rel=1e-3)
    assert float(field(page, "idle_kw")) == pytest.approx(assumed["idle_kw"], rel=1e-4)
    assert field(page, "rent_usd_per_gpu_hour") == "3.99"
    assert note(page, "utilisation_percent") == "measured on 4 GPUs, 5 Oct – 6 Dec"
    assert "80 W a GPU measured" in note(page, "idle_kw")
    assert note(page, "life_years") == "default"


def test_the_page_gives_the_figures_of_the_rest_api(planner: TestClient) -> None:
    page = get(planner, f"{RENT_OR_BUY}?{NODE}")
    rest = planner.post(
        "/api/v1/plan/rent-or-buy", json={"capex_usd": 82_500, "gpu_count": 2, "staff_usd_per_year": 4_500}
    ).json()
    shown = result(page)
    assert f"{rest['breakeven_utilisation']:.0%}".removesuffix("%") + "\u00a0%" in shown
    assert f"${Decimal(rest['own_usd_per_gpu_h']):.2f}" in shown
    assert rest["verdict"] == "buy"
    assert h1(page).startswith("Owning pays: it takes ")


def test_the_link_to_a_result_gives_it_again_whatever_is_measured_later(
    planner: TestClient, ready_database: str
) -> None:
    page = get(planner, f"{RENT_OR_BUY}?{NODE}")
    link = own_link(page)
    given = dict(parse_qsl(urlsplit(link).query))
    assert given["utilisation_percent"] == field(page, "utilisation_percent")
    assert given["idle_kw"] == field(page, "idle_kw")
    later = get(at(ready_database, weeks=5), link)
    assert h1(later) == h1(page)
    tiles = re.compile(r'<dl class="tiles">.*?</dl>', re.DOTALL)
    assert tiles.findall(later) == tiles.findall(page)


def test_without_a_purchase_price_the_page_says_which_price_pays(planner: TestClient) -> None:
    page = get(planner, f"{RENT_OR_BUY}?gpu_count=2")
    found = re.fullmatch(r"Owning pays if a machine of 2 GPUs costs less than \$([\d,]+)", h1(page))
    assert found is not None
    price = int(found[1].replace(",", ""))
    above, below = (
        get(planner, f"{RENT_OR_BUY}?gpu_count=2&utilisation_p25_percent=&capex_usd={cost}")
        for cost in (price * 1.3, price * 0.7)
    )
    assert h1(below).startswith("Owning pays")
    assert not h1(above).startswith("Owning pays")


@pytest.mark.parametrize(
    ("query", "name", "says"),
    [
        ("capex_usd=lots", "capex_usd", "no number"),
        ("capex_usd=1&utilisation_percent=140", "utilisation_percent", "give 0 to 100 %"),
        ("life_years=0", "life_years", "give 0.25 to 30"),
        ("pue=9", "pue", "give 1 to 3"),
        ("idle_kw=9&active_kw=2", "active_kw", "below idle kw"),
        ("utilisation_p25_percent=90&utilisation_p75_percent=10", "utilisation_p25_percent", "above"),
        ("gpu_count=2.5", "gpu_count", "whole number"),
    ],
)
def test_an_error_stands_beside_its_field_and_no_stale_figure_with_it(
    planner: TestClient, query: str, name: str, says: str
) -> None:
    page = get(planner, f"{RENT_OR_BUY}?{query}")
    assert says in note(page, name)
    assert h1(page) == "There is no answer yet"
    assert "$" not in result(page)
    assert 'class="chart' not in result(page)


def test_below_four_weeks_a_use_is_given_or_assumed(ready_database: str) -> None:
    fill(ready_database, weeks=2)
    client = at(ready_database, weeks=2)
    page = get(client, f"{RENT_OR_BUY}?{NODE}")
    assert field(page, "utilisation_percent") == ""
    assert "4 are needed" in note(page, "utilisation_percent")
    assert h1(page).startswith("Owning pays from ")
    assumed = get(client, f"{RENT_OR_BUY}?{NODE}&assume_measured=1")
    assert field(assumed, "utilisation_percent") != ""
    assert "assume_measured=1" in own_link(assumed)
    assert "1.9 weeks of demand are measured" in h1(get(client, MIX))


def test_an_empty_database_has_forms_with_defaults(ready_database: str) -> None:
    client = at(ready_database)
    page = get(client, f"{RENT_OR_BUY}?gpu_model={KEY}&{NODE}&utilisation_percent=60")
    assert "no GPU was measured here" in page
    assert note(page, "idle_kw") == "setting, not measured"
    assert "catalogue" in note(page, "rent_usd_per_gpu_hour")
    assert h1(page).startswith(("Owning pays", "Keep renting"))
    assert get(client, RENT_OR_BUY)
    assert "none is measured yet" in h1(get(client, MIX))
    assert "gpuwise agent" in get(client, MIX)
    assert "llama-3.1-8b" in h1(get(client, SIZE))


def test_the_mix_page_gives_the_mix_of_the_rest_api(planner: TestClient) -> None:
    query = f"{MIX}?{NODE}&commit_usd_per_gpu_hour=2.4"
    page = get(planner, query)
    (rest,) = planner.post(
        "/api/v1/plan/mix",
        json={
            "capex_usd": 82_500,
            "gpu_count": 2,
            "staff_usd_per_year": 4_500,
            "commit_usd_per_gpu_hour": 2.4,
        },
    ).json()
    assert rest["own_gpus"] == 2
    assert h1(page).startswith("Own 2")
    assert f"${Decimal(rest['usd_per_month']):,.0f} a month" in h1(page)
    assert "Today: all that is there" in page
    assert page.count('<svg class="chart') == 3
    assert "a reservation (“Reserved” is not given)" in page


def test_a_refusal_of_the_mix_is_a_sentence_on_the_page(planner: TestClient) -> None:
    page = get(planner, f"{MIX}?commit_usd_per_gpu_hour=0")
    assert h1(page) == "There is no answer yet"
    assert "give" in page


def test_sizing_ranks_gpus_and_names_the_best(planner: TestClient) -> None:
    page = get(planner, f"{SIZE}?model=llama-3.1-8b&concurrency=64&itl_slo_ms=30")
    rest = planner.post(
        "/api/v1/plan/size", json={"model": "llama-3.1-8b", "concurrency": 64, "itl_slo_ms": 30}
    ).json()["items"]
    assert rest[0]["gpu_key"] in h1(page)
    shown = re.findall(r'<th scope="row">([A-Za-z0-9-]+)', result(page))
    running = [row["gpu_key"] for row in rest if row["tokens_per_s"] is not None]
    assert shown[: len(running)] == running
    assert "promise kept to" in page


def test_a_table_of_sizes_sorts_by_its_headers(planner: TestClient) -> None:
    page = get(planner, f"{SIZE}?model=llama-3.1-8b&gpu=L40S&gpu=A40&gpu=H100-SXM5-80GB&sort=-tokens")
    first = re.findall(r'<th scope="row">([A-Za-z0-9-]+)', result(page))[0]
    assert first == "H100-SXM5-80GB"
    assert 'aria-sort="descending"' in page
    assert "sort=-tokens" in own_link(page)


def test_an_unknown_model_is_refused_with_what_to_give(planner: TestClient) -> None:
    page = get(planner, f"{SIZE}?model=lama-3.1-8b")
    assert "did you mean llama-3.1-8b" in note(page, "model")
    assert "$" not in result(page)


def test_a_promise_nobody_keeps_is_said(planner: TestClient) -> None:
    page = get(planner, f"{SIZE}?model=llama-3.1-70b&itl_slo_ms=0.5")
    assert h1(page) == "No GPU model keeps 0.5 ms between tokens for llama-3.1-70b"


def test_a_pasted_config_becomes_an_address_that_sizes_it(planner: TestClient) -> None:
    answer = planner.post(f"{SIZE}/config", data={"config": json.dumps(CONFIG, indent=4)})
    assert answer.status_code == 303
    page = get(planner, answer.headers["location"])
    assert "tiny-1" in h1(page)
    assert get(planner, own_link(page)).count("tiny-1") == page.count("tiny-1")
    assert "bos_token_id" not in answer.headers["location"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"hidden_size": 5}'])
def test_what_is_no_config_is_refused_with_a_sentence(planner: TestClient, text: str) -> None:
    answer = planner.post(f"{SIZE}/config", data={"config": text})
    if answer.status_code == 303:
        page = get(planner, answer.headers["location"])
        assert h1(page) == "There is no answer yet"
        return
    assert answer.status_code == 400
    assert "config" in answer.text


def test_what_somebody_typed_is_only_text(planner: TestClient) -> None:
    typed = quote(HOSTILE)
    for address in (
        f"{SIZE}?model={typed}",
        f"{RENT_OR_BUY}?capex_usd={typed}&gpu_model={typed}",
        f"{MIX}?gpu_model={typed}&since=8w&pue={typed}",
        f"{SIZE}?config={quote(json.dumps({**CONFIG, '_name_or_path': HOSTILE}))}",
    ):
        page = get(planner, address)
        assert "<script>alert" not in page
        assert "\u202e" not in re.sub(
            r'(?:value|href)="[^"]*"|<code>.*?</code>|<option.*?</option>', "", page
        )


@pytest.mark.parametrize("query", ["wanted=sometimes", "since=tomorrow"])
def test_a_choice_that_is_none_is_refused(planner: TestClient, query: str) -> None:
    assert planner.get(f"{RENT_OR_BUY}?{query}").status_code == 400
