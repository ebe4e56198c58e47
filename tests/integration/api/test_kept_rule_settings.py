"""Thresholds and exclusions that people keep: over REST, on both databases, down to what the rules then say."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from fleet_for_tests import ANN, ENGINE, NOW, T0, settings_for
from sqlalchemy import text
from starlette.testclient import TestClient

from advisor.limits_book import limits_book
from advisor.site_run import SiteRun
from api.resources import advise, exclusions, fleet_run, thresholds
from api.resources.fleet_run import judge_fleet
from api.resources.recommendations import AdviceView
from api.resources.rule_settings import in_force, with_kept
from api.resources.scope import Scope, scope_of
from core.clock import from_ms
from core.rule_settings import RuleSettings, parse
from core.settings import Settings
from store.engine import make_engine, session_scope
from store.queries import rule_settings as kept
from store.queries.evidence import FleetReader

DAY = 86_400_000
RULE = "memory-bound-decode"
FRIDAY = "2026-10-09"  # NOW is Monday, 2026-10-05 02:00 UTC


@pytest.fixture
def web(fresh_client: TestClient) -> TestClient:
    run(fresh_client)
    return fresh_client


def run(client: TestClient, rules: RuleSettings | None = None, now_ms: int = NOW) -> AdviceView:
    """The rules once, as the job does."""
    settings = replace(client.app.state.settings, rules=rules or RuleSettings())  # type: ignore[attr-defined]
    with session_scope(client.app.state.engine) as session:  # type: ignore[attr-defined]
        return advise.run(scope_of(session, settings, now_ms), record=True)


def found(client: TestClient) -> list[tuple[str, str]]:
    rows = client.get("/api/v1/recommendations").json()["items"]
    return [(row["rule_id"], row["status"]) for row in rows]


def items(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["items"]
    return rows


def post(client: TestClient, path: str, status: int = 201, **body: Any) -> Any:
    answer = client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def spare(client: TestClient, **more: Any) -> Any:
    body = {"host": "h1", "until": "friday", "reason": "hot spare until Friday.", "who": "Ada", **more}
    return post(client, "exclusions", **body)


def test_an_exclusion_is_kept_in_ten_seconds_and_sets_aside_what_is_open(web: TestClient) -> None:
    assert found(web) == [(RULE, "open")]
    made = spare(web)
    assert made["exclusion"]["until"] == "2026-10-10T00:00:00.000Z"
    assert (made["exclusion"]["state"], made["exclusion"]["origin"]) == ("in_force", "database")
    assert (made["covers"]["gpu_count"], made["covers"]["known_gpu_count"]) == (2, 3)
    assert (made["covers"]["engine_count"], made["covers"]["recommendation_count"]) == (1, 1)
    assert found(web) == [(RULE, "snoozed")]
    (row,) = items(web, "recommendations")
    assert row["note"] == "Excluded until 2026-10-09: hot spare until Friday."
    assert row["snoozed_until"] == "2026-10-10T00:00:00.000Z"


def test_the_next_run_reads_it_and_says_so(web: TestClient) -> None:
    spare(web)
    said = [one.why for one in run(web).not_evaluated if one.rule_id == RULE and one.subject.id == ENGINE]
    assert said == ["Excluded until 2026-10-09: hot spare until Friday."]
    assert found(web) == [(RULE, "snoozed")]


def test_what_opens_later_is_set_aside_by_the_run_in_the_name_of_who_gave_it(
    fresh_client: TestClient,
) -> None:
    spare(fresh_client)
    run(fresh_client)
    assert found(fresh_client) == []
    post(fresh_client, "exclusions/1/end", 200)
    run(fresh_client)
    spare(fresh_client, since="2026-10-06")  # to come: nothing is set aside yet
    assert found(fresh_client) == [(RULE, "open")]
    run(fresh_client, now_ms=T0 + DAY + 1)
    assert found(fresh_client) == [(RULE, "snoozed")]
    steps = fresh_client.get("/api/v1/recommendations/1/events").json()
    assert (steps[-1]["status"], steps[-1]["who"]) == ("snoozed", "Ada")


def test_what_an_ended_exclusion_had_set_aside_is_open_again(web: TestClient) -> None:
    id_ = spare(web)["exclusion"]["id"]
    ended = post(web, f"exclusions/{id_}/end", 200, who="Grace")
    assert (ended["exclusion"]["state"], ended["exclusion"]["ended_by"]) == ("ended", "Grace")
    assert ended["reopened_count"] == 1
    assert found(web) == [(RULE, "reopened")]
    assert items(web, "exclusions") == []
    assert [row["state"] for row in items(web, "exclusions?past=true")] == ["ended"]
    again = web.post(f"/api/v1/exclusions/{id_}/end", json={})
    assert (again.status_code, again.json()["detail"]) == (
        400,
        f"exclusion {id_} is over already: exclusions lists those that hold",
    )
    assert web.post("/api/v1/exclusions/99/end", json={}).status_code == 404


def test_a_snooze_of_a_persons_own_is_left_as_it_is(web: TestClient) -> None:
    post(web, "recommendations/1/snooze", 200, until="2026-10-10", note="mine")
    id_ = spare(web)["exclusion"]["id"]
    assert post(web, f"exclusions/{id_}/end", 200)["reopened_count"] == 0
    assert found(web) == [(RULE, "snoozed")]


def test_after_its_end_the_rules_speak_again(web: TestClient) -> None:
    spare(web, until="2d")
    run(web, now_ms=NOW + DAY)
    assert found(web) == [(RULE, "snoozed")]
    run(web, now_ms=NOW + 2 * DAY)
    assert found(web) == [(RULE, "open")]


def test_a_dry_run_says_what_it_covers_and_keeps_nothing(web: TestClient) -> None:
    covers = post(web, "exclusions/dry-run", 200, host="h*", until="3d")
    assert covers["gpu_uuids"] == ["GPU-a", "GPU-b", "GPU-c"]
    assert [(one["id"], one["rule_id"]) for one in covers["recommendations"]] == [(1, RULE)]
    assert items(web, "exclusions?past=true") == []
    assert found(web) == [(RULE, "open")]


@pytest.mark.parametrize(
    ("part", "uuids", "engines", "open_"),
    [
        ({"host": "h2"}, ["GPU-c"], 0, 0),
        ({"gpu": "GPU-a"}, ["GPU-a"], 1, 1),
        ({"engine": "h1:*"}, ["GPU-a"], 1, 1),
        ({"user": ANN.user}, ["GPU-b"], 0, 0),
        ({"host": "h1", "user": "ann"}, ["GPU-b"], 0, 0),
        ({"host": "h1", "rule_id": "empty-gpu"}, ["GPU-a", "GPU-b"], 1, 0),
        ({"label": "namespace=*"}, [], 0, 0),
        ({"owner": "*"}, [], 0, 0),
        ({"host": "nobody"}, [], 0, 0),
    ],
)
def test_a_dry_run_chooses_as_a_run_does(
    web: TestClient, part: dict[str, str], uuids: list[str], engines: int, open_: int
) -> None:
    covers = post(web, "exclusions/dry-run", 200, until="3d", **part)
    assert covers["gpu_uuids"] == uuids
    assert (covers["engine_count"], covers["recommendation_count"]) == (engines, open_)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"until": None}, "until is missing, and an exclusion ends some day"),
        ({"until": "2026-10-04"}, "until is '2026-10-04', which is past"),
        ({"until": "2026-10-05T01:00:00Z"}, "which is past"),
        ({"until": "0d"}, "which is past"),
        ({"until": "2027-11-10"}, "lasts 400 days at most; give a day up to 2027-11-09"),
        ({"until": "401d"}, "400 days at most"),
        ({"until": "soon"}, "until is 'soon': give a day such as 2026-12-04"),
        ({"until": "9999-12-31"}, "until is '9999-12-31'"),
        ({"until": "2026-10-09T10:00"}, "until is '2026-10-09T10:00': give a day"),
        ({"reason": " . "}, "reason is missing: say why"),
        ({"reason": None}, "reason is missing: say why"),
        ({"host": None}, "exclusion names no part of the fleet"),
        ({"host": ""}, "host"),
        ({"label": "ml"}, "label is 'ml': use NAME=VALUE"),
        ({"rule_id": "emty-gpu"}, "rule_id is 'emty-gpu', and there is no such rule"),
        ({"since": "2026-10-11"}, "since is '2026-10-11', which is not before until"),
        ({"hots": "h1"}, "hots"),
        ({"reason": "turned \u202e around"}, "U+202E"),
    ],
)
def test_an_exclusion_that_could_be_forgotten_or_misread_is_refused(
    web: TestClient, body: dict[str, str | None], says: str
) -> None:
    given = {"host": "h1", "until": FRIDAY, "reason": "spare", **body}
    answer = web.post("/api/v1/exclusions", json={k: v for k, v in given.items() if v is not None})
    assert answer.status_code in {400, 422}
    assert says in answer.json()["detail"]
    assert items(web, "exclusions?past=true") == []


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        ("2026-10-09", "2026-10-10T00:00:00.000Z"),
        ("Friday", "2026-10-10T00:00:00.000Z"),
        ("fri", "2026-10-10T00:00:00.000Z"),
        ("monday", "2026-10-06T00:00:00.000Z"),
        ("12h", "2026-10-05T14:00:05.000Z"),
        ("400d", "2027-11-09T02:00:05.000Z"),
        ("2026-10-09T18:00:00+02:00", "2026-10-09T16:00:00.000Z"),
    ],
)
def test_an_end_is_a_day_a_weekday_a_length_or_a_time(web: TestClient, until: str, ends: str) -> None:
    assert spare(web, until=until)["exclusion"]["until"] == ends


def test_exclusions_of_the_file_stand_beside_those_of_the_database(ready_database: str) -> None:
    table = {"exclusion": [{"host": "lab", "until": "2026-10-07", "reason": "rebuilt"}]}
    settings = replace(settings_for(ready_database), rules=parse(table, "gpuwise.toml"))
    with session_scope(make_engine(ready_database)) as session:
        body = exclusions.parsed({"host": "h1", "until": FRIDAY, "reason": "spare"})
        exclusions.add(session, settings, body, NOW)
        rows = exclusions.rows(session, settings, NOW)
        assert [(row.origin.value, row.part, row.id is None) for row in rows] == [
            ("file", "host lab", True),
            ("database", "host h1", False),
        ]
        late = [row.state.value for row in exclusions.rows(session, settings, NOW + 9 * DAY, past=True)]
        assert late == ["over", "over"]


def threshold(client: TestClient, name: str, **at: str) -> dict[str, Any]:
    rows = items(client, f"thresholds?rule_id={RULE}")
    (row,) = [row for row in rows if row["name"] == name and row["selectors"] == at]
    return row


def test_every_threshold_is_listed_with_value_bounds_meaning_and_origin(web: TestClient) -> None:
    rows = items(web, "thresholds?limit=10000")
    assert {row["origin"] for row in rows} == {"default"}
    assert all(row["value"] == row["default"] and row["allowed"] and row["meaning"] for row in rows)
    assert threshold(web, "max_mfu")["allowed"] == "a number > 0, ≤ 1"
    assert items(web, "thresholds?only_set=true") == []


def test_a_threshold_that_is_set_holds_at_the_next_run_and_until_it_is_ended(web: TestClient) -> None:
    (row,) = post(web, "thresholds", rule_id=RULE, values={"min_bound_s": 86_400}, who="Ada", note="noise")
    assert (row["value"], row["origin"], row["who"], row["note"]) == (86_400.0, "database", "Ada", "noise")
    assert run(web).recommendations == ()
    assert post(web, f"thresholds/{row['id']}/end", 200) == []
    assert threshold(web, "min_bound_s")["origin"] == "default"
    assert [one.rule_id for one in run(web).recommendations] == [RULE]
    assert web.post(f"/api/v1/thresholds/{row['id']}/end", json={}).status_code == 404


def test_a_threshold_of_a_part_holds_there_alone(web: TestClient) -> None:
    post(web, "thresholds", rule_id=RULE, values={"min_bound_s": 86_400}, host="h2")
    assert [one.rule_id for one in run(web).recommendations] == [RULE]
    post(web, "thresholds", rule_id=RULE, values={"min_bound_s": 86_400}, host="h1")
    assert run(web).recommendations == ()


def test_setting_one_threshold_keeps_the_others_of_that_part(web: TestClient) -> None:
    post(web, "thresholds", rule_id=RULE, values={"min_mbu": 0.7}, host="h1", note="first")
    rows = post(web, "thresholds", rule_id=RULE, values={"max_mfu": 0.2}, host="h1")
    assert {row["name"]: row["value"] for row in rows} == {"min_mbu": 0.7, "max_mfu": 0.2}
    assert {row["note"] for row in rows} == {"first"}
    (left,) = post(web, f"thresholds/{rows[0]['id']}/end", 200, names=["min_mbu"])
    assert (left["name"], left["value"]) == ("max_mfu", 0.2)
    wrong = web.post(f"/api/v1/thresholds/{left['id']}/end", json={"names": ["min_mbu"]})
    assert (wrong.status_code, "they set max_mfu" in wrong.json()["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"values": {"min_mbu": 7}}, f"setting rules.{RULE}.min_mbu is 7: give a number > 0, ≤ 1"),
        ({"values": {"max_mfu": 0.2, "min_mbu": 7}}, "min_mbu is 7"),
        ({"values": {"min_mub": 0.7}}, "min_mub: there is no such threshold: use min_mbu"),
        ({"values": {}}, "values"),
        ({"values": {"min_mbu": "0.7"}}, "min_mbu"),
        ({"values": {"min_mbu": None}}, "min_mbu is None: give a number"),
        ({"values": {"min_mbu": True}}, "min_mbu"),
        ({"values": {"min_mbu": 0.7}, "rule_id": "nope"}, "rule_id is 'nope', and there is no such rule"),
        ({"values": {"min_mbu": 0.7}, "label": "x"}, "label is 'x': use NAME=VALUE"),
    ],
)
def test_a_bad_threshold_is_refused_whole(web: TestClient, body: dict[str, Any], says: str) -> None:
    answer = web.post("/api/v1/thresholds", json={"rule_id": RULE, **body})
    assert answer.status_code in {400, 422}
    assert says in answer.json()["detail"]
    assert items(web, "thresholds?only_set=true") == []


def test_numbers_that_json_does_not_have_are_refused(web: TestClient) -> None:
    for number in ("NaN", "Infinity", "1e999", "1" + 400 * "0"):
        body = f'{{"rule_id": "{RULE}", "values": {{"min_bound_s": {number}}}}}'
        answer = web.post("/api/v1/thresholds", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in {400, 422}, (number, answer.text)
    assert items(web, "thresholds?only_set=true") == []


def test_the_database_comes_after_the_file_key_by_key(ready_database: str) -> None:
    table = {
        "rules": {
            RULE: {"min_mbu": 0.7, "max_mfu": 0.2},
            "scope": [{"rule": RULE, "host": "h1", "min_mbu": 0.8}],
        }
    }
    settings = replace(settings_for(ready_database), rules=parse(table, "gpuwise.toml"))
    with session_scope(make_engine(ready_database)) as session:
        for values, part in (({"max_mfu": 0.3}, {}), ({"max_mfu": 0.4}, {"host": "h1"})):
            body = thresholds.parsed({"rule_id": RULE, "values": values, **part})
            thresholds.set_(session, settings, body, NOW)
        book = limits_book(with_kept(session, settings, NOW).rules)
        said = {
            (row.part, row.name): (row.value, row.origin.value)
            for row in thresholds.rows(session, settings, NOW, RULE, only_set=True)
        }
    (scoped,) = book.scopes
    of_fleet, of_part = book.fleet[RULE].model_dump(), scoped.limits.model_dump()
    assert (of_fleet["min_mbu"], of_fleet["max_mfu"]) == (0.7, 0.3)
    assert (of_part["min_mbu"], of_part["max_mfu"]) == (0.8, 0.4)
    assert said == {
        ("the fleet", "min_mbu"): (0.7, "file"),
        ("the fleet", "max_mfu"): (0.3, "database"),
        ("host h1", "min_mbu"): (0.8, "file"),
        ("host h1", "max_mfu"): (0.4, "database"),
    }


def test_what_a_newer_gpuwise_has_no_more_is_left_out_and_said(
    web: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with session_scope(web.app.state.engine) as session:  # type: ignore[attr-defined]
        for rule, values in ((RULE, {"gone": 1.0}), ("gone-rule", {"x": 1.0}), (RULE, {"max_mfu": 0.2})):
            kept.add_thresholds(
                session, rule_id=rule, selectors=(), values=values, note="", who=None, now_ms=NOW
            )
        kept.add_exclusion(
            session,
            selectors=(),
            rule_id="gone-rule",
            from_at=from_ms(NOW),
            until_at=datetime(2026, 12, 1, tzinfo=UTC),
            reason="x",
            who=None,
            now_ms=NOW,
        )
        holds = in_force(session, web.app.state.settings, NOW)  # type: ignore[attr-defined]
    assert holds.rules.fleet == {RULE: {"max_mfu": 0.2}}
    assert (set(holds.refused_thresholds), set(holds.refused_exclusions)) == ({1, 2}, {1})
    assert "does not fit any more" in caplog.text
    refused = [
        (row["rule_id"], row["name"]) for row in items(web, "thresholds?only_set=true") if row["refused"]
    ]
    assert sorted(refused) == [("gone-rule", "x"), (RULE, "gone")]
    assert [row["state"] for row in items(web, "exclusions")] == ["refused"]
    run(web)
    assert found(web) == [(RULE, "open")]


def test_both_processes_of_a_large_run_have_what_is_kept(
    filled_scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = thresholds.parsed({"rule_id": RULE, "values": {"min_bound_s": 86_400}})
    thresholds.set_(filled_scope.session, filled_scope.settings, body, NOW)
    filled_scope.session.commit()
    jobs: list[Settings] = []
    judge = judge_fleet

    def seen(given: Scope, rules: SiteRun) -> FleetReader:
        jobs.append(given.settings)
        return judge(given, rules, processes=2, chunk_gpus=1)

    judge_here: Callable[..., None] = fleet_run.judge_here
    turns = iter([0])  # the second process judges all but what it gives back
    monkeypatch.setattr(
        fleet_run, "judge_here", lambda *known, **_more: judge_here(*known, most=next(turns, None))
    )
    monkeypatch.setattr(advise, "judge_fleet", seen)
    assert [one.rule_id for one in advise.run(filled_scope, record=False).recommendations] == []
    assert jobs[0].rules.fleet == {RULE: {"min_bound_s": 86_400.0}}


def test_what_is_ended_stays_as_history(web: TestClient) -> None:
    for value in (0.7, 0.8):
        post(web, "thresholds", rule_id=RULE, values={"min_mbu": value}, who="Ada")
    with session_scope(web.app.state.engine) as session:  # type: ignore[attr-defined]
        rows = kept.thresholds(session, ended=True)
        assert [(row.values["min_mbu"], row.ended_at is None, row.ended_by) for row in rows] == [
            (0.7, False, "Ada"),
            (0.8, True, None),
        ]
        assert session.execute(text("select count(*) from rule_threshold")).scalar_one() == 2
