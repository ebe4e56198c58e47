"""Open recommendations about some GPUs or an engine: chosen by what little is read of all, then read in full."""

from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy.orm import Session

from api.pages.frame import OPEN
from api.ranking import rank
from api.rec_row import RecommendationRow, rows_of
from core.finding import Finding
from store.queries import recommendations

MOST: Final = 30
"""Read in full; more are in the list of all."""


def advice_rows(
    session: Session, wanted: Callable[[Finding], bool], host_of: Mapping[str, str | None]
) -> tuple[RecommendationRow, ...]:
    """Rows of those that are wanted, the best first; ``wanted`` sees neither evidence nor chart."""
    chosen = [rec for rec in recommendations.listing(session, OPEN, brief=True) if wanted(rec.finding)]
    chosen.sort(key=lambda rec: (rank(rec.finding), rec.id))
    whole = (recommendations.get(session, rec.id) for rec in chosen[:MOST])
    return rows_of((rec for rec in whole if rec is not None), host_of)
