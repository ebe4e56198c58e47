"""Plain HTML forms: the fields of a small form body. ``api.security`` has refused forms of other sites before."""

from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from core.errors import UsageError

MOST_BYTES: Final = 16_384
"""A note of 2,000 letters fits in any script; nothing here needs more."""


async def form_fields(request: Request) -> dict[str, str]:
    """Fields of a URL-encoded form. Raises ``UsageError`` when it is too long or not a form."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise UsageError(f"the form is longer than {MOST_BYTES} bytes: shorten the note")
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20))
    except ValueError as error:
        raise UsageError("the form cannot be read: use the page's own buttons") from error


FormDep = Annotated[dict[str, str], Depends(form_fields)]
