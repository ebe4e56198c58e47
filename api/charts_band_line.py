"""A sum that grows day by day against a limit, and where it is expected to end: a line, then a band around its middle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from api import formats
from api.charts import px2
from api.charts_parts import AXIS_PX, frame, nice_ticks, px, y_axis
from api.text import escape


@dataclass(frozen=True, slots=True)
class Step:
    """One day: the sum at its end as known, or as expected (low, middle, high); neither: unknown."""

    name: str
    known: float | None = None
    low: float | None = None
    middle: float | None = None
    high: float | None = None


def band_line(
    steps: Sequence[Step],
    *,
    label: str,
    limit: float | None = None,
    limit_text: str = "",
    text_of: Callable[[float], str] = formats.money,
    axis_text: Callable[[float], str] = formats.money_axis,
    height: float = 190,
) -> Markup:
    """The chart. Days share the width evenly; a sum stands at the end of its day.

    Args:
        steps: in order of time. label: the sentence for who does not see it. limit: drawn dashed, with its text.
        text_of, axis_text: how values read in tooltips and on the axis. height: pixels, labels included.
    """
    plot = height - AXIS_PX - 4
    figures = [
        value
        for step in steps
        for value in (step.known, step.low, step.middle, step.high)
        if value is not None
    ]
    ticks = nice_ticks(max([*figures, limit or 0.0], default=0.0))
    slot = 1000 / max(len(steps), 1)

    def at(day: int, value: float) -> str:
        return f"{px(slot * day)} {px(plot * (1 - value / ticks[-1]))}"

    parts = [y_axis(ticks, [axis_text(value) for value in ticks], plot_px=plot)]
    known = [(n + 1, step.known) for n, step in enumerate(steps) if step.known is not None]
    ahead = [
        (n + 1, step.low, step.middle, step.high)
        for n, step in enumerate(steps)
        if step.low is not None and step.middle is not None and step.high is not None
    ]
    drawn = []
    if ahead:
        last = known[-1] if known and known[-1][0] < ahead[0][0] else (ahead[0][0] - 1, 0.0)
        edge = [at(*last), *(at(n, high) for n, _, _, high in ahead)]
        edge += [at(n, low) for n, low, _, _ in reversed(ahead)]
        drawn.append(f'<path class="forecast" d="M{"L".join(edge)}Z"/>')
        middle = [at(*last), *(at(n, value) for n, _, value, _ in ahead)]
        drawn.append(
            f'<path class="line expected" d="M{"L".join(middle)}" vector-effect="non-scaling-stroke"/>'
        )
    if known:
        start = [at(known[0][0] - 1, 0.0)] if known[0][0] == 1 else []
        path = [*start, *(at(*point) for point in known)]
        drawn.append(f'<path class="line power" d="M{"L".join(path)}" vector-effect="non-scaling-stroke"/>')
    parts.append(
        f'<svg aria-hidden="true" width="100%" height="{px(plot)}" viewBox="0 0 1000 {px(plot)}"'
        f' preserveAspectRatio="none" overflow="visible">{"".join(drawn)}</svg>'
    )
    if limit is not None:
        y = plot * (1 - limit / ticks[-1])
        parts.append(f'<line class="threshold" x1="0" x2="100%" y1="{px(y)}" y2="{px(y)}"/>')
        if limit_text:
            parts.append(
                f'<text class="name" x="4" y="{px(y + 13 if y < 14 else y - 4)}">{escape(limit_text)}</text>'
            )
    for n, step in enumerate(steps):
        parts.append(
            f'<rect class="hit" x="{px2(n * slot / 10)}%" width="{px2(slot / 10)}%" y="0" height="{px(plot)}">'
            f"<title>{escape(step.name)}: {escape(_told(step, text_of))}</title></rect>"
        )
    for n in _labelled(len(steps)):
        anchor = "start" if n == 0 else "end" if n == len(steps) - 1 else "middle"
        x = n * slot if n == 0 else (n + 1) * slot if anchor == "end" else (n + 0.5) * slot
        parts.append(
            f'<text x="{px2(x / 10)}%" y="{px(height - 3)}" text-anchor="{anchor}">{escape(steps[n].name)}</text>'
        )
    return frame("".join(parts), label=label, height=height, kind="axis")


def _told(step: Step, text_of: Callable[[float], str]) -> str:
    if step.middle is not None and step.low is not None and step.high is not None:
        return f"expected {text_of(step.middle)}, {text_of(step.low)} to {text_of(step.high)}"
    return "not known" if step.known is None else f"{text_of(step.known)} so far"


def _labelled(count: int, most: int = 5) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})
