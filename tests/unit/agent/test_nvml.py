"""The driver's answers: base units, unknown for what is lacking, one lost card for what is lost."""

import threading

import pytest
from fake_nvml import FakeGpu, FakeNvml, process

from agent import nvml
from agent.nvml import Driver, Gpu, GpuLostError, NvmlError, Process, driver_present
from core.readings import GpuIdentity


def opened(*gpus: FakeGpu | None, lacks: tuple[str, ...] = ()) -> list[Gpu]:
    return Driver(FakeNvml(*gpus, lacks=lacks)).gpus()


def test_values_are_in_base_units() -> None:
    (gpu,) = opened(FakeGpu())
    assert gpu.quick() == {
        "busy_ratio": 0.5,
        "memory_busy_ratio": pytest.approx(0.4),
        "memory_used_bytes": float(60 << 30),
        "memory_reserved_bytes": float(1 << 29),
        "power_w": 300.0,
        "energy_j": 1_000.0,
        "sm_clock_hz": 1_980e6,
        "memory_clock_hz": 3_201e6,
        "event_reasons_flags": 4.0,
    }
    assert gpu.slow() == {"temperature_c": 41.0, "memory_temperature_c": 55.0, "power_limit_w": 700.0}


def test_identity_is_read_once_with_driver_and_limits() -> None:
    (gpu,) = opened(FakeGpu())
    assert gpu.identity == GpuIdentity(
        "GPU-a",
        index=0,
        model="NVIDIA H200",
        memory_total_bytes=150 << 30,
        pci_bus_id="00000000:0C:00.0",
        driver_version="590.48.01",
        max_sm_clock_hz=1_980e6,
        power_limit_default_w=700.0,
    )


@pytest.mark.parametrize("code", [3, 4, 13])
def test_what_a_card_lacks_is_absent_and_not_asked_again(code: int) -> None:
    card = FakeGpu(fails={"nvmlDeviceGetPowerUsage": code, "nvmlDeviceGetTotalEnergyConsumption": code})
    (gpu,) = opened(card)
    for _ in range(3):
        values = gpu.quick()
        assert "power_w" not in values
        assert "energy_j" not in values
        assert values["busy_ratio"] == 0.5
    assert card.calls.count("nvmlDeviceGetPowerUsage") == 1


@pytest.mark.parametrize("code", [6, 10, 20])
def test_what_fails_this_time_is_unknown_and_asked_again(code: int) -> None:
    card = FakeGpu(fails={"nvmlDeviceGetPowerUsage": code})
    (gpu,) = opened(card)
    assert "power_w" not in gpu.quick()
    card.fails.clear()
    assert gpu.quick()["power_w"] == 300


@pytest.mark.parametrize("code", [1, 15, 16, 999])
def test_a_lost_card_raises(code: int) -> None:
    card = FakeGpu()
    (gpu,) = opened(card)
    card.fails[""] = code
    with pytest.raises(GpuLostError) as caught:
        gpu.quick()
    assert caught.value.code == code


def test_calls_that_the_binding_lacks_are_absent_or_fall_back() -> None:
    (gpu,) = opened(
        FakeGpu(), lacks=("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksEventReasons")
    )
    values = gpu.quick()
    assert "energy_j" not in values
    assert "event_reasons_flags" not in values


def test_memory_falls_back_to_the_first_version() -> None:
    (gpu,) = opened(FakeGpu(fails={"memory v2": 13}))
    values = gpu.quick()
    assert values["memory_used_bytes"] == float(61 << 30)
    assert "memory_reserved_bytes" not in values


def test_temperature_falls_back_to_the_old_call() -> None:
    (gpu,) = opened(FakeGpu(fails={"temperature v": 13}))
    assert gpu.slow()["temperature_c"] == 40


def test_a_field_that_was_not_filled_is_no_zero_degrees() -> None:
    (gpu,) = opened(FakeGpu(memory_temperature=(3, 0)))
    assert "memory_temperature_c" not in gpu.slow()


def test_processes_of_all_lists_are_merged_by_pid() -> None:
    (gpu,) = opened(
        FakeGpu(compute=[process(7, 100), process(8, None)], graphics=[process(7, 90), process(9, 5)])
    )
    assert gpu.processes() == [Process(7, 100), Process(8, None), Process(9, 5, computes=False)]


def test_a_process_on_several_instances_holds_their_sum() -> None:
    (gpu,) = opened(FakeGpu(compute=[process(7, 100, 1), process(7, 50, 2)]))
    assert gpu.processes() == [Process(7, 150)]


def test_scrambled_process_lists_are_not_believed() -> None:
    (gpu,) = opened(FakeGpu(compute=[process(1 << 31, 100)]))
    assert gpu.processes() is None


def test_unsupported_process_lists_are_unknown_and_not_empty() -> None:
    card = FakeGpu(
        fails={f"nvmlDeviceGet{kind}RunningProcesses_v3": 3 for kind in ("Compute", "Graphics", "MPSCompute")}
    )
    (gpu,) = opened(card)
    assert gpu.processes() is None


def test_cards_that_may_not_be_opened_are_left_out() -> None:
    denied, dead = FakeGpu(uuid="GPU-b", fails={"handle": 4}), FakeGpu(uuid="GPU-c", fails={"": 15})
    assert [gpu.identity.gpu_uuid for gpu in opened(denied, None, dead, FakeGpu())] == ["GPU-a"]


def test_mig_instances_have_memory_and_no_utilization() -> None:
    instance = FakeGpu(uuid="MIG-x", name="NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    parent = FakeGpu(instances=[None, instance], fails={"nvmlDeviceGetUtilizationRates": 3})
    card, part = opened(parent)
    assert part.is_mig
    assert part.identity.gpu_uuid == "MIG-x"
    assert set(part.quick()) == {"memory_used_bytes", "memory_reserved_bytes"}
    assert part.slow() == {}
    assert "busy_ratio" not in card.quick()
    assert "power_w" in card.quick()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (12, "no NVIDIA driver on this machine"),
        (9, "not loaded"),
        (18, "upgraded while it ran"),
        (77, "NVML error 77"),
    ],
)
def test_a_driver_that_cannot_be_used_says_why(code: int, words: str) -> None:
    reason = driver_present(FakeNvml(init_code=code))
    assert reason is not None
    assert words in reason


def test_a_driver_with_a_gpu_is_present_and_is_let_go_again() -> None:
    library = FakeNvml(FakeGpu())
    assert driver_present(library) is None
    assert library.opened == 0
    assert driver_present(FakeNvml()) == "the NVIDIA driver is there but shows no GPU"


def test_a_driver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "INIT_S", 0.05)
    library = FakeNvml(FakeGpu())
    gate = threading.Event()
    monkeypatch.setattr(library, "nvmlInit", gate.wait, raising=False)
    with pytest.raises(NvmlError, match="does not answer"):
        Driver(library)
    gate.set()
