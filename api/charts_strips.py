"""Strips: one short row of cells for each of many GPUs, coloured by activity or shaded by a value.

A strip is a few paths rather than a cell each: a page may hold a thousand of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from markupsafe import Markup

from api.charts_parts import px
from api.text import escape
from api.words import ACTIVITY, activity_class, activity_name
from core.activity import Activity

CELL_PX: Final = 5
HEIGHT_PX: Final = 13
SHADES: Final = 7
"""Shades of one hue, ``h-1`` to ``h-7``: neighbours must stay apart for the eye."""


@lru_cache(maxsize=8_192)
def activity_strip(strip: tuple[Activity | None, ...]) -> Markup:
    """Activities hour by hour as a picture with a sentence behind it; None: no samples, dotted.

    Kept: of a fleet that is looked at again only the newest hour is new.
    """
    width, height = CELL_PX * len(strip), HEIGHT_PX
    paths: dict[Activity | None, list[str]] = {}
    hours: dict[Activity | None, int] = {}
    at = 0
    for activity, run in groupby(strip):
        cells = len(list(run))
        hours[activity] = hours.get(activity, 0) + cells
        x, wide = CELL_PX * at, CELL_PX * cells
        shape = f"M{x} {height // 2}h{wide}" if activity is None else f"M{x} 0h{wide}v{height}h-{wide}z"
        paths.setdefault(activity, []).append(shape)
        at += cells
    parts = []
    for activity, shapes in paths.items():
        kind = "gapline" if activity is None else activity_class(activity)
        fill = ' fill="url(#hatch)"' if activity is Activity.UNKNOWN else ""
        parts.append(f'<path class="{kind}"{fill} d="{"".join(shapes)}"/>')
    return Markup(  # noqa: S704 - numbers and names of ours
        f'<svg class="strip" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img">'
        f"<title>{escape(strip_words(hours))}</title>{''.join(parts)}</svg>"
    )


def strip_words(hours: dict[Activity | None, int]) -> str:
    """Hours by activity as words: ``parked 7 h, memory-bound 12 h, no samples 5 h``."""
    told = [f"{activity_name(a)} {hours[a]} h" for a in ACTIVITY if a in hours]
    if None in hours:
        told.append(f"no samples {hours[None]} h")
    return ", ".join(told) or "no samples"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what colours it (an activity or 0–1 of the scale), what to say of it; both empty: nothing is known."""

    shade: Activity | float | None
    text: str = ""


def heat_strip(
    cells: Sequence[Cell], *, label: str, when: Callable[[int], str], height: float = 20
) -> Markup:
    """Cells side by side over the whole width; equal neighbours are one piece, what is not known is blank.

    Args:
        cells: from left to right. label: what the row is, for who cannot see it.
        when: first to last cell of a piece as words: start of cell number n.
        height: in pixels.
    """
    parts = []
    at = 0
    for key, run in groupby(cells, key=lambda cell: (shade_class(cell.shade), cell.text)):
        count = len(list(run))
        kind, text = key
        if kind:
            fill = ' fill="url(#hatch)"' if kind == "a-unknown" else ""
            parts.append(
                f'<rect class="{kind}"{fill} x="{at}" width="{count}" height="{px(height)}">'
                f"<title>{escape(when(at))} – {escape(when(at + count))}: {escape(text)}</title></rect>"
            )
        at += count
    return Markup(  # noqa: S704 - every word is escaped
        f'<svg class="heat" viewBox="0 0 {len(cells)} {px(height)}" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def shade_class(shade: Activity | float | None) -> str:
    """The class that colours a cell; empty: blank."""
    if shade is None:
        return ""
    if isinstance(shade, Activity):
        return activity_class(shade)
    return f"h-{min(SHADES, 1 + int(max(0.0, min(shade, 1.0)) * SHADES))}"
