"""The rate that an engine can reach, as fitted on its own hours; NULL: not known."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("engine", sa.Column("reachable_tokens_per_s", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("engine", "reachable_tokens_per_s")
