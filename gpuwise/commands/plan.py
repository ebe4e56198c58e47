"""``gpuwise plan``: the calculators, loaded when they are called."""

from importlib import import_module
from typing import Final

import click

COMMANDS: Final = {
    "size": "gpuwise.commands.plan_size:size",
    "rent-or-buy": "gpuwise.commands.plan_rent_or_buy:rent_or_buy",
    "mix": "gpuwise.commands.plan_mix:mix",
}
"""Calculator → ``module:object``."""


class _Calculators(click.Group):
    """A group that imports a calculator's module only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Calculators)
def plan() -> None:
    """The calculators: what a model needs, what it costs, and whether to own or to rent."""
