"""Hours whose samples changed since they were last rolled up."""

from sqlalchemy import CheckConstraint, Integer
from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base, one_of

KINDS = ("gpu", "engine", "host")


class RollupPendingRow(Base):
    """One hour of one GPU, engine or host.

    ``mark`` is a new random number each time samples arrive: the roll-up removes a mark only if it is still the
    one it read samples under, so no late sample is forgotten.
    """

    __tablename__ = "rollup_pending"
    __table_args__ = (
        CheckConstraint(one_of("kind", KINDS), name="kind"),
        {"sqlite_with_rowid": False},
    )

    hour_ms: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(primary_key=True)
    entity_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    mark: Mapped[int]
