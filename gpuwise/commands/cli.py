"""The server's command line: commands by name, loaded when they are called."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import click

COMMANDS: Final = {
    "up": "gpuwise.commands.up:up",
    "demo": "gpuwise.commands.demo:demo",
    "serve": "gpuwise.commands.serve:serve",
    "jobs": "gpuwise.commands.jobs:jobs",
    "import": "gpuwise.commands.import_:import_",
    "advise": "gpuwise.commands.advise:advise",
    "recommendations": "gpuwise.commands.recommendations:recommendations",
    "gpus": "gpuwise.commands.tables:gpus",
    "hosts": "gpuwise.commands.hosts:hosts",
    "workloads": "gpuwise.commands.workloads:workloads",
    "usage": "gpuwise.commands.tables:usage",
    "costs": "gpuwise.commands.tables:costs",
    "energy": "gpuwise.commands.tables:energy",
    "engines": "gpuwise.commands.tables:engines",
    "idle": "gpuwise.commands.idle:idle",
    "ledger": "gpuwise.commands.ledger:ledger",
    "export": "gpuwise.commands.export:export",
    "tariffs": "gpuwise.commands.tariffs:tariffs",
    "sites": "gpuwise.commands.sites:sites",
    "prices": "gpuwise.commands.prices:prices",
    "rates": "gpuwise.commands.rates:rates",
    "owners": "gpuwise.commands.owners:owners",
    "unit-costs": "gpuwise.commands.unit_costs:unit_costs",
    "budgets": "gpuwise.commands.budgets:budgets",
    "thresholds": "gpuwise.commands.thresholds:thresholds",
    "exclusions": "gpuwise.commands.exclusions:exclusions",
    "plan": "gpuwise.commands.plan:plan",
    "report": "gpuwise.commands.report:report",
    "recipients": "gpuwise.commands.recipients:recipients",
    "alerts": "gpuwise.commands.alerts:alerts",
    "db": "gpuwise.commands.db:db",
    "token": "gpuwise.commands.token:token",
    "doctor": "gpuwise.commands.doctor:doctor",
}
"""Command → ``module:object``: only the module of the command that is called is imported."""

AGENT_HELP: Final = "Sample the GPUs of this host (the daemon); --once prints one sample as JSON."


class LazyCommands(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order of this file."""
        return [*COMMANDS, "agent"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of that name, or None."""
        if cmd_name == "agent":
            # Never reached when called (the entry point hands it to argparse); here for the list in --help.
            return click.Command("agent", short_help=AGENT_HELP)
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


def _version() -> str:
    try:
        return version("gpuwise")
    except PackageNotFoundError:
        return "unpacked source"


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings: flag > GPUWISE_… > gpuwise.toml > default. Start with: gpuwise up",
)
@click.version_option(_version(), prog_name="gpuwise")
def cli() -> None:
    """GPU telemetry that ends in priced, checkable advice."""


def run(words: list[str]) -> int:
    """Run the command line; click's own usage errors exit 2."""
    try:
        result = cli.main(args=words, prog_name="gpuwise", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return result if isinstance(result, int) else 0
