"""Tariffs and site profiles over REST: kept, ended, removed, refused; the ledger's days follow; on both databases."""

import json
from typing import Any

import pytest
from fleet_for_tests import NOW, T0, A, B, C, settings_for
from sqlalchemy import text
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.resources.evidence import read_evidence
from api.resources.places import place_lookup
from api.resources.scope import scope_of
from api.resources.tariff_specs import bodies_of, csv_of, parsed, tariff_of, toml_of
from core.errors import UsageError
from core.user_tariff import Tariff
from store.engine import session_scope
from store.queries import tariffs

HOUR = 3_600_000
DAY_AND_NIGHT = [
    {"weekdays": "all", "from_hour": 6, "to_hour": 22, "usd_per_kwh": "0.3"},
    {"weekdays": "all", "from_hour": 22, "to_hour": 6, "usd_per_kwh": 0.1},
]
CITY = {"name": "city", "time_zone": "Europe/Berlin", "periods": DAY_AND_NIGHT}


def post(client: TestClient, path: str, body: Any, status: int = 201) -> Any:
    answer = client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def items(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["items"]
    return rows


def session_of(client: TestClient) -> Any:
    return session_scope(client.app.state.engine)  # type: ignore[attr-defined]


def marks(client: TestClient) -> set[str]:
    """GPUs with marks, which are taken away."""
    with session_of(client) as session:
        found = set(
            session.scalars(
                text("SELECT gpu_uuid FROM ledger_pending JOIN gpu ON gpu.id = ledger_pending.gpu_id")
            )
        )
        session.execute(text("DELETE FROM ledger_pending"))
    return found


def test_a_tariff_is_kept_listed_ended_and_removed(fresh_client: TestClient) -> None:
    made = post(fresh_client, "tariffs", CITY | {"valid_from": "2026-01-01", "note": "contract 7"})
    assert (made["kind"], made["lowest_usd_per_kwh"], made["highest_usd_per_kwh"]) == (
        "time_of_use",
        "0.10",
        "0.30",
    )
    assert made["valid_from"] == "2025-12-31T23:00:00.000Z"  # midnight in Berlin
    assert items(fresh_client, "tariffs") == [made]
    ended = post(fresh_client, f"tariffs/{made['id']}/end", {"at": "2026-07-01"}, 200)
    assert ended["valid_to"] == "2026-06-30T22:00:00.000Z"
    after = post(
        fresh_client,
        "tariffs",
        {"name": "city", "usd_per_kwh": "0.2", "valid_from": "2026-07-01T00:00+02:00"},
    )
    assert [row["id"] for row in items(fresh_client, "tariffs")] == [made["id"], after["id"]]
    assert fresh_client.delete(f"/api/v1/tariffs/{made['id']}").status_code == 204
    assert fresh_client.delete(f"/api/v1/tariffs/{made['id']}").status_code == 404
    assert items(fresh_client, "tariffs") == [after]


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"time_zone": None}, 400, "time_zone is not given"),
        ({"time_zone": "Berlin"}, 400, "time_zone is 'Berlin'"),
        ({"periods": DAY_AND_NIGHT[:1]}, 400, "leave out mon 00:00–06:00"),
        ({"periods": [*DAY_AND_NIGHT, DAY_AND_NIGHT[0]]}, 400, "overlap on mon 06:00–22:00"),
        ({"usd_per_kwh": "0.2"}, 400, "either usd_per_kwh"),
        ({"periods": []}, 400, "either usd_per_kwh"),
        ({"currency": "EUR"}, 400, "currency is 'EUR'"),
        ({"periods": [DAY_AND_NIGHT[0] | {"usd_per_kwh": "cheap"}]}, 422, "usd_per_kwh"),
        ({"periods": [DAY_AND_NIGHT[0] | {"usd_per_kwh": -1}]}, 422, "usd_per_kwh"),
        ({"periods": [DAY_AND_NIGHT[0] | {"from_hour": "6:30"}]}, 422, "from_hour"),
        ({"periods": [DAY_AND_NIGHT[0] | {"weekdays": "someday"}]}, 400, "weekdays is 'someday'"),
        ({"valid_from": "soon"}, 400, "valid_from is 'soon'"),
        ({"valid_from": "2026-02-30"}, 400, "valid_from is '2026-02-30'"),
        ({"valid_from": "2026-02-02", "valid_to": "2026-02-01"}, 400, "valid_to is not after"),
        ({"name": " city"}, 400, "name is ' city'"),
        ({"colour": "green"}, 422, "colour"),
    ],
)
def test_a_tariff_that_could_not_be_applied_is_refused(
    client: TestClient, change: dict[str, Any], status: int, says: str
) -> None:
    answer = client.post("/api/v1/tariffs", json=CITY | change)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert items(client, "tariffs") == []


def test_two_tariffs_of_a_name_are_never_in_force_together(fresh_client: TestClient) -> None:
    post(fresh_client, "tariffs", CITY)
    answer = fresh_client.post("/api/v1/tariffs", json=CITY | {"valid_from": "2030-01-01"})
    assert (answer.status_code, "end that one first" in answer.json()["detail"]) == (400, True)
    early = fresh_client.post("/api/v1/tariffs/1/end", json={"at": "1970-01-01T00:00Z"})
    assert (early.status_code, "not after the start" in early.json()["detail"]) == (400, True)


def test_many_come_together_or_not_at_all(fresh_client: TestClient) -> None:
    flat = {"name": "flat", "usd_per_kwh": "0.2"}
    bad = {"name": "bad", "periods": DAY_AND_NIGHT}
    answer = fresh_client.post("/api/v1/tariffs/import", json={"tariffs": [flat, CITY, bad]})
    assert answer.status_code == 400
    assert "tariff 3: tariff 'bad': time_zone is not given" in answer.json()["detail"]
    assert items(fresh_client, "tariffs") == []
    first = post(fresh_client, "tariffs/import", {"tariffs": [flat, CITY]}, 200)
    assert [row["name"] for row in first] == ["city", "flat"]
    assert post(fresh_client, "tariffs/import", {"tariffs": [CITY, flat]}, 200) == first


def test_a_profile_prices_its_hosts_and_marks_their_days(fresh_client: TestClient) -> None:
    post(fresh_client, "tariffs", CITY)
    marks(fresh_client)
    made = post(fresh_client, "sites", {"name": "hall", "tariff": "city", "pue": 1.1, "grid_code": "DEU"})
    assert (made["gpu_count"], made["scope_kind"], made["host_share_measured"]) == (3, "all", False)
    assert marks(fresh_client) == {A, B, C}
    own = post(
        fresh_client,
        "sites",
        {"name": "rack", "scope_kind": "host", "scope_value": "h2", "pays_for_power": True},
    )
    assert own["gpu_count"] == 1
    assert marks(fresh_client) == {C}
    with session_of(fresh_client) as session:
        lookup = place_lookup(session, settings_for("sqlite:///x"))
        night, day = lookup("h2", T0), lookup("h2", T0 + 6 * HOUR)
    assert (str(night.usd_per_kwh), str(day.usd_per_kwh)) == ("0.1", "0.3")  # 02:00 and 08:00 in Berlin
    assert (night.site, night.pue, night.carbon_code, night.pays_for_power) == (
        "rack > hall",
        1.1,
        "DEU",
        True,
    )
    rows = items(fresh_client, "sites/terms?at=2026-10-05T12:30:00Z")
    assert [(row["host"], row["at"], row["usd_per_kwh"]) for row in rows] == [
        ("h1", "2026-10-05T12:00:00.000Z", "0.30"),
        ("h2", "2026-10-05T12:00:00.000Z", "0.30"),
    ]
    assert rows[1]["origins"] == {
        "tariff": "profile hall",
        "pue": "profile hall",
        "host_share": "settings",
        "carbon": "profile hall",
        "pays_for_power": "profile rack",
    }
    assert items(fresh_client, "sites/terms?host=h2&at=2026-10-05T12:30:00Z") == rows[1:]
    assert fresh_client.get("/api/v1/sites/terms?host=h9").status_code == 404


def test_a_change_marks_only_what_it_touches(fresh_client: TestClient) -> None:
    marks(fresh_client)
    tariff = post(fresh_client, "tariffs", CITY)
    assert marks(fresh_client) == set()  # no profile names it
    site = post(
        fresh_client, "sites", {"name": "hall", "tariff": "city", "scope_kind": "host", "scope_value": "h1"}
    )
    assert marks(fresh_client) == {A, B}
    post(fresh_client, f"sites/{site['id']}/end", {"at": "2026-12-01"}, 200)
    assert marks(fresh_client) == set()  # nothing was measured by then
    post(fresh_client, f"sites/{site['id']}/end", {"at": "2026-10-05"}, 200)
    assert marks(fresh_client) == {A, B}
    post(fresh_client, f"tariffs/{tariff['id']}/end", {"at": "2026-10-05"}, 200)
    assert marks(fresh_client) == {A, B}
    refused = fresh_client.delete(f"/api/v1/tariffs/{tariff['id']}")
    assert (refused.status_code, "named by site profile" in refused.json()["detail"]) == (400, True)
    assert fresh_client.delete(f"/api/v1/sites/{site['id']}").status_code == 204
    assert fresh_client.delete(f"/api/v1/tariffs/{tariff['id']}").status_code == 204


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"tariff": "nowhere"}, 400, "tariff is 'nowhere'"),
        ({"grid_code": "ATLANTIS"}, 400, "grid_code is 'ATLANTIS'"),
        ({"pue": 0.5}, 400, "pue is 0.5"),
        ({"pue": None}, 400, "says nothing"),
        ({"scope_kind": "planet"}, 400, "scope_kind is 'planet'"),
        ({"scope_kind": "host"}, 400, "scope_value is ''"),
        ({"host_rest_ratio": 0.1}, 400, "host_rest_ratio is 0.1"),
        ({"valid_from": "soon"}, 400, "valid_from"),
        ({"pue": "1.1"}, 422, "pue"),
        ({"colour": "green"}, 422, "colour"),
    ],
)
def test_a_profile_that_could_not_be_applied_is_refused(
    client: TestClient, change: dict[str, Any], status: int, says: str
) -> None:
    answer = client.post(
        "/api/v1/sites",
        content=json.dumps({"name": "x", "pue": 1.2} | change),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert items(client, "sites") == []


def test_what_is_ended_before_it_starts_or_is_not_there_is_refused(fresh_client: TestClient) -> None:
    site = post(fresh_client, "sites", {"name": "x", "pue": 1.2, "valid_from": "2026-10-01"})
    early = fresh_client.post(f"/api/v1/sites/{site['id']}/end", json={"at": "2026-10-01"})
    assert (early.status_code, "not after the start" in early.json()["detail"]) == (400, True)
    for path in ("sites/99", "tariffs/99"):
        assert fresh_client.post(f"/api/v1/{path}/end", json={"at": "2026-10-01"}).status_code == 404
        assert fresh_client.delete(f"/api/v1/{path}").status_code == 404


def test_advice_sees_the_prices_of_the_hours(fresh_client: TestClient) -> None:
    post(fresh_client, "tariffs", CITY | {"time_zone": "UTC"})
    post(fresh_client, "sites", {"name": "hall", "tariff": "city", "pays_for_power": True})
    with session_of(fresh_client) as session:
        site = read_evidence(scope_of(session, settings_for("sqlite:///x"), NOW)).site
    assert site.hourly_usd_per_kwh == (0.1,) * 6 + (0.3,) * 16 + (0.1,) * 2
    assert (site.tariff_usd_per_kwh, site.pays_for_power) == (pytest.approx(0.7 / 3), True)


def given(*bodies: dict[str, Any]) -> list[Tariff]:
    return [tariff_of(parsed(body), settings_for("sqlite:///x"), NOW) for body in bodies]


FILED = given(
    CITY
    | {"valid_from": "2026-01-01", "valid_to": "2026-07-01", "note": 'a "quoted" note\nof two lines, =1+1'},
    {"name": "=flat", "usd_per_kwh": "0.123456", "note": "+ first"},
    {"name": "city", "usd_per_kwh": "0", "valid_from": "2026-07-01"},
)


@pytest.mark.parametrize("is_toml", [False, True], ids=["csv", "toml"])
def test_what_was_written_is_read_back_exactly(is_toml: bool, session: Session) -> None:
    kept = [tariffs.add(session, tariff) for tariff in FILED]
    session.commit()
    listed = tariffs.listing(session)
    assert sorted(listed, key=lambda one: one.id) == kept
    text_ = (toml_of if is_toml else csv_of)(listed)
    again = [
        tariff_of(parsed(values), settings_for("sqlite:///x"), NOW)
        for _, values in bodies_of(text_, is_toml=is_toml)
    ]
    assert [
        (one.name, one.week, one.usd_per_kwh, one.valid_from_ms, one.valid_to_ms, one.note) for one in again
    ] == [
        (one.name, one.week, one.usd_per_kwh, one.valid_from_ms, one.valid_to_ms, one.note) for one in listed
    ]


@pytest.mark.parametrize(
    ("text_", "says"),
    [
        ("", "empty"),
        ("name\ncity\n", "usd_per_kwh"),
        ("name,usd_per_kwh,colour\ncity,1,red\n", "colour"),
        ("name,usd_per_kwh\nx,0.1\nx,0.2\n", "line 3 gives tariff 'x' a second price"),
        (
            "name,time_zone,weekdays,from_hour,to_hour,usd_per_kwh\nx,UTC,all,0,12,0.1\nx,Asia/Tokyo,all,12,24,0.2\n",
            "line 3 is of the tariff of line 2",
        ),
    ],
)
def test_a_file_that_is_none_is_refused(text_: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bodies_of(text_, is_toml=False)


@pytest.mark.parametrize(("text_", "says"), [("[[tariff", "no TOML"), ("[[price]]\nx = 1\n", "other things")])
def test_a_toml_that_is_none_is_refused(text_: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bodies_of(text_, is_toml=True)
