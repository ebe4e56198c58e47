"""The sink that the settings ask for. What one sink needs is loaded only where it is used."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from agent.sinks.base import BodySink, SinkError
from core.settings import Settings

CREDENTIAL: Final = "server_token"
"""Name of systemd's credential that is found without being named: ``LoadCredential=server_token:/etc/…``."""


def make_sink(settings: Settings) -> BodySink:
    """A sink that connects at its first delivery, so that an agent starts without it."""
    if settings.sink == "server":
        from agent.sinks.server import ServerSink

        assert settings.server_url is not None, "the settings hold it to be there"
        return ServerSink(settings.server_url, token_reader(settings), ca_file=settings.server_ca_file)
    from agent.sinks.database import DatabaseSink

    return DatabaseSink(settings.database_url)


def token_reader(settings: Settings, environ: Mapping[str, str] | None = None) -> Callable[[], str]:
    """What gives the token: the setting, or a file that is read each time, because it may be replaced.

    Raises (when called):
        SinkError: there is none, or it is no token; never with the token in it.
    """
    env = os.environ if environ is None else environ
    path = _token_file(settings.server_token_file, env)
    return partial(_token, settings.server_token, path)


def _token_file(named: str | None, env: Mapping[str, str]) -> Path | None:
    folder = env.get("CREDENTIALS_DIRECTORY")
    if named is None:
        found = None if folder is None else Path(folder) / CREDENTIAL
        return found if found is not None and found.is_file() else None
    if folder is not None and (named.startswith("%d/") or "/" not in named):
        return Path(folder) / named.removeprefix("%d/")
    return Path(named)


def _token(given: str, path: Path | None) -> str:
    token, place = given, "setting server_token"
    if not given and path is not None:
        place = f"file {path}"
        try:
            token = path.read_text(encoding="ascii")
        except OSError as error:
            raise SinkError(
                f"{place} of the server's token cannot be read ({error.strerror}): correct server_token_file or its permissions"
            ) from error
        except UnicodeDecodeError:
            token = "? ?"  # noqa: S105 - no token is so
    token = token.strip()
    if not token:
        raise SinkError(
            "no token for the server: set server_token or server_token_file to one from gpuwise token create"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SinkError(f"{place} is not a token: use one line as printed by gpuwise token create")
    return token
