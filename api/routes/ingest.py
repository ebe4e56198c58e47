"""REST: what agents deliver."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from api import problems
from api.deps import now_ms
from api.resources.ingest import Intake, Receipt, Sent, busy, clock_skew_s
from api.resources.ingest_bytes import MOST_BYTES, MOST_SENT_BYTES, too_large
from api.resources.ingest_checks import Keeping
from api.resources.ingest_refusals import RefusedError
from api.resources.tokens import SCOPE, Gate
from api.security import bearer
from core.clock import iso
from core.errors import StoreError
from store.queries.tokens import TokenRecord

log = logging.getLogger(__name__)

HOW_TO_ENTER: Final = (
    "make one with gpuwise token create --host NAME and give it to the agent of that host as server_token"
)


class ReceiptView(BaseModel):
    """What became of a delivery. It is on the server's disk."""

    model_config = ConfigDict(frozen=True)

    sequence: Annotated[int, Field(description="Number of the delivery, as sent.")]
    rows: Annotated[int, Field(description="Samples and events in it.")]
    new_rows: Annotated[int, Field(description="Of these, rows that were new or completed a stored one.")]
    clock_skew_s: Annotated[
        float | None,
        Field(description="How far the sender's clock (its Date header) is ahead; null: no Date."),
    ]
    server_time: Annotated[str, Field(description="This server's clock when the delivery came.")]


class Desk:
    """The gate and the intake of one application."""

    def __init__(self, app: FastAPI) -> None:
        settings = app.state.settings
        self.gate = Gate(app.state.engine)
        self.intake = Intake(settings.database_url, Keeping(settings.raw_days, settings.hour_days))


def desk_of(app: FastAPI) -> Desk:
    """The application's desk, opened at its first delivery."""
    desk = getattr(app.state, "ingest_desk", None)
    if desk is None:
        desk = app.state.ingest_desk = Desk(app)
    return cast("Desk", desk)


@asynccontextmanager
async def _closing(app: FastAPI) -> AsyncIterator[None]:
    yield
    desk = getattr(app.state, "ingest_desk", None)
    if desk is not None:
        app.state.ingest_desk = None
        desk.intake.close()


router = APIRouter(prefix="/ingest", tags=["ingest"], lifespan=_closing)


def _answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: problems.RESPONSES[422] | {"description": REASONS[code]} for code in codes}


REASONS: Final = {
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The delivery names another host than the token's.",
    413: "More than 8 MiB sent, 64 MiB inflated, or a million values.",
    415: "Neither JSON nor JSON in gzip.",
    422: "A field is wrong; `detail` names it by its path.",
    425: "A sample is more than 5 minutes in this server's future: one of the clocks is wrong. See Retry-After.",
    503: "The database is busy or away: send it again. See Retry-After.",
}
BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "One delivery; Content-Encoding gzip or none.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/IngestBody"}}},
    }
}


@router.post(
    "", response_model=ReceiptView, responses=_answers(401, 403, 413, 415, 422, 425, 503), openapi_extra=BODY
)
async def ingest(request: Request) -> Response:
    """Store a delivery of an agent: identities, samples, events and states of one interval, in one transaction.

    The same delivery again changes nothing (`new_rows` is 0), so a sender repeats it until it is answered. Late data
    are taken as long as raw samples are kept, and their hours are folded anew. `Authorization: Bearer` carries the token.
    """
    desk, now = desk_of(request.app), now_ms(request)
    try:
        token = _token(request)
        record = await _known(desk.gate, token, now)
        _check_type(request)
        receipt = await _store(desk.intake, request, record, now)
    except RefusedError as refused:
        return _problem(refused)
    except StoreError as error:
        log.warning("delivery not stored", extra={"reason": str(error)})
        return _problem(busy(str(error)))
    except ClientDisconnect:
        return Response(status_code=400)  # nobody is there to read it
    note = BackgroundTask(desk.gate.note, record, now) if desk.gate.use(token, now) else None
    return JSONResponse(receipt, background=note)


def _token(request: Request) -> str:
    token = bearer(request.headers)
    if token is None:
        raise RefusedError(401, f"a delivery needs a token: {HOW_TO_ENTER}")
    return token


async def _known(gate: Gate, token: str, now: int) -> TokenRecord:
    record = gate.remembered(token) or await run_in_threadpool(gate.look_up, token)
    if record is None:
        raise RefusedError(401, f"this server does not know the token: {HOW_TO_ENTER}")
    if record.revoked_ms is not None:
        raise RefusedError(401, f"token {record.prefix}… was revoked: {HOW_TO_ENTER}")
    if record.expires_ms is not None and record.expires_ms <= now:
        raise RefusedError(401, f"token {record.prefix}… expired on {iso(record.expires_ms)}: {HOW_TO_ENTER}")
    if record.scope != SCOPE:
        raise RefusedError(403, f"token {record.prefix}… is not for deliveries: {HOW_TO_ENTER}")
    return record


def _check_type(request: Request) -> None:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != "application/json":
        raise RefusedError(415, f"Content-Type is {sent[:60]!r}: send application/json")


async def _store(intake: Intake, request: Request, record: TokenRecord, now: int) -> Receipt:
    with intake.in_hand() as count:
        sent = Sent(
            await _read(request, count),
            request.headers.get("content-encoding", "").strip().lower(),
            record.host_name,
            now,
            clock_skew_s(request.headers.get("date"), now),
        )
        return await asyncio.wrap_future(intake.submit(sent))


async def _read(request: Request, count: Callable[[int], None]) -> bytes:
    """The body as it was sent.

    One that is too long is read on for a while, and dropped: a sender that is cut off while it still sends
    never sees the answer, and would come again for ever.
    """
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= MOST_SENT_BYTES:
            count(len(piece))
            body += piece
        elif size > MOST_BYTES:
            break
        else:
            body.clear()
    if size > MOST_SENT_BYTES:
        raise too_large(f"the body is longer than {MOST_SENT_BYTES >> 20} MiB")
    return bytes(body)


def _problem(refused: RefusedError) -> JSONResponse:
    headers = {} if refused.retry_s is None else {"Retry-After": str(max(refused.retry_s, 1))}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return problems.problem(refused.status, str(refused), headers)
