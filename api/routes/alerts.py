"""REST: alerts as they stand, and telling people now."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources.alerts import AlertView

router = APIRouter(prefix="/alerts", tags=["alerts"])


class AlertsSent(BaseModel):
    """How telling people fared."""

    message: str = Field(description="What was found, and what was sent.")


@router.get("", response_model=Page[AlertView], responses=CSV_RESPONSE)
def list_alerts(session: SessionDep, settings: SettingsDep, now: NowDep, listing: ListingDep) -> Response:
    """Faults that are there now: what people would be told of, and what they know of already. Nothing is sent."""
    from api.resources import alerts as resource  # mail parts: only these routes need them

    return listing.answer(resource.rows(session, settings, now), AlertView, ident=("key",), window=None)


@router.post("/send", response_model=AlertsSent)
def send_alerts(request: Request, settings: SettingsDep, now: NowDep) -> dict[str, Any]:
    """Tell people now what is due, as the job does every five minutes."""
    from api.alerts import send

    said, _ = send(request.app.state.engine, settings, now)
    return {"message": said}
