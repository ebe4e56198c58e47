"""Owner rules on both databases: kept, asked, handed over; what they would claim before they are."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request
from urllib.response import addinfourl

import pytest
from fleet_for_tests import ANN, HOUR, NOW, T0, settings_for
from sqlalchemy import text
from starlette.testclient import TestClient

from api.resources import owner_claims, owners
from api.resources.owner_specs import RuleSpec, rule_of
from api.resources.ownership import owner_lookup
from api.resources.scope import Scope
from core.errors import UsageError
from core.ownership import Owner
from core.settings import Settings
from gpuwise.__main__ import main
from gpuwise.commands import remote
from store.engine import make_engine, session_scope
from store.queries import ledger_pending

SETTINGS = Settings(accounting_time_zone="Europe/Berlin")
DAY = HOUR * 24


def add(scope: Scope, position: int | None = None, **given: Any) -> int:
    return owners.add(scope.session, scope.settings, NOW, RuleSpec(**given), position).id


def order(scope: Scope) -> list[str]:
    return [row.team for row in owners.rows(scope.session, NOW)]


def marks(scope: Scope) -> int:
    found = ledger_pending.count(scope.session)
    scope.session.execute(text("DELETE FROM ledger_pending"))
    return found


def test_rules_keep_their_order(filled_scope: Scope) -> None:
    for team in ("a", "b", "c"):
        add(filled_scope, team=team, user=team)
    first = add(filled_scope, team="z", user="z", position=1)
    assert order(filled_scope) == ["z", "a", "b", "c"]
    owners.change(filled_scope.session, SETTINGS, NOW, first, {}, position=3)
    assert order(filled_scope) == ["a", "b", "z", "c"]
    owners.change(filled_scope.session, SETTINGS, NOW, first, {}, position=99)
    assert order(filled_scope) == ["a", "b", "c", "z"]
    owners.change(filled_scope.session, SETTINGS, NOW, first, {}, position=1)
    owners.remove(filled_scope.session, first)
    assert order(filled_scope) == ["a", "b", "c"]
    assert [row.position for row in owners.rows(filled_scope.session, NOW)] == [1, 2, 3]


def test_a_team_renamed_mid_month_splits_at_the_local_day(filled_scope: Scope) -> None:
    session = filled_scope.session
    add(filled_scope, team="ml", project="vision", cost_centre="1", user="ann", note="kept")
    add(filled_scope, team="web", user="bob")
    made = owners.rename(session, SETTINGS, NOW, "ml", "2026-10-15", to_team="ai", to_cost_centre="2")
    assert [(one.team, one.project, one.cost_centre, one.note) for one in made] == [
        ("ai", "vision", "2", "kept")
    ]
    assert order(filled_scope) == ["ml", "ai", "web"]
    lookup = owner_lookup(session)
    border = T0 + 10 * DAY - 2 * HOUR  # midnight of the 15th in Berlin is 22:00 UTC the day before
    assert lookup(ANN, "h1", border - 1) == Owner("ml", "vision", "1")
    assert lookup(ANN, "h1", border) == Owner("ai", "vision", "2")
    assert lookup.borders == (0, border)
    assert lookup(None, "h1", border) is None


def test_every_change_marks_the_days_it_touches_and_no_others(filled_scope: Scope) -> None:
    marks(filled_scope)
    rule = add(filled_scope, team="ml", user="ann")
    assert marks(filled_scope) == 3
    only = add(filled_scope, team="web", host="h2")
    assert marks(filled_scope) == 1
    add(filled_scope, team="later", user="x", valid_from="2026-10-06")
    assert marks(filled_scope) == 0
    change = (filled_scope.session, filled_scope.settings, NOW)
    owners.change(*change, rule, {"note": "only words"})
    assert marks(filled_scope) == 0
    owners.change(*change, rule, {"valid_to": "2026-10-06"})
    assert marks(filled_scope) == 0
    owners.change(*change, rule, {"valid_to": "2026-10-05T01:00:00Z"})
    assert marks(filled_scope) == 3
    owners.change(*change, rule, {"team": "other"})
    assert marks(filled_scope) == 3
    owners.change(*change, only, {}, position=1)
    assert marks(filled_scope) == 1
    owners.remove(filled_scope.session, only)
    assert marks(filled_scope) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"team": "ml"}, "matches everything"),
        ({"team": "ml", "user": "*", "kind": "*"}, "matches everything"),
        ({"team": " ", "user": "ann"}, "team is empty"),
        ({"team": "ml", "user": " "}, "user is ' '"),
        ({"team": "ml", "labels": ("namespace",)}, "use NAME=VALUE"),
        ({"team": "ml", "labels": ("a=1", "a=2")}, "gives a twice"),
        ({"team": "ml", "kind": "slurm"}, "use one of process"),
        ({"team": "ml", "user": "a", "valid_from": "soon"}, "valid_from is 'soon'"),
        ({"team": "ml", "user": "a", "valid_from": "2026-13-01"}, "valid_from is '2026-13-01'"),
        ({"team": "ml", "user": "a", "valid_from": "2026-10-05", "valid_to": "2026-10-05"}, "not after"),
        ({"team": "m\nl", "user": "a"}, "printable"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_in_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        rule_of(RuleSpec(**given), SETTINGS, NOW)


def test_a_rule_for_everything_is_kept_when_it_is_said(filled_scope: Scope) -> None:
    add(filled_scope, team="platform", catch_all=True)
    assert owner_lookup(filled_scope.session)(None, None, T0) == Owner("platform")
    assert owners.rows(filled_scope.session, NOW)[0].conditions == "everything"


def test_many_rules_are_kept_all_or_none(filled_scope: Scope) -> None:
    specs = [RuleSpec("a", user="a"), RuleSpec("b")]
    with pytest.raises(UsageError, match=r"rule 2 of 2: .*matches everything.*none was kept"):
        owners.import_rules(filled_scope.session, SETTINGS, NOW, specs)
    assert order(filled_scope) == []
    owners.import_rules(filled_scope.session, SETTINGS, NOW, specs[:1])
    owners.import_rules(filled_scope.session, SETTINGS, NOW, [RuleSpec("c", user="c")], replace_all=True)
    assert order(filled_scope) == ["c"]


def test_owners_and_the_unowned_add_up_to_all_gpu_hours(filled_scope: Scope) -> None:
    (nobody,) = owner_claims.rows(filled_scope)
    assert (nobody.team, nobody.label, nobody.gpu_h) == (None, "unowned", 5.0)
    add(filled_scope, team="ml", user="ann", valid_to="2026-10-05T01:00:00Z")
    add(filled_scope, team="web", host="h2")
    add(filled_scope, team="none", user="nobody")
    found = {row.team: (row.gpu_h, row.workload_gpu_h) for row in owner_claims.rows(filled_scope)}
    assert found == {"ml": (1.0, 1.0), "none": (0.0, 0.0), "web": (1.0, 0.0), None: (3.0, 2.0)}


def test_a_dry_run_says_what_it_takes_from_whom_and_what_stays_unowned(filled_scope: Scope) -> None:
    web = add(filled_scope, team="web", user="ann", valid_from="2026-10-05T01:00:00Z")
    given = rule_of(RuleSpec("infra", host="h1"), filled_scope.settings, NOW)
    last = owner_claims.dry_run(filled_scope, given)
    assert (last.total_gpu_h, last.claimed_gpu_h) == (5.0, 3.0)
    assert (last.unowned_before_gpu_h, last.unowned_after_gpu_h) == (4.0, 1.0)
    assert [(c.workload, c.gpu_h, c.rule_id) for c in last.kept_by_others] == [("train.py", 1.0, web)]
    assert {(c.workload, c.gpu_h, c.owner) for c in last.claimed} == {
        ("acme/secret-7b", 1.0, "unowned"),
        ("train.py", 1.0, "unowned"),
        ("held by nobody known", 1.0, "unowned"),
    }
    first = owner_claims.dry_run(filled_scope, given, 1)
    assert (first.claimed_gpu_h, first.kept_by_others, first.unowned_after_gpu_h) == (4.0, (), 1.0)
    assert {c.rule_id for c in first.claimed if c.workload == "train.py"} == {None, web}
    assert order(filled_scope) == ["web"]


def test_a_dry_run_of_a_stored_rule_compares_with_its_absence(filled_scope: Scope) -> None:
    infra = add(filled_scope, team="infra", host="h1")
    add(filled_scope, team="web", user="ann")
    found = owner_claims.dry_run_of_stored(filled_scope, infra)
    assert (found.rule.position, found.claimed_gpu_h) == (1, 4.0)
    assert {(c.workload, c.owner) for c in found.claimed if c.rule_id} == {("train.py", "web")}


def post(client: TestClient, path: str, body: Any, status: int = 200) -> Any:
    answer = client.post(f"/api/v1/owners/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_rules_over_rest(fresh_client: TestClient) -> None:
    made = post(fresh_client, "rules", {"team": "ml", "user": "ann", "labels": ["pod=*"]}, 201)
    url = f"/api/v1/owners/rules/{made['id']}"
    assert post(fresh_client, "dry-run", {"team": "x", "host": "h1"})["claimed_gpu_h"] == 4.0
    changed = fresh_client.patch(url, json={"labels": [], "valid_to": "2026-11-01"}).json()
    assert (changed["labels"], changed["user"]) == ([], "ann")
    assert changed["valid_to"] == "2026-11-01T00:00:00.000Z"
    assert fresh_client.patch(url, json={"valid_to": None}).json()["valid_to"] is None
    assert fresh_client.patch(url, json={"user": None}).status_code == 400
    assert fresh_client.get(f"{url}/dry-run").json()["claimed_gpu_h"] == 2.0
    new = post(fresh_client, f"rules/{made['id']}/hand-over", {"team": "ai", "on": "2026-10-05T01:00:00Z"})
    assert (new["team"], new["position"], new["user"]) == ("ai", 2, "ann")
    rows = fresh_client.get("/api/v1/owners").json()["items"]
    assert [(row["label"], row["gpu_h"]) for row in rows] == [("ai", 1.0), ("ml", 1.0), ("unowned", 3.0)]
    assert fresh_client.delete(url).status_code == 204
    assert fresh_client.delete(url).status_code == 404
    post(fresh_client, "rename", {"team": "ml", "on": "2026-10-05", "to_team": "x"}, 404)
    post(fresh_client, "rename", {"team": "ai", "on": "2026-10-05"}, 400)
    post(fresh_client, "import", {"rules": [{"team": "a", "user": "a"}, {"team": "b"}]}, 400)
    post(fresh_client, "import", {"rules": [{"team": "a", "user": "a"}], "replace": True}, 201)
    assert [row["team"] for row in fresh_client.get("/api/v1/owners/rules").json()["items"]] == ["a"]
    post(fresh_client, "rules", {"team": "a\x00", "user": "a"}, 422)


def say(capsys: pytest.CaptureFixture[str], url: str, *words: str, code: int = 0) -> Any:
    assert main(["owners", *words, "--json", "--database-url", url]) == code
    said = capsys.readouterr()
    return json.loads(said.out) if code == 0 else said.err


def test_two_who_add_at_once_wait_for_each_other(fresh_client: TestClient) -> None:
    with ThreadPoolExecutor(4) as pool:
        bodies = [{"team": f"t{at}", "user": f"u{at}", "position": 1} for at in range(8)]
        list(pool.map(lambda body: post(fresh_client, "rules", body, 201), bodies))
    with session_scope(fresh_client.app.state.engine) as session:  # type: ignore[attr-defined]
        found = session.execute(text("SELECT position FROM owner_rule ORDER BY position")).scalars().all()
    assert found == list(range(1, 9))


def test_rules_from_the_command_line(
    filled_database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = filled_database
    words = ["--team", "ml", "--user", "a[n]*", "--label", "executable=*", "--host-label", "rack=7"]
    (made,) = say(capsys, url, "add", *words, "--cost-centre", "@7", "--from", "2026-10-01")
    say(capsys, url, "add", "--team", "web", "--host", "h*", "--position", "1")
    assert "matches everything" in say(capsys, url, "add", "--team", "all", code=2)
    assert [row["team"] for row in say(capsys, url, "move", str(made["id"]), "1")] == ["ml", "web"]
    assert main(["owners", "export", "--out", str(tmp_path / "rules.csv"), "--database-url", url]) == 0
    before = say(capsys, url, "rules")
    again = say(capsys, url, "import", str(tmp_path / "rules.csv"), "--replace")
    assert [row | {"id": 0} for row in again] == [row | {"id": 0} for row in before]
    assert [row | {"id": 0} for row in say(capsys, url, "rules")] == [row | {"id": 0} for row in before]
    id_ = str(again[1]["id"])
    assert say(capsys, url, "end", id_, "--on", "2026-10-05T01:00:00Z")[0]["valid_to"][:13] == "2026-10-05T01"
    assert say(capsys, url, "dry-run", "--rule", id_)["claimed_gpu_h"] == 3.0
    assert say(capsys, url, "dry-run", "--team", "x", "--user", "ann")["claimed_gpu_h"] == 1.0
    assert "nothing to try" in say(capsys, url, "dry-run", code=2)
    assert [row["label"] for row in say(capsys, url)] == ["ml", "web", "unowned"]
    say(capsys, url, "hand-over", id_, "--team", "ops", "--on", "2026-10-05T00:30:00Z")
    say(capsys, url, "rename", "ml", "--team", "ai", "--on", "2026-10-02")
    assert [row["team"] for row in say(capsys, url, "rules")] == ["ml", "ai", "web", "ops"]
    assert len(say(capsys, url, "remove", id_)) == 3
    assert "no owner rule 9999" in say(capsys, url, "remove", "9999", code=2)


def test_an_option_before_the_subcommand_is_refused_not_passed_over(
    filled_database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ["owners", "--database-url", filled_database, "rules"],
        ["hosts", "--json", "label", "h1", "a=b"],
    ):
        assert main(words) == 2
        assert (
            f"{words[1]} stands before {words[-1] if len(words) == 4 else 'label'}" in capsys.readouterr().err
        )


def test_a_file_with_a_bad_line_keeps_nothing(
    filled_database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "rules.csv"
    for lines, says in [
        ("team,user\nml,ann\nweb,\n", "rule 2 of 2"),
        ("team,colour\nml,red\n", "column 'colour' is none of ours"),
        ("team;user\nml;ann\n", "line 1 has semicolons and no commas"),
        ("", "the file is empty"),
        ("team,user,catch_all\nml,ann,perhaps\n", "line 2: catch_all is 'perhaps'"),
        ("team,user\nml\n", "line 2 has 1 cells and the header 2"),
        ("team,labels\nml,[nonsense\n", "line 2: labels is"),
    ]:
        file.write_text(lines)
        assert says in say(capsys, filled_database, "import", str(file), code=2)
    file.write_bytes("team,user\nml,ann\n".encode("utf-16"))
    assert "rules.csv is not UTF-8" in say(capsys, filled_database, "import", str(file), code=2)
    assert say(capsys, filled_database, "rules") == []


def test_a_file_without_rules_does_not_replace_those_there_are(
    filled_database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    say(capsys, filled_database, "add", "--team", "ml", "--user", "ann")
    file = tmp_path / "rules.csv"
    file.write_text("team,user\n")
    assert "no rules are given to replace" in say(
        capsys, filled_database, "import", str(file), "--replace", code=2
    )
    assert len(say(capsys, filled_database, "rules")) == 1
    assert main(["owners", "import", str(file), "--database-url", filled_database]) == 0
    assert capsys.readouterr().out == "The file has no rules: nothing was changed.\n"


def test_rules_come_back_exactly_from_a_file(
    filled_database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "rules.csv")
    url = filled_database
    say(capsys, url, "add", "--team", "'ml", "--user", "=ann", "--label", "name=a;b", "--from", "2026-10-02")
    say(capsys, url, "add", "--team", "all", "--catch-all", "--note", "-1, the\n'rest'")
    before = say(capsys, url, "rules")
    assert main(["owners", "export", "--out", file, "--database-url", url]) == 0
    assert "2 rules are in" in capsys.readouterr().err
    say(capsys, url, "import", file, "--replace")
    after = say(capsys, url, "rules")
    assert [row | {"id": 0} for row in after] == [row | {"id": 0} for row in before]


def test_people_read_tables(filled_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["owners", "rules", "--database-url", filled_database]) == 0
    assert capsys.readouterr().out.startswith("No owner rules: everything is unowned.")
    assert main(["owners", "--database-url", filled_database]) == 0
    assert "unowned" in capsys.readouterr().out
    assert main(["owners", "dry-run", "--team", "x", "--host", "h1", "--database-url", filled_database]) == 0
    assert "Unowned: 5 GPU-h without it, 1 GPU-h with it." in capsys.readouterr().out


def test_what_rest_lists_as_csv_can_be_imported(fresh_client: TestClient, filled_database: str) -> None:
    body = {"team": "ml", "labels": ["name=a[bc]*", "pod=x"], "host_labels": ["rack=7"], "note": "=1+1"}
    made = post(fresh_client, "rules", body, 201)
    answer = fresh_client.get("/api/v1/owners/rules?format=csv").text
    with session_scope(make_engine(filled_database)) as session:
        (again,) = owners.import_rules(
            session, settings_for(filled_database), NOW, owners.specs_of(answer), replace_all=True
        )
    assert (list(again.labels), list(again.host_labels), again.note) == (
        made["labels"],
        made["host_labels"],
        "=1+1",
    )


@pytest.fixture
def served(fresh_client: TestClient, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server without a socket: what the command line asks goes straight to the application."""

    def urlopen(request: Request, timeout: float) -> Any:
        answer = fresh_client.request(
            request.get_method(), request.full_url, content=request.data, headers=dict(request.header_items())
        )
        body = io.BytesIO(answer.content)
        if answer.is_error:
            raise HTTPError(request.full_url, answer.status_code, "refused", Message(), body)
        return addinfourl(body, Message(), request.full_url, answer.status_code)

    monkeypatch.setattr(remote, "urlopen", urlopen)
    return "http://127.0.0.1:8787"


def test_a_server_is_asked_for_the_same(
    served: str, filled_database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def at(*words: str, code: int = 0) -> Any:
        assert main([*words, "--json", "--server", served]) == code
        said = capsys.readouterr()
        return json.loads(said.out) if code == 0 else said.err

    assert at("hosts", "label", "h1", "cluster=prod", "rack=7")[0]["labels"] == {"rack": "7"}
    assert "no host is called 'h9'" in at("hosts", "label", "h9", "rack=7", code=1)
    (made,) = at("owners", "add", "--team", "ml", "--user", "ann", "--label", "name=train*")
    assert "matches everything" in at("owners", "add", "--team", "all", code=1)
    id_ = str(made["id"])
    at("owners", "add", "--team", "web", "--host-label", "cluster=prod")
    assert [row["team"] for row in at("owners", "move", id_, "2")] == ["web", "ml"]
    assert at("owners", "dry-run", "--rule", id_)["claimed_gpu_h"] == 0.0
    assert at("owners", "dry-run", "--team", "x", "--user", "ann", "--position", "1")["claimed_gpu_h"] == 2.0
    assert at("owners", "hand-over", id_, "--team", "ai", "--on", "2026-10-05T01:00:00Z")[2]["team"] == "ai"
    assert at("owners", "rename", "ai", "--cost-centre", "7", "--on", "2026-10-06")[0]["cost_centre"] == "7"
    assert at("owners", "end", id_, "--on", "2026-10-05T00:30:00Z")[0]["valid_to"] is not None
    assert main(["owners", "export", "--out", str(tmp_path / "r.csv"), "--server", served]) == 0
    capsys.readouterr()
    before = [row | {"id": 0} for row in at("owners", "rules")]
    again = at("owners", "import", str(tmp_path / "r.csv"), "--replace")
    assert [row | {"id": 0} for row in again] == before
    assert len(at("owners", "remove", str(again[0]["id"]))) == 3
    assert [row["id"] for row in say(capsys, filled_database, "rules")] == [row["id"] for row in again[1:]]
    assert [row["label"] for row in at("owners")][-1] == "unowned"
