"""R09: a queue is a broken promise, never a saving."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, SETTINGS, engine_hour, evidence, gpu, histogram
from serving_builders import fleet, judge, replica

from advisor.rules.overload import RULE, OverloadLimits
from core.evidence import EngineEvidence
from core.finding import Finding, Grade, NotEvaluated


def run(
    *engines: EngineEvidence, limits: OverloadLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines), limits)


def at_times(index: int, waiting: float, **more: Any) -> EngineEvidence:
    """Full, with a queue for eight hours a day."""
    hours = [
        engine_hour(
            i, running=200.0, kv_used=0.25, step_s=0.016, waiting=waiting if i % 24 < 8 else 0.0, **more
        )
        for i in range(FORTNIGHT_H)
    ]
    return replica(index, hours)


def test_fifty_requests_before_two_replicas_are_an_overload_and_no_saving() -> None:
    (finding,), none = run(at_times(1, 25.0), at_times(2, 25.0))
    assert not none
    assert finding.saving.is_empty
    assert (finding.no_figure or "").startswith("No figure, because")
    assert finding.evidence["pending_mean_worst_hour"] == 50.0
    assert finding.evidence["overloaded_hours"] == 14 * 8
    assert finding.evidence["replicas_needed_at_least"] >= 3
    assert finding.evidence["added_cost_usd_month"] >= 1825.0
    assert finding.cause == "replicas"
    assert finding.grade is Grade.A
    assert finding.state == "overloaded at times"


def test_forty_nine_are_not() -> None:
    assert run(at_times(1, 24.0), at_times(2, 25.0)) == ([], [])


def test_one_replica_that_alone_has_fifty_for_three_minutes_is_enough() -> None:
    burst = histogram((0.0, 3400.0), (60.0, 200.0))
    short = histogram((0.0, 3430.0), (60.0, 170.0))
    long_, brief = (
        replica(
            1, [replace(engine_hour(i, running=100.0, kv_used=0.2), waiting=w) for i in range(FORTNIGHT_H)]
        )
        for w in (burst, short)
    )
    assert len(run(long_)[0]) == 1
    assert run(brief) == ([], [])


def test_the_least_number_of_replicas_is_one_more_than_there_are() -> None:
    (finding,), _ = run(replica(1, running=8.0, waiting=60.0))
    assert finding.evidence["replicas_needed_at_least"] == 2


def test_a_queue_that_never_empties_may_be_a_batch_and_says_so() -> None:
    (finding,), _ = run(replica(1, running=200.0, kv_used=0.25, step_s=0.016, waiting=80.0))
    assert "offline batch" in finding.state
    assert finding.grade is Grade.B
    limits = OverloadLimits(ttft_limit_s=2.0)
    (sure,), _ = run(replica(1, running=200.0, kv_used=0.25, step_s=0.016, waiting=80.0), limits=limits)
    assert sure.state == "overloaded"


def test_a_queue_on_one_day_may_be_a_load_test_and_says_so() -> None:
    hours = [
        engine_hour(i, running=100.0, kv_used=0.2, waiting=80.0 if 328 <= i < 330 else 0.0)
        for i in range(FORTNIGHT_H)
    ]
    (finding,), _ = run(replica(1, hours))
    assert "load test" in finding.state
    assert finding.grade is Grade.B


def test_a_limit_that_is_reached_with_room_in_the_cache_comes_first() -> None:
    limited = {**SETTINGS, "max_num_seqs": "8"}
    (finding,), _ = run(replica(1, waiting=60.0, settings=limited))
    assert finding.cause == "configuration"
    assert "--max-num-seqs" in finding.title
    assert "small-batch" in finding.actions[0].text


def test_a_full_cache_is_named_as_the_cause() -> None:
    (finding,), _ = run(replica(1, running=60.0, waiting=60.0, kv_used=0.98, step_s=0.02))
    assert finding.cause == "kv"
    assert "--kv-cache-dtype fp8" in (finding.actions[0].command or "")


def test_a_slow_first_token_breaks_a_promise_only_with_a_queue() -> None:
    slow: dict[str, Any] = {"ttft_sum_s": 3000.0, "ttft_count": 1000.0}
    promise = OverloadLimits(ttft_limit_s=4.0)
    (finding,), _ = run(at_times(1, 2.0, **slow), limits=promise)
    assert finding.evidence["ttft_mean_worst_hour_s"] == pytest.approx(3.0)
    assert "first token took 3 s" in finding.because
    assert run(at_times(1, 0.0, **slow), limits=promise) == ([], [])
    assert run(at_times(1, 2.0, **slow), limits=OverloadLimits(ttft_limit_s=7.0)) == ([], [])
    assert run(at_times(1, 2.0, **slow)) == ([], [])


def test_an_overload_of_last_week_is_over() -> None:
    hours = [
        engine_hour(i, running=100.0, kv_used=0.2, waiting=80.0 if i < FORTNIGHT_H - 48 else 0.0)
        for i in range(FORTNIGHT_H)
    ]
    assert run(replica(1, hours)) == ([], [])


def test_a_well_filled_batch_without_a_queue_is_left_alone() -> None:
    assert run(replica(1, running=200.0, kv_used=0.5, step_s=0.018)) == ([], [])


def test_an_unpublished_queue_is_refused() -> None:
    base = replica(1)
    blind = replace(base, hours=tuple(replace(hour, waiting=histogram()) for hour in base.hours))
    found, (refusal,) = run(blind)
    assert not found
    assert refusal.missing == ("waiting_requests",)


def test_two_minutes_are_refused_and_ten_answer() -> None:
    assert run(replica(1, count=1, seconds=120.0, waiting=80.0))[1][0].missing == ("busy time",)
    assert len(run(replica(1, count=1, seconds=600.0, waiting=80.0))[0]) == 1


def test_replicas_that_are_gone_are_refused() -> None:
    gone = replica(1, count=FORTNIGHT_H - 96, waiting=80.0)
    found, (refusal,) = judge(RULE, evidence([gpu(uuid="GPU-1", host="node-1")], [gone]))
    assert not found
    assert refusal.missing == ("recent samples",)


def test_thin_coverage_is_refused() -> None:
    base = replica(1, waiting=80.0)
    holed = replace(base, hours=base.hours[::3])
    found, (refusal,) = run(holed)
    assert not found
    assert refusal.missing == ("samples",)


def test_a_fleet_without_engines_says_what_is_missing() -> None:
    assert judge(RULE, evidence([gpu()]))[1][0].missing == ("engine metrics",)
