"""Compile ``preload/clockshift.c``, and set the clock of the processes that it is preloaded into.

    clock = ShiftedClock(tmp_path)
    subprocess.Popen([...], env=os.environ | clock.environment)
    clock.set(7_200)

In a folder of its own: what lies beside this file is compiled into the stand-in driver.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.standin.build import CannotBuildError

SOURCE: Final = Path(__file__).parent / "preload" / "clockshift.c"
FLAGS: Final = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-lpthread", "-ldl")


class ShiftedClock:
    """A wall clock that is off; several processes may share it.

    Attributes:
        environment: for the processes that shall see it.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            raise CannotBuildError("the shifted clock needs a C compiler: install `cc`, or name one in CC")
        library, self._file = folder / "clockshift.so", folder / "clockshift"
        command = [compiler, str(SOURCE), *FLAGS, "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotBuildError(f"{compiler} refused the shifted clock:\n{done.stderr}")
        self.environment = {"LD_PRELOAD": str(library), "GPUWISE_CLOCK_SHIFT": str(self._file)}
        self.set(0)

    def set(self, ahead_s: float, *, drift_ppm: float = 0.0) -> None:
        """From now on ahead of the machine's clock by this (behind: negative), and drifting from there."""
        part = self._file.with_name(f"{self._file.name}.part")
        part.write_text(f"{ahead_s:.6f} {drift_ppm:.3f}\n")
        part.replace(self._file)
