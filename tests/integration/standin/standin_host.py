"""Child processes that ask the stand-in driver library through the real pynvml."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.standin.build import build_or_skip, environment
from tests.standin.scenario import Scenario

BEGIN = """
import ctypes, json, os, sys, threading, time
from pynvml import *
def code(call, *args):
    try:
        return ["ok", call(*args)]
    except NVMLError as error:
        return error.value
answers = {}
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex
"""
END = "\nprint(json.dumps(answers))\n"


class Host:
    """A folder with a driver library and a scenario, on which child processes ask NVML."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self.folder = folder
        self.scenario_file = scenario.write(folder / "scenario")
        self.calls = folder / "calls"
        self.env = environment(
            build_or_skip(folder / "driver", without=scenario.without), self.scenario_file, self.calls
        )

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", BEGIN + code + END]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False, timeout=60)

    def ask(self, code: str) -> dict[str, Any]:
        done = self.run(code)
        assert done.returncode == 0, done.stderr
        answers: dict[str, Any] = json.loads(done.stdout)
        return answers
