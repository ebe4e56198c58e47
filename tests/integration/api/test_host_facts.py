"""What people say about hosts: kept, shown, and days booked anew; on both databases."""

import json
from pathlib import Path
from typing import Any

import pytest
from fleet_for_tests import ANN, NOW, T0
from sqlalchemy import text
from starlette.testclient import TestClient

from api.resources import host_facts, hosts, owners
from api.resources.host_facts import HostSays
from api.resources.owner_specs import RuleSpec
from api.resources.ownership import owner_lookup
from api.resources.scope import Scope
from core.errors import NotFoundError, UsageError
from core.ownership import Owner
from gpuwise.__main__ import main
from store.queries import ledger_pending


def marks(scope: Scope) -> int:
    found = ledger_pending.count(scope.session)
    scope.session.execute(text("DELETE FROM ledger_pending"))
    return found


def test_what_is_said_of_a_host_is_shown_and_removed_again(filled_scope: Scope) -> None:
    said = {"cluster": "prod", "instance_type": "p5.48xlarge", "region": "us-east-1", "rack": "7", "row": "b"}
    host_facts.say(filled_scope.session, [HostSays("h1", said)])
    rows = {row.host: row for row in hosts.rows(filled_scope)}
    assert (rows["h1"].cluster, rows["h1"].instance_type, rows["h1"].region) == (
        "prod",
        "p5.48xlarge",
        "us-east-1",
    )
    assert (rows["h1"].labels, rows["h2"].labels) == ({"rack": "7", "row": "b"}, {})
    (left,) = host_facts.say(filled_scope.session, [HostSays("h1", {"cluster": "", "rack": None})])
    assert (left.cluster, left.region, left.labels) == (None, "us-east-1", {"row": "b"})


def test_days_of_those_hosts_alone_are_booked_anew(filled_scope: Scope) -> None:
    marks(filled_scope)
    host_facts.say(filled_scope.session, [HostSays("h2", {"cluster": "x"})])
    assert marks(filled_scope) == 1
    host_facts.say(filled_scope.session, [HostSays("h2", {"cluster": "x"})])
    assert marks(filled_scope) == 0
    host_facts.say(filled_scope.session, [HostSays("h*", {"cluster": "x"})])
    assert marks(filled_scope) == 2


def test_a_rule_may_ask_for_what_is_said_of_the_host(filled_scope: Scope) -> None:
    owners.add(
        filled_scope.session, filled_scope.settings, NOW, RuleSpec("ml", host_labels=("cluster=prod",))
    )
    assert owner_lookup(filled_scope.session)(ANN, "h1", T0) is None
    host_facts.say(filled_scope.session, [HostSays("h1", {"cluster": "prod"})])
    marks(filled_scope)
    lookup = owner_lookup(filled_scope.session)
    assert [lookup(ANN, "h1", T0), lookup(None, "h1", T0), lookup(None, "h2", T0)] == [
        Owner("ml"),
        Owner("ml"),
        None,
    ]
    (rule,) = owners.rows(filled_scope.session, NOW)
    owners.remove(filled_scope.session, rule.id)
    assert marks(filled_scope) == 2


def test_bad_names_and_unknown_hosts_change_nothing(filled_scope: Scope) -> None:
    good = HostSays("h1", {"cluster": "prod"})
    with pytest.raises(NotFoundError, match="no host is called 'h9'"):
        host_facts.say(filled_scope.session, [good, HostSays("h9", {"cluster": "x"})])
    with pytest.raises(UsageError, match="'a b'"):
        host_facts.say(filled_scope.session, [good, HostSays("h1", {"a b": "x"})])
    with pytest.raises(UsageError, match="rack of host h1 is"):
        host_facts.say(filled_scope.session, [good, HostSays("h1", {"rack": "x" * 201})])
    with pytest.raises(UsageError, match="51 labels"):
        host_facts.say(filled_scope.session, [HostSays("h1", {f"n{at}": "x" for at in range(51)})])
    assert {row.cluster for row in hosts.rows(filled_scope)} == {None}
    host_facts.say(filled_scope.session, [good, HostSays("h9", {"cluster": "x"})], skip_unknown=True)
    assert {row.cluster for row in hosts.rows(filled_scope)} == {"prod", None}


def test_hosts_over_rest(fresh_client: TestClient) -> None:
    body: dict[str, Any] = {"cluster": "prod", "labels": {"rack": "7"}}
    (said,) = fresh_client.patch("/api/v1/hosts/h1", json=body).json()
    assert said == {
        "host": "h1",
        "cluster": "prod",
        "instance_type": None,
        "region": None,
        "labels": {"rack": "7"},
    }
    (said,) = fresh_client.patch("/api/v1/hosts/h1", json={"cluster": None, "labels": {"rack": None}}).json()
    assert (said["cluster"], said["labels"]) == (None, {})
    assert len(fresh_client.patch("/api/v1/hosts/*", json={"region": "x"}).json()) == 2
    row = fresh_client.get("/api/v1/hosts").json()["items"][0]
    assert (row["host"], row["region"], row["labels"]) == ("h1", "x", {})
    assert fresh_client.patch("/api/v1/hosts/h9", json={"region": "x"}).status_code == 404
    assert fresh_client.patch("/api/v1/hosts/h1", json={"colour": "x"}).status_code == 422
    lines = {"hosts": [{"host": "h1", "facts": {"rack": "8"}}, {"host": "h9", "facts": {}}]}
    assert fresh_client.post("/api/v1/hosts/facts", json=lines).status_code == 404
    answer = fresh_client.post("/api/v1/hosts/facts", json=lines | {"skip_unknown": True}).json()
    assert [row["labels"] for row in answer] == [{"rack": "8"}]


def say(capsys: pytest.CaptureFixture[str], url: str, *words: str, code: int = 0) -> Any:
    assert main(["hosts", *words, "--json", "--database-url", url]) == code
    said = capsys.readouterr()
    return json.loads(said.out) if code == 0 else said.err


def test_hosts_from_the_command_line(
    filled_database: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = filled_database
    assert len(say(capsys, url, "label", "h*", "cluster=prod", "rack=7")) == 2
    assert say(capsys, url, "label", "h1", "rack=")[0]["labels"] == {}
    assert "use NAME=VALUE" in say(capsys, url, "label", "h1", "rack", code=2)
    file = tmp_path / "hosts.csv"
    file.write_text("host,region,rack\nh1,eu,\nh2,,9\nh9,us,1\n")
    assert "no host is called 'h9'" in say(capsys, url, "import", str(file), code=2)
    say(capsys, url, "import", str(file), "--skip-unknown")
    found = {row["host"]: (row["cluster"], row["region"], row["labels"]) for row in say(capsys, url)}
    assert found == {"h1": ("prod", "eu", {}), "h2": ("prod", None, {"rack": "9"})}
    for lines, says in [
        ("name\nh1\n", "column 'host' is missing"),
        ("host;region\nh1;us\n", "line 1 has semicolons"),
        ("host,region\nh1,us,7\n", "line 2 has 3 cells and the header 2"),
        ("host,region\nh1\n", "line 2 has 1 cells"),
        ("host,region\nh1," + "u" * 200_000, "line 2 is no CSV"),
        ("", "the file is empty"),
    ]:
        file.write_text(lines)
        assert says in say(capsys, url, "import", str(file), code=2)
    file.write_bytes("host,region\nh1,us\n".encode("utf-16"))
    assert "is not UTF-8" in say(capsys, url, "import", str(file), code=2)
    assert "region is given twice" in say(capsys, url, "label", "h1", "region=a", "region=b", code=2)
    assert {row["host"]: row["region"] for row in say(capsys, url)} == {"h1": "eu", "h2": None}
