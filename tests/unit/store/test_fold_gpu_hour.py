"""Samples of one GPU folded over an hour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import H0, SPAN, bare_sample, gpu_sample, workload

from core.activity import Activity
from core.metrics import GPU_COLUMNS
from core.samples import EnergyMethod, GpuSample
from store.fold_hours import FOLDED, fold_gpu_hour
from store.fold_usage import Holder, fold_usage_hour


def test_no_samples_make_no_hour() -> None:
    assert fold_gpu_hour("GPU-a", H0, []) is None


def test_seconds_and_joules_are_kept_by_activity() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            gpu_sample(0, Activity.BUSY, energy_j=4_000.0),
            gpu_sample(1, Activity.PARKED, energy_j=1_000.0),
            gpu_sample(2, Activity.BUSY, energy_j=5_000.0, covered_ms=5_000),
        ],
    )
    assert hour is not None
    assert hour.seconds == {Activity.BUSY: 15.0, Activity.PARKED: 10.0}
    assert hour.joules == {Activity.BUSY: 9_000.0, Activity.PARKED: 1_000.0}
    assert (hour.covered_s, hour.energy_j, hour.energy_covered_s) == (25.0, 10_000.0, 25.0)


def test_unknown_energy_is_none_and_not_zero() -> None:
    hour = fold_gpu_hour("GPU-a", H0, [bare_sample(0, Activity.BUSY, busy_ratio=0.5)])
    assert hour is not None
    assert hour.energy_j is None
    assert hour.energy_method is None
    assert hour.joules == {}
    assert hour.energy_covered_s == 0.0


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        ([EnergyMethod.COUNTER, EnergyMethod.COUNTER], EnergyMethod.COUNTER),
        ([EnergyMethod.INTEGRATED], EnergyMethod.INTEGRATED),
        ([EnergyMethod.COUNTER, EnergyMethod.INTEGRATED], EnergyMethod.MIXED),
    ],
)
def test_energy_method_names_both_when_both_were_used(
    methods: list[EnergyMethod], expected: EnergyMethod
) -> None:
    hour = fold_gpu_hour("GPU-a", H0, [gpu_sample(i, method=method) for i, method in enumerate(methods)])
    assert hour is not None
    assert hour.energy_method is expected


def test_means_weigh_by_covered_time_and_skip_what_is_unknown() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.BUSY, power_w=100.0),
            bare_sample(1, Activity.BUSY, power_w=400.0, covered_ms=5_000),
            bare_sample(2, Activity.BUSY),
        ],
    )
    assert hour is not None
    assert hour.power_w == pytest.approx(200.0)
    assert hour.busy_ratio is None
    assert hour.power_max_w == 400.0


def test_power_is_kept_apart_for_empty_and_parked_time() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.EMPTY, power_w=70.0),
            bare_sample(1, Activity.PARKED, power_w=110.0),
            bare_sample(2, Activity.BUSY, power_w=500.0),
        ],
    )
    assert hour is not None
    assert (hour.empty_power_w, hour.parked_power_w) == (70.0, 110.0)


def test_allocated_active_and_effective_leave_unknown_time_out() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.EMPTY),
            bare_sample(1, Activity.PARKED),
            bare_sample(2, Activity.UNKNOWN),
            bare_sample(3, Activity.BUSY),
            bare_sample(4, Activity.MEMORY_BOUND, sm_active_ratio=0.4, dram_active_ratio=0.6),
            bare_sample(5, Activity.MIXED, sm_active_ratio=0.2, dram_active_ratio=0.1),
        ],
    )
    assert hour is not None
    assert hour.covered_s == 60.0
    assert (hour.allocated_s, hour.active_s) == (40.0, 30.0)
    assert (hour.effective_s, hour.effective_unknown_s) == (10.0, 10.0)


def test_slowed_time_counts_heat_and_brake_bits_while_active_only() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.BUSY, event_reasons_flags=float(0x40)),
            bare_sample(1, Activity.BUSY, event_reasons_flags=float(0x04)),
            bare_sample(2, Activity.PARKED, event_reasons_flags=float(0x40)),
        ],
    )
    assert hour is not None
    assert hour.throttled_s == 10.0


def test_slowed_time_is_unknown_without_event_reasons() -> None:
    hour = fold_gpu_hour("GPU-a", H0, [bare_sample(0, Activity.BUSY)])
    assert hour is not None
    assert hour.throttled_s is None


def test_clock_is_the_mean_while_active() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.BUSY, sm_clock_hz=1.8e9),
            bare_sample(1, Activity.PARKED, sm_clock_hz=0.2e9),
        ],
    )
    assert hour is not None
    assert hour.sm_clock_hz == 1.8e9


def test_pcie_needs_both_directions() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.BUSY, pcie_rx_bytes_per_s=1e9, pcie_tx_bytes_per_s=2e9),
            bare_sample(1, Activity.BUSY, pcie_rx_bytes_per_s=9e9),
        ],
    )
    assert hour is not None
    assert hour.pcie_bytes_per_s == 3e9


@st.composite
def hours_of_samples(draw: st.DrawFn) -> list[GpuSample]:
    count = draw(st.integers(1, 40))
    return [
        bare_sample(
            slot,
            draw(st.sampled_from(Activity)),
            covered_ms=draw(st.integers(0, SPAN)),
            **draw(
                st.dictionaries(
                    st.sampled_from(["energy_j", "sm_active_ratio", "busy_ratio"]),
                    st.floats(0, 1),
                    max_size=3,
                )
            ),
        )
        for slot in range(count)
    ]


@given(hours_of_samples())
def test_parts_sum_to_the_whole(samples: list[GpuSample]) -> None:
    hour = fold_gpu_hour("GPU-a", H0, samples)
    assert hour is not None
    assert sum(hour.seconds.values()) == pytest.approx(hour.covered_s)
    assert hour.effective_s + hour.effective_unknown_s <= hour.active_s + 1e-9
    assert hour.active_s <= hour.allocated_s <= hour.covered_s
    assert hour.energy_covered_s <= hour.covered_s
    for ratio in (hour.busy_ratio, hour.sm_active_ratio):
        assert ratio is None or 0 <= ratio <= 1


def test_time_held_back_is_summed_by_what_can_be_done_about_it() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(0, Activity.BUSY, slowed_power_cap_s=2.0, slowed_board_limit_s=1.5),
            bare_sample(1, Activity.PARKED, slowed_power_cap_s=1.0, slowed_hw_thermal_s=3.0),
            bare_sample(2, Activity.BUSY, slowed_sync_boost_s=9.0, slowed_power_brake_s=0.25),
        ],
    )
    assert hour is not None
    assert (hour.slowed_power_s, hour.slowed_thermal_s) == (4.5, 3.25)


def test_two_reasons_at_once_hold_a_gpu_back_for_no_longer_than_the_sample() -> None:
    both = {"slowed_sw_thermal_s": 8.0, "slowed_hw_thermal_s": 7.0}
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [bare_sample(0, Activity.BUSY, **both), bare_sample(1, Activity.BUSY, covered_ms=6_000, **both)],
    )
    assert hour is not None
    assert hour.slowed_thermal_s == 16.0


def test_without_counters_time_held_back_is_unknown_and_with_them_it_may_be_zero() -> None:
    without = fold_gpu_hour("GPU-a", H0, [bare_sample(0, Activity.BUSY, busy_ratio=1.0)])
    quiet = fold_gpu_hour("GPU-a", H0, [bare_sample(0, Activity.BUSY, slowed_power_cap_s=0.0)])
    assert without is not None
    assert quiet is not None
    assert (without.slowed_power_s, without.slowed_thermal_s, without.nvlink_bytes_per_s) == (None,) * 3
    assert (quiet.slowed_power_s, quiet.slowed_thermal_s) == (0.0, None)


def test_nvlink_is_both_ways_pipes_are_means_and_the_margin_is_the_least() -> None:
    hour = fold_gpu_hour(
        "GPU-a",
        H0,
        [
            bare_sample(
                0,
                Activity.BUSY,
                nvlink_rx_bytes_per_s=1e9,
                nvlink_tx_bytes_per_s=3e9,
                tensor_hmma_active_ratio=0.25,
                temperature_margin_c=12.0,
            ),
            bare_sample(1, Activity.BUSY, nvlink_rx_bytes_per_s=9e9, temperature_margin_c=-1.0),
            bare_sample(2, Activity.BUSY, tensor_hmma_active_ratio=0.75, fp64_active_ratio=0.5),
        ],
    )
    assert hour is not None
    assert hour.nvlink_bytes_per_s == 4e9
    assert (hour.tensor_hmma_active_ratio, hour.fp64_active_ratio) == (0.5, 0.5)
    assert (hour.tensor_imma_active_ratio, hour.temperature_margin_min_c) == (None, -1.0)


@pytest.mark.parametrize("activity", list(Activity))
def test_hours_and_usage_need_no_metric_that_the_roll_up_does_not_read(activity: Activity) -> None:
    every = {name: 0.25 + at for at, name in enumerate(GPU_COLUMNS)}
    whole = bare_sample(0, activity, **every)
    read = bare_sample(0, activity, **{name: every[name] for name in FOLDED})
    assert fold_gpu_hour("GPU-a", H0, [read]) == fold_gpu_hour("GPU-a", H0, [whole])
    holders = {H0: [Holder(workload(), None)]}
    assert fold_usage_hour("GPU-a", H0, [read], holders) == fold_usage_hour("GPU-a", H0, [whole], holders)
