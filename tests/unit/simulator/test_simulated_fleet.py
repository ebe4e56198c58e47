"""What the simulated fleet says, and that it says it again."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import pytest

from agent.sources.simulator.cast import EMPTY_SINCE_DAYS, SILENT_H, STUCK_SINCE_H
from agent.sources.simulator.fleet import EngineProbe, GpuProbe, fleet
from agent.sources.simulator.live import snapshot
from core.metrics import BY_NAME
from core.units import DAY_MS, GIB, HOUR_MS, MINUTE_MS

ANCHOR_MS = 1_794_996_000_000
"""Wednesday 18 November 2026, 10:00 UTC."""
NOON_MS = ANCHOR_MS // DAY_MS * DAY_MS - DAY_MS + 12 * HOUR_MS
SUNDAY_MS = NOON_MS - 2 * DAY_MS
NIGHT_MS = NOON_MS - 9 * HOUR_MS


def probe(host: str, index: int) -> GpuProbe:
    return next(
        one for one in fleet(ANCHOR_MS).gpus if one.identity.host == host and one.identity.index == index
    )


def engine(name: str) -> EngineProbe:
    return next(one for one in fleet(ANCHOR_MS).engines if one.identity.engine == name)


def values(one: GpuProbe, ts_ms: int) -> dict[str, float]:
    reading = one.read(ts_ms)
    assert reading is not None
    return dict(reading.values)


def mean(one: GpuProbe, name: str, instants: Sequence[int]) -> float:
    return fmean(values(one, ts_ms)[name] for ts_ms in instants)


def minutes(start_ms: int, count: int = 60) -> range:
    return range(start_ms, start_ms + count * MINUTE_MS, MINUTE_MS)


def test_the_fleet_is_four_hosts_of_eight_gpus_with_unique_ids() -> None:
    found = fleet(ANCHOR_MS).gpus

    assert len({one.identity.gpu_uuid for one in found}) == 32
    assert {one.identity.host: one.identity.model for one in found} == {
        "chat-01": "NVIDIA H100 80GB HBM3",
        "train-01": "NVIDIA H200",
        "lab-01": "NVIDIA L40S",
        "batch-01": "NVIDIA A100-SXM4-80GB",
    }


def test_the_same_instant_gives_the_same_readings_whatever_was_read_before() -> None:
    one, other = probe("chat-01", 4), probe("chat-01", 4)
    for ts_ms in minutes(NIGHT_MS, 20):
        other.read(ts_ms)

    first, second = values(one, NOON_MS), values(other, NOON_MS)

    first.pop("energy_j")
    second.pop("energy_j")
    assert first == second


def test_identities_do_not_depend_on_the_anchor() -> None:
    assert [one.identity for one in fleet(ANCHOR_MS).gpus] == [
        one.identity for one in fleet(ANCHOR_MS + 90 * DAY_MS).gpus
    ]


def test_every_reading_is_a_declared_metric_within_its_bounds() -> None:
    known = {metric.reading for metric in BY_NAME.values()}
    for one in fleet(ANCHOR_MS).gpus:
        for ts_ms in (NIGHT_MS, NOON_MS, SUNDAY_MS, ANCHOR_MS):
            found = values(one, ts_ms)
            assert set(found) <= known
            assert all(0.0 <= value <= 1.0 for name, value in found.items() if name.endswith("_ratio"))
            assert 0.0 < found["power_w"] <= found["power_limit_w"]
            assert found["memory_used_bytes"] < (one.identity.memory_total_bytes or 0)


def test_cards_without_gpm_have_no_counters_of_activity() -> None:
    assert "sm_active_ratio" not in values(probe("batch-01", 0), NOON_MS)
    assert "sm_active_ratio" not in values(probe("lab-01", 2), NOON_MS)
    assert "sm_active_ratio" in values(probe("train-01", 0), NOON_MS)


def test_the_energy_counter_grows_by_mean_power_times_time() -> None:
    one = probe("train-01", 3)
    found = [values(one, ts_ms) for ts_ms in minutes(NOON_MS)]

    joules = sum(30.0 * (a["power_w"] + b["power_w"]) for a, b in pairwise(found))
    assert found[-1]["energy_j"] - found[0]["energy_j"] == pytest.approx(joules)


def test_a_parked_model_draws_26_to_66_w_more_than_an_empty_card() -> None:
    empty = mean(probe("train-01", 0), "power_w", minutes(SUNDAY_MS))
    resting = mean(probe("chat-01", 2), "power_w", minutes(SUNDAY_MS))

    assert values(probe("chat-01", 2), SUNDAY_MS)["memory_used_bytes"] > 60 * GIB
    assert 26.0 <= resting - 70.0 <= 66.0
    assert empty == pytest.approx(74.0, rel=0.01)


def test_the_batch_limited_server_is_full_with_requests_waiting_day_and_night() -> None:
    one = engine("chat-01:8000/0")

    for ts_ms in (*minutes(NIGHT_MS), *minutes(NOON_MS)):
        reading = one.read(ts_ms)
        assert reading is not None
        assert reading.values["running_requests"] == 8
        assert reading.values["waiting_requests"] > 0
        assert reading.values["kv_used_ratio"] < 0.8


def test_the_demand_limited_server_never_queues_and_rests_at_night() -> None:
    one = engine("chat-01:8002/0")
    by_day = [one.seat.server.state(ts_ms) for ts_ms in minutes(NOON_MS)]
    by_night = [one.seat.server.state(ts_ms) for ts_ms in minutes(NIGHT_MS)]

    assert all(state.waiting == 0 and state.running > 0 for state in by_day)
    assert all(state.running == 0 for state in by_night)


def test_token_counters_grow_by_batch_over_step_time() -> None:
    one = engine("chat-01:8000/0")
    before = one.read(NOON_MS)
    after = one.read(NOON_MS + 10_000)

    assert before is not None
    assert after is not None
    grown = after.values["generated_tokens"] - before.values["generated_tokens"]
    assert grown == pytest.approx(10 * 8 / one.seat.server.decoder.step_s(8))
    latency_s = after.values["itl_sum_s"] / after.values["itl_count"]
    assert latency_s == pytest.approx(one.seat.server.decoder.step_s(8))


def test_the_stuck_job_spins_at_full_busy_with_still_memory_and_little_power() -> None:
    since_ms = ANCHOR_MS - STUCK_SINCE_H * HOUR_MS
    found = values(probe("lab-01", 4), since_ms + HOUR_MS)

    assert found["busy_ratio"] >= 0.95
    assert found["memory_busy_ratio"] <= 0.05
    assert found["power_w"] <= 35.0 + 0.25 * (350.0 - 35.0)
    before = values(probe("lab-01", 4), since_ms - HOUR_MS)
    assert before["memory_busy_ratio"] > 0.3
    assert before["power_w"] > 2 * found["power_w"]


def test_the_starved_job_alternates_at_any_cadence() -> None:
    one = probe("lab-01", 2)

    for step_ms in (1000, MINUTE_MS, 5 * MINUTE_MS):
        found = [values(one, NOON_MS + n * step_ms)["busy_ratio"] for n in range(60)]
        assert min(found) < 0.1
        assert max(found) > 0.8
        assert 0.2 < fmean(found) < 0.7


def test_training_pauses_on_weekends_and_for_checkpoints() -> None:
    one = probe("train-01", 5)
    checkpoint_ms = NOON_MS + 17 * MINUTE_MS + 30_000

    assert one.processes(SUNDAY_MS) == []
    assert values(one, SUNDAY_MS)["process_count"] == 0
    assert values(one, NOON_MS)["tensor_active_ratio"] >= 0.4
    assert values(one, checkpoint_ms)["busy_ratio"] == 0.0
    assert values(one, checkpoint_ms)["pcie_tx_bytes_per_s"] > 1e9


def test_the_unused_node_has_been_empty_for_more_than_a_week() -> None:
    for index in range(8):
        one = probe("batch-01", index)
        assert one.processes(ANCHOR_MS - (EMPTY_SINCE_DAYS - 1) * DAY_MS) == []
        working = ANCHOR_MS // DAY_MS * DAY_MS - (EMPTY_SINCE_DAYS + 2) * DAY_MS + 22 * HOUR_MS
        assert [process.workload.user for process in one.processes(working)] == ["svc-batch"]


def test_a_host_whose_agent_is_down_says_nothing() -> None:
    down_ms = ANCHOR_MS - SILENT_H[0] * HOUR_MS + MINUTE_MS

    assert probe("lab-01", 2).read(down_ms) is None
    assert probe("lab-01", 2).processes(down_ms) == []
    assert engine("lab-01:8000/0").read(down_ms) is None
    assert probe("chat-01", 0).read(down_ms) is not None


def test_the_hot_card_says_why_it_is_slow() -> None:
    one = probe("lab-01", 6)
    hot, cool = values(one, ANCHOR_MS - 48 * HOUR_MS), values(one, ANCHOR_MS - 60 * HOUR_MS)

    assert int(hot["event_reasons_flags"]) & 0x60
    assert hot["temperature_c"] > 84.0
    assert hot["sm_clock_hz"] < 0.7 * cool["sm_clock_hz"]
    assert not int(cool["event_reasons_flags"]) & 0x60


def test_a_weekly_job_is_another_process_every_week() -> None:
    one = probe("train-01", 0)
    now, later = one.processes(NOON_MS)[0], one.processes(NOON_MS + DAY_MS)[0]
    last_week = one.processes(NOON_MS - 7 * DAY_MS)[0]

    assert now.workload == later.workload
    assert now.workload.key != last_week.workload.key


def test_a_snapshot_reads_engines_and_processes_every_ten_seconds() -> None:
    full, short = snapshot(fleet(ANCHOR_MS), NOON_MS), snapshot(fleet(ANCHOR_MS), NOON_MS + 1000)

    assert (len(full.gpus), len(full.engines)) == (32, 6)
    assert {process.workload.user for process in full.processes} >= {"mara", "ines", "lena", "svc-search"}
    assert len(short.gpus) == 32
    assert short.engines == short.processes == ()
