"""A process that loads the stand-in driver through the real binding and says what the collectors make of it.

    said = ask(tmp_path, scenario, "say(Readings(gpu(0)).quick())")

Run as a program it executes its first argument, with the names below, and prints what ``say`` was given as JSON.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.standin.build import build_or_skip, environment
from tests.standin.scenario import Scenario

ROOT = Path(__file__).parents[3]


def ask(folder: Path, scenario: Scenario, code: str, calls: Path | None = None) -> Any:
    """What ``code`` said at last; None when it said nothing. Fails with the child's error when it raised."""
    library = build_or_skip(folder / "driver", without=scenario.without)
    where = environment(library, scenario.write(folder / "scenario"), calls) | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, __file__, code], env=where, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def _run(code: str) -> None:
    from agent.collectors.events import Events, StreamDead
    from agent.collectors.gpm import Gpm
    from agent.collectors.health import facts
    from agent.collectors.identity import identity
    from agent.collectors.mig import instances
    from agent.collectors.processes import Processes
    from agent.collectors.readings import Readings
    from agent.driver.device import Device
    from agent.driver.library import DriverError, GpuLost, Library

    library = Library()

    def gpu(index: int) -> Device:
        if library.driver_version is None:
            library.open()
        return Device(library, library.handle(index), index=index)

    def until(seconds: float) -> None:
        """Wait for a time of the scenario, which began with the first initialisation."""
        gpu(0)
        time.sleep(max(0.0, started + seconds - time.monotonic()))

    def tried(call: Any) -> Any:
        """The result, or the name and code of what was raised."""
        try:
            return call()
        except (GpuLost, DriverError, StreamDead) as error:
            return [type(error).__name__, error.code]

    started = time.monotonic()
    names = (
        Events,
        StreamDead,
        Gpm,
        facts,
        identity,
        instances,
        Processes,
        Readings,
        Device,
        Library,
        DriverError,
        GpuLost,
    )
    exec(
        code,
        {name.__name__: name for name in names}
        | {"library": library, "gpu": gpu, "until": until, "tried": tried, "time": time}
        | {"say": lambda value: sys.stdout.write(json.dumps(value) + "\n")},
    )
    library.close()


if __name__ == "__main__":
    _run(sys.argv[1])
