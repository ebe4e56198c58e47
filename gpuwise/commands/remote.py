"""The REST API of another gpuwise, for ``--server``: the same rows as from the database."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from core.errors import GpuwiseError, UsageError

TIMEOUT_S: Final = 60
PAGE_ROWS: Final = 5_000


def fetch(server: str, path: str, query: Mapping[str, str | None]) -> dict[str, Any]:
    """All pages of a list as one: ``items`` of every page, the rest of the first.

    Raises:
        UsageError: ``server`` is no address. GpuwiseError: it cannot be reached, or refuses.
    """
    if urlsplit(server).scheme not in {"http", "https"} or not urlsplit(server).netloc:
        raise UsageError(f"--server {server}: give an address such as http://gpuwise.example:8787")
    wanted = {name: value for name, value in query.items() if value is not None}
    whole = _get(server, path, {**wanted, "limit": str(PAGE_ROWS)})
    cursor = whole["next_cursor"]
    while cursor is not None:
        page = _get(server, path, {**wanted, "limit": str(PAGE_ROWS), "cursor": cursor})
        whole["items"] += page["items"]
        cursor = page["next_cursor"]
    return whole


def _get(server: str, path: str, query: Mapping[str, str]) -> dict[str, Any]:
    url = f"{server.rstrip('/')}/api/v1/{path}?{urlencode(query)}"
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - the scheme was checked
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - as above
            body = json.load(response)
    except HTTPError as error:
        raise GpuwiseError(f"{server} refuses: {_detail(error)}") from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise GpuwiseError(
            f"{server} cannot be reached ({reason}): check the address and gpuwise serve"
        ) from error
    except ValueError as error:
        raise GpuwiseError(f"{server} does not answer as gpuwise does: check the address") from error
    if not isinstance(body, dict) or "items" not in body or "next_cursor" not in body:
        raise GpuwiseError(f"{server} does not answer as gpuwise does: check the address")
    return body


def _detail(error: HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"
