"""Text that a command reads from a file or standard input, or writes to one."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from core.errors import GpuwiseError, UsageError

T = TypeVar("T")


def text_of(file: Path) -> str:
    """Text of a file, or of standard input for ``-``. Raises ``UsageError`` when it cannot be read or is not UTF-8."""
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read ({error.strerror}): give a file that is there and yours"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: save it as UTF-8") from error


def read_from(file: Path, read: Callable[[str], T]) -> T:
    """What ``read`` makes of a file's text. Raises ``UsageError`` that names the file where it refuses."""
    text = text_of(file)
    try:
        return read(text)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def write(text: str, out: Path | None, what: str) -> None:
    """Text to a file, or to standard output. Raises ``GpuwiseError`` when the file cannot be written."""
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise GpuwiseError(
            f"{out} cannot be written ({error.strerror}): give a file in a folder of yours"
        ) from error
    click.echo(f"{what} in {out}", err=True)
