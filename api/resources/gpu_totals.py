"""What each GPU's time of a window cost: stored days added up by the database, the rest priced on the fly."""

from dataclasses import dataclass, field, replace
from decimal import Decimal

from api.resources.ledger_reading import lines_on_the_fly, reading
from api.resources.report_sum import ratio
from api.resources.scope import Scope
from core.money import from_micro
from core.ownership import Owner
from core.units import J_PER_KWH
from ledger.line import EMPTY, PARKED
from store.queries import ledger_sums
from store.queries.gpu_totals import GpuPart, gpu_parts


@dataclass(slots=True)
class GpuTotal:
    """One GPU's window, in the whole numbers of the ledger; money None: unpriced.

    Attributes:
        known_ms: time between its first and last sample, of it ``covered_ms`` with samples.
        owner_ms: known time by who pays; None: nobody.
    """

    known_ms: int = 0
    covered_ms: int = 0
    idle_ms: int = 0
    active_ms: int = 0
    energy_mj: int | None = None
    cost_micro: int | None = None
    idle_micro: int | None = None
    paid_micro: int = 0
    owner_ms: dict[Owner | None, int] = field(default_factory=dict)

    def add(self, part: GpuPart, owner: Owner | None) -> None:
        """Count lines that one owner pays for."""
        self.known_ms += part.known_ms
        self.covered_ms += part.covered_ms
        self.idle_ms += part.empty_ms + part.parked_ms
        self.active_ms += part.active_ms
        if part.energy_mj is not None:
            self.energy_mj = (self.energy_mj or 0) + part.energy_mj
        if part.cost_usd is not None:
            self.cost_micro = (self.cost_micro or 0) + part.cost_usd
        if part.idle_cost_usd is not None:
            self.idle_micro = (self.idle_micro or 0) + part.idle_cost_usd
        self.paid_micro += part.paid_usd or 0
        self.owner_ms[owner] = self.owner_ms.get(owner, 0) + part.known_ms

    @property
    def cost_usd(self) -> Decimal | None:
        """GPU cost of clock time, gaps included, and energy where the site pays for power."""
        return None if self.cost_micro is None else from_micro(self.cost_micro + self.paid_micro)

    @property
    def idle_usd(self) -> Decimal | None:
        """Of it of empty and parked time, at the GPU's price."""
        return None if self.idle_micro is None else from_micro(self.idle_micro)

    @property
    def coverage_ratio(self) -> float | None:
        """Share of its known time for which samples vouch."""
        return ratio(self.covered_ms, self.known_ms)

    @property
    def energy_kwh(self) -> float | None:
        """Energy at the GPU."""
        return None if self.energy_mj is None else self.energy_mj / 1000 / J_PER_KWH

    @property
    def owner(self) -> Owner | None:
        """Who pays for most of its time."""
        if len(self.owner_ms) == 1:
            return next(iter(self.owner_ms))
        return max(self.owner_ms, key=lambda one: self.owner_ms[one], default=None)


def gpu_totals(scope: Scope, gpu_ids: frozenset[int] | None = None) -> dict[int, GpuTotal]:
    """By key every GPU (or those of these keys) that was known in the window."""
    found = reading(scope)
    if gpu_ids is not None:
        kept = [
            (start, end, gpu_ids if ids is None else ids & gpu_ids) for start, end, ids in found.on_the_fly
        ]
        found = replace(found, on_the_fly=tuple(kept))
    totals: dict[int, GpuTotal] = {}
    if found.stored is not None:
        owners = ledger_sums.owners(scope.session)
        for part in gpu_parts(scope.session, found.stored, found.without, gpu_ids):
            totals.setdefault(part.gpu_id, GpuTotal()).add(part, owners.get(part.owner_id))
    for one in lines_on_the_fly(scope, found):
        line = one.line
        idle = {number: ms for number, ms, _ in line.spent}
        part = GpuPart(
            one.gpu.id,
            0,
            line.known_ms,
            line.covered_ms,
            idle.get(EMPTY, 0),
            idle.get(PARKED, 0),
            line.active_ms,
            line.energy_mj,
            line.cost_usd,
            line.idle_cost_usd,
            None if one.price is None else line.billed_energy_usd,
        )
        totals.setdefault(one.gpu.id, GpuTotal()).add(part, one.owner)
    return totals
