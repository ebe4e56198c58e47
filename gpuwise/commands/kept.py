"""What the user keeps (prices, tariffs, site profiles, budgets): listed and changed in a database or at a server; rows as JSON either way."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.clock import now_ms
from core.settings import Settings
from gpuwise.commands.options import Source, open_session
from gpuwise.commands.remote import fetch, send

if TYPE_CHECKING:
    from pydantic import BaseModel


def listed(
    source: Source, path: str, local: Callable[[Any], Any], query: Mapping[str, str | None] | None = None
) -> list[dict[str, Any]]:
    """Rows of a list. ``local`` reads them with a session, ``path`` and ``query`` ask a server for them."""
    if source.server is not None:
        items: list[dict[str, Any]] = fetch(source.server, path, query or {})["items"]
        return items
    return _local(source, local)  # type: ignore[no-any-return]  # JSON of a list is one


def changed(
    source: Source, path: str, body: Mapping[str, Any], local: Callable[[Any], Any], method: str = "POST"
) -> Any:
    """What a change answers. ``local`` makes it with a session, ``path`` and ``body`` ask a server to."""
    if source.server is not None:
        return send(source.server, path, body, method)
    return _local(source, local)


def added(
    source: Source, path: str, body: "BaseModel", local: Callable[[Any, Settings, Any, int], Any]
) -> Any:
    """What keeping ``body`` under ``path`` answers; ``local``: with session, settings, the body, and now."""
    return changed(
        source,
        path,
        body.model_dump(mode="json"),
        lambda session: local(session, source.settings, body, now_ms()),
    )


def amended(
    source: Source,
    path: str,
    id_: int,
    body: "BaseModel",
    local: Callable[[Any, Settings, int, Any, int], Any],
) -> Any:
    """What is kept under ``path`` and ``id_`` with ``body`` over it; ``local``: with session, settings, key, body, now."""
    return changed(
        source,
        f"{path}/{id_}",
        body.model_dump(mode="json"),
        lambda session: local(session, source.settings, id_, body, now_ms()),
        method="PATCH",
    )


def ended(
    source: Source, path: str, id_: int, at: str, local: Callable[[Any, Settings, int, str, int], Any]
) -> Any:
    """What is kept under ``path`` and ``id_`` once it ends; ``local``: with session, settings, key, when, and now."""
    return changed(
        source,
        f"{path}/{id_}/end",
        {"at": at},
        lambda session: local(session, source.settings, id_, at, now_ms()),
    )


def removed(source: Source, path: str, id_: int, local: Callable[[Any, int], object]) -> None:
    """Remove what is kept under ``path`` and ``id_``; ``local``: with a session and the key."""
    changed(source, f"{path}/{id_}", {}, lambda session: local(session, id_), method="DELETE")


def _local(source: Source, call: Callable[[Any], Any]) -> Any:
    from api.resources.as_json import to_json

    with open_session(source.settings) as session:
        return to_json(call(session))
