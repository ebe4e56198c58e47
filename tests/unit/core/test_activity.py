"""What a sample was, from the readings that decide it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.activity import Activity, classify, is_active, is_allocated, is_effective
from core.metrics import GPU_COLUMNS
from core.units import GIB

H100 = 80 * GIB
DECODE = {
    "busy_ratio": 0.97,
    "busy_min_ratio": 0.95,
    "busy_max_ratio": 1.0,
    "memory_busy_ratio": 0.92,
    "memory_used_bytes": 59 * GIB,
    "power_w": 390.0,
    "power_limit_w": 700.0,
    "process_count": 1.0,
}
COUNTERS = {"sm_active_ratio": 0.7, "dram_active_ratio": 0.71, "tensor_active_ratio": 0.06}


def named(values: dict[str, float], total: float | None = H100) -> Activity:
    return classify(values, memory_total_bytes=total).activity


def test_without_any_reading_of_work_it_is_unknown() -> None:
    assert named({"power_w": 70.0, "memory_used_bytes": 0.0}) is Activity.UNKNOWN


def test_no_work_and_no_process_is_empty_even_when_memory_is_not_zero() -> None:
    idle = {"busy_ratio": 0.0, "process_count": 0.0}
    assert named(idle | {"memory_used_bytes": 0.01 * H100}) is Activity.EMPTY
    assert named(idle | {"memory_used_bytes": 0.9 * GIB}, 24 * GIB) is Activity.EMPTY


def test_memory_that_no_process_owns_up_to_is_parked_not_empty() -> None:
    assert named({"busy_ratio": 0.0, "memory_used_bytes": 5 * GIB, "process_count": 0.0}) is Activity.PARKED


def test_a_lone_process_with_next_to_no_memory_parks_the_card() -> None:
    assert named({"busy_ratio": 0.0, "memory_used_bytes": 0.3 * GIB, "process_count": 1.0}) is Activity.PARKED


def test_only_counters_that_were_read_are_named() -> None:
    fed = {"busy_ratio": 0.02, "memory_used_bytes": 30.0 * GIB, "pcie_rx_bytes_per_s": 2e9}
    verdict = classify(fed, memory_total_bytes=H100)
    assert verdict.counters == ("busy_ratio", "memory_used_bytes", "pcie_rx_bytes_per_s")


def test_what_is_named_without_pcie_does_not_claim_to_have_looked_at_it() -> None:
    stuck = DECODE | {"busy_ratio": 1.0, "busy_min_ratio": 1.0, "memory_busy_ratio": 0.01, "power_w": 130.0}
    blind = classify(stuck, memory_total_bytes=H100).counters
    assert blind == ("busy_ratio", "memory_busy_ratio", "power_w", "power_limit_w")
    seeing = classify(stuck | {"pcie_tx_bytes_per_s": 1e6}, memory_total_bytes=H100).counters
    assert seeing == (*blind, "pcie_tx_bytes_per_s")


def test_no_work_and_little_memory_is_empty_where_processes_are_not_listed() -> None:
    assert named({"busy_ratio": 0.0, "memory_used_bytes": 0.01 * H100}) is Activity.EMPTY


def test_memory_held_without_work_is_parked() -> None:
    assert named({"busy_ratio": 0.0, "memory_used_bytes": 59 * GIB}) is Activity.PARKED


def test_no_work_with_unknown_memory_is_unknown_not_empty() -> None:
    assert named({"busy_ratio": 0.0}) is Activity.UNKNOWN


def test_a_process_without_memory_figure_still_parks_the_card() -> None:
    assert named({"busy_ratio": 0.0, "process_count": 1.0}) is Activity.PARKED


def test_an_idle_card_that_is_being_fed_is_starved_not_parked() -> None:
    assert (
        named({"busy_ratio": 0.02, "memory_used_bytes": 30 * GIB, "pcie_rx_bytes_per_s": 2e9})
        is Activity.STARVED
    )


def test_work_without_counters_is_busy_and_its_nature_is_not_guessed() -> None:
    verdict = classify(DECODE, memory_total_bytes=H100)
    assert verdict.activity is Activity.BUSY
    assert verdict.counters == ("busy_ratio",)


def test_dram_heavy_work_with_idle_tensor_cores_is_memory_bound() -> None:
    assert named(DECODE | COUNTERS) is Activity.MEMORY_BOUND


def test_tensor_heavy_work_is_compute_bound() -> None:
    assert (
        named(DECODE | {"sm_active_ratio": 0.9, "dram_active_ratio": 0.4, "tensor_active_ratio": 0.6})
        is Activity.COMPUTE_BOUND
    )


def test_work_that_is_neither_is_mixed() -> None:
    assert (
        named(DECODE | {"sm_active_ratio": 0.6, "dram_active_ratio": 0.4, "tensor_active_ratio": 0.2})
        is Activity.MIXED
    )


def test_full_use_without_memory_traffic_at_low_power_is_a_stuck_collective() -> None:
    stuck = DECODE | {"busy_ratio": 1.0, "busy_min_ratio": 1.0, "memory_busy_ratio": 0.01, "power_w": 130.0}
    assert named(stuck) is Activity.SPINNING


@pytest.mark.parametrize("missing", ["memory_busy_ratio", "power_w", "power_limit_w"])
def test_a_stuck_collective_is_not_claimed_when_a_deciding_reading_is_missing(missing: str) -> None:
    stuck = DECODE | {"busy_ratio": 1.0, "busy_min_ratio": 1.0, "memory_busy_ratio": 0.01, "power_w": 130.0}
    del stuck[missing]
    assert named(stuck) is Activity.BUSY


def test_small_model_decode_at_low_power_is_not_stuck() -> None:
    opt = DECODE | {"memory_busy_ratio": 0.55, "power_w": 200.0}
    assert named(opt) is Activity.BUSY


def test_bursts_with_dips_to_nothing_are_starved() -> None:
    assert (
        named(DECODE | {"busy_ratio": 0.45, "busy_min_ratio": 0.02, "busy_max_ratio": 0.95})
        is Activity.STARVED
    )


def test_steady_low_work_is_not_starved() -> None:
    assert (
        named(DECODE | {"busy_ratio": 0.3, "busy_min_ratio": 0.28, "busy_max_ratio": 0.33}) is Activity.BUSY
    )


def test_effective_is_unknown_without_counters_and_never_assumed() -> None:
    assert is_effective(Activity.BUSY, DECODE) is None
    assert is_effective(Activity.MEMORY_BOUND, DECODE | COUNTERS) is True
    assert is_effective(Activity.MIXED, DECODE | {"sm_active_ratio": 0.2, "dram_active_ratio": 0.1}) is False
    assert is_effective(Activity.PARKED, {}) is False
    assert is_effective(Activity.UNKNOWN, {}) is None


def test_idle_kinds_differ_in_allocation() -> None:
    assert [is_allocated(a) for a in (Activity.EMPTY, Activity.PARKED, Activity.UNKNOWN)] == [
        False,
        True,
        None,
    ]
    assert [is_active(a) for a in (Activity.EMPTY, Activity.PARKED, Activity.STARVED)] == [False, False, True]


@given(
    st.dictionaries(st.sampled_from(GPU_COLUMNS), st.floats(0, 1e12), max_size=23),
    st.none() | st.floats(1e9, 1e12),
)
def test_every_sample_gets_exactly_one_name_and_says_what_it_looked_at(
    values: dict[str, float], total: float | None
) -> None:
    verdict = classify(values, memory_total_bytes=total)
    assert isinstance(verdict.activity, Activity)
    assert set(verdict.counters) <= set(values)
