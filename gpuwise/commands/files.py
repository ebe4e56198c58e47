"""Text that a command reads from a file or standard input, or writes to one."""

import sys
from pathlib import Path

import click

from core.errors import UsageError


def text_of(file: Path) -> str:
    """Text of a file, or of standard input for ``-``. Raises ``UsageError`` when it is not UTF-8."""
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: save it as UTF-8") from error


def write(text: str, out: Path | None, what: str) -> None:
    """Text to a file, or to standard output."""
    if out is None:
        click.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8", newline="")
    click.echo(f"{what} in {out}", err=True)
