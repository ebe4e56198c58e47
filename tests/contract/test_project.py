"""The project's own promises: generated pages are current, locks name no address, the agent stays small."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.build import HERE, PAGES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_pages_match_the_code(name: str) -> None:
    assert (HERE / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


@pytest.mark.parametrize("lock", sorted(path.name for path in (ROOT / "requirements").glob("*.txt")))
def test_locks_carry_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    assert "://" not in text
    pinned = re.findall(r"^[a-z0-9][^\s=]*==", text, re.MULTILINE)
    blocks = re.split(r"\n(?=[a-z0-9])", text)
    assert pinned
    assert all("--hash=sha256:" in block for block in blocks if "==" in block)


def test_the_agent_loads_its_one_dependency_and_nothing_of_the_server() -> None:
    code = (
        "import sys, agent.cli, agent.loop, agent.service, agent.sinks.database, agent.sinks.server, agent.once\n"
        "banned = {'psutil','statistics','sqlalchemy','pydantic','fastapi','jinja2','click','rich','alembic','apscheduler','starlette'}\n"
        "print(sorted(banned & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_without_data_folder_rights_or_sense_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuwise", "fly"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert "No such command 'fly'" in done.stderr


def test_every_command_of_the_list_exists_and_explains_itself() -> None:
    from gpuwise.commands.cli import COMMANDS, cli

    context = cli.make_context("gpuwise", ["db"], resilient_parsing=True)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(), name
