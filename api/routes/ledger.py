"""REST: months of the ledger."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import ledger_months as resource
from api.resources.as_json import to_json
from api.resources.ledger_months import MonthView
from api.text import Storable

router = APIRouter(prefix="/ledger", tags=["ledger"])


class CloseBody(BaseModel):
    """What goes with closing a month."""

    model_config = ConfigDict(extra="forbid", strict=True)

    by: Storable | None = Field(default=None, max_length=200, description="Who closes it; kept with it.")
    note: Storable | None = Field(default=None, max_length=2_000, description="In your own words.")


@router.get("/months", response_model=Page[MonthView], responses=CSV_RESPONSE)
def list_months(session: SessionDep, settings: SettingsDep, now: NowDep, listing: ListingDep) -> Response:
    """Months of the accounting time zone: what each cost, whether it is closed, what was booked to it since."""
    return listing.answer(resource.rows(session, settings, now), MonthView, ident=("month",), window=None)


@router.post("/months/{month}/close", response_model=MonthView)
def close_month(
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    month: Annotated[str, Path(max_length=10, description="Year and month, such as 2026-10.")],
    body: CloseBody,
) -> Response:
    """Close a month that is over for chargeback: its lines stay as they are; later changes become corrections."""
    return JSONResponse(to_json(resource.close(session, settings, now, month, by=body.by, note=body.note)))
