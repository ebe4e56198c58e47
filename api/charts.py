"""Charts of amounts: stacked bars per day and the funnel. Values in, SVG out; nothing is read or rounded elsewhere.

A missing value is a gap: a bar that is not drawn and a sentence in its tooltip, never a bar of height 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, share, y_axis
from api.text import escape

WIDEST: Final = 14.0
"""Percent of the chart: a single day is a bar, not a wall."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a stack.

    Attributes:
        key: CSS class (``a-parked``). name: for people. values: one per column; None where nothing is known.
    """

    key: str
    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class FunnelBar:
    """One row of the funnel.

    Attributes:
        name: ``Allocated``. amount: its length (GPU-hours). text: what is printed at its right.
        unknown: length that nothing can decide, hatched after the bar.
    """

    name: str
    amount: float | None
    text: str
    unknown: float = 0.0


def stacked_bars(
    columns: Sequence[str],
    layers: Sequence[Layer],
    *,
    label: str,
    text_of: Callable[[float], str] = formats.money,
    axis_text: Callable[[float], str] = formats.money_axis,
    height: float = 200,
) -> Markup:
    """Stacked columns, one per day, first layer at the bottom.

    Args:
        columns: what each column is (``3 Nov``).
        layers: in stacking order; all as long as ``columns``.
        label: the sentence for who does not see it.
        text_of, axis_text: how values read in tooltips and on the axis.
        height: pixels, labels included.
    """
    plot = height - AXIS_PX - 4
    totals = [sum(layer.values[i] or 0.0 for layer in layers) for i in range(len(columns))]
    ticks = nice_ticks(max(totals, default=0.0))
    parts = [y_axis(ticks, [axis_text(value) for value in ticks], plot_px=plot)]
    slot = 100 / max(len(columns), 1)
    wide = min(slot - min(slot * 0.18, 0.6), WIDEST)
    for i, column in enumerate(columns):
        left = i * slot + (slot - wide) / 2
        if all(layer.values[i] is None for layer in layers):
            parts.append(_no_data(column, left, wide, plot))
            continue
        below = 0.0
        for layer in layers:
            value = layer.values[i]
            if not value or value <= 0:
                continue
            low, high = plot * (1 - below / ticks[-1]), plot * (1 - (below + value) / ticks[-1])
            parts.append(
                f'<rect class="{layer.key}"{_hatch(layer.key)} x="{px2(left)}%" width="{px2(wide)}%"'
                f' y="{px(high)}" height="{px(max(low - high, 0.4))}">'
                f"<title>{escape(column)}: {escape(layer.name)} {escape(text_of(value))}</title></rect>"
            )
            below += value
    parts.append(_column_labels(columns, slot, height))
    return frame("".join(parts), label=label, height=height, kind="axis")


def px2(value: float) -> str:
    """A percentage with three decimals, short."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _hatch(key: str) -> str:
    # An attribute, not CSS: url(#…) in a style sheet would point into the style sheet's own file.
    return ' fill="url(#hatch)"' if key == "a-unknown" else ""


def _no_data(column: str, left: float, width: float, plot: float) -> str:
    return (
        f'<rect class="gap" x="{px2(left)}%" width="{px2(width)}%" y="0" height="{px(plot)}">'
        f"<title>{escape(column)}: no samples</title></rect>"
    )


def _column_labels(columns: Sequence[str], slot: float, height: float) -> str:
    n = len(columns)
    most = n if n <= 8 else 5
    shown = sorted({round(i * (n - 1) / (most - 1)) for i in range(most)}) if n > most else list(range(n))
    parts = []
    for i in shown:
        anchor = "start" if i == 0 and n > most else "end" if i == n - 1 and n > most else "middle"
        at = i * slot if anchor == "start" else (i + 1) * slot if anchor == "end" else (i + 0.5) * slot
        parts.append(
            f'<text x="{px2(at)}%" y="{px(height - 3)}" text-anchor="{anchor}">{escape(columns[i])}</text>'
        )
    return "".join(parts)


def funnel(bars: Sequence[FunnelBar], *, label: str, row_px: float = 46) -> Markup:
    """Bars of what is left at each step, names and figures above each bar."""
    whole = max((bar.amount or 0.0) + bar.unknown for bar in bars) or 1.0
    parts = []
    for i, bar in enumerate(bars):
        top = i * row_px
        known = bar.amount or 0.0
        parts.append(
            f'<text class="name" x="0" y="{px(top + 12)}">{escape(bar.name)}</text>'
            f'<text x="100%" y="{px(top + 12)}" text-anchor="end">{escape(bar.text)}</text>'
            f'<rect class="track" x="0" width="100%" y="{px(top + 19)}" height="14" rx="3"/>'
        )
        if bar.unknown > 0:
            parts.append(
                f'<rect class="a-unknown" fill="url(#hatch)" x="{share(known, whole)}"'
                f' width="{share(bar.unknown, whole)}" y="{px(top + 19)}" height="14"/>'
            )
        if bar.amount:
            parts.append(
                f'<rect class="f-{min(i, 3)}" x="0" width="{share(known, whole)}" y="{px(top + 19)}" height="14" rx="3"/>'
            )
    return frame("".join(parts), label=label, height=row_px * len(bars) - 8, kind="funnel")
