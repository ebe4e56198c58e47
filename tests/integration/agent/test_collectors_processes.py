"""Process lists of the stand-in driver: merged by PID, and believed only where they can be."""

from pathlib import Path

import pytest
from driver_child import ask

from tests.standin import profiles
from tests.standin.scenario import GIB, H100, V100, Scenario, counts

READ = "say(Processes(gpu(0)).read())"
AGAIN = "p = Processes(gpu(0)); p.read(); say(p.read())"


def test_three_lists_are_merged_by_pid(tmp_path: Path) -> None:
    scenario = Scenario().processes(
        f"compute:10:{GIB}", f"graphics:10:{GIB}", "graphics:11:none", f"mps:12:{2 * GIB}", "compute:13:none"
    )
    said = ask(tmp_path, scenario.process_util("10:40:9:0:0", "13:7:1:0:0"), READ)
    assert sorted(said) == [
        [10, GIB, True, True, False, None, pytest.approx(0.4)],
        [11, None, False, True, False, None, 0.0],
        [12, 2 * GIB, True, False, True, None, 0.0],
        [13, None, True, False, False, None, pytest.approx(0.07)],
    ]


def test_one_call_a_list(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    ask(tmp_path, Scenario().processes(f"compute:10:{GIB}"), AGAIN, calls)
    told = counts(calls)
    assert told["nvmlDeviceGetComputeRunningProcesses_v3", 0] == 2
    assert told["nvmlDeviceGetMPSComputeRunningProcesses_v3", 0] == 2


def test_more_processes_than_there_was_room_for(tmp_path: Path) -> None:
    scenario = Scenario().processes(*(f"compute:{pid}:{pid}" for pid in range(1, 301)))
    scenario.process_util(*(f"{pid}:1:0:0:0" for pid in range(1, 91)))
    said = ask(tmp_path, scenario, READ)
    assert [(row[0], row[1], row[6]) for row in said] == [
        (pid, pid, 0.01 if pid <= 90 else 0.0) for pid in range(1, 301)
    ]


@pytest.mark.parametrize("layout", ["0", "535", "40"])
@pytest.mark.parametrize("driver", ["535.54.03", "580.95.05"])
def test_rows_are_read_by_the_stride_the_driver_writes(layout: str, driver: str, tmp_path: Path) -> None:
    listed = {6201: 12 * GIB, 6202: 5 * GIB, 6203: 3 * GIB}
    scenario = Scenario(driver=driver).at(0, "*", "layout", layout)
    scenario.processes(*(f"compute:{pid}:{memory}" for pid, memory in listed.items()))
    said = ask(tmp_path, scenario, AGAIN)
    assert {row[0]: row[1] for row in said} == listed


def test_a_list_with_a_row_that_cannot_be_is_not_believed(tmp_path: Path) -> None:
    scenario = Scenario().processes(f"compute:4294967295:{GIB}", f"compute:12:{GIB}")
    assert ask(tmp_path, scenario, READ) is None


def test_an_old_driver_has_the_second_version(tmp_path: Path) -> None:
    said = ask(tmp_path, profiles.old_driver_470(), READ)
    assert [row[:4] for row in said] == [[6101, 19 * GIB, True, False], [77, GIB, False, True]]
    assert [row[6] for row in said] == [0.0, 0.0]


@pytest.mark.parametrize("code", [3, 4, 6, 10, 13, 20])
def test_no_compute_list_is_not_an_empty_one(code: int, tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlDeviceGetComputeRunningProcesses_v3", code).processes("graphics:5:1")
    scenario.fail("nvmlDeviceGetComputeRunningProcesses_v2", code)
    assert ask(tmp_path, scenario, AGAIN) is None


def test_a_list_that_fails_this_time_leaves_all_unknown_and_an_absent_one_is_left_out(tmp_path: Path) -> None:
    for code, told in ((10, None), (3, [[10, 5, True, False, False, None, 0.0]])):
        scenario = (
            Scenario().fail("nvmlDeviceGetMPSComputeRunningProcesses_v3", code).processes("compute:10:5")
        )
        assert ask(tmp_path, scenario, AGAIN) == told


def test_a_lost_card_is_lost(tmp_path: Path) -> None:
    scenario = Scenario().fail("nvmlDeviceGetGraphicsRunningProcesses_v3", 15)
    assert ask(tmp_path, scenario, "say(tried(Processes(gpu(0)).read))") == ["GpuLost", 15]


@pytest.mark.parametrize("rows", [(), ("empty",), ("!junk", "!junk"), ("10:90:0:0:0@60",)])
@pytest.mark.parametrize("driver", ["580.95.05", "535.154.05"])
def test_no_fresh_row_is_a_process_that_did_nothing(
    rows: tuple[str, ...], driver: str, tmp_path: Path
) -> None:
    scenario = Scenario(driver=driver).processes("compute:10:5").process_util(*rows)
    assert [row[6] for row in ask(tmp_path, scenario, READ)] == [0.0]


def test_of_several_rows_the_newest_counts(tmp_path: Path) -> None:
    scenario = (
        Scenario()
        .processes("compute:10:5")
        .process_util("10:90:0:0:0@2", "10:30:0:0:0@1", "!junk", "10:101:0:0:0", "10:80:0:0:0@3")
    )
    assert [row[6] for row in ask(tmp_path, scenario, READ)] == [pytest.approx(0.3)]


def test_a_share_is_told_once_and_the_next_question_starts_after_it(tmp_path: Path) -> None:
    scenario = Scenario().processes("compute:10:5").process_util("10:90:0:0:0")
    code = "p = Processes(gpu(0), wall_us=lambda: time.time_ns() // 1000); p.read(); p.read(); say(p._since_us / 1e6)"
    import time

    before = time.time_ns() / 1e9
    assert before - 1 < ask(tmp_path, scenario, code) < before + 60


@pytest.mark.parametrize("card", [H100, V100])
def test_where_no_shares_are_told_they_are_unknown(card: dict[str, object], tmp_path: Path) -> None:
    scenario = Scenario(card=card).processes("compute:10:5")  # type: ignore[arg-type]
    scenario.fail("nvmlDeviceGetProcessesUtilizationInfo", 4).fail("nvmlDeviceGetProcessUtilization", 3)
    assert [row[6] for row in ask(tmp_path, scenario, AGAIN)] == [None]


def test_shares_of_another_pid_namespace_are_nobodys(tmp_path: Path) -> None:
    scenario = Scenario().processes("compute:10:5").process_util("40010:90:0:0:0")
    assert [row[6] for row in ask(tmp_path, scenario, AGAIN)] == [None]


def test_a_clock_set_back_does_not_look_like_idleness(tmp_path: Path) -> None:
    scenario = Scenario().processes("compute:10:5").process_util("10:90:0:0:0")
    code = (
        "ahead = [3_600_000_000]\n"
        "p = Processes(gpu(0), wall_us=lambda: time.time_ns() // 1000 + ahead[0])\n"
        "p._since_us = time.time_ns() // 1000 + 3_600_000_000; ahead[0] = 0; say(p.read())"
    )
    assert [row[6] for row in ask(tmp_path, scenario, code)] == [pytest.approx(0.9)]


def test_under_mig_time_is_nobodys_and_memory_is_the_instances(tmp_path: Path) -> None:
    code = "d = gpu(0); say([Processes(x).read() for x in (d, *instances(d))] + [Processes(d).read()])"
    parent, three, two, one, again = ask(tmp_path, profiles.mig(), code)
    assert again == [
        [5101, 38 * GIB, True, False, False, 1, None],
        [5102, 16 * GIB, True, False, False, 2, None],
    ]
    assert {row[6] for row in parent} == {None}
    assert [row[0] for row in three] == [5101]
    assert [(row[0], row[5], row[6]) for row in two] == [(5102, 2, None)]
    assert one == []


def test_a_process_on_two_instances_is_one_with_the_sum(tmp_path: Path) -> None:
    scenario = Scenario().instances({1: 40_448, 2: 20_096}).processes("compute:7:100:1", "compute:7:50:2")
    assert ask(tmp_path, scenario, READ) == [[7, 150, True, False, False, None, None]]


def test_a_card_under_mig_that_tells_shares_all_the_same_is_not_believed(tmp_path: Path) -> None:
    scenario = Scenario().processes("compute:10:5").process_util("10:90:0:0:0")
    said = ask(tmp_path, scenario, "d = gpu(0); d.mig_enabled = True; say(Processes(d).read())")
    assert [row[6] for row in said] == [None]
