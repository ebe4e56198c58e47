"""Where each thing of the fleet has its page: one place for the addresses that pages, mail, alerts and search give."""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote

DOTS: Final = frozenset({".", ".."})
"""Browsers take such a part of an address for "here" and "above", escaped or not: a slash after it makes it a name."""


def host_path(name: str | None) -> str:
    """A host's page; that of the GPUs whose host no source names."""
    return _path("hosts", name) if name else "/hosts"


def gpu_path(gpu_uuid: str) -> str:
    """A GPU's page."""
    return _path("gpus", gpu_uuid)


def engine_path(engine: str) -> str:
    """An LLM engine's page."""
    return _path("engines", engine)


def workload_path(key: int | str) -> str:
    """One run of a workload, by its number or as reports name it."""
    return _path("workloads", str(key))


def user_path(user: str) -> str:
    """What one user's workloads used."""
    return _path("users", user)


def owner_path(team: str) -> str:
    """What one team's workloads used."""
    return _path("owners", team)


def recommendation_path(recommendation_id: int | str) -> str:
    """One recommendation."""
    return f"/recommendations/{recommendation_id}"


def _path(kind: str, name: str) -> str:
    return f"/{kind}/{quote(name, safe='')}{'%2F' if name in DOTS else ''}"


PATHS: Final[dict[str, Callable[[str], str]]] = {
    "gpu": gpu_path,
    "host": host_path,
    "owner": owner_path,
    "user": user_path,
    "engine": engine_path,
    "workload": workload_path,
    "recommendation": recommendation_path,
}
"""The same by the word that reports and search use for the kind."""
