"""Open recommendations about some GPUs or an engine: chosen by what little is read of all, then read in full."""

from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy.orm import Session

from api.pages.frame import OPEN
from api.ranking import rank
from api.rec_row import RecommendationRow, rows_of
from core.finding import Finding
from store.queries import recommendations
from store.queries.advice_heads import advice_heads

MOST: Final = 30
"""Read in full; more are in the list of all."""


def advice_rows(
    session: Session, wanted: Callable[[Finding], bool], host_of: Mapping[str, str | None]
) -> tuple[RecommendationRow, ...]:
    """Rows of those that are wanted, the best first; ``wanted`` sees neither evidence nor chart."""
    chosen = [head for head in advice_heads(session, OPEN) if wanted(head.finding)]
    chosen.sort(key=lambda head: (rank(head.finding), head.id))
    return rows_of(recommendations.several(session, [head.id for head in chosen[:MOST]]), host_of)
