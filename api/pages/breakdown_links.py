"""Addresses of a breakdown: its other groupings, what a figure is made of, the same figures as files."""

from collections.abc import Sequence
from typing import Final

from api.pages.breakdown import GROUPS, STEPS, Asked, steps_of
from api.pages.breakdown_rows import Bucket, Row
from api.pages.filters import OF_REPORTS
from api.pages.period import PeriodLink
from api.pages.view import Address, View
from api.resources.idle_sharing import SHARED_BY, IdlePolicy
from core.clock import from_ms, iso
from core.evidence import Window
from ledger.calendar import Calendar

IDLES: Final = (
    (IdlePolicy.KEEP, "keep apart"),
    (IdlePolicy.EVEN, "share evenly"),
    (IdlePolicy.PROPORTIONAL, "share by cost"),
)


def choices_of(address: Address, asked: Asked, window: Window) -> dict[str, tuple[PeriodLink, ...]]:
    """Links to choose by: ``by``, ``per``, ``idle`` (empty where idle cost cannot be shared out)."""
    gone: dict[str, None] = {"sort": None}
    allowed = steps_of(window)
    return {
        "by": tuple(
            PeriodLink(name, address.href(**{**gone, "by": key.value}), key is asked.by)
            for key, name in GROUPS
        ),
        "per": tuple(
            PeriodLink(name, address.href(per=key.value), key is asked.per)
            for key, name in STEPS
            if key in allowed
        ),
        "idle": tuple(
            PeriodLink(
                name, address.href(idle=None if key is IdlePolicy.KEEP else key.value), key is asked.idle
            )
            for key, name in IDLES
        )
        if asked.by in SHARED_BY
        else (),
    }


def links_of(address: Address, row: Row | None, bucket: Bucket | None, asked: Asked, path: str) -> str:
    """The page of what a figure is made of: of a group, or (None) of everything, in a stretch of the period, or all of it."""
    named: dict[str, str | Sequence[str] | None] = {"by": asked.by.value if row is not None else None}
    if row is not None:
        named |= row.parameters()
    if asked.idle is not IdlePolicy.KEEP and bucket is None and row is not None:
        named["idle"] = asked.idle.value
    named |= {name: address.every(name) for name in OF_REPORTS if address.every(name)}
    if bucket is None:
        return address.link(path, **named)
    return Address(path).href(since=_time(bucket.from_ms), until=_time(bucket.to_ms), **named)


def _time(at_ms: int) -> str:
    """A border of a stretch, short: there may be a thousand of them on a page."""
    return f"{from_ms(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def files_of(view: View, asked: Asked, resource: str) -> dict[str, str]:
    """Addresses of the same figures as files: ``csv`` by group, ``csv_time`` by group and time, ``focus`` of its days."""
    scope, address = view.scope, view.address
    span = {"since": iso(scope.window.from_ms), "until": iso(scope.window.to_ms), "format": "csv"}
    kept = {name: address.every(name) for name in OF_REPORTS if address.every(name)}
    idle = {} if asked.idle is IdlePolicy.KEEP else {"idle": asked.idle.value}
    rest = Address(f"/api/v1/{resource}")
    days = Calendar(scope.settings.accounting_time_zone).days(scope.window.from_ms, scope.window.to_ms)
    focus = ""
    if days:
        after = Calendar(scope.settings.accounting_time_zone).day_at(days[-1].to_ms)
        focus = Address("/api/v1/exports/focus").href(**{"from": days[0].key, "to": after.key})
    return {
        "csv": rest.href(by=asked.by.value, **span, **kept, **idle),
        "csv_time": rest.href(by=f"{asked.by.value},{asked.per.value}", **span, **kept, **idle),
        "focus": focus,
    }
