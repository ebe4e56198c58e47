"""One answer for every list: a page of JSON with a cursor, or CSV of the same rows."""

import csv
import io
import json
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from api.resources.as_json import to_json
from core.errors import UsageError
from core.evidence import Window

Row = TypeVar("Row")
DEFAULT_LIMIT: Final = 500
MAX_LIMIT: Final = 10_000
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A text cell that begins so runs as a formula in a spreadsheet (OWASP, CSV injection)."""


class Format(StrEnum):
    """What a list is answered in."""

    JSON = "json"
    CSV = "csv"


class Span(BaseModel):
    """The window the figures are of; whole clock hours, clipped to the data."""

    from_: str = Field(alias="from", description="Start, inclusive, ISO 8601 UTC.")
    to: str = Field(description="End, exclusive, ISO 8601 UTC.")


class Page(BaseModel, Generic[Row]):
    """A page of a list."""

    items: list[Row] = Field(description="Rows, in a fixed order.")
    next_cursor: str | None = Field(
        description="Give it as cursor for the rows after these; null: the last page."
    )
    window: Span | None = Field(description="The window the figures are of; null: the list has none.")


CSV_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "JSON, or CSV with format=csv; the header Link names the next page.",
        "content": {"text/csv": {"schema": {"type": "string"}}},
    }
}


@dataclass(frozen=True, slots=True)
class Listing:
    """How a list was asked for; answers it."""

    request: Request
    limit: int
    cursor: str | None
    format: Format

    def answer(
        self,
        rows: Sequence[Any],
        row_type: type[Any],
        *,
        ident: Sequence[str],
        window: Window | None,
        more: Mapping[str, Any] | None = None,
    ) -> Response:
        """The page of ``rows`` that was asked for.

        Args:
            rows: all of them, in a fixed order. row_type: their dataclass; names the CSV's columns.
            ident: fields that name a row uniquely; the cursor is the last row's.
            more: further top-level fields of the JSON answer.

        Raises:
            UsageError: a cursor that this list did not give.
        """
        kept, next_cursor = cut(rows, ident, self.limit, self.cursor)
        return self.page(kept, row_type, next_cursor=next_cursor, window=window, more=more)

    def page(
        self,
        kept: Sequence[Any],
        row_type: type[Any],
        *,
        next_cursor: str | None,
        window: Window | None,
        more: Mapping[str, Any] | None = None,
    ) -> Response:
        """A page that was cut already."""
        headers = {}
        url = self.request.url
        if next_cursor is not None:
            headers["Link"] = f'<{url.include_query_params(cursor=next_cursor)}>; rel="next"'
        if self.format is Format.CSV:
            name = url.path.rstrip("/").rsplit("/", 1)[-1]
            headers["Content-Disposition"] = f'attachment; filename="gpuwise-{name}.csv"'
            return Response(to_csv(kept, row_type), media_type="text/csv; charset=utf-8", headers=headers)
        body = {"items": to_json(list(kept)), "next_cursor": next_cursor, "window": to_json(window)}
        return JSONResponse(body | dict(more or {}), headers=headers)


def listing(
    request: Request,
    *,
    limit: Annotated[
        int | None,
        Query(
            ge=1,
            le=MAX_LIMIT,
            description=f"Rows a page. Default: {DEFAULT_LIMIT}; of CSV all rows in one file.",
        ),
    ] = None,
    cursor: Annotated[
        str | None, Query(max_length=1000, description="next_cursor of the page before.")
    ] = None,
    format_: Annotated[
        Format, Query(alias="format", description="json, or csv for a file of the same rows.")
    ] = Format.JSON,
) -> Listing:
    """Parameters of every list."""
    if limit is None:
        limit = sys.maxsize - 1 if format_ is Format.CSV else DEFAULT_LIMIT
    return Listing(request, limit, cursor, format_)


ListingDep = Annotated[Listing, Depends(listing)]


def cut(
    rows: Sequence[Any], ident: Sequence[str], limit: int, cursor: str | None
) -> tuple[Sequence[Any], str | None]:
    """The rows after ``cursor``, at most ``limit``, and the cursor of the page after them."""
    start = 0
    if cursor is not None:
        last = decode(cursor)
        found = [index for index, row in enumerate(rows) if _ident(row, ident) == last]
        if not found:
            raise UsageError("cursor does not belong to this list (any more): ask again without it")
        start = found[-1] + 1
    kept = rows[start : start + limit]
    more = start + limit < len(rows)
    return kept, encode(_ident(kept[-1], ident)) if more else None


def _ident(row: Any, names: Sequence[str]) -> list[Any]:
    return [to_json(getattr(row, name)) for name in names]


def encode(ident: list[Any]) -> str:
    """The cursor of a row."""
    return urlsafe_b64encode(json.dumps(ident, separators=(",", ":")).encode()).decode().rstrip("=")


def decode(cursor: str) -> list[Any]:
    """The row a cursor names. Raises ``UsageError`` for text that is no cursor."""
    try:
        raw = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError as error:
        raise UsageError("cursor is none of ours: give next_cursor of the page before as it is") from error
    return raw if isinstance(raw, list) else [raw]


def to_csv(rows: Sequence[Any], row_type: type[Any]) -> str:
    """Rows as CSV: one column a field, unknown an empty cell, nested values as JSON text, no formulas."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    names = [field.name for field in fields(row_type)]
    writer.writerow(names)
    for row in rows:
        values = to_json(row)
        writer.writerow([cell(values[name]) for name in names])
    return out.getvalue()


def cell(value: Any) -> str | int | float:
    """One CSV cell; text that a spreadsheet would run gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text) and "_" not in text
    except ValueError:
        return False
