"""R21: a plan that names the cards it frees, keeps replicas apart, and counts only what a billing unit gives back."""

from dataclasses import replace
from typing import Any

import pytest
from advice_builders import FORTNIGHT_H, PRICE, SETTINGS, evidence, gpu, gpu_hour, use
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_builders import judge, replica

from advisor.engine import advise
from advisor.rules.shareable_gpu import RULE
from advisor.tenants import ShareableGpuLimits, week_of
from core.activity import Activity
from core.evidence import GpuEvidence
from core.finding import Finding, Grade, NotEvaluated, Risk
from core.hours import GpuHour
from core.units import DAY_MS, GIB, HOUR_MS


def is_day(hour: GpuHour) -> bool:
    return 8 <= hour.hour_ms % DAY_MS // HOUR_MS < 18


def card(
    index: int,
    busy: float | None = 0.1,
    *,
    gib: float = 20.0,
    day: float | None = None,
    count: int = FORTNIGHT_H,
    activity: Activity = Activity.BUSY,
    **more: Any,
) -> GpuEvidence:
    """A GPU busy at ``busy``, at ``day`` between 8 and 18 o'clock."""
    plain = [
        gpu_hour(at, activity, memory_used_bytes=gib * GIB, memory_used_max_bytes=gib * GIB, busy_ratio=busy)
        for at in range(count)
    ]
    hours = plain if day is None else [replace(h, busy_ratio=day if is_day(h) else busy) for h in plain]
    fields: dict[str, Any] = {
        "uuid": f"GPU-{index}",
        "host": f"node-{index}",
        "uses": (use(key=f"{index}:1", name=f"notebook-{index}", host=f"node-{index}", user="ana"),),
        **more,
    }
    return gpu(hours, **fields)


def run(*cards: GpuEvidence, **more: Any) -> tuple[list[Finding], list[NotEvaluated]]:
    return judge(RULE, evidence(cards, **more))


def test_three_quiet_gpus_become_one_and_the_freed_ones_are_named() -> None:
    (finding,), none = run(card(1), card(2), card(3))
    assert not none
    assert finding.evidence["freed_gpu_uuids"] == ["GPU-2", "GPU-3"]
    assert finding.title == "Share GPU 0 on node-1 and free GPU 0 on node-2 and GPU 0 on node-3"
    assert finding.gpu_uuids == ("GPU-2", "GPU-3")
    assert finding.subject.id == "GPU-1"
    assert finding.evidence["memory_needed_bytes"] == 60 * GIB
    assert finding.evidence["activity_peak_ratio"] == pytest.approx(0.3)
    assert finding.grade is Grade.C
    assert finding.chart["threshold"] == 0.7


def test_figures_are_those_of_the_freed_gpus_to_the_cent() -> None:
    (finding,), _ = run(card(1), card(2))
    assert finding.saving.cash_usd_month is not None
    assert round(finding.saving.cash_usd_month.p50, 2) == 1825.00
    assert finding.saving.capacity_gpu_h_month is not None
    assert round(finding.saving.capacity_gpu_h_month.p50, 2) == 730.00
    assert finding.saving.energy_kwh_month is None
    assert finding.saving.cash_usd_month.p10 == pytest.approx(1825.0 * 0.8)


def test_a_plan_that_only_just_fits_is_not_certain() -> None:
    (finding,), _ = run(card(1, gib=33), card(2, gib=33))
    assert finding.saving.is_empty
    assert "No capacity figure, because it may save nothing: 0.0 GPU-h to" in (finding.no_figure or "")


def test_slices_are_named_where_the_tenants_fit_them() -> None:
    (finding,), _ = run(card(1), card(2, gib=8))
    assert finding.evidence["mig_profiles"] == ["3g.40gb", "1g.10gb"]
    commands = [action.command for action in finding.actions]
    assert "nvidia-smi -i GPU-1 -mig 1" in commands
    assert "nvidia-smi mig -i GPU-1 -cgi 3g.40gb,1g.10gb -C" in commands
    assert finding.risk is Risk.MEDIUM


def test_a_card_without_slices_shares_by_mps_and_strangers_make_that_risky() -> None:
    pair = [replace(card(i), gpu_key="L40S") for i in (1, 2)]
    (finding,), _ = run(*pair)
    assert finding.evidence.get("mig_profiles") is None
    assert any(action.command == "nvidia-cuda-mps-control -d" for action in finding.actions)
    assert finding.risk is Risk.MEDIUM
    other = replace(pair[1], uses=(use(key="2:1", name="b", host="node-2", user="bo"),))
    assert run(pair[0], other)[0][0].risk is Risk.HIGH


def test_healthy_saturated_gpus_are_left_alone() -> None:
    assert run(card(1, 0.95), card(2, 0.95)) == ([], [])


def test_memory_that_does_not_fit_together_stays_apart() -> None:
    assert run(card(1, gib=40), card(2, gib=40)) == ([], [])


def test_peaks_that_come_together_stay_apart_and_others_share() -> None:
    assert run(card(1, 0.02, day=0.5), card(2, 0.02, day=0.5)) == ([], [])
    night = card(2, 0.45, day=0.02)
    night = replace(
        night, hours=tuple(replace(h, busy_ratio=0.02 if is_day(h) else 0.45) for h in night.hours)
    )
    (finding,), _ = run(card(1, 0.02, day=0.5), night)
    assert finding.evidence["activity_peak_ratio"] == pytest.approx(0.52)


def test_cards_of_another_model_are_no_place_to_go() -> None:
    assert run(card(1), replace(card(2), gpu_key="A100-SXM4-80GB")) == ([], [])


def quiet_replica(index: int, **more: Any) -> Any:
    return replica(
        index,
        **{"running": 1.0, "kv_used": 0.00125, "settings": {**SETTINGS, "max_model_len": "4096"}, **more},
    )


def test_replicas_of_one_model_share_no_card() -> None:
    cards = [card(1, gib=72), card(2, gib=72)]
    pair = [quiet_replica(1), quiet_replica(2)]
    assert judge(RULE, evidence(cards, pair))[0] == []
    (finding,), _ = judge(RULE, evidence(cards, [pair[0], quiet_replica(2, model="Qwen/Qwen3-8B")]))
    assert finding.evidence["tenant_memory_held_bytes"] == [72 * GIB] * 2
    assert sum(finding.evidence["tenant_memory_bytes"]) < 0.85 * 80 * GIB
    assert any("--gpu-memory-utilization" in (action.command or "") for action in finding.actions)


def test_an_engine_whose_need_is_not_known_counts_with_what_it_holds() -> None:
    cards = [card(1, gib=72), card(2, gib=10)]
    assert judge(RULE, evidence(cards, [quiet_replica(1, model="acme/own")]))[0] == []


def test_ranks_of_a_job_and_of_an_engine_stay_where_they_are() -> None:
    whole = [use("pod", "p", name="train", host="node-1")]
    ranks = [card(i, host="node-1", uses=tuple(whole)) for i in (1, 2)]
    found, refused = run(*ranks)
    assert not found
    assert {item.missing for item in refused} == {("a workload on one GPU",)}
    split = replace(quiet_replica(1), gpu_uuids=("GPU-1", "GPU-2"))
    assert judge(RULE, evidence([card(1), card(2)], [split]))[0] == []


def test_starved_and_spinning_jobs_are_not_offered() -> None:
    for kind in (Activity.STARVED, Activity.SPINNING):
        found, refused = run(card(1, activity=kind), card(2))
        assert not found
        assert refused[0].missing == ("a job that is not held up",)


def test_idle_gpus_are_left_to_the_rules_on_idle_gpus() -> None:
    assert run(card(1, 0.0, activity=Activity.PARKED), card(2)) == ([], [])
    assert run(card(1, 0.0, activity=Activity.EMPTY, gib=0), card(2)) == ([], [])


def test_thin_data_is_refused() -> None:
    assert {item.missing for item in run(card(1, count=100), card(2, count=100))[1]} == {("time",)}
    holed = [replace(each, hours=each.hours[::2]) for each in (card(1), card(2))]
    assert {item.missing for item in run(*holed)[1]} == {("samples",)}
    gone = replace(card(2), last_sample_ms=card(2).last_sample_ms - 48 * HOUR_MS)
    assert run(card(1), gone)[1][0].missing == ("recent samples",)


def test_unknown_is_never_room() -> None:
    dark = card(1, None, activity=Activity.UNKNOWN)
    found, refused = run(dark, card(2))
    assert not found
    assert refused[0].missing == ("sm_active_ratio", "busy_ratio")
    no_memory = card(1)
    hours = tuple(replace(h, memory_used_bytes=None, memory_used_max_bytes=None) for h in no_memory.hours)
    assert run(replace(no_memory, hours=hours), card(2))[1][0].missing == ("memory_used_bytes",)
    nowhere = replace(card(1), identity=replace(card(1).identity, host=None))
    assert run(nowhere, card(2))[1][0].missing == ("host", "GPU model")


def test_a_mig_slice_is_no_card() -> None:
    assert run(card(1, uuid="MIG-1"), card(2)) == ([], [])


def test_a_gap_of_twenty_minutes_changes_nothing() -> None:
    one = card(1)
    hours = tuple(replace(h, covered_s=2400.0) if at == 100 else h for at, h in enumerate(one.hours))
    assert len(run(replace(one, hours=hours), card(2))[0]) == 1


def test_reserved_gpus_and_parts_of_a_node_free_capacity_and_no_cash() -> None:
    reserved = [replace(card(i), price=replace(PRICE, billing="reserved")) for i in (1, 2)]
    (finding,), _ = run(*reserved)
    assert finding.saving.cash_usd_month is None
    assert finding.saving.capacity_gpu_h_month is not None
    assert "reserved" in (finding.no_figure or "")
    node = replace(PRICE, gpus_per_unit=8)
    part = [card(i, host="node-1", price=node, host_gpu_count=8) for i in (1, 2)]
    (finding,), _ = run(*part)
    assert finding.saving.cash_usd_month is None
    assert "billed with its host" in (finding.no_figure or "")


def test_totals_never_exceed_the_spend() -> None:
    advice = advise(evidence([card(i) for i in range(1, 7)]), [RULE])
    assert advice.totals.cash_usd_month is not None
    assert advice.totals.spend_usd_month is not None
    assert advice.totals.cash_usd_month.p90 <= advice.totals.spend_usd_month


def test_an_hour_of_the_week_that_was_never_seen_counts_as_the_highest() -> None:
    week = week_of([gpu_hour(0, busy_ratio=0.4), gpu_hour(1, busy_ratio=0.1)])
    assert sorted(set(week)) == [0.1, 0.4]
    assert week.count(0.1) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0.05, 0.5), st.floats(1, 70)), min_size=2, max_size=6))
def test_each_gpu_is_freed_or_stays_and_none_both(rows: list[tuple[float, float]]) -> None:
    cards = [card(at, busy, gib=gib) for at, (busy, gib) in enumerate(rows)]
    found, _ = judge(RULE, evidence(cards), ShareableGpuLimits())
    freed = [uuid for finding in found for uuid in finding.gpu_uuids]
    assert len(freed) == len(set(freed)) < len(cards)
    assert not set(freed) & {finding.subject.id for finding in found}
    for finding in found:
        assert finding.evidence["memory_needed_bytes"] < 0.85 * 80 * GIB
