"""The weekly report as a message to one address: text, HTML, and its charts inside (``cid:``)."""

from email.message import EmailMessage
from email.utils import make_msgid
from typing import Final

from api.mail_envelope import domain, envelope
from api.report_model import WeeklyReport
from api.report_render import pictures, render_html, render_text
from core.settings import Settings

MOST_BYTES: Final = 98_000
"""Of the whole message as it travels: mail programs cut or hide what is longer than 100 kB."""
SCALES: Final = (2.0, 1.5, 1.0)
"""Pixels per CSS pixel, the sharpest that fits."""


def report_message(report: WeeklyReport, settings: Settings, now_ms: int, *, to: str) -> EmailMessage:
    """The report, ready to be handed to a mail server. ``to``: one address.

    Pictures are drawn less sharp, or left out with their words in their place, where the message would grow too long.
    """
    for scale in SCALES:
        message = _message(report, settings, now_ms, pictures(report, scale), to=to)
        if len(bytes(message)) <= MOST_BYTES:
            return message
    return _message(report, settings, now_ms, {}, to=to)


def _message(
    report: WeeklyReport, settings: Settings, now_ms: int, images: dict[str, bytes], *, to: str
) -> EmailMessage:
    message = envelope(settings, now_ms, report.subject, to=to)
    ids = {key: make_msgid(idstring=key, domain=domain(settings)) for key in images}
    message.set_content(render_text(report, to=to))
    html = render_html(report, {key: f"cid:{id_[1:-1]}" for key, id_ in ids.items()}, to=to)
    message.add_alternative(html, subtype="html")
    part = message.get_body(("html",))
    assert part is not None
    for key, png in images.items():
        part.add_related(
            png, "image", "png", cid=ids[key], disposition="inline", filename=f"gpuwise-{key}.png"
        )
    return message
