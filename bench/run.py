"""Run the benchmarks: ``python -m bench.run``. Figures as a table, and as JSON into ``bench/results``."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from bench import (
    advice,
    agent_cost,
    answers,
    fleet_advice,
    focus,
    folding,
    forecast,
    imports,
    imports_prometheus,
    ingest_server,
    kill_rounds,
    ledger,
    pages,
    reports,
    roll_ups,
    sizing,
    stores,
)
from bench.databases import postgresql_server
from bench.measure import Figure, shown, table
from core.clock import iso, now_ms

RESULTS = Path(__file__).resolve().parent / "results"
GROUPS = (
    "agent",
    "kills",
    "ingest",
    "server",
    "import",
    "fold",
    "roll-up",
    "answer",
    "advice",
    "sizing",
    "forecast",
    "fleet",
    "ledger",
    "reports",
    "focus",
    "pages",
)


def figures(groups: list[str], runs: int, *, with_postgresql: bool) -> Iterator[Figure]:
    """Every figure of the groups asked for, as soon as it is known."""
    if "agent" in groups:
        yield from agent_cost.run(runs)
    if "kills" in groups:
        yield from kill_rounds.run(runs)
    if "fold" in groups:
        yield from folding.run(runs)
    if "import" in groups:
        yield from imports.run(runs)
        yield from imports_prometheus.run(runs)
    if {"ingest", "server", "roll-up", "ledger", "reports", "focus"} & set(groups):
        with postgresql_server() if with_postgresql else nullcontext() as server:
            if "ingest" in groups:
                yield from stores.run(server, runs)
            if "server" in groups:
                yield from ingest_server.run(server)
            if "roll-up" in groups:
                yield from roll_ups.run(server, runs)
            if "ledger" in groups:
                yield from ledger.run(server)
            if "focus" in groups:
                yield from focus.run(server)
            if "reports" in groups:
                yield from reports.run(server, runs)
    if "answer" in groups:
        yield from answers.run(runs)
    if "advice" in groups:
        yield from advice.run()
    if "sizing" in groups:
        yield from sizing.run()
    if "forecast" in groups:
        yield from forecast.run()
    if "pages" in groups:
        yield from pages.run(runs)
    if "fleet" in groups:
        yield from fleet_advice.run()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default all")
    parser.add_argument("--runs", type=int, default=5, help="runs behind each median [5]")
    parser.add_argument("--no-postgresql", action="store_true", help="SQLite only")
    asked = parser.parse_args()
    unknown = set(asked.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    found: list[Figure] = []
    for one in figures(asked.groups or list(GROUPS), asked.runs, with_postgresql=not asked.no_postgresql):
        found.append(one)
        print(f"{one.group}: {one.name}: {shown(one.value)} {one.unit}", file=sys.stderr)
    at = iso(now_ms())
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"\n{at}, {machine}\n\n{table(found)}")
    RESULTS.mkdir(exist_ok=True)
    result = {"at": at, "machine": machine, "figures": [asdict(one) for one in found]}
    (RESULTS / f"{at}.json").write_text(json.dumps(result, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
