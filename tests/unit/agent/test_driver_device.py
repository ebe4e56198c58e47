"""The gate: absent for good, unknown this time, lost; and many field values in one call."""

import struct
from typing import Any

import pytest
from fake_nvml import FakeGpu, FakeNvml

from agent.collectors.readings import Readings
from agent.driver.device import Device
from agent.driver.fields import decoded
from agent.driver.library import STABLE, STATE, GpuLost, Library

POWER = "nvmlDeviceGetPowerUsage"
NOT_AVAILABLE = (1 << 64) - 1


def device(card: FakeGpu, **more: Any) -> Device:
    library = Library(FakeNvml(card, **more))
    library.open()
    return Device(library, library.handle(0), index=0)


@pytest.mark.parametrize("code", sorted(STABLE))
def test_what_a_card_lacks_is_asked_once(code: int) -> None:
    card = FakeGpu(fails={POWER: code})
    gate = device(card)
    assert [gate.call(POWER) for _ in range(3)] == [None] * 3
    assert card.calls.count(POWER) == 1
    assert gate.absent == {POWER: code}
    gate.forget()
    gate.call(POWER)
    assert card.calls.count(POWER) == 2


@pytest.mark.parametrize("code", [0, 5, 6, 7, 8, 10, 11, 14, 17, 20, 21, 27, 12345])
def test_what_fails_this_time_is_asked_again(code: int) -> None:
    card = FakeGpu()
    gate = device(card)
    gate.library.nvml._answer = lambda *_: (_ for _ in ()).throw(FakeNvml.NVMLError(code))
    assert gate.call(POWER) is None
    assert gate.absent == {}


@pytest.mark.parametrize("code", sorted(STATE))
def test_a_state_is_raised_each_time_and_never_kept(code: int) -> None:
    card = FakeGpu(fails={POWER: code})
    gate = device(card)
    for _ in range(2):
        with pytest.raises(GpuLost) as raised:
            gate.call(POWER)
        assert raised.value.code == code
    card.fails.clear()
    assert gate.call(POWER) == 300_000


def test_one_argument_refused_leaves_the_other() -> None:
    card = FakeGpu()
    gate = device(card)
    good = gate.library.nvml.nvmlDeviceGetClockInfo

    def clock(gpu: FakeGpu, kind: int) -> int:
        if kind == 1:
            raise FakeNvml.NVMLError(3)
        return int(good(gpu, kind))

    gate.library.nvml.nvmlDeviceGetClockInfo = clock
    assert (gate.call("nvmlDeviceGetClockInfo", 1), gate.call("nvmlDeviceGetClockInfo", 2)) == (None, 3_201)
    assert gate.absent == {"nvmlDeviceGetClockInfo(1)": 3}


def test_a_binding_older_than_a_call_and_a_library_that_does_not_match_it() -> None:
    gate = device(FakeGpu())
    assert gate.call("nvmlDeviceGetOfYetToCome", 1) is None
    assert gate.absent == {"nvmlDeviceGetOfYetToCome": 13}

    class MismatchError(Exception):
        pass

    def mismatched(_gpu: FakeGpu) -> int:
        raise MismatchError

    gate.library.mismatch = MismatchError
    gate.library.nvml.nvmlDeviceGetOldList = mismatched
    assert gate.call("nvmlDeviceGetOldList") is None
    assert gate.absent["nvmlDeviceGetOldList"] == 13


def test_no_handle_reaches_no_call_and_a_card_without_a_name_is_lost() -> None:
    library = Library(FakeNvml(FakeGpu(uuid="")))
    library.open()
    with pytest.raises(GpuLost):
        Device(library, None, index=0)
    with pytest.raises(GpuLost):
        Device(library, library.handle(0), index=0)


def test_entries_are_asked_together_and_judged_one_by_one() -> None:
    card = FakeGpu(fields={(82, 0): (0, 1, 55), (83, 1): (0, 3, 9), (74, 0): (3, 3, 0), (76, 0): (10, 3, 7)})
    gate = device(card)
    asked = (82, (83, 1), 74, 76, 77)
    assert gate.fields(asked) == {82: 55, (83, 1): 9}
    assert gate.fields(asked) == {82: 55, (83, 1): 9}
    assert card.asked == [
        ((82, 0), (83, 1), (74, 0), (76, 0), (77, 0)),
        ((82, 0), (83, 1), (76, 0), (77, 0)),
    ]
    assert gate.absent == {"field 74": 3}
    assert gate.lacks(74)
    assert not gate.lacks(76)


def test_an_entry_passed_over_does_not_keep_the_value_of_last_time() -> None:
    card = FakeGpu(fields={(82, 0): (0, 1, 55)})
    gate = device(card)
    assert gate.fields((82,)) == {82: 55}
    del card.fields[82, 0]
    assert gate.fields((82,)) == {}


def test_a_driver_that_refuses_all_for_one_it_does_not_know() -> None:
    card = FakeGpu(fields={(82, 0): (0, 1, 55), (83, 0): (0, 3, 9)}, fails={"unknown field": 2})
    gate = device(card)
    asked = (82, 269, 83)
    assert gate.fields(asked) == {82: 55, 83: 9}
    assert gate.fields(asked) == {82: 55, 83: 9}
    assert card.asked[-1] == ((82, 0), (83, 0))
    assert gate.absent == {"field 269": 2}


@pytest.mark.parametrize(
    ("code", "asked_again"), [(3, False), (4, False), (13, False), (10, True), (20, True)]
)
def test_a_batch_that_fails_as_a_whole(code: int, asked_again: bool) -> None:
    card = FakeGpu(fails={"fields": code})
    gate = device(card)
    assert gate.fields((82, 83)) == {}
    assert gate.fields((82, 83)) == {}
    assert len(card.asked) == 1 + asked_again


@pytest.mark.parametrize("where", ["call", "entry"])
def test_a_card_lost_within_a_batch(where: str) -> None:
    card = FakeGpu(fields={(82, 0): (0, 1, 5), (83, 0): (15, 3, 0)})
    if where == "call":
        card.fails = {"fields": 15}
    with pytest.raises(GpuLost):
        device(card).fields((82, 83))


def test_a_library_without_field_values() -> None:
    card = FakeGpu()
    gate = device(card, lacks=("nvmlDeviceGetFieldValues",))
    assert gate.fields((82,)) == {}
    assert gate.absent == {"field 82": 13}


def _raw(form: str, value: float) -> int:
    return int.from_bytes(struct.pack(form, value).ljust(8, b"\0"), "little")


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (0, _raw("<d", 2.5), 2.5),
        (0, _raw("<d", float("nan")), None),
        (0, _raw("<d", float("inf")), None),
        (1, 0xDEAD_0000_0005, 5),
        (1, 0xFFFF_FFFF, None),
        (2, 7, 7),
        (3, 1 << 40, 1 << 40),
        (3, NOT_AVAILABLE, None),
        (4, _raw("<q", -3), -3),
        (5, _raw("<i", -4), -4),
        (6, 0x1_0007, 7),
        (7, 1, None),
    ],
)
def test_the_member_that_the_type_names(kind: int, raw: int, value: float | None) -> None:
    assert decoded(kind, raw) == value


def test_the_energy_of_a_module_is_taken_where_the_card_has_none_and_marked() -> None:
    card = FakeGpu(fields={(83, 0): (3, 3, 0), (83, 1): (0, 3, 7_000)})
    readings = Readings(device(card))
    assert readings.quick()["energy_j"] == 7.0
    assert readings.energy_is_module is True
    card.fields = {(83, 0): (10, 3, 0), (83, 1): (0, 3, 7_000)}
    passing = Readings(device(card))
    assert "energy_j" not in passing.quick()  # unknown this time: no reason to count something else
    card.fields[83, 0] = (0, 3, 5_000)
    assert passing.quick()["energy_j"] == 5.0
    assert passing.energy_is_module is False
