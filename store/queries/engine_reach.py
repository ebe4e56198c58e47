"""The rate that each engine can reach."""

from collections.abc import Mapping

from sqlalchemy import bindparam, update
from sqlalchemy.orm import Session

from store.models.engine import EngineRow


def keep(session: Session, tokens_per_s: Mapping[str, float | None]) -> None:
    """Keep it by engine; None: not known. Other engines keep theirs."""
    if not tokens_per_s:
        return
    session.connection().execute(
        update(EngineRow)
        .where(EngineRow.engine == bindparam("name"))
        .values(reachable_tokens_per_s=bindparam("rate")),
        [{"name": name, "rate": rate} for name, rate in tokens_per_s.items()],
    )
