"""The Jinja environment: autoescape, nothing undefined, filters that print figures the one way of ``api.formats``."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from api import formats, words
from api.charts_png import HATCH, STATIC
from core.clock import iso

TEMPLATES: Final = Path(__file__).resolve().parent.parent / "templates"

FILTERS: Final = {
    "money": formats.money,
    "money_rate": formats.money_rate,
    "spread": formats.spread,
    "gpu_hours": formats.gpu_hours,
    "percent": formats.percent,
    "watts": formats.watts,
    "kwh": formats.kwh,
    "gib": formats.gib,
    "mhz": formats.clock_mhz,
    "duration": formats.duration,
    "milliseconds": formats.milliseconds,
    "short": formats.short,
    "figure": formats.figure,
    "day": formats.day,
    "activity_name": words.activity_name,
    "activity_class": words.activity_class,
}


def time_tag(ts_ms: int | None) -> Markup:
    """A point in time as ``<time>``: UTC as text; the page's script shows local time and keeps UTC on hover."""
    if ts_ms is None:
        return Markup(formats.UNKNOWN)  # noqa: S704 - a constant
    return Markup('<time datetime="{}">{} UTC</time>').format(iso(ts_ms), formats.minute(ts_ms))


def ago(ts_ms: int | None, now_ms: int) -> str:
    """How long ago, in its largest fitting unit."""
    if ts_ms is None:
        return formats.UNKNOWN
    return f"{formats.duration(max(now_ms - ts_ms, 0) / 1000)} ago"


@cache
def static_url(name: str) -> str:
    """Address of a static file with a mark of its content, so that browsers may keep it for a year."""
    mark = sha256((STATIC / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?v={mark}"


@cache
def environment() -> Environment:
    """The one environment of pages and mail."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(FILTERS)
    env.filters["time"] = time_tag
    env.filters["ago"] = ago
    env.globals.update(static=static_url, activities=words.ACTIVITY)
    env.globals["hatch"] = Markup(HATCH)  # noqa: S704 - a constant
    return env


def render(template: str, page: object, **more: Any) -> str:
    """One page dataclass through one template; the template sees it as ``page``."""
    return environment().get_template(template).render(page=page, **more)
