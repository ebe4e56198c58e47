"""Bands of activity over time: each column shows the shares of its time, gaps stay blank with a thin line through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from api import formats
from api.charts import px2
from api.charts_parts import frame, px
from api.text import escape
from api.words import ACTIVITY, activity_class, activity_name
from core.activity import Activity
from core.evidence import Window


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a band: its span and the seconds by activity that samples vouch for.

    ``due_s`` is what a full column would have (3600 × GPUs for an hour); None: all that is covered.
    """

    from_ms: int
    to_ms: int
    seconds: Mapping[Activity, float] = field(default_factory=dict)
    due_s: float | None = None

    @property
    def covered_s(self) -> float:
        """Seconds for which samples vouch."""
        return sum(self.seconds.values())

    @property
    def single(self) -> Activity | None:
        """The activity that fills the column (≥ 98 % of what is due), or None."""
        due = max(self.due_s or 0.0, self.covered_s)
        for activity, seconds in self.seconds.items():
            if due > 0 and seconds >= 0.98 * due:
                return activity
        return None


def seconds_by_activity(columns: Sequence[Column]) -> dict[Activity, float]:
    """All columns together, in the order of legends; only what occurs."""
    total: dict[Activity, float] = {}
    for column in columns:
        for activity, seconds in column.seconds.items():
            total[activity] = total.get(activity, 0.0) + seconds
    return dict(_in_order(total))


_PLACES: Final = {activity: place for place, activity in enumerate(ACTIVITY)}


def _in_order(seconds: Mapping[Activity, float]) -> list[tuple[Activity, float]]:
    """What occurs, in the order of legends: of few activities, which is most columns, a few steps."""
    return sorted(
        [(activity, value) for activity, value in seconds.items() if value > 0],
        key=lambda pair: _PLACES[pair[0]],
    )


def say(columns: Sequence[Column], window: Window | None = None, blank: str = "no samples") -> str:
    """The band as words: ``parked 7 h, memory-bound 12 h``; with a window also what no column stands for (``blank``)."""
    parts = [f"{activity_name(a)} {formats.duration(s)}" for a, s in seconds_by_activity(columns).items()]
    due = sum(c.due_s if c.due_s is not None else c.covered_s for c in columns)
    missing = due - sum(c.covered_s for c in columns)
    if window is not None:
        blank_ms = (window.to_ms - window.from_ms) - sum(c.to_ms - c.from_ms for c in columns)
        missing += max(blank_ms, 0) / 1000
        due += max(blank_ms, 0) / 1000
    if due > 0 and missing > 0.01 * due:
        parts.append(f"{blank} for {formats.duration(missing)}")
    return ", ".join(parts) or blank


def activity_band(
    columns: Sequence[Column], *, window: Window, label: str, height: float = 14, blank: str = "no samples"
) -> Markup:
    """Columns across the window, each stacked by share of activity; equal neighbours are one piece.

    ``blank`` says what time is for which no column stands.
    """
    length = window.to_ms - window.from_ms
    middle = px(height / 2)
    parts = [f'<line class="gapline" x1="0" x2="100%" y1="{middle}" y2="{middle}"/>']
    for piece in _merged(columns):
        left = 100 * (piece.from_ms - window.from_ms) / length
        # A hair wider than its time: neighbours that only touch show the ground between them on some screens.
        width = min(100 * (piece.to_ms - piece.from_ms) / length + 0.04, 100 - left)
        due = max(piece.due_s or 0.0, piece.covered_s)
        if due <= 0:
            continue
        when = f"{formats.minute(piece.from_ms)}–{formats.minute(piece.to_ms)} UTC"
        title = f"<title>{escape(when)}: {escape(say([piece]))}</title>"
        y = height
        rects = []
        for activity, seconds in _in_order(piece.seconds):
            tall = height * seconds / due
            y -= tall
            fill = ' fill="url(#hatch)"' if activity is Activity.UNKNOWN else ""
            rects.append(
                f'<rect class="{activity_class(activity)}"{fill} x="{px2(left)}%" width="{px2(width)}%"'
                f' y="{px(max(y, 0.0))}" height="{px(tall)}"/>'
            )
        parts.append(f"<g>{title}{''.join(rects)}</g>")
    return frame("".join(parts), label=f"{label}: {say(columns, window, blank)}", height=height, kind="band")


def _merged(columns: Sequence[Column]) -> list[Column]:
    pieces: list[Column] = []
    for column in columns:
        last = pieces[-1] if pieces else None
        same = last is not None and column.single is not None and last.single is column.single
        if last is None or not same or column.from_ms != last.to_ms:
            pieces.append(column)
            continue
        seconds = dict(last.seconds)
        for activity, value in column.seconds.items():
            seconds[activity] = seconds.get(activity, 0.0) + value
        due = None if column.due_s is None or last.due_s is None else column.due_s + last.due_s
        pieces[-1] = Column(last.from_ms, column.to_ms, seconds, due)
    return pieces
