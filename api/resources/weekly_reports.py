"""The weekly report as REST and ``--json`` give it."""

from collections.abc import Mapping
from typing import Any

from api.report_model import WeeklyReport
from api.resources.as_json import to_json

FIELDS = (
    "has_data",
    "has_news",
    "simulated",
    "headline",
    "headline_idle",
    "compared",
    "partial_note",
    "budgets",
    "still_open",
    "open_count",
    "done",
    "quality",
    "price_note",
    "carbon_note",
)
"""Words and figures of the report that are told as they are."""


def as_json(report: WeeklyReport) -> dict[str, Any]:
    """What a report says, and the figures that it rests on."""
    owner = report.audience
    told: Mapping[str, Any] = {name: to_json(getattr(report, name)) for name in FIELDS}
    return {
        "period": report.period,
        "subject": report.subject,
        "owner": None if owner is None else owner.team,
        "project": None if owner is None else owner.project or None,
        **told,
        "actions": [
            {
                "recommendation_id": int(row.id),
                "title": row.title,
                "sum": row.sum,
                "because": row.because,
                "command": row.command,
                "grown": report.grown.get(row.id),
                "url": f"{report.base_url}{row.href}",
            }
            for row in report.recommendations
        ],
        "overview": to_json(report.overview),
    }
