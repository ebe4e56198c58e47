"""``/metrics``: the fleet's newest samples and gpuwise's own health for Prometheus."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from api.deps import NowDep, SessionDep, SettingsDep
from api.resources import exporter
from api.resources.health import health
from core.exposition import CONTENT_TYPE
from store.queries import fleet

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(session: SessionDep, settings: SettingsDep, now: NowDep) -> Response:
    """Prometheus text; names carry base units."""
    page = exporter.text(fleet.gpus(session), health(session, settings, now), now)
    return Response(page, media_type=CONTENT_TYPE)
