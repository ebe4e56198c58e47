"""A week of prices as a grid: a row for each weekday, a column for each hour of the local clock, darker where it is dearer."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from typing import Final

from markupsafe import Markup

from api.charts_parts import frame, px, share
from api.text import escape
from core.user_tariff import DAY_H, WEEK_H, WEEKDAYS

ROW_PX: Final = 15
LABELLED_H: Final = (0, 6, 12, 18, 24)
SHADES: Final = ("f-0", "f-1", "f-2", "f-3")


def week_grid(prices: Sequence[Decimal], *, label: str) -> Markup:
    """The grid.

    Args:
        prices: dollars per kWh of each hour of a week, Monday 0 o'clock first.
        label: what the week is like, for who cannot see it.

    Raises:
        ValueError: not as many prices as a week has hours.
    """
    if len(prices) != WEEK_H:
        raise ValueError(f"{len(prices)} prices: a week has {WEEK_H} hours")
    shade = shades(prices)
    parts = []
    for day, name in enumerate(WEEKDAYS):
        top = day * ROW_PX
        parts.append(f'<text x="-8" text-anchor="end" y="{px(top + 11)}">{name.capitalize()}</text>')
        at = 0
        for price, run in groupby(prices[day * DAY_H : (day + 1) * DAY_H]):
            count = len(list(run))
            said = escape(f"{name.capitalize()} {at:02d}–{at + count:02d}: ${price.normalize():f} a kWh")
            parts.append(
                f'<rect class="{shade[price]}" x="{share(at, DAY_H)}" y="{px(top)}" width="{share(count, DAY_H)}"'
                f' height="{ROW_PX - 2}"><title>{said}</title></rect>'
            )
            at += count
    bottom = len(WEEKDAYS) * ROW_PX + 12
    for hour in LABELLED_H:
        anchor = "start" if hour == 0 else "end" if hour == DAY_H else "middle"
        parts.append(
            f'<text x="{share(hour, DAY_H)}" y="{bottom}" text-anchor="{anchor}">{hour:02d}:00</text>'
        )
    return frame("".join(parts), label=label, height=bottom + 4, kind="week")


def shades(prices: Sequence[Decimal]) -> dict[Decimal, str]:
    """The class of each price that occurs: the dearest is the darkest, one price alone is the lightest."""
    rising = sorted(set(prices))
    last = len(rising) - 1
    return {
        price: SHADES[round(at * (len(SHADES) - 1) / last) if last else 0] for at, price in enumerate(rising)
    }
