"""Tables that are sent whole: as CSV, or as JSON with the same rows."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request

from core.errors import UsageError

MOST_BYTES: Final = 16 * 1024 * 1024
Given = list[tuple[int, Mapping[str, Any]]]
"""Line (of CSV) or place (in JSON, from 1) of each row, and its named values."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A body as it came."""

    content_type: str
    body: bytes

    def rows(self, name: str, of_csv: Callable[[str], Given]) -> tuple[Given, str]:
        """Its rows, and what the number before each is: ``line`` or ``row``.

        Args:
            name: of the list in a JSON object; ``csv`` in its stead holds the text of a file. of_csv: reads such a text.

        Raises:
            UsageError: neither CSV nor such JSON.
        """
        try:
            text = self.body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError("the body is not UTF-8: save the file as UTF-8") from error
        if self.content_type != "application/json":
            return of_csv(text), "line"
        try:
            sent = json.loads(text)
        except ValueError as error:
            raise UsageError(f"the body is no JSON ({error}): send JSON, or CSV as text/csv") from error
        if isinstance(sent, dict) and sent.keys() == {"csv"} and isinstance(sent["csv"], str):
            return of_csv(sent["csv"]), "line"
        found = sent.get(name) if isinstance(sent, dict) and sent.keys() == {name} else None
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise UsageError(
                f'the body has no list of rows: send {{"{name}": [{{…}}, …]}}, or CSV as text/csv'
            )
        return list(enumerate(found, 1)), "row"


async def _upload(request: Request) -> Upload:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise UsageError(f"the body is longer than {MOST_BYTES} bytes: split it")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Upload(kind, bytes(body))


UploadDep = Annotated[Upload, Depends(_upload)]


def described(name: str, columns: tuple[str, ...]) -> dict[str, Any]:
    """The body of such a route for OpenAPI."""
    row = {"type": "object", "description": f"As a single one is posted: {', '.join(columns)}."}
    listed = {"type": "array", "items": row}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "text/csv": {"schema": {"type": "string", "description": f"Columns: {', '.join(columns)}."}},
                "application/json": {"schema": {"type": "object", "properties": {name: listed}}},
            },
        }
    }
