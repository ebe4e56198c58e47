"""Takes a pair of GPM samples each second, ten times as often as the agent, and says what one costs."""

import argparse
import json
import time
from statistics import median

from agent.collectors.gpm import Gpm
from agent.driver.device import Device
from agent.driver.library import Library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uuid", required=True)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--interval", type=float, default=1.0)
    words = parser.parse_args()
    library = Library()
    library.open()
    device = next(one for one in _devices(library) if one.uuid == words.uuid)
    gpm = Gpm(device)
    gpm.supported()
    time.sleep(0.3)
    if not gpm.supported():
        print(json.dumps({"calls": 0, "why": "GPM gives nothing here"}))
        return
    wall: list[float] = []
    cpu: list[float] = []
    until = time.monotonic() + words.seconds
    while time.monotonic() < until:
        time.sleep(words.interval)
        before, cpu_before = time.perf_counter(), time.thread_time()
        values = gpm.pair(time.monotonic_ns())
        if values is not None:
            wall.append((time.perf_counter() - before) * 1000)
            cpu.append((time.thread_time() - cpu_before) * 1000)
    gpm.close()
    library.close()
    told: dict[str, float] = {"calls": len(wall)}
    if wall:
        told |= {"wall_ms": median(wall), "wall_max_ms": max(wall), "cpu_ms": median(cpu)}
    print(json.dumps(told))


def _devices(library: Library) -> list[Device]:
    return [Device(library, library.handle(index), index=index) for index in range(library.count())]


if __name__ == "__main__":
    main()
