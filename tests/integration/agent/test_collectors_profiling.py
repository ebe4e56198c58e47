"""GPM pairs, MIG instances and events of the stand-in driver."""

from pathlib import Path

import pytest
from driver_child import ask

from core.gpu_metrics import GPU_METRICS
from tests.standin import profiles
from tests.standin.scenario import GIB, Scenario, counts, gpu_uuid, mig_uuid

PAIR = """
g = Gpm({device})
first = g.supported(); time.sleep(0.15)
second = g.supported(); soon = g.pair(time.monotonic_ns()); time.sleep(0.15)
say([first, second, soon, g.pair(time.monotonic_ns())]); g.close()
"""


def test_two_samples_prove_the_counters_and_a_pair_gives_means(tmp_path: Path) -> None:
    metrics = {
        2: 70,
        3: 24,
        5: 9,
        6: 1,
        7: 8,
        9: 2,
        10: 62,
        11: 3,
        12: 6,
        13: 4,
        20: 100,
        21: 50,
        60: 10,
        61: 20,
    }
    first, second, soon, values = ask(tmp_path, Scenario().gpm(metrics), PAIR.format(device="gpu(0)"))
    assert (first, second, soon) == (False, True, None)
    assert values == pytest.approx(
        {
            "sm_active_ratio": 0.70,
            "sm_occupancy_ratio": 0.24,
            "tensor_active_ratio": 0.09,
            "tensor_dfma_active_ratio": 0.01,
            "tensor_hmma_active_ratio": 0.08,
            "tensor_imma_active_ratio": 0.02,
            "dram_active_ratio": 0.62,
            "fp64_active_ratio": 0.03,
            "fp32_active_ratio": 0.06,
            "fp16_active_ratio": 0.04,
            "pcie_tx_bytes_per_s": 100 << 20,
            "pcie_rx_bytes_per_s": 50 << 20,
            "nvlink_rx_bytes_per_s": 10 << 20,
            "nvlink_tx_bytes_per_s": 20 << 20,
        }
    )
    assert values.keys() <= {metric.reading for metric in GPU_METRICS}


def test_a_metric_the_driver_refuses_is_left_out(tmp_path: Path) -> None:
    said = ask(tmp_path, Scenario().at(0, "*", "gpm:10", None), PAIR.format(device="gpu(0)"))
    assert "dram_active_ratio" not in said[3]
    assert said[3]["sm_active_ratio"] == 0.0


def test_the_flag_alone_decides_only_against_it(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    without = Scenario().values(gpm_supported=0)
    assert ask(tmp_path, without, PAIR.format(device="gpu(0)"), calls)[:2] == [False, False]
    assert ("nvmlGpmSampleGet", 0) not in counts(calls)
    assert ask(tmp_path, profiles.old_driver_470(), PAIR.format(device="gpu(0)"))[1] is False


@pytest.mark.parametrize("code", [3, 4, 999])
def test_samples_that_fail_are_tried_again_after_ten_minutes(code: int, tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlGpmSampleGet", code, until=0.4)
    code_text = """
ahead = [0]
d = gpu(0); g = Gpm(d, clock=lambda: time.monotonic_ns() + ahead[0])
a = g.supported(); until(0.5); b = g.supported(); ahead[0] = 601_000_000_000
c = g.supported(); time.sleep(0.15); say([a, b, c, g.supported(), Readings(d).quick()['busy_ratio']])
"""
    assert ask(tmp_path, scenario, code_text) == [False, False, False, True, 0.0]


def test_counters_that_end_give_way_to_others(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlGpmSampleGet", 4, at=0.5)
    code = """
d = gpu(0); g = Gpm(d); r = Readings(d)
g.supported(); time.sleep(0.15); g.supported(); r.quick()
with_gpm = [sorted(r.quick()), r.slow()]
until(0.6); pair = g.pair(time.monotonic_ns()); r.quick()
say([*with_gpm, pair, g.supported(), sorted(r.quick()), sorted(r.slow())])
"""
    quick, slow, pair, supported, quick_after, slow_after = ask(tmp_path, scenario, code)
    assert "nvlink_rx_bytes_per_s" not in quick
    assert slow == {}
    assert (pair, supported) == (None, False)
    assert "nvlink_rx_bytes_per_s" in quick_after
    assert slow_after == ["pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"]


def test_a_lost_card_is_told_by_its_samples(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlGpmSampleGet", 15)
    assert ask(tmp_path, scenario, "say(tried(Gpm(gpu(0)).supported))") == ["GpuLost", 15]


def test_instances_are_found_beyond_holes_with_counters_of_their_own(tmp_path: Path) -> None:
    scenario = profiles.mig().at(0, 0, "instance", 2, None)
    code = """
d = gpu(0); found = instances(d); g = [Gpm(i) for i in found]
[one.supported() for one in g]; time.sleep(0.15); [one.supported() for one in g]; time.sleep(0.15)
say([[i.uuid, i.gpu_instance, i.compute_instance, i.index, Readings(i).quick(), Readings(i).slow(), facts(i),
      one.pair(time.monotonic_ns())] for i, one in zip(found, g)] + [d.mig_enabled, sorted(Readings(d).quick())])
"""
    three, one, enabled, card = ask(tmp_path, scenario, code)
    assert enabled is True
    assert three[:4] == [mig_uuid(0, 1), 1, 0, 0]
    assert three[4]["memory_used_bytes"] == 38 * GIB
    assert three[5:7] == [{}, {}]
    assert three[7]["sm_active_ratio"] == pytest.approx(0.77)
    assert one[0] == mig_uuid(0, 7)
    assert one[7]["sm_active_ratio"] == 0.0
    assert "busy_ratio" not in card
    assert "power_w" in card


def test_an_instance_made_anew_starts_a_new_pair(tmp_path: Path) -> None:
    code = """
d = gpu(0); i = instances(d)[0]; g = Gpm(d, mig_instance=i)
g.supported(); time.sleep(0.15); g.supported(); time.sleep(0.15); i.uuid = 'MIG-other'
a = g.pair(time.monotonic_ns()); time.sleep(0.15); say([a, g.pair(time.monotonic_ns()) is None])
"""
    assert ask(tmp_path, profiles.mig(), code) == [None, False]


def test_turning_mig_on_and_off_forgets_what_was_refused(tmp_path: Path) -> None:
    scenario = Scenario().instances({1: 40_448}).at(0.4, 0, "mig", 0, 0)
    code = """
d = gpu(0); r = Readings(d); a = [len(instances(d)), 'busy_ratio' in r.quick()]
until(0.5); say([*a, len(instances(d)), 'busy_ratio' in r.quick()])
"""
    assert ask(tmp_path, scenario, code) == [1, False, 0, True]


def test_events_are_told_with_their_gpu_even_when_it_lost_its_name(tmp_path: Path) -> None:
    scenario = (
        Scenario(gpus=2).xid(79, gpu=1, at=0.4).at(0.4, 0, "event", 0x8000, 2).at(0.4, 0, "event", 0x10, 1)
    )
    scenario.at(0.4, 0, "event", 0x100, 0).lost(1, at=0.4)
    code = "e = Events(library, [gpu(0), gpu(1)]); a = e.wait(20); b = e.wait(3000); say([a, sorted(b)]); e.close()"
    idle, heard = ask(tmp_path, scenario, f"gpu(0); {code}")
    assert idle == []
    assert heard == [[0, "mig", 0], [0, "recovery_action", 2], [1, "xid", 79]]


@pytest.mark.parametrize("code", [1, 3, 999])
def test_a_stream_that_fails_is_dead(code: int, tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlEventSetWait_v2", code)
    said = ask(
        tmp_path, scenario, "d = gpu(0); e = Events(library, [d]); say(tried(lambda: e.wait(50))); e.close()"
    )
    assert said == ["StreamDead", code]


def test_no_card_to_register_is_no_stream(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlDeviceRegisterEvents", 3)
    assert ask(tmp_path, scenario, "d = gpu(0); say(tried(lambda: Events(library, [d])))") == [
        "StreamDead",
        0,
    ]
    scenario = Scenario(gpus=2).fail("nvmlDeviceRegisterEvents", 15, gpu=0)
    said = ask(tmp_path, scenario, "e = Events(library, [gpu(0), gpu(1)]); say(e.wait(10)); e.close()")
    assert said == []


def test_instances_cannot_be_registered(tmp_path: Path) -> None:
    code = "d = gpu(0); e = Events(library, [*instances(d), d]); say(list(e._by_uuid)); e.close()"
    assert ask(tmp_path, profiles.mig(), code) == [gpu_uuid(0)]
