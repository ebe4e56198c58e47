"""``gpuwise doctor``: argparse, so that the base install has it too."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from agent.doctor import driver, host, reach
from agent.doctor.checks import BAD, OK, Check
from agent.doctor.text import MOST_COLUMNS, render
from core.errors import SettingsError
from core.settings import Settings, load

_NO_SETTINGS: Final = ("GPUWISE_CONFIG", "GPUWISE_LOG")
_FOR_TESTS: Final = ("GPUWISE_TEST_", "GPUWISE_STANDIN")


def main(
    argv: Sequence[str] | None = None,
    *,
    more: Callable[[Settings], list[Check]] | None = None,
    root: Path = Path("/"),
) -> int:
    """Look at everything and print it; 1 when something does not work.

    Args:
        argv: words after ``gpuwise doctor``.
        more: looks of the server part; None where it is not installed, and then a missing driver is a fault.
        root: of the file system, for tests.
    """
    words = parser().parse_args(argv)
    checks: list[Check] = []
    settings: Settings | None = None
    try:
        settings = load({"database_url": words.database_url, "hostname": words.hostname})
        checks.append(Check("settings", *_environment()))
    except SettingsError as error:
        checks.append(Check("settings", BAD, str(error)))
    checks += driver.checks(must=more is None, root=root, limit_s=words.driver_timeout)
    checks += host.checks(root)
    if settings is not None:
        checks += reach.checks(settings)
        if more is not None:
            checks += more(settings)
    if words.json:
        json.dump([asdict(check) for check in checks], sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        columns = (
            shutil.get_terminal_size((MOST_COLUMNS, 24)).columns if sys.stdout.isatty() else MOST_COLUMNS
        )
        sys.stdout.write(render(checks, columns) + "\n")
    return 1 if any(check.state == BAD for check in checks) else 0


def parser() -> argparse.ArgumentParser:
    """Flags of the command."""
    made = argparse.ArgumentParser(
        prog="gpuwise doctor",
        description="Say in plain words what this host can and cannot report, and why. Exit 1 when something does not work.",
    )
    made.add_argument(
        "--json", action="store_true", help="print JSON: part, name, state (ok, note, bad), finding"
    )
    made.add_argument("--database-url", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/DB")
    made.add_argument("--hostname", help="name of this host in the store [the system's]")
    made.add_argument(
        "--driver-timeout",
        type=_seconds,
        default=driver.PROBE_S,
        metavar="SECONDS",
        help=f"how long the driver may take to answer [{driver.PROBE_S:.0f}]",
    )
    return made


def _environment() -> tuple[str, str]:
    """Variables that look like settings and are none; ``load`` leaves them alone."""
    known = {f"GPUWISE_{field.name.upper()}" for field in fields(Settings)} | set(_NO_SETTINGS)
    named = [name for name in os.environ if name.startswith("GPUWISE_") and not name.startswith(_FOR_TESTS)]
    unknown = sorted(set(named) - known)
    if unknown:
        return BAD, f"{', '.join(unknown)}: no such setting, see docs/settings.md for the names"
    many = "1 comes" if len(named) == 1 else f"{len(named)} come"
    return OK, f"valid; {many} from the environment"


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 1 <= seconds <= 600:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 600 seconds")
    return seconds
