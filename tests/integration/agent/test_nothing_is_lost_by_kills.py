"""kill -9 of agents and servers at random points: what was durable in a spool is stored, exactly once, as it was."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.agent.chaos_rounds import Plan, kill_rounds, new_seed
from tests.standin.build import build_or_skip

BEHIND_A_SERVER = {"sqlite": Plan(10, 18, 24), "postgresql": Plan(3, 6, 6, gpus=4)}
INTO_THE_DATABASE = {"sqlite": Plan(3, 6, None, hold=True), "postgresql": Plan(3, 6, None, gpus=4, hold=True)}
KINDS = {"GpuSample", "ProcessSample", "EngineSample", "HostSample", "GpuEvent"}


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def holds(folder: Path, database_url: str, plan: Plan) -> None:
    seed = new_seed()
    library = build_or_skip(folder / "driver")
    found = kill_rounds(folder, database_url, plan, library=library, port=free_port(), seed=seed)
    said = f"GPUWISE_CHAOS_SEED={seed} {found.kills} kills, stored {found.stored}, noted {found.noted}"
    assert not found.losses, (said, len(found.losses), found.losses[:3])
    assert not found.doubles, (said, len(found.doubles), found.doubles[:3])
    assert not found.wrong, (said, len(found.wrong), found.wrong[:3])
    assert found.kills >= plan.agents * plan.rounds + (plan.server_rounds or 0), said
    assert set(found.stored) == KINDS, said
    assert set(found.noted) == KINDS, said


@pytest.mark.xdist_group("chaos")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("sink", ["server", "database"])
def test_kills_at_random_points_lose_and_double_nothing(
    ready_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: str
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    plans = BEHIND_A_SERVER if sink == "server" else INTO_THE_DATABASE
    holds(tmp_path, ready_database, plans[ready_database.split(":", maxsplit=1)[0]])
