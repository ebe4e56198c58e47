"""Readings, identity and health of the stand-in driver through the real binding."""

from pathlib import Path

import pytest
from driver_child import ask

from core.gpu_metrics import GPU_METRICS
from core.plausible import plausible_values
from core.readings import GpuIdentity
from tests.standin import profiles
from tests.standin.scenario import A100, GIB, H100, V100, Scenario, counts

QUICK = "say(Readings(gpu(0)).quick())"
TWICE = "r = Readings(gpu(0)); r.quick(); time.sleep(0.1); say(r.quick())"


def test_every_device_value_is_read_in_base_units(tmp_path: Path) -> None:
    said = ask(
        tmp_path, profiles.busy_decode().values(encoder=10, decoder=20, jpg=30, ofa=40, pstate=2), TWICE
    )
    exact = {
        "busy_ratio": 0.97,
        "memory_busy_ratio": 0.58,
        "memory_used_bytes": 72 * GIB,
        "memory_reserved_bytes": 600 << 20,
        "power_w": 420.0,
        "power_limit_w": 700.0,
        "sm_clock_hz": 1.98e9,
        "memory_clock_hz": 2.619e9,
        "temperature_c": 55.0,
        "memory_temperature_c": 68.0,
        "temperature_margin_c": 32.0,
        "event_reasons_flags": 4.0,
        "performance_state_index": 2.0,
        "encoder_busy_ratio": 0.1,
        "decoder_busy_ratio": 0.2,
        "jpeg_busy_ratio": 0.3,
        "ofa_busy_ratio": 0.4,
    }
    assert {name: said[name] for name in exact} == pytest.approx(exact)
    for name in ("nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"):
        assert said[name] == pytest.approx(2_000_000 * 1024, rel=1e-2)
    assert said["energy_j"] > 0
    assert 0 < said["slowed_power_cap_s"] < said["energy_j"]
    assert said.keys() <= {metric.reading for metric in GPU_METRICS}
    assert plausible_values(said) == said


def test_slowed_times_and_energy_grow_as_the_driver_counts_them(tmp_path: Path) -> None:
    scenario = Scenario().values(power_mw=300_000).at(0, "*", "reason_ns:270", 250_000_000)
    first, second = ask(
        tmp_path, scenario, "r = Readings(gpu(0)); a = r.quick(); time.sleep(0.2); say([a, r.quick()])"
    )
    joules = second["energy_j"] - first["energy_j"]
    assert 300 * 0.2 <= joules <= 300 * 2
    # Both are integrals over the same time, so their ratio does not depend on how long that was.
    assert (second["slowed_hw_thermal_s"] - first["slowed_hw_thermal_s"]) / joules == pytest.approx(
        0.25 / 300, rel=0.02
    )


def test_a_second_costs_few_driver_calls_and_a_round_of_five_repeats_the_rest(tmp_path: Path) -> None:
    code = "r = Readings(gpu(0)); a = [r.quick() for _ in range({})]; say([sorted(v) for v in a])"
    few, more = tmp_path / "few", tmp_path / "more"
    ask(tmp_path, Scenario(), code.format(1), few)
    said = ask(tmp_path, Scenario(), code.format(51), more)
    per_round = (sum(counts(more).values()) - sum(counts(few).values())) / 50
    assert per_round <= 9.5
    assert all(names == said[1] for names in said[2:])


def test_an_entry_refused_for_good_is_not_asked_again_and_never_a_zero(tmp_path: Path) -> None:
    scenario = Scenario().field(82, ret=3).field(74, ret=4).field(185, ret=10)
    said = ask(tmp_path, scenario, "d = gpu(0); r = Readings(d); r.quick(); say([r.quick(), d.absent])")
    values, absent = said
    assert not {"memory_temperature_c", "slowed_power_cap_s", "power_w"} & values.keys()
    assert {"field 82": 3, "field 74": 4}.items() <= absent.items()
    assert "field 185" not in absent
    assert values["slowed_sync_boost_s"] == 0.0


def test_field_values_of_every_type_are_decoded(tmp_path: Path) -> None:
    scenario = Scenario().field(185, value=321_500, value_type=1).field(83, value=5_000.0, value_type=0)
    scenario.field(82, value=-7, value_type=5).field(74, value=3e9, value_type=3).field(
        76, value=4e9, value_type=4
    )
    values = ask(tmp_path, scenario, QUICK)
    assert (values["power_w"], values["energy_j"]) == (321.5, 5.0)
    assert values["memory_temperature_c"] == -7
    assert (values["slowed_power_cap_s"], values["slowed_sync_boost_s"]) == pytest.approx((3.0, 4.0))


def test_no_field_values_at_all_leaves_the_calls(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlDeviceGetFieldValues", 3).values(power_mw=123_000)
    values = ask(tmp_path, scenario, QUICK)
    assert values["power_w"] == 123.0
    assert values["energy_j"] > 0
    assert "slowed_power_cap_s" not in values


def test_a_card_without_an_energy_counter_has_no_energy(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlDeviceGetTotalEnergyConsumption", 3).field(83, ret=3)
    said = ask(
        tmp_path, scenario, "r = Readings(gpu(0)); v = r.quick(); say([sorted(v), r.energy_is_module])"
    )
    assert "energy_j" not in said[0]
    assert said[1] is None


@pytest.mark.parametrize(
    ("card", "averaging_s", "power_w"), [(H100, 1.0, 200.0), (A100, 0.0, 300.0), (V100, 0.0, 300.0)]
)
def test_power_is_the_average_or_the_moment_as_the_identity_says(
    card: dict[str, object], averaging_s: float, power_w: float, tmp_path: Path
) -> None:
    scenario = Scenario(card=card).values(power_mw=300_000, power_average_mw=200_000)  # type: ignore[arg-type]
    said = ask(tmp_path, scenario, "d = gpu(0); say([identity(d), Readings(d).quick()])")
    assert said[0]["power_averaging_s"] == averaging_s
    assert said[1]["power_w"] == power_w


def test_newest_links_are_summed_one_by_one(tmp_path: Path) -> None:
    scenario = Scenario().values(nvlink_gen=5, nvlink_links=18, nvlink_tx=1_000_000, nvlink_rx=3_000_000)
    code = "r = Readings(gpu(0)); r.quick(); time.sleep(0.2); [r.quick() for _ in range(4)]; say(r.quick())"
    said = ask(tmp_path, scenario, code)
    assert said["nvlink_tx_bytes_per_s"] == pytest.approx(1_000_000 * 1024, rel=1e-2)
    assert said["nvlink_rx_bytes_per_s"] == pytest.approx(3_000_000 * 1024, rel=1e-2)


def test_a_pcie_counter_is_believed_once_it_was_seen_beyond_32_bits(tmp_path: Path) -> None:
    narrow = Scenario().field(197, value=4e9, value_type=3).field(198, value=4e9, value_type=3)
    code = "r = Readings(gpu(0)); [r.quick() for _ in range(11)]; say([r.quick(), r.slow()])"
    quick, slow = ask(tmp_path, narrow, code)
    assert not any("pcie" in name for name in quick)
    assert slow.keys() == {"pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"}
    wide = Scenario().field(197, value=5e9, value_type=3).field(198, value=6e9, value_type=3)
    quick, slow = ask(tmp_path, wide, code)
    assert (quick["pcie_rx_bytes_per_s"], quick["pcie_tx_bytes_per_s"]) == (0.0, 0.0)
    assert slow == {}


def test_an_old_driver_tells_what_it_has(tmp_path: Path) -> None:
    said = ask(
        tmp_path, profiles.old_driver_470(), "d = gpu(0); say([identity(d), Readings(d).quick(), facts(d)])"
    )
    about, values, health = said
    assert about["driver_version"] == "470.256.02"
    assert values["memory_used_bytes"] >= 20 * GIB
    assert "memory_reserved_bytes" not in values
    assert values["event_reasons_flags"] == 1.0
    assert values["temperature_c"] == 32.0
    assert "temperature_margin_c" not in values
    assert health["retired_page_count"] == 0.0
    assert "recovery_action" not in health


def test_a_board_without_memory_of_its_own_is_unknown(tmp_path: Path) -> None:
    for scenario in (
        Scenario().values(memory_total=0),
        Scenario().fail("nvmlDeviceGetMemoryInfo_v2", 3).fail("nvmlDeviceGetMemoryInfo", 3),
    ):
        about, values = ask(tmp_path, scenario, "d = gpu(0); say([identity(d), Readings(d).quick()])")
        assert about["memory_total_bytes"] is None
        assert "memory_used_bytes" not in values
        assert values["busy_ratio"] == 0.0


def test_identity_makes_a_gpu_identity_and_is_asked_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    said = ask(tmp_path, Scenario(), "d = gpu(0); identity(d); say(identity(d))", calls)
    about = GpuIdentity(**said, host="h")
    assert about.compute_capability == "9.0"
    assert about.pci_bus_id == "00000000:0C:00.0"
    assert about.max_sm_clock_hz == 1.98e9
    assert about.power_limit_default_w == 700.0
    assert counts(calls)["nvmlDeviceGetName", 0] == 1


def test_identity_of_a_card_being_lost_is_what_it_said(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlDeviceGetMemoryInfo_v2", 15)
    said = ask(tmp_path, scenario, "d = gpu(0); say([identity(d), tried(Readings(d).quick)])")
    assert said[0]["model"] == "NVIDIA H100 80GB HBM3"
    assert said[0]["memory_total_bytes"] is None
    assert said[1] == ["GpuLost", 15]


def test_health_is_told_in_words_and_numbers(tmp_path: Path) -> None:
    scenario = Scenario(card=V100).values(
        ecc_corrected="7 9",
        ecc_uncorrected="1 2",
        retired_pages="3 4 1",
        pcie_gen=1,
        pcie_replay=5,
        compute_mode=3,
    )
    scenario.values(remapped="1 2 1 0", recovery_action=3, persistence=0)
    facts = ask(tmp_path, scenario, "say(facts(gpu(0)))")
    assert facts == {
        "ecc_mode": "enabled",
        "ecc_corrected_count": 7,
        "ecc_uncorrected_count": 1,
        "ecc_aggregate_uncorrected_count": 2,
        "row_remap_corrected_count": 1,
        "row_remap_uncorrected_count": 2,
        "row_remap_pending": 1,
        "row_remap_failed": 0,
        "retired_page_count": 7,
        "retired_pages_pending": 1,
        "pcie_link_generation": 1,
        "pcie_link_max_generation": 3,
        "pcie_link_width": 16,
        "pcie_link_max_width": 16,
        "pcie_replay_count": 5,
        "recovery_action": "drain_p2p",
        "persistence_mode": "disabled",
        "compute_mode": "exclusive_process",
        "power_limit_min_w": 150,
        "power_limit_max_w": 300,
        "power_limit_w": 300,
        "power_limit_default_w": 300,
    }
