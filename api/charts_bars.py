"""Bars of one table row: parts of a whole (memory of a GPU), and how far an assumption moves a figure about zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api.charts_parts import share
from api.text import escape

HIGH_PX: Final = 12


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole: CSS class, amount, and its words for the tooltip."""

    key: str
    value: float
    text: str


def parts_bar(parts: Sequence[Part], whole: float, label: str) -> Markup:
    """Parts side by side over the whole; what they leave is free."""
    rects = [f'<rect class="track" width="100%" height="{HIGH_PX}" rx="2"/>']
    at = 0.0
    for part in parts:
        wide = min(part.value, whole - at)
        if wide > 0:
            rects.append(
                f'<rect class="{part.key}" x="{share(at, whole)}" width="{share(wide, whole)}" height="{HIGH_PX}">'
                f"<title>{escape(part.text)}</title></rect>"
            )
        at += max(wide, 0.0)
    return _bar("".join(rects), label)


def swing_bar(low: float, high: float, middle: float | None, ends: tuple[float, float], label: str) -> Markup:
    """From one figure to another about the middle; the upright line is zero, where it lies between the ends."""
    least, most = ends
    whole = (most - least) or 1.0
    left, right = sorted((low, high))
    rects = [f'<rect class="track" width="100%" height="{HIGH_PX}" rx="2"/>']
    for from_, to, key in ((left, min(right, 0.0), "s-against"), (max(left, 0.0), right, "s-for")):
        if to > from_:
            rects.append(
                f'<rect class="{key}" x="{share(from_ - least, whole)}" width="{share(to - from_, whole)}" height="{HIGH_PX}"/>'
            )
    for value, key in ((0.0, "s-zero"), (middle, "s-middle")):
        if value is not None and least <= value <= most:
            x = share(value - least, whole)
            rects.append(f'<line class="{key}" x1="{x}" x2="{x}" y1="-2" y2="{HIGH_PX + 2}"/>')
    return _bar("".join(rects), label)


def _bar(body: str, label: str) -> Markup:
    text = escape(label)
    return Markup(  # noqa: S704 - numbers and escaped words only
        f'<svg class="meter row" role="img" aria-label="{text}" width="100%" height="{HIGH_PX}" overflow="visible"'
        f' xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )
