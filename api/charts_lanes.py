"""Lanes over time: when something held, one named row each, and marks for what happened at one instant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts import px2
from api.charts_parts import frame, px
from api.text import clipped, escape
from api.words import Mark
from core.evidence import Window

ROW_PX: Final = 14
MOST_LETTERS: Final = 200
SHAPES: Final = {
    Mark.BAD: "M0 -6 6 0 0 6 -6 0Z",
    Mark.WARN: "M0 -6 6 5H-6Z",
    Mark.NOTE: "M-4 -4H4V4H-4Z",
    Mark.GOOD: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
}
"""A shape of its own for each kind of event, so that nothing rests on colour."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something that held from then to then; ``text`` says what and how much of the time."""

    from_ms: int
    to_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: CSS class, name at its left, stretches by time."""

    key: str
    name: str
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that happened; ``href`` leads to where it is told in full."""

    ts_ms: int
    mark: Mark
    text: str
    href: str = ""


def _left(ts_ms: int, window: Window) -> float:
    return 100 * min(max((ts_ms - window.from_ms) / (window.to_ms - window.from_ms), 0.0), 1.0)


def lanes(rows: Sequence[Lane], *, window: Window, label: str) -> Markup:
    """Rows of stretches, each row with its name in the margin."""
    parts = []
    for i, row in enumerate(rows):
        top = i * ROW_PX
        parts.append(
            f'<text x="-7" y="{px(top + 10)}" text-anchor="end">{escape(row.name)}</text>'
            f'<rect class="track" x="0" width="100%" y="{px(top + 2)}" height="{ROW_PX - 4}"/>'
        )
        for one in row.stretches:
            left = _left(one.from_ms, window)
            width = max(_left(one.to_ms, window) - left, 0.15)
            when = f"{formats.minute(one.from_ms)}–{formats.minute(one.to_ms)} UTC"
            parts.append(
                f'<rect class="{row.key}" x="{px2(min(left, 99.85))}%" width="{px2(width)}%" y="{px(top + 2)}" height="{ROW_PX - 4}">'
                f"<title>{escape(when)}: {escape(one.text)}</title></rect>"
            )
    return frame("".join(parts), label=label, height=max(len(rows), 1) * ROW_PX, kind="axis lanes")


def instants(marks: Sequence[Instant], *, window: Window, label: str) -> Markup:
    """A row of marks, worst on top; each is a link where it has somewhere to lead."""
    order = list(SHAPES)
    parts = ['<line class="gapline" x1="0" x2="100%" y1="9" y2="9"/>']
    for one in sorted(marks, key=lambda m: (-order.index(m.mark), m.ts_ms)):
        title = f"{formats.minute(one.ts_ms)} UTC: {clipped(one.text, MOST_LETTERS)}"
        shape = (
            f'<svg x="{px2(_left(one.ts_ms, window))}%" y="9" width="1" height="1" overflow="visible">'
            f'<path class="instant i-{one.mark.value}" d="{SHAPES[one.mark]}"><title>{escape(title)}</title></path></svg>'
        )
        link = f'<a href="{escape(one.href)}" aria-label="{escape(title)}">{shape}</a>' if one.href else shape
        parts.append(link)
    svg = str(frame("".join(parts), label=label, height=18, kind="axis lanes"))
    if any(one.href for one in marks):
        svg = svg.replace('role="img"', 'role="group"', 1)  # links within a picture would not be heard of
    return Markup(svg)  # noqa: S704 - every word was escaped above
