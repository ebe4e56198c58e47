"""Savings measured after the action, on fleets whose saving is known."""

from dataclasses import replace

import pytest
from fleets_for_verification import (
    ACTION_MS,
    DAYS_AFTER,
    case,
    latency,
    series,
    true_saving_kwh_month,
)

from advisor.verification import verify
from advisor.verify.baseline import Baseline
from advisor.verify.series import Happening, LoadHour
from core.units import DAY_MS, HOUR_MS
from core.verification import Ledger, Verdict

SEEDS = range(32)


@pytest.mark.parametrize("saving_ratio", [0.1, 0.25])
def test_the_interval_covers_a_true_saving(saving_ratio: float) -> None:
    saved = figures = covered = 0
    for seed in SEEDS:
        hours = series(seed, saving_ratio=saving_ratio)
        found = verify(case(hours, series(seed + 1000)))
        saved += found.verdict is Verdict.SAVED
        assert found.saving is not None or found.verdict in {Verdict.NOT_ATTRIBUTABLE, Verdict.PLACEBO}
        if found.saving is not None:
            truth = true_saving_kwh_month(hours, saving_ratio)
            figures += 1
            covered += found.saving.p10 <= truth <= found.saving.p90
    assert saved >= 0.75 * len(SEEDS)
    assert covered >= 0.75 * figures


def test_no_saving_is_never_claimed() -> None:
    for seed in SEEDS:
        found = verify(case(series(seed), series(seed + 1000)))
        assert found.verdict is not Verdict.SAVED, found.sentence


def test_halved_traffic_is_no_saving() -> None:
    for seed in SEEDS:
        found = verify(case(series(seed, traffic_factor=0.5), series(seed + 1000)))
        assert found.verdict is not Verdict.SAVED, found.sentence


def always_on(gpus_after: float, traffic_factor: float) -> list[LoadHour]:
    """Four GPUs held before, whatever the load: the baseline has no slope to tell what half of it would have cost."""
    return [
        LoadHour(one.hour_ms, 4.0 if one.hour_ms < ACTION_MS else gpus_after, one.loads)
        for one in series(3, traffic_factor=traffic_factor)
    ]


def test_replicas_given_back_with_their_traffic_are_no_saving_at_equal_load() -> None:
    found = verify(replace(case(always_on(2.0, 0.47)), ledger=Ledger.CAPACITY))
    assert found.verdict is Verdict.TRAFFIC_CHANGED, found.sentence


def test_of_a_fallen_load_only_what_a_unit_costs_less_is_saved() -> None:
    found = verify(replace(case(always_on(2.0, 0.7)), ledger=Ledger.CAPACITY))
    assert found.verdict is Verdict.SAVED, found.sentence
    assert found.saving is not None
    assert found.saving.p50 == pytest.approx((4 * 0.7 - 2) * 730, rel=0.1)


def test_a_replica_fewer_under_equal_load_is_a_saving() -> None:
    hours = [LoadHour(one.hour_ms, 4.0 if one.hour_ms < ACTION_MS else 3.0, one.loads) for one in series(3)]
    found = verify(replace(case(hours), ledger=Ledger.CAPACITY, predicted_p50=730.0))
    assert found.verdict is Verdict.SAVED, found.sentence
    assert found.saving is not None
    assert found.saving.p50 == pytest.approx(730.0, rel=0.02)
    assert found.realised_ratio == pytest.approx(1.0, rel=0.02)


def test_what_peers_did_too_is_taken_off() -> None:
    alone = verify(case(series(5, drift_ratio=0.1)))
    assert alone.verdict is Verdict.SAVED
    beside = verify(case(series(5, drift_ratio=0.1), series(1005, drift_ratio=0.1)))
    assert beside.verdict is not Verdict.SAVED
    assert "Untreated peers changed by −" in beside.sentence


def test_a_gap_is_neither_saving_nor_measured() -> None:
    gap = (ACTION_MS, ACTION_MS + 10 * DAY_MS)
    hours = [one for one in series(1) if not gap[0] <= one.hour_ms < gap[1]]
    found = verify(case(hours))
    assert found.verdict is Verdict.TOO_LITTLE
    assert found.saving is None
    short = [one for one in series(1) if not ACTION_MS + DAY_MS <= one.hour_ms < ACTION_MS + 3 * DAY_MS]
    assert verify(case(short)).verdict in {Verdict.NOISE, Verdict.NO_SAVING}


def test_two_weeks_after_are_awaited() -> None:
    found = verify(case(series(1, saving_ratio=0.3), until_ms=ACTION_MS + 9 * DAY_MS))
    assert found.verdict is Verdict.TOO_EARLY
    assert "9 of 14 days" in found.sentence


def test_two_weeks_before_are_needed() -> None:
    hours = [one for one in series(1, saving_ratio=0.3) if one.hour_ms >= ACTION_MS - 9 * DAY_MS]
    assert verify(case(hours)).verdict is Verdict.TOO_LITTLE


def test_a_driver_change_on_the_day_is_refused() -> None:
    driver = Happening(ACTION_MS + 3 * HOUR_MS, "Driver 590.1 instead of 580.2.")
    found = verify(case(series(1, saving_ratio=0.3), happenings=[driver]))
    assert found.verdict is Verdict.CONFOUNDED
    assert "Driver 590.1" in found.sentence


def test_a_driver_change_resets_the_baseline() -> None:
    driver = Happening(ACTION_MS - 10 * DAY_MS, "Driver 590.1 instead of 580.2.")
    found = verify(case(series(1, saving_ratio=0.3), happenings=[driver]))
    assert found.verdict is Verdict.TOO_LITTLE
    earlier = replace(driver, at_ms=ACTION_MS - 20 * DAY_MS)
    found = verify(case(series(1, saving_ratio=0.3), happenings=[earlier]))
    assert found.verdict is Verdict.SAVED
    assert found.facts["hours_before"] == 19 * 24


def test_a_driver_change_after_ends_the_comparison() -> None:
    driver = Happening(ACTION_MS + 6 * DAY_MS, "Driver 590.1 instead of 580.2.")
    found = verify(case(series(1, saving_ratio=0.3), happenings=[driver]))
    assert found.verdict is Verdict.TOO_LITTLE
    assert "Driver 590.1" in found.sentence


def test_a_change_on_another_day_is_not_the_actions() -> None:
    verdicts = set()
    for seed in SEEDS:
        found = verify(case(series(seed, saving_ratio=0.25, change_day=5), series(seed + 1000)))
        verdicts.add(found.verdict)
        assert found.verdict is not Verdict.SAVED, found.sentence
    assert Verdict.NOT_ATTRIBUTABLE in verdicts


def test_a_baseline_that_fell_already_fails_the_placebo() -> None:
    hours = [
        replace(one, outcome=one.outcome * (1 - 0.01 * max(0, (one.hour_ms - ACTION_MS) // DAY_MS + 28)))
        for one in series(2)
    ]
    assert verify(case(hours)).verdict is not Verdict.SAVED


def test_noise_has_no_baseline() -> None:
    found = verify(case(series(1, saving_ratio=0.3, noise=0.5)))
    assert found.verdict is Verdict.NO_BASELINE
    assert "30 % is the most" in found.sentence


def test_another_mix_of_traffic_is_refused() -> None:
    hours = [
        one
        if one.hour_ms < ACTION_MS
        else replace(one, loads=(one.loads[0], one.loads[1] * 0.45, one.loads[2]))
        for one in series(1, saving_ratio=0.2)
    ]
    assert verify(case(hours)).verdict is Verdict.TRAFFIC_CHANGED


def test_latency_that_got_worse_is_named_beside_the_saving() -> None:
    slower = {"time to first token": latency(0.2, 0.3), "inter-token latency": latency(0.02, 0.0201)}
    found = verify(case(series(1, saving_ratio=0.2), latencies=slower))
    assert found.verdict is Verdict.SAVED
    assert found.slo_regressions == ("Mean time to first token rose from 200 to 300 ms.",)


def test_the_baseline_recovers_what_a_unit_costs() -> None:
    hours = [one for one in series(1, noise=0.0) if one.hour_ms < ACTION_MS]
    model = Baseline(hours)
    more = replace(hours[0], loads=tuple(1.1 * load for load in hours[0].loads))
    per_token = (model.expected(more) - model.expected(hours[0])) / (more.loads[2] - hours[0].loads[2])
    assert per_token == pytest.approx(2e-6, rel=0.15)


def test_columns_that_say_nothing_are_left_out() -> None:
    hours = [LoadHour(at * HOUR_MS, 3.0, (5.0, 5.0)) for at in range(24 * 14)]
    found = Baseline(hours).against(hours)
    assert found.saving == pytest.approx(0.0, abs=1e-9)
    assert found.hours == 24 * 14


def test_the_days_after_are_those_of_the_fleet() -> None:
    assert series(1)[-1].hour_ms == ACTION_MS + DAYS_AFTER * DAY_MS - HOUR_MS


def test_work_that_moved_to_other_cards_is_not_compared() -> None:
    made = verify(case(series(1, saving_ratio=0.2), moved="Engine e runs on GPU-b now."))
    assert (made.verdict, made.sentence) == (Verdict.CONFOUNDED, "Engine e runs on GPU-b now.")
    assert made.saving is None


def test_what_peers_were_compared_by_is_told() -> None:
    given = case(series(1, saving_ratio=0.2), series(2), peer_load_names=("requests", "generated tokens"))
    assert verify(given).facts["peers_load"] == "requests, generated tokens"
    assert verify(replace(given, peers=[])).facts["peers_load"] is None
