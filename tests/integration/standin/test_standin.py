"""The stand-in driver library itself: loaded by the real pynvml in a real process, does it answer what the file says."""

from pathlib import Path

from tests.integration.standin.standin_host import Host
from tests.standin import profiles
from tests.standin.scenario import GIB, H200, MIB, V100, Scenario, counts, gpu_uuid, mig_uuid


def test_values_of_a_card_are_those_of_the_file(tmp_path: Path) -> None:
    scenario = Scenario(gpus=2, card=H200, driver="570.86.10").values(
        gpu=1,
        utilization=97,
        memory_utilization=41,
        power_mw=612_345,
        memory_used=3 * GIB,
        temperature_margin=-3,
        fan="30 40",
    )
    scenario.at(0, 1, "ecc_uncorrected", 2, 9).at(0, 1, "remapped", 1, 2, 0, 1)
    answers = Host(tmp_path, scenario).ask("""
answers["driver"] = nvmlSystemGetDriverVersion()
answers["count"] = nvmlDeviceGetCount()
h = gpu(1)
rates, v1, v2 = nvmlDeviceGetUtilizationRates(h), nvmlDeviceGetMemoryInfo(h), nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2)
answers["identity"] = [nvmlDeviceGetName(h), nvmlDeviceGetUUID(h), nvmlDeviceGetPciInfo(h).busId, nvmlDeviceGetArchitecture(h)]
answers["capability"] = nvmlDeviceGetCudaComputeCapability(h)
answers["rates"] = [rates.gpu, rates.memory]
answers["memory"] = [v1.used, v2.used, v2.reserved, v2.total - v2.free]
answers["power_mw"] = [nvmlDeviceGetPowerUsage(h), nvmlDeviceGetPowerUsage(gpu(0))]
answers["margin_c"] = nvmlDeviceGetMarginTemperature(h)
answers["temperature"] = [nvmlDeviceGetTemperatureV(h, 0), nvmlDeviceGetTemperature(h, 0)]
answers["fans"] = [nvmlDeviceGetNumFans(h), nvmlDeviceGetFanSpeed_v2(h, 1), nvmlDeviceGetNumFans(gpu(0))]
answers["ecc"] = [nvmlDeviceGetTotalEccErrors(h, 1, 0), nvmlDeviceGetTotalEccErrors(h, 1, 1), nvmlDeviceGetTotalEccErrors(h, 0, 0)]
answers["remapped"] = nvmlDeviceGetRemappedRows(h)
answers["same"] = nvmlDeviceGetUUID(nvmlDeviceGetHandleByPciBusId(nvmlDeviceGetPciInfo(h).busId))
answers["retired"] = code(nvmlDeviceGetRetiredPages, h, 0)
""")
    assert answers == {
        "driver": "570.86.10",
        "count": 2,
        "identity": ["NVIDIA H200", gpu_uuid(1), "00000000:1C:00.0", 9],
        "capability": [9, 0],
        "rates": [97, 41],
        "memory": [3 * GIB + 600 * MIB, 3 * GIB, 600 * MIB, 3 * GIB + 600 * MIB],
        "power_mw": [612_345, 70_000],
        "margin_c": -3,
        "temperature": [32, 32],
        "fans": [2, 40, 0],
        "ecc": [2, 9, 0],
        "remapped": [1, 2, 0, 1],
        "same": gpu_uuid(1),
        "retired": 3,
    }


def test_energy_is_the_exact_integral_of_power(tmp_path: Path) -> None:
    scenario = Scenario(gpus=3).values(power_mw=700_000)
    scenario.at(0.02, "*", "power_mw", 333_333).at(0.05, "*", "power_mw", 0)
    scenario.at(0, 1, "energy", "value", 5).at(0.02, 2, "energy", "restart")
    answers = Host(tmp_path, scenario).ask("""
time.sleep(0.1)
answers["mj"] = [nvmlDeviceGetTotalEnergyConsumption(gpu(i)) for i in range(3)]
answers["field"] = nvmlDeviceGetFieldValues(gpu(0), [83])[0].value.ullVal
""")
    assert answers == {"mj": [14_000 + 9_999, 5, 9_999], "field": 23_999}


def test_mig_instances_and_what_their_parent_refuses(tmp_path: Path) -> None:
    scenario = profiles.mig().at(0, 0, "instance", 2, None)
    answers = Host(tmp_path, scenario).ask("""
parent = gpu(0)
answers["mode"] = nvmlDeviceGetMigMode(parent)
found = [code(nvmlDeviceGetMigDeviceHandleByIndex, parent, i) for i in range(nvmlDeviceGetMaxMigDeviceCount(parent))]
answers["slots"] = ["ok" if isinstance(one, list) else one for one in found]
first, last = found[0][1], found[2][1]
answers["uuid"] = [nvmlDeviceGetUUID(first), nvmlDeviceGetUUID(last)]
answers["gi"] = [nvmlDeviceGetGpuInstanceId(last), nvmlDeviceGetComputeInstanceId(last)]
answers["memory"] = [nvmlDeviceGetMemoryInfo(first).used, nvmlDeviceGetMemoryInfo(first).total]
answers["slices"] = [nvmlDeviceGetAttributes_v2(one).gpuInstanceSliceCount for one in (first, last)]
answers["pids"] = [[p.pid for p in nvmlDeviceGetComputeRunningProcesses_v3(one)] for one in (parent, first, last)]
answers["back"] = nvmlDeviceGetUUID(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(last))
answers["refused by both"] = [code(call, one) for one in (parent, first) for call in (nvmlDeviceGetUtilizationRates, nvmlDeviceGetEncoderUtilization)]
answers["refused by parent"] = [code(nvmlDeviceGetProcessUtilization, parent, 0), code(nvmlDeviceGetSamples, parent, 1, 0)]
answers["refused by instance"] = [code(nvmlDeviceGetPowerUsage, first), code(nvmlDeviceGetFieldValues, first, [82])]
answers["by uuid"] = nvmlDeviceGetUUID(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(first)))
""")
    assert answers == {
        "mode": [1, 1],
        "slots": ["ok", 6, "ok", 6, 6, 6, 6],
        "uuid": [mig_uuid(0, 1), mig_uuid(0, 7)],
        "gi": [7, 0],
        "memory": [38 * GIB, 40_448 * MIB],
        "slices": [3, 1],
        "pids": [[5101, 5102], [5101], []],
        "back": gpu_uuid(0),
        "refused by both": [3, 3, 3, 3],
        "refused by parent": [3, 3],
        "refused by instance": [3, 3],
        "by uuid": mig_uuid(0, 1),
    }


def test_process_lists_and_their_use_of_the_card(tmp_path: Path) -> None:
    scenario = Scenario(gpus=3).processes(
        "compute:10:5000", "graphics:10:5000", "compute:11:none", "mps:12:7", gpu=0
    )
    scenario.process_util("10:90:40:0:0", "11:5:1:0:0@30", "!junk", gpu=0).process_util("empty", gpu=2)
    answers = Host(tmp_path, scenario).ask("""
h = gpu(0)
lists = (nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v3)
answers["lists"] = [[(p.pid, p.usedGpuMemory, p.gpuInstanceId) for p in call(h)] for call in lists]
answers["details"] = [p.pid for p in nvmlDeviceGetRunningProcessDetailList(h, nvmlProcessDetailList_v1, 2)]
now_us = int(time.time() * 1e6)
answers["all"] = [(r.pid, r.smUtil) for r in nvmlDeviceGetProcessUtilization(h, 0)]
answers["recent"] = [(r.pid, r.smUtil) for r in nvmlDeviceGetProcessesUtilizationInfo(h, now_us - 1000000)]
answers["idle"] = code(nvmlDeviceGetProcessUtilization, gpu(1), 0)
answers["success of the size query"] = code(nvmlDeviceGetProcessUtilization, gpu(2), 0)
""")
    none = 0xFFFFFFFF
    assert answers == {
        "lists": [[[10, 5000, none], [11, None, none]], [[10, 5000, none]], [[12, 7, none]]],
        "details": [12],
        "all": [[10, 90], [11, 5], [0x7FFFFFF0, 2147483632]],
        "recent": [[10, 90], [0x7FFFFFF0, 2147483632]],
        "idle": 6,
        "success of the size query": 0,
    }


def test_driver_535_fills_rows_of_five_members(tmp_path: Path) -> None:
    answers = Host(tmp_path, profiles.layout_535()).ask("""
h = gpu(0)
answers["naive"] = [p.pid for p in nvmlDeviceGetComputeRunningProcesses_v3(h)]
class Row(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint), ("cc", ctypes.c_ulonglong)]
count, rows = ctypes.c_uint(8), (Row * 8)()
import pynvml
fn = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v3")
answers["code"] = fn(h, ctypes.byref(count), rows)
answers["true"] = [rows[i].pid for i in range(count.value)]
answers["tell-tale"] = [code(nvmlDeviceGetConfComputeMemSizeInfo, h)[0], code(nvmlDeviceGetRunningProcessDetailList, h, nvmlProcessDetailList_v1, 2)]
""")
    assert answers["true"] == [6201, 6202, 6203]
    assert answers["naive"][0] == 6201
    assert answers["naive"][1:] != [6202, 6203]
    assert answers["tell-tale"] == ["ok", 13]


def test_gpm_metrics_are_means_between_two_samples(tmp_path: Path) -> None:
    """The step of metric 2 lies before both, that of metric 10 within: its mean is between the two levels."""
    scenario = (
        Scenario().instances({3: 20_096}).gpm({2: 10.0}).gpm({2: 62.5}, at=0.001).gpm({10: 0.0, 5: 7.5})
    )
    scenario.gpm({10: 100.0}, at=0.2).gpm({2: 99.25}, gi=3)
    answers = Host(tmp_path, scenario).ask("""
h = gpu(0)
def metrics(first, second, ids):
    m = c_nvmlGpmMetricsGet_t()
    m.version, m.sample1, m.sample2, m.numMetrics = NVML_GPM_METRICS_GET_VERSION, first, second, len(ids)
    for i, metric in enumerate(ids):
        m.metrics[i].metricId = metric
    nvmlGpmMetricsGet(m)
    return [(m.metrics[i].nvmlReturn, m.metrics[i].value) for i in range(len(ids))]
answers["supported"] = nvmlGpmQueryDeviceSupport(h).isSupportedDevice
one, two, three, part1, part2 = (nvmlGpmSampleAlloc() for _ in range(5))
time.sleep(0.01)
nvmlGpmSampleGet(h, one)
nvmlGpmSampleGet(h, two)
nvmlGpmMigSampleGet(h, 3, part1)
time.sleep(0.35)
nvmlGpmSampleGet(h, three)
nvmlGpmSampleGet(nvmlDeviceGetMigDeviceHandleByIndex(h, 0), part2)
answers["close"] = metrics(one, two, [2])
answers["apart"] = metrics(one, three, [2, 5, 10, 300])
answers["instance"] = metrics(part1, part2, [2, 5])
answers["mixed"] = code(metrics, one, part2, [2])
answers["no such instance"] = code(nvmlGpmMigSampleGet, h, 4, part1)
""")
    assert answers["supported"] == 1
    assert answers["close"] == [[21, 0]]
    steady, other, stepped, unknown = answers["apart"]
    assert [steady, other, unknown] == [[0, 62.5], [0, 7.5], [3, 0]]
    assert stepped[0] == 0
    assert 0 < stepped[1] < 100
    assert answers["instance"] == [[0, 99.25], [3, 0]]
    assert answers["mixed"] == answers["no such instance"] == 2


def test_an_xid_reaches_those_who_registered_before_it_once(tmp_path: Path) -> None:
    scenario = Scenario(gpus=2).xid(31, gpu=1, at=0).xid(79, gpu=1, at=0.2).xid(48, gpu=1, at=0.2)
    scenario.at(0.2, 0, "event", 0x100, 5)
    answers = Host(tmp_path, scenario).ask("""
events = nvmlEventSetCreate()
answers["before"] = code(nvmlEventSetWait_v2, events, 10)
time.sleep(0.01)
for i in (0, 1):
    nvmlDeviceRegisterEvents(gpu(i), nvmlEventTypeXidCriticalError & nvmlDeviceGetSupportedEventTypes(gpu(i)), events)
data = [nvmlEventSetWait_v2(events, 5000) for _ in range(2)]
answers["data"] = [(e.eventType, e.eventData, nvmlDeviceGetUUID(e.device)) for e in data]
answers["again"] = code(nvmlEventSetWait_v2, events, 10)
nvmlEventSetFree(events)
""")
    assert answers == {"before": 10, "data": [[8, 79, gpu_uuid(1)], [8, 48, gpu_uuid(1)]], "again": 10}


def test_sample_buffers_lie_on_a_grid_and_give_what_is_new(tmp_path: Path) -> None:
    scenario = Scenario(card=V100).values(power_mw=100_000).values(0.1, power_mw=200_000)
    answers = Host(tmp_path, scenario).ask("""
time.sleep(0.25)
h = gpu(0)
kind, samples = nvmlDeviceGetSamples(h, NVML_TOTAL_POWER_SAMPLES, 0)
answers["first"] = [s.sampleValue.uiVal for s in samples[:3]]
answers["steps_us"] = sorted({b.timeStamp - a.timeStamp for a, b in zip(samples, samples[1:])})
answers["newer"] = [s.timeStamp > samples[0].timeStamp for s in nvmlDeviceGetSamples(h, 0, samples[0].timeStamp)[1]]
answers["nothing new"] = code(nvmlDeviceGetSamples, h, 0, 2**63)
""")
    assert answers["first"] == [100_000, 200_000, 200_000]
    assert answers["steps_us"] == [100_000]
    assert answers["newer"]
    assert all(answers["newer"])
    assert answers["nothing new"] == 6


def test_calls_are_counted_and_a_write_ends_the_process(tmp_path: Path) -> None:
    host = Host(tmp_path, Scenario(gpus=2))
    host.ask("for _ in range(3): nvmlDeviceGetPowerUsage(gpu(1))\nnvmlShutdown()")
    found = counts(host.calls)
    assert found["nvmlDeviceGetPowerUsage", 1] == 3
    assert found["nvmlInitWithFlags", None] == 1
    assert ("nvmlDeviceGetPowerUsage", 0) not in found
    done = host.run("nvmlDeviceSetPersistenceMode(gpu(0), 1)")
    assert done.returncode < 0
    assert "nvmlDeviceSetPersistenceMode changes a GPU" in done.stderr


def test_processes_after_one_another_share_a_timeline_that_has_a_start(tmp_path: Path) -> None:
    scenario = Scenario(start_s=1_000_000_000).values(power_mw=5_000).values(10, power_mw=0, utilization=44)
    host = Host(tmp_path, scenario)
    for _ in range(2):
        answers = host.ask(
            'answers["now"] = [nvmlDeviceGetTotalEnergyConsumption(gpu(0)), nvmlDeviceGetUtilizationRates(gpu(0)).gpu]'
        )
        assert answers == {"now": [50_000, 44]}


def test_places_last_until_the_next_init_where_the_scenario_says_so(tmp_path: Path) -> None:
    scenario = Scenario(gpus=2, enumerate_at_init=True).absent(0, at=0.05)
    answers = Host(tmp_path, scenario).ask("""
first = gpu(0)
time.sleep(0.1)
answers["kept"] = [nvmlDeviceGetCount(), code(gpu, 0), code(nvmlDeviceGetPowerUsage, first), nvmlDeviceGetUUID(gpu(1))]
nvmlShutdown()
nvmlInit()
answers["anew"] = [nvmlDeviceGetCount(), nvmlDeviceGetUUID(gpu(0)), code(nvmlDeviceGetPowerUsage, first)]
""")
    assert answers == {"kept": [2, 6, 15, gpu_uuid(1)], "anew": [1, gpu_uuid(1), 2]}
