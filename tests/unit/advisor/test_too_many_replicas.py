"""R08: replicas are integers, counted for the peak; nothing is saved while their number stays."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, engine_hour, evidence, gpu, histogram
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_builders import fleet, judge, replica

from advisor import quiet_hours
from advisor.engine import advise
from advisor.rules import small_batch
from advisor.rules.too_many_replicas import RULE, TooManyReplicasLimits
from advisor.serving_checks import replica_groups
from core.evidence import EngineEvidence
from core.finding import Finding, Grade, NotEvaluated

LIMITED = {**SETTINGS, "max_num_seqs": "256"}


def run(
    *engines: EngineEvidence, limits: TooManyReplicasLimits | None = None
) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, fleet(*engines), limits)


def test_three_quiet_replicas_become_one_and_save_two_gpus_to_the_cent() -> None:
    (finding,), none = run(*(replica(i, settings=LIMITED) for i in (1, 2, 3)))
    assert not none
    assert finding.evidence["replicas_now"] == 3
    assert finding.evidence["replicas_then"] == 1
    assert finding.evidence["load_tokens_per_s_p99"] == pytest.approx(3 * 8 / 0.0075)
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == 3650.00
    assert finding.saving.capacity_gpu_h_month is not None
    assert round(finding.saving.capacity_gpu_h_month.p50, 2) == 1460.00
    assert finding.gpu_uuids == ("GPU-2", "GPU-3")
    assert finding.stage == "consolidate"
    assert finding.evidence["enova_fewer_hours_ratio"] == 1.0
    assert finding.title.endswith("with 1 of 3 replicas: stop node-2:8000 and node-3:8000")
    assert finding.grade is Grade.C


def test_the_rate_planned_for_is_r08s() -> None:
    """By hand: X at the published limit of 40 from the rate of 8, over the law of 2.2."""
    small = {**SETTINGS, "max_num_seqs": "40"}
    fixed = 1.08 * 2 * 8_030_261_248 / 3.35e12 + 2.0e-3
    each = 500 * 131_072 / 3.35e12 + 42e-6 + 1.35 * 2 * 8_030_261_248 * 2 / 989e12
    (finding,), _ = run(*(replica(i, settings=small) for i in range(1, 7)))
    rate = 8 / 0.0075 * (40 / (fixed + 40 * each)) / (8 / (fixed + 8 * each))
    assert finding.evidence["replica_tokens_per_s_at_slo_p50"] == pytest.approx(rate, rel=1e-6)
    assert finding.evidence["replica_batch_at_slo"] == 40
    needed = -(-6 * 8 / 0.0075 // (0.7 * rate))
    assert finding.evidence["replicas_then"] == needed == 3


def test_replicas_that_the_peak_needs_are_left_alone() -> None:
    """Two replicas near their limit all day: n is unchanged, and the quiet test does not fire."""
    busy: dict[str, Any] = {"running": 200.0, "kv_used": 0.25, "step_s": 0.016, "settings": LIMITED}
    found, none = run(*(replica(i, **busy) for i in (1, 2)))
    assert not found
    assert not none


def by_the_clock(index: int, busy_h: int) -> EngineEvidence:
    hours = [
        engine_hour(i, running=200.0, kv_used=0.25, step_s=0.016)
        if i % 24 < busy_h
        else engine_hour(i, running=4.0, kv_used=0.005)
        for i in range(FORTNIGHT_H)
    ]
    return replica(index, hours, settings=LIMITED)


def test_quiet_nights_before_full_days_save_nothing_and_say_why() -> None:
    (finding,), _ = run(*(by_the_clock(i, 8) for i in (1, 2)))
    assert finding.cause == "quiet-hours"
    assert finding.saving.is_empty
    assert "2 replicas stay 2" in (finding.no_figure or "")
    assert finding.evidence["enova_fewer_hours_ratio"] == pytest.approx(2 / 3, abs=1e-3)


def test_short_quiet_hours_are_not_worth_a_word() -> None:
    found, none = run(*(by_the_clock(i, 20) for i in (1, 2)))
    assert not found
    assert not none


def test_a_single_replica_cannot_become_fewer() -> None:
    assert run(replica(1)) == ([], [])


def test_a_queue_means_that_nobody_can_be_spared() -> None:
    assert run(*(replica(i, waiting=5.0, settings=LIMITED) for i in (1, 2)))[0] == []


def test_one_that_must_survive_a_failure_stays() -> None:
    found, _ = run(
        *(replica(i, settings=LIMITED) for i in (1, 2)), limits=TooManyReplicasLimits(min_replicas=2)
    )
    assert all(finding.saving.is_empty for finding in found)
    (finding,), _ = run(
        *(replica(i, settings=LIMITED) for i in (1, 2, 3)), limits=TooManyReplicasLimits(min_replicas=2)
    )
    assert finding.evidence["replicas_then"] == 2


def test_a_week_of_data_is_refused() -> None:
    found, (refusal,) = run(*(replica(i, count=168) for i in (1, 2)))
    assert not found
    assert refusal.missing == ("time",)
    assert "14 days" in refusal.why


def test_gaps_are_refused() -> None:
    holed = [replace(each, hours=each.hours[::2]) for each in (replica(1), replica(2))]
    found, (refusal,) = run(*holed)
    assert not found
    assert refusal.missing == ("samples",)


def test_a_gap_of_twenty_minutes_changes_nothing() -> None:
    one = replica(1, settings=LIMITED)
    hours = tuple(
        engine_hour(index, kv_used=0.01, seconds=2400.0) if index == 100 else hour
        for index, hour in enumerate(one.hours)
    )
    gapped, _ = run(replica(1, hours, settings=LIMITED), replica(2, settings=LIMITED))
    whole, _ = run(one, replica(2, settings=LIMITED))
    assert gapped[0].evidence["replicas_then"] == whole[0].evidence["replicas_then"]


def test_a_replica_that_is_seen_no_more_refuses_the_group() -> None:
    gone = replica(2, count=FORTNIGHT_H - 96)
    cards = [gpu(uuid=f"GPU-{i}", host=f"node-{i}") for i in (1, 2)]
    found, (refusal,) = judge(RULE, evidence(cards, [replica(1), gone]))
    assert not found
    assert refusal.missing == ("recent samples",)


def test_engines_on_one_gpu_are_refused() -> None:
    pair = [replica(1), replica(2, uuid="GPU-1", name="node-1:8001/0")]
    found, (refusal,) = run(*pair)
    assert not found
    assert refusal.missing == ("a GPU of its own",)


def test_an_unpublished_queue_is_refused() -> None:
    blind = [
        replace(each, hours=tuple(replace(hour, waiting=histogram()) for hour in each.hours))
        for each in (replica(1), replica(2))
    ]
    assert run(*blind)[1][0].missing == ("waiting_requests",)


def test_engines_without_a_name_are_not_taken_for_replicas_of_each_other() -> None:
    nameless = [
        replace(each, identity=replace(each.identity, model=None)) for each in (replica(1), replica(2))
    ]
    found, (refusal,) = run(*nameless)
    assert not found
    assert refusal.missing == ("the model's name",)


def test_different_models_are_not_replicas() -> None:
    assert run(replica(1), replica(2, model="Qwen/Qwen3-8B")) == ([], [])


def test_reserved_gpus_free_capacity_and_no_cash() -> None:
    pair = fleet(*(replica(i, settings=LIMITED) for i in (1, 2)), price=replace(PRICE, billing="reserved"))
    (finding,), _ = judge(RULE, pair)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "reserved" in (finding.no_figure or "")


def test_two_of_eight_gpus_of_a_node_free_capacity_and_no_cash() -> None:
    price = replace(PRICE, gpus_per_unit=8)
    cards = [gpu(uuid=f"GPU-{i}", host="node-1", price=price, host_gpu_count=8) for i in range(1, 9)]
    pair = [replica(i, settings=LIMITED, name=f"node-1:800{i}/0") for i in (1, 2)]
    (finding,), _ = judge(RULE, evidence(cards, pair))
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "billed with its host" in (finding.no_figure or "")


def test_small_batch_and_replicas_do_not_count_a_gpu_twice() -> None:
    advice = advise(fleet(*(replica(i, settings=LIMITED) for i in (1, 2))), [small_batch.RULE, RULE])
    assert {"small-batch", "too-many-replicas"} <= {f.rule_id for f in advice.findings}
    assert advice.totals.cash_usd_month is not None
    assert advice.totals.cash_usd_month.p50 == pytest.approx(1825.0)


def test_of_unequal_replicas_the_one_that_small_batch_names_goes_first() -> None:
    """The full ones come last by name; were one of them named, two rules would free two GPUs where one can go."""
    small = [replica(i, settings=LIMITED) for i in (1, 2)]
    full = [replica(i, running=80.0, kv_used=0.1, step_s=0.012, settings=LIMITED) for i in (3, 4)]
    advice = advise(fleet(*small, *full), [small_batch.RULE, RULE])
    (finding,) = [f for f in advice.findings if f.rule_id == "too-many-replicas"]
    assert finding.evidence["replicas_then"] == 3
    assert finding.gpu_uuids == ("GPU-2",)
    assert advice.totals.cash_usd_month is not None
    assert advice.totals.cash_usd_month.p50 == pytest.approx(1825.0)


def test_a_fleet_without_engines_says_what_is_missing() -> None:
    _, (refusal,) = judge(RULE, evidence([gpu()]))
    assert refusal.missing == ("engine metrics",)


@settings(max_examples=20)
@given(st.floats(1, 200), st.integers(2, 5))
def test_at_least_one_stays_and_the_saving_is_that_of_whole_gpus(running: float, count: int) -> None:
    step = 0.007 + 0.0001 * running
    cases = [
        replica(i, running=running, step_s=step, kv_used=running * 500 / 400_000, settings=LIMITED)
        for i in range(count)
    ]
    for finding in run(*cases)[0]:
        then = finding.evidence["replicas_then"]
        assert 1 <= then <= count
        if finding.saving.cash_usd_month is not None:
            assert finding.saving.cash_usd_month.p50 == pytest.approx((count - then) * 1825.0)


def test_hours_at_the_thresholds_are_added_up_in_the_replicas_own_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Means on a threshold but for the last bit: chunks add them up in another order, and one fleet must have one answer."""
    read: list[str] = []

    def outlines(engine: EngineEvidence) -> Any:
        read.append(engine.identity.engine)
        return engine.days

    monkeypatch.setattr(quiet_hours, "outlines_of", outlines)
    near = [replica(i, running=4.0, kv_used=0.1, settings=LIMITED) for i in (1, 2, 3)]
    far = [replica(i, settings=LIMITED) for i in (1, 2, 3)]
    whole = fleet(*near)
    quiet_hours.quiet_ratio(whole, replica_groups(whole)[0])
    assert len(read) == 3
    read.clear()
    whole = fleet(*far)
    assert quiet_hours.quiet_ratio(whole, replica_groups(whole)[0]) == 1.0
    assert not read


def test_the_hours_of_chunks_are_those_of_the_fleet() -> None:
    engines = [by_the_clock(i, 8 + i) for i in (1, 2, 3)]
    together: quiet_hours.Groups = {}
    for engine in engines:
        quiet_hours.join(together, quiet_hours.together(fleet(engine)))
    ((_, days),) = together.items()
    ((_, at_once),) = quiet_hours.together(fleet(*engines)).items()
    assert days == at_once
