"""What the overview page and the weekly report say: one frozen value, computed from hours."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from api.resources.funnel import FunnelRow
from api.resources.waste import Waste
from core.activity import Activity
from core.evidence import Window
from core.finding import Totals
from core.verification import Ledger
from store.queries.recommendations import Recommendation


@dataclass(frozen=True, slots=True)
class Money:
    """Cost of the window; every part is None when no GPU-hour of it has a price.

    Attributes:
        spend_usd: GPU cost of clock time, gaps included, and energy where the site pays for power.
        idle_usd: of it, rate × (empty + parked) time; ``empty_usd + parked_usd``.
        unseen_usd: of it, rate × time without samples: neither idle nor free.
        energy_usd: of all known site energy; None without a tariff. ``energy_in_spend``: it is part of ``spend_usd``.
        priced_ratio: covered time that has a price.
    """

    spend_usd: Decimal | None
    idle_usd: Decimal | None
    empty_usd: Decimal | None
    parked_usd: Decimal | None
    unseen_usd: Decimal | None
    energy_usd: Decimal | None
    energy_in_spend: bool
    priced_ratio: float | None

    @property
    def idle_ratio(self) -> float | None:
        """Idle money over spend."""
        return float(self.idle_usd / self.spend_usd) if self.idle_usd is not None and self.spend_usd else None

    @property
    def unseen_ratio(self) -> float | None:
        """Money of gaps over spend."""
        if self.unseen_usd is None or not self.spend_usd:
            return None
        return float(self.unseen_usd / self.spend_usd)


@dataclass(frozen=True, slots=True)
class Previous:
    """The period of equal length before the window; only when there is data for (nearly) all of it.

    ``change_ratio`` is (spend now − then) / then; None when then is 0 or unpriced.
    """

    window: Window
    spend_usd: Decimal | None
    idle_usd: Decimal | None
    change_ratio: float | None


@dataclass(frozen=True, slots=True)
class Day:
    """One UTC day.

    Attributes:
        cost_by_activity: of clock time; a gap is unknown. unseen_usd: the gap's part of it; None unpriced.
        seconds_by_activity: of time with samples. unseen_s: of the gap, in none of them.
    """

    day: str
    from_ms: int
    cost_by_activity: Mapping[Activity, Decimal]
    seconds_by_activity: Mapping[Activity, float]
    unseen_usd: Decimal | None
    unseen_s: float

    @property
    def spend_usd(self) -> Decimal:
        """Cost of priced clock time, gaps included."""
        return sum(self.cost_by_activity.values(), Decimal(0))

    @property
    def known_seconds_by_activity(self) -> dict[Activity, float]:
        """GPU-seconds of clock time; the gap is unknown."""
        seconds = dict(self.seconds_by_activity)
        if self.unseen_s > 0:
            seconds[Activity.UNKNOWN] = seconds.get(Activity.UNKNOWN, 0.0) + self.unseen_s
        return seconds


@dataclass(frozen=True, slots=True)
class HostLine:
    """One host in the overview's fleet table.

    Attributes:
        host: None gathers the GPUs whose host no source names. gpus: how many cards.
        cost_usd, idle_usd: of the window; None unpriced.
        hours: GPUs by main activity in each of the last 24 clock hours, oldest first; only of the hosts that are shown.
        advice: the best that waits for somebody and touches it; without evidence and chart.
    """

    host: str | None
    gpus: int
    cost_usd: Decimal | None
    idle_usd: Decimal | None
    hours: tuple[Mapping[Activity, int], ...] = ()
    advice: Recommendation | None = None


@dataclass(frozen=True, slots=True)
class Proven:
    """Savings of one kind that later samples confirmed or refuted, a month: measured, and what had been claimed."""

    ledger: Ledger
    saved: float
    predicted: float | None
    cases: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything the overview says.

    Attributes:
        window: whole clock hours, clipped to the data. has_data: there is any sample in it.
        freshness_s: now − end of the newest sample of the fleet; None without data.
        coverage_ratio: covered over known GPU time.
        price_note: whose prices and how old, for people.
        carbon_g: of site energy; None when unknown. carbon_note: code, year, method.
        energy_kwh: at the GPUs. site_kwh: with host share and PUE.
        totals: of the last run of the rules that was recorded, after overlap; None before the first one.
        recommendations: all that wait, without evidence and charts, but the best few groups of them: those have both.
        open_count: all that wait.
        not_evaluated_count: judgements the last run refused; None before the first one.
        waste: where money went without work to show for it. proven: verified savings by kind; empty: none yet.
        hosts: every host, those with most idle money first. days_zone: where its days begin.
    """

    window: Window
    now_ms: int
    simulated: bool
    has_data: bool
    freshness_s: float | None
    coverage_ratio: float | None
    host_count: int
    gpu_count: int
    money: Money
    previous: Previous | None
    price_note: str
    energy_kwh: float | None
    site_kwh: float | None
    carbon_g: float | None
    carbon_note: str
    funnel: tuple[FunnelRow, ...]
    days: tuple[Day, ...]
    totals: Totals | None
    recommendations: tuple[Recommendation, ...]
    open_count: int
    not_evaluated_count: int | None
    waste: tuple[Waste, ...] = ()
    proven: tuple[Proven, ...] = ()
    hosts: tuple[HostLine, ...] = ()
    days_zone: str = "UTC"
