"""R07: three causes told apart, gains with ranges, money only through whole replicas."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import (
    FORTNIGHT_H,
    PRICE,
    SETTINGS,
    START_MS,
    engine,
    engine_hour,
    evidence,
    found,
    gpu,
    gpu_hour,
)
from small_batch_builders import LIMITED, RULE, only, queued, replica, run

from advisor.engine import advise
from advisor.rules.small_batch import SmallBatchLimits
from core.evidence import EngineEvidence
from core.units import HOUR_MS


def test_a_queue_in_front_of_a_low_limit_is_configuration() -> None:
    finding = only(run(queued()))
    assert finding.cause == "configuration"
    assert finding.state == "configuration-limited"
    target = finding.evidence["target_batch"]
    assert 8 < target < 400
    assert f"--max-num-seqs {target}" in (finding.actions[0].command or "")
    assert finding.title == f"Raise --max-num-seqs of Llama-3.1-8B-Instruct on node-1:8000 from 8 to {target}"


def test_half_batch_and_gain_follow_the_formula() -> None:
    """By hand, advisor-rules 2.2: bf16 8.03 B parameters, context 500, one prompt token per generated one."""
    fixed = 1.08 * 2 * 8_030_261_248 / 3.35e12 + 2.0e-3
    each = 500 * 131_072 / 3.35e12 + 42e-6 + 1.35 * 2 * 8_030_261_248 * 2 / 989e12
    finding = only(run(queued()))
    target = finding.evidence["target_batch"]
    assert finding.evidence["half_batch"] == pytest.approx(fixed / each, rel=1e-4)
    gain = target * (fixed + 8 * each) / (8 * (fixed + target * each))
    assert finding.evidence["gain_p50"] == pytest.approx(gain, rel=1e-4)
    width = 1.1 * 0.085 * (1 - 8 / target)
    assert finding.evidence["gain_p10"] == pytest.approx((1 - width) * gain, rel=1e-4)
    assert target == int((5 * (fixed + each) - fixed) / each), "the knee comes before the KV cache is full"


def test_one_replica_has_no_money_figure_and_shows_dollars_per_million_tokens() -> None:
    finding = only(run(queued()))
    assert finding.saving.is_empty
    assert "one replica" in (finding.no_figure or "")
    now = finding.evidence["usd_per_million_tokens_now"]
    assert now == pytest.approx(1e6 * 2.50 / 3600 / (8 / 0.0075), rel=1e-6)
    assert finding.evidence["usd_per_million_tokens_then_p50"] == pytest.approx(
        now / finding.evidence["gain_p50"], rel=1e-4
    )


def test_two_replicas_become_one_and_save_its_gpu_to_the_cent() -> None:
    advice = run(replica(1), replica(2))
    stays, goes = sorted(found(advice, RULE), key=lambda finding: finding.subject.id)
    assert stays.saving.is_empty
    assert "1 of 2 replicas" in (stays.no_figure or "")
    assert goes.saving.cash_usd_month is not None
    assert round(goes.saving.cash_usd_month.p50, 2) == 1825.00
    assert round(goes.saving.cash_usd_month.p10, 2) == 1460.00
    assert advice.totals.cash_usd_month is not None
    assert round(advice.totals.cash_usd_month.p50, 2) == 1825.00, "no GPU is counted twice"


def test_half_an_hour_of_load_does_not_count_replicas() -> None:
    pair = [replica(i, count=1, seconds=1800.0) for i in (1, 2)]
    cards = [gpu([gpu_hour(seconds=1800.0)], uuid=f"GPU-{i}", host=f"node-{i}") for i in (1, 2)]
    advice = advise(evidence(cards, pair))
    assert all(finding.saving.is_empty for finding in found(advice, RULE))
    assert "30 minutes of load" in (found(advice, RULE)[0].no_figure or "")
    assert found(advice, RULE)[0].evidence["gain_p50"] > 5, "the gain itself is still told"


def test_a_gain_too_small_for_a_whole_replica_saves_nothing() -> None:
    near = {"running": 60.0, "kv_used": 0.075, "settings": {**SETTINGS, "max_num_seqs": "60"}}
    limits = SmallBatchLimits(itl_limit_s=0.0092)
    for finding in found(run(replica(1, **near), replica(2, **near), limits=limits), RULE):
        assert finding.saving.is_empty
        assert "2 replicas stay 2" in (finding.no_figure or "")


def test_replicas_on_reserved_gpus_free_capacity_and_no_cash() -> None:
    price = replace(PRICE, billing="reserved")
    gpus = [replace(gpu(uuid=f"GPU-{i}", host=f"node-{i}"), price=price) for i in (1, 2)]
    goes = found(advise(evidence(gpus, [replica(1), replica(2)])), RULE)[0]
    assert goes.saving.cash_usd_month is None
    assert goes.saving.capacity_gpu_h_month is not None
    assert "reserved" in (goes.no_figure or "")


def test_no_queue_is_demand_and_raising_the_limit_is_not_advised() -> None:
    finding = only(run(queued(waiting=0.0)))
    assert finding.cause == "demand"
    assert "does nothing" in finding.because
    assert all("--max-num-seqs" not in (action.command or "") for action in finding.actions)


def test_demand_over_three_replicas_fits_one() -> None:
    advice = run(*(replica(i, waiting=0.0, settings=SETTINGS) for i in (1, 2, 3)))
    saved = [f for f in found(advice, RULE) if f.saving.cash_usd_month is not None]
    assert len(saved) == 2
    assert all(f.evidence["replicas_then"] == 1 for f in saved)


def by_the_clock(index: int, quiet_h: int, **more: Any) -> EngineEvidence:
    """Batch 4 in the first hours of every day, batch 200 in the others."""
    hours = [
        engine_hour(i, running=4.0, kv_used=0.005)
        if i % 24 < quiet_h
        else engine_hour(i, running=200.0, kv_used=0.25, step_s=0.016)
        for i in range(FORTNIGHT_H)
    ]
    return engine(hours, name=f"node-{index}:8000/0", uuid=f"GPU-{index}", **more)


@pytest.mark.parametrize(
    ("count", "quiet_h", "settings"),
    [(4, 7, SETTINGS), (4, 18, SETTINGS), (8, 18, {**SETTINGS, "max_num_seqs": "200"})],
)
def test_no_replica_falls_away_that_the_busy_hours_of_the_day_need(
    count: int, quiet_h: int, settings: dict[str, str]
) -> None:
    advice = run(*(by_the_clock(i, quiet_h, settings=settings) for i in range(count)))
    findings = found(advice, RULE)
    assert len(findings) == count
    for finding in findings:
        assert finding.saving.is_empty
        assert finding.evidence["replicas_then"] == count
        assert finding.evidence["running_p99_all_replicas"] == 200 * count
        assert finding.title.startswith("Scale ")
        assert f"{200 * count} requests at once" in (finding.no_figure or "")


def test_replicas_that_are_full_all_day_keep_the_quiet_ones_they_may_need() -> None:
    quiet = [replica(i, waiting=0.0, settings=SETTINGS) for i in (1, 2)]
    full = [replica(i, running=400.0, kv_used=0.5, waiting=0.0, settings=SETTINGS) for i in (3, 4)]
    findings = found(run(*quiet, *full), RULE)
    assert len(findings) == 2
    assert all(finding.saving.is_empty for finding in findings)
    assert all(finding.evidence["replicas_now"] == 4 for finding in findings)


def test_a_raised_limit_drops_no_replica_that_its_busiest_time_needs() -> None:
    """A limit of 8 in the night, as a plateau under a queue; by day batch 200 at 12 times the rate."""
    hours = [
        engine_hour(i, running=8.0, waiting=50.0, kv_used=0.01)
        if i % 24 < 20
        else engine_hour(i, running=200.0, kv_used=0.25, step_s=0.016)
        for i in range(FORTNIGHT_H)
    ]
    findings = found(run(*(engine(hours, name=f"node-{i}:8000/0", uuid=f"GPU-{i}") for i in (1, 2))), RULE)
    assert [finding.cause for finding in findings] == ["configuration"] * 2
    assert all(finding.saving.is_empty for finding in findings)


def test_demand_that_needs_every_replica_saves_nothing() -> None:
    advice = run(*(replica(i, waiting=0.0) for i in (1, 2)), limits=SmallBatchLimits(itl_limit_s=0.0075))
    assert all(finding.saving.is_empty for finding in found(advice, RULE))


def test_a_full_kv_cache_is_not_configuration() -> None:
    finding = only(run(queued(kv_used=0.99, settings={**LIMITED, "num_gpu_blocks": "300"})))
    assert finding.cause == "kv"
    assert "kv-cache-dtype" in (finding.actions[0].command or "")
    assert finding.saving.is_empty


def test_a_full_kv_cache_without_a_queue_is_not_a_lack_of_requests() -> None:
    finding = only(run(queued(waiting=0.0, kv_used=0.99, settings={**SETTINGS, "num_gpu_blocks": "300"})))
    assert finding.cause == "kv"
    assert "too few" not in finding.title


def test_no_finding_ever_asks_for_a_bigger_gpu_because_memory_is_full() -> None:
    for each in (
        queued(),
        queued(waiting=0.0),
        queued(kv_used=0.99, settings={**LIMITED, "num_gpu_blocks": "300"}),
    ):
        finding = only(run(each))
        words = " ".join(
            [finding.title, finding.because, *(action.text for action in finding.actions)]
        ).lower()
        assert "bigger" not in words
        assert "larger gpu" not in words


@pytest.mark.parametrize(("kv_used", "cause"), [(0.80, "configuration"), (0.93, "kv")])
def test_between_the_two_the_nearer_cause_is_named_with_a_note(kv_used: float, cause: str) -> None:
    """A batch of 40 at its limit; the pool holds sequences of different ages, so a few more would fit."""
    settings = {**SETTINGS, "max_num_seqs": "40", "num_gpu_blocks": "1500"}
    finding = only(run(queued(running=40.0, kv_used=kv_used, settings=settings)))
    assert finding.cause == cause
    assert "close to each other" in finding.because


def test_a_limit_that_could_hardly_rise_before_the_cache_is_full_is_kv() -> None:
    settings = {**SETTINGS, "max_num_seqs": "40", "num_gpu_blocks": "1500"}
    finding = only(run(queued(running=40.0, kv_used=0.86, settings=settings)))
    assert finding.cause == "kv"
    assert "could rise to" in finding.because


def test_unknown_weights_fall_back_on_the_measured_step() -> None:
    blind = {key: value for key, value in LIMITED.items() if key not in {"quantization", "dtype"}}
    finding = only(run(queued(settings=blind)))
    assert finding.evidence["step_basis"] in {"anchored", "formula"}
    assert finding.cause == "configuration"


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        ("vllm", "--max-num-seqs"),
        ("sglang", "--max-running-requests"),
        ("tgi", "--max-batch-size"),
        ("trtllm", "--max_batch_size"),
        ("llamacpp", "-np"),
    ],
)
def test_every_engine_gets_its_own_flag(kind: str, flag: str) -> None:
    each = queued()
    finding = only(run(replace(each, identity=replace(each.identity, kind=kind))))
    assert f"{flag} {finding.evidence['target_batch']}" in (finding.actions[0].command or "")
    assert flag in finding.title


def test_the_chart_of_a_long_window_shows_the_batch_against_b_half() -> None:
    finding = only(run(queued()))
    assert finding.chart["unit"] == "requests"
    assert len(finding.chart["series"]) == FORTNIGHT_H
    assert finding.chart["threshold"] == pytest.approx(finding.evidence["half_batch"], rel=1e-6)


def test_the_hours_claimed_are_those_in_which_the_engine_was_seen() -> None:
    """GPUs watched for two weeks, engines for the second one: half of the month is known."""
    half = FORTNIGHT_H // 2
    late = [
        replace(each, hours=tuple(h for h in each.hours if h.hour_ms >= START_MS + half * HOUR_MS))
        for each in (replica(1), replica(2))
    ]
    advice = advise(evidence([gpu(uuid=f"GPU-{i}", host=f"node-{i}") for i in (1, 2)], late))
    (saved,) = [f.saving for f in found(advice, RULE) if f.saving.cash_usd_month is not None]
    assert saved.cash_usd_month is not None
    assert round(saved.cash_usd_month.p50, 2) == 912.50
