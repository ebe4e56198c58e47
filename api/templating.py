"""The Jinja environment: autoescape, nothing undefined, filters that print figures the one way of ``api.formats``."""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from api import formats, links, words
from api.charts_png import HATCH, STATIC
from api.text import TURNING, harmless
from core.clock import from_ms, iso

TEMPLATES: Final = Path(__file__).resolve().parent.parent / "templates"

FILTERS: Final = {
    "money": formats.money,
    "money_rate": formats.money_rate,
    "money_span": formats.money_span,
    "spread": formats.spread,
    "gpu_hours": formats.gpu_hours,
    "percent": formats.percent,
    "watts": formats.watts,
    "kwh": formats.kwh,
    "gib": formats.gib,
    "mib": formats.mib,
    "size": formats.size,
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


def second_tag(ts_ms: int) -> Markup:
    """The same to the second and in UTC only: rows of samples are read beside CSV and logs."""
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        iso(ts_ms), f"{from_ms(ts_ms):%Y-%m-%d %H:%M:%S}", f"{from_ms(ts_ms):%H:%M:%S}"
    )


SPACES: Final = frozenset("\u00a0\u2009\u202f")
"""Spaces between a figure and its unit: they are seen, though Python calls them unprintable."""


def inert(text: str) -> str:
    r"""Text from outside on one line, with nothing in it that turns direction or hides: such marks show as ``\\u202e``."""
    return "".join(
        letter
        if (letter.isprintable() and letter not in TURNING) or letter in SPACES
        else ascii(letter)[1:-1]
        for letter in text
    )


_PERCENT: Final = re.compile(r"(?<=\d) %(?!\w)")


def _finalized(value: object) -> object:
    """What any template is about to print: text from outside loses what acts, wherever it stands; markup is ours.

    Sentences come with plain spaces: here no line ends between a figure and its percent sign.
    """
    if type(value) is not str:
        return value
    said = harmless(value)
    return _PERCENT.sub(f"{formats.NBSP}%", said) if " %" in said else said


_LONG: Final = re.compile(r"[^\s/-]{32}")


def unbroken(text: str) -> Markup:
    """The class of a name that has no place to break a line at, so that it makes no table wider than the page."""
    return Markup(' class="long"') if _LONG.search(text) else Markup("")


def exact(text: str) -> Markup:
    """Text for the value of a field: what is sent back must be what it was."""
    return escape(text)


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
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(FILTERS)
    env.filters["time"] = time_tag
    env.filters["second"] = second_tag
    env.filters["ago"] = ago
    env.filters["inert"] = inert
    env.filters["exact"] = exact
    env.filters["unbroken"] = unbroken
    env.filters["host_path"] = links.host_path
    env.filters["owner_path"] = links.owner_path
    env.globals.update(static=static_url, activities=words.ACTIVITY)
    env.globals["hatch"] = Markup(HATCH)  # noqa: S704 - a constant
    return env


def render(template: str, page: object, **more: Any) -> str:
    """One page dataclass through one template; the template sees it as ``page``."""
    return environment().get_template(template).render(page=page, **more)
