"""Every call fails with every code in turn: nothing is wrong, at most unknown, and nothing but the known errors is raised.

The binding's door to the library is wrapped, so that one process can go through all of it.
"""

import json
from pathlib import Path

import pytest
from driver_child import ask

from agent.driver.library import STABLE
from tests.standin import profiles
from tests.standin.scenario import Scenario, functions

CODES = (*range(1, 31), 999, 12345)
"""All of nvmlReturn_t, and one to come."""

COLLECT = """
import json, pynvml
real = pynvml._nvmlGetFunctionPointer

def everything():
    # A fresh look through all collectors; what is lost or dead is told by its name.
    said = {}
    lib = Library()
    def take(name, call):
        try:
            said[name] = call()
        except (GpuLost, StreamDead) as error:
            said[name] = type(error).__name__
    try:
        lib.open()
        lib.count()
        d = Device(lib, lib.handle(0), index=0)
    except (GpuLost, DriverError) as error:
        return {'start': type(error).__name__}
    quick, listed, gpm = Readings(d), Processes(d), Gpm(d)
    for _ in range(2):
        take('instances', lambda: [i.uuid for i in instances(d)])
        take('identity', lambda: identity(d))
        take('quick', lambda: quick.quick())
        take('slow', lambda: quick.slow())
        take('processes', listed.read)
        take('facts', lambda: facts(d))
        take('gpm', gpm.supported)
    try:
        stream = Events(lib, [d])
        take('events', lambda: stream.wait(0))
        stream.close()
    except StreamDead:
        said['events'] = 'StreamDead'
    gpm.close()
    lib.close()
    return said

def differs(good, now):
    # What is neither as it was nor unknown.
    wrong = []
    for topic, value in now.items():
        if value in ('GpuLost', 'StreamDead', 'DriverError', None, [], {}) or value == good.get(topic):
            continue
        if isinstance(value, dict):
            wrong += [(topic, k, v) for k, v in value.items() if v is not None and v != good[topic].get(k)]
        elif topic == 'processes':
            rows = {row[0]: row for row in good[topic]}
            wrong += [(topic, row) for row in value if not all(a in (None, b) for a, b in zip(row, rows[row[0]]))]
        elif topic != 'instances':
            wrong.append((topic, value))
    return wrong
"""


def steady() -> Scenario:
    """A busy card whose values stand still, so that any other value is a wrong one."""
    scenario = (
        profiles.busy_decode().values(nvlink_tx=0, nvlink_rx=0).at(0, "*", "energy", "value", 5_000_000)
    )
    scenario.at(0, "*", "reason_ns:74", 0).field(197, ret=3).field(198, ret=3)
    return scenario.at(0, "*", "processes", "compute:10:500", "graphics:11:none", "mps:12:7").at(
        0, "*", "process_util", "10:40:0:0:0", "11:30:0:0:0", "12:20:0:0:0"
    )


def test_every_function_fails_with_every_code(tmp_path: Path) -> None:
    code = f"""{COLLECT}
good = everything()
assert 'busy_ratio' in good['quick'] and len(good['processes']) == 3, good
wrong, silent = [], []
for name in json.loads({json.dumps(json.dumps(functions()))}):
    for code in {CODES}:
        # The gate keeps what it found in the binding's cache; a door with one failing function stands before it.
        pynvml._nvmlGetFunctionPointer = lambda asked: (lambda *_: code) if asked == name else real(asked)
        now = everything()
        wrong += [(name, code, *entry) for entry in differs(good, now)]
pynvml._nvmlGetFunctionPointer = real
assert everything() == good
say(wrong)
"""
    # NOT_FOUND from the table of shares means that nobody worked; version 1 of the memory call includes the reserve.
    meant = {
        ("nvmlDeviceGetProcessesUtilizationInfo", 6),
        *(("nvmlDeviceGetMemoryInfo_v2", code) for code in STABLE),
    }
    assert [entry for entry in ask(tmp_path, steady(), code) if tuple(entry[:2]) not in meant] == []


@pytest.mark.parametrize("name", ["quick", "facts"])
def test_every_field_value_fails_with_every_code(name: str, tmp_path: Path) -> None:
    code = f"""{COLLECT}
import struct
good = everything()
entry = struct.Struct('=IIqqIIQ')
wrong, hit = [], set()
for field in (82, 83, 185, 74, 76, 91, 94, 230, 269, 270, 271, 138, 139, 202):
    for code in {CODES}:
        def broken(handle, count, reference):
            told = real('nvmlDeviceGetFieldValues')(handle, count, reference)
            for at in range(0, count * entry.size, entry.size):
                row = entry.unpack_from(reference._obj, at)
                if row[0] == field:
                    hit.add(field)
                    entry.pack_into(reference._obj, at, *row[:4], 3, code, 77)
            return told
        pynvml._nvmlGetFunctionPointer = lambda asked: broken if asked.endswith('FieldValues') else real(asked)
        wrong += [(field, code, *one) for one in differs(good, everything()) if one[0] == {name!r}]
assert len(hit) == 14, hit
say(wrong)
"""
    assert ask(tmp_path, steady(), code) == []


def test_each_symbol_may_be_missing(tmp_path: Path) -> None:
    code = f"""{COLLECT}
good = everything()
wrong = []
for name in json.loads({json.dumps(json.dumps(functions()))}):
    def door(asked):
        if asked == name:
            raise pynvml.NVMLError(13)
        return real(asked)
    pynvml._nvmlGetFunctionPointer = door
    now = everything()
    wrong += [(name, *entry) for entry in differs(good, now)]
say(wrong)
"""
    wrong = ask(tmp_path, steady(), code)
    # Version 1 of the memory call adds the reserve, as its documentation says.
    assert [entry for entry in wrong if entry[0] != "nvmlDeviceGetMemoryInfo_v2"] == []


def test_names_that_are_no_text_are_unknown(tmp_path: Path) -> None:
    scenario = Scenario().values(utilization=30)
    code = """
import pynvml
def broken(handle): raise UnicodeDecodeError('utf-8', b'\\xff', 0, 1, 'invalid start byte')
pynvml.nvmlDeviceGetName = pynvml.nvmlDeviceGetPciInfo = broken
d = gpu(0); about = identity(d); say([about['model'], about['pci_bus_id'], Readings(d).quick()['busy_ratio']])
"""
    assert ask(tmp_path, scenario, code) == [None, None, pytest.approx(0.3)]
