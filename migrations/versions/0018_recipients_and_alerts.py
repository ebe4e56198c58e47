"""Recipients, alerts, and a mail log that is the claim to send: one row per message and recipient.

Rows of mail that went out before become one row per address of theirs, so that no week is mailed a second time.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LIVE = sa.text("ended_at IS NULL")
AT = sa.DateTime(timezone=True)
OLD = sa.table(
    "mail_log",
    *(sa.column(name) for name in ("id", "kind", "period", "recipients", "subject", "ok", "message")),
    sa.column("sent_at", AT),
)
NEW = sa.table(
    "mail_log",
    *(sa.column(name) for name in ("kind", "period", "team", "project", "channel", "recipient", "shown")),
    *(sa.column(name) for name in ("subject", "state", "attempts", "message")),
    *(sa.column(name, AT) for name in ("created_at", "claimed_at", "ended_at")),
)


def upgrade() -> None:
    _add_recipient()
    _add_alert()
    before = _take_old()
    _add_mail_log()
    if before:
        op.bulk_insert(NEW, before)


def _add_recipient() -> None:
    op.create_table(
        "recipient",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("weekly", sa.Boolean(), nullable=False),
        sa.Column("alerts", sa.Boolean(), nullable=False),
        sa.Column("quiet_week", sa.Text(), nullable=False),
        sa.Column("paused_until", AT, nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", AT, nullable=False),
        sa.Column("ended_at", AT, nullable=True),
        sa.CheckConstraint("channel IN ('mail', 'webhook')", name=op.f("ck_recipient_channel")),
        sa.CheckConstraint("quiet_week IN ('skip', 'line')", name=op.f("ck_recipient_quiet_week")),
        sa.CheckConstraint("project = '' OR team <> ''", name=op.f("ck_recipient_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipient")),
    )
    op.create_index(
        op.f("ix_recipient_address_team_project"),
        "recipient",
        ["address", "team", "project"],
        unique=True,
        sqlite_where=LIVE,
        postgresql_where=LIVE,
    )


def _add_alert() -> None:
    op.create_table(
        "alert",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("severity", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("figure", sa.Double(), nullable=True),
        sa.Column("first_at", AT, nullable=False),
        sa.Column("last_at", AT, nullable=False),
        sa.Column("resolved_at", AT, nullable=True),
        sa.Column("sent_at", AT, nullable=True),
        sa.Column("sent_severity", sa.Integer(), nullable=True),
        sa.Column("sent_figure", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert")),
        sa.UniqueConstraint("key", name=op.f("uq_alert_key")),
    )


def _add_mail_log() -> None:
    op.create_table(
        "mail_log",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("team", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("recipient_id", sa.Integer(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", AT, nullable=False),
        sa.Column("claimed_at", AT, nullable=True),
        sa.Column("next_try_at", AT, nullable=True),
        sa.Column("ended_at", AT, nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('weekly-report', 'alerts', 'test')", name=op.f("ck_mail_log_kind")),
        sa.CheckConstraint("channel IN ('mail', 'webhook')", name=op.f("ck_mail_log_channel")),
        sa.CheckConstraint(
            "state IN ('waiting', 'claimed', 'sent', 'refused', 'failed', 'unsure')",
            name=op.f("ck_mail_log_state"),
        ),
        sa.ForeignKeyConstraint(
            ["recipient_id"], ["recipient.id"], name=op.f("fk_mail_log_recipient_id_recipient")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mail_log")),
        sa.UniqueConstraint(
            "kind",
            "period",
            "team",
            "project",
            "recipient",
            name=op.f("uq_mail_log_kind_period_team_project_recipient"),
        ),
    )
    op.create_index(op.f("ix_mail_log_state_next_try_at"), "mail_log", ["state", "next_try_at"])


def _take_old() -> list[dict[str, Any]]:
    """Mail of before, the newest of each address and period, one that went out before one that did not."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in op.get_bind().execute(sa.select(OLD).order_by(OLD.c.ok, OLD.c.id)):
        if row.kind != "weekly-report" or row.period is None:
            continue
        for address in (part.strip() for part in row.recipients.split(",")):
            found[row.period, address.lower()] = {
                "kind": row.kind,
                "period": row.period,
                "team": "",
                "project": "",
                "channel": "mail",
                "recipient": address.lower(),
                "shown": address,
                "subject": row.subject,
                "state": "sent" if row.ok else "failed",
                "attempts": 1,
                "created_at": row.sent_at,
                "claimed_at": row.sent_at,
                "ended_at": row.sent_at,
                "message": row.message,
            }
    op.drop_table("mail_log")
    return list(found.values())


def downgrade() -> None:
    """Messages that still wait are lost; what was sent stays."""
    rows = [
        {
            "sent_at": row.created_at,
            "kind": row.kind,
            "period": row.period,
            "recipients": row.shown,
            "subject": row.subject,
            "ok": row.state == "sent",
            "message": row.message,
        }
        for row in op.get_bind().execute(sa.select(NEW).where(NEW.c.kind == "weekly-report"))
    ]
    op.drop_table("mail_log")
    op.drop_table("alert")
    op.drop_table("recipient")
    op.create_table(
        "mail_log",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("sent_at", AT, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=True),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mail_log")),
    )
    op.create_index(op.f("ix_mail_log_period"), "mail_log", ["period"])
    if rows:
        op.bulk_insert(OLD, rows)
