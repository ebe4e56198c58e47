"""A message for webhooks as Slack takes it; Mattermost, Rocket.Chat and Discord's ``/slack`` take the same. Pure.

https://docs.slack.dev/messaging/formatting-message-text: ``&``, ``<`` and ``>`` must be escaped; nothing else can
make a link or call a channel (``<!channel>``) then.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

HEADER_AT_MOST: Final = 150
SECTION_AT_MOST: Final = 3_000
TITLE_AT_MOST: Final = 300
SECTIONS_AT_MOST: Final = 40
"""Slack takes 50 blocks; header and link are blocks too."""
_UNSEEN: Final = dict.fromkeys((*range(9), *range(11, 32), 127), " ")


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to say: what stands out, the sentences under it, and the page about it."""

    title: str
    text: str = ""
    url: str = ""


def escaped(text: str, at_most: int = SECTION_AT_MOST) -> str:
    """Text in which nobody can put a link, a mention, or marks that turn text around; cut, not within an escape."""
    plain = "".join(letter for letter in text.translate(_UNSEEN) if letter.isprintable() or letter == "\n")
    safe = plain.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if len(safe) <= at_most:
        return safe
    kept = safe[: at_most - 1]
    mark = kept.rfind("&")
    return f"{kept[:mark] if mark >= 0 and ';' not in kept[mark:] else kept}…"


def slack_json(title: str, points: Iterable[Point], *, url: str = "", more: str = "") -> str:
    """The body to post: ``text`` for notifications and old clients, ``blocks`` for the rest."""
    said = list(points)
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(_line(title), HEADER_AT_MOST)}}
    ]
    blocks += [_section(_mrkdwn(point)) for point in said[:SECTIONS_AT_MOST]]
    foot = [part for part in (escaped(more), _link(url, "Open gpuwise")) if part]
    if foot:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": " · ".join(foot)}]})
    text = "\n".join([escaped(_line(title)), *_bullets(said[:SECTIONS_AT_MOST])])
    return json.dumps({"text": text, "blocks": blocks}, ensure_ascii=True)


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _mrkdwn(point: Point) -> str:
    title = escaped(_line(point.title), TITLE_AT_MOST)
    head = _link(point.url, title) if point.url else f"*{title}*"
    body = escaped(point.text, SECTION_AT_MOST - len(head) - 1)
    return f"{head}\n{body}" if body else head


def _link(url: str, escaped_text: str) -> str:
    """``<url|text>``; the URL is ours, but a GPU's name may be in it."""
    if not url:
        return ""
    safe = escaped(url).replace("|", "%7C")
    return f"<{safe}|{escaped_text.replace('|', '/')}>"


def _bullets(points: Sequence[Point]) -> Iterable[str]:
    return (f"• {escaped(_line(point.title), TITLE_AT_MOST)}" for point in points)


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, at_most: int) -> str:
    return text if len(text) <= at_most else f"{text[: at_most - 1]}…"
