"""``gpuwise plan mix``: how many GPUs to own, commit, reserve and rent for the demand measured here."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from api import formats
from api.resources.plan_bodies import MixBody
from gpuwise.commands.display import Column, dollars, figure, print_json, print_rows
from gpuwise.commands.options import Source, database_options, window_options
from gpuwise.commands.plan_options import ask, input_options

NO_GPUS: Final = "No GPU was seen in this window: run gpuwise up, or gpuwise import, or widen --since."
AROUND: Final = 3
"""Points of the curve shown on either side of its least; --json has them all."""

STEP_NAMES: Final = {
    "today": "today: all that is there",
    "on_demand": "rent by the hour only",
    "spot": "+ spot for what can restart",
    "reserve": "+ reserve",
    "commit": "+ commit",
    "own": "+ own machines",
}
STEPS: Final = (
    Column("name", "STEP", lambda name: STEP_NAMES[name]),
    figure("own_gpus", "OWNED", str),
    figure("promised_gpus", "PROMISED", str),
    figure("on_demand_gpus", "ON DEMAND", formats.short),
    figure("spot_gpus", "SPOT", formats.short),
    figure("usd_per_month", "PER MONTH", dollars),
    figure("saves_usd_per_month", "SAVES", dollars),
)
CURVE: Final = (
    figure("gpus", "PAID FOR", str),
    figure("use_ratio", "USE OF THE LAST", formats.percent),
    figure("own_gpus", "OWNED", str),
    figure("promised_gpus", "PROMISED", str),
    figure("on_demand_gpus", "ON DEMAND", formats.short),
    figure("spot_gpus", "SPOT", formats.short),
    figure("usd_per_month", "PER MONTH", dollars),
    Column("mark", ""),
)


@click.command()
@input_options(MixBody)
@window_options
@database_options
def mix(source: Source, since: str | None, until: str | None, **given: Any) -> int:
    """The cheapest mix of owned, promised and rented GPUs for the measured demand, per GPU model.

    Measured over 13 weeks of data unless --since says otherwise. A way without a price is left out.
    """
    from api.resources.plan_mix import mix as found

    rows = ask(source, "plan/mix", found, {"since": since, "until": until}, given)
    if source.as_json:
        print_json(rows)
        return 0
    if not rows:
        click.echo(NO_GPUS)
    for number, row in enumerate(rows):
        if number:
            click.echo("\n")
        show(row)
    return 0


def show(row: Mapping[str, Any]) -> None:
    """One model's mix for people."""
    click.echo(plain(f"{row['gpu_model']}: {_headline(row)}"))
    click.echo(plain(_demand(row["demand"])))
    if row["usd_per_month"] is not None:
        click.echo()
        print_rows(row["steps"], STEPS, empty="")
        click.echo()
        print_rows(_near_the_least(row["curve"], _paid(row)), CURVE, empty="")
    notes = _notes(row)
    if notes:
        click.echo()
    for note in notes:
        click.echo(plain(note))


def _headline(row: Mapping[str, Any]) -> str:
    if row["usd_per_month"] is None:
        return str(row["reason"])
    parts = [
        f"{word} {row[name]}{_range(row['ranges'].get(name if name == 'own_gpus' else 'promised_gpus'))}"
        for word, name in (("own", "own_gpus"), ("commit", "commit_gpus"), ("reserve", "reserve_gpus"))
        if row[name]
    ]
    parts += [
        f"rent {formats.short(round(row[name], 2))} {word}"
        for word, name in (("as spot", "spot_gpus"), ("on demand", "on_demand_gpus"))
        if round(row[name], 2) > 0
    ]
    cost = f"{dollars(row['usd_per_month'])} a month on average"
    saves = row["saves_usd_per_month"]
    if saves is not None and float(saves) == 0:
        cost += ", as today"
    elif saves is not None:
        word = "less" if float(saves) >= 0 else "more"
        cost += f", {formats.money(abs(float(saves)))} {word} than today"
    return f"{', '.join(parts) or 'nothing was wanted'} (GPUs): {cost}. {row['reason']}"


def _range(found: Mapping[str, int] | None) -> str:
    return "" if found is None or found["p10"] == found["p90"] else f" ({found['p10']}–{found['p90']})"


def _demand(row: Mapping[str, Any]) -> str:
    held = "held by a workload" if row["wanted"] == "allocated" else "at work"
    if row["mean_gpus"] is None:
        return f"Wanted means {held}; no hour was seen well enough."
    line = (
        f"GPUs {held} at once: {formats.short(round(row['mean_gpus'], 2))} on average of "
        f"{formats.short(round(row['present_gpus'], 2))} that are there; at least {_gpus(row['p10_gpus'])} in 90 % and "
        f"{_gpus(row['p20_gpus'])} in 80 % of the hours, {row['most_gpus']} at most."
    )
    if row["full_ratio"] > 0:
        line += (
            f" In {formats.percent(row['full_ratio'])} of the hours every GPU was: more may have been wanted."
        )
    if row["left_out_hours"]:
        line += f" {row['left_out_hours']:,} hours were hardly seen and do not count."
    return line


def _gpus(value: float) -> str:
    return formats.short(round(value, 1))


def _paid(row: Mapping[str, Any]) -> int:
    return int(row["own_gpus"] + row["commit_gpus"] + row["reserve_gpus"])


def _near_the_least(curve: Sequence[Mapping[str, Any]], paid: int) -> list[dict[str, Any]]:
    """The least with its neighbours, none paid for, and all: enough to see how flat it is."""
    at = next(index for index, point in enumerate(curve) if point["gpus"] == paid)
    shown = {0, len(curve) - 1, *range(max(0, at - AROUND), min(len(curve), at + AROUND + 1))}
    return [{**curve[index], "mark": "← least" if index == at else ""} for index in sorted(shown)]


def _notes(row: Mapping[str, Any]) -> list[str]:
    prices, notes = row["prices"], []
    if prices:
        said = [f"on demand {dollars(prices['rent_usd_per_gpu_h'])} ({prices['rent_basis'] or 'given'})"]
        said += [
            f"{word} {dollars(prices[name])}"
            for word, name in (
                ("commit", "commit_usd_per_gpu_h"),
                ("reserve", "reserve_usd_per_gpu_h"),
                ("spot with its interruptions", "spot_with_interruptions_usd_per_gpu_h"),
            )
            if prices[name] is not None
        ]
        if prices["own_fixed_usd_per_gpu_h"] is not None:
            said.append(
                f"own {dollars(prices['own_fixed_usd_per_gpu_h'])} for every hour and "
                f"{dollars(prices['own_used_usd_per_gpu_h'])} more at work, in machines of {prices['own_machine_gpus']}"
            )
        notes.append(f"A GPU-hour: {', '.join(said)}.")
    pays = [f"{name} above {formats.percent(use)}" for name, use in row["break_even_ratio"].items()]
    if pays:
        notes.append(f"Use of the last GPU at which a way pays: {', '.join(pays)}.")
    if row["own_gpus"]:
        notes.append(f"Power of an owned machine: {row['assumptions']['power_basis']}.")
    left_out = [f"{name} ({why})" for name, why in row["left_out"].items()]
    if left_out:
        notes.append(f"Left out: {', '.join(left_out)}.")
    return notes


def plain(text: str) -> str:
    """Without the no-break spaces of pages."""
    return text.replace(formats.NBSP, " ")
