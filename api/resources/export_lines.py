"""The ledger's lines as a plain table: what an export to FOCUS is made from, with unpriced ones, under our own names."""

from collections.abc import Iterator, Sequence

from core.clock import iso
from core.money import from_micro, text
from ledger.focus import Amounts, Charge

COLUMNS = (
    *("from_at", "to_at", "gpu_uuid", "host", "gpu_model", "cluster", "kind", "workload_kind", "workload"),
    *(
        "user",
        "owner",
        "cost_centre",
        "share_method",
        "usd_per_gpu_hour",
        "price_basis",
        "known_h",
        "covered_h",
    ),
    *("allocated_h", "active_h", "effective_h", "cost_usd", "idle_cost_usd", "energy_kwh", "site_energy_kwh"),
    *("energy_cost_usd", "billed_energy_cost_usd", "carbon_g", "correction_id"),
)
"""Amounts are whole in the ledger; what is unknown or unpriced is empty."""
MS_PER_H = 3_600_000
MJ_PER_KWH = 3_600_000_000


def line_cells(charges: Iterator[Charge]) -> Iterator[Sequence[str | int | float | None]]:
    """Values of each line, in the order of ``COLUMNS``."""
    for charge in charges:
        resource, workload, owner, price = charge.resource, charge.workload, charge.owner, charge.price
        amounts = charge.amounts
        yield (
            iso(charge.from_ms),
            iso(charge.to_ms),
            resource.resource_id,
            resource.host,
            resource.model,
            resource.cluster,
            charge.kind,
            None if workload is None else workload.kind,
            None if workload is None else workload.name,
            None if workload is None else workload.user,
            None if owner is None else owner.name,
            None if owner is None else owner.cost_centre or None,
            amounts.share_method,
            None if price is None else text(price.usd_per_gpu_hour),
            None if price is None else price.basis,
            *_figures(amounts),
            None if charge.correction is None else charge.correction[0],
        )


def _figures(amounts: Amounts) -> tuple[str | float | None, ...]:
    unknown = amounts.effective_unknown_ms > 0
    return (
        amounts.known_ms / MS_PER_H,
        amounts.covered_ms / MS_PER_H,
        amounts.allocated_ms / MS_PER_H,
        amounts.active_ms / MS_PER_H,
        None if unknown else amounts.effective_ms / MS_PER_H,
        _usd(amounts.cost_usd),
        _usd(amounts.idle_cost_usd),
        None if amounts.energy_mj is None else amounts.energy_mj / MJ_PER_KWH,
        None if amounts.site_energy_mj is None else amounts.site_energy_mj / MJ_PER_KWH,
        _usd(amounts.energy_usd),
        _usd(amounts.billed_energy_usd),
        None if amounts.carbon_ug is None else amounts.carbon_ug / 1e6,
    )


def _usd(micro: int | None) -> str | None:
    return None if micro is None else text(from_micro(micro))
