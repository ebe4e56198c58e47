"""The proxy that the environment names for an address (``https_proxy``, ``http_proxy``, ``no_proxy``), as curl reads it."""

import os
from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from agent.sinks.base import SinkError


class Proxy(NamedTuple):
    """Where to connect instead, and what to say there."""

    host: str
    port: int
    headers: dict[str, str]


def proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str] | None = None) -> Proxy | None:
    """The proxy on the way to ``host``; None: straight there.

    Raises:
        SinkError: the environment names a proxy that is no ``http://`` address.
    """
    env = os.environ if environ is None else environ
    name = f"{scheme}_proxy"
    address = env.get(name) or env.get(name.upper()) or env.get("all_proxy") or env.get("ALL_PROXY")
    if not address or _is_exempt(host, port, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        proxy_port = parts.port or 80
    except ValueError:
        proxy_port = 0
    if parts.scheme != "http" or not parts.hostname or not proxy_port:
        raise SinkError(
            f"environment {name} is not an http:// address: correct it, or exempt {host} by no_proxy"
        )
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {b64encode(pair).decode()}"
    return Proxy(parts.hostname, proxy_port, headers)


def _is_exempt(host: str, port: int, exempt: str) -> bool:
    host = host.lower().rstrip(".")
    for word in exempt.lower().replace(",", " ").split():
        name, _mark, its_port = (
            word.rpartition(":")
            if word.rpartition(":")[2].isdecimal() and word.count(":") == 1
            else (word, "", "")
        )
        if its_port and int(its_port) != port:
            continue
        name = name.strip("[]").lstrip("*").lstrip(".")
        if not name:  # "*"
            return True
        if host == name or host.endswith(f".{name}") or _is_in_network(host, name):
            return True
    return False


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
