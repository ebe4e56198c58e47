"""The weekly report as a document: HTML with inlined CSS, its pictures, and plain text."""

from base64 import b64encode
from typing import Final

import css_inline

from api.charts_png import colour_of, to_png, tokens
from api.mail_text import plain
from api.report_model import WeeklyReport
from api.templating import environment
from api.words import activity_class
from core.activity import Activity

CHART_PX: Final = 566
SCALE: Final = 2.0
"""Pixels of a picture per CSS pixel: sharp on today's screens."""


def card() -> str:
    """What a picture stands on, and the card around it: mail programs that darken a mail leave pictures as they are."""
    return tokens()["bg"]


def pictures(report: WeeklyReport, scale: float = SCALE) -> dict[str, bytes]:
    """The report's charts as PNG by key."""
    return {
        chart.key: to_png(chart.svg, width=CHART_PX, scale=scale, background=card())
        for chart in report.charts
    }


def data_uris(images: dict[str, bytes]) -> dict[str, str]:
    """Pictures inside the file itself."""
    return {key: "data:image/png;base64," + b64encode(png).decode("ascii") for key, png in images.items()}


def render_html(report: WeeklyReport, sources: dict[str, str] | None = None, *, to: str = "") -> str:
    """The report as one HTML document with inlined CSS; rules for dark screens stay in its head.

    Args:
        report: what to say.
        sources: where each chart's picture is (``cid:…``); default: inside the document. One that is missing is said in words.
        to: the address it goes to, for the line that says why; empty: it is a preview or a file.
    """
    where = data_uris(pictures(report)) if sources is None else sources
    keys = {activity: _key_style(activity) for activity in report.activities}
    document = (
        environment()
        .get_template("mail/weekly.html")
        .render(report=report, sources=where, keys=keys, to=to, card=card(), chart_px=CHART_PX)
    )
    return css_inline.inline(document, load_remote_stylesheets=False, keep_at_rules=True, minify_css=True)


def _key_style(activity: Activity) -> str:
    colour = colour_of(activity_class(activity))
    return f"background:{colour}" if colour else f"border:1px dashed {tokens()['faint']}"


def render_text(report: WeeklyReport, *, to: str = "") -> str:
    """The report as plain text; says everything the HTML says but the pictures."""
    return plain("mail/weekly.txt", report=report, to=to)
