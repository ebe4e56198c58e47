"""Options that name a part of the fleet: shared by thresholds and exclusions."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

PARTS: Final = (
    ("host", "PATTERN", "Host of the GPU; * stands for anything."),
    ("gpu", "PATTERN", "UUID of the GPU."),
    ("engine", "PATTERN", "Name of an engine on it."),
    ("owner", "PATTERN", "Team, or team / project, that pays for it or a workload on it."),
    ("user", "PATTERN", "User of a workload on it."),
    ("label", "NAME=PATTERN", "Of a workload on it, such as namespace=ml."),
)


def part_options(command: F) -> F:
    """Add ``--host``, ``--gpu``, ``--engine``, ``--owner``, ``--user``, ``--label``; all that are given must hold."""
    for name, metavar, text in reversed(PARTS):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)
    return command
