"""The page of the rules' settings over HTTP, on both databases: forms keep, refuse, look and end."""

import re

import pytest
from starlette.testclient import TestClient

PAGE = "/settings/rules"
GIVEN = {"kind0": "host", "pattern0": "h1", "until": "2026-10-09", "reason": "hot spare", "who": "Ada"}


def statuses(person: TestClient) -> set[str]:
    rows = person.get("/api/v1/recommendations").json()["items"]
    return {row["status"] for row in rows if "GPU-a" in row["gpu_uuids"]} - {"gone"}


def exclusions(person: TestClient) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = person.get("/api/v1/exclusions?past=true").json()["items"]
    return rows


def changed(person: TestClient) -> dict[str, float]:
    rows = person.get("/api/v1/thresholds?only_set=true").json()["items"]
    return {f"{row['part']} {row['name']}": row["value"] for row in rows}


def test_an_empty_database_has_rules_and_forms(empty_person: TestClient) -> None:
    answer = empty_person.get(PAGE)
    assert answer.status_code == 200
    assert "Nothing is left alone; every threshold is at its default" in answer.text
    assert "min_small_ratio" in answer.text


def test_a_hot_spare_until_friday(person: TestClient) -> None:
    assert statuses(person) == {"open"}
    answer = person.post(f"{PAGE}/exclusions", data=GIVEN)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}?said=left-alone#main")
    html = person.get(f"{PAGE}?said=left-alone").text
    assert "Left alone: what was open about it is snoozed until that ends." in html
    assert "1 exclusion in force" in html
    assert statuses(person) == {"snoozed"}
    (id_,) = re.findall(rf'action="{PAGE}/exclusions/(\d+)/end"', html)
    answer = person.post(f"{PAGE}/exclusions/{id_}/end", data={})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}?said=heard-again#main")
    assert statuses(person) == {"reopened"}
    assert "1 that is over" in person.get(PAGE).text


def test_a_look_keeps_nothing_and_what_was_typed(person: TestClient) -> None:
    answer = person.post(f"{PAGE}/exclusions", data={"kind0": "host", "pattern0": "h1", "look": "1"})
    assert answer.status_code == 200
    assert "It would cover 2 of 3 GPUs" in answer.text
    assert 'name="pattern0" value="h1"' in answer.text
    assert exclusions(person) == []


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"until": "2026-10-01"}, "which is past"),
        ({"until": ""}, "until is missing"),
        ({"reason": " "}, "reason is missing"),
        ({"pattern0": ""}, "names no part of the fleet"),
        ({"kind1": "host", "pattern1": "h2"}, "names a second host"),
        ({"kind0": "moon"}, "use host, gpu, engine, owner, user, label"),
        ({"rule_id": "nope"}, "there is no such rule"),
        ({"reason": "x" * 3000}, "2,000"),
    ],
)
def test_a_refusal_keeps_what_was_typed_and_nothing_else(
    person: TestClient, typed: dict[str, str], says: str
) -> None:
    answer = person.post(f"{PAGE}/exclusions", data={**GIVEN, **typed})
    assert answer.status_code == 422
    assert says in answer.text.replace("2000", "2,000")
    assert 'value="Ada"' in answer.text
    assert exclusions(person) == []


def test_a_threshold_is_set_for_a_part_and_given_back(person: TestClient) -> None:
    given = {
        "rule_id": "small-batch",
        "name": "min_small_ratio",
        "value": "0.4",
        "kind0": "host",
        "pattern0": "h1",
    }
    answer = person.post(f"{PAGE}/thresholds", data={**given, "note": "trial", "who": "Ada"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}?said=threshold-set#main")
    assert changed(person) == {"host h1 min_small_ratio": 0.4}
    html = person.get(PAGE).text
    assert "trial" in html
    (id_,) = re.findall(rf'action="{PAGE}/thresholds/(\d+)/end"', html)
    answer = person.post(f"{PAGE}/thresholds/{id_}/end", data={"name": "min_small_ratio"})
    assert answer.status_code == 303
    assert changed(person) == {}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("7", "min_small_ratio is 7: give a number &gt; 0, ≤ 1"),
        ("much", "value is &#39;much&#39;: give a number such as 0.3, or none"),
        ("", "value is missing: give a number"),
    ],
)
def test_a_bad_value_stands_beside_its_field_with_the_rule_open(
    person: TestClient, value: str, says: str
) -> None:
    given = {"rule_id": "small-batch", "name": "min_small_ratio", "value": value, "note": "why"}
    answer = person.post(f"{PAGE}/thresholds", data=given)
    assert answer.status_code == 422
    assert says in answer.text
    assert 'id="rule-small-batch" open' in answer.text
    assert 'id="threshold-value-wrong"' in answer.text
    assert 'value="why"' in answer.text
    assert changed(person) == {}


def test_an_address_fills_in_the_form(reader: TestClient) -> None:
    html = reader.get(f"{PAGE}?owner=ml&rule=off-hours").text
    assert '<option value="owner" selected>' in html
    assert 'name="pattern0" value="ml"' in html
    assert '<option value="off-hours" selected>' in html


@pytest.mark.parametrize("path", ["exclusions", "exclusions/1/end", "thresholds", "thresholds/1/end"])
@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "", "origin": "https://evil.example"}]
)
def test_a_form_of_another_site_is_refused(person: TestClient, path: str, headers: dict[str, str]) -> None:
    person.post(f"{PAGE}/exclusions", data=GIVEN)
    person.post(f"{PAGE}/thresholds", data={"rule_id": "small-batch", "name": "min_gain", "value": "2"})
    before = (exclusions(person), changed(person))
    more = {"rule_id": "small-batch", "name": "min_gain", "value": "3"}
    answer = person.post(f"{PAGE}/{path}", data={**GIVEN, **more}, headers=headers)
    assert answer.status_code == 403
    assert (exclusions(person), changed(person)) == before


def test_words_that_cannot_be_stored_are_refused_wherever_they_are_sent(person: TestClient) -> None:
    person.post(f"{PAGE}/thresholds", data={"rule_id": "small-batch", "name": "min_gain", "value": "2"})
    for path, data in (
        ("exclusions", {**GIVEN, "reason": "a\x00b"}),
        ("exclusions", {**GIVEN, "pattern0": "a\x00b"}),
        ("exclusions", {**GIVEN, "who": "a\x00b"}),
        ("thresholds", {"rule_id": "a\x00b", "name": "min_gain", "value": "3"}),
        ("thresholds", {"rule_id": "small-batch", "name": "a\x00b", "value": "3"}),
        ("thresholds/1/end", {"name": "a\x00b"}),
    ):
        assert person.post(f"{PAGE}/{path}", data=data).status_code == 422, (path, data)
    assert exclusions(person) == []
    assert changed(person) == {"the fleet min_gain": 2.0}
