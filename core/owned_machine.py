"""A machine that is owned: what its hours cost and at which use it beats renting. Shared by ledger and advisor.

Formulas: ``core.breakeven``; source: cost-model 2. A machine that is up for a share of the time only serves that share
of the hours in which it is wanted; the rest is rented, so availability lowers the use, and nothing else.
"""

from dataclasses import dataclass
from typing import Self

from core import breakeven
from core.evidence import Site
from core.units import HOURS_PER_YEAR


@dataclass(frozen=True, slots=True)
class OwnedMachine:
    """A machine with all of its costs; plain floats in dollars, hours and ratios.

    Attributes:
        capex_usd: purchase. residual_ratio: resale over purchase. cost_of_capital_ratio: a year. life_years: in use.
        gpu_count: GPUs of it. opex_usd_per_year: all that use does not change, capital apart.
        variable_usd_per_h: what an hour of work adds, whole machine. availability_ratio: share of time in which it is up.
    """

    capex_usd: float
    residual_ratio: float
    cost_of_capital_ratio: float
    life_years: float
    gpu_count: int
    opex_usd_per_year: float
    variable_usd_per_h: float
    availability_ratio: float = 1.0

    @classmethod
    def of_site(cls, site: Site) -> Self | None:
        """The machine of the site's settings; None where its purchase or its electricity has no price."""
        capex, tariff = site.own_capex_usd, site.tariff_usd_per_kwh
        if capex is None or tariff is None:
            return None
        idle_usd_per_h = breakeven.energy_usd_per_h(site.own_idle_kw, site.pue, tariff)
        return cls(
            capex_usd=capex,
            residual_ratio=site.own_residual_ratio,
            cost_of_capital_ratio=site.own_cost_of_capital_ratio,
            life_years=site.own_life_years,
            gpu_count=site.own_gpu_count,
            opex_usd_per_year=site.own_maintenance_ratio * capex
            + site.own_staff_usd_per_year
            + idle_usd_per_h * HOURS_PER_YEAR,
            variable_usd_per_h=breakeven.energy_usd_per_h(
                site.own_active_kw - site.own_idle_kw, site.pue, tariff
            ),
        )

    @property
    def capital_usd_per_year(self) -> float:
        """Purchase less residual, as equal yearly payments."""
        return breakeven.capex_per_year_usd(
            self.capex_usd, self.residual_ratio * self.capex_usd, self.cost_of_capital_ratio, self.life_years
        )

    @property
    def fixed_usd_per_year(self) -> float:
        """All cost that use does not change."""
        return self.capital_usd_per_year + self.opex_usd_per_year

    def own_usd_per_gpu_h(self, use: float) -> float | None:
        """One GPU-hour that it served, when it is wanted in a share ``use`` of all hours; None when never."""
        return breakeven.own_usd_per_gpu_h(
            self.fixed_usd_per_year, self.variable_usd_per_h, self.gpu_count, use * self.availability_ratio
        )

    def breakeven_utilisation(self, rent_usd_per_gpu_h: float) -> float | None:
        """Use above which owning is cheaper; above 1 there is none, None when an hour of work costs more than its rent."""
        found = breakeven.breakeven_utilisation(
            self.fixed_usd_per_year, self.variable_usd_per_h, self.gpu_count, rent_usd_per_gpu_h
        )
        return None if found is None else found / self.availability_ratio

    def payback_h(self, rent_usd_per_gpu_h: float, use: float) -> float | None:
        """Clock hours until the rent that it saves has paid for it at that use; None: never."""
        served = use * self.availability_ratio
        opex = breakeven.own_opex_usd_per_h(self.opex_usd_per_year, self.variable_usd_per_h * served)
        return breakeven.payback_hours(self.capex_usd, self.gpu_count * rent_usd_per_gpu_h * served, opex)

    def rent_usd_per_year(self, rent_usd_per_gpu_h: float, use: float) -> float:
        """The same hours, rented."""
        return self.gpu_count * rent_usd_per_gpu_h * HOURS_PER_YEAR * use

    def own_usd_per_year(self, rent_usd_per_gpu_h: float, use: float) -> float:
        """Owning it, with what is rented while it is down."""
        served_h = HOURS_PER_YEAR * use * self.availability_ratio
        down = use * (1.0 - self.availability_ratio)
        return (
            self.fixed_usd_per_year
            + self.variable_usd_per_h * served_h
            + self.rent_usd_per_year(rent_usd_per_gpu_h, down)
        )
