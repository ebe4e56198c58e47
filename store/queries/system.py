"""How the database itself is: size, rows by table, how far back it goes, what was received day by day. Nothing is counted row by row."""

from typing import Any, Final, NamedTuple

from sqlalchemy import func, literal_column, select, text
from sqlalchemy.orm import Session

from store.models.gpu import GpuRow
from store.models.gpu_hour import GpuHourRow
from store.models.gpu_sample import GpuSampleRow
from store.models.host import HostRow
from store.models.ledger_gpu_total import LedgerGpuTotalRow

GROWING: Final = (
    "gpu_sample",
    "process_sample",
    "engine_sample",
    "host_sample",
    "gpu_hour",
    "usage_hour",
    "engine_hour",
    "ledger_day",
    "gpu_event",
    "workload",
    "recommendation",
    "mail_log",
)
"""Tables that grow with time; the others stay small."""


class TableSize(NamedTuple):
    """A table: about how many rows, as the database last estimated, and bytes with indexes; None: not known."""

    name: str
    rows: int | None
    size_bytes: int | None


class HostDay(NamedTuple):
    """What was received of a host's GPUs on one accounting day: covered of known time; ``host`` None: not named."""

    host: str | None
    day_ms: int
    covered_ms: int
    known_ms: int


def database_bytes(session: Session) -> int | None:
    """Size of the whole database, free pages of SQLite included."""
    if session.get_bind().dialect.name == "sqlite":
        pages, page = (
            session.execute(text(f"PRAGMA {name}")).scalar() for name in ("page_count", "page_size")
        )
        return None if pages is None or page is None else int(pages) * int(page)
    size = session.execute(text("SELECT pg_database_size(current_database())")).scalar()
    return None if size is None else int(size)


def table_sizes(session: Session) -> list[TableSize]:
    """The tables that grow. SQLite knows no sizes of tables, and rows only as of its last ANALYZE."""
    if session.get_bind().dialect.name == "sqlite":
        return [TableSize(name, rows, None) for name, rows in _analysed(session).items()]
    statement = text(
        "SELECT c.relname, coalesce(sum(greatest(p.reltuples, 0)), 0) + greatest(c.reltuples, 0),"
        " coalesce(sum(pg_total_relation_size(p.oid)), 0) + pg_total_relation_size(c.oid)"
        " FROM pg_class c LEFT JOIN pg_inherits i ON i.inhparent = c.oid LEFT JOIN pg_class p ON p.oid = i.inhrelid"
        " WHERE c.relkind IN ('r', 'p') AND c.relname = ANY(:names)"
        " AND pg_table_is_visible(c.oid) GROUP BY c.oid, c.relname, c.reltuples"
    )
    found = {
        row[0]: TableSize(row[0], int(row[1]), int(row[2]))
        for row in session.execute(statement, {"names": list(GROWING)})
    }
    return [found[name] for name in GROWING if name in found]


def _analysed(session: Session) -> dict[str, int | None]:
    known = session.execute(text("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'")).first()
    rows: dict[str, int | None] = dict.fromkeys(GROWING)
    if known is None:
        return rows
    for name, stat in session.execute(text("SELECT tbl, stat FROM sqlite_stat1")):
        if name in rows and stat:
            rows[name] = max(int(str(stat).split()[0]), rows[name] or 0)
    return rows


def oldest_ms(session: Session) -> tuple[int | None, int | None]:
    """Start of the oldest raw sample of a GPU, and of the oldest hour; one look a GPU through the key."""
    sample = GpuSampleRow
    first = (
        select(sample.ts_ms)
        .where(sample.gpu_id == GpuRow.id)
        .order_by(sample.ts_ms)
        .limit(1)
        .correlate(GpuRow)
        .scalar_subquery()
    )
    oldest = select(first.label("first")).select_from(GpuRow).subquery()
    raw = session.execute(select(func.min(oldest.c.first))).scalar()
    hour = session.execute(select(func.min(GpuHourRow.hour_ms))).scalar()
    return raw, hour


def received(session: Session, from_ms: int, to_ms: int) -> list[HostDay]:
    """What was received by host and accounting day; days that are not priced yet are not there."""
    row = LedgerGpuTotalRow
    covered: Any = func.sum(row.covered_ms)
    known: Any = func.sum(row.known_ms)
    statement = (
        select(HostRow.name, row.day_ms, covered, known)
        .select_from(row)
        .join(GpuRow, GpuRow.id == row.gpu_id)
        .outerjoin(HostRow, HostRow.id == GpuRow.host_id)
        .where(row.day_ms >= from_ms, row.day_ms < to_ms)
        .group_by(HostRow.name, row.day_ms)
        .order_by(HostRow.name, row.day_ms)
    )
    return [
        HostDay(host, int(day), int(c or 0), int(k or 0)) for host, day, c, k in session.execute(statement)
    ]


def revision(session: Session) -> str | None:
    """The schema's revision."""
    found = session.execute(
        select(literal_column("version_num")).select_from(text("alembic_version"))
    ).scalar()
    return None if found is None else str(found)
