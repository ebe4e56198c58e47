"""One page, one file. A new page is a file here, a template, a test, and a line in ``PAGES``."""

from typing import Final

from fastapi import APIRouter

from api.pages import costs, engines, fleet, gpu, overview, recommendations, report
from api.pages.problem import problem_page

PAGES: Final[tuple[APIRouter, ...]] = (
    overview.router,
    fleet.router,
    gpu.router,
    engines.router,
    recommendations.router,
    costs.router,
    report.router,
)
error_page = problem_page

__all__ = ["PAGES", "error_page"]
