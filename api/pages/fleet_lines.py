"""GPUs as rows of a table: thirteen cells each, which fleet.css lays out by their place.

Written here and not by a template: a fleet is a thousand rows, and a template takes as long for a cell as this for a row.
Scripts fill in newer figures by ``data-live-gpu`` and ``data-live-field`` (``live.js``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from markupsafe import Markup

from api import formats
from api.charts_strips import activity_strip
from api.links import gpu_path, host_path
from api.pages.view import Address
from api.resources.fleet_rows import FleetGpu
from api.templating import ago, environment
from api.text import escape
from core.activity import Activity
from core.units import GIB
from store.queries.gpu_now import GpuNow

NO_FIGURES: Final = "<td></td>" * 5
"""Of a silent GPU: what it did last is not what it does now."""


@dataclass(frozen=True, slots=True)
class GpuLine:
    """One GPU, and the whole of its row."""

    row: FleetGpu
    markup: Markup


class Links:
    """Addresses of hosts and GPUs over the page's period: the period is written once, not a thousand times."""

    def __init__(self, address: Address) -> None:
        self._period = address.link("")

    def gpu(self, gpu_uuid: str) -> str:
        """A GPU's page."""
        return f"{gpu_path(gpu_uuid)}{self._period}"

    def host(self, name: str | None) -> str:
        """A host's page; None: that of the GPUs of no known host."""
        return f"/hosts{self._period}" if name is None else f"{host_path(name)}{self._period}"


def gpu_lines(
    rows: Sequence[FleetGpu], link: Links, *, now_ms: int, with_model: bool, with_host: bool = False
) -> tuple[GpuLine, ...]:
    """Rows of a table; pure.

    Args:
        rows: GPUs. link: of the page. now_ms: when the page is made.
        with_model, with_host: no heading above says them.
    """
    # Days that were alike are one object: to see that takes less than to hash what they hold.
    days = {id(row.strip): row.strip for row in rows}
    strips = {key: activity_strip(day) for key, day in days.items()}
    lines = []
    for row in rows:
        name, model = _name(row.now, with_host), row.now.model or "model unknown" if with_model else ""
        lines.append(
            GpuLine(
                row,
                _markup(
                    row, name, model, link.gpu(row.now.gpu_uuid), _of_now(row, strips[id(row.strip)], now_ms)
                ),
            )
        )
    return tuple(lines)


def _markup(row: FleetGpu, name: str, model: str, href: str, of_now: str) -> Markup:
    now, total = row.now, row.total
    under = f"<small>{text(model, 40)}</small>" if model else ""
    idle_usd = total.idle_usd
    warn = ' class="warn"' if idle_usd else ""
    return Markup(  # noqa: S704 - figures of ours, and text that is escaped
        f'<tr data-live-gpu="{escape(now.gpu_uuid)}"><th scope="row"><a href="{escape(href)}">'
        f"{text(name, 48)}</a>{under}</th>{of_now}"
        f"<td>{formats.money(total.cost_usd)}</td><td{warn}>{formats.money(idle_usd)}</td>"
        f"<td>{formats.percent(total.coverage_ratio)}</td><td>{text(row.team, 24)}</td><td>{_advice(row)}</td></tr>"
    )


def _of_now(row: FleetGpu, strip: Markup, now_ms: int) -> str:
    """What it does, its day, and its newest figures."""
    now = row.now
    if row.is_silent:
        since = f" <small>{ago(now.seen_until_ms, now_ms)}</small>" if now.seen_until_ms else ""
        return f'<td><span class="silent">silent</span>{since}</td><td>{strip}</td>{NO_FIGURES}'
    return (
        f'<td data-live-field="activity">{_activity(row.activity)}</td><td>{strip}</td>'
        f'<td data-live-field="busy">{formats.percent(now.busy_ratio)}</td>'
        f'<td><span data-live-field="power">{formats.watts(now.power_w)}</span>{_of(now.power_limit_w)}</td>'
        f'<td><span data-live-field="memory">{formats.gib(now.memory_used_bytes)}</span>'
        f"{_of(None if now.memory_total_bytes is None else now.memory_total_bytes / GIB)}</td>"
        f'<td data-live-field="sm">{formats.percent(now.sm_active_ratio)}</td>'
        f'<td data-live-field="dram">{formats.percent(now.dram_active_ratio)}</td>'
    )


def _name(now: GpuNow, with_host: bool) -> str:
    if with_host and now.host:
        return f"{now.host} · {now.gpu_index if now.gpu_index is not None else now.gpu_uuid}"
    return f"GPU {now.gpu_index}" if now.gpu_index is not None else now.gpu_uuid


def _advice(row: FleetGpu) -> str:
    """The best of it, and how many more there are."""
    if not row.advice:
        return ""
    best = row.advice[0]
    more = f" <small>+{len(row.advice) - 1}</small>" if len(row.advice) > 1 else ""
    return f'<a href="/recommendations/{best.id}">{text(best.finding.title, 120)}</a>{more}'


# A thousand rows repeat a few hundred texts: each is made once, by the macro that makes them everywhere.
@lru_cache(maxsize=8_192)
def text(value: str, most: int) -> Markup:
    """Text that people or programs chose, as ``macros/parts.html`` prints it."""
    parts: Any = environment().get_template("macros/parts.html").module
    return Markup(parts.text(value, most))  # noqa: S704 - the macro escapes


@lru_cache(maxsize=32)
def _activity(activity: Activity | None) -> Markup:
    parts: Any = environment().get_template("macros/parts.html").module
    return Markup(str(parts.activity(activity)).strip())  # noqa: S704 - the macro escapes


@lru_cache(maxsize=1_024)
def _of(whole: float | None) -> str:
    """What power and memory are measured against; empty: not known."""
    return f"<small> / {formats.figure(whole)}</small>" if whole else ""
