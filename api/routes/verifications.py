"""REST: what became of savings, and each rule's track record."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from api.deps import SessionDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources.verifications import TrackRecordView, VerificationView, record_rows, rows

router = APIRouter(prefix="/verifications", tags=["recommendations"])


@router.get("", response_model=Page[VerificationView], responses=CSV_RESPONSE)
def list_verifications(
    session: SessionDep,
    listing: ListingDep,
    recommendation_id: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="Only of this recommendation.")
    ] = None,
) -> Response:
    """Before and after of what was done, newest action first."""
    return listing.answer(rows(session, recommendation_id), VerificationView, ident=("id",), window=None)


@router.get("/track-record", response_model=Page[TrackRecordView], responses=CSV_RESPONSE)
def list_track_records(session: SessionDep, listing: ListingDep) -> Response:
    """Verified over predicted of every rule, and what the next claim may expect."""
    return listing.answer(record_rows(session), TrackRecordView, ident=("rule_id",), window=None)
