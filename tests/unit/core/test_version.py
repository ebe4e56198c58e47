"""The version that the agent prints is the one of the package."""

import tomllib
from pathlib import Path

from core.version import VERSION


def test_the_version_is_that_of_the_project_file() -> None:
    root = Path(__file__).parents[3]
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == VERSION
