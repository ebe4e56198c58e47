"""A rule's track record: each verified case as a dot with its interval on an axis of verified over predicted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts_parts import frame, px, share
from core.finding import Range

ROW_PX: Final = 20
AXIS_PX: Final = 18
LEAST_TOP: Final = 1.5
MOST_TOP: Final = 3.0
NEAR_END: Final = 0.2
"""A mark so near the right end is written to the left of it, or it would leave the picture."""


@dataclass(frozen=True, slots=True)
class TrackCase:
    """Verified over predicted of one case; ``is_this``: of the page it is drawn on."""

    ratio: Range
    is_this: bool = False


def track_chart(cases: Sequence[TrackCase], expected: Range, *, label: str) -> Markup:
    """Dots with intervals, one a row; the band is what the next claim may expect."""
    most = max([LEAST_TOP, expected.p90, *(case.ratio.p90 for case in cases)])
    top = min(MOST_TOP, most)
    plot = max(1, len(cases)) * ROW_PX

    def x(ratio: float) -> str:
        return share(min(max(ratio, 0.0), top), top)

    left, right = min(max(expected.p10, 0.0), top), min(max(expected.p90, 0.0), top)
    parts = [
        f'<rect class="forecast" x="{x(left)}" width="{share(right - left, top)}" y="0" height="{px(plot)}"/>',
        f'<line class="threshold" x1="{x(1.0)}" x2="{x(1.0)}" y1="0" y2="{px(plot)}"/>',
    ]
    for place, case in enumerate(cases):
        y = px((place + 0.5) * ROW_PX)
        size = "5.5" if case.is_this else "4"
        parts.append(
            f'<line class="line" x1="{x(case.ratio.p10)}" x2="{x(case.ratio.p90)}" y1="{y}" y2="{y}"/>'
        )
        parts.append(f'<circle class="mark" cx="{x(case.ratio.p50)}" cy="{y}" r="{size}"/>')
    ticks = [step / 2 for step in range(int(top * 2) + 1)]
    for tick in ticks:
        anchor = "start" if tick == 0 else "middle" if tick < top - NEAR_END else "end"
        parts.append(
            f'<text x="{x(tick)}" y="{px(plot + 13)}" text-anchor="{anchor}">{formats.percent(tick, 0)}</text>'
        )
    return frame("".join(parts), label=label, height=plot + AXIS_PX)
