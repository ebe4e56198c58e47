"""Groups of commands that list where no command is named."""

import pytest
from click.testing import CliRunner

from gpuwise.commands.budgets import budgets
from gpuwise.commands.rates import rates
from gpuwise.commands.sites import sites
from gpuwise.commands.tariffs import tariffs
from gpuwise.commands.token import token


@pytest.mark.parametrize("group", [budgets, rates, sites, tariffs, token], ids=lambda group: group.name)
def test_options_without_a_command_are_those_of_the_list(group: object, tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/gpuwise.db"
    runner = CliRunner()
    said = runner.invoke(group, ["--json", "--database-url", url], standalone_mode=False)
    named = runner.invoke(group, ["list", "--json", "--database-url", url], standalone_mode=False)
    assert said.exception is None
    assert said.stdout == named.stdout == "[]\n"


def test_an_option_before_another_command_is_refused_not_passed_over() -> None:
    said = CliRunner().invoke(budgets, ["--json", "remove", "1"])
    assert said.exit_code == 2
    assert "remove" in said.output
