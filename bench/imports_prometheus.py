"""Points of a Prometheus per second into a store, against only reading the JSON of its answers. Time of the process, not of the clock."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from agent.sources.prometheus.api import Series
from agent.sources.prometheus.catalog import look
from agent.sources.prometheus.window import Reader
from agent.sources.simulator.fleet import fleet
from bench.databases import TESTS, sqlite
from bench.measure import Figure, medians
from core.evidence import Window
from core.settings import load
from core.units import HOUR_MS, MINUTE_MS, SECOND_MS
from gpuwise.prometheus_import import HistoryReport
from gpuwise.prometheus_import import run as run_import

START_MS: Final = 1_794_960_000_000
HOURS: Final = 24
GPUS: Final = 8
EVERY_MS: Final = 30 * SECOND_MS
MEGA: Final = 1e6


@dataclass
class Canned:
    """The API without the wire: answers are made once and kept as the JSON that would travel."""

    server: Any
    url: str = "http://prometheus"
    answers: dict[tuple[object, ...], bytes] = field(default_factory=dict)

    def range(self, query: str, from_ms: int, to_ms: int, step_ms: int) -> list[Series]:
        """As ``Api.range``; what was asked before is only read again."""
        asked = (query, from_ms, to_ms, step_ms)
        if asked not in self.answers:
            told = {
                "query": [query],
                "start": [from_ms / 1000],
                "end": [to_ms / 1000],
                "step": [step_ms / 1000],
            }
            self.answers[asked] = json.dumps(self.server.data("/api/v1/query_range", told)).encode()
        return [Series(one["metric"], one["values"]) for one in json.loads(self.answers[asked])["result"]]

    def label_values(self, label: str, match: str, from_ms: int, to_ms: int) -> list[str]:
        """As ``Api.label_values``."""
        told = {"match[]": [match], "start": [from_ms / 1000], "end": [to_ms / 1000]}
        return list(self.server.data(f"/api/v1/label/{label}/values", told))


def scraped() -> Canned:
    """Eight GPUs and two engines, scraped every 30 s for a day."""
    sys.path.insert(0, str(TESTS))  # the server that speaks the API lives with the tests
    from prometheus_server import Server
    from scraped_fleet import scrape_engine, scrape_gpu

    server, end_ms = Server(), START_MS + HOURS * HOUR_MS
    simulated = fleet(end_ms)
    for number, probe in enumerate(simulated.gpus[:GPUS]):
        scrape_gpu(server, probe, range(START_MS + 997 * number, end_ms, EVERY_MS))
    for probe in simulated.engines[:2]:
        scrape_engine(server, probe, range(START_MS + 5_000, end_ms, EVERY_MS))
    return Canned(server)


def run(runs: int) -> Iterator[Figure]:
    """Import a day into SQLite, hours included, and only read the answers."""
    api = scraped()
    points = _import(api)[1]

    def read() -> float:
        begun = time.process_time()
        for body in api.answers.values():
            json.loads(body)
        return time.process_time() - begun

    bare, ours = medians(runs, read, lambda: _import(api)[0])
    size = sum(map(len, api.answers.values()))
    yield Figure(
        "import", f"only read {size / MEGA:.0f} MB of Prometheus's JSON", points / bare, "points/s", runs
    )
    yield Figure(
        "import",
        "prometheus → SQLite, hours rolled up",
        points / ours,
        "points/s",
        runs,
        bare / ours,
        "read the JSON",
    )


def _import(api: Canned) -> tuple[float, int]:
    window = Window(START_MS, START_MS + HOURS * HOUR_MS)
    with sqlite() as url:
        settings = load({"database_url": url})
        begun = time.process_time()
        reader = Reader(api, look(api, [], window), EVERY_MS, window.to_ms)  # type: ignore[arg-type]
        report: HistoryReport = run_import(
            reader, "bench", window, settings, now_ms=window.to_ms + 30 * MINUTE_MS
        )
        took_s = time.process_time() - begun
    if reader.tally.refused or report.new_rows < GPUS * HOURS * HOUR_MS // EVERY_MS:
        raise RuntimeError(
            f"the import stored {report.new_rows} rows and refused {reader.tally.refused} values of its own"
        )
    return took_s, reader.tally.points
