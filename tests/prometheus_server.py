"""A small HTTP server that answers as Prometheus does: instants evaluated with five minutes of lookback, its limits and its errors."""

import gzip
import json
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LOOKBACK_MS = 300_000
MOST_POINTS = 11_000
_CALL = re.compile(r"(timestamp|count)\((.*)\)$", re.DOTALL)
_MATCHER = re.compile(r'([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"')


class Refusal(Exception):  # noqa: N818 - an answer
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status, self.error = status, error


@dataclass
class Stored:
    """A series; a value of None is a staleness marker: the scrape had it no more."""

    labels: dict[str, str]
    points: list[tuple[int, float | None]]
    times: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.points.sort()
        self.times = [at for at, _value in self.points]

    def at(self, ts_ms: int) -> tuple[int, float] | None:
        place = bisect_right(self.times, ts_ms) - 1
        if place < 0 or ts_ms - self.times[place] >= LOOKBACK_MS:
            return None
        at, value = self.points[place]
        return None if value is None else (at, value)


@dataclass
class Server:
    """``before`` may answer a request by itself: it gets the path and gives status and body, or None."""

    series: list[Stored] = field(default_factory=list)
    url: str = ""
    asked: list[tuple[str, dict[str, list[str]], dict[str, str]]] = field(default_factory=list)
    before: Callable[[str], tuple[int, bytes] | None] = lambda _path: None
    most_samples: int = 1 << 40
    functions: bool = True

    def add(self, name: str, labels: dict[str, str], points: list[tuple[int, float | None]]) -> None:
        self.series.append(Stored({"__name__": name, **labels}, points))

    def paths(self) -> list[str]:
        return [path for path, _query, _headers in self.asked]

    # --- the API

    def data(self, path: str, query: dict[str, list[str]]) -> Any:
        if path == "/api/v1/query_range":
            start, end, step = (round(float(query[name][0]) * 1000) for name in ("start", "end", "step"))
            if (end - start) // step + 1 > MOST_POINTS:
                raise Refusal(
                    400,
                    "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
                )
            return self.evaluate(query["query"][0], range(start, end + 1, step), "matrix")
        if path == "/api/v1/query":
            at = round(float(query["time"][0]) * 1000)
            return self.evaluate(query["query"][0], range(at, at + 1), "vector")
        label = re.fullmatch(r"/api/v1/label/([^/]+)/values", path)
        if label or path == "/api/v1/series":
            start, end = (round(float(query[name][0]) * 1000) for name in ("start", "end"))
            found = [
                one.labels
                for match in query["match[]"]
                for one in self.select(match)
                if any(start <= at <= end for at in one.times)
            ]
            if not label:
                return found
            name = unquote(label[1])
            return sorted({labels[name] for labels in found if labels.get(name)})
        raise Refusal(404, "not found")

    def select(self, text: str) -> list[Stored]:
        name, _, rest = text.strip().partition("{")
        matchers = [(label, how, json.loads(f'"{value}"')) for label, how, value in _MATCHER.findall(rest)]
        if name:
            matchers.append(("__name__", "=", name))
        if not any(how in {"=", "=~"} and value for _label, how, value in matchers):
            raise Refusal(400, "invalid parameter: match must contain at least one non-empty matcher")
        return [one for one in self.series if all(_holds(one.labels, *matcher) for matcher in matchers)]

    def evaluate(self, text: str, instants: range, kind: str) -> Any:
        call = _CALL.match(text)
        if call and not self.functions:
            raise Refusal(400, f"unknown function with name {call[1]!r}")
        chosen = self.select(call[2] if call else text)
        answers: list[tuple[dict[str, str], list[tuple[float, str]]]] = []
        samples = 0
        for one in chosen:
            found = [(at, point) for at in instants if (point := one.at(at)) is not None]
            samples += len(found)
            if samples > self.most_samples:
                raise Refusal(
                    422, "query processing would load too many samples into memory in query execution"
                )
            labels = {k: v for k, v in one.labels.items() if not call or k != "__name__"}
            told = [
                (at / 1000, repr(point[0] / 1000) if call and call[1] == "timestamp" else f"{point[1]:.17g}")
                for at, point in found
            ]
            if told:
                answers.append((labels, told))
        if call and call[1] == "count":
            counts: dict[float, int] = {}
            for _labels, told in answers:
                for at, _figure in told:
                    counts[at] = counts.get(at, 0) + 1
            answers = [({}, [(at, str(n)) for at, n in sorted(counts.items())])] if counts else []
        key = "values" if kind == "matrix" else "value"
        return {
            "resultType": kind,
            "result": [
                {"metric": labels, key: told if key == "values" else told[0]} for labels, told in answers
            ],
        }


def _holds(labels: dict[str, str], label: str, how: str, value: str) -> bool:
    own = labels.get(label, "")
    if how in {"=", "!="}:
        return (own == value) is (how == "=")
    return (re.fullmatch(value, own) is not None) is (how == "=~")


@contextmanager
def prometheus() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            self._answer(path, query)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer(urlsplit(self.path).path, body.decode())

        def _answer(self, path: str, query: str) -> None:
            parameters = parse_qs(query)
            server.asked.append((path, parameters, dict(self.headers)))
            told = server.before(path)
            if told is None:
                try:
                    answer = {"status": "success", "data": server.data(path, parameters)}
                    told = 200, json.dumps(answer).encode()
                except Refusal as refusal:
                    answer = {"status": "error", "errorType": "bad_data", "error": refusal.error}
                    told = refusal.status, json.dumps(answer).encode()
            status, body = told
            self.send_response_only(status)
            if "gzip" in self.headers.get("Accept-Encoding", "") and status == 200:
                body = gzip.compress(body, 1)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.block_on_close = False
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
