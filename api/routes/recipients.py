"""REST: who gets mail and alerts."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import recipients as resource
from api.resources.as_json import to_json
from api.resources.recipients import RecipientBody, RecipientChange, RecipientView

router = APIRouter(prefix="/recipients", tags=["recipients"])

Id = Annotated[int, Path(ge=1, le=2**31 - 1, description="The recipient's id.")]


class Tested(BaseModel):
    """How a test message fared."""

    message: str = Field(description="To whom it went.")


@router.get("", response_model=Page[RecipientView], responses=CSV_RESPONSE)
def list_recipients(session: SessionDep, settings: SettingsDep, now: NowDep, listing: ListingDep) -> Response:
    """Who gets mail and alerts, with the last message to each; of a webhook never the whole URL."""
    found = resource.rows(session, settings, now)
    return listing.answer(found, RecipientView, ident=("id", "address"), window=None)


@router.post("", response_model=RecipientView, status_code=201)
def add_recipient(session: SessionDep, settings: SettingsDep, now: NowDep, body: RecipientBody) -> Response:
    """Keep a recipient."""
    return JSONResponse(to_json(resource.add(session, settings, body, now)), 201)


@router.patch("/{id_}", response_model=RecipientView)
def change_recipient(
    session: SessionDep, settings: SettingsDep, now: NowDep, id_: Id, body: RecipientChange
) -> Response:
    """Change what a recipient gets, or pause it."""
    return JSONResponse(to_json(resource.change(session, settings, id_, body, now)))


@router.delete("/{id_}", status_code=204)
def remove_recipient(session: SessionDep, now: NowDep, id_: Id) -> Response:
    """Remove a recipient; what waits for it is not sent."""
    resource.remove(session, id_, now)
    return Response(status_code=204)


@router.post("/{id_}/test", response_model=Tested)
def test_recipient(request: Request, settings: SettingsDep, now: NowDep, id_: Id) -> dict[str, Any]:
    """Send it a test message now. Answers 400 with the server's sentence where that fails."""
    from api.mailing import send_test  # charts and mail parts: only this route needs them
    from store.engine import session_scope

    engine = request.app.state.engine
    with session_scope(engine) as session:
        found = resource.get(session, id_)
    return {"message": send_test(engine, settings, now, found)}
