"""``gpuwise agent``: the daemon on a GPU host, and ``--once`` for a look. argparse: nothing of the server is loaded."""

import argparse
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from agent.attribution import Attribution
from agent.nvml import Driver, NvmlError
from agent.once import once
from agent.sinks.base import Sink
from agent.sources.live import LiveSource
from core import logs
from core.settings import Settings, load

LEAST_INTERVAL_S: Final = 0.1
MOST_INTERVAL_S: Final = 60.0


def main(
    argv: Sequence[str] | None = None,
    *,
    library: Any = None,
    prepare: Callable[[str], None] = lambda _database_url: None,
) -> int:
    """Run the agent. Exit codes: 0 ended in order, 1 failed, 2 usage.

    Args:
        argv: words after ``gpuwise agent``.
        library: a module with pynvml's names, for tests; default pynvml.
        prepare: makes a database usable before the first sample; the command line passes one that can.

    Raises:
        GpuwiseError: no usable driver, or the database cannot be opened.
    """
    words = _parser().parse_args(argv)
    settings = load({"database_url": words.database_url, "hostname": words.hostname})
    host = settings.hostname or socket.gethostname()
    driver = Driver(library)
    try:
        source = LiveSource(driver, host, Attribution(host))
        if words.once:
            return _once(source)
        prepare(settings.database_url)
        return _serve(source, settings, words.interval)
    finally:
        driver.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpuwise agent", description="Sample the GPUs of this host.")
    parser.add_argument("--once", action="store_true", help="print one sample of each GPU as JSON and end")
    parser.add_argument(
        "--sink", choices=["database"], default="database", help="where samples go [database]"
    )
    parser.add_argument("--database-url", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/DB")
    parser.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS", help="distance of readings [1]"
    )
    parser.add_argument("--hostname", help="name of this host in the store [the system's]")
    return parser


def _interval(text: str) -> float:
    seconds = float(text)
    if not LEAST_INTERVAL_S <= seconds <= MOST_INTERVAL_S:
        # Power polled faster than every 50 ms was seen to give errors and zeros.
        raise argparse.ArgumentTypeError(
            f"{text} is not from {LEAST_INTERVAL_S} to {MOST_INTERVAL_S:.0f} seconds"
        )
    return seconds


def _once(source: LiveSource) -> int:
    samples = once(source)
    if not samples:
        raise NvmlError("the NVIDIA driver is there but shows no GPU")
    json.dump(samples, sys.stdout, indent=2)
    print()
    return 0


def _serve(source: LiveSource, settings: Settings, interval_s: float) -> int:
    from agent.loop import run
    from agent.sinks.database import DatabaseSink

    def make_sink() -> Sink:
        return DatabaseSink(settings.database_url)

    logs.set_up()
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        run(source, make_sink, interval_s=interval_s, stop=stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
