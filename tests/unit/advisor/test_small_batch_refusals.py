"""R07: what it leaves alone, and what it refuses to judge."""

from dataclasses import replace

import pytest
from advice_builders import (
    FORTNIGHT_H,
    SETTINGS,
    engine,
    engine_hour,
    evidence,
    found,
    gpu,
    gpu_hours,
    histogram,
    refused,
)
from small_batch_builders import LIMITED, RULE, only, queued, replica, run

from advisor.engine import advise
from advisor.rules.small_batch import SmallBatchLimits
from core.evidence import Evidence
from core.finding import Advice, Grade


def test_a_queue_below_an_unpublished_limit_is_refused() -> None:
    spread = histogram((2.0, 1200.0), (8.0, 1200.0), (20.0, 1200.0))
    unclear = queued(running=8.0, settings=SETTINGS)
    unclear = replace(unclear, hours=tuple(replace(hour, running=spread) for hour in unclear.hours))
    advice = run(unclear)
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("max_num_seqs",)


def test_a_plateau_under_a_queue_stands_for_an_unpublished_limit() -> None:
    finding = only(run(queued(settings=SETTINGS)))
    assert finding.cause == "configuration"
    assert "about 8" in finding.title
    assert finding.evidence["batch_limit_basis"].startswith("seen")


def test_a_queue_that_is_not_published_is_refused() -> None:
    blind = queued()
    blind = replace(blind, hours=tuple(replace(hour, waiting=histogram()) for hour in blind.hours))
    (refusal,) = refused(run(blind), RULE)
    assert refusal.missing == ("waiting_requests",)


def test_a_well_filled_batch_is_left_alone() -> None:
    advice = run(queued(running=200.0, kv_used=0.5, settings=SETTINGS))
    assert not found(advice, RULE)
    assert not refused(advice, RULE)


def test_a_small_batch_in_a_tenth_of_busy_time_is_left_alone() -> None:
    busy = [engine_hour(i, running=200.0, kv_used=0.5, waiting=50.0) for i in range(FORTNIGHT_H)]
    for index in range(0, FORTNIGHT_H, 10):
        busy[index] = engine_hour(index, running=8.0, waiting=50.0)
    assert not found(run(engine(busy)), RULE)


def test_a_latency_promise_that_the_batch_already_fills_silences_the_rule() -> None:
    assert not found(run(queued(), limits=SmallBatchLimits(itl_limit_s=0.0070)), RULE)


def test_four_minutes_of_load_are_refused() -> None:
    advice = run(queued(count=1, seconds=240.0))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("busy time",)


def test_half_an_hour_of_load_answers_one_grade_lower() -> None:
    finding = only(run(queued(count=1, seconds=1800.0)))
    assert finding.grade is Grade.D
    assert "30 minutes of data, 14 days are the floor" in finding.confidence
    assert finding.chart["kind"] == "profile"


def test_thin_coverage_is_refused() -> None:
    whole = queued()
    holed = replace(whole, hours=whole.hours[::2])
    advice = run(holed)
    assert not found(advice, RULE)
    assert refused(advice, RULE)[0].missing == ("samples",)


def test_an_unknown_model_without_a_fit_is_refused() -> None:
    unknown = queued()
    advice = run(replace(unknown, identity=replace(unknown.identity, model="in-house-9b")))
    assert not found(advice, RULE)
    assert "model architecture" in refused(advice, RULE)[0].missing


def test_an_unknown_model_with_a_site_fit_is_judged() -> None:
    """t = 7 ms + 0.1 ms·B seen at four batch sizes: no catalogue needed for B_half = 70."""
    hours = []
    for index, batch in enumerate((4.0, 8.0, 12.0, 16.0) * 84):
        hours.append(
            engine_hour(index, running=batch, waiting=0.0, kv_used=0.01, step_s=0.007 + 0.0001 * batch)
        )
    finding = only(run(engine(hours, model="in-house-9b")))
    assert finding.evidence["step_basis"] == "fit"
    assert finding.evidence["half_batch"] == pytest.approx(70, rel=1e-6)
    assert finding.grade is Grade.B


def test_a_shared_gpu_is_refused() -> None:
    pair = [queued(), replace(queued(), identity=replace(queued().identity, engine="node-1:8001/0"))]
    advice = advise(evidence([gpu()], pair))
    assert not found(advice, RULE)
    assert {refusal.missing for refusal in refused(advice, RULE)} == {("a GPU of its own",)}


def test_a_fleet_without_engines_says_what_is_missing() -> None:
    fleet: Evidence = evidence([gpu(gpu_hours(FORTNIGHT_H))])
    (refusal,) = refused(advise(fleet), RULE)
    assert refusal.subject.kind == "fleet"
    assert refusal.missing == ("engine metrics",)


def silent_for(hours: int) -> Advice:
    """Two replicas whose samples end ``hours`` before those of the GPUs."""
    pair = [replica(i, count=FORTNIGHT_H - hours) for i in (1, 2)]
    return advise(evidence([gpu(uuid=f"GPU-{i}", host=f"node-{i}") for i in (1, 2)], pair))


def test_an_engine_that_is_seen_no_more_is_refused() -> None:
    advice = silent_for(96)
    assert not found(advice, RULE)
    assert {refusal.missing for refusal in refused(advice, RULE)} == {("recent samples",)}
    assert "4 days" in refused(advice, RULE)[0].why


def test_two_hours_of_silence_are_no_end() -> None:
    assert len(found(silent_for(2), RULE)) == 2


def test_a_limit_that_was_raised_four_days_ago_is_not_raised_again() -> None:
    hours = [
        engine_hour(i, waiting=50.0, kv_used=0.01)
        if i < FORTNIGHT_H - 96
        else engine_hour(i, running=300.0, waiting=50.0, kv_used=0.4, step_s=0.02)
        for i in range(FORTNIGHT_H)
    ]
    assert not found(run(engine(hours)), RULE)


def test_a_cause_that_has_changed_of_late_is_refused() -> None:
    hours = [
        engine_hour(i, waiting=50.0 if i < FORTNIGHT_H - 96 else 0.0, kv_used=0.01)
        for i in range(FORTNIGHT_H)
    ]
    advice = run(engine(hours, settings=LIMITED))
    assert not found(advice, RULE)
    (refusal,) = refused(advice, RULE)
    assert refusal.missing == ("steady recent work",)
    assert "configuration" in refusal.why
    assert "demand" in refusal.why


def test_a_short_load_across_two_hours_is_judged_on_its_work_and_not_on_its_last_minute() -> None:
    hours = [
        engine_hour(0, waiting=50.0, kv_used=0.01, seconds=900.0),
        engine_hour(1, running=2.0, kv_used=0.01, seconds=60.0),
    ]
    assert only(run(engine(hours, settings=LIMITED))).cause == "configuration"
