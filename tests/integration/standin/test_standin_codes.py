"""The stand-in driver library: calls that fail, hang, are slow or are not there, as the file says."""

from pathlib import Path

import pytest

from tests.integration.standin.standin_host import Host
from tests.standin import profiles
from tests.standin.scenario import GIB, MIB, Scenario, functions


def test_any_call_fails_with_its_code_on_its_gpu_only(tmp_path: Path) -> None:
    scenario = Scenario(gpus=3).fail("nvmlDeviceGetPowerUsage", 999, gpu=0).lost(1, at=0).absent(2)
    answers = Host(tmp_path, scenario).ask("""
answers["power"] = code(nvmlDeviceGetPowerUsage, gpu(0))
answers["clock"] = code(nvmlDeviceGetClockInfo, gpu(0), NVML_CLOCK_SM)
answers["lookup"] = [code(nvmlDeviceGetHandleByIndex, i) for i in (1, 2, 3)]
answers["count"] = nvmlDeviceGetCount()
answers["null"] = code(nvmlDeviceGetPowerUsage, None)
nvmlShutdown()
answers["after"] = code(nvmlDeviceGetCount)
""")
    assert answers == {
        "power": 999,
        "clock": ["ok", 345],
        "lookup": [15, 6, 2],
        "count": 2,
        "null": 2,
        "after": 1,
    }


SWEEP = """
lib = ctypes.CDLL("libnvidia-ml.so.1")
h = gpu(0)
lookups = {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetCount_v2"}
of_device = [n for n in %r if n.startswith(("nvmlDevice", "nvmlGpmQuery", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet")) and n not in lookups]
def every():
    return {name: getattr(lib, name)(h, 0, None, None, None, None) for name in of_device}
"""


@pytest.mark.parametrize("code", [3, 4, 15, 16, 999])
def test_a_code_for_every_function_comes_from_each_of_them(tmp_path: Path, code: int) -> None:
    host = Host(tmp_path, Scenario(gpus=2).fail("*", code, gpu=0, at=0.2))
    answers = host.ask(SWEEP % (functions(),) + "time.sleep(0.25)\nanswers.update(every())")
    assert len(answers) > 70
    assert {name: got for name, got in answers.items() if got != code} == {}


def test_no_function_needs_its_arguments_to_stay_alive(tmp_path: Path) -> None:
    """The real library answers INVALID_ARGUMENT to most missing buffers; a crash here would hide an agent's mistake."""
    answers = Host(tmp_path, Scenario()).ask(SWEEP % (functions(),) + "answers.update(every())")
    assert set(answers.values()) <= {0, 2, 3}


def test_a_slow_call_takes_its_time_and_a_hanging_init_is_let_go(tmp_path: Path) -> None:
    scenario = Scenario(gpus=2).slow("nvmlDeviceGetFanSpeed_v2", 40, gpu=0).hang("nvmlInit_v2", until=0.1)
    answers = Host(tmp_path, scenario).ask("""
before = time.monotonic()
answers["fan"] = code(nvmlDeviceGetFanSpeed_v2, gpu(0), 0)
answers["long"] = time.monotonic() - before >= 0.04
""")
    assert answers == {"fan": 3, "long": True}


def test_init_fails_as_scripted_and_a_missing_scenario_is_loud(tmp_path: Path) -> None:
    host = Host(tmp_path, Scenario().fail("nvmlInit_v2", 18))
    assert "NVMLError_LibRmVersionMismatch" in host.run("").stderr
    host.scenario_file.write_text("gpus 1\n0 0 utilisation 3\n")
    assert "line 2: no such key: utilisation" in host.run("").stderr
    host.scenario_file.unlink()
    assert "names no scenario file" in host.run("").stderr


@pytest.mark.parametrize("global_lock", [False, True])
def test_a_hanging_call_returns_once_the_file_lets_it_go(tmp_path: Path, global_lock: bool) -> None:
    """With the lock of a driver the other GPU waits too, without it only the call itself."""
    host = Host(tmp_path, Scenario(gpus=2, global_lock=global_lock).hang("nvmlDeviceGetPowerUsage", gpu=1))
    freed = Scenario(gpus=2, global_lock=global_lock).write(tmp_path / "freed")
    answers = host.ask(f"""
handles, done = [gpu(0), gpu(1)], []
def work(name, call, handle):
    call(handle)
    done.append(name)
stuck = threading.Thread(target=work, args=("stuck", nvmlDeviceGetPowerUsage, handles[1]))
stuck.start()
time.sleep(0.1)
other = threading.Thread(target=work, args=("other", nvmlDeviceGetTotalEnergyConsumption, handles[0]))
other.start()
other.join(0.3)
answers["before"] = list(done)
os.replace({str(freed)!r}, os.environ["GPUWISE_STANDIN"])
stuck.join(20)
other.join(20)
answers["after"] = sorted(done)
""")
    assert answers == {"before": [] if global_lock else ["other"], "after": ["other", "stuck"]}


def test_an_old_driver_lacks_symbols_and_fields(tmp_path: Path) -> None:
    answers = Host(tmp_path, profiles.old_driver_470()).ask("""
h = gpu(0)
answers["v3"] = code(nvmlDeviceGetComputeRunningProcesses_v3, h)
answers["v2"] = [p.pid for p in nvmlDeviceGetComputeRunningProcesses_v2(h)]
answers["memory_v2"] = code(lambda: nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2))
answers["memory_v1"] = nvmlDeviceGetMemoryInfo(h).used
answers["reasons"] = [code(nvmlDeviceGetCurrentClocksEventReasons, h), code(nvmlDeviceGetCurrentClocksThrottleReasons, h)]
answers["gpm"] = code(nvmlGpmSampleAlloc)
answers["retired"] = nvmlDeviceGetRetiredPages(h, 0)
answers["remapped"] = code(nvmlDeviceGetRemappedRows, h)
answers["fields"] = [(v.nvmlReturn, v.value.uiVal) for v in nvmlDeviceGetFieldValues(h, [186, 82])]
""")
    assert answers == {
        "v3": 13,
        "v2": [6101],
        "memory_v2": 13,
        "memory_v1": 20 * GIB + 600 * MIB,
        "reasons": [13, ["ok", 1]],
        "gpm": 13,
        "retired": [],
        "remapped": 3,
        "fields": [[3, 0], [0, 38]],
    }


def test_each_field_has_its_own_return_code(tmp_path: Path) -> None:
    scenario = (
        Scenario().field(82, ret=3).field(230, value=2).field(196, value=-5).values(power_limit_mw=650_000)
    )
    scenario.at(0, "*", "nvlink_tx", 1_800_000).at(0.05, "*", "nvlink_tx", 0)
    scenario.at(0, "*", "reason_ns:74", 1_000_000_000).at(0.05, "*", "reason_ns:74", 0)
    scenario.at(0, "*", "pcie_counter_rx", 2**40).at(0.05, "*", "pcie_counter_rx", 0)
    answers = Host(tmp_path, scenario).ask("""
time.sleep(0.1)
h = gpu(0)
ids = [82, 230, 196, 190, (190, 1), 999, (138, 0xFFFFFFFF), (138, 3), (138, 18), 202, 74, 198]
entries = nvmlDeviceGetFieldValues(h, ids)
answers["codes"] = [e.nvmlReturn for e in entries]
answers["values"] = [e.value.siVal if e.valueType == 5 else e.value.uiVal if e.valueType == 1 else e.value.ullVal for e in entries]
answers["none filled"] = code(nvmlDeviceGetFieldValues, h, [82, 999])
answers["fresh"] = abs(entries[0].timestamp / 1e6 - time.time()) < 60
""")
    assert answers["codes"] == [3, 0, 0, 0, 3, 3, 0, 0, 2, 3, 0, 0]
    assert answers["values"] == [
        0,
        2,
        -5,
        650_000,
        0,
        0,
        90_000,
        5_000,
        0,
        0,
        50_000_000,
        int(2**40 * 0.05) % 2**32,
    ]
    assert answers["none filled"] == 3
    assert answers["fresh"]
