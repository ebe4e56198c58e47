"""The user's tariffs. A change marks the ledger's days that it touches, in the same transaction; usage stays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from sqlalchemy.orm import Session

from api.resources.columns import about
from api.resources.moments import moment
from api.resources.tariff_specs import TariffBody, tariff_of
from core.clock import from_ms, iso
from core.errors import NotFoundError, UsageError
from core.settings import Settings
from core.user_tariff import Tariff
from ledger.tariff import overlap, weekdays_text
from store.queries import sites
from store.queries import tariffs as kept
from store.queries.ledger_pending import mark


@dataclass(frozen=True, slots=True)
class PeriodView:
    """A price for some hours of some weekdays on the local clock."""

    weekdays: Annotated[str, about("all, mon-fri, sat,sun, …")]
    from_hour: Annotated[int, about("0 to 23, inclusive.")]
    to_hour: Annotated[int, about("1 to 24, exclusive; not after from_hour: on the next day.")]
    usd_per_kwh: Annotated[Decimal, about("Dollars per kWh.")]


@dataclass(frozen=True, slots=True)
class TariffView:
    """What electricity costs under one contract, over one span of time."""

    id: Annotated[int, about("Its key.")]
    name: Annotated[str, about("What site profiles call it; later prices carry the same name.")]
    kind: Annotated[str, about("flat or time_of_use.")]
    time_zone: Annotated[str | None, about("Of the local clock; null: a flat tariff without one.")]
    usd_per_kwh: Annotated[Decimal | None, about("Dollars per kWh at all hours; null: by time of use.")]
    periods: Annotated[tuple[PeriodView, ...], about("Prices by time of use; empty: flat.")]
    lowest_usd_per_kwh: Annotated[Decimal, about("The cheapest hour of a week.")]
    highest_usd_per_kwh: Annotated[Decimal, about("The dearest hour of a week.")]
    valid_from: Annotated[datetime, about("In force from, inclusive, UTC.")]
    valid_to: Annotated[datetime | None, about("In force until, exclusive, UTC; null: still.")]
    note: Annotated[str, about("In your own words.")]


def rows(session: Session) -> list[TariffView]:
    """Every tariff, by name and start."""
    return [_view(tariff) for tariff in kept.listing(session)]


def add(session: Session, settings: Settings, body: TariffBody, now_ms: int) -> TariffView:
    """Keep a tariff. Raises ``UsageError`` where it could not be applied, or another of its name is in force then."""
    return _view(_add(session, tariff_of(body, settings, now_ms), kept.listing(session)))


def add_all(
    session: Session,
    settings: Settings,
    given: Sequence[tuple[str, TariffBody]],
    now_ms: int,
) -> list[TariffView]:
    """Keep many tariffs, all or none, and list all there are then; one that is there already, word for word, stays.

    Args:
        given: where each stands, for the sentence, and the tariff.

    Raises:
        UsageError: the first that could not be applied.
    """
    there = kept.listing(session)
    for where, body in given:
        try:
            tariff = tariff_of(body, settings, now_ms)
            if any(replace(old, id=0) == tariff for old in there):
                continue
            there.append(_add(session, tariff, there))
        except UsageError as error:
            raise UsageError(f"{where}: {error}; nothing was kept") from error
    return rows(session)


def end(session: Session, settings: Settings, id_: int, at: str, now_ms: int) -> TariffView:
    """Let a tariff end at a time, or a day of its clock.

    Raises:
        NotFoundError: there is none of that key. UsageError: it would end before it starts.
    """
    tariff = _get(session, id_)
    valid_to_ms = moment(at, tariff.time_zone or settings.accounting_time_zone, now_ms, "at")
    if valid_to_ms <= tariff.valid_from_ms:
        raise UsageError(
            f"at is {at!r}, which is not after the start of tariff {id_} ({iso(tariff.valid_from_ms)}): give a later time, or remove it"
        )
    kept.end(session, id_, valid_to_ms)
    _mark(session, tariff, *between(tariff.valid_to_ms, valid_to_ms))
    return _view(replace(tariff, valid_to_ms=valid_to_ms))


def remove(session: Session, id_: int) -> None:
    """Remove a tariff, as if it had never been given.

    Raises:
        NotFoundError: there is none of that key. UsageError: a site profile still names it.
    """
    tariff = _get(session, id_)
    others = [one for one in kept.listing(session) if one.name == tariff.name and one.id != id_]
    users = [profile for profile in sites.listing(session) if profile.tariff == tariff.name]
    if users and not others:
        raise UsageError(
            f"tariff {id_} ({tariff.name}) is named by site profile {users[0].id} ({users[0].name}): remove that first, or let the tariff end"
        )
    kept.delete(session, id_)
    _mark(session, tariff, tariff.valid_from_ms, tariff.valid_to_ms)


def between(old_to_ms: int | None, new_to_ms: int) -> tuple[int, int | None]:
    """What changes when an end moves: from the earlier to the later one; None: to the end of time."""
    if old_to_ms is None:
        return new_to_ms, None
    return min(old_to_ms, new_to_ms), max(old_to_ms, new_to_ms)


def _get(session: Session, id_: int) -> Tariff:
    tariff = kept.get(session, id_)
    if tariff is None:
        raise NotFoundError(f"no tariff {id_}: tariffs lists them")
    return tariff


def _add(session: Session, tariff: Tariff, there: Sequence[Tariff]) -> Tariff:
    other = overlap(there, tariff)
    if other is not None:
        until = "still" if other.valid_to_ms is None else f"until {iso(other.valid_to_ms)}"
        raise UsageError(
            f"tariff {tariff.name!r}: tariff {other.id} of that name is in force from {iso(other.valid_from_ms)} {until}: "
            "end that one first, or give another start"
        )
    made = kept.add(session, tariff)
    _mark(session, made, made.valid_from_ms, made.valid_to_ms)
    return made


def _mark(session: Session, tariff: Tariff, from_ms: int, to_ms: int | None) -> None:
    """Mark what a change of it touches: the GPUs of the profiles that name it."""
    for profile in sites.listing(session):
        if profile.tariff == tariff.name:
            mark(session, from_ms, to_ms, sites.gpus_of(session, profile))


def _view(tariff: Tariff) -> TariffView:
    prices = tariff.week or (tariff.usd_per_kwh or Decimal(0),)
    return TariffView(
        id=tariff.id,
        name=tariff.name,
        kind="time_of_use" if tariff.periods else "flat",
        time_zone=tariff.time_zone,
        usd_per_kwh=tariff.usd_per_kwh,
        periods=tuple(
            PeriodView(weekdays_text(one.weekdays), one.from_hour, one.to_hour, one.usd_per_kwh)
            for one in tariff.periods
        ),
        lowest_usd_per_kwh=min(prices),
        highest_usd_per_kwh=max(prices),
        valid_from=from_ms(tariff.valid_from_ms),
        valid_to=None if tariff.valid_to_ms is None else from_ms(tariff.valid_to_ms),
        note=tariff.note,
    )
