"""Frames of the driver process in the words of the house: states of a GPU, what is kept between rounds, processes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_proc import FakeProc

from agent.attribution import Attribution
from agent.intake import (
    FOUND_MESSAGE,
    GONE_MESSAGE,
    LOST_MESSAGE,
    OUTSIDE_MS,
    STUCK_MESSAGE,
    Intake,
    Something,
)
from core.clock import SteadyClock
from core.readings import GpuHealth, GpuIdentity, GpuReading, ProcessReading
from core.samples import GpuEvent
from core.units import GIB

NOW_NS = time.monotonic_ns()
S = 1_000_000_000


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    proc = FakeProc(tmp_path / "proc")
    for pid in (10, 11, 12):
        proc.add(pid)
    return Intake("node-a", Attribution("node-a", proc=proc.root, pods=tmp_path / "pods"), SteadyClock())


def identity(uuid: str, index: int, **more: Any) -> dict[str, Any]:
    facts = {"gpu_uuid": uuid, "index": index, "model": "H100", "memory_total_bytes": 80 * GIB}
    return {**facts, "driver_version": "580.95.05", **more}


def listed(intake: Intake, *uuids: str, skipped: Sequence[int] = (), **more: Any) -> list[Something]:
    return intake.take(("gpus", [identity(uuid, at, **more) for at, uuid in enumerate(uuids)], list(skipped)))


def tick(intake: Intake, at_s: float, missed: int = 0, **values: dict[str, float]) -> list[Something]:
    at_ns = NOW_NS + round(at_s * S)
    return intake.take(
        ("tick", at_ns, 5_000_000, [(uuid, at_ns, held) for uuid, held in values.items()], missed)
    )


def process(
    pid: int, memory: float | None = None, *, computes: bool = True, mps: bool = False
) -> tuple[Any, ...]:
    return pid, memory, computes, not computes, mps, None, 0.5


def events(things: Sequence[Something]) -> list[tuple[str, str, str]]:
    return [(one.gpu_uuid, one.kind, one.message) for one in things if isinstance(one, GpuEvent)]


def values(things: Sequence[Something]) -> dict[str, float]:
    (reading,) = (one for one in things if isinstance(one, GpuReading))
    return dict(reading.values)


def test_an_identity_is_told_when_it_is_new_or_changed(intake: Intake) -> None:
    assert [type(one) for one in listed(intake, "A", "B")] == [GpuIdentity, GpuIdentity]
    assert listed(intake, "A", "B") == []
    moved = intake.take(("gpus", [identity("B", 0), identity("A", 1)], []))
    assert [(one.gpu_uuid, one.index) for one in moved if isinstance(one, GpuIdentity)] == [
        ("B", 0),
        ("A", 1),
    ]
    assert events(moved) == []


def test_a_gpu_that_is_no_longer_listed_is_lost_once_unless_it_is_left_alone(intake: Intake) -> None:
    listed(intake, "A", "B")
    assert events(listed(intake, "A", skipped=[1])) == []
    assert events(listed(intake, "A")) == [("B", "lost", GONE_MESSAGE)]
    assert listed(intake, "A") == []
    assert intake.away == {"B": "lost"}
    assert events(listed(intake, "A", "B")) == [("B", "found", FOUND_MESSAGE)]
    assert intake.away == {}


def test_a_lost_gpu_keeps_its_code_and_is_told_once(intake: Intake) -> None:
    listed(intake, "A", "B")
    (event,) = intake.take(("lost", NOW_NS, "B", 15))
    assert isinstance(event, GpuEvent)
    assert (event.kind, event.message, event.code) == ("lost", LOST_MESSAGE, 15)
    assert intake.take(("lost", NOW_NS, "B", 15)) == []
    assert intake.take(("stuck", NOW_NS, 1)) == []


def test_a_hang_concerns_the_card_and_its_instances_and_one_of_the_driver_everybody(intake: Intake) -> None:
    raw = [identity("A", 0), identity("B", 1), identity("MIG-B1", 1)]
    intake.take(("gpus", raw, []))
    assert events(intake.take(("stuck", NOW_NS, 1))) == [
        ("B", "stuck", STUCK_MESSAGE),
        ("MIG-B1", "stuck", STUCK_MESSAGE),
    ]
    assert [one[0] for one in events(intake.take(("stuck", NOW_NS, None)))] == ["A"]
    assert set(intake.away.values()) == {"stuck"}


def test_a_driver_that_is_gone_loses_everybody_and_says_why(
    intake: Intake, caplog: pytest.LogCaptureFixture
) -> None:
    listed(intake, "A", "B")
    said = events(intake.take(("down", NOW_NS, "the driver is not loaded")))
    assert said == [("A", "lost", "The driver is not loaded."), ("B", "lost", "The driver is not loaded.")]
    assert intake.take(("down", NOW_NS, "the driver is not loaded")) == []
    assert caplog.records == []  # the reader has said it, once for all GPUs
    found = listed(intake, "A", "B", driver_version="590.10")
    assert ("A", "driver", "Driver 590.10 instead of 580.95.05.") in events(found)


def test_counters_wait_for_the_readings_they_belong_to_and_are_released_at_a_loss(intake: Intake) -> None:
    listed(intake, "A")
    assert values(tick(intake, 0, A={"busy_ratio": 0.5})) == {"busy_ratio": 0.5}
    intake.take(("gpm", "A", NOW_NS, NOW_NS + S // 10, {"sm_active_ratio": 0.3}))
    assert tick(intake, 1, A={"busy_ratio": 0.6}) == []
    pair = intake.take(
        ("gpm", "A", NOW_NS + S // 2, NOW_NS + 2 * S, {"sm_active_ratio": 0.4, "dram_active_ratio": 7.0})
    )
    assert values(pair) == {"busy_ratio": 0.6, "sm_active_ratio": 0.4}  # 7 cannot be a share
    assert tick(intake, 3, A={"busy_ratio": 0.7}) == []
    lost = intake.take(("lost", NOW_NS, "A", 15))
    assert values(lost) == {"busy_ratio": 0.7}
    assert isinstance(lost[-1], GpuEvent)  # behind the last reading
    tick(intake, 4, A={"busy_ratio": 0.8})
    assert intake.release() == []


def test_slow_readings_stay_until_the_next_and_end_when_they_are_not_told_any_more(intake: Intake) -> None:
    listed(intake, "A")
    intake.take(("slow", "A", NOW_NS, {"pcie_rx_bytes_per_s": 5e9, "pcie_tx_bytes_per_s": -1.0}))
    assert values(tick(intake, 0, A={"busy_ratio": 0.5})) == {"busy_ratio": 0.5, "pcie_rx_bytes_per_s": 5e9}
    intake.take(("slow", "A", NOW_NS, {"pcie_tx_bytes_per_s": 1e9}))
    assert values(tick(intake, 1, A={})) == {"pcie_tx_bytes_per_s": 1e9}
    intake.take(("slow", "A", NOW_NS, {}))
    assert values(tick(intake, 2, A={"busy_ratio": 0.5})) == {"busy_ratio": 0.5}


def test_counters_from_outside_fill_gaps_for_a_while(intake: Intake) -> None:
    listed(intake, "A")
    intake.outside({"A": {"sm_active_ratio": 0.3, "busy_ratio": 0.1}}, NOW_NS)
    assert values(tick(intake, 1, A={"busy_ratio": 0.9})) == {"busy_ratio": 0.9, "sm_active_ratio": 0.3}
    assert values(tick(intake, OUTSIDE_MS / 1000 + 1, A={"busy_ratio": 0.9})) == {"busy_ratio": 0.9}


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([process(10), process(11, mps=True)], 2.0),
        ([process(10), process(11, GIB / 2, computes=False)], 1.0),
        ([], 0.0),
        ([process(11, GIB / 2, computes=False)], 0.0),
        (
            [process(11, 2 * GIB, computes=False)],
            None,
        ),  # it draws, yet holds what no display holds: not known
        (None, None),
    ],
)
def test_what_counts_as_holding_a_gpu(rows: list[Any] | None, count: float | None, intake: Intake) -> None:
    listed(intake, "A")
    intake.take(("processes", "A", NOW_NS, rows))
    assert values(tick(intake, 1, A={"busy_ratio": 0.5})).get("process_count") == count


def test_a_list_that_is_no_longer_told_leaves_the_count_unknown(intake: Intake) -> None:
    listed(intake, "A")
    things = intake.take(("processes", "A", NOW_NS, [process(10, 5 * GIB)]))
    (one,) = things
    assert isinstance(one, ProcessReading)
    assert (one.pid, one.memory_used_bytes, one.busy_ratio) == (10, 5 * GIB, 0.5)
    assert one.workload.host == "node-a"
    assert values(tick(intake, 1, A={}))["process_count"] == 1
    intake.take(("processes", "A", NOW_NS, None))
    assert "process_count" not in values(tick(intake, 2, A={}))


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("xid", 79, "XID 79: GPU has fallen off the bus."),
        ("xid", 999, "The driver reported a critical error without a number."),
        ("mig", 0, "The MIG configuration changed."),
        ("lost", 0, "The driver says the GPU is not available."),
        ("recovery_action", 1, "The driver asks for a recovery action."),
    ],
)
def test_events_of_the_driver_are_sentences(kind: str, code: int, message: str, intake: Intake) -> None:
    listed(intake, "A")
    (event,) = intake.take(("event", NOW_NS, "A", kind, code))
    assert isinstance(event, GpuEvent)
    assert (event.kind, event.message, event.code) == (kind, message, code)


def test_health_is_handed_on_and_its_changes_are_events(intake: Intake) -> None:
    listed(intake, "A")
    good = {"power_limit_w": 700.0, "ecc_uncorrected_count": 0.0}
    assert [type(one) for one in intake.take(("health", "A", NOW_NS, good))] == [GpuHealth]
    said = intake.take(("health", "A", NOW_NS + S, {"power_limit_w": 500.0, "ecc_uncorrected_count": 2.0}))
    assert events(said) == [
        ("A", "ecc", "Uncorrected ECC errors since the driver was loaded: 2."),
        ("A", "power_limit", "Power limit in watts changed from 700 to 500."),
    ]


def test_rounds_that_were_skipped_are_counted_once(intake: Intake) -> None:
    listed(intake, "A")
    tick(intake, 0, missed=3, A={})
    tick(intake, 1, missed=0, A={})
    assert intake.take_costs() == {"agent_skipped_count": 3, "agent_tick_s": 0.005, "agent_tick_max_s": 0.005}
    assert intake.take_costs() == {"agent_skipped_count": 0}


def test_a_frame_of_a_later_version_says_nothing(intake: Intake) -> None:
    assert intake.take(("hello", "580", "12")) == []
    assert intake.take(("something new", 1, 2)) == []
