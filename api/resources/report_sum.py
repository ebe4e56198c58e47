"""Ledger lines of one group added up, in the whole numbers of the ledger; tables make their rows of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from api.resources.report_parts import SPENT_MS, SPENT_USD, Amounts, Part, added
from core.activity import IDLE, Activity
from core.money import from_micro
from core.samples import EnergyMethod
from core.units import HOUR_MS
from ledger.line import ACTIVITIES
from ledger.whole_shares import rounded_ratio
from store.queries.ledger_sums import Grid

MJ_PER_KWH: Final = 3.6e9
METHOD: Final = "energy_method"
"""The one amount that is no number."""
STEPS: Final = ("allocated_ms", "active_ms", "effective_ms", "effective_unknown_ms")


@dataclass(slots=True)
class LineSum:
    """Lines added up.

    Attributes:
        label: of the group, for people. amounts: by column of the ledger; what is unknown in all lines is not there.
        kinds: of the lines. priced_ms: covered time that has a price. rate_ms: known time by basis.
        grids: where carbon is from. gap_usd: GPU cost of gaps; corrected_usd, shared_usd: parts of the cost that were
            booked after a month closed, or shared out to this group.
        step_usd: GPU cost of time by step of the funnel, in micro-dollars.
    """

    label: str = ""
    amounts: Amounts = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    priced_ms: int = 0
    rate_ms: dict[str, int] = field(default_factory=dict)
    grids: dict[Grid, None] = field(default_factory=dict)
    gap_usd: int = 0
    paid_usd: int = 0
    corrected_usd: int = 0
    shared_usd: int = 0
    rate_steps: dict[tuple[int, str], int] = field(default_factory=dict)

    def add(self, part: Part, amounts: Mapping[str, int | None]) -> None:
        """Count lines."""
        mine = self.amounts
        if not mine:
            self.amounts = {name: value for name, value in amounts.items() if value is not None}
        else:
            for name, value in amounts.items():
                if value is not None:
                    known = mine.get(name)
                    if known is None:
                        mine[name] = value
                    else:
                        mine[name] = known + value if name != METHOD else added(name, known, value)
        if part.kind is not None:
            self.kinds.add(part.kind)
        if part.grid is not None:
            self.grids[part.grid] = None
        if part.rate is None:
            return
        paid = amounts.get("billed_energy_usd") or 0
        cost = amounts.get("cost_usd") or 0
        self.paid_usd += paid
        self.priced_ms += amounts.get("covered_ms") or 0
        basis, rate = part.rate.basis, part.rate.micro_usd_per_hour
        self.rate_ms[basis] = self.rate_ms.get(basis, 0) + (amounts.get("known_ms") or 0)
        if part.kind == "gap":
            self.gap_usd += cost
        if part.is_correction:
            self.corrected_usd += cost + paid
        for step in STEPS:
            ms = amounts.get(step)
            if ms:
                self.rate_steps[rate, step] = self.rate_steps.get((rate, step), 0) + ms

    def merge(self, other: "LineSum") -> None:
        """Count another sum's lines."""
        mine = self.amounts
        if mine:
            for name, value in other.amounts.items():
                known = mine.get(name)
                if known is None:
                    mine[name] = value
                else:
                    mine[name] = known + value if name != METHOD else added(name, known, value)
        else:
            self.amounts = dict(other.amounts)
        self.kinds |= other.kinds
        self.grids |= other.grids
        self.priced_ms += other.priced_ms
        for basis, ms in other.rate_ms.items():
            self.rate_ms[basis] = self.rate_ms.get(basis, 0) + ms
        for key, ms in other.rate_steps.items():
            self.rate_steps[key] = self.rate_steps.get(key, 0) + ms
        self.gap_usd += other.gap_usd
        self.paid_usd += other.paid_usd
        self.corrected_usd += other.corrected_usd
        self.shared_usd += other.shared_usd

    def whole(self, name: str) -> int:
        """An amount that is always known."""
        return self.amounts.get(name) or 0

    def usd(self, name: str) -> Decimal | None:
        """An amount of money; None: unknown."""
        value = self.amounts.get(name)
        return None if value is None else from_micro(value)

    def hours(self, name: str) -> float:
        """GPU-hours."""
        return self.whole(name) / HOUR_MS

    @property
    def gap_ms(self) -> int:
        """Known time without samples."""
        return self.whole("known_ms") - self.whole("covered_ms")

    @property
    def named_ms(self) -> int:
        """Time whose activity could be named."""
        return sum(self.whole(name) for name in SPENT_MS) - self.whole("unknown_ms")

    @property
    def is_priced(self) -> bool:
        """Some of it has a price."""
        return "cost_usd" in self.amounts

    @property
    def spend_usd(self) -> Decimal | None:
        """GPU cost, gaps included, and the energy of priced time where the site pays for power; None: unpriced."""
        if not self.is_priced:
            return None
        return from_micro(self.whole("cost_usd") + self.paid_usd)

    @property
    def unseen_usd(self) -> Decimal | None:
        """GPU cost of gaps; None when nothing is priced."""
        return from_micro(self.gap_usd) if self.is_priced else None

    @property
    def carbon_g(self) -> float | None:
        """GCO2e of site energy."""
        micro = self.amounts.get("carbon_ug")
        return None if micro is None else micro / 1e6

    @property
    def site_kwh(self) -> float | None:
        """Energy at the GPU × (1 + host share) × PUE."""
        mj = self.amounts.get("site_energy_mj")
        return None if mj is None else mj / MJ_PER_KWH

    @property
    def energy_j(self) -> float | None:
        """Energy at the GPUs."""
        mj = self.amounts.get("energy_mj")
        return None if mj is None else mj / 1000

    @property
    def method(self) -> EnergyMethod | None:
        """How its energy is known."""
        method = self.amounts.get(METHOD)
        return None if method is None else EnergyMethod(method)

    @property
    def basis(self) -> str | None:
        """Bases of the prices, the one with most time first; what corrections took back is none."""
        ordered = sorted(self.rate_ms, key=lambda basis: (-self.rate_ms[basis], basis))
        return "; ".join(basis for basis in ordered if self.rate_ms[basis] > 0) or None

    @property
    def grid(self) -> Grid:
        """Where its carbon is from; a year only where all agree."""
        known = [grid for grid in self.grids if grid.code is not None]
        years = {grid.year for grid in known}
        return Grid(
            _joined(grid.code for grid in known),
            years.pop() if len(years) == 1 else None,
            _joined(grid.method for grid in known),
        )

    def step_usd(self, step: str) -> Decimal | None:
        """GPU cost of the time in a step of the funnel: each rate's time × rate; None when nothing is priced."""
        if not self.is_priced:
            return None
        found = [
            rounded_ratio(rate * ms, HOUR_MS) for (rate, of), ms in self.rate_steps.items() if of == step
        ]
        return from_micro(sum(found))

    def idle_part_usd(self, *activities: Activity) -> Decimal | None:
        """GPU cost of time in these activities (of ``core.activity.IDLE``); None where ``idle_cost_usd`` is."""
        if "idle_cost_usd" not in self.amounts:
            return None
        return from_micro(sum(self.whole(f"{activity.value}_usd") for activity in activities or IDLE))

    def seconds_by_activity(self) -> dict[Activity, float]:
        """GPU-seconds with samples; those of a gap are in none."""
        found = {a: self.whole(name) for a, name in zip(ACTIVITIES, SPENT_MS, strict=True)}
        found[Activity.UNKNOWN] -= self.gap_ms
        return {activity: ms / 1000 for activity, ms in found.items() if ms > 0}

    def usd_by_activity(self) -> dict[Activity, Decimal]:
        """GPU cost by activity; a gap's is unknown."""
        found = {a: self.amounts.get(name) for a, name in zip(ACTIVITIES, SPENT_USD, strict=True)}
        return {activity: from_micro(micro) for activity, micro in found.items() if micro}


def merged(sums: Iterable[LineSum]) -> LineSum:
    """Several groups as one."""
    whole = LineSum()
    for one in sums:
        whole.merge(one)
    return whole


def _joined(texts: Iterable[str | None]) -> str | None:
    return "; ".join(dict.fromkeys(text for text in texts if text)) or None


def ratio(part: int, whole: int) -> float | None:
    """A share of 0–1; None of nothing."""
    return min(1.0, part / whole) if whole > 0 else None


Sums = dict[tuple[str | None, ...], LineSum]
"""Groups by their keys, in the order of rows."""


def in_order(keys: Sequence[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    """Keys in text order, None last: the order that paging counts on."""
    return sorted(keys, key=lambda key: [(one is None, one or "") for one in key])


def by_first_key(found: Sums) -> Sums:
    """Groups by two keys as groups by the first one."""
    sums: Sums = {}
    for (key, _), one in found.items():
        if (key,) not in sums:
            sums[key,] = LineSum(one.label.rpartition(" · ")[0])
        sums[key,].merge(one)
    return sums
