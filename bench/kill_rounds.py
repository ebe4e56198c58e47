"""kill -9 of agents and their server at random points for longer than the tests do: ``python -m bench.kill_rounds 2000``.

Prints rounds, rows that were durable in a spool, how many of them the database lacks, and how many it holds twice.
The agents run on the stand-in driver; what is killed is theirs and the server's real process.
"""

import argparse
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.measure import Figure
from store.schema import upgrade

ROOT: Final = Path(__file__).resolve().parents[1]
AGENTS: Final = 8
ROUNDS: Final = 20
"""Of each agent, for every run that is asked for."""


def run(runs: int) -> Iterator[Figure]:
    """Agents behind one server on SQLite; an error when anything is lost or doubled."""
    sys.path.insert(0, str(ROOT))
    from tests.integration.agent.chaos_rounds import Plan, kill_rounds, new_seed
    from tests.standin.build import CannotBuildError, build

    os.environ["no_proxy"] = "*"
    seed = new_seed()
    with tempfile.TemporaryDirectory(prefix="gpuwise-bench-") as name:
        folder = Path(name)
        try:
            library = build(folder / "driver")
        except CannotBuildError as error:
            print(f"kills: {error}", file=sys.stderr)
            return
        database_url = f"sqlite:///{folder}/gpuwise.db"
        upgrade(database_url)
        plan = Plan(AGENTS, ROUNDS * runs, (ROUNDS + 5) * runs)
        found = kill_rounds(folder, database_url, plan, library=library, port=_free_port(), seed=seed)
    yield Figure("kills", "rounds of kill -9", found.kills, "rounds", 1)
    yield Figure("kills", "rows that were durable in a spool", found.noted.total(), "rows", 1)
    yield Figure("kills", "rows stored", found.stored.total(), "rows", 1)
    yield Figure("kills", "losses", len(found.losses), "rows", 1)
    yield Figure("kills", "doubles", len(found.doubles), "rows", 1)
    wrong = [*found.losses, *found.doubles, *found.wrong]
    if wrong:
        raise RuntimeError(f"GPUWISE_CHAOS_SEED={seed}: {len(wrong)} rows are wrong, the first: {wrong[0]}")


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kill_rounds", description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=1_000, help="kills in all, about [1000]")
    asked = parser.parse_args()
    for figure in run(max(asked.rounds // (AGENTS * ROUNDS + ROUNDS + 5), 1)):
        print(f"{figure.name}: {figure.value:,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
