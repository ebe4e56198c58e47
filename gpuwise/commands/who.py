"""Who takes a step: as told, or as this machine knows the user."""

from getpass import getuser
from typing import Final

import click

WHO: Final = click.option("--who", metavar="NAME", help="Who does; default: you, as this machine knows you.")


def me() -> str | None:
    """The user's name on this machine; None where it has none."""
    try:
        return getuser()
    except (KeyError, OSError):
        return None
