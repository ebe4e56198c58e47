"""REST: health, for probes and people."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from api.deps import NowDep, SessionDep, SettingsDep
from api.resources import health as resource
from api.resources.as_json import to_json
from api.resources.health import Health

router = APIRouter(prefix="/health", tags=["health"])


@router.get("", response_model=Health)
def get_health(session: SessionDep, settings: SettingsDep, now: NowDep) -> Response:
    """Freshness, what waits for the roll-up, the last run of each job. 200 while the database answers, else 503."""
    return JSONResponse(
        to_json(resource.health(session, settings, now)), headers={"Cache-Control": "no-store"}
    )
