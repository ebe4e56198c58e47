"""Span of the samples an hour was folded from, so that a later part of it is merged and not taken for the whole."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = ("gpu_hour", "engine_hour")
COLUMNS = ("sampled_from_ms", "sampled_to_ms")


def upgrade() -> None:
    for table in TABLES:
        for column in COLUMNS:
            op.add_column(table, sa.Column(column, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        for column in reversed(COLUMNS):
            op.drop_column(table, column)
