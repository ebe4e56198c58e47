"""Files of the ledger for other systems: FOCUS, and its lines as they are. Streamed: memory does not grow with the window.

Days are those of the accounting time zone, so that a month's file is the month that is closed for chargeback; a row
never crosses a month in UTC, which is a billing period of FOCUS.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.export_charges import Charges, read_charges
from api.resources.scope import Scope
from core.clock import from_ms, to_ms
from core.errors import NotFoundError, UsageError
from core.evidence import Window
from core.settings import Settings
from core.units import HOUR_MS, SECOND_MS
from core.user_price import COMMITTED, UserPrice
from ledger.calendar import Calendar, Span, utc_month_parts
from ledger.focus import Charge, Issuer, Row, billing_period, is_unpriced, rows_of
from ledger.focus_commitments import Commitment, Seen, in_force, is_counted, purchase_row, unused_row
from store.queries.ledger_lines import span_of_samples

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MONTH: Final = re.compile(r"\d{4}-\d{2}")
FIRST: Final = date(1971, 1, 1)
LAST: Final = date(9999, 1, 1)
Progress = Callable[[int, int], None]
"""Told how many days are done, of how many."""


@dataclass(slots=True)
class Summary:
    """What a file holds, and what it does not."""

    from_at: Annotated[datetime, about("Start of the first day asked for, UTC.")]
    to_at: Annotated[datetime, about("End of the last, UTC.")]
    rows: Annotated[int, about("Rows of the file.")] = 0
    billed_usd: Annotated[Decimal, about("Sum of BilledCost.")] = Decimal(0)
    effective_usd: Annotated[Decimal, about("Sum of EffectiveCost.")] = Decimal(0)
    ledger_usd: Annotated[
        Decimal,
        about("GPU cost of the same days in the ledger: EffectiveCost without energy and unused hours."),
    ] = Decimal(0)
    energy_usd: Annotated[Decimal, about("Energy that the sites are billed for apart.")] = Decimal(0)
    unused_usd: Annotated[Decimal, about("EffectiveCost of committed GPU-hours that nobody used.")] = Decimal(
        0
    )
    corrections: Annotated[int, about("Rows that correct a closed month.")] = 0
    unpriced_lines: Annotated[int, about("Lines of the ledger without a price; they have no row.")] = 0
    unpriced_gpu_h: Annotated[float, about("GPU-hours of those.")] = 0.0
    unpriced_gpus: Annotated[int, about("GPUs that they are of.")] = 0
    notes: Annotated[list[str], about("What to know before it is sent on.")] = field(default_factory=list)


@dataclass(slots=True)
class Export:
    """A file in the making; ``summary`` is whole when all rows were taken.

    Attributes:
        charges: what it is made of. data: from the first sample to the end of the newest, whole seconds.
        issuer: who bills.
    """

    charges: Charges
    data: Window
    issuer: Issuer
    summary: Summary
    _seen: dict[int, Seen] = field(init=False, default_factory=dict)
    _unpriced: set[str] = field(init=False, default_factory=set)
    _unpriced_ms: int = field(init=False, default=0)

    def rows(self, progress: Progress = lambda _done, _total: None) -> Iterator[Row]:
        """Rows of the file, day by day, then what was paid upfront in its window."""
        days = self.charges.days
        for done, day in enumerate(days, start=1):
            used: dict[tuple[int, str], int] = {}
            for charge in self.charges.of_day(day):
                self._count(charge, used)
                for row in rows_of(charge, self.issuer):
                    yield self._counted(row)
            for row in self._unused(day, used):
                self.summary.unused_usd += Decimal(row["EffectiveCost"] or 0)
                yield self._counted(row)
            progress(done, len(days))
        for row in self._purchases():
            yield self._counted(row)
        self.summary.notes += self._notes()

    def _count(self, charge: Charge, used: dict[tuple[int, str], int]) -> None:
        summary, price = self.summary, charge.price
        if is_unpriced(charge):
            summary.unpriced_lines += 1
            self._unpriced_ms += charge.amounts.known_ms
            self._unpriced.add(charge.resource.card_id or charge.resource.resource_id)
            summary.unpriced_gpus, summary.unpriced_gpu_h = len(self._unpriced), self._unpriced_ms / HOUR_MS
            return
        summary.ledger_usd += Decimal(charge.amounts.cost_usd or 0).scaleb(-6)
        if price is not None and price.price_id is not None and price.billing in COMMITTED:
            self._seen[price.price_id] = Seen(charge.resource, price)
            key = (price.price_id, billing_period(charge.from_ms)[0])
            used[key] = used.get(key, 0) + charge.amounts.known_ms

    def _counted(self, row: Row) -> Row:
        summary = self.summary
        summary.rows += 1
        summary.billed_usd += Decimal(row["BilledCost"] or 0)
        summary.effective_usd += Decimal(row["EffectiveCost"] or 0)
        summary.corrections += row["ChargeClass"] is not None
        if row["ServiceName"] == "Electricity":
            summary.energy_usd += Decimal(row["EffectiveCost"] or 0)
        return row

    def _unused(self, day: Span, used: dict[tuple[int, str], int]) -> Iterator[Row]:
        """Committed hours of a day that nobody used, as far as anything was seen at all then."""
        for price in self.charges.user_prices.values():
            if not is_counted(price):
                continue
            for start, end in utc_month_parts(day.from_ms, day.to_ms):
                span = in_force(price, max(start, self.data.from_ms), min(end, self.data.to_ms))
                of = None if span is None else self._commitment(price, span[0])
                if span is not None and of is not None:
                    used_ms = used.get((price.id, billing_period(start)[0]), 0)
                    row = unused_row(of, span, used_ms, self.issuer)
                    if row is not None:
                        yield row

    def _purchases(self) -> Iterator[Row]:
        window = self.charges.scope.window
        for price in self.charges.user_prices.values():
            if price.upfront is None or not window.from_ms <= price.valid_from_ms < window.to_ms:
                continue
            of = self._commitment(price, price.valid_from_ms)
            if of is not None:
                yield purchase_row(of, self.issuer)

    def _commitment(self, price: UserPrice, at_ms: int) -> Commitment | None:
        """None: its currency has no rate then, and nothing is converted at the rate of another day."""
        usd_per_unit = self.charges.exchange.usd_per_unit(price.currency, at_ms)
        if usd_per_unit is None:
            note = (
                f"commitment {price.commitment} is left out, {self.charges.exchange.missing(price.currency)}"
            )
            if note not in self.summary.notes:
                self.summary.notes.append(note)
            return None
        return Commitment(price, usd_per_unit, self._seen.get(price.id))

    def _notes(self) -> Iterator[str]:
        scope, summary = self.charges.scope, self.summary
        calendar = self.charges.book.calendar
        for month in calendar.months(scope.window.from_ms, scope.window.to_ms):
            if month.to_ms > scope.now_ms:
                yield f"{month.key} is not over: its rows are provisional"
            elif not self.charges.is_closed(month):
                yield f"{month.key} is not closed: its rows may still change until gpuwise ledger close {month.key}"
        waiting = self.charges.waiting_in_closed
        if waiting:
            yield f"changes to {waiting} GPU-days of closed months are not booked yet: run gpuwise ledger rebuild"
        if summary.unpriced_lines:
            yield (
                f"{summary.unpriced_gpu_h:,.1f} GPU-hours of {summary.unpriced_gpus} GPUs have no price and no row: "
                "gpuwise prices --effective says why"
            )


def export(
    session: Session, settings: Settings, now_ms: int, from_: str, to: str, *, issuer: Issuer | None = None
) -> Export:
    """The file of a span of days; nothing of it is read yet.

    Args:
        session: open as long as rows are taken. settings: of the site. now_ms: the time.
        from_, to: first day, and first day that is left out, or months, in the accounting time zone.
        issuer: who bills; default names that say nothing.

    Raises:
        UsageError: a day that cannot be read, or ``from`` not before ``to``. NotFoundError: nothing is known of them.
    """
    asked = window_of(settings, from_, to)
    span = span_of_samples(session)
    if span is None:
        raise NotFoundError(
            f"there are no samples from {from_} to {to}, and none at all: import history first"
        )
    data = Window(span[0] - span[0] % SECOND_MS, span[1] + -span[1] % SECOND_MS)
    hours = Window(data.from_ms - data.from_ms % HOUR_MS, data.to_ms + -data.to_ms % HOUR_MS)
    if hours.to_ms <= asked.from_ms or hours.from_ms >= asked.to_ms:
        first, last = (_day(settings, at_ms) for at_ms in (hours.from_ms, hours.to_ms - 1))
        raise NotFoundError(
            f"there are no samples from {from_} to {to}, but from {first} to {last}: give other days, or import history"
        )
    charges = read_charges(Scope(session, settings, now_ms, asked), hours)
    summary = Summary(from_ms(asked.from_ms), from_ms(asked.to_ms))
    return Export(charges, data, issuer or Issuer(), summary)


def window_of(settings: Settings, from_: str, to: str) -> Window:
    """Whole accounting days from one to before another; a month stands for its first day.

    Raises:
        UsageError: names the field, its value and what to write.
    """
    start, end = _start(settings, "from", from_), _start(settings, "to", to)
    if start >= end:
        raise UsageError(f"from {from_} is not before to {to}: to is the first day that is left out")
    return Window(start, end)


def _start(settings: Settings, field_: str, text: str) -> int:
    """First hour of a day or month."""
    given = text.strip()
    day = f"{given}-01" if _MONTH.fullmatch(given) else given
    try:
        at = date.fromisoformat(day if _DAY.fullmatch(day) else "")
    except ValueError:
        at = date.max
    if not FIRST <= at < LAST:
        raise UsageError(f"{field_} is {text!r}: give a day such as 2026-10-01, or a month such as 2026-10")
    midnight = datetime(at.year, at.month, at.day, tzinfo=ZoneInfo(settings.accounting_time_zone))
    midnight_ms = to_ms(midnight)
    return midnight_ms + -midnight_ms % HOUR_MS


def _day(settings: Settings, at_ms: int) -> str:
    return Calendar(settings.accounting_time_zone).day_at(at_ms).key
