"""Plain HTML forms: their fields, a file where there is one, and what a refused one keeps of what was typed.

``api.security`` has refused forms of other sites before.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from api.text import storable
from core.errors import UsageError

MOST_BYTES: Final = 16_384
"""A note of 2,000 letters fits in any script; no form of fields needs more."""
MOST_FILE_BYTES: Final = 4 * 1024 * 1024
MOST_FIELDS: Final = 60
_FIELD: Final = re.compile(r"(?P<field>[a-z_]+)(?: is |: )")
_MULTIPART: Final = "multipart/form-data"


@dataclass(frozen=True, slots=True)
class FormState:
    """A form as it was sent and refused: what was typed, and what is wrong, by field; empty: of the whole."""

    of: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def value(self, form: str, name: str, default: str = "") -> str:
        """What a field holds; of a form that came back no default, because it was emptied."""
        return self.typed.get(name, "") if form == self.of else default

    def wrong(self, form: str, name: str) -> str:
        """What is wrong with a field; empty: nothing."""
        return self.errors.get(name, "") if form == self.of else ""


NO_FORM: Final = FormState()


def errors_of(sentence: str, names: Collection[str]) -> dict[str, str]:
    """A refusal by the field that it names; the empty key: of the whole form."""
    found: dict[str, str] = {}
    for part in sentence.split("; "):
        match = _FIELD.match(part)
        name = match["field"] if match is not None and match["field"] in names else ""
        last = next(reversed(found), "")
        if not name and found:  # the rest of a sentence with a semicolon in it
            found[last] += f"; {part}"
        else:
            found[name] = f"{found[name]}; {part}" if name in found else part
    return found


def given(fields: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """What was typed in these fields; what was left empty is not given. Raises ``UsageError`` for what cannot be stored."""
    found = {name: fields[name].strip() for name in names if fields.get(name, "").strip()}
    for name, text in found.items():
        try:
            storable(text)
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from error
    return found


def ticked(fields: Mapping[str, str], name: str) -> bool:
    """Whether a box is ticked."""
    return bool(fields.get(name))


def whole_number(fields: Mapping[str, str], name: str, example: str) -> int | None:
    """A whole number from a field; None: left empty. Raises ``UsageError``."""
    text = fields.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise UsageError(f"{name} is {text[:40]!r}: give a whole number such as {example}")
    return int(text)


async def form_fields(request: Request) -> dict[str, str]:
    """Fields of a URL-encoded form. Raises ``UsageError`` when it is too long or not a form."""
    return _encoded(await _body(request, MOST_BYTES, "shorten the note"))


async def file_fields(request: Request) -> dict[str, str]:
    """Fields of a form with a file, whose text is a field too. Raises ``UsageError`` when it is too long or no text."""
    body = await _body(request, MOST_FILE_BYTES, "split the file")
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != _MULTIPART:
        return _encoded(body)
    message = BytesParser(policy=HTTP).parsebytes(
        b"Content-Type: " + kind.encode("latin-1") + b"\r\n\r\n" + body
    )
    found: dict[str, str] = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(content, bytes) or len(found) >= MOST_FIELDS:
            continue
        try:
            found[name] = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{name}: the file is no UTF-8 text: save it as CSV in UTF-8") from error
    return found


async def _body(request: Request, most: int, advice: str) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise UsageError(f"the form is longer than {most:,} bytes: {advice}")
    return body


def _encoded(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise UsageError("the form cannot be read: use the page's own buttons") from error


FormDep = Annotated[dict[str, str], Depends(form_fields)]
FileFormDep = Annotated[dict[str, str], Depends(file_fields)]
