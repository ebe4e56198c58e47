"""The web application: REST, pages, static files, and what every answer carries."""

from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute

from advisor.limits_book import limits_book
from api import live, problems
from api.live_hub import LiveHub
from api.pages import budgets as budgets_page
from api.pages import cost_parts as cost_parts_page
from api.pages import costs as costs_page
from api.pages import energy as energy_page
from api.pages import engine as engine_page
from api.pages import engines as engines_page
from api.pages import fleet as fleet_page
from api.pages import gpu as gpu_page
from api.pages import gpu_hours, gpu_samples, recommendation_life
from api.pages import host as host_page
from api.pages import overview as overview_page
from api.pages import owner as owner_page
from api.pages import owners as owners_page
from api.pages import plan_mix as plan_mix_page
from api.pages import plan_rent_or_buy as plan_rent_or_buy_page
from api.pages import plan_size as plan_size_page
from api.pages import recommendation as recommendation_page
from api.pages import recommendation_rules as recommendation_rules_page
from api.pages import recommendations as recommendations_page
from api.pages import report as report_page
from api.pages import search as search_page
from api.pages import settings as settings_page
from api.pages import settings_owners as settings_owners_page
from api.pages import settings_prices as settings_prices_page
from api.pages import settings_recipients as settings_recipients_page
from api.pages import settings_rules as settings_rules_page
from api.pages import settings_tariffs as settings_tariffs_page
from api.pages import settings_tokens as settings_tokens_page
from api.pages import system as system_page
from api.pages import user as user_page
from api.pages import workload as workload_page
from api.pages import workloads as workloads_page
from api.pages.problem import problem_page
from api.resources import ingest_body
from api.resources.health import own_version
from api.routes import (
    alerts,
    budgets,
    costs,
    energy,
    engines,
    exchange_rates,
    exclusions,
    exports,
    forecast,
    funnel,
    gpus,
    health,
    hosts,
    idle,
    ingest,
    ledger,
    metrics,
    owners,
    plan,
    plan_size,
    prices,
    recipients,
    recommendations,
    reports,
    sites,
    tariffs,
    thresholds,
    unit_economics,
    usage,
    verifications,
    workloads,
)
from api.security import Security
from api.static_files import MarkedFiles
from core.settings import Settings
from store.engine import make_engine

ROUTES: Final[tuple[APIRouter, ...]] = (
    hosts.router,
    gpus.router,
    engines.router,
    workloads.router,
    usage.router,
    costs.router,
    energy.router,
    unit_economics.router,
    ledger.router,
    exports.router,
    funnel.router,
    idle.router,
    recommendations.router,
    verifications.router,
    thresholds.router,
    exclusions.router,
    prices.router,
    tariffs.router,
    sites.router,
    exchange_rates.router,
    owners.router,
    budgets.router,
    forecast.router,
    plan.router,
    plan_size.router,
    reports.router,
    recipients.router,
    alerts.router,
    health.router,
    ingest.router,
)
"""REST, in the order of its documentation. A new route is a file in ``api/routes`` and a line here."""

PAGES: Final[tuple[APIRouter, ...]] = (
    overview_page.router,
    fleet_page.router,
    host_page.router,
    gpu_hours.router,
    gpu_samples.router,
    gpu_page.router,
    engines_page.router,
    engine_page.router,
    workloads_page.router,
    workload_page.router,
    owners_page.router,
    owner_page.router,
    user_page.router,
    recommendations_page.router,
    recommendation_rules_page.router,
    recommendation_page.router,
    recommendation_life.router,
    costs_page.router,
    cost_parts_page.router,
    energy_page.router,
    budgets_page.router,
    plan_rent_or_buy_page.router,
    plan_size_page.router,
    plan_mix_page.router,
    report_page.router,
    search_page.router,
    system_page.router,
    settings_page.router,
    settings_prices_page.router,
    settings_tariffs_page.router,
    settings_owners_page.router,
    settings_recipients_page.router,
    settings_tokens_page.router,
    settings_rules_page.router,
)
"""Pages, in the order of the navigation, those under another's address before it. A new page is a file in ``api/pages`` and a line here."""

STATIC: Final = Path(__file__).resolve().parent.parent / "templates" / "static"
GZIP_FROM_BYTES: Final = 1_000
GZIP_LEVEL: Final = 6
"""Of 9, which takes half as long again on a table of a thousand rows and saves an eighth of its bytes."""
DESCRIPTION: Final = (
    "Unknown is null, never 0. Ratios are 0–1, times ISO 8601 UTC, money decimal strings; units are in the names. "
    "Figures come from whole clock hours. Lists page by cursor and answer as CSV with format=csv. "
    "Errors are problem+json (RFC 9457)."
)


def create_app(settings: Settings) -> FastAPI:
    """The application over one database. Nothing is read from it before the first request."""
    app = FastAPI(
        routes=[*_routes()],
        title="gpuwise",
        version=own_version(),
        description=DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    limits_book(settings.rules)  # a bad threshold fails at start, not at the first run of the rules
    app.state.settings = settings
    app.state.engine = make_engine(settings.database_url)
    app.state.live = LiveHub()
    app.mount("/static", MarkedFiles(directory=STATIC), name="static")
    problems.install(app, problem_page)
    app.add_middleware(GZipMiddleware, minimum_size=GZIP_FROM_BYTES, compresslevel=GZIP_LEVEL)
    app.add_middleware(Security, settings=settings)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """REST and pages, once in a process: what each takes is worked out when it is first asked for, half a second in all."""
    every = APIRouter()
    for router in ROUTES:
        every.include_router(router, prefix="/api/v1", responses=problems.RESPONSES)
    every.include_router(metrics.router)
    for router in PAGES:
        every.include_router(router, include_in_schema=False)
    every.include_router(live.router)
    return tuple(every.routes)


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the shape of our errors in it."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = problems.SCHEMA
        schemas.update(ingest_body.schemas())
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        app.openapi_schema = document
    return app.openapi_schema
