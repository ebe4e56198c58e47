"""What agents tell reaches rows, REST, command line and pages: hosts, states and events of cards, kinds of workloads."""

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from agents_for_tests import HEALTHY, MACHINE, SICK, deliver
from fleet_for_tests import NOW, A, B, C, fill, settings_for
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from api.app import create_app
from api.resources import costs, energy, hosts, usage
from api.resources.by import By
from api.resources.gpu_detail import GpuDetail
from api.resources.hosts import HostRow
from api.resources.scope import Scope, scope_of
from core.clock import from_ms
from gpuwise.__main__ import main
from store.engine import dispose_engine, make_engine, session_scope


@pytest.fixture
def scope(filled_database: str) -> Iterator[Scope]:
    """The small fleet with what agents add, on each kind of database."""
    deliver(filled_database)
    with session_scope(make_engine(filled_database)) as session:
        yield scope_of(session, settings_for(filled_database), NOW)


@pytest.fixture(scope="module")
def address(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same in one SQLite database, for tests that change nothing."""
    path = tmp_path_factory.mktemp("agents") / "gpuwise.db"
    shutil.copyfile(sqlite_template, path)
    url = f"sqlite:///{path}"
    fill(url)
    deliver(url)
    yield url
    dispose_engine(url)


@pytest.fixture(scope="module")
def client(address: str) -> TestClient:
    app = create_app(settings_for(address))
    app.state.clock = lambda: NOW
    return TestClient(app, base_url="http://127.0.0.1:8787", headers={"accept": "*/*"})


def by_host(scope: Scope) -> dict[str | None, HostRow]:
    return {row.host: row for row in hosts.rows(scope)}


def test_a_host_says_how_machine_and_agent_fare(scope: Scope) -> None:
    row = by_host(scope)["h1"]
    assert {name: getattr(row, name) for name in MACHINE} == MACHINE
    assert (row.host_power_w, row.cpu_busiest_ratio, row.agent_skipped_count) == (None, None, None)
    assert (row.agent_version, row.cpu_count) == ("0.3.0", 64)
    assert row.last_delivery_at == from_ms(NOW)
    assert row.gpu_count == 2


def test_a_host_without_agent_knows_none_of_it(scope: Scope) -> None:
    row = by_host(scope)["h2"]
    assert (row.agent_version, row.last_delivery_at, row.cpu_busy_ratio, row.agent_waiting_count) == (
        None,
    ) * 4
    assert row.gpu_count == 1


def test_a_host_whose_agent_sees_no_gpu_is_listed_without_power_or_price(scope: Scope) -> None:
    row = by_host(scope)["h3"]
    assert (row.gpu_count, row.power_w, row.price_usd_per_hour, row.cost_usd) == (0, None, None, None)
    assert (row.agent_waiting_count, row.host_memory_total_bytes) == (4.0, 64 * (1 << 30))


def test_a_gpu_up_close_has_its_state_and_how_power_is_measured(client: TestClient) -> None:
    answer = client.get(f"/api/v1/gpus/{A}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    TypeAdapter(GpuDetail).validate_python(body)
    assert body["health"] == SICK
    assert (body["compute_capability"], body["power_averaging_s"]) == ("9.0", 1.0)
    assert body["health_asked_at"].startswith("2026-10-05T01:59:35")
    (listed,) = (row for row in client.get("/api/v1/gpus").json()["items"] if row["gpu_uuid"] == A)
    assert {name: body[name] for name in listed} == listed


def test_a_gpu_whose_state_nobody_told_has_an_empty_one(client: TestClient) -> None:
    body = client.get(f"/api/v1/gpus/{C}").json()
    assert (body["health"], body["health_asked_at"], body["power_averaging_s"]) == ({}, None, None)
    assert client.get("/api/v1/gpus/GPU-nobody").status_code == 404


def test_gpu_time_is_grouped_by_namespace_and_the_rest_is_one_group(scope: Scope) -> None:
    used = {row.key: row for row in usage.rows(scope, By.NAMESPACE)}
    assert set(used) == {"ml", None}
    assert used["ml"].allocated_gpu_h == 1.0
    assert used[None].label == "no namespace"
    assert sum(row.total_gpu_h for row in used.values()) == sum(row.total_gpu_h for row in usage.rows(scope))
    assert {row.key: row.cost_usd for row in costs.rows(scope, By.NAMESPACE)} == {
        "ml": Decimal(2),
        None: Decimal(6),
    }
    joules = {row.key: row.energy_j for row in energy.rows(scope, By.NAMESPACE)}
    assert joules["ml"] == pytest.approx(1_080_000.0)


def test_workloads_are_told_with_their_kind_and_users_without(scope: Scope) -> None:
    assert {row.label for row in usage.rows(scope, By.WORKLOAD)} == {
        "train.py · process",
        "llama-0 · pod in ml",
        "job 77 (train) · Slurm job",
        "not attributed",
    }
    assert {row.label for row in costs.rows(scope, By.USER)} == {"ann", "bob", "no known user"}


def test_the_command_line_prints_hosts_and_then_their_agents(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hosts", "--database-url", address]) == 0
    first, _, second = capsys.readouterr().out.partition("\n\n")
    assert "IDLE COST" in first
    head, h1, h2, h3 = (line.split() for line in second.splitlines()[:4])
    assert head[:2] == ["HOST", "CPU"]
    assert " ".join(h1).startswith("h1 25 % – 1.0 % 100 GiB 512 GiB – 0.3.0 ")
    assert " ".join(h1).endswith(" 0.31 % 41 MiB 4.20 ms 0")
    assert set(h2[1:]) == {"–"}
    assert h3[-1] == "4"


def test_hosts_without_any_agent_are_one_table(
    filled_sqlite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hosts", "--database-url", filled_sqlite]) == 0
    assert "LAST DELIVERY" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("gpu", "sentence"),
    [
        (A, "The driver asks to drain the GPU, then reset it."),
        (A, "×8 wide of ×16"),
        (A, "driver call hangs"),
        (A, "XID 31: GPU memory page fault."),
        (A, "3 times since"),
        (A, "of the future"),
        (B, "Nothing wrong was reported."),
        (B, "Gen\xa01\xa0×16 of Gen\xa05\xa0×16"),
        (C, "no agent has told of this card"),
        (C, "Nothing was reported: no driver error"),
    ],
)
def test_the_page_of_a_gpu_says_its_state_and_events_in_words(
    client: TestClient, gpu: str, sentence: str
) -> None:
    html = client.get(f"/gpus/{gpu}?since=2h").text
    assert sentence in html


def test_a_pod_is_shown_with_its_namespace_among_the_holders(client: TestClient) -> None:
    assert "pod in ml" in client.get(f"/gpus/{A}?since=2h").text
    assert "llama-0 · pod in ml" in client.get("/costs?by=workload").text
    assert '<th scope="row"><bdi>ml<' in client.get("/costs?by=namespace").text


def test_states_for_tests_name_facts_that_agents_tell() -> None:
    from core.readings import GpuHealth

    assert all(f"``{name}``" in (GpuHealth.__doc__ or "") for name in HEALTHY)
