"""REST: spend at the end of a month."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.deps import NowDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import forecast as resource
from api.resources.forecast import ForecastBy, ForecastRow

router = APIRouter(prefix="/forecast", tags=["budgets"])

MONTH = "Month of the accounting time zone, such as 2026-10. Default: the one of now."


@router.get("", response_model=Page[ForecastRow], responses=CSV_RESPONSE)
def list_forecast(
    *,
    session: SessionDep,
    settings: SettingsDep,
    now: NowDep,
    listing: ListingDep,
    by: Annotated[ForecastBy, Query(description="What to group by; owner is the team.")] = ForecastBy.OWNER,
    month: Annotated[str | None, Query(max_length=20, description=MONTH)] = None,
) -> Response:
    """What each group spent in a month so far, and will have at its end; no forecast under two weeks of history."""
    found = resource.rows(session, settings, now, by, month)
    return listing.answer(found, ForecastRow, ident=("key",), window=None)
