"""What ``gpuwise prices`` and ``gpuwise rates`` ask: of the database, or of a server's REST API; JSON either way."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from core.errors import UsageError
from gpuwise.commands.options import Source, open_session
from gpuwise.commands.remote import fetch, send


@dataclass(frozen=True, slots=True)
class Calls:
    """Where the command was pointed at."""

    source: Source

    def listed(self, path: str, of_database: Callable[[Any], Any]) -> list[dict[str, Any]]:
        """Rows of a list."""
        if self.source.server is not None:
            rows: list[dict[str, Any]] = fetch(self.source.server, path, {})["items"]
            return rows
        found: list[dict[str, Any]] = self._of(of_database)
        return found

    def done(
        self,
        path: str,
        body: Mapping[str, Any],
        of_database: Callable[[Any], Any],
        *,
        method: str = "POST",
        **query: bool,
    ) -> Any:
        """Take a step; what it answers."""
        if self.source.server is None:
            return self._of(of_database)
        asked = urlencode({name: "true" for name, value in query.items() if value})
        return send(self.source.server, f"{path}?{asked}" if asked else path, body, method)

    def _of(self, call: Callable[[Any], Any]) -> Any:
        from api.resources.as_json import to_json

        with open_session(self.source.settings) as session:
            return to_json(call(session))


def text_of(file: Path) -> str:
    """Text of a file, or of standard input for ``-``. Raises ``UsageError`` when it is not UTF-8."""
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: save it as UTF-8") from error


def write(text: str, out: Path | None, what: str) -> None:
    """Text to a file, or to standard output."""
    if out is None:
        click.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8", newline="")
    click.echo(f"{what} in {out}", err=True)
