"""What lines of the ledger add up to, whatever they have in common."""

from decimal import Decimal

from sqlalchemy.orm import Mapped


class LedgerAmounts:
    """Columns of ``ledger_day`` that are added up, named and meant as there; NULL: unknown in all lines."""

    known_ms: Mapped[int]
    covered_ms: Mapped[int]
    allocated_ms: Mapped[int]
    active_ms: Mapped[int]
    effective_ms: Mapped[int]
    effective_unknown_ms: Mapped[int]
    energy_mj: Mapped[int | None]
    energy_covered_ms: Mapped[int]
    energy_method: Mapped[str | None]
    site_energy_mj: Mapped[int | None]
    cost_usd: Mapped[Decimal | None]
    idle_cost_usd: Mapped[Decimal | None]
    energy_usd: Mapped[Decimal | None]
    billed_energy_usd: Mapped[Decimal | None]
    carbon_ug: Mapped[int | None]
    empty_ms: Mapped[int]
    parked_ms: Mapped[int]
    starved_ms: Mapped[int]
    spinning_ms: Mapped[int]
    memory_bound_ms: Mapped[int]
    compute_bound_ms: Mapped[int]
    mixed_ms: Mapped[int]
    busy_ms: Mapped[int]
    unknown_ms: Mapped[int]
    empty_usd: Mapped[Decimal | None]
    parked_usd: Mapped[Decimal | None]
    starved_usd: Mapped[Decimal | None]
    spinning_usd: Mapped[Decimal | None]
    memory_bound_usd: Mapped[Decimal | None]
    compute_bound_usd: Mapped[Decimal | None]
    mixed_usd: Mapped[Decimal | None]
    busy_usd: Mapped[Decimal | None]
    unknown_usd: Mapped[Decimal | None]
