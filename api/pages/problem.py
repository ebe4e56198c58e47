"""The page a person sees when something is not there or failed: what, where, what to do. Reads no database."""

from dataclasses import dataclass
from http import HTTPStatus

from fastapi import Request
from fastapi.responses import HTMLResponse

from api.pages.frame import NavItem, nav, tools
from api.templating import render


@dataclass(frozen=True, slots=True)
class ProblemPage:
    """A status in words and one sentence."""

    status: int
    words: str
    detail: str
    nav: tuple[NavItem, ...]
    tools: tuple[NavItem, ...]


def problem_page(request: Request, status: int, detail: str) -> HTMLResponse:  # noqa: ARG001 - the signature of api.problems.PageOf
    """The page of an error, with the error's status."""
    page = ProblemPage(status, HTTPStatus(status).phrase, detail, nav("", 0), tools(""))
    return HTMLResponse(render("pages/problem.html", page), status)
