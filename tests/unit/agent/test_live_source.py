"""Rounds over the GPUs of a host: identities once, readings always, losses as events."""

from pathlib import Path
from typing import Any

import pytest
from fake_nvml import FakeGpu, FakeNvml, process
from fake_proc import FakeProc

from agent.attribution import Attribution
from agent.nvml import Driver
from agent.once import once
from agent.sources.live import LiveSource
from core.activity import Activity, classify
from core.metrics import GPU_COLUMNS
from core.readings import GpuIdentity, GpuReading, ProcessReading
from core.samples import GpuEvent

T0 = 1_791_187_200_000


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.ms = T0

    def __call__(self) -> int:
        return self.ms

    def wait(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def source(*gpus: FakeGpu, proc: Path = Path("/nowhere")) -> tuple[LiveSource, FakeNvml]:
    library = FakeNvml(*gpus)
    attribution = Attribution("node", proc=proc)
    return LiveSource(Driver(library), "node", attribution), library


def of(things: list[Any], kind: type) -> list[Any]:
    return [thing for thing in things if isinstance(thing, kind)]


def test_each_gpu_is_introduced_once_and_read_every_round() -> None:
    live, _library = source(FakeGpu(), FakeGpu(uuid="GPU-b"))
    clock = Clock()
    first = live.tick(clock)
    clock.wait(1)
    second = live.tick(clock)
    assert [identity.gpu_uuid for identity in of(first, GpuIdentity)] == ["GPU-a", "GPU-b"]
    assert {identity.host for identity in of(first, GpuIdentity)} == {"node"}
    assert of(second, GpuIdentity) == []
    assert [(r.gpu_uuid, r.ts_ms - T0) for r in of(second, GpuReading)] == [
        ("GPU-a", 1_000),
        ("GPU-b", 1_000),
    ]


def test_what_a_sensor_cannot_mean_is_unknown_and_the_rest_is_kept() -> None:
    live, _library = source(FakeGpu(milliwatts=4_294_967_295))
    (reading,) = of(live.tick(Clock()), GpuReading)
    assert "power_w" not in reading.values
    assert reading.values["busy_ratio"] == 0.5


def test_slow_values_are_asked_every_five_seconds_and_stand_in_every_reading() -> None:
    card = FakeGpu()
    live, _library = source(card)
    clock = Clock()
    keys = set()
    for _ in range(11):
        (reading,) = of(live.tick(clock), GpuReading)
        keys.add(frozenset(reading.values))
        clock.wait(1)
    assert len(keys) == 1
    assert card.calls.count("fields") == 3


def test_a_lost_gpu_is_an_event_and_its_neighbour_goes_on() -> None:
    card, other = FakeGpu(), FakeGpu(uuid="GPU-b")
    live, _library = source(card, other)
    clock = Clock()
    live.tick(clock)
    clock.wait(1)
    card.fails[""] = 15
    things = live.tick(clock)
    assert of(things, GpuEvent) == [GpuEvent("GPU-a", T0 + 1_000, "lost", "The GPU stopped answering.", 15)]
    assert [r.gpu_uuid for r in of(things, GpuReading)] == ["GPU-b"]
    clock.wait(1)
    assert of(live.tick(clock), GpuEvent) == []
    card.fails.clear()
    clock.wait(60)
    again = live.tick(clock)
    assert [event.kind for event in of(again, GpuEvent)] == ["found"]
    assert {r.gpu_uuid for r in of(again, GpuReading)} == {"GPU-a", "GPU-b"}


def test_a_gpu_that_is_no_longer_listed_is_lost() -> None:
    live, library = source(FakeGpu(), FakeGpu(uuid="GPU-b"))
    clock = Clock()
    live.tick(clock)
    library.gpus.pop()
    clock.wait(60)
    (event,) = of(live.tick(clock), GpuEvent)
    assert (event.gpu_uuid, event.kind, event.code) == ("GPU-b", "lost", None)


def test_processes_are_named_by_executable_and_user(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(7, uid=0, exe="/usr/bin/python3")
    live, _library = source(FakeGpu(compute=[process(7, 100), process(8, None)]), proc=tmp_path)
    things = live.tick(Clock())
    known, unseen = of(things, ProcessReading)
    assert (known.workload.name, known.workload.user) == ("python3", "root")
    assert (unseen.workload.name, unseen.workload.user, unseen.memory_used_bytes) == ("pid 8", None, None)
    assert of(things, GpuReading)[0].values["process_count"] == 2


def test_a_display_server_is_listed_but_does_not_count_as_a_process() -> None:
    card = FakeGpu(busy=0, graphics=[process(9, 4 << 20)], used_bytes=5 << 20)
    live, _library = source(card)
    things = live.tick(Clock())
    (reading,) = of(things, GpuReading)
    assert reading.values["process_count"] == 0
    assert [listed.pid for listed in of(things, ProcessReading)] == [9]
    assert classify(reading.values, memory_total_bytes=150 << 30).activity is Activity.EMPTY


def test_an_empty_process_list_beside_held_memory_is_unknown() -> None:
    live, _library = source(FakeGpu())
    (reading,) = of(live.tick(Clock()), GpuReading)
    assert reading.values["memory_used_bytes"] > 1e9
    assert "process_count" not in reading.values


def test_once_gives_every_metric_of_the_catalogue_and_null_for_what_is_unknown(tmp_path: Path) -> None:
    FakeProc(tmp_path)
    card = FakeGpu(compute=[process(7, 100)], energy=[1_000_000 + 150_000 * i for i in range(5)])
    live, _library = source(
        card, FakeGpu(uuid="GPU-b", fails={"nvmlDeviceGetTotalEnergyConsumption": 3}), proc=tmp_path
    )
    clock = Clock()
    first, second = once(live, clock=clock, wait=clock.wait)
    assert set(GPU_COLUMNS) < set(first)
    assert first["gpu_uuid"] == "GPU-a"
    assert first["covered_s"] == 2
    assert first["energy_j"] == pytest.approx(600)
    assert first["energy_method"] == "counter"
    assert first["sm_active_ratio"] is None
    assert first["processes"] == [{"pid": 7, "name": "pid 7", "user": None, "memory_used_bytes": 100.0}]
    assert second["energy_method"] == "integrated"
    assert second["energy_j"] == pytest.approx(600)
    assert second["processes"] == []


def test_a_reset_energy_counter_gives_nothing_negative() -> None:
    card = FakeGpu(energy=[1_000_000, 1_150_000, 10_000, 160_000, 310_000])
    live, _library = source(card)
    clock = Clock()
    (sample,) = once(live, clock=clock, wait=clock.wait)
    assert sample["energy_method"] == "mixed"
    assert sample["energy_j"] == pytest.approx(150 * 4)
