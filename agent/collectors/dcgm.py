"""Profiling counters from a dcgm-exporter on the same host: cards before Hopper have them nowhere else.

Everything else that dcgm-exporter says the driver says as well, more often and first-hand, so it is not read here.
"""

import logging
import math
import re
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from agent.scrape import ScrapeError, Server
from agent.sources.dcgm import BLANK, BLANKS_32, NAMES
from agent.sources.exposition import LineError, labels_of
from core.plausible import plausible

log = logging.getLogger(__name__)

AUTO: Final = "auto"
AUTO_URL: Final = "http://127.0.0.1:9400/metrics"
PROBE_S: Final = 60.0
"""How often an exporter that does not answer is tried."""
_PREFIX: Final = "DCGM_FI_PROF_"
_FIELDS: Final = {
    name.removeprefix(_PREFIX).encode(): (found.reading, found.factor)
    for name, found in NAMES.items()
    if name.startswith(_PREFIX)
}
_SERIES: Final = re.compile(
    rb"\nDCGM_FI_PROF_("
    + b"|".join(sorted(_FIELDS, reverse=True))
    + rb')(\{[^"}\n]*+(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[^"}\n]*+)*+\})[ \t]+(\S+)'
)
_MOST_LABELS: Final = 4096
_UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid")


class DcgmCollector:
    """Reads one dcgm-exporter.

    Args:
        url: its metrics address; ``auto`` for the usual one on this host, which need not be there; empty: none is asked.
        monotonic: seconds of a clock that never steps.

    Raises:
        ScrapeError: not an address.
    """

    def __init__(self, url: str = AUTO, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._is_guess = url == AUTO
        address = AUTO_URL if self._is_guess else url or AUTO_URL
        self._server = Server(address)
        path = urlsplit(address).path
        self._path = path if path not in {"", "/"} else "/metrics"
        self._monotonic = monotonic
        self._next_s = 0.0 if url else math.inf
        self._gpu_of: dict[bytes, str | None] = {}
        self.problem: str | None = None
        """Why the last try gave nothing; None while it answers."""
        self._answers = False

    def round(self) -> dict[str, dict[str, float]]:
        """Profiling readings in base units by GPU and reading name; what is absent is unknown.

        An exporter that does not answer is left alone for a minute.
        """
        now_s = self._monotonic()
        if now_s < self._next_s:
            return {}
        try:
            body = self._server.get(self._path)
        except ScrapeError as error:
            self._fail(str(error), now_s)
            return {}
        values = self._values(body)
        if not values:
            self._fail(f"{self._server.origin}{self._path} has no {_PREFIX}* of a GPU", now_s)
            return {}
        if not self._answers:
            log.info("dcgm-exporter is read", extra={"address": self._server.origin})
        self._answers, self.problem = True, None
        return values

    def close(self) -> None:
        """Let go of the connection."""
        self._server.close()

    def _fail(self, sentence: str, now_s: float) -> None:
        self._server.close()
        self._next_s = now_s + PROBE_S
        if sentence != self.problem and (self._answers or not self._is_guess):
            log.warning("dcgm-exporter is not read", extra={"reason": sentence})
        self._answers, self.problem = False, sentence

    def _values(self, body: bytes) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        known = self._gpu_of
        for field, labels, figure in _SERIES.findall(body):
            gpu_uuid = known[labels] if labels in known else self._gpu(labels)
            if gpu_uuid is None:
                continue
            reading, factor = _FIELDS[field]
            try:
                raw = float(figure)
            except ValueError:
                continue
            if raw >= BLANK or BLANKS_32.start <= raw < BLANKS_32.stop:
                continue
            value = plausible(reading, raw * factor)
            if value is not None:
                found.setdefault(gpu_uuid, {})[reading] = value
        return found

    def _gpu(self, text: bytes) -> str | None:
        """The card that labels name, remembered; None for a MIG instance, whose values are not the card's."""
        if len(self._gpu_of) >= _MOST_LABELS:
            self._gpu_of.clear()
        try:
            labels = labels_of(text.decode(errors="replace"))
        except LineError:
            labels = {}
        uuid = next((labels[name] for name in _UUID_LABELS if labels.get(name)), None)
        if uuid is None or labels.get("GPU_I_ID") or not uuid.startswith("GPU-"):
            uuid = None
        self._gpu_of[text] = uuid
        return uuid
