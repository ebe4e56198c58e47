"""Runs the agent beside labelled loads on a real GPU and keeps what it stored.

    python -m bench.workloads.run --out tests/traces/h200                  # everything: about 40 minutes
    python -m bench.workloads.run --out tests/traces/h200 --loads empty,parked,decode-1b --no-ab    # in parts, into one folder
    python -m bench.workloads.run --dry-run                                # every load for a second on the CPU, no agent

Needs PyTorch with CUDA, and gpuwise's own dependencies in the same Python or in the one of ``--agent-python``. Where the
server part is not installed, make the database elsewhere and name it: ``gpuwise db upgrade --database-url sqlite:///empty.db``,
``--empty-database empty.db``. Nothing else may run on the card. Loads end by themselves; Ctrl-C ends all of them.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.workloads import ab, record, report
from bench.workloads.agent import Agent
from bench.workloads.loads import LEAST_S, LOADS, Load, chosen
from bench.workloads.start import LoadError, Running
from core.clock import now_ms

BETWEEN_S: Final = 5.0
AB_LOAD: Final = next(load for load in LOADS if load.name == "decode-1b-8")
AB_ROUNDS: Final = 4
AB_PHASE_S: Final = 12.0


def main() -> int:
    words = _parser().parse_args()
    try:
        loads = chosen(words.loads)
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if words.dry_run:
        return _dry(loads)
    if words.out is None:
        print("bench: --out names the folder for the recordings", file=sys.stderr)
        return 2
    return _real(words, loads)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder for recordings and summary")
    parser.add_argument("--loads", help="names or beginnings of names, with commas [all]")
    parser.add_argument(
        "--seconds", type=_seconds, default=80.0, help=f"of each load, at least {LEAST_S} [80]"
    )
    parser.add_argument("--gpu", type=int, default=0, help="NVML index of the card [0]")
    parser.add_argument("--sample-s", type=float, default=10.0, help="length of a stored sample [10]")
    parser.add_argument(
        "--context", type=int, default=1024, help="tokens in the cache of each decoded sequence"
    )
    parser.add_argument(
        "--agent-python", default=sys.executable, help="Python that has gpuwise's dependencies"
    )
    parser.add_argument("--empty-database", type=Path, help="an upgraded, empty SQLite file to begin with")
    parser.add_argument("--no-ab", action="store_true", help="leave out whether the agent disturbs a load")
    parser.add_argument(
        "--dry-run", action="store_true", help="every load for a second on the CPU, without the agent"
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not LEAST_S <= seconds <= 3_600:
        raise argparse.ArgumentTypeError(f"{text} is not from {LEAST_S} to 3600 seconds")
    return seconds


def _dry(loads: tuple[Load, ...]) -> int:
    failed = 0
    for load in loads:
        if load.module is None:
            continue
        try:
            running = Running(load, seconds=1.0, device="cpu", tiny=True)
            running.wait_ready()
            print(f"{load.name}: {running.wait_done()}")
        except LoadError as error:
            failed += 1
            print(f"{load.name}: {error}", file=sys.stderr)
    return 1 if failed else 0


def _real(words: argparse.Namespace, loads: tuple[Load, ...]) -> int:
    windows: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    compared: dict[str, Any] | None = None
    with tempfile.TemporaryDirectory(prefix="gpuwise-bench-") as scratch:
        with Agent(Path(scratch), words.agent_python, words.sample_s, words.empty_database) as agent:
            uuid = agent.gpus()[words.gpu]
            environ = {"CUDA_VISIBLE_DEVICES": uuid}
            for load in loads:
                print(f"{load.name}: {load.label} …", flush=True)
                time.sleep(BETWEEN_S)
                try:
                    windows[load.name] = _window(agent, load, words, environ)
                except LoadError as error:
                    failed[load.name] = str(error)
                    print(f"{load.name}: {error}", file=sys.stderr)
            if not words.no_ab:
                print("A/B: decode with and without the agent and GPM …", flush=True)
                try:
                    compared = _compare(agent, uuid, words, environ)
                except LoadError as error:
                    failed["ab"] = str(error)
            # The last sample is stored one interval after it ends, and sent after that.
            time.sleep(2 * words.sample_s + 5)
        card = record.card(agent.database, uuid)
        for name, window in windows.items():
            header = {**window, "card": card, "sample_s": words.sample_s}
            found = record.rows(agent.database, uuid, window["from_ms"], window["to_ms"])
            count = record.write(words.out / f"{name}.jsonl.gz", header, found)
            if count == 0:
                failed[name] = "nothing was stored while it ran: see the agent's log"
        log = (Path(scratch) / "agent.log").read_text(encoding="utf-8", errors="replace")
    _keep_summary(words.out / report.SUMMARY, compared, failed, set(windows))
    if failed:
        print(log[-4000:], file=sys.stderr)
    recordings = {path.name.partition(".")[0]: record.read(path) for path in words.out.glob("*.jsonl.gz")}
    print(report.report(recordings, json.loads((words.out / report.SUMMARY).read_text(encoding="utf-8"))))
    size = sum(path.stat().st_size for path in words.out.iterdir())
    if size > record.MOST_BYTES:
        print(f"bench: {words.out} holds {size:,} bytes: record with longer samples", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _window(
    agent: Agent, load: Load, words: argparse.Namespace, environ: Mapping[str, str]
) -> dict[str, Any]:
    """Run one load: from when to when it was the only thing there, how fast it was, and what the agent cost meanwhile."""
    with _running(load, words, environ) as copies:
        from_ms = max((copy.wait_ready() for copy in copies), default=now_ms())
        cpu_s, _bytes = agent.cost()
        since = time.monotonic()
        if copies:
            done = [copy.wait_done() for copy in copies]
            to_ms = min(one["done"] for one in done)
        else:
            time.sleep(words.seconds)
            done, to_ms = [], now_ms()
        cpu_after_s, memory_bytes = agent.cost()
        lasted_s = time.monotonic() - since
    return {
        "load": load.name,
        "label": load.label,
        "expect": list(load.expect),
        "from_ms": from_ms,
        "to_ms": to_ms,
        "unit": load.unit,
        "units_per_s": sum(_speed(copy) for copy in copies),
        "note": "; ".join(dict.fromkeys(one["note"] for one in done if one.get("note"))),
        "agent_cpu_ratio": (cpu_after_s - cpu_s) / lasted_s,
        "agent_memory_bytes": memory_bytes,
    }


@contextmanager
def _running(load: Load, words: argparse.Namespace, environ: Mapping[str, str]) -> Iterator[list[Running]]:
    """The processes of a load; none is left behind, whatever happens."""
    # Copies are not ready at the same moment: what they have in common must still be long enough.
    seconds = words.seconds + (20.0 if load.copies > 1 else 0.0)
    options = {**load.options, "context": str(words.context)} if load.module == "decode" else load.options
    shaped = Load(load.name, load.label, load.module, load.expect, options, load.copies, load.unit)
    copies: list[Running] = []
    try:
        if load.module is not None:
            for _ in range(load.copies):
                copies.append(Running(shaped, seconds=seconds, device="cuda:0", environ=dict(environ)))  # noqa: PERF401 - each that started must be ended
        yield copies
    finally:
        for copy in copies:
            copy.kill()


def _speed(copy: Running) -> float:
    """Units per second between its first and last tick; 0 for one that counts nothing."""
    if len(copy.ticks) < 2:
        return 0.0
    (first_ms, first), (last_ms, last) = copy.ticks[0], copy.ticks[-1]
    return (last - first) / ((last_ms - first_ms) / 1000) if last_ms > first_ms else 0.0


def _compare(
    agent: Agent, uuid: str, words: argparse.Namespace, environ: Mapping[str, str]
) -> dict[str, Any]:
    phases = 3 * AB_ROUNDS + 1
    # Letting go of the driver and a probe's start take their time too.
    seconds = phases * (AB_PHASE_S + ab.SETTLE_S + 8.0)
    longer = argparse.Namespace(**{**vars(words), "seconds": seconds})
    with _running(AB_LOAD, longer, environ) as (load,):
        load.wait_ready()
        return ab.run(agent, load, uuid, words.agent_python, rounds=AB_ROUNDS, phase_s=AB_PHASE_S)


def _keep_summary(
    path: Path, compared: dict[str, Any] | None, failed: Mapping[str, str], done: set[str]
) -> None:
    """Add to what earlier parts left: a load that went well now is no longer a failed one."""
    kept: dict[str, Any] = {}
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
    before = {name: why for name, why in kept.get("failed", {}).items() if name not in done}
    if compared is not None:
        kept["ab"] = compared
        before.pop("ab", None)
    kept["failed"] = {**before, **failed}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
