"""Every address that a template writes out is one that the application answers."""

import re
from pathlib import Path

import pytest
from starlette.routing import Match

from api.app import create_app
from core.settings import Settings

TEMPLATES = Path(__file__).parents[3] / "templates"
WRITTEN = re.compile(r'(?:href|action)="(/[^"{}?#]*)["?#]')
"""Addresses without a part that is filled in."""
LINKS = sorted(
    {
        (path.relative_to(TEMPLATES).as_posix(), link)
        for path in TEMPLATES.rglob("*.html")
        for link in WRITTEN.findall(path.read_text(encoding="utf-8"))
    }
)
APP = create_app(Settings(database_url="sqlite:///never-opened.db"))


def is_answered(link: str) -> bool:
    """Whether any route takes it, by whichever method."""
    scope = {"type": "http", "path": link, "method": "GET", "root_path": "", "headers": []}
    return any(route.matches(scope)[0] is not Match.NONE for route in APP.routes)


def test_there_are_links_to_ask() -> None:
    assert len(LINKS) > 40
    assert not is_answered("/settings/nowhere")


@pytest.mark.parametrize(("template", "link"), LINKS)
def test_an_address_in_a_template_is_answered(template: str, link: str) -> None:
    assert is_answered(link), f"{template}: {link}"
