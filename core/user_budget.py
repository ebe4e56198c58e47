"""A budget as the user gives it: how much a part of the fleet may cost a month. Standard library only."""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

LARGEST: Final = Decimal(1_000_000_000)
"""A month; a larger one is a slip."""
_MONTH: Final = re.compile(r"[1-9]\d{3}-(0[1-9]|1[0-2])")


class BudgetScope(StrEnum):
    """What a budget is for: everything, what an owner rule gives to a name, or what runs on certain hosts."""

    ALL = "all"
    TEAM = "team"
    PROJECT = "project"
    COST_CENTRE = "cost_centre"
    LABEL = "label"
    CLUSTER = "cluster"
    HOST = "host"


OWNED: Final = frozenset({BudgetScope.TEAM, BudgetScope.PROJECT, BudgetScope.COST_CENTRE})
"""Scopes that owner rules fill; the others are hosts."""


@dataclass(frozen=True, slots=True)
class Budget:
    """So many dollars a month for a part of the fleet.

    Attributes:
        id: of the row in the store; 0 where it is not stored yet. name: for people.
        scope_kind: a ``BudgetScope``. scope_value: which; ``key=value`` of a host label; empty for ``all``.
        amount_usd: for each month.
        from_month, to_month: first and last month of it, such as ``2026-10`` (to_month None: still).
        note: the user's own words.
    """

    id: int
    name: str
    scope_kind: str
    scope_value: str
    amount_usd: Decimal
    from_month: str
    to_month: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a budget that could not be watched. Raises ``ValueError`` with field, value and what to do."""
        if not self.name.strip() or self.name != self.name.strip():
            raise ValueError(f"name is {self.name!r}: give a name, without spaces around it")
        if self.scope_kind not in list(BudgetScope):
            raise ValueError(f"scope_kind is {self.scope_kind!r}: use one of {', '.join(BudgetScope)}")
        if (self.scope_kind == BudgetScope.ALL) != (self.scope_value == ""):
            wanted = "leave it out" if self.scope_kind == BudgetScope.ALL else f"say which {self.scope_kind}"
            raise ValueError(
                f"scope_value is {self.scope_value!r} for scope_kind {self.scope_kind}: {wanted}"
            )
        key, mark, value = self.scope_value.partition("=")
        if self.scope_kind == BudgetScope.LABEL and not (key and mark and value):
            raise ValueError(f"scope_value is {self.scope_value!r}: give a host label as key=value")
        if not self.amount_usd.is_finite() or not 0 <= self.amount_usd <= LARGEST:
            raise ValueError(f"amount_usd is {self.amount_usd}: give 0 or more, at most {LARGEST:,}")
        checked("from_month", self.from_month)
        if self.to_month is not None and checked("to_month", self.to_month) < self.from_month:
            raise ValueError(
                f"to_month is {self.to_month!r}, before from_month {self.from_month!r}: give that month or a later one"
            )

    def holds_in(self, month: str) -> bool:
        """It is in force then."""
        return self.from_month <= month and (self.to_month is None or month <= self.to_month)

    def overlaps(self, other: "Budget") -> bool:
        """Some month is in both."""
        return (other.to_month is None or self.from_month <= other.to_month) and (
            self.to_month is None or other.from_month <= self.to_month
        )


def checked(name: str, month: str) -> str:
    """A month as it is written. Raises ``ValueError`` that names the field."""
    if _MONTH.fullmatch(month) is None:
        raise ValueError(f"{name} is {month!r}: give a month such as 2026-10")
    return month


def month_before(month: str) -> str:
    """The month before ``2026-01`` is ``2025-12``."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year - (number == 1):04d}-{(number - 2) % 12 + 1:02d}"
