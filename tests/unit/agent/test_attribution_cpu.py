"""CPU of a process and of its busiest thread, in ticks of 10 ms."""

from pathlib import Path

import pytest
from fake_proc import FakeProc

from agent.attribution import Attribution
from agent.attribution.cpu import CpuUse

MANY = range(100, 300)


class Clock:
    def __init__(self) -> None:
        self.s = 50.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attribution(proc: FakeProc, clock: Clock) -> Attribution:
    found = Attribution("node", proc=proc.root, pods=proc.root / "pods", monotonic=clock)
    found._proc.ticks_per_s = 100
    return found


def test_the_first_call_knows_nothing_and_the_next_what_was_used_since(
    proc: FakeProc, attribution: Attribution, clock: Clock
) -> None:
    proc.add(7, ticks=1000, threads={7: 400, 8: 600})
    assert attribution.cpu(7) is None
    assert attribution.cpu(7) is None
    clock.s += 5
    proc.run(7, ticks=1600, threads={7: 900, 8: 700})
    assert attribution.cpu(7) == CpuUse(1.2, 1.0)
    clock.s += 5
    proc.run(7, ticks=1600, threads={7: 900, 8: 700})
    assert attribution.cpu(7) == CpuUse(0.0, 0.0)


def test_a_reused_pid_starts_anew(proc: FakeProc, attribution: Attribution, clock: Clock) -> None:
    proc.add(7, ticks=1000)
    attribution.cpu(7)
    clock.s += 5
    proc.run(7, ticks=100, start_ticks=999_999)
    assert attribution.cpu(7) is None


def test_a_thread_that_came_since_may_hide_the_busiest_once(
    proc: FakeProc, attribution: Attribution, clock: Clock
) -> None:
    proc.add(7, ticks=0, threads={7: 0})
    attribution.cpu(7)
    clock.s += 5
    proc.run(7, ticks=300, threads={7: 0, 8: 300})
    assert attribution.cpu(7) == CpuUse(0.6, None)
    clock.s += 5
    proc.run(7, ticks=600, threads={7: 0, 8: 600})
    assert attribution.cpu(7) == CpuUse(0.6, 0.6)


def test_of_many_threads_the_busy_ones_are_followed(
    proc: FakeProc, attribution: Attribution, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = dict.fromkeys(MANY, 1000)
    proc.add(7, ticks=200_000, threads=threads)
    attribution.cpu(7)
    clock.s += 5
    threads[150] += 450
    proc.run(7, ticks=200_450, threads=threads)
    assert attribution.cpu(7) == CpuUse(0.9, 0.9)
    read: list[int] = []
    real = attribution._proc.thread_ticks

    def counted(pid: int, thread: int) -> int | None:
        read.append(thread)
        return real(pid, thread)

    monkeypatch.setattr(attribution._proc, "thread_ticks", counted)
    clock.s += 5
    threads[150] += 400
    proc.run(7, ticks=200_850, threads=threads)
    assert attribution.cpu(7) == CpuUse(0.8, 0.8)
    assert len(read) < 10


def test_when_another_of_many_may_be_busier_it_is_unknown_then_found(
    proc: FakeProc, attribution: Attribution, clock: Clock
) -> None:
    threads = dict.fromkeys(MANY, 0)
    proc.add(7, threads=threads)
    attribution.cpu(7)
    clock.s += 5
    threads[100] += 300
    proc.run(7, ticks=300, threads=threads)
    assert attribution.cpu(7) == CpuUse(0.6, 0.6)
    ratios = []
    ticks = 300
    for _ in range(15):
        clock.s += 5
        threads[299] += 400
        ticks += 400
        proc.run(7, ticks=ticks, threads=threads)
        use = attribution.cpu(7)
        ratios.append(use and use.busiest_thread_ratio)
    assert ratios[0] is None
    assert set(ratios) == {None, 0.8}
    assert ratios[-1] == 0.8


def test_a_full_core_cannot_be_surpassed_by_threads_that_were_not_read(
    proc: FakeProc, attribution: Attribution, clock: Clock
) -> None:
    threads = dict.fromkeys(MANY, 0)
    proc.add(7, threads=threads)
    attribution.cpu(7)
    for step in range(1, 4):
        clock.s += 5
        proc.run(7, ticks=200 * 500 * step, threads=dict.fromkeys(MANY, 500 * step))
        assert attribution.cpu(7) == CpuUse(200.0, 1.0)


def test_a_forgotten_process_starts_anew(proc: FakeProc, attribution: Attribution, clock: Clock) -> None:
    proc.add(7)
    attribution.cpu(7)
    attribution.forget_all_but([])
    clock.s += 5
    assert attribution.cpu(7) is None
