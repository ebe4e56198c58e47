"""REST: the calculators. They change nothing; POST only carries the inputs."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse, Response

from api.deps import SINCE, UNTIL, NowDep, SessionDep, SettingsDep
from api.resources.as_json import to_json
from api.resources.plan_bodies import MixBody, OwnedBody, RentOrBuyBody
from api.resources.plan_measured import plan_scope
from api.resources.plan_mix import MixRow, mix
from api.resources.plan_rent_or_buy import RentOrBuyRow, rent_or_buy
from api.resources.scope import Scope

router = APIRouter(prefix="/plan", tags=["plan"])


def _scope(
    opened: SessionDep,
    given: SettingsDep,
    now: NowDep,
    since: Annotated[str | None, Query(description=f"{SINCE} Default: 13 weeks.", max_length=40)] = None,
    until: Annotated[str | None, Query(description=UNTIL, max_length=40)] = None,
) -> Scope:
    return plan_scope(opened, given, now, since, until)


PlanScopeDep = Annotated[Scope, Depends(_scope, scope="function")]


def _given(body: OwnedBody) -> dict[str, Any]:
    return body.model_dump(exclude_none=True, exclude={"gpu_model", "host", "wanted", "assume_measured"})


@router.post("/rent-or-buy", response_model=RentOrBuyRow)
def post_rent_or_buy(scope: PlanScopeDep, body: RentOrBuyBody) -> Response:
    """Rent or buy: payback, break-even use, ranges and everything assumed."""
    row = rent_or_buy(
        scope,
        _given(body),
        gpu_model=body.gpu_model,
        host=body.host,
        wanted=body.wanted,
        assume_measured=body.assume_measured,
    )
    return JSONResponse(to_json(row))


@router.post("/mix", response_model=list[MixRow])
def post_mix(scope: PlanScopeDep, body: MixBody) -> Response:
    """The cheapest mix of owned, promised and rented GPUs for the measured demand: one answer per GPU model."""
    rows = mix(
        scope,
        _given(body),
        gpu_model=body.gpu_model,
        host=body.host,
        wanted=body.wanted,
        assume_measured=body.assume_measured,
    )
    return JSONResponse(to_json(rows))
