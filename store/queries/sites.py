"""The user's site profiles: written, listed, ended, removed. Which one gives a figure is the ledger's to say."""

from dataclasses import fields, replace
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import StoreError
from core.user_site import Profile, Scope
from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.models.site import SiteRow

_FIELDS: Final = tuple(field.name for field in fields(Profile))
_EMPTY_IS_NULL: Final = ("scope_value", "note")


def listing(session: Session) -> list[Profile]:
    """Every profile, in the order they were given."""
    return [_profile(row) for row in session.scalars(select(SiteRow).order_by(SiteRow.id))]


def get(session: Session, site_id: int) -> Profile | None:
    """One profile; None when there is none of that key."""
    row = session.get(SiteRow, site_id)
    return None if row is None else _profile(row)


def add(session: Session, given: Profile) -> Profile:
    """Keep a profile; its ``id`` is new."""
    values = {name: getattr(given, name) for name in _FIELDS if name != "id"}
    row = SiteRow(**values | {name: values[name] or None for name in _EMPTY_IS_NULL})
    session.add(row)
    session.flush()
    return replace(given, id=row.id)


def end(session: Session, site_id: int, valid_to_ms: int) -> None:
    """Let a profile end. Raises ``StoreError`` when there is none of that key."""
    row = session.get(SiteRow, site_id)
    if row is None:
        raise StoreError(f"there is no site profile {site_id}: list them for their numbers")
    row.valid_to_ms = valid_to_ms
    session.flush()


def delete(session: Session, site_id: int) -> bool:
    """Remove a profile, as if it had never been given; False when there is none of that key."""
    row = session.get(SiteRow, site_id)
    if row is None:
        return False
    session.delete(row)
    session.flush()
    return True


def gpus_of(session: Session, profile: Profile) -> list[str] | None:
    """UUIDs of the GPUs that it may be for; None: all."""
    if profile.scope_kind == Scope.ALL:
        return None
    column = HostRow.name if profile.scope_kind == Scope.HOST else HostRow.cluster
    statement = select(GpuRow.gpu_uuid).join(HostRow, HostRow.id == GpuRow.host_id)
    return list(session.scalars(statement.where(column == profile.scope_value)))


def _profile(row: SiteRow) -> Profile:
    values = {name: getattr(row, name) for name in _FIELDS}
    return Profile(**values | {name: values[name] or "" for name in _EMPTY_IS_NULL})
