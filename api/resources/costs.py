"""What the GPUs cost, what of it was idle, and the energy and carbon behind it, by any key.

``cost_usd`` is rate × clock time from a GPU's first to its last sample (and the site's energy where the site pays
for power apart from the GPU's price). A gap in samples is unknown: neither idle nor free, so it is in the cost, and
``unseen_cost_usd`` says how much of it. A GPU without a price has no cost, never 0. Figures are sums of ledger lines,
whole micro-dollars each, so every grouping adds up to the same. Source: cost-model 1, 2 and 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated

from api.resources.by import AskedBy, By, Keys, key_fields, keys_of
from api.resources.columns import about
from api.resources.idle_sharing import IdlePolicy, Sharing
from api.resources.report import Question, Rows, report
from api.resources.report_filters import NO_FILTERS, Filters
from api.resources.report_parts import MONEY
from api.resources.report_sum import LineSum, ratio
from api.resources.scope import Scope
from core.money import from_micro
from core.units import HOUR_MS
from store.queries import ledger_months


@dataclass(frozen=True, slots=True)
class CostRow:
    """Money, energy money and carbon of one group."""

    key: Annotated[
        str | None, about("Group; null: what cannot be said (no known workload, user, engine, owner).")
    ]
    label: Annotated[str, about("The group for people; of two keys both.")]
    cost_usd: Annotated[
        Decimal | None,
        about(
            "Rate × clock time, gaps included, plus energy of priced time where energy_in_cost; null: no price."
        ),
    ]
    idle_cost_usd: Annotated[
        Decimal | None, about("Rate × (empty + parked) time; null: no price, or nothing could tell.")
    ]
    energy_cost_usd: Annotated[
        Decimal | None, about("Site energy × tariff; null: no tariff set, or no energy known.")
    ]
    carbon_g: Annotated[float | None, about("Site energy × grid carbon, gCO2e, location-based.")]
    price_basis: Annotated[str | None, about("Where the prices come from; several joined by a semicolon.")]
    priced_ratio: Annotated[float | None, about("Share of the time with samples that has a price.")]
    gpu_h: Annotated[float, about("GPU-hours with samples.")]
    unseen_cost_usd: Annotated[
        Decimal | None,
        about(
            "Part of cost_usd: rate × time without samples, which is neither idle nor free; null: no price."
        ),
    ]
    energy_in_cost: Annotated[
        bool, about("The site pays for power apart from the GPU's price, so cost_usd holds energy_cost_usd.")
    ]
    site_energy_kwh: Annotated[float | None, about("Energy at the GPU × (1 + host share) × PUE.")]
    energy_coverage_ratio: Annotated[float | None, about("Share of the group's time with known energy.")]
    carbon_code: Annotated[
        str | None,
        about("Row of the grid-carbon table; own: the site's own figure; several joined by a semicolon."),
    ]
    carbon_year: Annotated[int | None, about("Year of the grid figure; null where there are several.")]
    carbon_method: Annotated[str | None, about("Method of the grid figure; not comparable across methods.")]
    coverage_ratio: Annotated[float | None, about("Share of the clock time that samples vouch for.")]
    shared_usd: Annotated[
        Decimal,
        about(
            "Part of cost_usd: idle cost of GPUs that nobody owns, shared out to this group; below 0 where it was taken."
        ),
    ] = Decimal(0)
    corrected_usd: Annotated[
        Decimal | None,
        about("Part of cost_usd that was booked after its month was closed; null by activity: not told."),
    ] = None
    second_key: Annotated[str | None, about("Group by the second key; null: only one was asked for.")] = None
    keys: Annotated[Mapping[str, str | None], about("All, by the names of the keys.")] = field(
        default_factory=dict
    )


def row_of(key: tuple[str | None, ...], keys: Keys, one: LineSum) -> CostRow:
    """A group as a row."""
    grid = one.grid
    known_ms, covered_ms = one.whole("known_ms"), one.whole("covered_ms")
    return CostRow(
        **key_fields(key, keys),
        label=one.label,
        cost_usd=one.spend_usd,
        idle_cost_usd=one.usd("idle_cost_usd"),
        energy_cost_usd=one.usd("energy_usd"),
        carbon_g=one.carbon_g,
        price_basis=one.basis,
        priced_ratio=one.priced_ms / covered_ms if covered_ms > 0 else None,
        gpu_h=covered_ms / HOUR_MS,
        unseen_cost_usd=one.unseen_usd,
        energy_in_cost="billed_energy_usd" in one.amounts,
        site_energy_kwh=one.site_kwh,
        energy_coverage_ratio=ratio(one.whole("energy_covered_ms"), known_ms),
        carbon_code=grid.code,
        carbon_year=grid.year,
        carbon_method=grid.method,
        coverage_ratio=ratio(covered_ms, known_ms),
        shared_usd=from_micro(one.shared_usd),
        corrected_usd=None if By.ACTIVITY in keys else from_micro(one.corrected_usd),
    )


def rows(
    scope: Scope,
    by: AskedBy = By.GPU,
    filters: Filters = NO_FILTERS,
    *,
    idle: IdlePolicy = IdlePolicy.KEEP,
) -> list[CostRow]:
    """Costs by ``by``, ordered by key; the group that cannot be said comes last.

    Raises:
        UsageError: keys that are none, or by which idle time cannot be shared out.
    """
    return list(listing(scope, by, filters, idle=idle))


def listing(
    scope: Scope, by: AskedBy, filters: Filters = NO_FILTERS, *, idle: IdlePolicy = IdlePolicy.KEEP
) -> Sequence[CostRow]:
    """The same, each row made when it is looked at."""
    keys = keys_of(by)
    if idle is IdlePolicy.KEEP:
        found = report(scope, Question(keys, MONEY, money=True, filters=filters))
    else:
        sharing = Sharing(keys, idle)
        question = Question(keys, MONEY, money=True, filters=filters, extra=frozenset({"day"}))
        found = report(scope, question, sharing.note)
        sharing.apply(found)
    return Rows(found, lambda key, one: row_of(key, keys, one))


def months_closed(scope: Scope) -> list[str]:
    """Closed months of which the window holds a part, such as 2026-10."""
    window = scope.window
    closed = ledger_months.listing(scope.session)
    return [month.month for month in closed if month.from_ms < window.to_ms and month.to_ms > window.from_ms]
