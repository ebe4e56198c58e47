"""Text from outside that a database can keep."""

from typing import Annotated

from pydantic import AfterValidator


def _storable(text: str) -> str:
    """Refuse what PostgreSQL (NUL) or UTF-8 (half a surrogate pair) cannot hold."""
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("holds a character that cannot be stored: remove it")
    return text


Storable = Annotated[str, AfterValidator(_storable)]
"""A string of a request body that goes into the database."""
