"""Facts about the database itself."""

from sqlalchemy.orm import Mapped, mapped_column

from store.models.base import Base


class MetaRow(Base):
    """A key and its value, such as ``simulated``."""

    __tablename__ = "meta"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]
