"""``gpuwise plan rent-or-buy``: whether to rent or to own a node, from measured hours."""

from collections.abc import Mapping
from typing import Any, Final

import click

from api import formats
from api.resources.plan_bodies import RentOrBuyBody
from gpuwise.commands.display import Column, dollars, print_json, print_rows
from gpuwise.commands.options import Source, database_options, window_options
from gpuwise.commands.plan_mix import plain, show
from gpuwise.commands.plan_options import ask, input_options

FIGURES: Final = (
    Column("what", ""),
    Column("middle", "", right=True),
    Column("range", "RANGE", right=True),
)
PARTS: Final = ("gpus", "chassis", "network", "storage", "installation")


@click.command("rent-or-buy")
@input_options(RentOrBuyBody)
@window_options
@database_options
def rent_or_buy(source: Source, since: str | None, until: str | None, **given: Any) -> int:
    """Rent or buy a node: payback and break-even use side by side, with ranges and all that is assumed.

    The use is measured over 13 weeks of data unless --since says otherwise or --utilisation is given.
    """
    from api.resources.plan_rent_or_buy import rent_or_buy as found

    row = ask(source, "plan/rent-or-buy", found, {"since": since, "until": until}, given)
    if source.as_json:
        print_json([row])
        return 0
    click.echo(plain(f"{row['verdict'].upper()}. {row['reason']}{_firm(row)}"))
    if row["missing"]:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in row["missing"])
        click.echo(f"Missing: {flags}.")
    figures = [line for line in _figures(row) if line["middle"] is not None]
    if figures:
        click.echo()
        print_rows(figures, FIGURES, empty="")
    click.echo("\n" + plain("\n".join(_assumed(row["assumptions"], row["measured"]))))
    if row["mix"] is not None:
        click.echo(
            "\nThe mix, of owning and renting on demand alone (plan mix takes reservations and spot too):"
        )
        show(row["mix"])
    return 0


def _firm(row: Mapping[str, Any]) -> str:
    if row["firm"] is None:
        return ""
    return (
        " It holds over the whole range."
        if row["firm"]
        else " It does not hold over the whole range: look at the offer you have."
    )


def _figures(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    ranges, use = row["ranges"], row["assumptions"]["utilisation"]
    at = "at full use" if use is None else f"at {formats.percent(use)} use"
    return [
        _line(
            "Payback",
            _months(row["payback_months"]) or ("never" if ranges else None),
            ranges.get("payback_months"),
            _months,
        ),
        _line(
            "Break-even use of all hours",
            _use(row["breakeven_utilisation"]) or ("at none" if ranges else None),
            ranges.get("breakeven_utilisation"),
            _percent,
        ),
        _line("Wanted of all hours", _use(use), ranges.get("utilisation"), _percent),
        _line(
            f"Owned, a wanted GPU-hour {at}",
            _money(row["own_usd_per_gpu_h"]),
            ranges.get("own_usd_per_gpu_h"),
            _money,
        ),
        _line(
            "Rented, a GPU-hour", _money(row["rent_usd_per_gpu_h"]), ranges.get("rent_usd_per_gpu_h"), _money
        ),
        _line(f"Owned, the node a year {at}", _money(row["own_usd_per_year"])),
        _line(f"Rented, the node a year {at}", _money(row["rent_usd_per_year"])),
    ]


def _line(
    what: str, middle: str | None, found: Mapping[str, Any] | None = None, form: Any = None
) -> dict[str, Any]:
    spread = ""
    if found is not None and found["low"] is not None:
        open_end = "never" if form is _months else "no limit"
        high = open_end if found["high"] is None else form(found["high"])
        spread = f"{form(found['low'])} to {high}".replace(" months to ", " to ")
    return {"what": what, "middle": middle, "range": spread}


def _months(value: float | None) -> str | None:
    return None if value is None else f"{formats.short(value)} months"


def _use(value: float | None) -> str | None:
    if value is None:
        return None
    return "at none" if value > 1 else f"{formats.percent(value)} ({24 * value:.1f} h a day)"


def _percent(value: float) -> str:
    return "at none" if value > 1 else formats.percent(value)


def _money(value: str | None) -> str | None:
    return None if value is None else dollars(value)


def _assumed(said: Mapping[str, Any], measured: Mapping[str, Any] | None) -> list[str]:
    lines = []
    if measured is not None:
        lines.append(_measured(measured))
    if said["capex_usd"] is not None:
        parts = [
            f"{part} {dollars(said[name])}" for part in PARTS if said[name := f"capex_{part}_usd"] is not None
        ]
        split = f" ({', '.join(parts)})" if parts else ""
        lines.append(
            f"Node: {said['gpu_count']} GPUs for {dollars(said['capex_usd'])}{split}, {said['life_years']:g} years, "
            f"{formats.percent(said['residual_ratio'])} resale, capital at {formats.percent(said['cost_of_capital_ratio'])}, "
            f"up {formats.percent(said['availability_ratio'])} of the time."
        )
    lines += [_running(said), f"Rent: {said['rent_basis'] or 'not known'}."]
    if said["utilisation"] is not None and said["utilisation_basis"]:
        lines.append(f"Use: {said['utilisation_basis']}.")
    lines.append(
        "Not counted: tax, migration, delivery time; storage and egress are on neither side. "
        "Range: rent −30 %/+20 %, 3–5 years, use p25–p75."
    )
    return lines


def _measured(found: Mapping[str, Any]) -> str:
    line = (
        f"Measured: {found['gpu_count']} GPUs ({', '.join(found['models'])}), {found['weeks']:.1f} weeks; "
        f"held {formats.percent(found['allocated_ratio'])} and at work {formats.percent(found['active_ratio'])} of the known time."
    )
    if found["left_out_hours"]:
        line += f" {found['left_out_hours']:,} hours were hardly seen."
    return line


def _running(said: Mapping[str, Any]) -> str:
    if said["own_opex_usd_per_hour"] is not None:
        return f"Running cost: {dollars(said['own_opex_usd_per_hour'])} an hour, all of it."
    tariff = said["tariff_usd_per_kwh"]
    energy = (
        "energy in the colo fee"
        if said["colo_includes_power"]
        else f"{said['idle_kw']:.2f} kW idle and {said['active_kw']:.2f} kW at work ({said['power_basis']}), "
        f"PUE {said['pue']:g}, {'no tariff' if tariff is None else f'{dollars(tariff)} a kWh'}"
    )
    return (
        f"Running cost: maintenance {formats.percent(said['maintenance_ratio'])} a year, staff "
        f"{dollars(said['staff_usd_per_year'])}, licences {dollars(said['licences_usd_per_year'])}, colo "
        f"{dollars(said['colo_usd_per_kw_month'])} a kW-month; {energy}."
    )
