"""Text from outside that a database can keep, and that reads as what it is."""

from typing import Annotated, Final

from pydantic import AfterValidator

TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that show the text around them in another order than it has (Unicode UAX 9, explicit formatting)."""


def _storable(text: str) -> str:
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


Storable = Annotated[str, AfterValidator(_storable)]
"""A string of a request body that goes into the database."""
Named = Annotated[Storable, AfterValidator(_named)]
"""The same of one line: what something is called, or is for."""
