"""What ``gpuwise import prometheus`` says where it cannot, how it asks, and what it finds before it reads."""

import base64
import json
import socket
from collections.abc import Iterator

import pytest
from prometheus_server import Server, prometheus
from scraped_fleet import scrape_engine, scrape_gpu

from agent.sources.prometheus import api
from agent.sources.simulator.fleet import fleet
from core.clock import now_ms
from core.units import HOUR_MS, SECOND_MS
from gpuwise.__main__ import main

END_MS = now_ms() // HOUR_MS * HOUR_MS
SCRAPED = range(END_MS - 3 * HOUR_MS + 7_000, END_MS, 60 * SECOND_MS)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(api, "PAUSE_S", 0.001)
    with prometheus() as running:
        yield running


@pytest.fixture
def one_gpu(server: Server) -> Server:
    scrape_gpu(server, fleet(END_MS).gpus[0], SCRAPED, cluster="a")
    return server


def command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["import", "prometheus", *words])
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 1) -> str:
    got, out, err = command(capsys, *words, "--dry-run", "--days", "1")
    assert got == code
    assert out == ""
    assert err.count("\n") == 1 or code == 2
    return err


def test_an_address_that_is_none_or_answers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("prometheus:9090", "ftp://host", "http://", "http://host:port"):
        assert "give an address such as http://prometheus.example:9090" in refused(
            capsys, "--url", url, code=2
        )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    err = refused(capsys, "--url", f"http://127.0.0.1:{port}")
    assert f"http://127.0.0.1:{port} cannot be reached (Connection refused): check the address" in err


def test_a_web_page_is_no_prometheus(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.before = lambda _path: (200, b"<html>Grafana</html>")
    assert "does not answer as Prometheus does: check the address" in refused(capsys, "--url", server.url)
    server.before = lambda _path: (404, b"404 page not found")
    err = refused(capsys, "--url", f"{server.url}/wrong")
    assert "is not there (404): give the address of Prometheus itself; Mimir's ends in /prometheus" in err
    server.before = lambda _path: (200, b'{"status":"success","data":{"resultType":"matrix"}}')
    assert "does not answer as Prometheus does" in refused(capsys, "--url", server.url)


def test_who_asks_is_sent_and_asked_for(
    one_gpu: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wanting(wanted: str) -> None:
        def before(_path: str) -> tuple[int, bytes] | None:
            given = one_gpu.asked[-1][2].get("Authorization")
            return None if given == wanted else (401, b"Unauthorized")

        one_gpu.before = before

    wanting("Bearer s3cret")
    err = refused(capsys, "--url", one_gpu.url)
    assert (
        "answers 401, it wants to know who asks: set GPUWISE_PROMETHEUS_TOKEN, or GPUWISE_PROMETHEUS_USER"
        in err
    )
    monkeypatch.setenv("GPUWISE_PROMETHEUS_TOKEN", "s3cret")
    assert command(capsys, "--url", one_gpu.url, "--dry-run", "--days", "1")[0] == 0
    monkeypatch.delenv("GPUWISE_PROMETHEUS_TOKEN")
    wanting("Basic " + base64.b64encode(b"ann:p:w").decode())
    monkeypatch.setenv("GPUWISE_PROMETHEUS_USER", "ann")
    monkeypatch.setenv("GPUWISE_PROMETHEUS_PASSWORD", "p:w")
    assert command(capsys, "--url", one_gpu.url, "--dry-run", "--days", "1")[0] == 0
    monkeypatch.delenv("GPUWISE_PROMETHEUS_USER")
    within = one_gpu.url.replace("://", "://ann:p%3Aw@")
    monkeypatch.delenv("GPUWISE_PROMETHEUS_PASSWORD")
    code, out, _err = command(capsys, "--url", within, "--dry-run", "--days", "1")
    assert code == 0
    assert "p%3Aw" not in out


def test_headers_and_matches_go_with_every_question(
    one_gpu: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "--url",
        one_gpu.url,
        "--header",
        "X-Scope-OrgID: team-a",
        "--match",
        '{cluster=~"a|b"}',
        "--dry-run",
    )
    assert command(capsys, *words)[0] == 0
    for _path, query, headers in one_gpu.asked:
        assert headers["X-Scope-OrgID"] == "team-a"
        assert 'cluster=~"a|b"' in (query.get("query") or query["match[]"])[0]
    assert "no such" not in refused(capsys, "--url", one_gpu.url, "--header", "no colon", code=2)
    err = refused(capsys, "--url", one_gpu.url, "--match", "cluster", code=2)
    assert 'give label matchers such as cluster="a"' in err


def test_nothing_of_ours_names_what_was_looked_for(
    one_gpu: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    err = refused(capsys, "--url", one_gpu.url, "--match", 'cluster="b"')
    assert 'no series of GPUs or LLM engines that match {cluster="b"}' in err
    assert "looked for DCGM_FI_*, nvidia_smi_*, vllm:*" in err


def test_a_server_that_fails_now_and_then_is_asked_again(
    one_gpu: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    one_gpu.before = lambda _path: (503, b"down") if len(one_gpu.asked) % 3 == 1 else None
    assert command(capsys, "--url", one_gpu.url, "--dry-run", "--days", "1")[0] == 0
    one_gpu.before = lambda _path: (502, b"bad gateway")
    assert "answers 502: check the server and what is before it" in refused(capsys, "--url", one_gpu.url)


def test_a_refusal_of_small_questions_is_said(
    one_gpu: Server, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    one_gpu.most_samples = 3
    code, _out, err = command(
        capsys,
        "--url",
        one_gpu.url,
        "--days",
        "1",
        "--step",
        "60",
        "--database-url",
        f"sqlite:///{tmp_path}/g.db",
    )
    assert code == 1
    assert "refuses so many points (query processing would load too many samples" in err
    assert "ask for less with --match, --days or a larger --step" in err


def test_times_that_contradict_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    now = "2026-01-01T00:00:00Z"
    for words in (
        ("--days", "3", "--from", now),
        ("--from", now, "--to", now),
        ("--days", "0"),
        ("--step", "5"),
        ("--step", "300"),
    ):
        assert command(capsys, "--url", "http://127.0.0.1:1", *words)[0] == 2, words


def test_a_dry_run_says_what_is_there_and_which_rules_could_speak(
    one_gpu: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    scrape_engine(one_gpu, fleet(END_MS).engines[0], SCRAPED)
    code, out, _err = command(capsys, "--url", one_gpu.url, "--days", "1", "--dry-run", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["gpus_found"] == [fleet(END_MS).gpus[0].identity.gpu_uuid]
    assert told["models"] == {"NVIDIA H100 80GB HBM3": 1}
    assert told["scrape_interval_s"] == told["step_s"] == 60
    assert {"busy_ratio", "running_requests"} <= set(told["metrics"])
    rules = {rule["rule_id"]: rule for rule in told["rules"]}
    assert rules["empty-gpu"]["can_speak"]
    assert rules["input-bound"]["missing"] == ["cpu_thread_ratio", "iowait_ratio"]
    assert len(rules) == 34
    assert "rules can speak: empty-gpu" in command(capsys, "--url", one_gpu.url, "--dry-run")[1]


def test_a_server_without_label_values_is_asked_for_series(
    one_gpu: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    one_gpu.before = lambda path: (404, b"404 page not found") if "/label/" in path else None
    assert command(capsys, "--url", one_gpu.url, "--days", "1", "--dry-run")[0] == 0


def test_questions_of_long_names_go_as_a_form(one_gpu: Server) -> None:
    asking = api.Api(api.Access(one_gpu.url))
    try:
        query = 'DCGM_FI_DEV_GPU_UTIL{UUID=~"' + "|".join(f"GPU-{n:036}" for n in range(300)) + '"}'
        assert asking.range(query, END_MS - HOUR_MS, END_MS, 60_000) == []
    finally:
        asking.close()
