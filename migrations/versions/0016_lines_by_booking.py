"""Corrections of closed months are found by their booking; there are few of them among very many lines."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
BOOKED = sa.text("booking_id IS NOT NULL")


def upgrade() -> None:
    op.create_index(
        op.f("ix_ledger_day_booking_id"),
        "ledger_day",
        ["booking_id"],
        sqlite_where=BOOKED,
        postgresql_where=BOOKED,
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_ledger_day_booking_id"), table_name="ledger_day")
