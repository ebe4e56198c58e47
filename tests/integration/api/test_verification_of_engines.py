"""Before and after of an engine: another model or card is refused, peers are compared by what their engines served."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest
from fleet_for_tests import GIB, H100, settings_for
from sqlalchemy.orm import Session

from api.resources import before_after, verifications
from core.activity import Activity
from core.finding import Effort, Finding, Grade, Range, Risk, Saving, Subject
from core.readings import EngineIdentity, GpuIdentity
from core.rule_settings import parse
from core.samples import EnergyMethod, EngineSample, GpuSample
from core.units import DAY_MS, HOUR_MS
from core.verification import Verdict, Verification
from store.dbapi import open_connection
from store.engine import make_engine, session_scope
from store.ingest import Ingest
from store.rollup import roll_up

T0: Final = 1_791_158_400_000
BEFORE_H, AFTER_H = 16 * 24, 16 * 24
ACTION: Final = T0 + BEFORE_H * HOUR_MS
END: Final = ACTION + AFTER_H * HOUR_MS
LLAMA, FP8, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "org/Llama-3.1-8B-Instruct-FP8", "Qwen/Qwen3-8B"
FINDING = Finding(
    rule_id="decode-clock",
    subject=Subject("engine", "h1:8000/0"),
    cause="clock",
    title="Lower the clock",
    because="",
    state="",
    confidence="",
    grade=Grade.B,
    effort=Effort.LOW,
    risk=Risk.LOW,
    saving=Saving(energy_kwh_month=Range(20.0, 40.0, 60.0)),
    evidence={},
    actions=(),
    wrong_when="",
    gpu_uuids=("GPU-a",),
    stage="clocks",
)


def traffic(at: int) -> float:
    """Tokens of an hour, by the time of the day and a little by the day."""
    return 1e6 * (1 + 0.4 * (8 <= at % 24 < 20) + 0.05 * (at // 24 * 7 % 5))


def gpu_hour(uuid: str, at: int, watts: float, activity: Activity = Activity.BUSY) -> GpuSample:
    known = {"busy_ratio": 0.9, "memory_used_bytes": 60.0 * GIB, "process_count": 1.0}
    if activity is Activity.PARKED:
        known["busy_ratio"] = 0.0
    energy = {"power_w": watts, "energy_j": watts * 3600}
    return GpuSample(
        uuid, T0 + at * HOUR_MS, HOUR_MS, HOUR_MS, known | energy, EnergyMethod.COUNTER, activity
    )


def engine_hour(engine: str, at: int, tokens: float) -> EngineSample:
    known = {
        "generated_tokens": tokens,
        "prompt_tokens": 3 * tokens,
        "finished_requests": tokens / 400,
        "waiting_requests": 0.0,
    }
    return EngineSample(engine, T0 + at * HOUR_MS, HOUR_MS, HOUR_MS, HOUR_MS, 8.0, known)


def fill(url: str, *, model_after: str = LLAMA, peer_traffic_after: float = 1.0, cut: float = 0.2) -> None:
    """GPU-a serves, and draws ``cut`` less after the action; GPU-b serves another model, untreated."""
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus(
            [GpuIdentity(uuid, "h1", at, H100, 80 * GIB) for at, uuid in enumerate(("GPU-a", "GPU-b"))]
        )
        peer = EngineIdentity("h1:8001/0", "h1", "vllm", "mistralai/Mistral-7B-v0.1", gpu_uuids=("GPU-b",))
        for start, end, model in ((0, BEFORE_H, LLAMA), (BEFORE_H, BEFORE_H + AFTER_H, model_after)):
            ingest.engines([EngineIdentity("h1:8000/0", "h1", "vllm", model, gpu_uuids=("GPU-a",)), peer])
            factor, load = (1 - cut, peer_traffic_after) if start else (1.0, 1.0)
            hours = [(at, traffic(at), traffic(at + 5) * load) for at in range(start, end)]
            ingest.gpu_samples(
                [gpu_hour("GPU-a", at, (200 + 2e-4 * own) * factor) for at, own, _ in hours]
                + [gpu_hour("GPU-b", at, 200 + 2e-4 * theirs) for at, _, theirs in hours]
            )
            ingest.engine_samples(
                [engine_hour("h1:8000/0", at, own) for at, own, _ in hours]
                + [engine_hour("h1:8001/0", at, theirs) for at, _, theirs in hours]
            )
        ingest.commit()
    engine = make_engine(url)
    while roll_up(engine, now_ms=END).pending_left:
        pass


@contextmanager
def opened(url: str) -> Iterator[Session]:
    with session_scope(make_engine(url)) as session:
        yield session


def compared(url: str, finding: Finding = FINDING) -> Verification:
    with opened(url) as session:
        return before_after.compare(session, settings_for(url), END, finding, ACTION)


def test_peers_that_served_more_are_no_saving_of_the_treated(ready_database: str) -> None:
    """The neighbour's traffic fell by a third: by its watts alone everything would have saved as much."""
    fill(ready_database, peer_traffic_after=0.67)
    made = compared(ready_database)
    assert made.facts["peers_load"] == "requests, prompt tokens, generated tokens"
    assert abs(float(made.facts["peers_change_ratio"] or 0.0)) < 0.02
    assert made.verdict is Verdict.SAVED
    assert made.saving is not None
    assert 0.18 * 0.3 * 730 < made.saving.p50 < 0.25 * 0.6 * 730


@pytest.mark.parametrize(
    ("model", "rule_id", "verdict"),
    [
        (QWEN, "decode-clock", Verdict.CONFOUNDED),
        (FP8, "decode-clock", Verdict.CONFOUNDED),
        (QWEN, "quantization-candidate", Verdict.CONFOUNDED),
        (FP8, "quantization-candidate", Verdict.SAVED),
    ],
)
def test_another_model_is_refused_by_name_unless_its_form_is_what_was_asked_for(
    ready_database: str, model: str, rule_id: str, verdict: Verdict
) -> None:
    fill(ready_database, model_after=model)
    made = compared(ready_database, replace(FINDING, rule_id=rule_id))
    assert made.verdict is verdict
    if verdict is Verdict.CONFOUNDED:
        assert f"serves {model} instead of {LLAMA}" in made.sentence
        assert made.saving is None


def test_an_engine_that_moved_to_another_card_is_refused(ready_database: str) -> None:
    fill(ready_database)
    made = compared(ready_database, replace(FINDING, gpu_uuids=("GPU-b",)))
    assert made.verdict is Verdict.CONFOUNDED
    assert "Engine h1:8000/0 runs on GPU-a now" in made.sentence


def test_a_card_in_the_place_of_another_is_named(ready_database: str) -> None:
    fill(ready_database)
    with closing(open_connection(ready_database)) as connection:
        ingest = Ingest(connection)
        ingest.gpus([GpuIdentity("GPU-new", "h1", 0, "NVIDIA L40S", 48 * GIB)])
        ingest.gpu_samples([gpu_hour("GPU-new", BEFORE_H + 5, 200.0)])
        ingest.commit()
    made = compared(ready_database)
    assert made.verdict is Verdict.CONFOUNDED
    assert "GPU 0 on h1 is another card: NVIDIA L40S (GPU-new) instead of" in made.sentence


def test_the_price_of_the_card_one_moved_to_is_not_guessed(ready_database: str) -> None:
    fill(ready_database)
    moved = replace(
        FINDING, rule_id="oversized-gpu", saving=Saving(cash_usd_month=Range(100.0, 200.0, 300.0))
    )
    made = compared(ready_database, moved)
    assert made.verdict is Verdict.NOT_MEASURABLE
    assert made.saving is None


@pytest.mark.parametrize(
    ("tables", "there"),
    [
        ({}, True),
        ({"rules": {"parked-model": {"min_data_h": 300}}}, False),
        ({"rules": {"scope": [{"rule": "parked-model", "host": "h1", "max_silence_h": 0.1}]}}, False),
        ({"rules": {"scope": [{"rule": "parked-model", "host": "h2", "max_silence_h": 0.1}]}}, True),
        ({"exclusion": [{"host": "h1", "until": "2099-01-01", "reason": "spare"}]}, True),
    ],
    ids=["defaults", "the fleet's", "this part's", "another part's", "excluded"],
)
def test_what_is_still_there_is_judged_as_the_fleet_is(
    ready_database: str, tables: dict[str, Any], *, there: bool
) -> None:
    url = ready_database
    with closing(open_connection(url)) as connection:
        ingest = Ingest(connection)
        ingest.gpus(
            [GpuIdentity(uuid, "h1", at, H100, 80 * GIB) for at, uuid in enumerate(("GPU-a", "GPU-b"))]
        )
        ingest.gpu_samples([gpu_hour("GPU-a", at, 110.0, Activity.PARKED) for at in range(240)])
        ingest.gpu_samples([gpu_hour("GPU-b", at, 400.0) for at in range(241)])
        ingest.commit()
    while roll_up(make_engine(url), now_ms=T0 + 11 * DAY_MS).pending_left:
        pass
    settings = replace(settings_for(url), rules=parse(tables, "gpuwise.toml"))
    parked = replace(FINDING, rule_id="parked-model", cause="parked", subject=Subject("gpu", "GPU-a"))
    with opened(url) as session:
        assert verifications.is_still_there(session, settings, T0 + 11 * DAY_MS, parked, T0) is there
