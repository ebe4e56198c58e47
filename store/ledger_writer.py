"""Ledger lines of days into ``ledger_day``: many GPU-days in one short transaction, together with their marks.

Lines of an open month are replaced. Lines of a closed one stay for good: what differs is booked beside them, under a
``ledger_booking`` of this run. Whoever writes holds the ledger's lock (``store.lock``); marks that changed since they
were read say that the lines are old already, and then nothing of that GPU is written. Days on which an engine was seen are
written twice: into ``ledger_engine_day`` told apart by engines, as pricing gives them, whether or not the month is closed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table, bindparam, delete, insert, select

from core.evidence import Price
from core.ownership import Owner
from core.place import Place
from store import ledger_marks, ledger_totals
from store.engine import begin_write
from store.ledger_keys import engine_set_ids, owner_ids, place_ids, rate_ids
from store.ledger_marks import LedgerMark
from store.models.ledger_amounts import LedgerAmounts
from store.models.ledger_booking import LedgerBookingRow
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_engine_day import LedgerEngineDayRow
from store.models.ledger_month import LedgerMonthRow

_TABLE: Final = LedgerDayRow.__table__
assert isinstance(_TABLE, Table)
KEY: Final = (
    "day_ms",
    "from_ms",
    "to_ms",
    "gpu_id",
    "kind",
    "workload_id",
    "owner_id",
    "rate_id",
    "place_id",
)
"""Columns that tell one line from another; ``ledger.day_lines.DayKey`` in its order."""
_BOOKING: Final = len(KEY)
COLUMNS: Final = tuple(column.name for column in _TABLE.columns if column.name != "id")
"""All columns that are written, in their order: key, ``booking_id``, the rest."""
_SPAN: Final = frozenset({"from_ms", "to_ms"})
APART: Final = (*(name for name in KEY if name not in _SPAN), "engine_set_id", *LedgerAmounts.__annotations__)
"""Columns of ``ledger_engine_day`` as they are written."""
_KEY_APART: Final = itemgetter(*(at for at, name in enumerate(KEY) if name not in _SPAN))
_REST_APART: Final = itemgetter(
    *(COLUMNS.index(name) - _BOOKING - 1 for name in LedgerAmounts.__annotations__)
)
Key = tuple[Any, ...]
Row = tuple[Any, ...]
Rows = Mapping[Key, Row]


@dataclass(slots=True)
class Priced:
    """GPU-days as lines, with what they were priced with.

    Attributes:
        marks: of each GPU, as they were read before its hours were.
        days: of each GPU, the accounting days (start, first hour, end) that its lines are all of.
        lines: by GPU; in a key, owner, rate and place are places in the lists below.
        apart: of GPUs and days on which an engine was seen the same lines told apart: in a key, the place of the set of
            engines in ``engine_sets`` comes last; None: hours in which none was seen.
    """

    marks: dict[int, list[LedgerMark]] = field(default_factory=dict)
    days: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    lines: dict[int, Rows] = field(default_factory=dict)
    owners: list[Owner] = field(default_factory=list)
    rates: list[Price] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    apart: dict[int, Rows] = field(default_factory=dict)
    engine_sets: list[tuple[int, ...]] = field(default_factory=list)


@dataclass(slots=True)
class Written:
    """What a run wrote."""

    gpu_days: int = 0
    lines: int = 0
    corrections: int = 0


@dataclass(slots=True)
class LedgerWriter:
    """Writes what was priced, chunk by chunk, and counts it.

    Attributes:
        correct: from the booked and the fresh lines of a closed day to those that make up the difference.
        booked_at: of corrections of this run; they share one booking a month.
    """

    engine: Engine
    correct: Callable[[Iterable[tuple[Key, Row]], Rows], Rows]
    booked_at: datetime
    reason: str
    written: Written = field(default_factory=Written)
    _bookings: dict[str, int] = field(default_factory=dict)

    def write(self, priced: Priced) -> None:
        """Write the lines of GPUs whose marks are as they were, and remove those marks."""
        bookings = dict(self._bookings)
        with self.engine.begin() as connection:
            begin_write(connection)
            same = ledger_marks.unchanged(connection, [mark for of in priced.marks.values() for mark in of])
            good = [gpu_id for gpu_id, marks in priced.marks.items() if same.issuperset(marks)]
            named = _Named(connection, priced)
            months = _closed(connection)
            rows: list[Row] = []
            corrections: list[Row] = []
            for gpu_id in good:
                fresh = {named.key(key): row for key, row in priced.lines.get(gpu_id, {}).items()}
                days = priced.days[gpu_id]
                closed = {day[0]: month for day in days if (month := _month_of(months, day)) is not None}
                rows += [(*key, None, *row) for key, row in fresh.items() if key[0] not in closed]
                _clear(connection, gpu_id, [day for day in days if day[0] not in closed])
                for day_ms, month in closed.items():
                    of_day = {key: row for key, row in fresh.items() if key[0] == day_ms}
                    found = self.correct(_lines(connection, gpu_id, day_ms), of_day)
                    if found and month not in bookings:
                        bookings[month] = self._book(connection, month)
                    corrections += [(*key, bookings[month], *row) for key, row in found.items()]
            _insert(connection, "ledger_day", COLUMNS, [*rows, *corrections])
            _clear_apart(connection, {gpu_id: priced.days[gpu_id] for gpu_id in good})
            apart = [line for gpu_id in good for line in priced.apart.get(gpu_id, {}).items()]
            _insert(connection, "ledger_engine_day", APART, [named.apart(*line) for line in apart])
            ledger_totals.forget(connection, {day[0] for gpu_id in good for day in priced.days[gpu_id]})
            ledger_marks.remove(connection, [mark for gpu_id in good for mark in priced.marks[gpu_id]])
        self._bookings = bookings
        self.written.gpu_days += sum(len(priced.days[gpu_id]) for gpu_id in good)
        self.written.lines += len(rows)
        self.written.corrections += len(corrections)

    def _book(self, connection: Connection, month: str) -> int:
        statement = insert(LedgerBookingRow).values(month=month, booked_at=self.booked_at, reason=self.reason)
        key: int = connection.execute(statement.returning(LedgerBookingRow.id)).scalar_one()
        return key


class _Named:
    """Keys of the database for the places in the lists of ``Priced``."""

    def __init__(self, connection: Connection, priced: Priced) -> None:
        self._owners = owner_ids(connection, priced.owners)
        self._rates = rate_ids(connection, priced.rates)
        self._places = place_ids(connection, priced.places)
        self._sets = engine_set_ids(connection, priced.engine_sets)

    def key(self, key: Key) -> Key:
        *rest, owner, rate, place = key
        return (
            *rest,
            None if owner is None else self._owners[owner],
            None if rate is None else self._rates[rate],
            self._places[place],
        )

    def apart(self, key: Key, row: Row) -> Row:
        """Row of ``ledger_engine_day`` for a line told apart."""
        engines = key[-1]
        return (
            *_KEY_APART(self.key(key[:-1])),
            None if engines is None else self._sets[engines],
            *_REST_APART(row),
        )


def _closed(connection: Connection) -> list[tuple[str, int, int]]:
    row = LedgerMonthRow
    return [
        (month, from_ms, to_ms)
        for month, from_ms, to_ms in connection.execute(select(row.month, row.from_ms, row.to_ms))
    ]


def _month_of(months: Sequence[tuple[str, int, int]], day: tuple[int, int, int]) -> str | None:
    _, from_ms, _ = day
    return next((month for month, start, end in months if start <= from_ms < end), None)


def _clear(connection: Connection, gpu_id: int, days: Sequence[tuple[int, int, int]]) -> None:
    """Remove the lines of days, a run of days at a time."""
    runs: list[list[int]] = []
    end_ms = None
    for day_ms, from_ms, to_ms in days:
        if from_ms == end_ms:
            runs[-1][1] = day_ms
        else:
            runs.append([day_ms, day_ms])
        end_ms = to_ms
    row = LedgerDayRow
    if runs:
        connection.execute(
            delete(row).where(
                row.gpu_id == gpu_id, row.day_ms >= bindparam("first"), row.day_ms <= bindparam("last")
            ),
            [{"first": first, "last": last} for first, last in runs],
        )


def _clear_apart(connection: Connection, days: Mapping[int, Sequence[tuple[int, int, int]]]) -> None:
    """Remove what days of GPUs were told apart into: most GPUs serve nothing."""
    listed = [day_ms for of in days.values() for day_ms, _, _ in of]
    if not listed:
        return
    row = LedgerEngineDayRow
    there = select(row.gpu_id).where(
        row.day_ms >= min(listed), row.day_ms <= max(listed), row.gpu_id.in_(list(days))
    )
    rows = [
        {"gpu": gpu_id, "day": day_ms}
        for gpu_id in connection.execute(there.distinct()).scalars().all()
        for day_ms, _, _ in days[gpu_id]
    ]
    if rows:
        connection.execute(
            delete(row).where(row.day_ms == bindparam("day"), row.gpu_id == bindparam("gpu")), rows
        )


def _lines(connection: Connection, gpu_id: int, day_ms: int) -> list[tuple[Key, Row]]:
    """Lines of one GPU's day, corrections among them."""
    raw = connection.exec_driver_sql(
        f"SELECT {', '.join(COLUMNS)} FROM ledger_day WHERE gpu_id = {int(gpu_id)} AND day_ms = {int(day_ms)}"
    )
    return [(tuple(row[:_BOOKING]), tuple(row[_BOOKING + 1 :])) for row in raw]


def _insert(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Straight to the driver: money is whole micro-dollars here already, as it is in the table."""
    if not rows:
        return
    names = ", ".join(columns)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(columns))
        connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(rows))
        return
    raw: Any = connection.connection.driver_connection
    with raw.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
