"""What the import commands share: times as they are given, and counts as they are said."""

from datetime import datetime

import click

from core.clock import to_ms


def instant(text: str) -> int:
    """An ISO 8601 time with a zone, as epoch milliseconds."""
    try:
        return to_ms(datetime.fromisoformat(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time such as 2026-11-20T12:00:00Z ({error})") from error


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
