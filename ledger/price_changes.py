"""What becomes of the prices there are when others are given: two for the same thing at the same time are refused.

Which of them was meant cannot be told, so both are named, and ending the older one where the new one starts is offered.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from core.clock import from_ms
from core.user_price import UserPrice
from ledger.prices import Key, plain


@dataclass(slots=True)
class Changes:
    """What to do.

    Attributes:
        add: prices to keep. ends: end of prices that are superseded, by id. same: given prices that are there already.
        refused: place among those given, and why.
    """

    add: list[UserPrice] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    same: list[UserPrice] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)


def changes(
    existing: Iterable[UserPrice], given: Sequence[UserPrice], *, supersede: bool, skip_same: bool = False
) -> Changes:
    """What given prices make of those there are.

    Args:
        supersede: end an older price where a new one for the same thing starts, also among those given: a list of
            starts alone is a history.
        skip_same: one that is there as it is given is left alone, not refused.
    """
    found = Changes()
    if supersede:
        given = _chained(given)
    added: dict[int, UserPrice] = {}
    by_key: dict[Key, list[UserPrice]] = defaultdict(list)
    for price in existing:
        by_key[price.key].append(price)
    for place in sorted(range(len(given)), key=lambda at: given[at].valid_from_ms):
        price = given[place]
        there = by_key[price.key]
        if skip_same and any(_is_same(other, price) for other in there):
            found.same.append(price)
            continue
        clashing = [other for other in there if other.overlaps(price)]
        why = next((why for other in clashing if (why := _refusal(other, price, supersede=supersede))), None)
        if why is not None:
            found.refused.append((place, why))
            continue
        for other in clashing:
            found.ends[other.id] = price.valid_from_ms
            there[there.index(other)] = replace(other, valid_to_ms=price.valid_from_ms)
        there.append(price)
        added[place] = price
    found.add = [added[place] for place in sorted(added)]
    found.refused.sort()
    return found


def _chained(given: Sequence[UserPrice]) -> list[UserPrice]:
    """Given prices, each ended where the next for the same thing starts; what was paid upfront stays as it is."""
    found = list(given)
    newest: dict[Key, int] = {}
    for place in sorted(range(len(given)), key=lambda at: given[at].valid_from_ms):
        price = given[place]
        before = newest.get(price.key)
        if before is not None:
            other = found[before]
            if other.upfront is None and other.valid_from_ms < price.valid_from_ms and other.overlaps(price):
                found[before] = replace(other, valid_to_ms=price.valid_from_ms)
        newest[price.key] = place
    return found


def _is_same(other: UserPrice, price: UserPrice) -> bool:
    return other.valid_from_ms == price.valid_from_ms and replace(other, id=0) == replace(price, id=0)


def described(price: UserPrice) -> str:
    """A price for people: ``host h1, 2.5 EUR, from 2026-09-01``."""
    since = (
        "since ever" if price.valid_from_ms <= 0 else f"from {from_ms(price.valid_from_ms):%Y-%m-%d %H:%M}"
    )
    until = "" if price.valid_to_ms is None else f" to {from_ms(price.valid_to_ms):%Y-%m-%d %H:%M}"
    return f"{price.what}, {plain(price.amount_per_gpu_hour)} {price.currency}, {since}{until}"


def _refusal(other: UserPrice, price: UserPrice, *, supersede: bool) -> str | None:
    """Why two prices that overlap cannot stand together; None where the older one is ended."""
    if not other.id:
        return f"{described(price)}: overlaps {described(other)}, given with it: give only one of the two"
    if not supersede:
        return (
            f"{described(price)}: overlaps price {other.id} ({described(other)}): "
            "end the older one first, or replace it (--replace, over REST supersede=true), which ends it where the new one starts"
        )
    if other.valid_from_ms >= price.valid_from_ms:
        return (
            f"{described(price)}: price {other.id} ({described(other)}) does not start before it and cannot be ended at "
            "its start: remove it, or give other times"
        )
    return f"{described(price)}: {prepaid(other)}" if other.upfront is not None else None


def prepaid(price: UserPrice) -> str:
    """Why a price with a prepayment does not end early."""
    return (
        f"price {price.id} ({described(price)}) was paid upfront for its whole term and does not end early: "
        "remove it, and give it again with the term it really has"
    )
