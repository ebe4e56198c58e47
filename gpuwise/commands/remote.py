"""The REST API of another gpuwise, for ``--server``: the same rows as from the database."""

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from core.errors import GpuwiseError, UsageError

TIMEOUT_S: Final = 60
PAGE_ROWS: Final = 5_000


def fetch(server: str, path: str, query: Mapping[str, str | Sequence[str] | None]) -> dict[str, Any]:
    """All pages of a list as one: ``items`` of every page, the rest of the first. Several values: the parameter repeated.

    Raises:
        UsageError: ``server`` is no address. GpuwiseError: it cannot be reached, or refuses.
    """
    _check(server)
    wanted = {name: value for name, value in query.items() if value is not None}
    whole = _get(server, path, {**wanted, "limit": str(PAGE_ROWS)})
    cursor = whole["next_cursor"]
    while cursor is not None:
        page = _get(server, path, {**wanted, "limit": str(PAGE_ROWS), "cursor": cursor})
        whole["items"] += page["items"]
        cursor = page["next_cursor"]
    return whole


def send(server: str, path: str, body: Mapping[str, Any], method: str = "POST") -> Any:
    """Take a step at another gpuwise, and what it answers; None where it has nothing to say.

    Raises:
        UsageError: ``server`` is no address. GpuwiseError: it cannot be reached, or refuses.
    """
    _check(server)
    given = {name: value for name, value in body.items() if value is not None}
    headers = {"Content-Type": "application/json", "X-Gpuwise-Client": "gpuwise"}
    url = f"{server.rstrip('/')}/api/v1/{path}"
    return _answer(server, Request(url, json.dumps(given).encode(), headers, method=method))  # noqa: S310 - checked above


def ask(server: str, path: str) -> Any:
    """What another gpuwise says of one thing, as it says it.

    Raises:
        UsageError: ``server`` is no address. GpuwiseError: it cannot be reached, or refuses.
    """
    _check(server)
    url = f"{server.rstrip('/')}/api/v1/{path}"
    return _answer(server, Request(url, headers={"Accept": "application/json"}))  # noqa: S310 - checked above


def ask_text(server: str, path: str) -> str:
    """A file that another gpuwise gives.

    Raises:
        UsageError: ``server`` is no address. GpuwiseError: it cannot be reached, or refuses.
    """
    _check(server)
    url = f"{server.rstrip('/')}/api/v1/{path}"
    return str(_answer(server, Request(url, headers={"Accept": "text/csv"}), _text))  # noqa: S310 - checked above


def _text(response: Any) -> str:
    return str(response.read().decode())


def _check(server: str) -> None:
    if urlsplit(server).scheme not in {"http", "https"} or not urlsplit(server).netloc:
        raise UsageError(f"--server {server}: give an address such as http://gpuwise.example:8787")


def _get(server: str, path: str, query: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
    url = f"{server.rstrip('/')}/api/v1/{path}?{urlencode(query, doseq=True)}"
    body = _answer(server, Request(url, headers={"Accept": "application/json"}))  # noqa: S310 - checked before
    if not isinstance(body, dict) or "items" not in body or "next_cursor" not in body:
        raise GpuwiseError(f"{server} does not answer as gpuwise does: check the address")
    return body


def _answer(server: str, request: Request, read: Callable[[Any], Any] = json.load) -> Any:
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - as above
            return None if response.status == HTTPStatus.NO_CONTENT else read(response)
    except HTTPError as error:
        raise GpuwiseError(f"{server} refuses: {_detail(error)}") from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise GpuwiseError(
            f"{server} cannot be reached ({reason}): check the address and gpuwise serve"
        ) from error
    except ValueError as error:
        raise GpuwiseError(f"{server} does not answer as gpuwise does: check the address") from error


def _detail(error: HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
