"""Mail that went out before the log was by recipient is not sent a second time after the upgrade; on both databases."""

from datetime import UTC, datetime

from sqlalchemy import text

from core.clock import to_ms
from core.outbox import MessageKind
from core.user_recipient import Recipient
from store import schema
from store.engine import make_engine, session_scope
from store.queries import alerts, mail, recipients, report_told

AT = datetime(2026, 10, 5, 7, tzinfo=UTC)
OLD = text(
    "INSERT INTO mail_log (sent_at, kind, period, recipients, subject, ok, message)"
    " VALUES (:at, 'weekly-report', :period, :recipients, 's', :ok, :message)"
)


def to(url: str, revision: str) -> None:
    (schema.upgrade if revision == "head" else schema.downgrade)(url, revision)


def test_rows_become_one_per_address_and_what_was_sent_stays_sent(ready_database: str) -> None:
    to(ready_database, "0017")
    with make_engine(ready_database).begin() as connection:
        for period, recipients, ok in (
            ("p1", "Head@example.org, finance@example.org", False),
            ("p1", "Head@example.org, finance@example.org", True),
            ("p2", "head@example.org", False),
            (None, "head@example.org", True),
        ):
            said = None if ok else "gone"
            connection.execute(
                OLD, {"at": AT, "period": period, "recipients": recipients, "ok": ok, "message": said}
            )
    to(ready_database, "head")
    with session_scope(make_engine(ready_database)) as session:
        assert mail.known(session, MessageKind.WEEKLY, "p1") == {
            (None, "head@example.org"),
            (None, "finance@example.org"),
        }
        states = sorted((one.period, one.shown, one.state.value) for one in mail.newest(session, 10))
    assert states == [
        ("p1", "Head@example.org", "sent"),
        ("p1", "finance@example.org", "sent"),
        ("p2", "head@example.org", "failed"),
    ]
    to(ready_database, "0017")
    with make_engine(ready_database).connect() as connection:
        back = connection.execute(text("SELECT period, recipients, ok FROM mail_log ORDER BY 1, 2")).all()
    assert sorted((period, who, bool(ok)) for period, who, ok in back) == [
        ("p1", "Head@example.org", True),
        ("p1", "finance@example.org", True),
        ("p2", "head@example.org", False),
    ]


def test_who_was_told_of_a_fault_stays_told_and_others_hear_of_it(ready_database: str) -> None:
    engine = make_engine(ready_database)
    with session_scope(engine) as session:
        ann, bob, late = (
            recipients.add(session, Recipient(None, f"{name}@example.org"), to_ms(AT))
            for name in ("ann", "bob", "late")
        )
    to(ready_database, "0021")
    alert = text(
        "INSERT INTO alert (key, kind, severity, title, detail, first_at, last_at, sent_at, sent_severity, sent_figure)"
        " VALUES (:key, 'budget', 3, 't', 'd', :at, :at, :sent_at, :severity, :figure)"
    )
    message = text(
        "INSERT INTO mail_log (kind, period, team, project, channel, recipient, shown, recipient_id, subject, state,"
        " attempts, created_at) VALUES (:kind, :period, '', '', 'mail', :who, :who, :id, 's', :state, 1, :at)"
    )
    week = text(
        "INSERT INTO report_told (team, project, fingerprint, period, told_at) VALUES ('', '', 'f', :p, :at)"
    )
    with engine.begin() as connection:
        sent = {"at": AT, "sent_at": AT, "severity": 3, "figure": 7.5}
        connection.execute(alert, sent | {"key": "told"})
        connection.execute(alert, sent | {"key": "new", "sent_at": None, "severity": None, "figure": None})
        for kind, period, who, id_, state in (
            ("alerts", str(to_ms(AT)), "ann", ann, "sent"),
            ("alerts", str(to_ms(AT)), "bob", bob, "failed"),
            ("alerts", "17", "late", late, "sent"),
            ("weekly-report", "p1", "ann", ann, "failed"),
            ("weekly-report", "p2", "ann", ann, "failed"),
            ("weekly-report", "p2", "bob", bob, "sent"),
        ):
            row = {"kind": kind, "period": period, "who": who, "id": id_, "state": state, "at": AT}
            connection.execute(message, row)
        connection.execute(week, [{"p": "p1", "at": AT}, {"p": "p2", "at": AT}])
    to(ready_database, "head")
    with session_scope(engine) as session:
        known = alerts.listing(session)
        assert list(known["told"].told) == [ann]
        one = known["told"].told[ann]
        assert (one.told_at_ms, one.severity, one.figure) == (to_ms(AT), 3, 7.5)
        assert known["new"].told == {}
        assert report_told.before(session, None, "p2") == {}
        assert list(report_told.before(session, None, "p3")) == ["f"]
    to(ready_database, "0021")
    with engine.connect() as connection:
        back = connection.execute(
            text("SELECT key, sent_severity, sent_figure FROM alert ORDER BY key")
        ).all()
    assert [tuple(row) for row in back] == [("new", None, None), ("told", 3, 7.5)]
    to(ready_database, "head")
