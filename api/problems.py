"""Errors of the web: problem+json (RFC 9457) for programs, a page for people."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from api.refusals import sentence
from core.errors import GpuwiseError, NotFoundError, StoreError, UsageError

__all__ = ["NotFoundError", "PageOf", "install", "problem", "wants_page"]

log = logging.getLogger(__name__)

PLACES: Final = frozenset({"query", "path", "body"})
MEDIA_TYPE: Final = "application/problem+json"
DESCRIPTION: Final = "Problem (RFC 9457): what, where, what to do."
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    code: {
        "description": DESCRIPTION,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for code in (400, 404, 422)
}
"""For routers: the errors every route may answer with."""
SCHEMA: Final = {
    "title": "Problem",
    "description": DESCRIPTION,
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "about:blank: the status says it all."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "description": "HTTP status."},
        "detail": {"type": "string", "description": "One sentence: what, where, what to do."},
    },
}

PageOf = Callable[[Request, int, str], Response | None]
"""Draws an error page for people: request, status, sentence; None when it cannot."""


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """One problem document."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def wants_page(request: Request) -> bool:
    """A browser asks for a page: not under /api, and it prefers HTML."""
    if request.url.path.startswith(("/api/", "/metrics")):
        return False
    return "text/html" in request.headers.get("accept", "")


def install(app: FastAPI, page_of: PageOf | None = None) -> None:
    """Answer every error of the application as a problem, or as a page where a person asks."""

    def answer(
        request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        if page_of is not None and wants_page(request):
            page = page_of(request, status, detail)
            if page is not None:
                return page
        return problem(status, detail, headers)

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        detail = str(error.detail)
        if detail == HTTPStatus(error.status_code).phrase:
            detail = f"{request.method} {request.url.path}: {detail.lower()}"
        return answer(request, error.status_code, detail, error.headers)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(request, 422, "; ".join(sentence(item, "body", PLACES) for item in error.errors()))

    def ours(request: Request, error: Exception) -> Response:
        status = next(code for kind, code in STATUS if isinstance(error, kind))
        return answer(request, status, str(error))

    def unexpected(request: Request, error: Exception) -> Response:
        log.error("request failed", exc_info=error, extra={"path": request.url.path})
        return answer(request, 500, "gpuwise failed here; its log has the reason")

    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(GpuwiseError, ours)
    app.add_exception_handler(Exception, unexpected)


STATUS: Final[tuple[tuple[type[GpuwiseError], int], ...]] = (
    (NotFoundError, 404),
    (UsageError, 400),
    (StoreError, 503),
    (GpuwiseError, 400),
)
