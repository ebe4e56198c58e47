"""``gpuwise unit-costs``: dollars per million tokens, joules per token, dollars per useful GPU-hour."""

from typing import Final

import click

from api import formats
from gpuwise.commands.display import Column, dollars, figure, hours
from gpuwise.commands.options import Source, database_options, window_options
from gpuwise.commands.tables import show


def _millions(tokens: float) -> str:
    return formats.short(tokens / 1e6)


def _joules(value: float) -> str:
    return f"{value:.3g}"


COLUMNS: Final = (
    Column("label", "GROUP"),
    figure("cost_usd", "COST", dollars),
    figure("usd_per_useful_gpu_h", "USD/USEFUL GPU-H", dollars),
    figure("allocated_gpu_h", "HELD GPU-H", hours),
    figure("idle_gpu_h", "IDLE", hours),
    figure("site_energy_kwh", "SITE ENERGY", formats.kwh),
    figure("carbon_g", "KG CO2E", lambda grams: formats.short(grams / 1000)),
    Column("key", "KEY"),
)
TOKENS: Final = (
    Column("label", "TOKENS OF"),
    figure("busy_ratio", "BUSY", formats.percent),
    figure("tokens_output", "M OUT", _millions),
    figure("tokens_input", "M IN", _millions),
    figure("usd_per_1m_tokens", "USD/M BLENDED", dollars),
    figure("usd_per_1m_output_tokens", "OUT ONLY", dollars),
    figure("usd_per_1m_input_tokens", "IN ONLY", dollars),
    figure("usd_per_1m_output_tokens_all_in", "OUT ALL-IN", dollars),
    figure("usd_per_1m_tokens_busy", "BLENDED BUSY", dollars),
    figure("usd_per_1m_output_tokens_all_in_busy", "OUT ALL-IN BUSY", dollars),
    figure("j_per_token", "J/TOKEN", _joules),
    figure("j_per_token_busy", "J/TOKEN BUSY", _joules),
    Column("split_why", "NO SPLIT BECAUSE"),
)


@click.command("unit-costs")
@click.option(
    "--by",
    type=click.Choice(["engine", "model", "owner"]),
    default="engine",
    show_default=True,
    help="engine; model, as engines serve it; owner, the team.",
)
@window_options
@database_options
def unit_costs(source: Source, since: str | None, until: str | None, by: str) -> int:
    """What tokens and useful GPU-hours cost: at measured use (idle time included), and while busy."""
    from api.resources.unit_economics import UnitBy, rows

    return show(
        source,
        "unit-economics",
        COLUMNS,
        lambda scope: rows(scope, UnitBy(by)),
        since=since,
        until=until,
        more={"by": by},
        beside=TOKENS,
    )
