"""Which GPUs can be emptied by moving what runs on them onto others that stay: first-fit decreasing with conflicts.

Tenants are taken from the largest to the smallest (the larger of memory share and peak). Each goes to the first card
that stays, on its own host first, where it fits; else its own card stays, and it with it. A card that nobody stays on
is free. First-fit decreasing needs at most 11/9 of the fewest cards, plus one (Dósa 2007), in one dimension.

Fits means: memory sums below 0.85 of the card (R21); at every hour of the week the peaks add up to at most
``activity_ratio``; where peaks could exceed it at all, they do not come together (correlation below 0.5, R21); no two of
one failure domain on a card or a host.

Each tenant is offered at most ``PROBES`` cards, so that time grows with the number of tenants and not with its square.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

WEEK_H: Final = 168
MEMORY_RATIO: Final = 0.85
"""Of a card that its tenants may hold together (R21)."""
ACTIVITY_RATIO: Final = 0.7
"""Of a card that its tenants may be active together, by the highest hourly means: an hour's mean hides its minutes."""
CORRELATION: Final = 0.5
"""From here on peaks come together (R21)."""
PROBES: Final = 32
MOST_TENANTS: Final = 7
"""As many as MIG slices."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """What runs on one card and moves as one.

    Attributes:
        card: where it runs now. host: of that card. kind: model of the card; tenants move among equal cards only,
            because activity and memory are told as those of that card.
        card_bytes: memory of the card. memory_bytes: it needs.
        week: highest activity at each hour of the week, 168 values 0–1.
        apart: tenants with the same value stay on different cards and hosts; None: no such tie.
    """

    card: str
    host: str
    kind: str
    card_bytes: float
    memory_bytes: float
    week: Sequence[float]
    apart: Hashable | None = None

    @property
    def peak_ratio(self) -> float:
        """Its highest hour."""
        return max(self.week)

    @property
    def size(self) -> float:
        """The larger of memory share and peak."""
        return max(self.memory_bytes / self.card_bytes, self.peak_ratio)


@dataclass(slots=True, eq=False)
class Stay:
    """A card that stays, with its first tenant and those that moved in."""

    tenants: list[Tenant]
    memory_bytes: float
    week: list[float]
    peaks: float
    apart: set[Hashable] = field(default_factory=set)

    @property
    def card(self) -> str:
        """Its UUID: that of its first tenant's card."""
        return self.tenants[0].card


@dataclass(frozen=True, slots=True)
class Caps:
    """How full a card may get."""

    memory_ratio: float = MEMORY_RATIO
    activity_ratio: float = ACTIVITY_RATIO
    correlation: float = CORRELATION
    most_tenants: int = MOST_TENANTS


@dataclass(frozen=True, slots=True)
class Plan:
    """Cards that stay with more than one tenant, and those that fall free, each with the card its tenant goes to."""

    shared: tuple[Stay, ...]
    freed: dict[str, str]


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's r over the hours of the week; 1 where one of them is flat: what is always there comes together."""
    count = len(one)
    mean_a, mean_b = sum(one) / count, sum(other) / count
    spread_a = sum((a - mean_a) ** 2 for a in one)
    spread_b = sum((b - mean_b) ** 2 for b in other)
    if min(spread_a, spread_b) <= 1e-12:
        return 1.0
    both = sum((a - mean_a) * (b - mean_b) for a, b in zip(one, other, strict=True))
    return max(-1.0, min(1.0, both / sqrt(spread_a * spread_b)))


def pack(tenants: Iterable[Tenant], caps: Caps | None = None) -> Plan | None:
    """A plan; None when there is nothing to pack: fewer than two tenants, or no card falls free.

    Raises:
        ValueError: a tenant without a week of 168 hours, or two tenants on one card.
    """
    limits = caps or Caps()
    ordered = sorted(tenants, key=lambda each: (-each.size, each.card))
    _check(ordered)
    by_host: dict[tuple[str, str], list[Stay]] = defaultdict(list)
    by_kind: dict[str, list[Stay]] = defaultdict(list)
    apart_on_host = {(each.host, each.apart): 0 for each in ordered}
    for each in ordered:
        apart_on_host[each.host, each.apart] += 1
    stays: list[Stay] = []
    freed: dict[str, str] = {}
    for each in ordered:
        for stay in _offered(each, by_host, by_kind):
            if _fits(each, stay, limits) and _keeps_apart(each, stay, apart_on_host):
                _add(each, stay)
                apart_on_host[each.host, each.apart] -= 1
                key = stay.tenants[0].host, each.apart
                apart_on_host[key] = apart_on_host.get(key, 0) + 1
                freed[each.card] = stay.card
                if _is_full(stay, limits):
                    by_host[stay.tenants[0].host, each.kind].remove(stay)
                    by_kind[each.kind].remove(stay)
                break
        else:
            stay = Stay([each], each.memory_bytes, list(each.week), each.peak_ratio, {each.apart} - {None})
            stays.append(stay)
            if not _is_full(stay, limits):
                by_host[each.host, each.kind].append(stay)
                by_kind[each.kind].append(stay)
    if not freed:
        return None
    return Plan(tuple(stay for stay in stays if len(stay.tenants) > 1), freed)


def _check(tenants: Sequence[Tenant]) -> None:
    seen: set[str] = set()
    for each in tenants:
        if len(each.week) != WEEK_H:
            raise ValueError(f"tenant of {each.card}: {len(each.week)} hours of the week: give {WEEK_H}")
        if each.card in seen:
            raise ValueError(f"two tenants of {each.card}: add them up first")
        seen.add(each.card)


def _offered(
    tenant: Tenant, by_host: dict[tuple[str, str], list[Stay]], by_kind: dict[str, list[Stay]]
) -> Iterator[Stay]:
    """Cards of its own host first, then the ones opened last (the smallest tenants, with most room)."""
    near = by_host.get((tenant.host, tenant.kind), [])[-PROBES:]
    yield from list(near)
    for stay in by_kind.get(tenant.kind, [])[: -PROBES - 1 : -1]:
        if stay.tenants[0].host != tenant.host:
            yield stay


def _fits(tenant: Tenant, stay: Stay, caps: Caps) -> bool:
    if stay.memory_bytes + tenant.memory_bytes >= caps.memory_ratio * tenant.card_bytes:
        return False
    if stay.peaks + tenant.peak_ratio <= caps.activity_ratio:
        return True
    return (
        all(a + b <= caps.activity_ratio for a, b in zip(stay.week, tenant.week, strict=True))
        and correlation(stay.week, tenant.week) < caps.correlation
    )


def _keeps_apart(tenant: Tenant, stay: Stay, on_host: dict[tuple[str, Hashable | None], int]) -> bool:
    """Not with its like on a card; nor on a host, where it is not there already."""
    if tenant.apart is None:
        return True
    host = stay.tenants[0].host
    return tenant.apart not in stay.apart and (
        host == tenant.host or not on_host.get((host, tenant.apart), 0)
    )


def _add(tenant: Tenant, stay: Stay) -> None:
    stay.tenants.append(tenant)
    stay.memory_bytes += tenant.memory_bytes
    stay.week = [a + b for a, b in zip(stay.week, tenant.week, strict=True)]
    stay.peaks += tenant.peak_ratio
    if tenant.apart is not None:
        stay.apart.add(tenant.apart)


def _is_full(stay: Stay, caps: Caps) -> bool:
    first = stay.tenants[0]
    return (
        len(stay.tenants) >= caps.most_tenants
        or stay.memory_bytes >= caps.memory_ratio * first.card_bytes
        or min(stay.week) >= caps.activity_ratio
    )
