"""Rent or buy over REST and on the command line: what is measured, what is given, what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plan_fleet_for_tests import H100, HOUR, KEY, T0, fill, settings_for
from server_for_tests import serving
from starlette.testclient import TestClient

from api.app import create_app
from gpuwise.__main__ import main
from gpuwise.commands.plan_mix import show
from store.engine import dispose_engine

NODE = {"capex_usd": 82_500.0, "gpu_count": 2, "staff_usd_per_year": 4_500.0}
"""A quarter of the worked example's node."""
SERVED = "tariff_usd_per_kwh = 0.10\npue = 1.25\nhost_share_ratio = 0.2\n"
"""The site of ``serving``."""
WHEN = ["--since", "2026-10-05", "--until", "2026-12-07"]


def client_for(url: str, weeks: float = 9, **more: object) -> TestClient:
    app = create_app(settings_for(url, **more))
    app.state.clock = lambda: T0 + round(weeks * 168) * HOUR + 5_000
    return TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False)


def post(client: TestClient, body: dict[str, Any], path: str = "plan/rent-or-buy") -> Any:
    answer = client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def database(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Nine weeks on SQLite, for tests that change nothing."""
    path = tmp_path_factory.mktemp("plan") / "gpuwise.db"
    path.write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{path}"
    fill(url)
    yield url
    dispose_engine(url)


@pytest.fixture(scope="module")
def client(database: str) -> TestClient:
    """The application over nine weeks."""
    return client_for(database)


@pytest.fixture(autouse=True)
def settings_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The fleet's site, and nothing of this machine's own settings."""
    config = tmp_path / "gpuwise.toml"
    config.write_text("tariff_usd_per_kwh = 0.12\npue = 1.3\nhost_share_ratio = 0.25\n")
    monkeypatch.setenv("GPUWISE_CONFIG", str(config))


def test_use_power_and_rent_are_those_measured_here_on_both_databases(ready_database: str) -> None:
    fill(ready_database, 4.5)
    client = client_for(ready_database, 4.5)
    row = post(client, NODE)
    said = row["assumptions"]
    hours = [hour for hour in range(756) if hour not in range(200, 210)]
    held = sum(3 if hour % 24 in range(8, 20) and hour // 24 % 7 < 5 else 2 for hour in hours)
    assert said["utilisation"] == pytest.approx(held / 4 / len(hours))
    assert 0.5 < said["utilisation_p25"] < said["utilisation_p75"] == 0.625
    assert said["utilisation_basis"].startswith(
        "measured: share of known time in which a workload held 4 GPUs"
    )
    assert (said["idle_kw"], said["active_kw"]) == (0.2, 1.2)
    assert "idle: 80 W a GPU measured over" in said["power_basis"]
    assert "active: 480 W a GPU measured over" in said["power_basis"]
    assert (row["rent_usd_per_gpu_h"], said["rent_basis"]) == ("3.99", f"your price for {H100}")
    assert row["measured"]["models"] == [KEY]
    assert row["measured"]["weeks"] == pytest.approx(746 / 168)
    assert row["measured"]["active_ratio"] == pytest.approx(0.75 * held / 4 / len(hours))
    assert row["measured"]["left_out_hours"] == 10
    assert (row["verdict"], row["missing"]) == ("buy", [])
    (mix,) = post(client, NODE | {"commit_usd_per_gpu_hour": "2.20"}, "plan/mix")
    assert (mix["standing"], mix["own_gpus"], mix["commit_gpus"]) == ("provisional", 2, 0)
    assert mix["on_demand_gpus"] == pytest.approx(held / len(hours) - 2)
    assert mix["demand"]["mean_gpus"] == pytest.approx(held / len(hours))


def test_work_alone_may_count_as_wanted_and_then_parked_time_is_idle_draw(client: TestClient) -> None:
    held, active = post(client, NODE), post(client, NODE | {"wanted": "active"})
    assert active["assumptions"]["utilisation"] == pytest.approx(0.75 * held["assumptions"]["utilisation"])
    assert active["assumptions"]["active_kw"] == 1.5
    assert 0.2 < active["assumptions"]["idle_kw"] < 0.3
    assert active["measured"]["wanted"] == "active"


def test_below_four_weeks_there_is_no_use_unless_told_to_assume(
    small: str,
) -> None:
    fill(small, 3.3)
    client = client_for(small, 3.3)
    refused = post(client, NODE)
    assert (refused["verdict"], refused["missing"]) == ("unknown", ["utilisation"])
    assert (
        "3.2 weeks measured, 4 are needed: give --utilisation to assume one, or --assume-measured"
        in refused["reason"]
    )
    assert refused["measured"]["allocated_ratio"] > 0
    assert refused["breakeven_utilisation"] is not None
    assumed = post(client, NODE | {"assume_measured": True})
    assert assumed["verdict"] == "buy"
    assert "less than 4 weeks, assumed to go on" in assumed["assumptions"]["utilisation_basis"]
    given = post(client, NODE | {"utilisation": 0.2})
    assert (given["verdict"], given["assumptions"]["utilisation_basis"]) == ("rent", "given")
    (mix,) = post(client, NODE, "plan/mix")
    assert (mix["standing"], mix["own_gpus"], mix["steps"]) == ("refused", None, [])


def test_a_break_even_within_the_measured_days_answers_with_the_mix(client: TestClient) -> None:
    row = post(client, NODE | {"capex_usd": 113_000.0})
    assert 0.5 < row["breakeven_utilisation"] < 0.625
    assert row["verdict"] == "mix"
    assert (row["mix"]["own_gpus"], row["mix"]["standing"]) == (2, "firm")
    assert [step["name"] for step in row["mix"]["steps"]] == ["today", "on_demand", "own"]
    assert post(client, NODE)["mix"] is None


def test_the_cheapest_mix_with_every_way_and_what_each_saves(client: TestClient) -> None:
    body = NODE | {
        "commit_usd_per_gpu_hour": "2.20",
        "reserve_usd_per_gpu_hour": "2.60",
        "spot_usd_per_gpu_hour": "1.40",
        "interruptions_per_hour": 0.05,
        "checkpoint_h": 1.0,
        "restart_h": 0.3,
        "restartable_ratio": 0.25,
    }
    (row,) = post(client, body, "plan/mix")
    assert row["prices"]["spot_with_interruptions_usd_per_gpu_h"] == "1.456"
    assert [step["name"] for step in row["steps"]] == [
        "today",
        "on_demand",
        "spot",
        "reserve",
        "commit",
        "own",
    ]
    assert row["steps"][0]["usd_per_month"] == row["today_usd_per_month"] == "11650.80"
    assert float(row["saves_usd_per_month"]) == pytest.approx(11_650.80 - float(row["usd_per_month"]))
    least = min(row["curve"], key=lambda point: float(point["usd_per_month"]))
    assert (least["gpus"], least["usd_per_month"]) == (row["own_gpus"], row["usd_per_month"])
    without = post(client, body | {"interruptions_per_hour": None}, "plan/mix")[0]
    assert "interruptions_per_hour is not given" in without["left_out"]["spot"]
    assert without["spot_gpus"] == 0.0


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("rent-or-buy", {"utilisation": 4.0}, "utilisation is 4.0: give a value from 0 to 1"),
        ("rent-or-buy", {"capex_usd": 0}, "capex_usd is 0.0: give a value from 1"),
        ("rent-or-buy", {"host": "h9"}, "no GPU was seen on host 'h9' in this window"),
        ("rent-or-buy", {"capex_usd": 9.0, "capex_gpus_usd": 5.0}, "correct one of them"),
        ("mix", {"commit_usd_per_gpu_hour": "-1"}, "commit_usd_per_gpu_hour is -1"),
        ("mix", {"spot_usd_per_gpu_hour": "-1"}, "spot_usd_per_gpu_hour is -1"),
        ("mix", {"restartable_ratio": 2.0}, "restartable_ratio is 2.0"),
        ("mix", {"gpu_model": "abacus"}, "no GPU of model 'abacus' was seen in this window"),
    ],
)
def test_what_cannot_be_is_refused_by_field_and_value(
    client: TestClient, path: str, body: dict[str, Any], says: str
) -> None:
    answer = client.post(f"/api/v1/plan/{path}", json=body)
    assert answer.status_code == 400, answer.text
    assert says in answer.json()["detail"]


def test_running_cost_above_the_rent_is_never(client: TestClient) -> None:
    assert post(client, NODE | {"own_opex_usd_per_hour": "8.00"})["verdict"] == "never"


def test_money_is_taken_and_given_as_decimal_strings(client: TestClient) -> None:
    figures = {"capex_usd": 330_000.0, "rent_usd_per_gpu_hour": 3.99, "tariff_usd_per_kwh": 0.12}
    texts = {name: str(value) for name, value in figures.items()}
    given = post(client, texts | {"utilisation": 0.4, "idle_kw": 2.2, "active_kw": 6.2})
    assert given == post(client, figures | {"utilisation": 0.4, "idle_kw": 2.2, "active_kw": 6.2})
    said = given["assumptions"]
    assert (said["capex_usd"], said["rent_usd_per_gpu_hour"]) == ("330000.00", "3.99")
    assert (said["utilisation"], said["power_basis"]) == (0.4, "given")
    assert (given["verdict"], given["own_usd_per_gpu_h"][:5]) == ("rent", "4.578")
    for wrong in ("much", "NaN", True):
        assert client.post("/api/v1/plan/rent-or-buy", json={"capex_usd": wrong}).status_code == 422


def test_a_power_that_is_set_wins_over_the_measured(database: str) -> None:
    said = post(client_for(database, own_active_kw=1.4), NODE)["assumptions"]
    assert (said["idle_kw"], said["active_kw"]) == (0.2, 1.4)
    assert "active: setting, not measured" in said["power_basis"]


@pytest.fixture
def small(sqlite_template: Path, tmp_path: Path) -> Iterator[str]:
    """A database with nothing in it."""
    path = tmp_path / "small.db"
    path.write_bytes(sqlite_template.read_bytes())
    yield f"sqlite:///{path}"
    dispose_engine(f"sqlite:///{path}")


def test_a_machine_of_ones_own_is_compared_with_the_market_and_not_with_its_own_rate(small: str) -> None:
    fill(small, 0.2, price_usd="0.50", billing="owned")
    row = post(client_for(small, 0.2), NODE | {"utilisation": 0.5})
    assert row["assumptions"]["rent_basis"].startswith("catalogue: median on-demand of H100")


def test_what_is_reserved_now_may_be_reserved_again_and_is_no_rent_by_use(small: str) -> None:
    fill(small, 0.2, price_usd="2.10", billing="reserved")
    client = client_for(small, 0.2)
    (mix,) = post(client, NODE | {"assume_measured": True}, "plan/mix")
    assert mix["prices"]["reserve_usd_per_gpu_h"] == "2.10"
    assert mix["prices"]["rent_basis"].startswith("catalogue: median on-demand of H100")
    said = post(client, NODE | {"utilisation": 0.5})["assumptions"]
    assert "reserved: paid for every hour, used or not" in said["rent_basis"]


def test_without_any_gpu_what_is_given_is_reckoned_all_the_same(small: str) -> None:
    client = client_for(small)
    given = {"capex_usd": 330_000, "rent_usd_per_gpu_hour": "3.99", "utilisation": 0.4}
    row = post(client, given)
    assert (row["verdict"], row["own_usd_per_gpu_h"][:5], row["measured"]) == ("rent", "4.578", None)
    assert row["assumptions"]["power_basis"] == "settings of the site, not measured"
    unknown = post(client, {"capex_usd": 330_000, "rent_usd_per_gpu_hour": "3.99"})
    assert (unknown["verdict"], unknown["missing"]) == ("unknown", ["utilisation"])
    assert "no use was measured" in unknown["reason"]
    assert post(client, {}, "plan/mix") == []


def test_a_price_is_for_one_model_and_never_for_all_that_are_here(filled_sqlite: str) -> None:
    """The small fleet has an H100 and a card of no catalogue, for two hours."""
    client = client_for(filled_sqlite, 2 / 168, own_capex_usd=330_000.0)
    answer = client.post("/api/v1/plan/mix", json=NODE | {"assume_measured": True})
    assert answer.status_code == 400
    assert "capex_usd is for one GPU model, and 2 are here" in answer.json()["detail"]
    nobody, h100 = sorted(
        post(client, {"assume_measured": True}, "plan/mix"), key=lambda row: row["gpu_model"]
    )
    assert "there is no rent of Card Of Nobody: give --rent-usd-per-gpu-hour" in nobody["reason"]
    assert (nobody["standing"], nobody["prices"], nobody["usd_per_month"]) == ("refused", {}, None)
    assert "pick its GPU with --gpu-model" in h100["left_out"]["own"]
    row = post(client, NODE | {"utilisation": 0.5})
    assert row["missing"] == ["rent_usd_per_gpu_hour"]
    assert "several models are here" in row["assumptions"]["rent_basis"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("path", ["rent-or-buy", "mix"])
def test_a_server_says_what_its_database_says(
    capsys: pytest.CaptureFixture[str], database: str, path: str, tmp_path: Path
) -> None:
    (tmp_path / "gpuwise.toml").write_text(SERVED)
    words = ["plan", path, "--capex-usd", "82500", "--gpu-count", "2", "--wanted", "active", *WHEN, "--json"]
    code, of_database, err = run(capsys, *words, "--database-url", database)
    assert (code, err) == (0, "")
    with serving(database) as server:
        code, of_server, _ = run(capsys, *words, "--server", server)
    assert code == 0
    assert json.loads(of_server) == json.loads(of_database)
    assert isinstance(json.loads(of_database), list)


def test_people_read_the_answer_on_the_terminal(capsys: pytest.CaptureFixture[str], database: str) -> None:
    words = [
        "plan",
        "rent-or-buy",
        "--capex-usd",
        "113000",
        "--gpu-count",
        "2",
        "--staff-usd-per-year",
        "4500",
    ]
    code, out, _ = run(capsys, *words, *WHEN, "--database-url", database)
    assert code == 0
    for text in ("MIX. Owning breaks even at", "Payback", "own 2", "← least", "480 W a GPU measured over"):
        assert text in out
    code, out, _ = run(capsys, "plan", "mix", *WHEN, "--database-url", database)
    assert code == 0
    assert "Left out: own (capex_usd not given)" in out


def test_what_is_never_paid_back_says_so(capsys: pytest.CaptureFixture[str], database: str) -> None:
    words = ["--capex-usd", "82500", "--gpu-count", "2", "--own-opex-usd-per-hour", "9"]
    code, out, _ = run(capsys, "plan", "rent-or-buy", *words, *WHEN, "--database-url", database)
    assert code == 0
    assert out.startswith("NEVER. Running an owned node costs at least as much an hour as renting one.")
    (payback,) = (line for line in out.splitlines() if line.startswith("Payback"))
    assert payback.split() == ["Payback", "never"]


def test_a_bad_flag_exits_2_with_one_sentence(capsys: pytest.CaptureFixture[str], database: str) -> None:
    code, _, err = run(capsys, "plan", "rent-or-buy", "--capex-usd", "0", "--database-url", database)
    assert code == 2
    assert "capex_usd is 0.0: give a value from 1" in err


def test_a_machine_that_may_never_be_wanted_has_no_limit_to_its_hour(
    capsys: pytest.CaptureFixture[str], database: str
) -> None:
    use = ["--utilisation", "0.5", "--utilisation-p25", "0", "--utilisation-p75", "1"]
    words = ["--capex-usd", "330000", "--rent-usd-per-gpu-hour", "4", "--tariff-usd-per-kwh", "0.1", *use]
    code, out, _ = run(capsys, "plan", "rent-or-buy", *words, *WHEN, "--database-url", database)
    assert code == 0
    (owned,) = (line for line in out.splitlines() if line.startswith("Owned, a wanted GPU-hour"))
    assert owned.endswith(" to no limit")


@pytest.mark.parametrize(("saves", "says"), [("0.00", ", as today."), ("5", "$5.00 less")])
def test_a_mix_that_saves_nothing_says_so(
    capsys: pytest.CaptureFixture[str], database: str, saves: str, says: str
) -> None:
    _, out, _ = run(capsys, "plan", "mix", *WHEN, "--json", "--database-url", database)
    (row,) = json.loads(out)
    show({**row, "saves_usd_per_month": saves})
    assert says in capsys.readouterr().out


def test_help_says_what_is_taken_where_an_input_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("rent-or-buy", "mix"):
        code, out, _ = run(capsys, "plan", command, "--help")
        assert code == 0
        for said in ("own_life_years [4]", "own_staff_usd_per_year [18,000]", "setting pue [1.3]"):
            assert said in " ".join(out.split())
