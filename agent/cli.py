"""``gpuwise agent``: the daemon on a GPU host, ``--once`` for a look, ``pause``, ``resume`` and ``status`` of a running one.

argparse: nothing of the server is loaded.
"""

import argparse
import json
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from core import logs
from core.errors import GpuwiseError
from core.settings import Settings, load

LEAST_INTERVAL_S: Final = 0.1
MOST_INTERVAL_S: Final = 60.0

NO_DRIVER: Final = "libnvidia-ml.so.1 was not found"
"""In the sentence of ``agent.driver.library`` for a machine without the library."""

log = logging.getLogger(__name__)


def main(
    argv: Sequence[str] | None = None,
    *,
    prepare: Callable[[str], None] = lambda _database_url: None,
) -> int:
    """Run the agent. Exit codes: 0 ended in order, 1 failed, 2 usage.

    Args:
        argv: words after ``gpuwise agent``.
        prepare: makes a database usable before the first sample; the command line passes one that can.

    Raises:
        GpuwiseError: no usable driver, or the spool cannot be used.
    """
    words = parser().parse_args(argv)
    flags = {
        name: value for name, value in vars(words).items() if name not in {"once", "order", "json", "for_"}
    }
    settings = load(flags)
    if words.order is not None:
        return _order(words, Path(settings.spool_path).parent)
    host = settings.hostname or socket.gethostname()
    if words.once:
        return _once(settings, host)
    return _serve(settings, host, prepare)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="gpuwise agent", description="Sample the GPUs of this host.")
    made.add_argument(
        "order",
        nargs="?",
        choices=["pause", "resume", "status"],
        help="of the agent that runs here: let go of the driver, take it up again, say how it fares",
    )
    made.add_argument("--once", action="store_true", help="print one sample of each GPU as JSON and end")
    made.add_argument("--sink", choices=["database", "server"], help="where samples go [database]")
    made.add_argument("--database-url", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/DB")
    made.add_argument("--server-url", metavar="URL", help="the gpuwise server that samples are pushed to")
    made.add_argument("--server-token-file", metavar="FILE", help="file with the token of this host")
    made.add_argument(
        "--server-ca-file", metavar="FILE", help="certificates to trust instead of the system's"
    )
    made.add_argument(
        "--interval", dest="interval_s", type=_interval, metavar="SECONDS", help="distance of readings [1]"
    )
    made.add_argument("--sample-s", type=float, metavar="SECONDS", help="length of a sample [10]")
    made.add_argument("--hostname", help="name of this host in the store [the system's]")
    made.add_argument(
        "--spool-path", metavar="FILE", help="SQLite file that keeps samples until they are delivered"
    )
    made.add_argument(
        "--engine-url",
        dest="engine_urls",
        action="append",
        metavar="URL",
        help="metrics page of an LLM server that is not found by itself (repeatable)",
    )
    made.add_argument("--dcgm-url", metavar="URL", help="metrics page of a dcgm-exporter ['auto'; '' is off]")
    made.add_argument("--for", dest="for_", metavar="TIME", help="pause: how long, e.g. 15m [1h]")
    made.add_argument("--json", action="store_true", help="status: print JSON")
    return made


def _interval(text: str) -> float:
    seconds = float(text)
    if not LEAST_INTERVAL_S <= seconds <= MOST_INTERVAL_S:
        # Power polled faster than every 50 ms was seen to give errors and zeros.
        raise argparse.ArgumentTypeError(
            f"{text} is not from {LEAST_INTERVAL_S} to {MOST_INTERVAL_S:.0f} seconds"
        )
    return seconds


def _order(words: argparse.Namespace, folder: Path) -> int:
    from agent import control

    if words.order == "pause":
        print(control.pause(folder, None if words.for_ is None else control.parse_duration(words.for_)))
    elif words.order == "resume":
        print(control.resume(folder))
    else:
        fields = control.status(folder)
        print(json.dumps(fields, indent=2) if words.json else control.status_text(fields))
        return 0 if fields.get("running") else 1
    return 0


def _once(settings: Settings, host: str) -> int:
    from agent.once import once

    logs.set_up(logging.ERROR)
    samples = once(settings, host)
    if not samples:
        raise GpuwiseError("the NVIDIA driver is there but shows no GPU")
    json.dump(samples, sys.stdout, indent=2)
    print()
    return 0


def _serve(settings: Settings, host: str, prepare: Callable[[str], None]) -> int:
    from agent.present import driver_problem
    from agent.service import run

    logs.set_up()
    problem = driver_problem()
    if problem is not None and NO_DRIVER in problem:
        # One that hangs or is being loaded may come; one that is not there does not.
        raise GpuwiseError(problem)
    if settings.sink == "database":
        try:
            prepare(settings.database_url)
        except GpuwiseError as error:
            # The spool keeps what is sampled until the database is there.
            log.warning("database is not ready yet", extra={"error": str(error)})
    run(settings, host)
    return 0
