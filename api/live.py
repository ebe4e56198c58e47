"""Live view: the newest sample of a GPU, or of all, as server-sent events for as long as somebody looks.

``GET /live/gpus/{uuid}`` and ``GET /live/fleet`` send ``event: gpus`` with JSON: ``{UUID: {at, activity, fields}}``, all at
first, then only GPUs with a newer sample. Figures are texts as the pages print them. No session outlives one look.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Request
from sqlalchemy import Engine
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api import formats
from api.live_hub import FullError, LiveHub, Read
from api.problems import NotFoundError, problem
from api.words import activity_name
from core.clock import iso
from core.samples import GpuSample
from store.engine import session_scope
from store.queries.live import is_known, newest_samples

router = APIRouter(prefix="/live", include_in_schema=False)

HEARTBEAT_S: Final = 15.0
"""A comment after so long without news: proxies close connections on which nothing moves, often after 60 s."""
RETRY_MS: Final = 5_000
FIELDS: Final[dict[str, tuple[str, Callable[[float | None], str]]]] = {
    "power": ("power_w", formats.watts),
    "busy": ("busy_ratio", formats.percent),
    "memory": ("memory_used_bytes", formats.gib),
    "sm": ("sm_active_ratio", formats.percent),
    "tensor": ("tensor_active_ratio", formats.percent),
    "dram": ("dram_active_ratio", formats.percent),
    "clock": ("sm_clock_hz", formats.clock_mhz),
    "temperature": ("temperature_c", formats.celsius),
}
"""What ``data-live-field`` may name, beside ``activity`` and ``at``: the metric, and how it reads."""


def item_of(sample: GpuSample) -> dict[str, Any]:
    """One GPU as it is sent."""
    return {
        "at": iso(sample.ts_ms + sample.span_ms),
        "activity": sample.activity.value,
        "name": activity_name(sample.activity),
        "fields": {name: text_of(sample.values.get(key)) for name, (key, text_of) in FIELDS.items()},
    }


def reader(engine: Engine, gpu_uuid: str | None = None) -> Read:
    """Reads the newest samples; a session of its own each time, closed before it returns."""

    def read() -> dict[str, dict[str, Any]]:
        with session_scope(engine) as session:
            return {sample.gpu_uuid: item_of(sample) for sample in newest_samples(session, gpu_uuid)}

    return read


class EventStream(Response):
    """Server-sent events until the client goes or the server ends.

    Not ``StreamingResponse``: that one ends its generator whenever Python collects it, and the reader must stop at once.
    """

    def __init__(self, hub: LiveHub, topic: str, read: Read) -> None:
        super().__init__(
            media_type="text/event-stream",  # GZipMiddleware lets this type through as it comes
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        del self.headers["content-length"]
        self._hub, self._topic, self._read = hub, topic, read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell until it is over."""
        try:
            with self._hub.listen(self._topic, self._read) as listener:
                gone = asyncio.create_task(_until_gone(receive))
                gone.add_done_callback(lambda _: listener.close())
                try:
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    await _send(send, f"retry: {RETRY_MS}\n\n")
                    while (changed := await listener.next(HEARTBEAT_S)) is not None:
                        data = json.dumps(changed, ensure_ascii=False, separators=(",", ":"))
                        await _send(send, f"event: gpus\ndata: {data}\n\n" if changed else ": still here\n\n")
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                finally:
                    gone.cancel()
        except FullError:
            sentence = (
                "too many look at live figures already: close a page, or reload this one for newer figures"
            )
            await problem(503, sentence, {"Retry-After": "30"})(scope, receive, send)


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _known(engine: Engine, gpu_uuid: str) -> bool:
    with session_scope(engine) as session:
        return is_known(session, gpu_uuid)


@router.get("/gpus/{gpu_uuid:path}")
async def live_gpu(request: Request, gpu_uuid: str) -> Response:
    """The newest sample of one GPU, again and again."""
    engine: Engine = request.app.state.engine
    if not await asyncio.to_thread(_known, engine, gpu_uuid):
        raise NotFoundError(f"no GPU {gpu_uuid[:80]!r} in this database: the fleet page lists all of them")
    return EventStream(request.app.state.live, f"gpu {gpu_uuid}", reader(engine, gpu_uuid))


@router.get("/fleet")
async def live_fleet(request: Request) -> Response:
    """The newest sample of every GPU, again and again."""
    return EventStream(request.app.state.live, "fleet", reader(request.app.state.engine))
