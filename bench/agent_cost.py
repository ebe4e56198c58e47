"""What the agent costs on a host with eight GPUs, every collector on, beside a bare loop in the same run.

The driver is the stand-in of the tests (compiled here), so the figures hold our own cost and ctypes', not the
driver's. Two LLM servers with pages of about 100 kB are scraped; the sink is a local HTTP server, or SQLite. CPU and
memory are those of the agent's whole process tree, from ``/proc``. The bare loop makes eight NVML calls a GPU each
second, writes nothing, and runs in the same minutes.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from bench.measure import Figure
from store.schema import upgrade

ROOT: Final = Path(__file__).resolve().parents[1]
GPUS: Final = 8
WARM_S = 25.0
"""Until all collectors ran: the first minute's scans and probes are over, the spool is written."""
SECONDS = 60.0
"""A whole round of the slowest tier (health, once a minute)."""
BARE_LOOP: Final = """
import time, pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
due = time.monotonic()
while True:
    for h in handles:
        n.nvmlDeviceGetUtilizationRates(h); n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2)
        n.nvmlDeviceGetPowerUsage(h); n.nvmlDeviceGetTotalEnergyConsumption(h)
        n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM); n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM)
        n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU); n.nvmlDeviceGetCurrentClocksEventReasons(h)
    due += 1
    time.sleep(max(0, due - time.monotonic()))
"""
ENGINE: Final = """
import sys
sys.path.insert(0, {root!r})
from bench.engine_page import serve
serve(int(sys.argv[sys.argv.index("--port") + 1]))
"""
"""Run from a file named ``vllm``, so that its command line is that of a server."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a process tree: share of one core, resident MiB (sum), and MiB with shared pages counted once."""

    core_ratio: float
    rss_mib: float
    pss_mib: float


def run(runs: int) -> Iterator[Figure]:
    """The agent with each sink, and the bare loop."""
    del runs  # one long look each: CPU time over a minute is a mean by itself
    sys.path.insert(0, str(ROOT))
    from tests.standin.build import CannotBuildError, build

    with tempfile.TemporaryDirectory(prefix="gpuwise-bench-") as name:
        folder = Path(name)
        try:
            library = build(folder / "driver")
        except CannotBuildError as error:
            print(f"agent: {error}", file=sys.stderr)
            return
        with _engines(folder) as pids:
            scenario = _scenario(folder, pids)
            environment = {
                **os.environ,
                "LD_LIBRARY_PATH": str(library),
                "GPUWISE_STANDIN": str(scenario),
                "PYTHONPATH": str(ROOT),
            }
            with _server() as url:
                agent, bare = _measured(
                    folder, environment, "server", ["--sink", "server", "--server-url", url]
                )
            yield from _figures("HTTP sink", agent, bare)
            database = f"sqlite:///{folder}/gpuwise.db"
            upgrade(database)
            agent, bare = _measured(
                folder, environment, "database", ["--sink", "database", "--database-url", database]
            )
            yield from _figures("SQLite sink", agent, bare)


def _figures(what: str, agent: Cost, bare: Cost) -> Iterator[Figure]:
    against = "bare loop of 8 calls a GPU"
    ratio = agent.core_ratio / bare.core_ratio if bare.core_ratio else None
    yield Figure("agent", f"{what}: CPU", agent.core_ratio * 100, "% of a core", 1, ratio, against)
    memory = agent.rss_mib / bare.rss_mib
    yield Figure("agent", f"{what}: resident, all processes", agent.rss_mib, "MiB", 1, memory, against)
    yield Figure("agent", f"{what}: shared pages counted once", agent.pss_mib, "MiB", 1)
    yield Figure("agent", f"{what}: bare loop CPU", bare.core_ratio * 100, "% of a core", 1)


def _measured(folder: Path, environment: dict[str, str], name: str, flags: list[str]) -> tuple[Cost, Cost]:
    """Agent and bare loop over the same minute."""
    words = [sys.executable, "-m", "gpuwise", "agent", *flags, "--hostname", "bench"]
    words += ["--spool-path", str(folder / f"spool-{name}.db")]
    with (
        (folder / f"{name}.log").open("w") as log,
        _process(words, environment | {"GPUWISE_SERVER_TOKEN": "gw_bench"}, log) as agent,
        _process([sys.executable, "-c", BARE_LOOP], environment, log) as bare,
    ):
        time.sleep(WARM_S)
        before = _cpu_s(agent.pid), _cpu_s(bare.pid), time.monotonic()
        time.sleep(SECONDS)
        elapsed = time.monotonic() - before[2]
        if agent.poll() is not None:
            raise RuntimeError((folder / f"{name}.log").read_text())
        return (
            Cost((_cpu_s(agent.pid) - before[0]) / elapsed, *_memory(agent.pid)),
            Cost((_cpu_s(bare.pid) - before[1]) / elapsed, *_memory(bare.pid)),
        )


@contextlib.contextmanager
def _process(
    words: list[str], environment: dict[str, str], log: object
) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(words, env=environment, stdout=log, stderr=log)  # type: ignore[call-overload]
    try:
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(10)


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in tree(int(child)))]


def _cpu_s(pid: int) -> float:
    """CPU time of the tree by its CPU clocks: ticks of ``/proc`` are too coarse for a bare loop."""
    return sum(time.clock_gettime(~one << 3 | 2) for one in tree(pid))  # clock_getcpuclockid(3)


def _memory(pid: int) -> tuple[float, float]:
    """Resident MiB of the tree: summed, and with shared pages counted once."""
    rss = pss = 0
    for one in tree(pid):
        for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                rss += int(line.split()[1])
            elif line.startswith("Pss:"):
                pss += int(line.split()[1])
    return rss / 1024, pss / 1024


def _scenario(folder: Path, pids: list[int]) -> Path:
    """Eight busy cards; the first half belongs to the first server, the other to the second."""
    from tests.standin.profiles import busy_decode
    from tests.standin.scenario import GIB

    scenario = busy_decode(GPUS)
    for gpu in range(GPUS):
        pid = pids[gpu * len(pids) // GPUS]
        scenario.processes(f"compute:{pid}:{71 * GIB}", gpu=gpu).process_util(f"{pid}:95:57:0:0", gpu=gpu)
    return scenario.write(folder / "scenario")


@contextlib.contextmanager
def _engines(folder: Path) -> Iterator[list[int]]:
    script = folder / "vllm"
    script.write_text(ENGINE.format(root=str(ROOT)))
    ports = [_free_port(), _free_port()]
    children = [
        subprocess.Popen(
            [
                sys.executable,
                str(script),
                "serve",
                "meta-llama/Llama-3.1-8B",
                "--port",
                str(port),
                "--max-num-seqs",
                "256",
            ]
        )
        for port in ports
    ]
    try:
        time.sleep(1)
        yield [child.pid for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Accepts(BaseHTTPRequestHandler):
    """Takes every delivery."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"sequence":1,"rows":1,"new_rows":1}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_words: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def _server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Accepts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
