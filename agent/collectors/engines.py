"""LLM servers on this host and at configured addresses: found, scraped, given up for a while and found again.

Servers come from the processes that hold GPUs; addresses from the settings. Where both mean the same one, the address
says where and the process says which GPUs. A server that fails is asked less and less often, and named in the log once.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.attribution.flags import ServingFlags
from agent.collectors.engine_address import Networks
from agent.collectors.engine_page import About, EnginePage
from agent.scrape import TIMEOUT_S, ScrapeError, Server
from core.readings import EngineIdentity, EngineReading

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 5.0
LONGEST_WAIT_S: Final = 60.0
METRICS: Final = "/metrics"
_OTHER_PATHS: Final = ("/metrics", "/prometheus/metrics")
"""trtllm-serve has its Prometheus text at the second and JSON at the first."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_ELSEWHERE: Final = frozenset({301, 302, 307, 308, 404, 405})
_TOLD_KEPT: Final = 4096


@dataclass(slots=True)
class _Target:
    """One server that is scraped.

    Attributes:
        page: what its answers mean. url: where it is, when that is given; else ``pid`` finds it.
        server: the connection, while it answers.
        paths: where its metrics may be; the one at ``at`` is asked first.
        retry_s, wait_s: when it is asked again after a failure, and how long that was; 0 while it answers.
        problem: why it is not read; None when it is. was_read: whether it ever was.
        asked: whether its limits at another address were asked since the connection was made.
    """

    page: EnginePage
    url: str | None = None
    pid: int = 0
    flags: ServingFlags | None = None
    paths: tuple[str, ...] = _OTHER_PATHS
    server: Server | None = None
    at: int = 0
    retry_s: float = 0.0
    wait_s: float = 0.0
    problem: str | None = None
    was_read: bool = False
    asked: bool = False


class EngineCollector:
    """Reads all engines once a round.

    Args:
        host: name of this host in the store.
        urls: metrics addresses from the settings; one without a path gets ``/metrics``.
        proc: a mounted procfs.
        timeout_s: how long an engine may take; others wait that long when one hangs, once until its next try.
        monotonic: seconds of a clock that never steps.
    """

    def __init__(
        self,
        host: str,
        urls: Iterable[str] = (),
        *,
        proc: Path = Path("/proc"),
        timeout_s: float = TIMEOUT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._networks = Networks(proc)
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._told: dict[str, EngineIdentity] = {}
        self._configured: dict[tuple[str | None, str], _Target] = {}
        self._found: dict[tuple[str | None, str], _Target] = {}
        for url in dict.fromkeys(urls):
            self._configure(url)

    def watch(self, servers: Iterable[tuple[int, ServingFlags, tuple[str, ...]]]) -> None:
        """Say which servers hold GPUs now: PID of the server, its flags, its GPUs. Others are forgotten."""
        now: dict[tuple[str | None, str], tuple[int, ServingFlags, tuple[str, ...]]] = {}
        for pid, flags, gpu_uuids in servers:
            if flags.port is None or flags.metrics_path is None:
                continue
            key = (self._networks.namespace(pid), str(flags.port))
            # Several processes may stand behind one port.
            others = now[key][2] if key in now else ()
            now[key] = (pid, flags, tuple(dict.fromkeys(others + gpu_uuids)))
        for key in [key for key in self._found if key not in now]:
            gone = self._found.pop(key)
            if gone.url is None:
                _let_go(gone)
            else:
                gone.pid, gone.flags = 0, None
                gone.page.about = About(gone.page.about.host, gone.page.about.instance)
        for key, (pid, flags, gpu_uuids) in now.items():
            target = self._found.get(key)
            if target is None:
                target = self._found[key] = self._target_of(pid, flags, gpu_uuids)
            if target.pid != pid or target.flags != flags:
                target.pid, target.flags = pid, flags
                target.retry_s = target.wait_s = 0.0
                if target.url is None:
                    _let_go(target)
                    target.paths, target.at = _paths(flags.metrics_path), 0
            about = target.page.about
            model = flags.model or flags.settings.get("served_model_name")
            target.page.about = About(about.host, about.instance, model, flags.settings, gpu_uuids)

    def round(self, clock: Callable[[], int]) -> list[EngineIdentity | EngineReading]:
        """Identities that are news, and one reading of each engine that answers.

        Args:
            clock: UTC epoch milliseconds; asked when an answer has come.
        """
        things: list[EngineIdentity | EngineReading] = []
        # Those that answer come first, so that one that hangs makes none of them late.
        for target in sorted(self._targets(), key=lambda one: one.wait_s):
            if target.wait_s and self._monotonic() < target.retry_s:
                continue
            try:
                read = self._scrape(target, clock)
            except ScrapeError as error:
                self._fail(target, str(error))
                continue
            if target.problem is not None or not target.was_read:
                log.info("engine is read", extra={"engine": target.page.about.instance})
            target.problem, target.wait_s, target.was_read = None, 0.0, True
            for identity, reading in read:
                if self._told.get(identity.engine) != identity:
                    if len(self._told) >= _TOLD_KEPT:
                        self._told.clear()
                    self._told[identity.engine] = identity
                    things.append(identity)
                if reading is not None:
                    things.append(reading)
        return things

    def problems(self) -> dict[str, str | None]:
        """Every server by ``host:port``, and why it is not read; None for one that is."""
        return {
            target.page.about.instance: target.problem
            if target.was_read or target.problem
            else "not asked yet"
            for target in self._targets()
        }

    def close(self) -> None:
        """Let go of all connections."""
        for target in self._targets():
            _let_go(target)

    def _targets(self) -> list[_Target]:
        found = [target for target in self._found.values() if target.url is None]
        return [*self._configured.values(), *found]

    def _configure(self, url: str) -> None:
        try:
            server = Server(url)
        except ScrapeError as error:
            log.warning("engine address is not used", extra={"reason": str(error)})
            return
        parts = urlsplit(url)
        local = server.host in _LOOPBACK or server.host.lower() == self._host.lower()
        host = self._host if local else server.host
        path = parts.path if parts.path not in {"", "/"} else None
        if path and parts.query:
            path = f"{path}?{parts.query}"
        target = _Target(EnginePage(About(host, f"{host}:{server.port}")), url, paths=_paths(path))
        self._configured[None if local else server.host, str(server.port)] = target

    def _target_of(self, pid: int, flags: ServingFlags, gpu_uuids: tuple[str, ...]) -> _Target:
        """A target for a server: the configured one that means the same, else a new one."""
        assert flags.port is not None
        namespace, port = self._networks.namespace(pid), str(flags.port)
        places = [None] if namespace is None else self._networks.addresses(pid)
        for place in places:
            configured = self._configured.get((place, port))
            if configured is not None:
                return configured
        taken = {target.page.about.instance for target in self._targets()}
        plain = instance = f"{self._host}:{port}"
        # Containers of one host may all use the same port. GPUs tell them apart, and name no more engines than there are GPUs.
        others = [uuid.removeprefix("GPU-").removeprefix("MIG-")[:8] for uuid in gpu_uuids] + [str(pid)]
        for other in others:
            if instance not in taken:
                break
            instance = f"{plain}@{other}"
        return _Target(EnginePage(About(self._host, instance)), paths=_paths(flags.metrics_path))

    def _scrape(
        self, target: _Target, clock: Callable[[], int]
    ) -> list[tuple[EngineIdentity, EngineReading | None]]:
        """Engines of a target's page; where it is not at the one path, at the next."""
        if target.server is None:
            target.server = self._connect(target)
        refused: ScrapeError | None = None
        for step in range(len(target.paths)):
            at = (target.at + step) % len(target.paths)
            path = target.paths[at]
            try:
                body = target.server.get(path)
            except ScrapeError as error:
                if error.status not in _ELSEWHERE:
                    raise
                refused = refused or error
                continue
            read = target.page.read(body, ts_ms := clock())
            if read:
                target.at = at
                if read[0][0].kind == "llamacpp" and not target.asked:
                    target.asked = True
                    target.page.limits, target.page.model = _props(target.server, path)
                    read = target.page.read(body, ts_ms)
                return read
            what = "JSON" if body[:1] in {b"{", b"["} else "no metrics of an engine that gpuwise knows (yet)"
            refused = ScrapeError(f"{target.server.origin}{path} has {what}")
        assert refused is not None
        raise refused

    def _connect(self, target: _Target) -> Server:
        if target.url is not None:
            return Server(target.url, timeout_s=self._timeout_s)
        flags = target.flags
        assert flags is not None
        assert flags.port is not None
        found = self._networks.reach(target.pid, flags.port, flags.host)
        if found.host is None:
            raise ScrapeError(f"{flags.kind} of process {target.pid}: {found.why}")
        name = f"[{found.host}]" if ":" in found.host else found.host
        scheme = "https" if flags.settings.get("ssl") == "true" else "http"
        # A server of this very host has no certificate for the address it is reached at, and nothing secret is sent.
        return Server(f"{scheme}://{name}:{flags.port}", verified=False, timeout_s=self._timeout_s)

    def _fail(self, target: _Target, sentence: str) -> None:
        """Wait before it is asked again, longer each time; say so once."""
        _let_go(target)
        target.wait_s = min(LONGEST_WAIT_S, target.wait_s * 2 or FIRST_WAIT_S)
        target.retry_s = self._monotonic() + target.wait_s
        if target.problem != sentence:
            target.problem = sentence
            log.warning(
                "engine is not read", extra={"engine": target.page.about.instance, "reason": sentence}
            )


def _paths(first: str | None) -> tuple[str, ...]:
    """Where metrics are looked for, in order."""
    return tuple(dict.fromkeys(([first] if first else []) + list(_OTHER_PATHS)))


def _let_go(target: _Target) -> None:
    if target.server is not None:
        target.server.close()
        target.server = None
    target.asked = False


def _props(server: Server, metrics_path: str) -> tuple[dict[str, str], str | None]:
    """Limits and model of a llama.cpp server, which are at ``/props``; what is not told there is unknown."""
    import json

    try:
        told = json.loads(server.get(f"{metrics_path.removesuffix(METRICS)}/props"))
    except (ScrapeError, ValueError, RecursionError):
        return {}, None
    if not isinstance(told, dict):
        return {}, None
    generation = told.get("default_generation_settings")
    context = generation.get("n_ctx") if isinstance(generation, dict) else None
    figures = {"max_num_seqs": told.get("total_slots"), "max_model_len": context}
    model = told.get("model_alias") or told.get("model_path")
    limits = {key: str(value) for key, value in figures.items() if type(value) is int and value > 0}
    return limits, model if isinstance(model, str) else None
