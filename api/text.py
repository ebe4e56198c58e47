"""Text from outside that a database can keep, and that reads as what it is."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from markupsafe import Markup
from markupsafe import escape as markup_escape
from pydantic import AfterValidator

TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that show the text around them in another order than it has (Unicode UAX 9, explicit formatting)."""

_ACTS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Marks that turn text, hide in it, or are no letters at all; joiners (U+200C, U+200D) belong to words and emoji."""
_UUID: Final = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z_.:/-]+")


def harmless(text: str) -> str:
    """Text from outside with its marks that act shown by their numbers; lines and tabs stay."""
    return _ACTS.sub(lambda found: ascii(found[0])[1:-1], text) if _ACTS.search(text) else text


def escape(text: str) -> Markup:
    """The same as markup: for what is drawn without a template."""
    return markup_escape(harmless(text))


def storable(text: str) -> str:
    """Refuse what PostgreSQL (NUL) or UTF-8 (half a surrogate pair) cannot hold, and what shows as something else."""
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("holds a character that cannot be stored: remove it")
    turning = next((letter for letter in text if letter in TURNING), None)
    if turning is not None:
        raise ValueError(f"holds U+{ord(turning):04X}, which turns the direction of text: remove it")
    return text


def _named(text: str) -> str:
    """Refuse what cannot be seen: a name with a line break or a mark without width is another name."""
    hidden = next((letter for letter in text if not letter.isprintable()), None)
    if hidden is not None:
        raise ValueError(f"holds U+{ord(hidden):04X}, which cannot be seen: use printable characters")
    return text


Storable = Annotated[str, AfterValidator(storable)]
"""A string of a request body that goes into the database."""
Named = Annotated[Storable, AfterValidator(_named)]
"""The same of one line: what something is called, or is for."""


def clipped(name: str, most: int = 48) -> str:
    """A name somebody chose, short enough for a title, with nothing in it that turns or hides text."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Text with GPUs called by their names (by UUID) instead of by their UUIDs; those without a name stay."""
    return _UUID.sub(lambda found: names.get(found.group(), found.group()), text)
