"""Owner rules: which GPU time belongs to whom."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "owner_rule",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=True)
            for name in ("user_name", "namespace", "slurm_account", "unit", "image", "kind")
        ),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("host_labels", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("team", "project", "cost_centre")),
        sa.Column("valid_from_ms", sa.BigInteger(), nullable=False),
        sa.Column("valid_to_ms", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.CheckConstraint("valid_to_ms > valid_from_ms", name=op.f("ck_owner_rule_valid_to_ms")),
        sa.CheckConstraint("team <> ''", name=op.f("ck_owner_rule_team")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owner_rule")),
    )
    op.create_index(op.f("ix_owner_rule_position"), "owner_rule", ["position"])


def downgrade() -> None:
    op.drop_table("owner_rule")
