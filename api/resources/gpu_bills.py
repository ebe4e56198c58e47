"""Who paid for which GPU in a window: time, money and energy of each GPU by owner, from the ledger."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from advisor.waterfall import Base
from api.resources.report_parts import Need, Part, parts
from api.resources.scope import Scope
from core.evidence import Window
from core.money import from_micro
from core.ownership import Owner
from core.units import HOUR_MS, HOURS_PER_MONTH
from store.queries.ledger_sums import ALL, Only

AMOUNTS: Final = ("known_ms", "covered_ms", "cost_usd", "energy_mj")
MJ_PER_KWH: Final = 3.6e9


@dataclass(slots=True)
class Bill:
    """One owner's part of one GPU, or of several: milliseconds, micro-dollars, millijoules; None: unknown."""

    known_ms: int = 0
    covered_ms: int = 0
    cost_usd: int | None = None
    energy_mj: int | None = None

    def add(self, other: "Bill") -> None:
        """Count another part."""
        self.known_ms += other.known_ms
        self.covered_ms += other.covered_ms
        if other.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0) + other.cost_usd
        if other.energy_mj is not None:
            self.energy_mj = (self.energy_mj or 0) + other.energy_mj

    def month(self, window: Window) -> tuple[Base, float | None]:
        """What it costs, offers and draws in a month at the window's pace, where samples vouch for it; and its spend."""
        if window.hours <= 0 or self.known_ms <= 0:
            return Base(None, 0.0, None), None
        to_month = HOURS_PER_MONTH / window.hours
        seen = self.covered_ms / self.known_ms
        spent = None if self.cost_usd is None else float(from_micro(self.cost_usd)) * to_month
        energy = None if self.energy_mj is None else self.energy_mj / MJ_PER_KWH * to_month
        return Base(
            None if spent is None else spent * seen, self.covered_ms / HOUR_MS * to_month, energy
        ), spent


def covers(audience: Owner, owner: Owner | None) -> bool:
    """Whether what ``owner`` pays belongs to the audience: its team, and where it names a project that one alone."""
    return (
        owner is not None
        and owner.team == audience.team
        and (not audience.project or owner.project == audience.project)
    )


@dataclass(slots=True)
class GpuBills:
    """Every GPU's bill by owner; owner None: nobody, as idle time of GPUs that no rule claims."""

    window: Window
    _bills: dict[str, dict[Owner | None, Bill]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, gpu_uuid: str, owner: Owner | None, bill: Bill) -> None:
        """Count lines."""
        self._bills[gpu_uuid].setdefault(owner, Bill()).add(bill)

    @property
    def owners(self) -> set[Owner]:
        """Everybody who paid for anything."""
        return {owner for by_owner in self._bills.values() for owner in by_owner if owner is not None}

    @property
    def gpu_uuids(self) -> set[str]:
        """Every GPU of the window."""
        return set(self._bills)

    def whole(self, gpu_uuid: str) -> Bill:
        """All of a GPU, whoever paid."""
        return _sum(self._bills.get(gpu_uuid, {}).values())

    def of(self, gpu_uuid: str, audience: Owner) -> Bill:
        """What the audience paid of a GPU."""
        found = self._bills.get(gpu_uuid, {})
        return _sum(bill for owner, bill in found.items() if covers(audience, owner))

    def paid_by(self, audience: Owner) -> set[str]:
        """GPUs for which the audience paid anything."""
        return {uuid for uuid in self._bills if self.of(uuid, audience).known_ms > 0}

    def is_shared(self, gpu_uuids: Collection[str], audience: Owner) -> bool:
        """Somebody else paid for some of it."""
        return any(
            bill.known_ms > 0
            for uuid in gpu_uuids
            for owner, bill in self._bills.get(uuid, {}).items()
            if owner is not None and not covers(audience, owner)
        )

    def share(self, gpu_uuids: Collection[str], audience: Owner) -> float:
        """The audience's share of these GPUs: of their cost, or of their time where nothing has a price."""
        own, whole = Bill(), Bill()
        for uuid in gpu_uuids:
            own.add(self.of(uuid, audience))
            whole.add(self.whole(uuid))
        if whole.cost_usd and own.cost_usd is not None:
            return min(1.0, own.cost_usd / whole.cost_usd)
        return min(1.0, own.known_ms / whole.known_ms) if whole.known_ms > 0 else 0.0

    def has_most(self, gpu_uuids: Collection[str], audience: Owner) -> bool:
        """It paid for more than half of each of them."""
        return bool(gpu_uuids) and all(
            2 * self.of(uuid, audience).known_ms > self.whole(uuid).known_ms for uuid in gpu_uuids
        )


def _sum(bills: Iterable[Bill]) -> Bill:
    total = Bill()
    for bill in bills:
        total.add(bill)
    return total


def gpu_bills(scope: Scope, only: Only = ALL) -> GpuBills:
    """The bills of the scope's window."""
    found = GpuBills(scope.window)
    for part, amounts in parts(scope, Need(frozenset({"gpu", "owner"}), AMOUNTS, only)):
        if part.gpu is not None:
            found.add(part.gpu.gpu_uuid, _payer(part), _bill(amounts))
    return found


def _payer(part: Part) -> Owner | None:
    # The cost centre is no other owner: a team's rules may name several.
    return None if part.owner is None else Owner(part.owner.team, part.owner.project)


def _bill(amounts: dict[str, int | None]) -> Bill:
    return Bill(
        amounts["known_ms"] or 0, amounts["covered_ms"] or 0, amounts["cost_usd"], amounts["energy_mj"]
    )
